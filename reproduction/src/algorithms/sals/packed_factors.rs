//! The factors during an epoch, divided into blocks of columns: the columns of a row in a block are adjacent.

use std::ops::Range;
use std::sync::Mutex;

use crate::kernels::{BlockValue, PackedColumns, packed_width};
use s3cmtf::error::Result;
use s3cmtf::internals::Model;
use s3cmtf_kernel::kernel::ModeCsr;
use s3cmtf_kernel::parallel::{ThreadPool, lock_ignoring_poison};
use s3cmtf_kernel::simd::AlignedVec;

/// Number of rows that a thread copies at a time.
const ROWS_AT_ONCE: usize = 1 << 12;

/// The columns of all blocks.
pub(super) struct PackedFactors {
    pub blocks: Vec<ColumnBlock>,
}

/// A block of columns of the factors of all modes.
pub(super) struct ColumnBlock {
    pub columns: Range<usize>,
    /// Number of floats per row, the same for all blocks.
    pub width: usize,
    /// The rows of each mode, restricted to the columns and padded with zeros.
    pub rows: Vec<AlignedVec>,
}

impl PackedFactors {
    /// Allocates blocks of at most `subset_size` columns for modes with these numbers of rows.
    pub(super) fn new(
        row_counts: &[usize],
        rank: usize,
        subset_size: usize,
    ) -> Result<PackedFactors> {
        let count = rank.div_ceil(subset_size);
        let width = packed_width(rank.div_ceil(count));
        let block = |k: usize| {
            let zeros = |&rows: &usize| AlignedVec::try_zeroed(rows * width, "row elements");
            Ok(ColumnBlock {
                columns: k * rank / count..(k + 1) * rank / count,
                width,
                rows: row_counts.iter().map(zeros).collect::<Result<_>>()?,
            })
        };
        Ok(PackedFactors {
            blocks: (0..count).map(block).collect::<Result<_>>()?,
        })
    }

    /// Copies the factors of a model.
    pub(super) fn load(&mut self, model: &Model, pool: &ThreadPool<'_>) -> Result<()> {
        for (n, mode) in model.modes.iter().enumerate() {
            let stride = mode.factor.stride();
            let chunks = mode.factor.as_slice()[..mode.rows.len() * stride]
                .chunks(ROWS_AT_ONCE * stride)
                .collect::<Vec<_>>();
            let mut of_chunks: Vec<Vec<_>> = chunks.iter().map(|_| Vec::new()).collect();
            for block in &mut self.blocks {
                let (columns, width) = (block.columns.clone(), block.width);
                let rows = block.rows[n].chunks_mut(ROWS_AT_ONCE * width);
                for (of_chunk, rows) in of_chunks.iter_mut().zip(rows) {
                    of_chunk.push((columns.clone(), width, rows));
                }
            }
            let of_chunks: Vec<_> = of_chunks.into_iter().map(Mutex::new).collect();
            let load_chunk = |c: usize| {
                for (columns, width, to) in lock_ignoring_poison(&of_chunks[c]).iter_mut() {
                    let from = chunks[c].chunks_exact(stride);
                    for (to, from) in to.chunks_exact_mut(*width).zip(from) {
                        copy(&mut to[..columns.len()], &from[columns.clone()]);
                    }
                }
            };
            pool.map(chunks.len(), || (), |(), c| load_chunk(c))?;
        }
        Ok(())
    }

    /// Writes the factors to a model.
    pub(super) fn store(&self, model: &mut Model, pool: &ThreadPool<'_>) -> Result<()> {
        for (n, mode) in model.modes.iter_mut().enumerate() {
            let (stride, rows) = (mode.factor.stride(), mode.rows.len());
            let factor = &mut mode.factor.as_mut_slice()?[..rows * stride];
            let chunks: Vec<_> = factor
                .chunks_mut(ROWS_AT_ONCE * stride)
                .map(Mutex::new)
                .collect();
            let store_chunk = |c: usize| {
                let mut chunk = lock_ignoring_poison(&chunks[c]);
                for block in &self.blocks {
                    let from = &block.rows[n][c * ROWS_AT_ONCE * block.width..];
                    let from = from.chunks_exact(block.width);
                    for (to, from) in chunk.chunks_exact_mut(stride).zip(from) {
                        let columns = block.columns.clone();
                        copy(&mut to[columns.clone()], &from[..columns.len()]);
                    }
                }
            };
            pool.map(chunks.len(), || (), |(), c| store_chunk(c))?;
        }
        Ok(())
    }
}

/// Copies a few floats, without the call of `copy_from_slice`.
fn copy(to: &mut [f32], from: &[f32]) {
    to.iter_mut().zip(from).for_each(|(to, &x)| *to = x);
}

impl ColumnBlock {
    /// The columns of the modes that `csr` does not group entries by.
    pub(super) fn of_others(&self, csr: &ModeCsr) -> PackedColumns<'_> {
        PackedColumns {
            others: csr
                .other_modes()
                .iter()
                .map(|&m| &self.rows[m][..])
                .collect(),
            count: self.columns.len(),
            width: self.width,
        }
    }

    /// The values of the block at entries that `csr` groups by the rows of mode `n`.
    pub(super) fn value(&self, csr: &ModeCsr, n: usize) -> BlockValue<'_> {
        BlockValue {
            columns: self.of_others(csr),
            own: &self.rows[n],
        }
    }
}
