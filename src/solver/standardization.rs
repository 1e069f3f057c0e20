//! What is taken out of values before factors are fitted to them, and put back afterwards: the mean, the
//! biases, and a scale.
//!
//! Scales are powers of two, so that going in and out loses no bit.

use super::biases::{BiasOptions, fit_and_measure};
use crate::error::Result;
use crate::format::RowMap;

use crate::model::{FactorMatrix, Model};
use crate::options::Options;
use crate::parallel::ThreadPool;
use crate::problem::{CoupledMatrix, EntryChunk, MatrixKind, Problem};
use crate::progress::Monitor;
use crate::try_alloc::{try_with_capacity, try_zeroed};

/// How often biases are solved for, mode after mode.
const SWEEPS: usize = 5;

/// An offset of a column is the mean of its values and of so many of the whole matrix.
const DAMPING: f64 = 1.0;

/// A mean so many times as large as the deviation is far from 0.
const FAR: f64 = 1024.0;

/// What is taken out of a matrix.
#[derive(Clone)]
pub(super) struct MatrixCentre {
    pub scale: f64,
    /// One per column, in units of the values; empty if none.
    pub offsets: Vec<f32>,
    /// The variance that is left, inside.
    pub variance: f64,
}

/// What is taken out of the values of a problem.
#[derive(Clone)]
pub(super) struct Centre {
    pub mean: f64,
    pub scale: f64,
    /// The deviation of the values inside: about 1, or that of the values if nothing is taken out.
    pub deviation: f64,
    /// Whether all values are the same.
    pub constant: bool,
    /// The share of their variance that biases leave.
    pub left: f64,
    /// The same on entries that they were not fitted to; it may be more than all.
    pub left_of_others: f64,
    /// For each mode one per row, and 0 behind, inside; empty if there are none.
    pub biases: Vec<Vec<f32>>,
    /// What they are damped by, for each mode; empty if there are none.
    pub damping: Vec<f64>,
    pub matrices: Vec<MatrixCentre>,
}

impl Centre {
    /// What `options` say is taken out.
    pub(super) fn new(
        problem: &Problem<'_>,
        options: &Options,
        pool: &ThreadPool,
        monitor: &dyn Monitor,
    ) -> Result<Centre> {
        // What cannot be negative has nothing taken out of it.
        let out = options.mean && !options.nonneg;
        let mean = if out { problem.mean() } else { 0.0 };
        let deviation = match out {
            true => problem.standard_deviation(),
            false => problem.root_mean_square(),
        };
        let scale = if out { power(deviation) } else { 1.0 };
        let mut centre = Centre {
            mean,
            scale,
            deviation: if deviation > 0.0 {
                deviation / scale
            } else {
                1.0
            },
            constant: deviation == 0.0,
            left: 1.0,
            left_of_others: 1.0,
            biases: Vec::new(),
            damping: Vec::new(),
            matrices: Vec::new(),
        };
        if options.biases && !options.nonneg {
            centre.biases(problem, options, pool, monitor)?;
        }
        for matrix in problem.matrices() {
            centre.matrices.push(match out && !matrix.kind.is_graph() {
                true => of_matrix(problem, matrix)?,
                false => MatrixCentre {
                    scale: 1.0,
                    offsets: Vec::new(),
                    variance: 1.0,
                },
            });
        }
        Ok(centre)
    }

    /// What is taken out before `gibbs`, which takes out mean, biases and a scale itself: a mean that what values differ
    /// by would be lost beside in `f32`. Matrices need no offsets there: the mean of rows, which is drawn, times a
    /// column is one. With offsets it was a little worse: 0.8962 instead of 0.8958 on ml100k, 0.8452 instead of
    /// 0.8446 on ml1m_half (means of three seeds, each of which was worse).
    pub(super) fn before_draws(
        problem: &Problem<'_>,
        options: &Options,
        pool: &ThreadPool,
        monitor: &dyn Monitor,
    ) -> Result<Centre> {
        let mut options = options.clone();
        (options.mean, options.biases) = (false, false);
        let mut centre = Centre::new(problem, &options, pool, monitor)?;
        if problem.mean().abs() > FAR * problem.standard_deviation() {
            centre.mean = problem.mean();
        }
        Ok(centre)
    }

