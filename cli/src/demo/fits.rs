//! Fits the models of a demo and compares their test errors.

use std::sync::Arc;

use s3cmtf::format::{CooView, ModelNames, Names, Values, write_atomically};
use s3cmtf::model::{self, BiasModel, EpochMetrics, Model};
use s3cmtf::options::ModelKind;
use s3cmtf::predict::{Evaluation, evaluate};
use s3cmtf::problem::Problem;
use s3cmtf::solver::{
    BiasOptions, Control, Event, FitInput, FitSummary, Observer, fit, fit_biases,
};
use s3cmtf::{Error, Monitor, Result};
use serde_json::{Value, json};

use super::context::Context;
use crate::fit_observer::epoch_json;
use crate::output::{Output, format_count, format_integer, format_rmse, warn_renamed};
use crate::progress::Progress;

/// Rows with at most this number of training entries count as rows with few entries.
const FEW_ENTRIES: u64 = 20;

/// The fitted models and the test errors of simpler ones.
pub(super) struct Fits {
    /// Test RMSE of the training mean.
    pub mean_rmse: f64,
    /// Test RMSE of mean and biases.
    pub bias_rmse: f64,
    /// The model fitted without matrices.
    pub uncoupled: Fit,
    /// The model fitted with matrices, if there are any.
    pub coupled: Option<Fit>,
    /// Tensor entries per second of the updates of the main model.
    pub entries_per_second: f64,
}

/// A fitted model and the summary of its fit.
pub(super) struct Fit {
    pub model: Model,
    pub summary: FitSummary,
    /// The stem of its files: `uncoupled`, `coupled` or, without matrices, `model`.
    pub name: &'static str,
}

impl Fits {
    /// Returns the model that recommends and clusters: the coupled one if there is one.
    pub(super) fn main(&self) -> &Fit {
        self.coupled.as_ref().unwrap_or(&self.uncoupled)
    }

    /// Returns the uncoupled model if there is a coupled one to compare it with.
    pub(super) fn comparison(&self) -> Option<&Fit> {
        self.coupled.as_ref().map(|_| &self.uncoupled)
    }

    /// Returns all fitted models.
    pub(super) fn all(&self) -> impl Iterator<Item = &Fit> {
        [&self.uncoupled].into_iter().chain(&self.coupled)
    }
}

impl Fit {
    pub(super) fn to_json(&self) -> Value {
        json!({
            "fit": self.name,
            "model": self.model.options().get("model").unwrap_or_default(),
            "ranks": self.model.shape().ranks(),
            "epochs": self.summary.epochs,
            "seconds": self.summary.seconds,
        })
    }
}

/// Fits a model, and saves it with names and a log in the output folder.
fn fit_and_save(context: &Context<'_>, problem: &Problem<'_>, name: &'static str) -> Result<Fit> {
    let (arguments, data) = (context.arguments, context.data);
    let mut options = data.fit_options.clone();
    options.seed = arguments.seed;
    options.threads = arguments.threads as u64;
    let input = FitInput {
        test: Some(data.test.view()),
        ..FitInput::default()
    };
    let mut observer = LogObserver {
        progress: context.progress,
        name,
        epochs: options.epochs,
        log: String::new(),
    };
    let (fitted, summary) = fit(problem, &options, &input, &mut observer, context.progress)?;
    context.progress.clear();
    if context.progress.cancelled() {
        return Err(Error::Cancelled);
    }
    let file = arguments.output.join(format!("{name}.s3m"));
    let shared = |names: &Option<Names>| names.clone().map(Arc::new);
    // The uncoupled model has no matrices, so names of an earlier run are removed.
    let columns = data.matrices.iter().enumerate().map(|(m, matrix)| {
        let is_coupled = m < fitted.matrices().len();
        shared(&matrix.column_names).filter(|_| is_coupled)
    });
    let names = ModelNames {
        modes: data.names.iter().map(shared).collect(),
        columns: columns.collect(),
    };
    let names = names.stage(&file)?;
    model::save(&fitted, &file)?;
    warn_renamed(&names.commit()?);
    let log = arguments.output.join(format!("{name}.log.jsonl"));
    write_atomically(&log, |w| w.write_all(observer.log.as_bytes()))?;
    Ok(Fit {
        model: fitted,
        summary,
        name,
    })
}

