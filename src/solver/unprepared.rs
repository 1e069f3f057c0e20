//! The result of a fit that ends before its starting values are complete.

use super::algorithm_factory::kernel_level;
use super::driver::FitMonitor;
use super::hyperparameters::resolve_by_sizes;
use super::input::{FitInput, FitSummary};
use super::observer::{Event, Observer};
use crate::error::Result;
use crate::format::OpenMode;
use crate::model::{self, FitRecord, Model};
use crate::options::Options;
use crate::parallel::available_threads;
use crate::problem::Problem;

/// Returns what a fit can give at once: the model of the checkpoint that it resumes, the model to start from, or else one of
/// factors that are 0, which predicts the mean of the values.
pub(super) fn unprepared_model(
    problem: &Problem<'_>,
    options: &Options,
    input: &FitInput<'_>,
    observer: &mut dyn Observer,
    monitor: &FitMonitor<'_>,
) -> Result<(Model, FitSummary)> {
    let (mut model, what) = match (&input.resume, input.init) {
        (Some(path), _) => (
            model::load_with(path, OpenMode::Private, options.external_algorithms)?,
            "the model is that of the checkpoint",
        ),
        (None, Some(init)) => (
            unfitted(init.try_clone()?),
            "the model is the one to start from",
        ),
        (None, None) => (
            mean_model(problem, options)?,
            "the model predicts the mean of the values",
        ),
    };
    let reason = monitor.stop_reason();
    let last = model.history().last().copied();
    let epoch = last.map_or(0, |metrics| metrics.epoch);
    let event = Event::Warning(format!(
        "the fit was stopped before its starting values were complete: {what}"
    ));
    event.record(&mut model.record, epoch);
    observer.event(&event);
    observer.event(&Event::Stopped(reason));
    let of_last = |error: fn(&model::EpochMetrics) -> f64| last.as_ref().map_or(f64::NAN, error);
    let seconds = monitor.clock().started.elapsed().as_secs_f64();
    let summary = FitSummary {
        reason,
        epochs: epoch,
        best_epoch: epoch,
        train_rmse: of_last(|m| m.train_rmse),
        test_rmse: of_last(|m| m.test_rmse),
        valid_rmse: of_last(|m| m.valid_rmse),
        clipped: model.clips,
        threads: match options.threads {
            0 => available_threads(),
            n => n as usize,
        },
        kernel: kernel_level(options)?,
        failed_checkpoints: 0,
        lacks_last_checkpoint: false,
        init_seconds: seconds,
        update_seconds: 0.0,
        eval_seconds: 0.0,
        seconds,
    };
    model.record.outcome = Some(summary.outcome(input.read_seconds));
    Ok((model, summary))
}

/// Returns a model without the record of its own fit.
fn unfitted(mut model: Model) -> Model {
    model.history.clear();
    model.record = FitRecord::default();
    model
}

fn mean_model(problem: &Problem<'_>, options: &Options) -> Result<Model> {
    let options = resolve_by_sizes(problem, options, None);
    let (mut model, _) = Model::zeros(problem, &options)?;
    if options.mean && options.allows_baseline() {
        model.mean = problem.mean();
    }
    Ok(model)
}