    fn biases(
        &mut self,
        problem: &Problem<'_>,
        options: &Options,
        pool: &ThreadPool,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let how = BiasOptions {
            damping: problem
                .per_mode("lambda_bias", &options.lambda_bias)?
                .unwrap_or_default(),
            sweeps: SWEEPS,
            mean: Some(self.mean),
        };
        let (model, squares) = fit_and_measure(problem, &how, pool, monitor)?;
        for n in 0..problem.order() {
            let biases = model.biases(n);
            let mut inside = try_with_capacity(biases.len() + 1, "biases")?;
            inside.extend(biases.iter().map(|b| (b / self.scale) as f32));
            inside.push(0.0);
            self.biases.push(inside);
        }
        self.damping = squares.damping;
        let variance = (self.deviation * self.scale).powi(2) * problem.total_weight();
        if variance > 0.0 {
            self.left = (squares.fitted / variance).min(1.0);
            self.left_of_others = squares.others / variance;
        }
        Ok(())
    }

    /// Brings values from which the mean is gone to the scale inside; biases are still in them.
    pub(super) fn inside(&self, chunk: &mut EntryChunk) {
        let scale = 1.0 / self.scale;
        let values = chunk.values.iter_mut();
        values.for_each(|value| *value = (f64::from(*value) * scale) as f32);
    }

    /// Biases as a model has them, inside.
    pub(super) fn take_biases(&mut self, model: &Model) {
        for (inside, mode) in self.biases.iter_mut().zip(&model.modes) {
            let values = mode
                .biases
                .iter()
                .map(|b| (f64::from(*b) / self.scale) as f32);
            inside
                .iter_mut()
                .zip(values)
                .for_each(|(b, value)| *b = value);
        }
    }

    /// The same for matrix `m`. Entries of a full one stay what they are above those that are not listed.
    pub(super) fn matrix_inside(&self, m: usize, kind: MatrixKind, chunk: &mut EntryChunk) {
        let centre = &self.matrices[m];
        let scale = 1.0 / centre.scale;
        let offsets = match kind {
            MatrixKind::Full => &[],
            _ => &centre.offsets[..],
        };
        for (value, &column) in chunk.values.iter_mut().zip(&chunk.rows[1]) {
            let offset = offsets.get(column as usize).copied();
            *value = ((f64::from(*value) - f64::from(offset.unwrap_or(0.0))) * scale) as f32;
        }
    }

    /// What a 0 is inside, for each column of matrix `m`.
    pub(super) fn matrix_base(&self, m: usize, columns: usize) -> Result<Vec<f32>> {
        let centre = &self.matrices[m];
        let mut base: Vec<f32> = try_zeroed(columns, "columns")?;
        for (b, &offset) in base.iter_mut().zip(&centre.offsets) {
            *b = (-f64::from(offset) / centre.scale) as f32;
        }
        Ok(base)
    }

    /// A range of values, inside but for biases.
    pub(super) fn clip(&self, (low, high): (f64, f64)) -> (f64, f64) {
        (
            (low - self.mean) / self.scale,
            (high - self.mean) / self.scale,
        )
    }

    /// What of the centre a model has.
    pub(super) fn describe(&self, model: &mut Model) -> Result<()> {
        model.mean = self.mean;
        model.precision = Some(self.scale.powi(-2));
        for (mode, biases) in model.modes.iter_mut().zip(&self.biases) {
            mode.biases.clear();
            mode.biases.reserve(biases.len());
            let outside = biases.iter().map(|b| (f64::from(*b) * self.scale) as f32);
            mode.biases.extend(outside);
        }
        for (matrix, centre) in model.matrices.iter_mut().zip(&self.matrices) {
            matrix.offsets = centre.offsets.clone();
            matrix.precision = Some((centre.variance * centre.scale * centre.scale).recip());
        }
        Ok(())
    }

    /// Brings core and columns to the scale of the values (`out`), or back.
    pub(super) fn rescale(
        &self,
        core: &mut [f32],
        columns: &mut [&mut FactorMatrix],
        out: bool,
    ) -> Result<()> {
        let by = |scale: f64| {
            if out {
                scale as f32
            } else {
                (1.0 / scale) as f32
            }
        };
        core.iter_mut().for_each(|g| *g *= by(self.scale));
        for (rows, centre) in columns.iter_mut().zip(&self.matrices) {
            if centre.scale != 1.0 {
                let by = by(centre.scale);
                rows.as_mut_slice()?.iter_mut().for_each(|v| *v *= by);
            }
        }
        Ok(())
    }
}

/// The power of two nearest to a deviation, by ratio; 1 for 0.
fn power(deviation: f64) -> f64 {
    if deviation > 0.0 && deviation.is_finite() {
        // Within what f32 can be divided by.
        2f64.powi(deviation.log2().round().clamp(-100.0, 100.0) as i32)
    } else {
        1.0
    }
}

