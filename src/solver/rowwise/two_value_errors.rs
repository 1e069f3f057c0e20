//! Errors of predictions for held-out entries with two values.

use super::probit::Probit;

/// Least probability in a log loss.
const MIN_PROBABILITY: f64 = 1e-6;

/// Errors of predictions for two-valued entries, averaged over the entries.
#[derive(Debug, Clone, Copy)]
pub(super) struct TwoValueErrors {
    /// Squared error of predictions between the two values, in scaled units.
    pub squared_error: f64,
    /// Mean of -ln p, with p the predicted probability of the value.
    pub log_loss: f64,
}

/// Sums of errors over entries.
pub(super) struct TwoValueSums {
    /// The scaled low and high value.
    values: [f64; 2],
    squared_error: f64,
    log_loss: f64,
    weight: f64,
}

impl TwoValueSums {
    /// Sums for entries with the two values of `likelihood`.
    pub(super) fn new(likelihood: &Probit) -> TwoValueSums {
        TwoValueSums {
            values: likelihood.values().map(f64::from),
            squared_error: 0.0,
            log_loss: 0.0,
            weight: 0.0,
        }
    }

    /// Adds an entry. `monte_carlo_error` is the part of the squared error that is due to the few samples of the prediction.
    pub(super) fn add(&mut self, value: f64, prediction: f64, monte_carlo_error: f64, weight: f64) {
        let [low, high] = self.values;
        let distance = (value - prediction.max(low).min(high)).abs();
        let probability = (1.0 - distance / (high - low)).max(MIN_PROBABILITY);
        self.squared_error += weight * (distance * distance - monte_carlo_error);
        self.log_loss -= weight * probability.ln();
        self.weight += weight;
    }

    /// Returns the means.
    pub(super) fn errors(&self) -> TwoValueErrors {
        TwoValueErrors {
            squared_error: self.squared_error / self.weight,
            log_loss: self.log_loss / self.weight,
        }
    }
}
