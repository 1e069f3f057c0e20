//! The update of the rows of a mode, restricted to a block of columns of whole vectors: the normal equations of each row.

use std::ops::Range;

use super::mode_entries::SalsMode;
use super::packed_factors::ColumnBlock;
use crate::algorithms::row_computation::{Buffers, RowComputation, sum_and_finish};
use s3cmtf::error::Result;
use s3cmtf_kernel::kernel::{NormalEquations, OtherMode, Partials, PartialsScratch};
use s3cmtf_kernel::linalg::{
    cholesky_into, regularized_cholesky, solve_lower, solve_lower_transposed,
};
use s3cmtf_kernel::progress::StopFlag;
use s3cmtf_kernel::simd::{Level, padded_len};

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
    /// The Cholesky factor.
    lower: Vec<f64>,
}

impl RowComputation for WideRows<'_> {
    type Element = f32;
    type Scratch = RowScratch;
    type Total = ();

    fn scratch(&self) -> Result<RowScratch> {
        let size = self.partials.rank;
        Ok(RowScratch {
            partials: PartialsScratch::default(),
            chunk: NormalEquations::new(size)?,
            lower: vec![0.0; size * size],
        })
    }

    /// The lower triangle of the sum of w d d^T in a square, then the sum of w d r.
    fn sum_count(&self) -> usize {
        self.partials.rank * (self.partials.rank + 1)
    }

    fn add_entries(
        &self,
        _: usize,
        entries: Range<usize>,
        sums: &mut [f64],
        scratch: &mut RowScratch,
        stop: &StopFlag,
    ) -> Result<()> {
        let RowScratch {
            partials, chunk, ..
        } = scratch;
        let (csr, residuals, end) = (&self.mode.csr, &self.mode.residuals, entries.end);
        for start in entries.step_by(CHUNK) {
            let entries = start..(start + CHUNK).min(end);
            let residuals = &residuals[entries.clone()];
            chunk.clear();
            self.partials
                .accumulate_residuals(csr, entries, residuals, partials, chunk, stop)?;
            add_chunk(self.partials.rank, chunk, sums);
        }
        Ok(())
    }

    fn finish_row(
        &self,
        row: usize,
        sums: &mut [f64],
        scratch: &mut RowScratch,
        to: &mut [f32],
        (): &mut (),
    ) {
        let (size, penalty) = (self.partials.rank, self.mode.penalties[row]);
        solve_equations(size, penalty, self.target, sums, &mut scratch.lower, to);
    }

    fn compute_row(
        &self,
        row: usize,
        entries: Range<usize>,
        buffers: &mut Buffers<RowScratch>,
        stop: &StopFlag,
        to: &mut [f32],
        total: &mut (),
    ) -> Result<()> {
        let penalty = f64::from(self.mode.penalties[row]);
        if entries.len() == 1 && penalty > 0.0 {
            let d = &mut buffers.sums[..self.partials.rank];
            self.solve_one_entry(entries.start, penalty, d, to);
            return Ok(());
        }
        sum_and_finish(self, row, entries, buffers, stop, to, total)
    }
}

impl WideRows<'_> {
    /// Writes the solution for a row with a single entry: t + d w (r - d . t) / (lambda + w d . d).
    fn solve_one_entry(&self, entry: usize, penalty: f64, d: &mut [f64], to: &mut [f32]) {
        let (csr, width) = (&self.mode.csr, to.len());
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
}

/// Adds sums in `f32` to those of a row.
fn add_chunk(size: usize, chunk: &NormalEquations, sums: &mut [f64]) {
    let (gram, rhs) = sums.split_at_mut(size * size);
    for j in 0..size {
        for (k, &x) in chunk.gram_row(j).iter().enumerate() {
            gram[(j + k) * size + j] += f64::from(x);
        }
    }
    let rhs = rhs.iter_mut().zip(chunk.rhs());
    rhs.for_each(|(sum, &x)| *sum += f64::from(x));
}

/// Adds a penalty that shrinks to `target` to normal equations, solves them and writes the row. `sums` has the left side, then
/// the right. Singular equations are regularized. Columns beyond the target are 0.
pub(super) fn solve_equations(
    size: usize,
    penalty: f32,
    target: &[f32],
    sums: &mut [f64],
    lower: &mut [f64],
    to: &mut [f32],
) {
    let penalty = f64::from(penalty);
    let (gram, rhs) = sums.split_at_mut(size * size);
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
    for (to, &x) in to.iter_mut().zip(&*rhs) {
        *to = finite_or_zero(x);
    }
}

/// Returns a number as `f32`, or 0 if it is not finite.
fn finite_or_zero(x: f64) -> f32 {
    let x = x as f32;
    if x.is_finite() { x } else { 0.0 }
}
