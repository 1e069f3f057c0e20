//! The end of a fit: which model it is, and how it leaves.

use std::time::Instant;

use super::super::input::FitSummary;
use super::super::observer::{Event, Observer, StopReason};
use super::super::reparametrization;
use super::super::rowwise::{Measured, fill_cold};
use super::{Fit, Known};
use crate::error::{Error, Result};
use crate::model::{Checkpoint, FitOutcome, Model};
use crate::options::{ModelKind, Penalty};

impl Fit<'_> {
    /// What a fit goes on from, as a checkpoint would have it but for the best model so far.
    pub(in super::super) fn paused(mut self) -> Result<(Model, Checkpoint)> {
        self.best = None;
        self.scale(true)?;
        let saved = Checkpoint {
            state: self.progress.to_text(),
            options: self.options.to_text(),
            library: None,
            best: None,
        };
        Ok((self.model, saved))
    }

    pub(super) fn diverged(&self, what: &str) -> Error {
        let attempts = match self.progress.attempts {
            0 => String::new(),
            n => format!(", also after {n} attempts with half the step size each"),
        };
        Error::argument(format!(
            "the fit diverges: {what}{attempts}; start with a smaller eta (now {}), or scale down the values \
             or the weights of matrices",
            self.options.eta.unwrap_or(0.0)
        ))
    }

    /// Makes the model the best there is, and says which epoch's it is.
    fn keep_best(&mut self) -> Result<u64> {
        // The last epoch may be better than the best that was measured by the rule.
        self.model.update_mean_rows()?;
        let finite = self.model.is_finite();
        let last_is_best = match self.progress.refit {
            0 if finite => self.error_on(Measured::Valid)? < self.progress.best_valid,
            // All entries were fitted to as long as that was to be, or not.
            last => finite && self.progress.epoch == last,
        };
        let mut best_epoch = self.progress.epoch;
        if let Some(best) = self.best.take().filter(|_| !last_is_best) {
            self.model.restore(&best)?;
            self.centre.take_biases(&self.model);
            self.take_biases_out()?;
            best_epoch = self.progress.best_epoch;
        } else if !finite {
            // The last epochs may not have been evaluated.
            self.restore_good()?;
        }
        self.model.update_mean_rows()?;
        Ok(best_epoch)
    }

    /// What a fit to all entries begins with, after this one with some held out.
    pub(super) fn into_refit(mut self) -> Result<Known> {
        let best_epoch = self.keep_best()?;
        let best_valid = self.error_on(Measured::Valid)?;
        let progress = self.progress.to_refit(best_epoch, best_valid);
        Ok(Known {
            refit: Some((progress, self.model.snapshot()?)),
            record: std::mem::take(&mut self.model.record),
            clock: Some(self.clock),
            ..Known::default()
        })
    }

    pub(in super::super) fn finish(
        mut self,
        reason: StopReason,
        observer: &mut dyn Observer,
    ) -> Result<(Model, FitSummary)> {
        let best_epoch = self.keep_best()?;
        if let Some(exact) = &mut self.exact {
            exact.finish(&mut self.model, &self.pool)?;
        }
        if self.draws() {
            // A draw is what it is.
        } else if self.options.nonneg {
            reparametrization::normalise_columns(&mut self.model)?;
        } else if self.options.orthogonal && self.options.model == ModelKind::Tucker {
            reparametrization::orthogonalise(&mut self.model)?;
        }
        if !self.centre.biases.is_empty() {
            let l2 = self.options.penalty == Penalty::L2;
            let unit = (self.centre.scale, l2, self.level);
            let (model, biases) = (&mut self.model, &mut self.centre.biases);
            fill_cold(model, &self.data, biases, unit, &self.pool)?;
            self.centre.describe(&mut self.model)?;
            self.take_biases_out()?;
        }
        let began = Instant::now();
        let (train_rmse, loss) = self.training_error(None)?;
        if !loss.is_finite() || !self.model.is_finite() {
            return Err(self.diverged("the result is not finite"));
        }
        let test_rmse = self.error_on(Measured::Test)?;
        let valid_rmse = match self.progress.refit {
            0 => self.error_on(Measured::Valid)?,
            // What was held out is fitted to since.
            _ => self.progress.best_valid,
        };
        self.clock.eval_seconds += began.elapsed().as_secs_f64();
        self.scale(true)?;
        observer.event(&Event::Stopped(reason));
        let summary = FitSummary {
            reason,
            epochs: self.progress.before + self.progress.epoch,
            best_epoch,
            train_rmse,
            test_rmse,
            valid_rmse,
            clipped: self.options.clip,
            threads: self.pool.threads(),
            kernel: self.level,
            update_seconds: self.clock.update_seconds,
            eval_seconds: self.clock.eval_seconds,
            seconds: self.clock.started.elapsed().as_secs_f64(),
        };
        self.model.record.outcome = Some(FitOutcome {
            reason: reason.name().into(),
            epochs: summary.epochs,
            best_epoch,
            train_rmse,
            test_rmse,
            valid_rmse,
            clipped: summary.clipped,
            threads: summary.threads as u64,
            kernel: summary.kernel.name().into(),
            update_seconds: summary.update_seconds,
            eval_seconds: summary.eval_seconds,
            seconds: summary.seconds,
        });
        self.model.apply_sample_biases();
        self.model.options = self.options;
        self.model.core_prior_mean = Vec::new();
        Ok((self.model, summary))
    }
}
