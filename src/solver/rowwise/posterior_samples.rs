//! Posterior samples: adding them to the model, and the mean of their predictions.

use std::sync::Arc;

use super::solver::RowwiseSolver;
use super::state::ConditionalMeans;
use crate::error::Result;
use crate::kernel::CoreKind;
use crate::model::{FactorMatrix, Model, PosteriorSample, QuantizedRows, UnseenRows};
use crate::parallel::ThreadPool;
use crate::simd::padded_len;
use crate::try_alloc::{CORE_ENTRIES, try_to_vec};

/// A sample whose training RMSE is larger than the last one's by this factor is from before the chain had converged.
const UNCONVERGED_RMSE_RATIO: f64 = 1.1;

impl RowwiseSolver {
    /// Adds the current state of the chain to the model's samples. Samples store quantized rows, and the chain continues
    /// from those.
    pub(super) fn add_sample(&mut self, model: &mut Model) -> Result<()> {
        let mut modes = Vec::new();
        for (mode, biases) in model.modes.iter_mut().zip(&mut self.state.biases) {
            modes.push(quantize(&mut mode.factor, biases)?);
        }
        let conditional_means = self.quantize_conditional_means(model)?;
        let core = match model.shape.kind() {
            CoreKind::Full => try_to_vec(&model.core, CORE_ENTRIES)?,
            CoreKind::Diagonal => Vec::new(),
        };
        // Predictions do not use columns, so the chain continues with the exact ones.
        let columns = model.matrices.iter().map(|m| {
            let (rank, stride) = (m.factor.rank(), m.factor.stride());
            let mut quantized = QuantizedRows::with_capacity(rank, m.factor.len())?;
            let rows = m.factor.as_slice().chunks_exact(stride);
            rows.for_each(|row| quantized.push(&row[..rank]));
            Ok(quantized)
        });
        let weights = self.state.matrix_weights.clone();
        let cold_bias = self.state.cold_start_biases.iter().map(|biases| {
            let regression = biases.as_ref().map(|b| b.regression.to_stored());
            regression.unwrap_or_default()
        });
        let sample = PosteriorSample {
            // `set_noise_deviation` computes it.
            noise_deviation: 0.0,
            core,
            modes,
            conditional_means,
            columns: columns.take(weights.len()).collect::<Result<_>>()?,
            weights,
            cold_bias: cold_bias.collect(),
            unseen_rows: self.unseen_rows(),
        };
        if let Some(samples) = &mut model.samples {
            debug_assert_eq!(samples.has_biases, self.problem.has_biases);
            samples.samples.push(Arc::new(sample));
        }
        Ok(())
    }

    /// Returns the distribution of rows without entries for each mode; none if a mode has not been sampled yet.
    fn unseen_rows(&self) -> Vec<UnseenRows> {
        // The prior of biases alone is relative to the noise that drives the chain, which is then as small as the residuals.
        let scale = match self.state.noise.has_biases_only {
            true => self.state.noise.interval_ratio.sqrt() as f32,
            false => 1.0,
        };
        let priors = self.state.row_priors.iter().map(Option::as_ref);
        let rows = priors.map(|prior| {
            let prior = prior?;
            let mut factor = prior.covariance_factor();
            factor.iter_mut().for_each(|x| *x *= scale);
            UnseenRows::new(prior.size, factor)
        });
        rows.collect::<Option<_>>().unwrap_or_default()
    }

    /// Quantizes the conditional means of the largest mode, in the state too.
    fn quantize_conditional_means(&mut self, model: &Model) -> Result<QuantizedRows> {
        let n = self.problem.largest_mode();
        let (factor, rank) = (&model.modes[n].factor, model.shape.ranks()[n]);
        let means = &mut self.state.conditional_means;
        let mut rows = FactorMatrix::zeros(factor.len(), rank)?;
        rows.as_mut_slice()?.copy_from_slice(&means.rows);
        // The mean row is that of the samples.
        let mean_row = (rows.len() - 1) * padded_len(rank);
        rows.as_mut_slice()?[mean_row..].copy_from_slice(&factor.as_slice()[mean_row..]);
        let quantized = quantize(&mut rows, &mut means.biases)?;
        means.rows.copy_from_slice(rows.as_slice());
        Ok(quantized)
    }

