//! A factor matrix whose rows are padded to whole cache lines, owned or mapped from a model file.

use std::sync::Arc;

use memmap2::MmapMut;

use crate::error::{Error, Result};
use crate::format::FileBytes;
use crate::simd::padded_len;
use crate::try_alloc::try_zeroed;

/// Smallest allocation, in bytes, that requests huge pages.
#[cfg(target_os = "linux")]
const HUGE_PAGE_MIN_BYTES: usize = 4 << 20;

enum Memory {
    /// Anonymous pages: page-aligned, zeroed, and returned to the system when dropped.
    Owned(MmapMut),
    /// A byte range of an opened model file.
    Mapped(Arc<FileBytes>, std::ops::Range<usize>),
}

/// A matrix of `rows` x `rank` floats. Each row starts a cache line and is padded with zeros.
pub struct FactorMatrix {
    memory: Memory,
    rows: usize,
    rank: usize,
}

impl FactorMatrix {
    /// Allocates a matrix of zeros.
    pub fn zeros(rows: usize, rank: usize) -> Result<FactorMatrix> {
        let bytes = rows
            .checked_mul(padded_len(rank))
            .and_then(|floats| floats.checked_mul(4))
            .ok_or_else(|| {
                Error::argument(format!("{rows} rows of rank {rank} do not fit in memory"))
            })?;
        let memory = MmapMut::map_anon(bytes.max(1))
            .map_err(|e| Error::io(format!("no memory for {rows} rows of rank {rank}"), e))?;
        // Rows are read in random order, so larger pages save TLB misses. The advice may fail without harm.
        #[cfg(target_os = "linux")]
        if bytes >= HUGE_PAGE_MIN_BYTES {
            let _ = memory.advise(memmap2::Advice::HugePage);
        }
        Ok(FactorMatrix {
            memory: Memory::Owned(memory),
            rows,
            rank,
        })
    }

    /// Returns the padded rows at the byte range `at` of a file, or `None` if the range is not whole, aligned rows.
    pub(super) fn mapped(
        bytes: Arc<FileBytes>,
        at: std::ops::Range<usize>,
        rank: usize,
    ) -> Option<FactorMatrix> {
        let row_bytes = padded_len(rank) * 4;
        let fits = at.end <= bytes.as_slice().len()
            && at.len().is_multiple_of(row_bytes)
            && at.start.is_multiple_of(64);
        fits.then(|| FactorMatrix {
            rows: at.len() / row_bytes,
            memory: Memory::Mapped(bytes, at),
            rank,
        })
    }

    /// Returns the number of rows.
    #[inline]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Returns the number of floats of a row without its padding.
    #[inline]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the distance between consecutive rows, in floats.
    #[inline]
    pub fn stride(&self) -> usize {
        padded_len(self.rank)
    }

    /// Returns all rows, padding included.
    #[inline]
    pub fn as_slice(&self) -> &[f32] {
        let floats: &[f32] = match &self.memory {
            Memory::Owned(m) => bytemuck::cast_slice(&m[..m.len() / 4 * 4]),
            Memory::Mapped(bytes, at) => bytemuck::cast_slice(&bytes.as_slice()[at.clone()]),
        };
        &floats[..self.rows * self.stride()]
    }

    /// Returns all rows, padding included, for writing. Mapped rows are copied into memory first.
    pub fn as_mut_slice(&mut self) -> Result<&mut [f32]> {
        if let Memory::Mapped(..) = self.memory {
            *self = self.try_clone()?;
        }
        let len = self.rows * self.stride();
        match &mut self.memory {
            Memory::Owned(m) => {
                let whole_floats = m.len() / 4 * 4;
                Ok(&mut bytemuck::cast_slice_mut(&mut m[..whole_floats])[..len])
            }
            Memory::Mapped(..) => unreachable!("mapped rows were copied"),
        }
    }

    /// Returns an owned copy.
    pub fn try_clone(&self) -> Result<FactorMatrix> {
        let mut copy = FactorMatrix::zeros(self.rows, self.rank)?;
        copy.as_mut_slice()?.copy_from_slice(self.as_slice());
        Ok(copy)
    }

    /// Overwrites these rows with those of `other`, which must have the same shape.
    pub(crate) fn copy_from(&mut self, other: &FactorMatrix) -> Result<()> {
        assert_eq!((self.rows, self.rank), (other.rows, other.rank));
        self.as_mut_slice()?.copy_from_slice(other.as_slice());
        Ok(())
    }

    /// Returns row `i` without its padding.
    #[inline]
    pub fn row(&self, i: usize) -> &[f32] {
        &self.as_slice()[i * self.stride()..][..self.rank]
    }

    /// Returns row `i` with its padding.
    #[inline]
    pub fn padded_row(&self, i: usize) -> &[f32] {
        let stride = self.stride();
        &self.as_slice()[i * stride..(i + 1) * stride]
    }
}

/// A copy of the rows of a factor matrix without their padding, which is 3/8 of a matrix of rank 10.
pub(crate) struct CompactRows {
    rank: usize,
    values: Vec<f32>,
}

impl CompactRows {
    /// Copies all rows of `factor`.
    pub(crate) fn copy_of(factor: &FactorMatrix) -> Result<CompactRows> {
        let mut copy = CompactRows {
            rank: factor.rank,
            values: try_zeroed(factor.rows * factor.rank, "row elements")?,
        };
        copy.copy_from(factor);
        Ok(copy)
    }

    /// Overwrites these rows with those of `factor`, which must have the same shape.
    pub(crate) fn copy_from(&mut self, factor: &FactorMatrix) {
        self.copy_from_padded(factor.as_slice());
    }

    /// Overwrites these rows with as many padded ones.
    pub(super) fn copy_from_padded(&mut self, padded: &[f32]) {
        assert_eq!(padded.len(), self.padded_len());
        let padded = padded.chunks_exact(padded_len(self.rank));
        for (to, from) in self.values.chunks_exact_mut(self.rank).zip(padded) {
            to.copy_from_slice(&from[..self.rank]);
        }
    }

    /// Overwrites the rows of `factor`, which must have the same shape.
    pub(crate) fn copy_to(&self, factor: &mut FactorMatrix) -> Result<()> {
        assert_eq!(
            (factor.rows * factor.rank, factor.rank),
            (self.values.len(), self.rank)
        );
        let padded = factor
            .as_mut_slice()?
            .chunks_exact_mut(padded_len(self.rank));
        for (to, from) in padded.zip(self.values.chunks_exact(self.rank)) {
            let (row, padding) = to.split_at_mut(self.rank);
            row.copy_from_slice(from);
            // A diverged epoch may have written NaN there.
            padding.fill(0.0);
        }
        Ok(())
    }

    /// Returns the number of floats of all rows with their padding.
    pub(super) fn padded_len(&self) -> usize {
        self.values.len() / self.rank * padded_len(self.rank)
    }

    /// Returns the rows.
    pub(super) fn rows(&self) -> std::slice::ChunksExact<'_, f32> {
        self.values.chunks_exact(self.rank)
    }
}
