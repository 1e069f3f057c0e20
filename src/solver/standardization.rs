//! Standardization of the data: the one affine map between values as they are given and values as algorithms see them.
//!
//! ```text
//! tensor:  standardized = (value - mean) / scale - sum of biases
//! matrix:  standardized = (value - offset of the column) / scale of the matrix
//! ```
//!
//! The mean is subtracted while entries are read. Biases change after each epoch, so they are subtracted from the copy of
//! the entries ([`Entries::subtract_biases`](super::entries::Entries::subtract_biases)). Scales are powers of two, so
//! scaling back and forth loses no bit.

use std::ops::Range;

use super::bias_entries::BiasEntries;
use super::biases::{BiasOptions, fit_and_measure};
use super::value_scale::{nearest_power_of_two, subtracts_mean, unit_of_matrix, unit_of_tensor};
use crate::error::Result;
use crate::format::RowMap;
use crate::model::{FactorMatrix, Model, ParameterSnapshot};
use crate::options::{Algorithm, Options};
use crate::parallel::ThreadPool;
use crate::problem::{AffineMap, CoupledMatrix, EntryChunk, EntrySource, MatrixKind, Problem};
use crate::try_alloc::{try_with_capacity, try_zeroed};
use crate::value_range::ValueRange;

/// Number of times the biases of all modes are solved for in turn.
const BIAS_SWEEPS: usize = 5;

/// Number of entries of the mean value that damp the offset of a matrix column.
const OFFSET_DAMPING: f64 = 1.0;

/// Ratio of mean to standard deviation above which `f32` loses ten bits of the differences between values.
const LARGE_MEAN_RATIO: f64 = 1024.0;

/// Units of the values that a model predicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueUnits {
    /// Those of the data.
    Data,
    /// Those that algorithms see: divided by the scale of the tensor or matrix.
    Standardized,
}

/// Standardization of a coupled matrix.
#[derive(Clone)]
pub struct MatrixStandardization {
    pub scale: f64,
    /// One per column, in units of the values; empty if none are subtracted.
    pub offsets: Vec<f32>,
    /// Variance of the standardized values.
    pub variance: f64,
}

/// Standardization of the tensor and the matrices of a problem.
///
/// Most algorithms see values without mean and biases, at a standard deviation between 0.7 and 1.4. With `nonneg`, and where
/// cells without an entry are 0, nothing is subtracted, and only values of an extreme magnitude are scaled (`value_scale`). `gibbs`
/// samples mean and biases and scales the tensor itself: here it only subtracts a mean so large that `f32` would lose the differences
/// between values.
#[derive(Clone)]
pub struct Standardization {
    /// What was subtracted from the values.
    pub mean: f64,
    /// Scale of the values.
    pub scale: f64,
    /// Standard deviation of the standardized values, or their root mean square if no mean is subtracted; 1 if
    /// that is 0.
    pub deviation: f64,
    /// Whether all values are equal (or all are 0, if no mean is subtracted).
    pub is_constant: bool,
    /// Fraction of the variance that remains after mean and biases.
    pub residual_fraction: f64,
    /// Leave-one-out estimate of the same fraction on entries that the biases were not fitted to. It may exceed 1.
    pub loo_residual_fraction: f64,
    /// For each mode one bias per row, and 0 for rows without entries at the end, divided by the scale; empty if the model
    /// has none.
    pub biases: Vec<Vec<f32>>,
    /// Damping of the biases of each mode; empty if there are none.
    pub bias_damping: Vec<f64>,
    /// Whether the biases were fitted to a sample of the entries.
    pub has_sampled_biases: bool,
    /// The coupled matrices.
    pub matrices: Vec<MatrixStandardization>,
}

