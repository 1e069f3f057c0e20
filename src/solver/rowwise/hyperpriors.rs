//! Hyperparameters that `gibbs` samples before the rows: the priors of rows, and the precisions of the noise.

use std::ops::Range;

use super::data_term::map_residuals;
use super::default_priors::{INITIAL_BIAS_VARIANCE, INITIAL_VARIANCE};
use super::gaussian_prior::GaussianPrior;
use super::normal_wishart::{NormalWishart, sample_gamma};
use super::problem::{RowwiseMatrix, RowwiseProblem};
use super::row_tasks::RowTasks;
use super::state::SweepState;
use super::stream_ids;
use super::update::Update;
use crate::error::Result;
use crate::kernel::ModeCsr;
use crate::model::{FactorMatrix, Model};
use crate::parallel::ThreadPool;
use crate::random::RandomStream;
use crate::solver::gram::row_moments;

/// Fraction of a matrix's mean square that counts as noise in any case. Without it, a matrix of few distinct values could
/// be fitted without error, and its precision would outweigh everything else.
const MIN_NOISE_FRACTION: f64 = 0.05;

/// Prior precision of factor elements if the model has biases only. It is large enough to fix them at their prior mean.
const BIASES_ONLY_PRECISION: f64 = 1e8;

/// Prior sum of squares of the tensor's noise, that of one entry with an error of a thousandth.
const PRIOR_SQUARED_ERROR: f64 = 1e-6;

impl RowwiseProblem {
    /// Returns the prior of the rows of mode `n`: none for `als`, a sample given the rows for `gibbs`.
    pub(super) fn row_prior(
        &self,
        rows: &FactorMatrix,
        state: &SweepState,
        n: usize,
        sweep: u64,
        pool: &ThreadPool<'_>,
    ) -> Result<GaussianPrior> {
        let biases = &state.biases[n];
        let size = rows.rank() + usize::from(self.has_biases);
        Ok(match self.update {
            Update::Sample { .. } if state.noise.has_biases_only => {
                let mut prior = GaussianPrior::isotropic(size, BIASES_ONLY_PRECISION);
                let mean = self.hyperpriors[n].mean;
                prior.precision_times_mean[..rows.rank()]
                    .fill((mean * BIASES_ONLY_PRECISION) as f32);
                if self.has_biases {
                    prior.set_bias_precision(state.noise_precision * self.damping(n));
                }
                prior
            }
            Update::LeastSquares { .. } => GaussianPrior::isotropic(size, 0.0),
            Update::Sample { .. } if sweep == self.uninformed_sweep => {
                let mut prior = GaussianPrior::isotropic(size, 1.0 / INITIAL_VARIANCE);
                let mean = self.hyperpriors[n].mean;
                prior.precision_times_mean[..rows.rank()].fill((mean / INITIAL_VARIANCE) as f32);
                if self.has_biases {
                    prior.set_bias_precision(1.0 / INITIAL_BIAS_VARIANCE);
                }
                prior
            }
            Update::Sample { seed } => {
                // Without the mean row, which is the last.
                let moments = row_moments(rows, rows.len() - 1, biases, pool)?;
                let key = [seed, stream_ids::HYPERPARAMETERS, sweep, n as u64];
                let mut s = RandomStream::new(&key);
                self.hyperpriors[n].sample(&moments, self.has_biases, &mut s)
            }
        })
    }

    /// Returns the prior of the columns of a matrix: none for `als`, a sample given the columns for `gibbs`.
    pub(super) fn column_prior(
        &self,
        matrix: &RowwiseMatrix,
        columns: &FactorMatrix,
        sweep: u64,
        pool: &ThreadPool<'_>,
    ) -> Result<GaussianPrior> {
        let rank = columns.rank();
        Ok(match self.update {
            Update::LeastSquares { .. } => GaussianPrior::isotropic(rank, 0.0),
            Update::Sample { .. } if sweep == self.uninformed_sweep => {
                GaussianPrior::isotropic(rank, 1.0 / INITIAL_VARIANCE)
            }
            Update::Sample { seed } => {
                let moments = row_moments(columns, columns.len(), &[], pool)?;
                let target = stream_ids::FIRST_MATRIX + matrix.number as u64;
                let key = [seed, stream_ids::HYPERPARAMETERS, sweep, target];
                let hyperprior = NormalWishart {
                    mean: 0.0,
                    ..self.hyperpriors[matrix.mode]
                };
                hyperprior.sample(&moments, false, &mut RandomStream::new(&key))
            }
        })
    }

