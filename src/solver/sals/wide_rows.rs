//! The update of the rows of a mode, restricted to a block of columns of whole vectors: the normal equations of each row.

use std::ops::Range;

use super::mode_entries::SalsMode;
use super::packed_factors::ColumnBlock;
use crate::error::Result;
use crate::kernel::{NormalEquations, OtherMode, Partials, PartialsScratch};
use crate::linalg::{cholesky_into, regularized_cholesky, solve_lower, solve_lower_transposed};
use crate::progress::StopFlag;
use crate::simd::{Level, padded_len};
use crate::solver::row_computation::RowComputation;

/// Number of entries that are summed in `f32` before they are added to sums in `f64`.
const CHUNK: usize = 256;

/// The normal equations of the rows of a mode for one block of columns.
pub(super) struct WideRows<'a> {
    mode: &'a SalsMode,
    /// The row that the penalty shrinks to.
    target: &'a [f32],
    /// Has one column of zeros more than the target if only that makes rows as long as those of other blocks.
    partials: Partials<'a>,
}

impl<'a> WideRows<'a> {
    pub(super) fn new(mode: &'a SalsMode, block: &'a ColumnBlock, level: Level) -> WideRows<'a> {
        let columns = block.columns.len();
        let rank = columns + usize::from(padded_len(columns) < block.width);
        let other = |rows| OtherMode {
            rows,
            rank,
            biases: &[],
        };
        let others = block.of_others(&mode.csr).others;
        WideRows {
            mode,
            target: &mode.target[block.columns.clone()],
            partials: Partials {
                others: others.into_iter().map(other).collect(),
                core: None,
                rank,
                level,
            },
        }
    }
}

/// Buffers of one thread.
pub(super) struct RowScratch {
    partials: PartialsScratch,
    chunk: NormalEquations,
    sums: RowSums,
    /// The Cholesky factor.
    lower: Vec<f64>,
}

/// The sums of w d d^T and w d r over entries of a row.
#[derive(Clone)]
pub(super) struct RowSums {
    size: usize,
    /// The lower triangle.
    gram: Vec<f64>,
    rhs: Vec<f64>,
}

impl RowScratch {
    fn new(size: usize) -> Result<RowScratch> {
        Ok(RowScratch {
            partials: PartialsScratch::default(),
            chunk: NormalEquations::new(size)?,
            sums: RowSums {
                size,
                gram: vec![0.0; size * size],
                rhs: vec![0.0; size],
            },
            lower: vec![0.0; size * size],
        })
    }
}

impl RowSums {
    fn clear(&mut self) {
        self.gram.fill(0.0);
        self.rhs.fill(0.0);
    }

    fn add_chunk(&mut self, chunk: &NormalEquations) {
        for j in 0..self.size {
            for (k, &x) in chunk.gram_row(j).iter().enumerate() {
                self.gram[(j + k) * self.size + j] += f64::from(x);
            }
        }
        let rhs = self.rhs.iter_mut().zip(chunk.rhs());
        rhs.for_each(|(sum, &x)| *sum += f64::from(x));
    }

    fn add(&mut self, other: &RowSums) {
        let pairs = [(&mut self.gram, &other.gram), (&mut self.rhs, &other.rhs)];
        for (to, from) in pairs {
            to.iter_mut().zip(from).for_each(|(t, f)| *t += f);
        }
    }
}

impl RowComputation for WideRows<'_> {
    type Element = f32;
    type Scratch = RowScratch;
    type Part = RowSums;
    type Total = ();

    fn scratch(&self) -> Result<RowScratch> {
        RowScratch::new(self.partials.rank)
    }

    fn compute_row(
        &self,
        row: usize,
        entries: Range<usize>,
        scratch: &mut RowScratch,
        stop: &StopFlag,
        to: &mut [f32],
        (): &mut (),
    ) -> Result<()> {
        let penalty = f64::from(self.mode.penalties[row]);
        if entries.len() == 1 && penalty > 0.0 {
            self.solve_one_entry(entries.start, penalty, scratch, to);
        } else {
            self.sum_entries(entries, scratch, stop)?;
            self.solve(row, scratch, to);
        }
        Ok(())
    }

    fn sum_part(
        &self,
        _: usize,
        entries: Range<usize>,
        scratch: &mut RowScratch,
        stop: &StopFlag,
    ) -> Result<RowSums> {
        self.sum_entries(entries, scratch, stop)?;
        Ok(scratch.sums.clone())
    }

    fn merge_parts(
        &self,
        row: usize,
        parts: Vec<RowSums>,
        scratch: &mut RowScratch,
        to: &mut [f32],
        (): &mut (),
    ) {
        scratch.sums.clear();
        parts.iter().for_each(|part| scratch.sums.add(part));
        self.solve(row, scratch, to);
    }
}