/// Fits all models and prints their test errors.
pub(super) fn fit_models(context: &Context<'_>, out: &mut Output) -> Result<Fits> {
    let (data, progress) = (context.data, context.progress);
    let test = data.test.view();
    let uncoupled_problem = Problem::builder(data.train.view()).build(progress)?;
    let mut builder = Problem::builder(data.train.view()).seed(context.arguments.seed);
    for m in &data.matrices {
        builder = builder.matrix(m.mode, m.file.view(), None, m.kind);
    }
    let coupled_problem = builder.build(progress)?;
    let (uncoupled, coupled) = if data.matrices.is_empty() {
        (fit_and_save(context, &uncoupled_problem, "model")?, None)
    } else {
        let uncoupled = fit_and_save(context, &uncoupled_problem, "uncoupled")?;
        let coupled = fit_and_save(context, &coupled_problem, "coupled")?;
        (uncoupled, Some(coupled))
    };
    let clips = uncoupled.model.clips();
    let baseline_rmse = |model: &BiasModel| -> Result<f64> {
        let e = evaluate(model, &test, coupled_problem.range(), 0, progress)?;
        Ok(test_rmse(&e, clips))
    };
    let mean = BiasModel::new(coupled_problem.mean(), Vec::new());
    let (biases, _) = fit_biases(&coupled_problem, &BiasOptions::default(), progress)?;
    let mut fits = Fits {
        mean_rmse: baseline_rmse(&mean)?,
        bias_rmse: baseline_rmse(&biases)?,
        uncoupled,
        coupled,
        entries_per_second: 0.0,
    };
    fits.entries_per_second = entries_per_second(&fits.main().model);
    print_errors(context, &fits, out);
    if let Some(uncoupled) = fits.comparison() {
        for mode in 0..data.mode_names.len() {
            if data.matrices_of(mode).next().is_some() {
                print_errors_of_short_rows(
                    context,
                    mode,
                    &uncoupled.model,
                    &fits.main().model,
                    out,
                )?;
            }
        }
    }
    out.flush()?;
    Ok(fits)
}

/// Returns the error of clipped predictions if the models clip, otherwise of unclipped ones.
fn test_rmse(e: &Evaluation, clips: bool) -> f64 {
    if clips {
        e.clipped.rmse
    } else {
        e.unclipped.rmse
    }
}

/// Returns the entries per second of all updates of a fit.
fn entries_per_second(model: &Model) -> f64 {
    let history = model.history();
    let seconds: f64 = history.iter().map(|e| e.update_seconds).sum();
    let updated_entries = history
        .iter()
        .map(|e| e.entries_per_second * e.update_seconds);
    updated_entries.sum::<f64>() / seconds.max(1e-9)
}

/// Prints the test errors, the ranks that the fits chose, and the speed.
fn print_errors(context: &Context<'_>, fits: &Fits, out: &mut Output) {
    let mut rows = vec![
        ("the mean", fits.mean_rmse),
        ("mean and biases", fits.bias_rmse),
    ];
    rows.extend(fits.all().map(|f| (f.name, f.summary.test_rmse)));
    let planted = context.data.planted_rmse;
    rows.extend(planted.map(|rmse| ("the planted model", rmse)));
    out.line("");
    out.heading("RMSE on the test entries:");
    out.line(format!("\n{}", bar_chart(&rows)));
    for Fit {
        model,
        summary,
        name,
    } in fits.all()
    {
        let ranks: Vec<String> = model.shape().ranks().iter().map(usize::to_string).collect();
        let kind = match model.options().model {
            ModelKind::Cp => "CP model",
            _ => "Tucker model",
        };
        out.line(format!(
            "{name}: S3CMTF, {kind} of ranks {}, {} of SGD (algorithm {}) in {:.1} s",
            ranks.join(" x "),
            format_count(summary.epochs, "epoch", "epochs"),
            model.options().get("algorithm").unwrap_or_default(),
            summary.seconds
        ));
    }
    let summary = &fits.main().summary;
    out.line(format!(
        "{} entries/s on {} with {} kernels",
        format_integer(fits.entries_per_second as u64),
        format_count(summary.threads as u64, "thread", "threads"),
        summary.kernel.name()
    ));
}

