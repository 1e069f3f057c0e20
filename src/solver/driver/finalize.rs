//! The end of a fit: which model is returned, and how it is completed.

use std::time::Instant;

use super::fit::Fit;
use super::fit_monitor::{Phase, unless_cancelled};
use crate::error::{Error, Result};
use crate::model::{EpochMetrics, Model};
use crate::options::Penalty;
use crate::problem::Problem;
use crate::solver::algorithm::Purpose;
use crate::solver::input::FitSummary;
use crate::solver::observer::{Event, Observer, StopReason};
use crate::solver::outliers::outlier_warning;
use crate::solver::rowwise::{ColdStartSettings, solve_cold_start_rows};
use crate::solver::standardization::ValueUnits;
use crate::trace::{self, SpanKind};

impl Fit<'_> {
    /// Returns the error of a fit that diverges for the given reason.
    pub(super) fn divergence_error(&self, reason: &str) -> Error {
        let attempts = match self.progress.attempts {
            0 => String::new(),
            n => format!(", also after {n} attempts with half the learning rate each"),
        };
        let options = &self.context.options;
        if !options.algorithm.properties().has_learning_rate {
            return Error::argument(format!(
                "the fit diverges: {reason}; scale down the values or the weights of matrices"
            ));
        }
        Error::argument(format!(
            "the fit diverges: {reason}{attempts}; start with a smaller eta (now {}), or scale down the values \
             or the weights of matrices",
            options.eta.unwrap_or(0.0)
        ))
    }

    /// Makes the best model the model of the fit and returns its epoch.
    fn select_best(&mut self) -> Result<u64> {
        self.model.update_mean_rows()?;
        let is_finite = self.model.is_finite();
        // The last epoch may be better than all that the stopping rules considered.
        let last_error = unless_cancelled(self.validation_error())?;
        let last_is_best =
            is_finite && last_error.is_some_and(|error| error < self.progress.best_valid);
        let mut best_epoch = self.progress.epoch;
        if let Some(best) = self.best.take().filter(|_| !last_is_best) {
            self.model.restore(&best)?;
            self.load_biases()?;
            best_epoch = self.progress.best_epoch;
        } else if !is_finite {
            // The last epochs may not have been evaluated.
            self.restore_last_good()?;
        }
        self.model.update_mean_rows()?;
        Ok(best_epoch)
    }

    /// Selects the best model, completes and measures it. What a cancellation or the time limit cuts short stays as it was
    /// after the epochs.
    pub(in crate::solver) fn finish(
        mut self,
        problem: &Problem<'_>,
        reason: StopReason,
        observer: &mut dyn Observer,
    ) -> Result<(Model, FitSummary)> {
        self.monitor.enter(Phase::Completion);
        let completion = trace::span(SpanKind::Completion);
        let best_epoch = self.select_best()?;
        // Nothing is restored any more.
        (self.last_good, self.before_epoch) = (None, None);
        let finished = self.algorithm.finish(&mut self.model, &self.context);
        let is_finished = unless_cancelled(finished)?.is_some();
        let is_complete = is_finished && unless_cancelled(self.fill_cold_start_rows())?.is_some();
        drop(completion);
        let evaluation = trace::span(SpanKind::Evaluation);
        let began = Instant::now();
        let measured = unless_cancelled(self.measure_all())?;
        self.clock.eval_seconds += began.elapsed().as_secs_f64();
        drop(evaluation);
        let _span = trace::span(SpanKind::Completion);
        let is_diverged = measured.is_some_and(|m| !m.loss.is_finite());
        // Parameters that are finite in standardized values may overflow in the scale of the data.
        self.convert_to(ValueUnits::Data)?;
        self.model.apply_sample_biases();
        if is_diverged || self.model.invalid_number().is_some() {
            return Err(self.divergence_error("the result is not finite"));
        }
        if !is_complete || measured.is_none() {
            self.warn_of_incomplete_model(is_complete, observer);
        } else if self.context.purpose == Purpose::Result
            && !matches!(reason, StopReason::Cancelled | StopReason::TimeLimit)
        {
            self.warn_of_outliers(problem, observer)?;
        }
        // Metrics of the epoch itself stand in for final ones.
        let of_best_epoch = |m: &&EpochMetrics| m.epoch == best_epoch;
        let metrics = measured.or_else(|| self.model.history.iter().rfind(of_best_epoch).copied());
        let error = |of: fn(&EpochMetrics) -> f64| metrics.as_ref().map_or(f64::NAN, of);
        let [train_rmse, test_rmse, valid_rmse] = [
            error(|m| m.train_rmse),
            error(|m| m.test_rmse),
            error(|m| m.valid_rmse),
        ];
        observer.event(&Event::Stopped(reason));
        let summary = FitSummary {
            reason,
            epochs: self.progress.epoch,
            best_epoch,
            train_rmse,
            test_rmse,
            valid_rmse,
            clipped: self.model.clips,
            threads: self.context.pool.threads(),
            kernel: self.context.level,
            failed_checkpoints: self.checkpoints.failed,
            lacks_last_checkpoint: self.checkpoints.last_failed > Some(self.checkpoints.written),
            init_seconds: self.clock.init_seconds,
            update_seconds: self.clock.update_seconds,
            eval_seconds: self.clock.eval_seconds,
            seconds: self.clock.started.elapsed().as_secs_f64(),
        };
        let mut model = self.model;
        model.record.outcome = Some(summary.outcome(self.input.read_seconds));
        model.options = self.context.options;
        model.core_prior_mean = Vec::new();
        Ok((model, summary))
    }

    /// Measures all errors of the model.
    fn measure_all(&mut self) -> Result<EpochMetrics> {
        let mut metrics = EpochMetrics::not_measured(self.progress.epoch);
        let training = self.training_error(None)?;
        (metrics.train_rmse, metrics.loss) = (training.rmse, training.loss);
        metrics.test_rmse = self.test_error()?;
        metrics.valid_rmse = self.validation_error()?;
        Ok(metrics)
    }

    /// Warns that the fit was stopped before its model was completed, or only before its errors were measured.
    fn warn_of_incomplete_model(&mut self, is_complete: bool, observer: &mut dyn Observer) {
        let missing = if is_complete {
            "its errors were not measured again after the last epoch"
        } else {
            "factors are as the last epoch left them: not orthonormal or normalized, and rows without tensor entries \
             without a last update from their matrices"
        };
        let event = Event::Warning(format!(
            "the fit was stopped before its model was completed: {missing}"
        ));
        event.record(&mut self.model.record, self.progress.epoch);
        observer.event(&event);
    }

    fn warn_of_outliers(
        &mut self,
        problem: &Problem<'_>,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        let context = &self.context;
        let monitor = context.pool.monitor();
        let warning = outlier_warning(problem, &self.model, context.level, monitor);
        if let Some(warning) = unless_cancelled(warning)?.flatten() {
            let event = Event::Warning(warning);
            event.record(&mut self.model.record, self.progress.epoch);
            observer.event(&event);
        }
        Ok(())
    }

    /// Solves for rows without tensor entries, and their biases, from their matrices. Models without biases need nothing:
    /// their rows are trained on the matrices already.
    fn fill_cold_start_rows(&mut self) -> Result<()> {
        let context = &mut self.context;
        let standardization = &mut context.standardization;
        if standardization.biases.is_empty() {
            return Ok(());
        }
        let settings = ColdStartSettings {
            bias_scale: standardization.scale,
            has_l2_penalty: context.options.penalty == Penalty::L2,
            level: context.level,
        };
        solve_cold_start_rows(
            &mut self.model,
            &context.data,
            &mut standardization.biases,
            &settings,
            &context.pool,
        )?;
        standardization.store(&mut self.model)?;
        self.subtract_biases()
    }
}