    /// Drops samples from before the chain had converged: those that fit the training entries much worse than the last
    /// one. Returns whether there were some; the mean predictions are then those of the remaining samples.
    pub(super) fn drop_unconverged_samples(
        &mut self,
        model: &mut Model,
        pool: &ThreadPool<'_>,
    ) -> Result<bool> {
        let Some(samples) = &mut model.samples else {
            return Ok(false);
        };
        let list = &mut samples.samples;
        let last = list.last().map_or(f64::INFINITY, |s| s.noise_deviation);
        let limit = UNCONVERGED_RMSE_RATIO * last;
        let count = list.len();
        list.retain(|s| s.noise_deviation <= limit);
        if list.len() == count {
            return Ok(false);
        }
        for holdout in [&mut self.test, &mut self.validation].into_iter().flatten() {
            holdout.clear_samples();
        }
        self.add_stored_samples(model, pool)?;
        Ok(true)
    }

    /// Adds the predictions of the current state of the chain to the mean predictions for test and validation entries.
    pub(super) fn add_predictions(&mut self, model: &Model, pool: &ThreadPool<'_>) -> Result<()> {
        for holdout in [&mut self.test, &mut self.validation].into_iter().flatten() {
            if self.problem.probit.is_some() {
                let state = &mut self.state;
                let values = self.problem.sample_values(model, state, holdout, pool)?;
                holdout.add_probit_sample(&values);
                continue;
            }
            let measurement = self
                .problem
                .measure(model, &self.state, holdout, true, pool)?;
            holdout.add_sample(measurement.predictions);
        }
        Ok(())
    }

    /// Adds the predictions of all samples of the model to the mean predictions. Model and state stay as they are.
    pub(super) fn add_stored_samples(
        &mut self,
        model: &mut Model,
        pool: &ThreadPool<'_>,
    ) -> Result<()> {
        let Some(samples) = model.samples.clone().filter(|s| !s.is_empty()) else {
            return Ok(());
        };
        let (snapshot, biases) = (model.snapshot()?, self.state.biases.clone());
        let conditional_means = self.state.conditional_means.clone();
        let mut added = Ok(());
        for sample in samples.iter() {
            added = self.add_predictions_of(sample, samples.conditional_mode, model, pool);
            if added.is_err() {
                break;
            }
        }
        model.restore(&snapshot)?;
        (self.state.biases, self.state.conditional_means) = (biases, conditional_means);
        added
    }

    /// Adds the predictions of a sample to the mean predictions. Model and state become those of the sample, whose
    /// conditional means are of mode `n`.
    fn add_predictions_of(
        &mut self,
        sample: &PosteriorSample,
        n: usize,
        model: &mut Model,
        pool: &ThreadPool<'_>,
    ) -> Result<()> {
        for (n, mode) in model.modes.iter_mut().enumerate() {
            restore_quantized(
                &sample.modes[n],
                &mut mode.factor,
                &mut self.state.biases[n],
            )?;
        }
        let mut rows = model.modes[n].factor.try_clone()?;
        let means = &mut self.state.conditional_means;
        means.biases.resize(self.state.biases[n].len(), 0.0);
        restore_quantized(&sample.conditional_means, &mut rows, &mut means.biases)?;
        means.rows = try_to_vec(rows.as_slice(), "row elements")?;
        if !sample.core.is_empty() {
            model.core.copy_from_slice(&sample.core);
        }
        self.add_predictions(model, pool)
    }

