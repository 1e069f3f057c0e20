//! The rows of W: the tensor times the factors of all other modes, unfolded.

use std::ops::Range;

use super::mode_entries::TuckerMode;
use super::workers::Workers;
use crate::algorithms::row_computation::{Buffers, RowComputation, compute_rows};
use crate::kernels::{DENSE_LANES, UnfoldedRowScratch, add_unfolded_row};
use s3cmtf::error::Result;
use s3cmtf::internals::Model;
use s3cmtf_kernel::kernel::OtherMode;
use s3cmtf_kernel::progress::StopFlag;
use s3cmtf_kernel::simd::Level;
use s3cmtf_kernel::try_alloc::try_zeroed;

pub(super) type Array = [f64; DENSE_LANES];

/// Largest W, in bytes, that is computed once and kept for all products of an update.
const MAX_STORED_BYTES: usize = 1 << 28;

/// Cost of a row besides its entries, in entries.
const ROW_COST_ENTRIES: usize = 16;

/// Bytes of the rows of W that a thread computes at a time: they fit into the L2 cache.
const BLOCK_BYTES: usize = 1 << 17;

/// W for the current factors of the other modes.
pub(super) struct UnfoldedRows<'a> {
    pub(super) mode: &'a TuckerMode,
    others: Vec<OtherMode<'a>>,
    /// Number of columns.
    pub(super) width: usize,
    /// All rows, padded, if they are few.
    pub(super) stored: Option<Vec<Array>>,
    level: Level,
    stop: &'a StopFlag,
}

/// Buffers of one thread.
pub(super) struct BlockScratch {
    row: UnfoldedRowScratch,
    /// Numbers of the rows of the block.
    rows: Vec<usize>,
    /// Rows of W, padded.
    block: Vec<Array>,
    /// A buffer for the function that is called with the block.
    buffer: Vec<f64>,
}

impl<'a> UnfoldedRows<'a> {
    /// Prepares W for the factors of `model`. Computes it if it is small.
    pub(super) fn new(
        mode: &'a TuckerMode,
        model: &'a Model,
        workers: Workers<'a>,
    ) -> Result<UnfoldedRows<'a>> {
        let other = |&m: &usize| OtherMode {
            rows: model.modes[m].factor.as_slice(),
            rank: model.shape.ranks()[m],
            biases: &[],
        };
        let others: Vec<OtherMode<'a>> = mode.csr.other_modes().iter().map(other).collect();
        let mut rows = UnfoldedRows {
            mode,
            width: others.iter().map(|o| o.rank).product(),
            others,
            stored: None,
            level: workers.level,
            stop: workers.pool.stop(),
        };
        if stored_bytes(mode.csr.row_count(), rows.width).is_some() {
            rows.stored = Some(rows.compute_all(workers)?);
        }
        Ok(rows)
    }

    /// Returns the number of arrays of a row.
    pub(super) fn arrays(&self) -> usize {
        self.width.div_ceil(DENSE_LANES)
    }

    /// Computes W. The entries of a long row are summed in parts.
    fn compute_all(&self, workers: Workers<'_>) -> Result<Vec<Array>> {
        let (arrays, TuckerMode { csr, tasks, .. }) = (self.arrays(), self.mode);
        let mut all: Vec<Array> = try_zeroed(csr.row_count() * arrays, "row elements")?;
        compute_rows(self, csr, tasks, &mut all, arrays, workers.pool)?;
        Ok(all)
    }

    /// Adds entries, all of one row, to the row of W.
    fn add_to_row(
        &self,
        entries: Range<usize>,
        scratch: &mut UnfoldedRowScratch,
        stop: &StopFlag,
        to: &mut [f64],
    ) {
        let csr = &self.mode.csr;
        add_unfolded_row(self.level, csr, entries, &self.others, scratch, stop, to);
    }

    /// Returns `count` groups of rows of about the same cost, fewer if there are fewer rows.
    pub(super) fn row_groups(&self, count: usize) -> Vec<Range<usize>> {
        let csr = &self.mode.csr;
        let rows = csr.row_count();
        let cost_before = |row: usize| match row < rows {
            true => csr.row_entries(row).start + ROW_COST_ENTRIES * row,
            false => csr.len() + ROW_COST_ENTRIES * rows,
        };
        let total = cost_before(rows) as u128;
        let mut groups = Vec::new();
        let mut start = 0;
        for g in 1..=count {
            let limit = (total * g as u128 / count as u128) as usize;
            let (mut low, mut high) = (start, rows);
            while low < high {
                let middle = low + (high - low) / 2;
                match cost_before(middle) < limit {
                    true => low = middle + 1,
                    false => high = middle,
                }
            }
            if low > start {
                groups.push(start..low);
            }
            start = low;
        }
        groups
    }

    /// Returns the buffers of a thread.
    pub(super) fn scratch(&self) -> Result<BlockScratch> {
        Ok(BlockScratch {
            row: UnfoldedRowScratch::new(&self.others)?,
            rows: Vec::new(),
            block: Vec::new(),
            buffer: Vec::new(),
        })
    }

    /// Calls `visit` with blocks of rows of W: the numbers of the rows, their elements, and a buffer. Rows without entries
    /// may be left out.
    pub(super) fn for_blocks(
        &self,
        group: Range<usize>,
        scratch: &mut BlockScratch,
        mut visit: impl FnMut(&[usize], &[Array], &mut Vec<f64>),
    ) -> Result<()> {
        let BlockScratch {
            row: row_scratch,
            rows,
            block,
            buffer,
        } = scratch;
        let (arrays, csr, stop) = (self.arrays(), &self.mode.csr, self.stop);
        let block_rows = block_rows(arrays);
        let end = group.end;
        let mut next = group.start;
        while next < end && !stop.requested() {
            rows.clear();
            if let Some(stored) = &self.stored {
                rows.extend(next..(next + block_rows).min(end));
                next += rows.len();
                visit(
                    rows,
                    &stored[rows[0] * arrays..][..rows.len() * arrays],
                    buffer,
                );
                continue;
            }
            while next < end && rows.len() < block_rows {
                if self.mode.has_entries(next) {
                    rows.push(next);
                }
                next += 1;
            }
            if block.len() < block_rows * arrays {
                *block = try_zeroed(block_rows * arrays, "row elements")?;
            }
            for (&row, to) in rows.iter().zip(block.chunks_exact_mut(arrays)) {
                let to = &mut to.as_flattened_mut()[..self.width];
                to.fill(0.0);
                self.add_to_row(csr.row_entries(row), row_scratch, stop, to);
            }
            visit(rows, &block[..rows.len() * arrays], buffer);
        }
        Ok(())
    }
}

