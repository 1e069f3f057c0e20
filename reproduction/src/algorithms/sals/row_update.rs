//! The update of the rows of a mode, restricted to a block of columns: least squares given everything else.

use std::ops::Range;

use super::mode_entries::SalsMode;
use super::packed_factors::ColumnBlock;
use super::wide_rows::{WideRows, solve_equations};
use crate::algorithms::row_computation::{Buffers, RowComputation, compute_rows};
use crate::kernels::SubsetRows;
use s3cmtf::error::Result;
use s3cmtf_kernel::kernel::ModeCsr;
use s3cmtf_kernel::parallel::ThreadPool;
use s3cmtf_kernel::progress::StopFlag;
use s3cmtf_kernel::simd::{AlignedVec, Level};

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
    /// The Cholesky factor.
    lower: Vec<f64>,
    /// Rows that the kernel has left to [`RowComputation::compute_row`].
    left: Vec<usize>,
}

impl RowComputation for NarrowRows<'_> {
    type Element = f32;
    type Scratch = NarrowScratch;
    type Total = ();

    fn scratch(&self) -> Result<NarrowScratch> {
        let width = self.rows.width();
        Ok(NarrowScratch {
            lower: vec![0.0; width * width],
            left: Vec::new(),
        })
    }

    fn sum_count(&self) -> usize {
        self.rows.sums_len()
    }

    fn add_entries(
        &self,
        _: usize,
        entries: Range<usize>,
        sums: &mut [f64],
        _: &mut NarrowScratch,
        stop: &StopFlag,
    ) -> Result<()> {
        self.rows.add_sums(entries, sums, stop);
        Ok(())
    }

    fn finish_row(
        &self,
        row: usize,
        sums: &mut [f64],
        scratch: &mut NarrowScratch,
        to: &mut [f32],
        (): &mut (),
    ) {
        let (width, penalty) = (self.rows.width(), self.mode.penalties[row]);
        solve_equations(width, penalty, self.target, sums, &mut scratch.lower, to);
    }

    fn compute_rows(
        &self,
        rows: Range<usize>,
        csr: &ModeCsr,
        buffers: &mut Buffers<NarrowScratch>,
        stop: &StopFlag,
        to: &mut [f32],
        total: &mut (),
    ) -> Result<()> {
        let (first, width) = (rows.start, self.rows.width());
        let mut left = std::mem::take(&mut buffers.scratch.left);
        self.rows.solve_rows(rows, to, &mut left, stop);
        for row in left.drain(..) {
            if stop.requested() {
                break;
            }
            let to = &mut to[(row - first) * width..(row - first + 1) * width];
            self.compute_row(row, csr.row_entries(row), buffers, stop, to, total)?;
        }
        buffers.scratch.left = left;
        Ok(())
    }
}