impl Standardization {
    /// Measures the data and fits the biases, as `options` require.
    ///
    /// For `gibbs` matrices have no offsets: the sampled mean of the rows times a column serves as one. With offsets
    /// its error was slightly larger: 0.8962 instead of 0.8958 on ml100k, 0.8452 instead of 0.8446 on ml1m_half
    /// (means of three seeds, larger for each of them).
    pub fn new(
        problem: &Problem<'_>,
        options: &Options,
        pool: &ThreadPool<'_>,
    ) -> Result<Standardization> {
        let samples_baseline = options.algorithm == Algorithm::Gibbs;
        let subtracts_mean = subtracts_mean(options);
        let (mean, deviation) = if subtracts_mean {
            (problem.mean(), problem.standard_deviation())
        } else {
            (0.0, problem.root_mean_square())
        };
        let scale = if subtracts_mean {
            nearest_power_of_two(deviation)
        } else if samples_baseline {
            1.0
        } else {
            unit_of_tensor(problem)
        };
        let mut standardization = Standardization {
            mean,
            scale,
            deviation: if deviation > 0.0 {
                deviation / scale
            } else {
                1.0
            },
            is_constant: deviation == 0.0,
            residual_fraction: 1.0,
            loo_residual_fraction: 1.0,
            biases: Vec::new(),
            bias_damping: Vec::new(),
            has_sampled_biases: false,
            matrices: Vec::new(),
        };
        if options.biases && options.allows_baseline() && !samples_baseline {
            standardization.fit_biases(problem, options, pool)?;
        }
        for matrix in problem.matrices() {
            let matrix = if subtracts_mean && !matrix.kind.is_graph() {
                MatrixStandardization::new(problem, matrix, pool)?
            } else {
                MatrixStandardization::scaling(unit_of_matrix(matrix))
            };
            standardization.matrices.push(matrix);
        }
        if samples_baseline
            && problem.mean().abs() > LARGE_MEAN_RATIO * problem.standard_deviation()
        {
            standardization.mean = problem.mean();
        }
        Ok(standardization)
    }

    /// Estimates the damping of biases that are not fitted here, if it is not known. The option `lambda_bias` does not apply.
    pub(super) fn estimate_bias_damping(
        &mut self,
        problem: &Problem<'_>,
        options: &Options,
        pool: &ThreadPool<'_>,
    ) -> Result<()> {
        if self.bias_damping.is_empty() {
            let mut fitted = Standardization {
                mean: problem.mean(),
                matrices: Vec::new(),
                ..self.clone()
            };
            let mut options = options.clone();
            options.lambda_bias.clear();
            fitted.fit_biases(problem, &options, pool)?;
            self.bias_damping = fitted.bias_damping;
        }
        Ok(())
    }

    fn fit_biases(
        &mut self,
        problem: &Problem<'_>,
        options: &Options,
        pool: &ThreadPool<'_>,
    ) -> Result<()> {
        let bias_options = BiasOptions {
            damping: problem
                .per_mode("lambda_bias", &options.lambda_bias)?
                .unwrap_or_default(),
            sweeps: BIAS_SWEEPS,
            mean: Some(self.mean),
        };
        let entries = BiasEntries::sample(problem, options.seed, pool)?;
        self.has_sampled_biases = entries.is_partial();
        let (model, fit) = fit_and_measure(problem, &entries, &bias_options, pool)?;
        for n in 0..problem.order() {
            let biases = model.biases(n);
            let mut scaled = try_with_capacity(biases.len() + 1, "biases")?;
            scaled.extend(biases.iter().map(|b| (b / self.scale) as f32));
            scaled.push(0.0);
            self.biases.push(scaled);
        }
        self.bias_damping = fit.damping;
        let variance = (self.deviation * self.scale).powi(2) * fit.total_weight;
        if variance > 0.0 {
            self.residual_fraction = (fit.squared_error / variance).min(1.0);
            self.loo_residual_fraction = fit.loo_squared_error / variance;
        }
        Ok(())
    }

    /// Copies the tensor entries of `range` into `chunk`, standardized but for the biases. Of these entries only those
    /// that `is_chosen` accepts by their number are copied.
    pub(super) fn read_tensor(
        &self,
        tensor: &EntrySource<'_>,
        maps: &[&RowMap],
        is_chosen: Option<&dyn Fn(usize) -> bool>,
        range: Range<usize>,
        chunk: &mut EntryChunk,
    ) -> Result<()> {
        tensor.read_selected(maps, range, self.value_map(), is_chosen, chunk)
    }

    /// Returns the map from values of the tensor to standardized values, but for the biases.
    pub(super) fn value_map(&self) -> AffineMap {
        AffineMap {
            offset: self.mean,
            scale: self.scale,
        }
    }

