//! Detection of a diverging fit. The driver then rolls back to the last good epoch and halves the learning rate.

use super::fit::Fit;
use crate::error::Result;
use crate::solver::loss::SquaredErrors;
use crate::trace::{self, SpanKind};

/// Multiple of the first loss at which the squared errors met during an epoch count as divergence.
const MAX_SQUARED_ERROR_FACTOR: f64 = 4.0;

/// Multiple of the lowest loss so far at which a loss counts as divergence: a suitable learning rate does not
/// raise it that much. It also bounds the squared errors on the tensor from one epoch to the next beside full matrices.
const MAX_LOSS_FACTOR: f64 = 1.5;

/// The same for the first epoch from random starting values. Nothing can be lost there, and a learning rate that raises
/// the loss at all is too large.
const MAX_FIRST_LOSS_FACTOR: f64 = 1.05;

/// Fraction of the variance below which squared errors on the tensor may grow beside full matrices.
const NEGLIGIBLE_SQUARED_ERROR: f64 = 0.1;

/// Fraction of the variance below which the loss may grow, as it may after a start that fits the entries almost exactly.
const NEGLIGIBLE_LOSS: f64 = 0.02;

impl Fit<'_> {
    /// Returns the sum of squared errors on the tensor entries where the loss alone does not reveal divergence. Beside full
    /// matrices it does not: the squared errors of the tensor are small next to those of all positions.
    pub(super) fn watched_squared_error(
        &self,
        known: Option<SquaredErrors>,
    ) -> Result<Option<f64>> {
        let data = &self.context.data;
        let watches =
            self.algorithm.can_diverge() && data.deviation != 0.0 && data.has_full_matrices();
        if !watches {
            return Ok(None);
        }
        let _span = trace::span(SpanKind::Evaluation);
        let squared_errors = match known {
            Some(known) => known,
            None => self.context.squared_errors(&self.model, &data.tensor)?,
        };
        Ok(Some(squared_errors.plain))
    }

    /// Returns the largest acceptable sum of squared errors of an epoch. `before` is the watched error before the epoch.
    pub(super) fn max_squared_error(&self, before: Option<f64>) -> f64 {
        if !self.algorithm.can_diverge() {
            return f64::MAX;
        }
        // The loss contains half the sum of squares.
        let max = 2.0 * MAX_SQUARED_ERROR_FACTOR * self.progress.first_loss;
        let data = &self.context.data;
        let negligible = NEGLIGIBLE_SQUARED_ERROR * data.tensor_weight * data.deviation.powi(2);
        before.map_or(max, |squares| {
            max.min(MAX_LOSS_FACTOR * squares.max(negligible))
        })
    }

    /// Returns the largest acceptable loss after epoch `epoch`.
    pub(super) fn max_loss(&self, epoch: u64) -> f64 {
        if !self.algorithm.can_diverge() {
            return f64::INFINITY;
        }
        let lowest = self.progress.lowest_loss.max(self.negligible_loss());
        let factor = if epoch == 1 && self.input.init.is_none() {
            MAX_FIRST_LOSS_FACTOR
        } else {
            MAX_LOSS_FACTOR
        };
        factor * lowest
    }

    /// Returns the loss below which growth is no divergence.
    pub(super) fn negligible_loss(&self) -> f64 {
        let data = &self.context.data;
        0.5 * NEGLIGIBLE_LOSS * data.tensor_weight * data.deviation.powi(2)
    }
}