impl WideRows<'_> {
    /// Computes the sums over `entries`, all of one row. They are incomplete if a stop is requested.
    fn sum_entries(
        &self,
        entries: Range<usize>,
        scratch: &mut RowScratch,
        stop: &StopFlag,
    ) -> Result<()> {
        let RowScratch {
            partials,
            chunk,
            sums,
            ..
        } = scratch;
        sums.clear();
        let (csr, residuals, end) = (&self.mode.csr, &self.mode.residuals, entries.end);
        for start in entries.step_by(CHUNK) {
            let entries = start..(start + CHUNK).min(end);
            let residuals = &residuals[entries.clone()];
            chunk.clear();
            self.partials
                .accumulate_residuals(csr, entries, residuals, partials, chunk, stop)?;
            sums.add_chunk(chunk);
        }
        Ok(())
    }

    /// Writes the solution for a row with a single entry: t + d w (r - d . t) / (lambda + w d . d).
    fn solve_one_entry(
        &self,
        entry: usize,
        penalty: f64,
        scratch: &mut RowScratch,
        to: &mut [f32],
    ) {
        let (csr, width) = (&self.mode.csr, to.len());
        let d = &mut scratch.sums.rhs;
        d.fill(1.0);
        for (other, &row) in self.partials.others.iter().zip(csr.other_rows(entry)) {
            let row = &other.rows[row as usize * width..];
            d.iter_mut().zip(row).for_each(|(d, &x)| *d *= f64::from(x));
        }
        let (mut square, mut residual) = (0.0, f64::from(self.mode.residuals[entry]));
        for (d, &t) in d.iter().zip(self.target) {
            square += d * d;
            residual -= d * f64::from(t);
        }
        let weight = f64::from(csr.weight(entry));
        let factor = weight * residual / (penalty + weight * square);
        for ((to, &t), d) in to.iter_mut().zip(self.target).zip(d) {
            *to = finite_or_zero(f64::from(t) + factor * *d);
        }
    }

    /// Adds the penalty of a row to its sums, solves and writes the row. Singular equations are regularized.
    fn solve(&self, row: usize, scratch: &mut RowScratch, to: &mut [f32]) {
        let RowScratch { sums, lower, .. } = scratch;
        let RowSums { size, gram, rhs } = sums;
        let penalty = f64::from(self.mode.penalties[row]);
        solve_equations(*size, penalty, self.target, gram, rhs, lower);
        for (to, &x) in to.iter_mut().zip(&*rhs) {
            *to = finite_or_zero(x);
        }
    }
}

/// Adds a penalty that shrinks to `target` to normal equations, and replaces their right-hand side by the solution. Singular
/// equations are regularized. Columns beyond the target are 0.
pub(super) fn solve_equations(
    size: usize,
    penalty: f64,
    target: &[f32],
    gram: &mut [f64],
    rhs: &mut [f64],
    lower: &mut [f64],
) {
    for (j, &t) in target.iter().enumerate() {
        gram[j * size + j] += penalty;
        rhs[j] += penalty * f64::from(t);
    }
    (target.len()..size).for_each(|j| gram[j * size + j] = 1.0);
    if !cholesky_into(size, gram, lower) {
        lower.copy_from_slice(&regularized_cholesky(size, gram));
    }
    solve_lower(size, lower, rhs);
    solve_lower_transposed(size, lower, rhs);
}

/// Returns a number as `f32`, or 0 if it is not finite.
pub(super) fn finite_or_zero(x: f64) -> f32 {
    let x = x as f32;
    if x.is_finite() { x } else { 0.0 }
}