/// The offsets of the columns of a matrix and the scale of what they leave.
fn of_matrix(problem: &Problem<'_>, matrix: &CoupledMatrix<'_>) -> Result<MatrixCentre> {
    const CHUNK: usize = 1 << 16;
    let columns: &RowMap = matrix.columns.rows();
    let maps = [problem.row_maps()[matrix.mode], columns];
    let mut sums: Vec<(f64, f64)> = vec![(0.0, 0.0); columns.len()];
    let mut chunk = EntryChunk::default();
    let n = matrix.entries.len();
    let (mut total, mut squares, mut all) = (0.0, 0.0, 0.0);
    for start in (0..n).step_by(CHUNK) {
        matrix
            .entries
            .read_chunk(&maps, start..(start + CHUNK).min(n), &mut chunk)?;
        for (k, (&value, &column)) in chunk.values.iter().zip(&chunk.rows[1]).enumerate() {
            let (value, weight) = (f64::from(value), f64::from(chunk.weight(k)));
            let sum = &mut sums[column as usize];
            (sum.0, sum.1) = (sum.0 + weight * value, sum.1 + weight);
            total += weight * value;
            squares += weight * (value * value);
            all += weight;
        }
    }
    // The zeros of a full matrix count like entries.
    if matrix.kind == MatrixKind::Full {
        let rows = maps[0].len() as f64;
        sums.iter_mut().for_each(|sum| sum.1 = rows);
        all = rows * sums.len() as f64;
    }
    // Without entries nothing is added up.
    let all = if all > 0.0 { all } else { 1.0 };
    let mean = total / all;
    let mut offsets: Vec<f32> = try_zeroed(columns.len(), "offsets")?;
    let mut explained = 0.0;
    for (offset, (sum, count)) in offsets.iter_mut().zip(&sums) {
        *offset = ((sum + DAMPING * mean) / (count + DAMPING)) as f32;
        let x = f64::from(*offset);
        explained += 2.0 * x * sum - count * x * x;
    }
    let left = ((squares - explained) / all).max(0.0);
    // What rounding leaves of a matrix of ones is nothing.
    let variance = if left > 1e-9 * (squares / all) {
        left
    } else {
        0.0
    };
    let scale = power(variance.sqrt());
    Ok(MatrixCentre {
        scale,
        offsets,
        variance: if variance > 0.0 {
            variance / (scale * scale)
        } else {
            1.0
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{CooView, Values};

    #[test]
    fn scales_are_powers_of_two() {
        assert_eq!(
            [power(1.1), power(0.0), power(3.0), power(1e-9)],
            [1.0, 1.0, 4.0, 2f64.powi(-30)]
        );
    }

    #[test]
    fn what_is_taken_out_comes_back() {
        let rows: Vec<u32> = (0..60).map(|i| i % 6).collect();
        let columns: Vec<u32> = (0..60).map(|i| i / 6).collect();
        let values: Vec<f64> = (0..60)
            .map(|i| 1e6 + f64::from(i % 6) * 40.0 + f64::from(i % 7))
            .collect();
        let view = CooView::new("t", &[6, 10], &[&rows, &columns], Values::F64(&values)).unwrap();
        let problem = Problem::builder(view).build(&()).unwrap();
        let pool = ThreadPool::new(1, false, 0);
        let centre = Centre::new(&problem, &Options::default(), &pool, &()).unwrap();
        assert_eq!(centre.scale, 64.0);
        // Damping leaves a third of each bias.
        assert!(centre.left < 0.2 && (0.7..1.5).contains(&centre.deviation));
        let mut chunk = EntryChunk::default();
        let maps = problem.row_maps();
        problem
            .tensor()
            .read_selected(&maps, 0..60, centre.mean, None, &mut chunk)
            .unwrap();
        let outside = chunk.values.clone();
        centre.inside(&mut chunk);
        for k in 0..60 {
            let bias: f64 = (0..2)
                .map(|n| f64::from(centre.biases[n][chunk.rows[n][k] as usize]))
                .sum();
            let back = f64::from(chunk.values[k]) * centre.scale + centre.mean;
            assert!((back - values[k]).abs() < 1e-3, "{back} {}", values[k]);
            assert!(outside[k].abs() < 200.0 && (f64::from(chunk.values[k]) - bias).abs() < 1.0);
        }
    }
}
