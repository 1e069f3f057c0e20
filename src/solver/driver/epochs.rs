//! The loop over epochs: updates, measurements, stopping rules, rollbacks and checkpoints.

use std::time::Instant;

use super::fit::Fit;
use super::fit_monitor::Phase;
use crate::error::{Error, Result};
use crate::fit_plan::{Choice, NoisePlan};
use crate::model::EpochMetrics;
use crate::options::LearningRateSchedule;
use crate::solver::algorithm::EpochRequest;
use crate::solver::observer::{Control, Event, Observer, StopReason};
use crate::trace::{self, SpanKind};

/// Number of times that a fit which diverges is rolled back, each time to half the learning rate, before it fails.
const MAX_ROLLBACKS: u64 = 10;

/// A complete epoch.
struct Epoch {
    metrics: EpochMetrics,
    /// The error that reveals divergence beside full matrices, after the epoch.
    watched_error: Option<f64>,
    is_evaluated: bool,
    has_diverged: bool,
}

impl Fit<'_> {
    /// Completes the start of a new fit. Returns the noise, if the algorithm models it, and what was chosen.
    pub(in crate::solver) fn prepare(
        &mut self,
        planned: Option<&NoisePlan>,
    ) -> Result<(Option<NoisePlan>, Vec<Choice>)> {
        let prepared = self
            .algorithm
            .prepare(&mut self.model, &self.context, planned)?;
        self.progress.algorithm = self.algorithm.state();
        if let Some(last_good) = &mut self.last_good {
            last_good.update(&self.model)?;
        }
        Ok(prepared)
    }

    /// Runs epochs until a stopping rule ends the fit. The monitor can cancel it in the middle of an epoch or of its
    /// evaluation; the model is then that of the epoch before, or that of the starting values. `observer` can stop it after an epoch.
    pub(in crate::solver) fn run(&mut self, observer: &mut dyn Observer) -> Result<StopReason> {
        self.clock.init_seconds = self.clock.started.elapsed().as_secs_f64();
        // Nothing has to be measured where no epoch follows.
        let is_out_of_time = self.progress.epoch < self.last_epoch(self.progress.epoch)
            && self.monitor.is_out_of_time();
        let reason = if is_out_of_time {
            Ok(StopReason::TimeLimit)
        } else {
            self.run_epochs(observer)
        };
        self.monitor.enter(Phase::Completion);
        reason
    }

    /// Measures the errors of the starting values. Returns the watched one.
    fn measure_start(&mut self) -> Result<Option<f64>> {
        if self.progress.first_loss.is_nan() {
            self.measure_first_loss()?;
        }
        self.watched_squared_error(None)
    }

    fn run_epochs(&mut self, observer: &mut dyn Observer) -> Result<StopReason> {
        let mut error_before = match self.measure_start() {
            Err(Error::Cancelled) if self.last_good.is_some() => {
                return Ok(self.monitor.stop_reason());
            }
            error => error?,
        };
        self.monitor.enter(Phase::Epochs);
        while self.progress.epoch < self.last_epoch(self.progress.epoch) {
            if self.monitor.is_out_of_time() {
                return Ok(StopReason::TimeLimit);
            }
            let epoch = match self.run_epoch(self.progress.epoch + 1, error_before) {
                Err(Error::Cancelled) if self.last_good.is_some() => {
                    // An epoch that was not completed leaves no trace.
                    self.monitor.enter(Phase::Completion);
                    self.restore_before_epoch()?;
                    return Ok(self.monitor.stop_reason());
                }
                epoch => epoch?,
            };
            self.is_at_last_good = epoch.has_diverged || epoch.is_evaluated;
            if epoch.has_diverged {
                self.roll_back(observer)?;
                error_before = match self.watched_squared_error(None) {
                    Err(Error::Cancelled) => return Ok(self.monitor.stop_reason()),
                    error => error?,
                };
                continue;
            }
            error_before = epoch.watched_error;
            let metrics = epoch.metrics;
            self.progress.epoch = metrics.epoch;
            self.model.history.push(metrics);
            self.progress.algorithm = self.algorithm.state();
            let control = observer.epoch(&metrics);
            let mut reason = None;
            if epoch.is_evaluated {
                if let Some(last_good) = &mut self.last_good {
                    last_good.update(&self.model)?;
                }
                reason = self.apply_stopping_rules(&metrics)?;
                if self.is_checkpoint_due(metrics.epoch) {
                    self.save_checkpoint(observer)?;
                }
            }
            if control == Control::Stop {
                return Ok(StopReason::Cancelled);
            }
            if let Some(reason) = reason {
                return Ok(reason);
            }
        }
        Ok(match self.algorithm.has_converged() {
            true => StopReason::Converged,
            false => StopReason::Epochs,
        })
    }

    /// Saves the parameters, runs epoch `number`, updates the biases and measures the errors if they are due. `error_before` is the watched error
    /// before the epoch.
    fn run_epoch(&mut self, number: u64, error_before: Option<f64>) -> Result<Epoch> {
        let updates = trace::numbered_span(SpanKind::Epoch, number);
        self.save_before_epoch()?;
        let eta = self.eta(number);
        let began = Instant::now();
        let max_error = self.max_squared_error(error_before);
        let squared_error = self.update(number, eta)?;
        let training_errors = if squared_error.is_finite() {
            self.update_biases()?
        } else {
            None
        };
        let update_seconds = began.elapsed().as_secs_f64();
        drop(updates);
        self.clock.update_seconds += update_seconds;
        let mut metrics = EpochMetrics {
            eta,
            update_seconds,
            entries_per_second: self.context.data.entry_count as f64 / update_seconds.max(1e-9),
            ..EpochMetrics::not_measured(number)
        };
        let is_evaluated = number.is_multiple_of(self.context.options.eval_every)
            || number >= self.last_epoch(number)
            || self.is_checkpoint_due(number);
        let watched_error = self.watched_squared_error(training_errors)?;
        let is_fine = |error: f64| error.is_finite() && error <= max_error;
        let mut has_diverged = !is_fine(squared_error) || !watched_error.is_none_or(is_fine);
        if is_evaluated && !has_diverged {
            self.evaluate(&mut metrics, training_errors)?;
            has_diverged = !metrics.loss.is_finite()
                || metrics.loss > self.max_loss(number)
                || !self.model.is_finite();
        }
        Ok(Epoch {
            metrics,
            watched_error,
            is_evaluated,
            has_diverged,
        })
    }

    /// Measures the loss of the starting values, which later losses are compared with.
    fn measure_first_loss(&mut self) -> Result<()> {
        let _span = trace::span(SpanKind::Evaluation);
        let began = Instant::now();
        let loss = self.training_error(None)?.loss;
        self.clock.eval_seconds += began.elapsed().as_secs_f64();
        self.progress.first_loss = loss.max(self.negligible_loss());
        self.progress.lowest_loss = loss;
        self.progress.last_loss = loss;
        if loss.is_finite() {
            return Ok(());
        }
        Err(self.divergence_error("the starting values already give a loss that is not finite"))
    }

    /// Runs one epoch of the algorithm. Returns the squared errors met on the way.
    fn update(&mut self, number: u64, eta: f64) -> Result<f64> {
        let request = EpochRequest {
            number,
            attempt: self.progress.attempts,
            eta,
        };
        let squared_error = self
            .algorithm
            .epoch(&mut self.model, &self.context, request)?;
        Ok(squared_error)
    }

    /// Updates the best model and returns the reason to stop after an evaluated epoch, if there is one. Epochs that were
    /// evaluated only because they are the last or have a checkpoint decide nothing, so that a resumed fit takes the same
    /// course as one that was never interrupted.
    fn apply_stopping_rules(&mut self, metrics: &EpochMetrics) -> Result<Option<StopReason>> {
        let options = &self.context.options;
        if !metrics.epoch.is_multiple_of(options.eval_every) {
            return Ok(None);
        }
        let progress = &mut self.progress;
        let change = (progress.last_loss - metrics.loss).abs()
            / progress.last_loss.abs().max(f64::MIN_POSITIVE);
        progress.last_loss = metrics.loss;
        progress.lowest_loss = progress.lowest_loss.min(metrics.loss);
        let mut reason = None;
        if options.tolerance > 0.0 && change < options.tolerance {
            reason = Some(StopReason::Tolerance);
        }
        if self.validation.is_some() {
            if metrics.valid_rmse < progress.best_valid {
                progress.best_valid = metrics.valid_rmse;
                progress.best_epoch = metrics.epoch;
                progress.epochs_since_best = 0;
                // The mean of all samples predicts better than any single one.
                if !self.algorithm.averages_samples() {
                    match &mut self.best {
                        Some(best) => best.update(&self.model)?,
                        None => self.best = Some(self.model.snapshot()?),
                    }
                }
            } else {
                progress.epochs_since_best += 1;
                if options.patience > 0 && progress.epochs_since_best >= options.patience {
                    reason = Some(StopReason::Patience);
                }
            }
        }
        Ok(reason)
    }

    /// Returns to the last good epoch and halves the learning rate.
    fn roll_back(&mut self, observer: &mut dyn Observer) -> Result<()> {
        if self.progress.attempts >= MAX_ROLLBACKS || self.last_good.is_none() {
            return Err(self.divergence_error("the loss exploded"));
        }
        self.progress.attempts += 1;
        self.progress.eta_scale *= 0.5;
        self.restore_last_good()?;
        let history = &mut self.model.history;
        history.retain(|e| e.epoch <= self.progress.epoch);
        // Epochs since the last evaluated one are run again.
        let good = history
            .iter()
            .rposition(|e| e.loss.is_finite())
            .map_or(0, |k| k + 1);
        history.truncate(good);
        self.progress.epoch = good as u64;
        let event = Event::RolledBack {
            epoch: self.progress.epoch,
            eta: self.eta(self.progress.epoch + 1),
        };
        event.record(&mut self.model.record, self.progress.epoch);
        observer.event(&event);
        Ok(())
    }
}

/// Smallest learning rate of the square schedule as a fraction of the first.
const MIN_ETA_FRACTION: f64 = 0.002;

impl Fit<'_> {
    /// Returns the number of the last epoch, as known after epoch `epoch`.
    pub(super) fn last_epoch(&self, epoch: u64) -> u64 {
        if self.algorithm.has_converged() {
            return epoch;
        }
        self.algorithm
            .last_epoch(&self.model, &self.context.options, epoch)
    }

    /// Returns the learning rate of an epoch, counted from 1; NaN if the algorithm has none.
    pub(super) fn eta(&self, epoch: u64) -> f64 {
        let options = &self.context.options;
        if !options.algorithm.properties().has_learning_rate {
            return f64::NAN;
        }
        let t = (epoch - 1) as f64;
        let fraction = match options.schedule {
            LearningRateSchedule::Inverse => 1.0 / (1.0 + options.decay * t),
            LearningRateSchedule::Square => {
                let remaining = 1.0 - t / options.epochs.max(1) as f64;
                (remaining * remaining).max(MIN_ETA_FRACTION)
            }
        };
        options.eta.unwrap_or(0.0) * fraction * self.progress.eta_scale
    }
}
