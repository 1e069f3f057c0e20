//! The update of the rows of a mode, restricted to a block of columns: least squares given everything else.

use std::ops::Range;

use super::mode_entries::SalsMode;
use super::packed_factors::ColumnBlock;
use super::wide_rows::{WideRows, finite_or_zero, solve_equations};
use crate::error::Result;
use crate::kernel::{ModeCsr, SubsetRows};
use crate::parallel::ThreadPool;
use crate::progress::StopFlag;
use crate::simd::{AlignedVec, Level};
use crate::solver::row_computation::{RowComputation, compute_rows};

/// Replaces the block's rows of mode `n` by the solutions of their least-squares problems.
pub(super) fn update_rows(
    mode: &SalsMode,
    n: usize,
    block: &mut ColumnBlock,
    level: Level,
    pool: &ThreadPool<'_>,
) -> Result<()> {
    // The problems do not depend on the rows that are replaced.
    let mut rows: AlignedVec = std::mem::take(&mut block.rows[n]);
    let (csr, tasks, width) = (&mode.csr, &mode.tasks, block.width);
    let columns = block.of_others(csr);
    if columns.is_narrow() {
        let target = &mode.target[block.columns.clone()];
        let problem = NarrowRows {
            rows: SubsetRows::new(
                csr,
                columns,
                &mode.residuals,
                &mode.penalties,
                target,
                level,
            ),
            mode,
            target,
        };
        compute_rows(&problem, csr, tasks, &mut rows, width, pool)?;
    } else {
        let problem = WideRows::new(mode, block, level);
        compute_rows(&problem, csr, tasks, &mut rows, width, pool)?;
    }
    block.rows[n] = rows;
    Ok(())
}

/// The least-squares problems of a narrow block.
struct NarrowRows<'a> {
    rows: SubsetRows<'a>,
    mode: &'a SalsMode,
    /// The row that the penalty shrinks to.
    target: &'a [f32],
}

/// Buffers of one thread.
struct NarrowScratch {
    sums: Vec<f64>,
    /// The Cholesky factor.
    lower: Vec<f64>,
    /// Rows that the kernel has left to [`RowComputation::compute_row`].
    left: Vec<usize>,
}

impl RowComputation for NarrowRows<'_> {
    type Element = f32;
    type Scratch = NarrowScratch;
    type Part = Vec<f64>;
    type Total = ();

    fn scratch(&self) -> Result<NarrowScratch> {
        let width = self.rows.width();
        Ok(NarrowScratch {
            sums: vec![0.0; self.rows.sums_len()],
            lower: vec![0.0; width * width],
            left: Vec::new(),
        })
    }

    fn compute_row(
        &self,
        row: usize,
        entries: Range<usize>,
        scratch: &mut NarrowScratch,
        stop: &StopFlag,
        to: &mut [f32],
        (): &mut (),
    ) -> Result<()> {
        scratch.sums.fill(0.0);
        self.rows.add_sums(entries, &mut scratch.sums, stop);
        self.solve(row, scratch, to);
        Ok(())
    }

    fn compute_short_rows(
        &self,
        rows: Range<usize>,
        csr: &ModeCsr,
        scratch: &mut NarrowScratch,
        stop: &StopFlag,
        to: &mut [f32],
        total: &mut (),
    ) -> Result<()> {
        let (first, width) = (rows.start, self.rows.width());
        let mut left = std::mem::take(&mut scratch.left);
        self.rows.solve_rows(rows, to, &mut left, stop);
        for row in left.drain(..) {
            if stop.requested() {
                break;
            }
            let to = &mut to[(row - first) * width..(row - first + 1) * width];
            self.compute_row(row, csr.row_entries(row), scratch, stop, to, total)?;
        }
        scratch.left = left;
        Ok(())
    }

    fn sum_part(
        &self,
        _: usize,
        entries: Range<usize>,
        _: &mut NarrowScratch,
        stop: &StopFlag,
    ) -> Result<Vec<f64>> {
        let mut sums = vec![0.0; self.rows.sums_len()];
        self.rows.add_sums(entries, &mut sums, stop);
        Ok(sums)
    }

    fn merge_parts(
        &self,
        row: usize,
        parts: Vec<Vec<f64>>,
        scratch: &mut NarrowScratch,
        to: &mut [f32],
        (): &mut (),
    ) {
        scratch.sums.fill(0.0);
        for part in parts {
            let pairs = scratch.sums.iter_mut().zip(part);
            pairs.for_each(|(sum, x)| *sum += x);
        }
        self.solve(row, scratch, to);
    }
}

impl NarrowRows<'_> {
    /// Solves the equations of a row and writes it.
    fn solve(&self, row: usize, scratch: &mut NarrowScratch, to: &mut [f32]) {
        let NarrowScratch { sums, lower, .. } = scratch;
        let (width, penalty) = (self.rows.width(), f64::from(self.mode.penalties[row]));
        let (gram, rhs) = sums.split_at_mut(width * width);
        solve_equations(width, penalty, self.target, gram, rhs, lower);
        for (to, &x) in to.iter_mut().zip(&*rhs) {
            *to = finite_or_zero(x);
        }
    }
}
