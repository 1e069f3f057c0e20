//! The bias model: mean plus one bias per row and mode, by damped least squares, one mode after the other.

use super::bias_entries::{BiasEntries, Passes, standardizing_map};
use crate::error::Result;
use crate::model::BiasModel;
use crate::options::DEFAULT_LAMBDA_BIAS;
use crate::parallel::ThreadPool;
use crate::problem::{AffineMap, EntryChunk, Problem};
use crate::progress::Monitor;

/// Options of [`fit_biases`].
#[derive(Debug, Clone)]
pub struct BiasOptions {
    /// Number of pseudo-entries of residual 0 that each row is given: one value per mode, or one for all. If it is empty,
    /// the ratio of noise variance to row variance is estimated for each mode.
    pub damping: Vec<f64>,
    /// Number of times all modes are solved in turn.
    pub sweeps: usize,
    /// The mean; `None` takes that of the values.
    pub mean: Option<f64>,
}

impl Default for BiasOptions {
    /// Estimated damping, and the mean of the values.
    fn default() -> Self {
        BiasOptions {
            damping: Vec::new(),
            sweeps: 10,
            mean: None,
        }
    }
}

/// Largest leverage of an entry in the leave-one-out error. It bounds the correction for entries that determine a bias
/// nearly alone to a factor of 25.
const MAX_LEVERAGE: f64 = 0.8;

/// Fits mean and biases to the tensor of `problem`; also returns the sum of squared errors. Streams over
/// the entries with one thread; an entry of weight w counts as w entries.
pub fn fit_biases(
    problem: &Problem<'_>,
    options: &BiasOptions,
    monitor: &dyn Monitor,
) -> Result<(BiasModel, f64)> {
    let pool = ThreadPool::new(1, false, 0).with_monitor(monitor);
    let entries = BiasEntries::Streamed(problem);
    let (model, fit) = fit_and_measure(problem, &entries, options, &pool)?;
    Ok((model, fit.squared_error))
}

/// Damping and weighted squared errors of fitted biases.
pub(super) struct BiasFit {
    /// Damping of each mode, given or estimated.
    pub damping: Vec<f64>,
    /// Sum of squared errors on the entries that the biases were fitted to.
    pub squared_error: f64,
    /// Leave-one-out sum of squared errors. The leverage of an entry is approximated by the sum over the modes of its
    /// fraction of the row's weight.
    pub loo_squared_error: f64,
    /// Total weight of these entries.
    pub total_weight: f64,
}

/// Fits mean and biases as [`fit_biases`] does, to `entries` of `problem`, on all threads of `pool`.
pub(super) fn fit_and_measure(
    problem: &Problem<'_>,
    entries: &BiasEntries<'_>,
    options: &BiasOptions,
    pool: &ThreadPool<'_>,
) -> Result<(BiasModel, BiasFit)> {
    let maps = problem.row_maps();
    let order = problem.order();
    let mut biases: Vec<Vec<f64>> = maps.iter().map(|m| vec![0.0; m.len()]).collect();
    let mut row_weights = biases.clone();
    let given = problem.per_mode("damping", &options.damping)?;
    let mut damping = given.clone().unwrap_or_else(|| vec![0.0; order]);
    // Sweeps that estimate the damping come first. The biases then start again from 0, so that they are the same as with
    // that damping given.
    let estimating = if given.is_none() { options.sweeps } else { 0 };
    let sweeps = estimating + options.sweeps;
    let mut passes = Passes {
        entries,
        pool,
        done: 0,
        count: 1 + sweeps * order,
    };
    let AffineMap { offset, scale } = standardizing_map(problem);
    let mean = options.mean.map_or(0.0, |m| (m - offset) / scale);
    for sweep in 0..sweeps {
        if sweep == estimating {
            biases.iter_mut().for_each(|b| b.fill(0.0));
        }
        for mode in 0..order {
            let rows = biases[mode].len();
            let mut sums = passes.sums(rows + 1, |c, residuals, to| {
                residuals_without(mode, c, &biases, mean, residuals);
                let (to, total) = to.split_at_mut(rows);
                // The last pair holds the squares and the count of all rows.
                let [mut squares, mut count] = total[0];
                let mut add = |row: u32, residual: f64, weight: f64| {
                    let row = &mut to[row as usize];
                    row[0] += weight * residual;
                    row[1] += weight;
                    squares += weight * (residual * residual);
                };
                let entries = c.rows[mode].iter().zip(residuals.iter());
                if c.weights.is_empty() {
                    entries.for_each(|(&row, &residual)| add(row, residual, 1.0));
                } else {
                    let entries = entries.zip(&c.weights);
                    entries.for_each(|((&row, &residual), &w)| add(row, residual, f64::from(w)));
                }
                count += residuals.len() as f64;
                total[0] = [squares, count];
            })?;
            let [squares, count] = sums.pop().unwrap_or_default();
            if sweep < estimating {
                damping[mode] = noise_to_row_variance(&sums, squares, count);
            }
            let rows = biases[mode].iter_mut().zip(&mut row_weights[mode]);
            for ((bias, row_weight), [residual, weight]) in rows.zip(sums) {
                let weight = weight + damping[mode];
                *bias = if weight > 0.0 { residual / weight } else { 0.0 };
                *row_weight = weight;
            }
        }
    }
    let [[squared_error, loo_squared_error], [total_weight, _]] = passes.sums(2, |c, _, to| {
        for k in 0..c.values.len() {
            let (mut bias, mut leverage) = (0.0, 0.0);
            let weight = f64::from(c.weight(k));
            for m in 0..order {
                let row = c.rows[m][k] as usize;
                bias += biases[m][row];
                if row_weights[m][row] > 0.0 {
                    leverage += weight / row_weights[m][row];
                }
            }
            let square = weight * (f64::from(c.values[k]) - mean - bias).powi(2);
            to[0][0] += square;
            to[0][1] += square / (1.0 - leverage.min(MAX_LEVERAGE)).powi(2);
            to[1][0] += weight;
        }
    })?[..] else {
        unreachable!("two pairs of sums were asked for")
    };
    let rows = problem.modes().iter().map(|m| m.rows().clone());
    biases.iter_mut().flatten().for_each(|bias| *bias *= scale);
    let model = BiasModel::new(mean * scale + offset, rows.zip(biases).collect());
    let fit = BiasFit {
        damping,
        squared_error: squared_error * (scale * scale),
        loo_squared_error: loo_squared_error * (scale * scale),
        total_weight,
    };
    Ok((model, fit))
}