    /// Samples the precision of the tensor's noise from its gamma distribution given the residuals; 1 for `als`. That of
    /// latent values is fixed. The noise of an entry has this precision times the weight of the entry.
    pub(super) fn noise_precision(
        &self,
        model: &Model,
        state: &SweepState,
        sweep: u64,
        pool: &ThreadPool<'_>,
    ) -> Result<f64> {
        let Update::Sample { seed } = self.update else {
            return Ok(1.0);
        };
        if let Some(probit) = &self.probit {
            return Ok(1.0 / (state.noise.variance_ratio * probit.variance()));
        }
        let squares = match state.squared_error {
            Some(squares) => squares,
            None => self.squared_error(model, state, pool)?,
        };
        if let Some(variance) = state.pilot_variance {
            return Ok(1.0 / variance);
        }
        let entries = self.training_count as f64;
        let mut s = RandomStream::new(&[seed, stream_ids::NOISE_PRECISION, sweep]);
        let gamma = sample_gamma(&mut s, 0.5 * (1.0 + entries));
        Ok(gamma / (0.5 * (PRIOR_SQUARED_ERROR + state.noise.variance_ratio * squares)))
    }

    /// Samples the precision of a matrix's noise given its residuals; 1 for `als`.
    pub(super) fn matrix_precision(
        &self,
        model: &Model,
        matrix: &RowwiseMatrix,
        sweep: u64,
        pool: &ThreadPool<'_>,
    ) -> Result<f64> {
        let Update::Sample { seed } = self.update else {
            return Ok(1.0);
        };
        let rows = &model.modes[matrix.mode].factor;
        let columns = &model.matrices[matrix.number].factor;
        let (squares, entries) = match &matrix.full {
            Some(full) => (
                full.squared_error(rows, columns, pool)?,
                full.position_count(),
            ),
            None => {
                let term = self.matrix_term(&matrix.by_column, rows, 1.0, None);
                let sum = |range, residuals: &[f32]| sum_of_squares(term.csr, range, residuals);
                let columns = columns.as_slice();
                let parts = map_residuals(&matrix.column_tasks, &term, columns, &[], pool, sum)?;
                (parts.iter().sum(), matrix.by_column.len() as f64)
            }
        };
        let target = stream_ids::FIRST_MATRIX + matrix.number as u64;
        let mut s = RandomStream::new(&[seed, stream_ids::NOISE_PRECISION, sweep, target]);
        let squares = squares + MIN_NOISE_FRACTION * matrix.mean_square * entries;
        // A matrix without entries has no scale.
        let smallest = f64::MIN_POSITIVE.sqrt();
        Ok(sample_gamma(&mut s, 0.5 * (1.0 + entries)) / (0.5 * squares).max(smallest))
    }

    /// Computes the weighted sum of squared residuals of the tensor: differences of the values and their expectations.
    pub(super) fn squared_error(
        &self,
        model: &Model,
        state: &SweepState,
        pool: &ThreadPool<'_>,
    ) -> Result<f64> {
        let n = self.modes_by_size[0];
        let csr = &self.tensor[n];
        let parts =
            self.map_tensor_residuals(n, model, state, pool, |range, residuals| {
                match &self.probit {
                    None => sum_of_squares(csr, range, residuals),
                    Some(probit) => {
                        let square = |(entry, &e): (usize, &f32)| {
                            let latent = csr.value(entry);
                            let x = f64::from(latent) - f64::from(e);
                            let error =
                                f64::from(probit.label(latent)) - probit.expected_value(x, 0.0);
                            f64::from(csr.weight(entry)) * (error * error)
                        };
                        range.zip(residuals).map(square).sum()
                    }
                }
            })?;
        Ok(parts.iter().sum())
    }

    /// Computes the residuals of all tensor entries, grouped by the rows of mode `n`, and reduces them as
    /// [`map_residuals`] does.
    pub(super) fn map_tensor_residuals<T: Send>(
        &self,
        n: usize,
        model: &Model,
        state: &SweepState,
        pool: &ThreadPool<'_>,
        reduce: impl Fn(Range<usize>, &[f32]) -> T + Sync,
    ) -> Result<Vec<T>> {
        let core = self.permuted_core(model, n, pool)?;
        let term = self.tensor_term(model, &state.biases, n, core.as_deref(), 1.0);
        let rows = model.modes[n].factor.as_slice();
        let tasks = RowTasks::all(&[&self.tensor[n]])?;
        map_residuals(&tasks, &term, rows, &state.biases[n], pool, reduce)
    }
}

/// Returns the weighted sum of squares of the residuals of some entries.
fn sum_of_squares(csr: &ModeCsr, entries: Range<usize>, residuals: &[f32]) -> f64 {
    let mut sum = 0.0;
    for (k, entry) in entries.enumerate() {
        let e = f64::from(residuals[k]);
        sum += f64::from(csr.weight(entry)) * (e * e);
    }
    sum
}
