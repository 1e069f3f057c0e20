//! Noise that differs between rows and levels: the variance of an entry's noise is that of all entries, times a factor for each of
//! its rows and one for its prediction.
//!
//! The factors come from the squared residuals of the last state of the chain, whose expectation is the variance of the noise. The
//! mean of a row or level is shrunk towards that of all entries by the linear Bayes estimate of Buehlmann and Straub (1970): the less, the more
//! entries the row has and the more rows differ.

use super::problem::RowwiseProblem;
use super::solver::RowwiseSolver;
use super::state::SweepState;
use crate::error::Result;
use crate::kernel::ModeCsr;
use crate::model::{Model, NoiseFactors};
use crate::parallel::ThreadPool;
use crate::try_alloc::try_collect;

/// Passes over the modes.
const PASSES: usize = 2;

/// Levels of predictions: at most this many, and at least this many entries in each.
const MAX_LEVELS: usize = 24;
const MIN_LEVEL_ENTRIES: usize = 200;

/// About this many predictions determine the bounds of the levels.
const SAMPLED_LEVELS: usize = 1 << 16;

/// Least and largest factor.
const FACTORS: [f64; 2] = [0.04, 25.0];

impl RowwiseSolver {
    /// Estimates how the noise differs, from the current state of the chain.
    pub(super) fn estimate_noise_factors(
        &self,
        model: &mut Model,
        pool: &ThreadPool<'_>,
    ) -> Result<()> {
        // The variance of one of two values follows from its probability.
        if self.problem.probit.is_some() {
            return Ok(());
        }
        let factors = self.problem.noise_factors(model, &self.state, pool)?;
        if let Some(samples) = &mut model.samples {
            samples.noise_factors = factors;
        }
        Ok(())
    }
}

impl RowwiseProblem {
    /// Estimates the factors of levels and rows. Rows without entries have 1.
    fn noise_factors(
        &self,
        model: &Model,
        state: &SweepState,
        pool: &ThreadPool<'_>,
    ) -> Result<NoiseFactors> {
        let ones = |csr: &ModeCsr| {
            let rows = csr.row_count();
            try_collect(rows, std::iter::repeat_n(1.0f32, rows), "rows")
        };
        let mut factors = NoiseFactors {
            levels: Vec::new(),
            rows: self.tensor.iter().map(ones).collect::<Result<_>>()?,
        };
        for _ in 0..PASSES {
            self.update_levels(&mut factors, model, state, pool)?;
            for &n in &self.modes_by_size {
                self.update_rows(&mut factors, n, model, state, pool)?;
            }
        }
        Ok(factors)
    }

    /// Estimates the factors of the rows of mode `n`, given all others.
    fn update_rows(
        &self,
        factors: &mut NoiseFactors,
        n: usize,
        model: &Model,
        state: &SweepState,
        pool: &ThreadPool<'_>,
    ) -> Result<()> {
        let csr = &self.tensor[n];
        let parts = self.map_tensor_residuals(n, model, state, pool, |range, residuals| {
            let entry = |(entry, &e): (usize, &f32)| {
                let level = factors.of_level(csr.value(entry) - e);
                let others = of_other_rows(factors, csr, entry);
                f64::from(csr.weight(entry)) * f64::from(e).powi(2) / (level * others)
            };
            range.zip(residuals).map(entry).collect::<Vec<f64>>()
        })?;
        let mut squares = parts.into_iter().flatten();
        let rows = (0..csr.row_count()).map(|i| {
            let own = f64::from(factors.rows[n][i]);
            let mut row = SquareSums::default();
            let entries = csr.row_entries(i).zip(&mut squares);
            entries.for_each(|(_, square)| row.add(square, own));
            row
        });
        let rows: Vec<SquareSums> = rows.collect();
        let shrunk = shrunk_means(&rows);
        factors.rows[n]
            .iter_mut()
            .zip(shrunk)
            .for_each(|(f, x)| *f = x);
        Ok(())
    }