/// Computes the residuals of a chunk without the biases of `mode`.
fn residuals_without(
    mode: usize,
    chunk: &EntryChunk,
    biases: &[Vec<f64>],
    mean: f64,
    residuals: &mut Vec<f64>,
) {
    residuals.clear();
    let others = chunk.rows.iter().zip(biases).enumerate();
    let mut others = others.filter(|(m, _)| *m != mode);
    let first = others.next();
    let first = first.map(|(_, (rows, biases))| rows.iter().map(|&row| biases[row as usize]));
    residuals.extend(first.into_iter().flatten());
    residuals.resize(chunk.values.len(), 0.0);
    for (_, (rows, biases)) in others {
        for (sum, &row) in residuals.iter_mut().zip(rows) {
            *sum += biases[row as usize];
        }
    }
    for (residual, &value) in residuals.iter_mut().zip(&chunk.values) {
        *residual = f64::from(value) - mean - *residual;
    }
}

/// Weight of the prior on the row variance of a mode, as a number of rows.
const PRIOR_ROWS: f64 = 3.0;

/// Fewest residual degrees of freedom from which the noise variance is estimated.
const MIN_DEGREES_OF_FREEDOM: f64 = 10.0;

/// Smallest damping, so that a bias never fits a row of one entry exactly.
const MIN_DAMPING: f64 = 0.01;

/// Estimates the ratio of the noise variance to the variance of the row means, by a one-way analysis of variance: the
/// number of entries at which a row's own mean is as informative as the mean of all rows. `rows` holds the weighted sum of
/// residuals and the weight of each row, `squares` the weighted sum of squared residuals of all `count` entries.
fn noise_to_row_variance(rows: &[[f64; 2]], squares: f64, count: f64) -> f64 {
    let seen = rows.iter().filter(|[_, weight]| *weight > 0.0);
    let (mut groups, mut sum, mut weight, mut weight2, mut explained) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for [residual, w] in seen {
        groups += 1.0;
        sum += residual;
        weight += w;
        weight2 += w * w;
        explained += residual * residual / w;
    }
    let degrees_of_freedom = count - groups;
    if degrees_of_freedom < MIN_DEGREES_OF_FREEDOM {
        // Nearly every row has one entry only, so noise and row effects cannot be separated.
        return DEFAULT_LAMBDA_BIAS;
    }
    let noise = (squares - explained) / degrees_of_freedom;
    if noise.is_nan() || noise <= 0.0 {
        return MIN_DAMPING;
    }
    let between = (explained - sum * sum / weight - (groups - 1.0) * noise).max(0.0);
    let prior = PRIOR_ROWS * weight / groups;
    let row_variance =
        (between + prior * noise / DEFAULT_LAMBDA_BIAS) / (weight - weight2 / weight + prior);
    (noise / row_variance).max(MIN_DAMPING)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{CooView, Values};
    use crate::model::Predict;

    #[test]
    fn additive_data_is_fitted_exactly() {
        let mut columns = vec![Vec::new(); 3];
        let mut values = Vec::new();
        for i in 0..20u32 {
            for j in 0..15u32 {
                for k in 0..5u32 {
                    columns
                        .iter_mut()
                        .zip([i * 1000, j, k])
                        .for_each(|(c, x)| c.push(x));
                    values.push(2.0 + f64::from(i) * 0.1 - f64::from(j) * 0.3 + f64::from(k * k));
                }
            }
        }
        let slices: Vec<&[u32]> = columns.iter().map(Vec::as_slice).collect();
        let view = CooView::new("t", &[20_000, 15, 5], &slices, Values::F64(&values)).unwrap();
        let problem = Problem::builder(view).build(&()).unwrap();
        let options = BiasOptions {
            damping: vec![0.0],
            sweeps: 20,
            mean: None,
        };
        let (model, squared_error) = fit_biases(&problem, &options, &()).unwrap();
        assert!(squared_error < 1e-6);
        let mut predict = model.predictor().unwrap();
        for (e, &value) in values.iter().enumerate() {
            let index: Vec<u32> = columns.iter().map(|c| c[e]).collect();
            assert!((predict(&index) - value).abs() < 1e-5);
        }
        // The bias of a row without entries is 0.
        assert!(predict(&[7, 0, 0]).is_finite());
        assert_eq!(predict(&[7, u32::MAX, u32::MAX]), model.mean());
    }
}
