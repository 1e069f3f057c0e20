//! A model that has biases only: its errors, and sweeps that sample no factors.

use super::holdout::HoldoutEntries;
use super::prediction_window::{TwoValueErrors, TwoValueSums};
use super::probit::Probit;
use super::problem::RowwiseProblem;
use super::row_update::RowOutput;
use super::state::SweepState;
use crate::error::Result;
use crate::kernel::ModeCsr;
use crate::model::Model;
use crate::parallel::ThreadPool;
use crate::try_alloc::{try_to_vec, try_zeroed};

/// Sweeps over the biases of all modes.
const BIAS_SWEEPS: usize = 5;

/// Number of rows whose biases one task computes.
const ROWS_PER_TASK: usize = 32;

/// Mean squared errors of a model with biases only, in standardized units.
#[derive(Debug, Clone, Copy)]
pub(super) struct BiasErrors {
    pub training: f64,
    pub held_out: f64,
    /// Posterior variance of the biases of the largest mode, averaged over the training entries and divided by the noise
    /// variance: the sum of n / (n + damping) over all rows, divided by the number of entries, where n is the total weight
    /// of the entries of a row.
    pub sampled_fraction: f64,
    /// Errors on held-out entries, if the tensor has two values.
    pub two_values: Option<TwoValueErrors>,
}

impl RowwiseProblem {
    /// Computes the errors of biases alone, with those of `two_values` if the tensor has two. They are solved for mode by mode, as damped means of the training entries.
    pub(super) fn bias_errors(
        &self,
        holdout: &HoldoutEntries,
        two_values: Option<&Probit>,
        pool: &ThreadPool<'_>,
    ) -> Result<BiasErrors> {
        // The mean row, which is the last, has bias 0.
        let zeros = |csr: &ModeCsr| try_zeroed(csr.row_count() + 1, "biases");
        let mut biases: Vec<Vec<f32>> = self.tensor.iter().map(zeros).collect::<Result<_>>()?;
        let sweeps = if self.has_biases { BIAS_SWEEPS } else { 0 };
        for n in self.modes_by_size.repeat(sweeps) {
            let updated = self.bias_means(n, &biases, pool)?;
            biases[n][..updated.len()].copy_from_slice(&updated);
        }
        let largest = self.largest_mode();
        let csr = &self.tensor[largest];
        let leverage = |i: usize| {
            let weight = csr.row_weight(i);
            if weight > 0.0 {
                weight / (weight + self.bias_damping[largest])
            } else {
                0.0
            }
        };
        let rows = if self.has_biases { csr.row_count() } else { 0 };
        let mode = holdout.mode;
        let training = squared_error(&self.tensor[mode], mode, &biases);
        let held_out = squared_error(&holdout.csr, mode, &biases);
        Ok(BiasErrors {
            training: training / self.training_count as f64,
            held_out: held_out / holdout.csr.len() as f64,
            two_values: two_values.map(|p| two_value_errors(p, &holdout.csr, mode, &biases)),
            sampled_fraction: (0..rows).map(leverage).sum::<f64>() / self.training_count as f64,
        })
    }

    /// Updates the biases of mode `n`, and sets its factor rows and the columns of its matrices to their prior means.
    /// Biases of the largest mode are samples, as its conditional means are kept; those of other modes are means.
    pub(super) fn update_biases_only(
        &self,
        model: &mut Model,
        state: &mut SweepState,
        n: usize,
        sweep: u64,
        pool: &ThreadPool<'_>,
    ) -> Result<()> {
        let (rank, mean) = (model.shape.ranks()[n], self.hyperpriors[n].mean as f32);
        let factor = &mut model.modes[n].factor;
        let stride = factor.stride();
        let rows = factor.as_mut_slice()?.chunks_exact_mut(stride);
        rows.for_each(|row| row[..rank].fill(mean));
        for matrix in model.matrices.iter_mut().filter(|m| m.mode == n) {
            matrix.factor.as_mut_slice()?.fill(0.0);
        }
        let keeps_means = n == self.largest_mode();
        if keeps_means {
            let rows = model.modes[n].factor.as_slice();
            state.conditional_means.rows = try_to_vec(rows, "row elements")?;
        }
        if !self.has_biases {
            return Ok(());
        }
        let mut means = self.bias_means(n, &state.biases, pool)?;
        let count = means.len();
        state.biases[n][..count].copy_from_slice(&means);
        if let RowOutput::Sample(key) | RowOutput::SampleAndMean(key) =
            self.output(sweep, n as u64, keeps_means, state)
        {
            let biases = &mut state.biases[n];
            for (i, bias) in biases[..count].iter_mut().enumerate() {
                let weight = self.tensor[n].row_weight(i) + self.damping(n);
                let precision = state.noise_precision * weight;
                if precision > 0.0 {
                    let noise = key.stream(i as u64).standard_normal();
                    *bias += (noise / precision.sqrt()) as f32;
                }
            }
        }
        state.biases[n][count] = model.modes[n].mean_bias(&state.biases[n][..count]);
        if keeps_means {
            means.push(model.modes[n].mean_bias(&means));
            state.conditional_means.biases = means;
        }
        Ok(())
    }

