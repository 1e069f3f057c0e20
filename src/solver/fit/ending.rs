//! The end of a fit: which model it is, and how it leaves.

use std::time::Instant;

use super::super::exact::{Measured, fill_cold};
use super::super::finish;
use super::super::input::FitSummary;
use super::super::observer::{Event, Observer, StopReason};
use super::Fit;
use crate::error::{Error, Result};
use crate::model::{Model, Saved};
use crate::options::{ModelKind, Penalty};

impl Fit<'_> {
    /// What a fit goes on from, as a checkpoint would have it but for the best model so far.
    pub(in super::super) fn paused(mut self) -> Result<(Model, Saved)> {
        self.best = None;
        self.scale(true)?;
        let state = self.progress.to_text();
        Ok((self.model, Saved { state, best: None }))
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

    pub(super) fn finish(
        mut self,
        reason: StopReason,
        observer: &mut dyn Observer,
    ) -> Result<(Model, FitSummary)> {
        let mut best_epoch = self.progress.epoch;
        // The last epoch may be better than the best that was measured by the rule.
        self.model.refresh_means()?;
        let last_valid = if self.model.is_finite() {
            self.error_on(Measured::Valid)?
        } else {
            f64::NAN
        };
        let last_is_best = last_valid < self.progress.best_valid;
        if let Some(best) = self.best.take().filter(|_| !last_is_best) {
            self.model.restore(&best)?;
            self.centre.take_biases(&self.model);
            self.take_biases_out()?;
            best_epoch = self.progress.best_epoch;
        } else {
            // The last epochs may not have been evaluated.
            if !self.model.is_finite() {
                self.restore_good()?;
            }
        }
        self.model.refresh_means()?;
        if let Some(exact) = &mut self.exact {
            exact.finish(&mut self.model, &self.crew)?;
        }
        if self.draws() {
            // A draw is what it is.
        } else if self.options.nonneg {
            finish::normalise_columns(&mut self.model)?;
        } else if self.options.orthogonal && self.options.model == ModelKind::Tucker {
            finish::orthogonalise(&mut self.model)?;
        }
        if !self.centre.biases.is_empty() {
            let l2 = self.options.penalty == Penalty::L2;
            let unit = (self.centre.scale, l2, self.level);
            let (model, biases) = (&mut self.model, &mut self.centre.biases);
            fill_cold(model, &self.data, biases, unit, &self.crew)?;
            self.centre.describe(&mut self.model)?;
            self.take_biases_out()?;
        }
        let began = Instant::now();
        let (train_rmse, loss) = self.training_error()?;
        if !loss.is_finite() || !self.model.is_finite() {
            return Err(self.diverged("the result is not finite"));
        }
        let (test_rmse, valid_rmse) = (
            self.error_on(Measured::Test)?,
            self.error_on(Measured::Valid)?,
        );
        self.eval_seconds += began.elapsed().as_secs_f64();
        self.scale(true)?;
        observer.event(&Event::Stopped(reason));
        let summary = FitSummary {
            reason,
            epochs: self.progress.epoch,
            best_epoch,
            train_rmse,
            test_rmse,
            valid_rmse,
            clipped: self.options.clip,
            threads: self.crew.threads(),
            kernel: self.level,
            update_seconds: self.update_seconds,
            eval_seconds: self.eval_seconds,
            seconds: self.started.elapsed().as_secs_f64(),
        };
        self.model.options = self.options;
        Ok((self.model, summary))
    }
}