    /// Estimates the factors of the levels, given those of all rows.
    fn update_levels(
        &self,
        factors: &mut NoiseFactors,
        model: &Model,
        state: &SweepState,
        pool: &ThreadPool<'_>,
    ) -> Result<()> {
        let n = self.largest_mode();
        let csr = &self.tensor[n];
        let step = csr.len().div_ceil(SAMPLED_LEVELS);
        let parts = self.map_tensor_residuals(n, model, state, pool, |range, residuals| {
            let entries = range
                .zip(residuals)
                .filter(|(entry, _)| entry.is_multiple_of(step));
            let predictions = entries.map(|(entry, e)| csr.value(entry) - e);
            predictions.collect::<Vec<f32>>()
        })?;
        let mut sampled = parts.concat();
        sampled.sort_unstable_by(f32::total_cmp);
        let bins = (csr.len() / MIN_LEVEL_ENTRIES).min(MAX_LEVELS);
        if bins < 2 {
            return Ok(());
        }
        let ends: Vec<f32> = (1..bins)
            .map(|k| sampled[k * sampled.len() / bins])
            .collect();
        let parts = self.map_tensor_residuals(n, model, state, pool, |range, residuals| {
            let mut sums = vec![(0.0, SquareSums::default()); bins];
            for (entry, e) in range.zip(residuals) {
                let prediction = csr.value(entry) - e;
                let own = f64::from(factors.rows[n][csr.row_of(entry)]);
                let rows = own * of_other_rows(factors, csr, entry);
                let square = f64::from(csr.weight(entry)) * f64::from(*e).powi(2) / rows;
                let (level_sum, squares) =
                    &mut sums[ends.partition_point(|&end| end <= prediction)];
                *level_sum += f64::from(prediction);
                squares.add(square, factors.of_level(prediction));
            }
            sums
        })?;
        let mut sums = vec![(0.0, SquareSums::default()); bins];
        for part in parts {
            for ((level_sum, squares), (level, square)) in sums.iter_mut().zip(part) {
                *level_sum += level;
                squares.merge(square);
            }
        }
        // Equal predictions may leave bins without entries.
        sums.retain(|(_, squares)| squares.count > 0.0);
        let (levels, sums): (Vec<f64>, Vec<SquareSums>) = sums.into_iter().unzip();
        let means = levels
            .iter()
            .zip(&sums)
            .map(|(sum, s)| (sum / s.count) as f32);
        factors.levels = means.zip(shrunk_means(&sums)).collect();
        Ok(())
    }
}

/// Returns the product of the factors of the rows of an entry, without that of the mode that entries are grouped by.
fn of_other_rows(factors: &NoiseFactors, csr: &ModeCsr, entry: usize) -> f64 {
    let rows = csr.other_modes().iter().zip(csr.other_rows(entry));
    let factors = rows.map(|(&n, &row)| f64::from(factors.rows[n][row as usize]));
    factors.product()
}

/// Sums over the entries of a row or level.
#[derive(Clone, Copy, Default)]
struct SquareSums {
    count: f64,
    /// Of squared residuals, divided by all other factors.
    sum: f64,
    /// Of the same, divided by the own factor too, and of their squares.
    scaled_sum: f64,
    scaled_squares: f64,
}

impl SquareSums {
    /// Adds a squared residual that is divided by all factors but the own.
    fn add(&mut self, square: f64, own: f64) {
        self.count += 1.0;
        self.sum += square;
        self.scaled_sum += square / own;
        self.scaled_squares += (square / own).powi(2);
    }

    fn merge(&mut self, other: SquareSums) {
        self.count += other.count;
        self.sum += other.sum;
        self.scaled_sum += other.scaled_sum;
        self.scaled_squares += other.scaled_squares;
    }
}

/// Computes the factors of the rows of a mode, or of the levels.
fn shrunk_means(rows: &[SquareSums]) -> Vec<f32> {
    let total = |f: &dyn Fn(&SquareSums) -> f64| rows.iter().map(f).sum::<f64>();
    let count = total(&|r| r.count);
    let mean = total(&|r| r.sum) / count;
    // Of one squared residual, relative to its squared mean: 2 for normal noise.
    let scaled_mean = total(&|r| r.scaled_sum) / count;
    let relative = total(&|r| r.scaled_squares) / count / scaled_mean.powi(2) - 1.0;
    let within = relative * mean.powi(2);
    let seen = rows.iter().filter(|r| r.count > 0.0).count() as f64;
    let spread = total(&|r| match r.count > 0.0 {
        true => r.count * (r.sum / r.count - mean).powi(2),
        false => 0.0,
    });
    let effective = count - total(&|r| r.count.powi(2)) / count;
    let between = (spread - (seen - 1.0) * within) / effective;
    let is_usable = mean > 0.0 && within.is_finite() && between.is_finite() && between > 0.0;
    let factor = |r: &SquareSums| match is_usable && r.count > 0.0 {
        true => {
            let shrunk = (between * r.sum + within * mean) / (between * r.count + within);
            (shrunk / mean).clamp(FACTORS[0], FACTORS[1]) as f32
        }
        false => 1.0,
    };
    rows.iter().map(factor).collect()
}
