//! Moments of the predictions of successive states of a chain for held-out entries.

use super::holdout::HoldoutEntries;

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
    /// Adds the predictions of one state, in one vector per task.
    pub(super) fn add(&mut self, smoothed: &[Vec<f32>], sampled: &[Vec<f32>]) {
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
        add(&mut self.smoothed, smoothed);
        add(&mut self.sampled, sampled);
    }

    /// Estimates error and posterior variance. The error of the mean of few states contains a part of their variance, which
    /// is subtracted.
    pub(super) fn estimate(&self, entries: &HoldoutEntries) -> WindowEstimate {
        let (mut error, mut monte_carlo_error, mut variance) = (0.0, 0.0, 0.0);
        for (entry, (smoothed, sampled)) in self.smoothed.iter().zip(&self.sampled).enumerate() {
            let weight = f64::from(entries.csr.weight(entry));
            let mean = smoothed.sum / self.count as f64;
            error += weight * (f64::from(entries.csr.value(entry)) - mean).powi(2);
            monte_carlo_error += weight * smoothed.variance(self.count) / self.count as f64;
            variance += weight * sampled.variance(self.count);
        }
        let count = entries.csr.len() as f64;
        WindowEstimate {
            squared_error: (error - monte_carlo_error).max(0.5 * error) / count,
            posterior_variance: variance / count,
        }
    }
}

impl Moments {
    /// Returns the sample variance of `count` numbers.
    fn variance(self, count: usize) -> f64 {
        let count = count as f64;
        (self.squares - self.sum * self.sum / count).max(0.0) / (count - 1.0).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::CooSlices;
    use crate::parallel::ThreadPool;

    #[test]
    fn monte_carlo_error_is_subtracted() {
        let entries = CooSlices {
            row_counts: &[2, 2],
            rows: &[0, 0, 1, 1],
            values: &[1.0, -1.0],
            weights: &[],
        };
        let entries = HoldoutEntries::new(entries, &ThreadPool::new(1, false, 0)).unwrap();
        let mut window = PredictionWindow::default();
        for p in [0.0, 0.5, 1.0] {
            window.add(&[vec![p], vec![-p]], &[vec![2.0 * p, 0.0]]);
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
