//! The learning rate of each epoch, and the number of epochs.

use super::fit::Fit;
use crate::options::LearningRateSchedule;

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
