//! Moments of the predictions of successive states of a chain for held-out entries.

use super::probit::Probit;
use crate::kernel::ModeCsr;

/// The predictions of one state of the chain, in one vector per task.
pub(super) struct SampleValues {
    /// With conditional means of rows.
    pub smoothed: Vec<Vec<f32>>,
    /// With sampled rows.
    pub sampled: Vec<Vec<f32>>,
}

/// Moments of the predictions of successive states of the chain, in scaled units.
#[derive(Default)]
pub(super) struct PredictionWindow {
    count: usize,
    /// For each entry, moments of the predictions that use conditional means of rows.
    smoothed: Vec<Moments>,
    /// For each entry, moments of the predictions that use sampled rows.
    sampled: Vec<Moments>,
}

/// Sum of numbers, and sum of their squares.
#[derive(Clone, Copy, Default)]
struct Moments {
    sum: f64,
    squares: f64,
}

/// Estimates from a [`PredictionWindow`], averaged over the held-out entries, in scaled units.
#[derive(Debug, Clone, Copy)]
pub(super) struct WindowEstimate {
    /// Squared error of the posterior mean, times the weight of the entry.
    pub squared_error: f64,
    /// Posterior variance of the prediction, times the weight of the entry.
    pub posterior_variance: f64,
}

impl PredictionWindow {
    /// Adds the predictions of one state.
    pub(super) fn add(&mut self, values: &SampleValues) {
        self.count += 1;
        let add = |sums: &mut Vec<Moments>, predictions: &[Vec<f32>]| {
            let count = predictions.iter().map(Vec::len).sum();
            sums.resize(count, Moments::default());
            for (moments, &p) in sums.iter_mut().zip(predictions.iter().flatten()) {
                let p = f64::from(p);
                moments.sum += p;
                moments.squares += p * p;
            }
        };
        add(&mut self.smoothed, &values.smoothed);
        add(&mut self.sampled, &values.sampled);
    }

    /// Returns whether there are no predictions.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the mean and the variance of the predictions of each entry: the mean from conditional means of rows, which
    /// have less sampling error, the variance from sampled rows.
    pub(super) fn moments(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let moments = self.smoothed.iter().zip(&self.sampled);
        moments.map(|(smoothed, sampled)| {
            let mean = smoothed.sum / self.count as f64;
            (mean, sampled.variance(self.count))
        })
    }

    /// Estimates error and posterior variance. The error of the mean of few states contains a part of their variance, which
    /// is subtracted.
    pub(super) fn estimate(&self, entries: &ModeCsr) -> WindowEstimate {
        let (mut error, mut monte_carlo_error, mut variance) = (0.0, 0.0, 0.0);
        for (entry, (smoothed, sampled)) in self.smoothed.iter().zip(&self.sampled).enumerate() {
            let weight = f64::from(entries.weight(entry));
            let mean = smoothed.sum / self.count as f64;
            error += weight * (f64::from(entries.value(entry)) - mean).powi(2);
            monte_carlo_error += weight * smoothed.variance(self.count) / self.count as f64;
            variance += weight * sampled.variance(self.count);
        }
        let count = entries.len() as f64;
        WindowEstimate {
            squared_error: (error - monte_carlo_error).max(0.5 * error) / count,
            posterior_variance: variance / count,
        }
    }
}

impl PredictionWindow {
    /// Computes the errors on entries with the two values of `likelihood`, whose latent values the predictions are if `is_probit`.
    /// The Monte Carlo error is subtracted from the squared error.
    pub(super) fn two_value_errors(
        &self,
        entries: &ModeCsr,
        likelihood: &Probit,
        is_probit: bool,
    ) -> TwoValueErrors {
        let mut sums = TwoValueSums::new(likelihood);
        for (entry, (mean, variance)) in self.moments().enumerate() {
            let smoothed = &self.smoothed[entry];
            let monte_carlo_error = smoothed.variance(self.count) / self.count as f64;
            let (prediction, slope) = match is_probit {
                true => (
                    likelihood.expected_value(mean, variance),
                    likelihood.slope(mean, variance),
                ),
                false => (mean, 1.0),
            };
            sums.add(
                f64::from(entries.value(entry)),
                prediction,
                slope * slope * monte_carlo_error,
                f64::from(entries.weight(entry)),
            );
        }
        sums.errors()
    }
}

impl Moments {
    /// Returns the sample variance of `count` numbers.
    fn variance(self, count: usize) -> f64 {
        let count = count as f64;
        (self.squares - self.sum * self.sum / count).max(0.0) / (count - 1.0).max(1.0)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::CooSlices;

    #[test]
    fn monte_carlo_error_is_subtracted() {
        let entries = CooSlices {
            row_counts: &[2, 2],
            rows: &[0, 0, 1, 1],
            values: &[1.0, -1.0],
            weights: &[],
        };
        let entries = ModeCsr::new(0, entries, &()).unwrap();
        let mut window = PredictionWindow::default();
        for p in [0.0, 0.5, 1.0] {
            window.add(&SampleValues {
                smoothed: vec![vec![p], vec![-p]],
                sampled: vec![vec![2.0 * p, 0.0]],
            });
        }
        // The mean predictions are 0.5 and -0.5, and predictions have variance 0.25.
        let WindowEstimate {
            squared_error,
            posterior_variance,
        } = window.estimate(&entries);
        assert!((squared_error - (0.25 - 0.25 / 3.0)).abs() < 1e-6);
        assert!((posterior_variance - 0.5).abs() < 1e-6);
    }
}
