//! The state of a sweep besides the model: biases, hyperparameters and conditional means.

use super::bias_regression::BiasRegression;
use super::gaussian_prior::GaussianPrior;
use super::noise_model::NoiseModel;
use crate::error::Result;
use crate::try_alloc::try_zeroed;

/// One sweep of the chain.
#[derive(Clone, Copy)]
pub(super) struct Sweep {
    /// Its number, counted from 1.
    pub number: u64,
    /// Whether its result becomes a posterior sample.
    pub is_kept: bool,
    /// Whether it is one of the burn-in sweeps.
    pub is_burn_in: bool,
}

/// Parameters that are updated by sweeps but are not part of the model, all for scaled values.
pub(super) struct SweepState {
    /// Biases of the rows of each mode, that of the mean row last; empty without biases.
    pub biases: Vec<Vec<f32>>,
    /// Conditional means of the rows of the largest mode, which is updated last; empty for `als`.
    pub conditional_means: ConditionalMeans,
    /// Weighted sum of squared residuals of the tensor, if it is up to date.
    pub squared_error: Option<f64>,
    /// How the precision of the tensor's noise is determined; `gibbs` only.
    pub noise: NoiseModel,
    /// Variance of the tensor's noise while the pilot chain searches for it.
    pub pilot_variance: Option<f64>,
    /// Precision of the tensor's noise.
    pub noise_precision: f64,
    /// Factor of the squared errors of each matrix: its weight times the precision of its noise.
    pub matrix_weights: Vec<f64>,
    /// For each mode with matrices, the biases of its rows without tensor entries, from the last sweep that was kept.
    pub cold_start_biases: Vec<Option<ColdStartBiases>>,
    /// For each mode the prior that its rows were last sampled with.
    pub row_priors: Vec<Option<GaussianPrior>>,
}

/// Means of the conditional distributions that rows were sampled from. Predictions from means instead of samples are
/// Rao-Blackwellised: they have the same expectation and less variance.
#[derive(Debug, Clone, Default)]
pub(super) struct ConditionalMeans {
    /// Padded.
    pub rows: Vec<f32>,
    pub biases: Vec<f32>,
}

/// Biases of the rows of a mode without tensor entries, predicted from the rows that their matrices give.
pub(super) struct ColdStartBiases {
    pub regression: BiasRegression,
    pub rows: Vec<ColdStartBias>,
}

/// The bias of a row without tensor entries.
pub(super) struct ColdStartBias {
    pub row: u32,
    pub sample: f32,
    pub mean: f32,
}

impl SweepState {
    /// The state before the first sweep. `bias_counts` are the numbers of biases of each mode, 0 without biases.
    pub(super) fn new(bias_counts: &[usize]) -> Result<SweepState> {
        let biases = bias_counts.iter().map(|&n| try_zeroed(n, "biases"));
        Ok(SweepState {
            biases: biases.collect::<Result<_>>()?,
            conditional_means: ConditionalMeans::default(),
            squared_error: None,
            noise: NoiseModel::default(),
            pilot_variance: None,
            noise_precision: 1.0,
            matrix_weights: Vec::new(),
            cold_start_biases: bias_counts.iter().map(|_| None).collect(),
            row_priors: bias_counts.iter().map(|_| None).collect(),
        })
    }

    /// Exchanges the biases of rows without tensor entries with those of the chain; a second call restores them.
    /// `largest_mode` is the mode with conditional means.
    pub(super) fn swap_cold_start_biases(&mut self, largest_mode: usize) {
        let modes = self.cold_start_biases.iter_mut().zip(&mut self.biases);
        for (n, (cold_start, biases)) in modes.enumerate() {
            for bias in cold_start.iter_mut().flat_map(|c| &mut c.rows) {
                let row = bias.row as usize;
                std::mem::swap(&mut bias.sample, &mut biases[row]);
                if n == largest_mode {
                    std::mem::swap(&mut bias.mean, &mut self.conditional_means.biases[row]);
                }
            }
        }
    }
}