    /// Standardizes entries of matrix `m`. Entries of a full matrix become differences to the unobserved value of their
    /// column, so their offset cancels.
    pub(super) fn standardize_matrix(&self, m: usize, kind: MatrixKind, chunk: &mut EntryChunk) {
        let matrix = &self.matrices[m];
        let scale = 1.0 / matrix.scale;
        let offsets = match kind {
            MatrixKind::Full => &[],
            _ => &matrix.offsets[..],
        };
        for (value, &column) in chunk.values.iter_mut().zip(&chunk.rows[1]) {
            let offset = offsets.get(column as usize).copied();
            *value = ((f64::from(*value) - f64::from(offset.unwrap_or(0.0))) * scale) as f32;
        }
    }

    /// Returns the standardized value of an unobserved 0 in each column of matrix `m`.
    pub(super) fn unobserved_values(&self, m: usize, columns: usize) -> Result<Vec<f32>> {
        let matrix = &self.matrices[m];
        let mut values: Vec<f32> = try_zeroed(columns, "columns")?;
        for (value, &offset) in values.iter_mut().zip(&matrix.offsets) {
            *value = (-f64::from(offset) / matrix.scale) as f32;
        }
        Ok(values)
    }

    /// Returns a range of values, standardized but for the biases.
    pub(super) fn standardized_range(&self, range: ValueRange) -> ValueRange {
        ValueRange {
            min: (range.min - self.mean) / self.scale,
            max: (range.max - self.mean) / self.scale,
        }
    }

    /// Takes over the biases of a model.
    pub(super) fn load_biases(&mut self, model: &Model) {
        for (scaled, mode) in self.biases.iter_mut().zip(&model.modes) {
            let values = mode
                .biases
                .iter()
                .map(|b| (f64::from(*b) / self.scale) as f32);
            scaled
                .iter_mut()
                .zip(values)
                .for_each(|(b, value)| *b = value);
        }
    }

    /// Writes mean, biases, offsets and precisions into a model, in units of the values.
    pub(super) fn store(&self, model: &mut Model) -> Result<()> {
        model.mean = self.mean;
        model.precision = Some(self.scale.powi(-2));
        for (mode, biases) in model.modes.iter_mut().zip(&self.biases) {
            mode.biases.clear();
            mode.biases.reserve(biases.len());
            let unscaled = biases.iter().map(|b| (f64::from(*b) * self.scale) as f32);
            mode.biases.extend(unscaled);
        }
        for (matrix, own) in model.matrices.iter_mut().zip(&self.matrices) {
            matrix.offsets = own.offsets.clone();
            matrix.precision = Some((own.variance * own.scale * own.scale).recip());
        }
        Ok(())
    }

    /// Scales the core and the matrix columns of a model so that it predicts values in `units`.
    pub(super) fn convert_model(&self, model: &mut Model, units: ValueUnits) -> Result<()> {
        let columns = model.matrices.iter_mut().map(|m| &mut m.factor);
        self.convert_factors(&mut model.core, columns, units)
    }

    /// Scales a copy of the parameters of a model likewise.
    pub(super) fn convert_parameters(
        &self,
        parameters: &mut ParameterSnapshot,
        units: ValueUnits,
    ) -> Result<()> {
        let columns = parameters.columns.iter_mut();
        self.convert_factors(&mut parameters.core, columns, units)
    }

    /// Scales a core and matrix columns likewise.
    pub(super) fn convert_factors<'a>(
        &self,
        core: &mut [f32],
        columns: impl Iterator<Item = &'a mut FactorMatrix>,
        units: ValueUnits,
    ) -> Result<()> {
        let multiply = |numbers: &mut [f32], scale: f64| {
            let factor = match units {
                ValueUnits::Data => scale,
                ValueUnits::Standardized => 1.0 / scale,
            };
            // The factor itself may be beyond the range of f32.
            let each = numbers.iter_mut();
            each.for_each(|x| *x = (f64::from(*x) * factor) as f32);
        };
        multiply(core, self.scale);
        for (rows, matrix) in columns.zip(&self.matrices) {
            if matrix.scale != 1.0 {
                multiply(rows.as_mut_slice()?, matrix.scale);
            }
        }
        Ok(())
    }
}

impl MatrixStandardization {
    /// Divides values by a scale and subtracts nothing.
    fn scaling(scale: f64) -> MatrixStandardization {
        MatrixStandardization {
            scale,
            offsets: Vec::new(),
            variance: 1.0,
        }
    }

