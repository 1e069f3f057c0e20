//! Errors and losses during a fit.

use std::time::Instant;

use super::super::loss::{self, Sums};
use super::super::rowwise::Measured;
use super::{EXPLOSION, Fit, SETBACK};
use crate::error::Result;
use crate::model::EpochMetrics;

/// Squared errors that are less than this share of the variance may grow.
const LITTLE: f64 = 0.1;

/// The share of the variance that a loss is no yardstick below.
const TINY: f64 = 0.02;

impl Fit<'_> {
    /// Of the two sums of squares the one that errors are reported from, as an error per entry, or by
    /// weight.
    fn rmse(&self, sums: Sums, weight: f64) -> f64 {
        let squares = if self.options.clip {
            sums.clipped
        } else {
            sums.plain
        };
        (squares / weight).sqrt() * self.centre.scale
    }

    /// The sums of squared errors on the training entries, if they are not `known`.
    fn training_squares(&self, known: Option<Sums>) -> Result<Sums> {
        if let Some(sums) = known {
            return Ok(sums);
        }
        let (model, tensor, centre) = (&self.model, &self.data.tensor, &self.centre);
        loss::tensor_squares(model, tensor, centre, self.level, &self.pool)
    }

    /// The training error and the loss. The squared errors may be `known`.
    pub(super) fn training_error(&self, known: Option<Sums>) -> Result<(f64, f64)> {
        let (model, data, pool) = (&self.model, &self.data, &self.pool);
        if let Some(exact) = self.exact.as_ref().filter(|e| e.draws()) {
            let squares = exact.train_squares(model, pool)?;
            return Ok(((squares / data.tensor.total()).sqrt(), 0.5 * squares));
        }
        let sums = self.training_squares(known)?;
        let total = loss::total(model, data, sums.plain, &self.options, self.level, pool)?;
        let biases = loss::of_biases(&self.centre.biases, &self.centre.damping, pool)?;
        Ok((self.rmse(sums, data.tensor.total()), total + biases))
    }

    /// The sum of squared errors on the tensor entries, where the loss does not watch over it: steps on entries that
    /// are too large for rows of the size that full matrices give them cost little next to what all cells cost.
    pub(super) fn watched_squares(&self, known: Option<Sums>) -> Result<Option<f64>> {
        let data = &self.data;
        let none = self.exact.is_some() || data.deviation == 0.0;
        if none || data.matrices.iter().all(|m| m.full.is_none()) {
            return Ok(None);
        }
        Ok(Some(self.training_squares(known)?.plain))
    }

    /// The most that squared errors may add up to on the way through an epoch, and at its end where they are
    /// watched: then they were `begins` before.
    pub(super) fn most_squares(&self, begins: Option<f64>) -> f64 {
        if self.exact.is_some() {
            return f64::MAX;
        }
        // Half the sum of squares is part of the loss.
        let most = 2.0 * EXPLOSION * self.progress.first_loss;
        let little = LITTLE * self.data.tensor.total() * self.data.deviation.powi(2);
        begins.map_or(most, |squares| most.min(SETBACK * squares.max(little)))
    }

    /// A loss that may grow: one of a model that fits the entries nearly without error, as one that was drawn may.
    pub(super) fn little_loss(&self) -> f64 {
        0.5 * TINY * self.data.tensor.total() * self.data.deviation.powi(2)
    }

    /// The error on the validation entries.
    pub(in crate::solver) fn valid_error(&self) -> Result<f64> {
        self.error_on(Measured::Valid)
    }

    pub(super) fn error_on(&self, on: Measured) -> Result<f64> {
        if let Some(exact) = self.exact.as_ref().filter(|e| e.draws()) {
            return exact.error_on(on, &self.model, self.options.clip, &self.pool);
        }
        let entries = match on {
            Measured::Test => &self.test,
            Measured::Valid => &self.valid,
        };
        match entries {
            Some(e) if e.len() > 0 => {
                let (model, centre) = (&self.model, &self.centre);
                let sums = loss::tensor_squares(model, e, centre, self.level, &self.pool)?;
                Ok(self.rmse(sums, e.total()))
            }
            _ => Ok(f64::NAN),
        }
    }

    /// Fills in what an epoch led to; the squared errors on the training entries may be `known`.
    pub(super) fn evaluate(
        &mut self,
        figures: &mut EpochMetrics,
        known: Option<Sums>,
    ) -> Result<()> {
        let began = Instant::now();
        self.model.update_mean_rows()?;
        (figures.train_rmse, figures.loss) = self.training_error(known)?;
        figures.test_rmse = self.error_on(Measured::Test)?;
        figures.valid_rmse = self.error_on(Measured::Valid)?;
        figures.eval_seconds = began.elapsed().as_secs_f64();
        self.clock.eval_seconds += figures.eval_seconds;
        Ok(())
    }
}