/// Prints the errors on the test entries of rows with few training entries, where matrices help most.
fn print_errors_of_short_rows(
    context: &Context<'_>,
    mode: usize,
    uncoupled: &Model,
    coupled: &Model,
    out: &mut Output,
) -> Result<()> {
    let test = context.data.test.view();
    let rows = &coupled.modes()[mode];
    let has_few_entries = |i: u32| {
        rows.rows
            .compact(i)
            .is_none_or(|r| rows.counts[r as usize] <= FEW_ENTRIES)
    };
    let chosen: Vec<usize> = (0..test.len())
        .filter(|&i| has_few_entries(test.column(mode)[i]))
        .collect();
    if chosen.is_empty() {
        return Ok(());
    }
    let columns: Vec<Vec<u32>> = (0..test.order())
        .map(|n| chosen.iter().map(|&i| test.column(n)[i]).collect())
        .collect();
    let values: Vec<f64> = chosen.iter().map(|&i| test.values().get(i)).collect();
    let columns: Vec<&[u32]> = columns.iter().map(Vec::as_slice).collect();
    let chosen_entries = CooView::new(
        "some test entries",
        test.dims(),
        &columns,
        Values::F64(&values),
    )?;
    let threads = context.arguments.threads;
    let chosen_rmse = |m: &Model| -> Result<f64> {
        let e = evaluate(
            m,
            &chosen_entries,
            coupled.range(),
            threads,
            context.progress,
        )?;
        Ok(test_rmse(&e, m.clips()))
    };
    let (uncoupled_rmse, coupled_rmse) = (chosen_rmse(uncoupled)?, chosen_rmse(coupled)?);
    out.line(format!(
        "Where a {} has at most {FEW_ENTRIES} training entries ({}): {} uncoupled, {} coupled",
        context.data.mode_names[mode],
        format_count(chosen.len() as u64, "test entry", "test entries"),
        format_rmse(uncoupled_rmse),
        format_rmse(coupled_rmse)
    ));
    out.object(&json!({"sparse_rows": {
        "mode": mode + 1, "max_training_entries": FEW_ENTRIES, "count": chosen.len(),
        "test_rmse_uncoupled": uncoupled_rmse, "test_rmse_coupled": coupled_rmse,
    }}));
    Ok(())
}

/// Formats errors as a bar chart.
fn bar_chart(rows: &[(&str, f64)]) -> String {
    /// Characters of the longest bar.
    const BAR_WIDTH: f64 = 40.0;
    let largest = rows.iter().map(|r| r.1).fold(1e-300, f64::max);
    let lines = rows.iter().map(|(name, error)| {
        let bar = "#".repeat((error / largest * BAR_WIDTH).round() as usize);
        format!("  {name:>18}  {}  {bar}\n", format_rmse(*error))
    });
    lines.collect()
}

/// Shows the progress of a fit and collects its log as lines of JSON.
struct LogObserver<'a> {
    progress: &'a Progress,
    name: &'static str,
    epochs: u64,
    log: String,
}

impl Observer for LogObserver<'_> {
    fn epoch(&mut self, epoch: &EpochMetrics) -> Control {
        self.log += &format!("{}\n", epoch_json(epoch));
        self.progress.progress(self.name, epoch.epoch, self.epochs);
        if self.progress.cancelled() {
            Control::Stop
        } else {
            Control::Continue
        }
    }

    fn event(&mut self, event: &Event) {
        if let Event::Stopped(reason) = event {
            self.log += &format!("{}\n", json!({"event": "stopped", "reason": reason.name()}));
        }
    }
}