    /// Returns the damping of the biases of mode `n`, which is relative to the noise: that of the values, or of latent values.
    pub(super) fn damping(&self, n: usize) -> f64 {
        let ratio = |p: &Probit| p.variance() / p.value_variance();
        self.bias_damping[n] * self.probit.as_ref().map_or(1.0, ratio)
    }

    /// Returns the damped mean of the values of each row of mode `n`, less the biases of the other modes.
    fn bias_means(&self, n: usize, biases: &[Vec<f32>], pool: &ThreadPool<'_>) -> Result<Vec<f32>> {
        let (csr, damping) = (&self.tensor[n], self.damping(n));
        let update = |(): &mut (), task: usize| {
            let first = task * ROWS_PER_TASK;
            let rows = first..(first + ROWS_PER_TASK).min(csr.row_count());
            let means = rows.map(|i| damped_mean(csr, i, biases, damping));
            Ok(means.collect::<Vec<f32>>())
        };
        let tasks = csr.row_count().div_ceil(ROWS_PER_TASK);
        Ok(pool.try_map(tasks, || Ok(()), update)?.concat())
    }
}

/// Returns the weighted sum of squared errors of entries that are grouped by the rows of `mode`.
fn squared_error(csr: &ModeCsr, mode: usize, biases: &[Vec<f32>]) -> f64 {
    let mut squares = 0.0;
    for i in 0..csr.row_count() {
        let bias = f64::from(biases[mode][i]);
        for e in csr.row_entries(i) {
            squares += f64::from(csr.weight(e)) * (residual(csr, e, biases) - bias).powi(2);
        }
    }
    squares
}

/// Returns the errors on two-valued entries that are grouped by the rows of `mode`.
fn two_value_errors(
    likelihood: &Probit,
    csr: &ModeCsr,
    mode: usize,
    biases: &[Vec<f32>],
) -> TwoValueErrors {
    let mut sums = TwoValueSums::new(likelihood);
    for i in 0..csr.row_count() {
        let bias = f64::from(biases[mode][i]);
        for e in csr.row_entries(i) {
            let value = f64::from(csr.value(e));
            let prediction = value - residual(csr, e, biases) + bias;
            sums.add(value, prediction, 0.0, f64::from(csr.weight(e)));
        }
    }
    sums.errors()
}

/// Returns the damped weighted mean of a row's values, less the biases of the other modes.
fn damped_mean(csr: &ModeCsr, row: usize, biases: &[Vec<f32>], damping: f64) -> f32 {
    let (mut sum, mut weight) = (0.0, damping);
    for e in csr.row_entries(row) {
        let w = f64::from(csr.weight(e));
        sum += w * residual(csr, e, biases);
        weight += w;
    }
    if weight > 0.0 {
        (sum / weight) as f32
    } else {
        0.0
    }
}

/// Returns the value of an entry, less the biases of the modes that it is not grouped by.
fn residual(csr: &ModeCsr, entry: usize, biases: &[Vec<f32>]) -> f64 {
    let rows = csr.other_modes().iter().zip(csr.other_rows(entry));
    let bias: f64 = rows.map(|(&m, &i)| f64::from(biases[m][i as usize])).sum();
    f64::from(csr.value(entry)) - bias
}
