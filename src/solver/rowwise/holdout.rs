//! Squared errors on test or validation entries, of one model or of the mean prediction of posterior samples.

use super::data_term::{DataTerm, map_residuals};
use super::prediction_window::{PredictionWindow, SampleValues};
use super::probit::Probit;
use super::row_tasks::RowTasks;
use super::value_scaling::ValueScaling;
use crate::error::Result;
use crate::kernel::{CooSlices, ModeCsr};
use crate::parallel::ThreadPool;

/// Test or validation entries with scaled values, and the sums of the predictions of posterior samples for them.
pub(super) struct HoldoutEntries {
    /// The mode that entries are grouped by.
    pub mode: usize,
    pub csr: ModeCsr,
    tasks: RowTasks,
    /// Sum of the samples' predictions for each entry.
    prediction_sums: Vec<f32>,
    /// Moments of the samples' values if the likelihood is probit. There are no sums then.
    values: PredictionWindow,
    /// Number of samples in these sums.
    sample_count: usize,
}

/// Weighted sums of squared errors, in units of the data.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SquaredErrors {
    pub plain: f64,
    /// With predictions clipped to the range of the training values.
    pub clipped: f64,
}

/// The errors of a model on some entries.
pub(super) struct Measurement {
    pub errors: SquaredErrors,
    /// The values of the model for scaled values, in the order of the entries, in one vector per task; empty unless requested.
    pub predictions: Vec<Vec<f32>>,
}

/// How entries are measured.
pub(super) struct MeasureRequest<'a> {
    pub scaling: ValueScaling,
    /// The expected scaled value of an entry, given the value of the model.
    pub expected_value: &'a (dyn Fn(f64) -> f64 + Sync),
    pub wants_predictions: bool,
}

impl HoldoutEntries {
    pub(super) fn new(entries: CooSlices<'_>, pool: &ThreadPool<'_>) -> Result<HoldoutEntries> {
        let row_counts = entries.row_counts;
        // The mode with the fewest rows has the longest rows, which are the fastest.
        let mode = (0..row_counts.len())
            .min_by_key(|&m| row_counts[m])
            .unwrap_or(0);
        let csr = ModeCsr::new(mode, entries, pool.monitor())?;
        Ok(HoldoutEntries {
            mode,
            tasks: RowTasks::all(&[&csr])?,
            csr,
            prediction_sums: Vec::new(),
            values: PredictionWindow::default(),
            sample_count: 0,
        })
    }

    /// Sum of the entries' weights.
    pub(super) fn total_weight(&self) -> f64 {
        self.csr.total_weight()
    }

    /// Measures a model, given its data term for these entries and the rows and biases of [`Self::mode`].
    pub(super) fn measure(
        &self,
        term: &DataTerm<'_>,
        rows: &[f32],
        biases: &[f32],
        request: &MeasureRequest<'_>,
        pool: &ThreadPool<'_>,
    ) -> Result<Measurement> {
        let &MeasureRequest {
            scaling,
            expected_value,
            wants_predictions,
        } = request;
        let reduce = |range: std::ops::Range<usize>, residuals: &[f32]| {
            let mut errors = SquaredErrors::default();
            let capacity = if wants_predictions {
                residuals.len()
            } else {
                0
            };
            let mut predictions = Vec::with_capacity(capacity);
            for (k, entry) in range.enumerate() {
                let value = f64::from(self.csr.value(entry));
                let prediction = value - f64::from(residuals[k]);
                let expected = expected_value(prediction);
                errors.add(value, expected, self.csr.weight(entry), scaling);
                if wants_predictions {
                    predictions.push(prediction as f32);
                }
            }
            (errors, predictions)
        };
        let parts = map_residuals(&self.tasks, term, rows, biases, pool, reduce)?;
        let mut errors = SquaredErrors::default();
        for (part, _) in &parts {
            errors.plain += part.plain;
            errors.clipped += part.clipped;
        }
        Ok(Measurement {
            errors,
            predictions: parts.into_iter().map(|(_, p)| p).collect(),
        })
    }

    /// Forgets the predictions of all samples.
    pub(super) fn clear_samples(&mut self) {
        self.prediction_sums.clear();
        self.values = PredictionWindow::default();
        self.sample_count = 0;
    }

    /// Adds the predictions of a posterior sample, as [`Measurement`] has them, to the mean.
    pub(super) fn add_sample(&mut self, predictions: Vec<Vec<f32>>) {
        self.prediction_sums.resize(self.csr.len(), 0.0);
        self.sample_count += 1;
        let all = predictions.iter().flatten();
        self.prediction_sums
            .iter_mut()
            .zip(all)
            .for_each(|(s, p)| *s += p);
    }

    /// Adds the values of a posterior sample, from conditional means and from sampled rows, whose likelihood is probit.
    pub(super) fn add_probit_sample(&mut self, values: &SampleValues) {
        self.values.add(values);
    }

    /// Returns the errors of the samples' mean predictions; `None` without samples.
    pub(super) fn mean_prediction_errors(
        &self,
        scaling: ValueScaling,
        probit: Option<&Probit>,
    ) -> Option<SquaredErrors> {
        if let Some(probit) = probit.filter(|_| !self.values.is_empty()) {
            let mut errors = SquaredErrors::default();
            for (entry, (mean, variance)) in self.values.moments().enumerate() {
                let value = f64::from(self.csr.value(entry));
                let prediction = probit.expected_value(mean, variance);
                errors.add(value, prediction, self.csr.weight(entry), scaling);
            }
            return Some(errors);
        }
        if self.sample_count == 0 {
            return None;
        }
        let mut errors = SquaredErrors::default();
        for (entry, &sum) in self.prediction_sums.iter().enumerate() {
            let value = f64::from(self.csr.value(entry));
            let prediction = f64::from(sum) / self.sample_count as f64;
            errors.add(value, prediction, self.csr.weight(entry), scaling);
        }
        Some(errors)
    }
}

impl SquaredErrors {
    /// Adds one entry, given its scaled value and prediction.
    fn add(&mut self, value: f64, prediction: f64, weight: f32, scaling: ValueScaling) {
        let weight = f64::from(weight);
        let (value, prediction) = (scaling.unscaled(value), scaling.unscaled(prediction));
        self.plain += weight * ((value - prediction) * (value - prediction));
        let clipped = value - scaling.clipped(prediction);
        self.clipped += weight * (clipped * clipped);
    }
}