    /// Computes the damped mean of each column and the scale of the residuals.
    fn new(
        problem: &Problem<'_>,
        matrix: &CoupledMatrix<'_>,
        pool: &ThreadPool<'_>,
    ) -> Result<MatrixStandardization> {
        const CHUNK: usize = 1 << 16;
        let columns: &RowMap = matrix.columns.rows();
        let maps = [problem.row_maps()[matrix.mode], columns];
        let mut sums: Vec<[f64; 2]> = try_zeroed(columns.len(), "columns")?;
        let mut chunk = EntryChunk::default();
        let n = matrix.entries.len();
        let (mut sum_of_values, mut sum_of_squares, mut total_weight) = (0.0, 0.0, 0.0);
        for start in (0..n).step_by(CHUNK) {
            pool.check_cancelled()?;
            matrix
                .entries
                .read_chunk(&maps, start..(start + CHUNK).min(n), &mut chunk)?;
            for (k, (&value, &column)) in chunk.values.iter().zip(&chunk.rows[1]).enumerate() {
                let (value, weight) = (f64::from(value), f64::from(chunk.weight(k)));
                let sum = &mut sums[column as usize];
                sum[0] += weight * value;
                sum[1] += weight;
                sum_of_values += weight * value;
                sum_of_squares += weight * (value * value);
                total_weight += weight;
            }
        }
        // Unobserved positions of a full matrix count as zeros.
        if matrix.kind == MatrixKind::Full {
            let rows = maps[0].len() as f64;
            sums.iter_mut().for_each(|sum| sum[1] = rows);
            total_weight = rows * sums.len() as f64;
        }
        // Avoids 0 / 0 for a matrix without entries.
        let total_weight = if total_weight > 0.0 {
            total_weight
        } else {
            1.0
        };
        let mean = sum_of_values / total_weight;
        let mut offsets: Vec<f32> = try_zeroed(columns.len(), "offsets")?;
        let mut explained = 0.0;
        for (offset, [sum, count]) in offsets.iter_mut().zip(&sums) {
            *offset = ((sum + OFFSET_DAMPING * mean) / (count + OFFSET_DAMPING)) as f32;
            let x = f64::from(*offset);
            explained += 2.0 * x * sum - count * x * x;
        }
        let residual = ((sum_of_squares - explained) / total_weight).max(0.0);
        // The residual of a constant matrix is rounding error.
        let variance = if residual > 1e-9 * (sum_of_squares / total_weight) {
            residual
        } else {
            0.0
        };
        // The rounding errors of a constant matrix are scaled by the magnitude of its values.
        let scale = match variance > 0.0 {
            true => nearest_power_of_two(variance.sqrt()),
            false => unit_of_matrix(matrix),
        };
        Ok(MatrixStandardization {
            scale,
            offsets,
            variance: if variance > 0.0 {
                variance / (scale * scale)
            } else {
                1.0
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{CooView, Values};

    #[test]
    fn standardized_values_map_back_to_values() {
        let rows: Vec<u32> = (0..60).map(|i| i % 6).collect();
        let columns: Vec<u32> = (0..60).map(|i| i / 6).collect();
        let values: Vec<f64> = (0..60)
            .map(|i| 1e6 + f64::from(i % 6) * 40.0 + f64::from(i % 7))
            .collect();
        let view = CooView::new("t", &[6, 10], &[&rows, &columns], Values::F64(&values)).unwrap();
        let problem = Problem::builder(view).build(&()).unwrap();
        let pool = ThreadPool::new(1, false, 0);
        let standardization = Standardization::new(&problem, &Options::default(), &pool).unwrap();
        assert_eq!(standardization.scale, 64.0);
        // Damped biases leave part of the row effects in the residual.
        assert!(
            standardization.residual_fraction < 0.2
                && (0.7..1.5).contains(&standardization.deviation)
        );
        let mut chunk = EntryChunk::default();
        let maps = problem.row_maps();
        standardization
            .read_tensor(problem.tensor(), &maps, None, 0..60, &mut chunk)
            .unwrap();
        for (k, &value) in values.iter().enumerate().take(60) {
            let bias: f64 = (0..2)
                .map(|n| f64::from(standardization.biases[n][chunk.rows[n][k] as usize]))
                .sum();
            let back = f64::from(chunk.values[k]) * standardization.scale + standardization.mean;
            assert!((back - value).abs() < 1e-3, "{back} {value}");
            assert!((f64::from(chunk.values[k]) - bias).abs() < 1.0);
        }
    }
}