    /// Rounds the rows of the last completed sweep to those of a sample if the fit ends before its first one.
    pub(super) fn round_last_sweep(&mut self, model: &mut Model) -> Result<()> {
        let Some(samples) = model.samples.as_ref().filter(|s| s.is_empty()) else {
            return Ok(());
        };
        self.state.conditional_means = ConditionalMeans::default();
        let mut row = Vec::new();
        for (mode, biases) in model.modes.iter_mut().zip(&samples.biases) {
            let (rank, stride) = (mode.factor.rank(), mode.factor.stride());
            let factor = mode.factor.as_mut_slice()?;
            for (i, factor_row) in factor.chunks_exact_mut(stride).enumerate() {
                row.clear();
                row.extend_from_slice(&factor_row[..rank]);
                row.extend(biases.get(i));
                QuantizedRows::round(&mut row);
                factor_row[..rank].copy_from_slice(&row[..rank]);
            }
        }
        Ok(())
    }

    /// Makes the last completed sweep a sample if the fit ends before its first one.
    pub(in crate::solver) fn add_last_sample(
        &mut self,
        model: &mut Model,
        pool: &ThreadPool<'_>,
    ) -> Result<()> {
        let Some(samples) = model.samples.as_ref().filter(|s| s.is_empty()) else {
            return Ok(());
        };
        let n = samples.conditional_mode;
        self.state.biases.clone_from(&samples.biases);
        self.state.conditional_means = ConditionalMeans {
            rows: model.modes[n].factor.as_slice().to_vec(),
            biases: self.state.biases[n].clone(),
        };
        // No sweep was kept, so none has sampled these. The biases of the chain stay in the sample.
        let result = (0..model.order()).try_for_each(|n| {
            self.problem
                .sample_cold_start_biases(model, &mut self.state, n, 0, pool)
        });
        // A cancelled fit needs a sample too, whose noise is then that of the chain.
        self.add_sample(model)?;
        let result = result.and_then(|()| self.set_noise_deviation(model, pool).map(drop));
        if let (Err(_), Some(samples)) = (&result, &mut model.samples)
            && let Some(last) = samples.samples.last_mut()
        {
            let deviation = self.problem.scaling.scale / self.state.noise_precision.sqrt();
            Arc::make_mut(last).noise_deviation = deviation;
        }
        result?;
        self.add_predictions(model, pool)
    }

    /// Computes the sum of squared errors of the current state of the chain, in scaled units, and sets the noise
    /// deviation of the last sample if it has none yet.
    pub(super) fn set_noise_deviation(
        &mut self,
        model: &mut Model,
        pool: &ThreadPool<'_>,
    ) -> Result<f64> {
        let squares = self.problem.squared_error(model, &self.state, pool)?;
        self.state.squared_error = Some(squares);
        let variance = self.state.noise.interval_ratio * squares / self.entry_count as f64;
        let deviation = self.problem.scaling.scale * variance.sqrt();
        let samples = model.samples.as_mut();
        if let Some(last) = samples.and_then(|s| s.samples.last_mut())
            && last.noise_deviation == 0.0
        {
            Arc::make_mut(last).noise_deviation = deviation;
        }
        Ok(squares)
    }
}

/// Quantizes rows and biases of a mode, and replaces them by the quantized ones.
fn quantize(rows: &mut FactorMatrix, biases: &mut [f32]) -> Result<QuantizedRows> {
    let size = rows.rank() + usize::from(!biases.is_empty());
    let mut quantized = QuantizedRows::with_capacity(size, rows.len())?;
    let mut row = Vec::with_capacity(size);
    for i in 0..rows.len() {
        row.clear();
        row.extend_from_slice(rows.row(i));
        row.extend(biases.get(i));
        quantized.push(&row);
    }
    restore_quantized(&quantized, rows, biases)?;
    Ok(quantized)
}

/// Writes quantized rows and biases of a mode to `rows` and `biases`.
pub(in crate::solver) fn restore_quantized(
    quantized: &QuantizedRows,
    rows: &mut FactorMatrix,
    biases: &mut [f32],
) -> Result<()> {
    let (rank, stride) = (rows.rank(), rows.stride());
    for (i, row) in rows.as_mut_slice()?.chunks_exact_mut(stride).enumerate() {
        quantized.read_row(i, &mut row[..rank]);
    }
    for (i, bias) in biases.iter_mut().enumerate() {
        *bias = quantized.last_value(i);
    }
    Ok(())
}