impl RowComputation for UnfoldedRows<'_> {
    type Element = Array;
    type Scratch = UnfoldedRowScratch;
    type Total = ();

    fn scratch(&self) -> Result<UnfoldedRowScratch> {
        UnfoldedRowScratch::new(&self.others)
    }

    /// The elements of the row of W.
    fn sum_count(&self) -> usize {
        self.width
    }

    fn add_entries(
        &self,
        _: usize,
        entries: Range<usize>,
        sums: &mut [f64],
        scratch: &mut UnfoldedRowScratch,
        stop: &StopFlag,
    ) -> Result<()> {
        self.add_to_row(entries, scratch, stop, sums);
        Ok(())
    }

    fn finish_row(
        &self,
        _: usize,
        sums: &mut [f64],
        _: &mut UnfoldedRowScratch,
        to: &mut [Array],
        (): &mut (),
    ) {
        to.as_flattened_mut()[..self.width].copy_from_slice(sums);
    }

    fn compute_row(
        &self,
        _: usize,
        entries: Range<usize>,
        buffers: &mut Buffers<UnfoldedRowScratch>,
        stop: &StopFlag,
        to: &mut [Array],
        (): &mut (),
    ) -> Result<()> {
        // The sums are the result, so they are formed in place; `compute_all` passes zeros.
        let to = &mut to.as_flattened_mut()[..self.width];
        self.add_to_row(entries, &mut buffers.scratch, stop, to);
        Ok(())
    }
}

/// Returns the bytes of a W of this size if it is stored.
pub(super) fn stored_bytes(rows: usize, columns: usize) -> Option<usize> {
    let row = columns.div_ceil(DENSE_LANES) * size_of::<Array>();
    rows.checked_mul(row).filter(|b| *b <= MAX_STORED_BYTES)
}

/// Returns the number of rows of W that a thread computes at a time.
pub(super) fn block_rows(arrays: usize) -> usize {
    (BLOCK_BYTES / (arrays * size_of::<Array>())).clamp(1, 64)
}
