//! The update of the rows of a mode, restricted to a block of columns: least squares given everything else.

use std::ops::Range;

use super::column_block::ColumnBlock;
use super::mode_entries::SalsMode;
use crate::error::Result;
use crate::kernel::{NormalEquations, Partials, PartialsScratch};
use crate::linalg::{cholesky_into, regularized_cholesky, solve_lower, solve_lower_transposed};
use crate::parallel::ThreadPool;
use crate::progress::StopFlag;
use crate::simd::{AlignedVec, Level};
use crate::solver::row_computation::{RowComputation, compute_rows};

/// Number of entries that are summed in `f32` before they are added to sums in `f64`.
const CHUNK: usize = 256;

/// Replaces the block's rows of mode `n` by the solutions of their normal equations.
pub(super) fn update_rows(
    mode: &SalsMode,
    n: usize,
    block: &mut ColumnBlock,
    level: Level,
    pool: &ThreadPool<'_>,
) -> Result<()> {
    let width = block.width();
    // Partial derivatives do not depend on the rows that are replaced.
    let mut rows: AlignedVec = std::mem::take(&mut block.rows[n]);
    let equations = RowEquations {
        mode,
        target: &mode.target[block.columns.clone()],
        partials: block.partials(&mode.csr, level),
    };
    compute_rows(&equations, &mode.csr, &mode.tasks, &mut rows, width, pool)?;
    drop(equations);
    block.rows[n] = rows;
    Ok(())
}

/// The normal equations of the rows of a mode for one block of columns.
struct RowEquations<'a> {
    mode: &'a SalsMode,
    /// The row that the penalty shrinks to.
    target: &'a [f32],
    partials: Partials<'a>,
}

/// Buffers of one thread.
struct RowScratch {
    partials: PartialsScratch,
    chunk: NormalEquations,
    sums: RowSums,
    /// The Cholesky factor.
    lower: Vec<f64>,
}

/// The sums of w d d^T and w d r over entries of a row.
#[derive(Clone)]
struct RowSums {
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

impl RowComputation for RowEquations<'_> {
    type Element = f32;
    type Scratch = RowScratch;
    type Part = RowSums;
    type Total = ();

    fn scratch(&self) -> Result<RowScratch> {
        RowScratch::new(self.target.len())
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
        self.sum_entries(entries, scratch, stop)?;
        self.solve(row, scratch, to);
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

impl RowEquations<'_> {
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

    /// Adds the penalty of a row to its sums, solves and writes the row. Singular equations are regularized.
    fn solve(&self, row: usize, scratch: &mut RowScratch, to: &mut [f32]) {
        let RowScratch { sums, lower, .. } = scratch;
        let RowSums { size, gram, rhs } = sums;
        let (size, strength) = (*size, f64::from(self.mode.penalties[row]));
        for j in 0..size {
            gram[j * size + j] += strength;
            rhs[j] += strength * f64::from(self.target[j]);
        }
        if !cholesky_into(size, gram, lower) {
            lower.copy_from_slice(&regularized_cholesky(size, gram));
        }
        solve_lower(size, lower, rhs);
        solve_lower_transposed(size, lower, rhs);
        for (to, &x) in to.iter_mut().zip(&*rhs) {
            let x = x as f32;
            *to = if x.is_finite() { x } else { 0.0 };
        }
    }
}
