//! Rows of floats, padded to whole cache lines, owned or mapped from a model file.

use std::sync::Arc;

use memmap2::MmapMut;

use crate::error::{Error, Result};
use crate::format::FileBytes;
use crate::simd::padded_len;

/// From so many bytes on, memory is asked for in huge pages.
#[cfg(target_os = "linux")]
const HUGE: usize = 4 << 20;

enum Memory {
    /// Anonymous pages: aligned, zeroed, and given back to the system when dropped.
    Owned(MmapMut),
    Mapped(Arc<FileBytes>, std::ops::Range<usize>),
}

/// A matrix of `rows` x `rank` floats; each row starts a cache line and is padded with zeros.
pub struct FactorMatrix {
    memory: Memory,
    rows: usize,
    rank: usize,
}

impl FactorMatrix {
    /// All zeros.
    pub fn zeros(rows: usize, rank: usize) -> Result<FactorMatrix> {
        let bytes = rows
            .checked_mul(padded_len(rank))
            .and_then(|floats| floats.checked_mul(4))
            .ok_or_else(|| {
                Error::argument(format!("{rows} rows of rank {rank} do not fit in memory"))
            })?;
        let memory = MmapMut::map_anon(bytes.max(1))
            .map_err(|e| Error::io(format!("no memory for {rows} rows of rank {rank}"), e))?;
        // Rows are read in no order; larger pages save lookups. Without them nothing is wrong.
        #[cfg(target_os = "linux")]
        if bytes >= HUGE {
            let _ = memory.advise(memmap2::Advice::HugePage);
        }
        Ok(FactorMatrix {
            memory: Memory::Owned(memory),
            rows,
            rank,
        })
    }

    /// Rows that lie in a mapped file, padding included.
    pub(super) fn mapped(
        bytes: Arc<FileBytes>,
        at: std::ops::Range<usize>,
        rank: usize,
    ) -> Option<FactorMatrix> {
        let row = padded_len(rank) * 4;
        let fits = at.end <= bytes.as_slice().len()
            && at.len().is_multiple_of(row)
            && at.start.is_multiple_of(64);
        fits.then(|| FactorMatrix {
            rows: at.len() / row,
            memory: Memory::Mapped(bytes, at),
            rank,
        })
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The number of floats of a row that mean something.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The distance between rows, in floats.
    pub fn stride(&self) -> usize {
        padded_len(self.rank)
    }

    /// All rows, padding included.
    pub fn as_slice(&self) -> &[f32] {
        let floats: &[f32] = match &self.memory {
            Memory::Owned(m) => bytemuck::cast_slice(&m[..m.len() / 4 * 4]),
            Memory::Mapped(bytes, at) => bytemuck::cast_slice(&bytes.as_slice()[at.clone()]),
        };
        &floats[..self.rows * self.stride()]
    }

    /// All rows, padding included, to be changed. Mapped rows are copied first.
    pub fn as_mut_slice(&mut self) -> Result<&mut [f32]> {
        if let Memory::Mapped(..) = self.memory {
            *self = self.try_clone()?;
        }
        let len = self.rows * self.stride();
        match &mut self.memory {
            Memory::Owned(m) => {
                let whole = m.len() / 4 * 4;
                Ok(&mut bytemuck::cast_slice_mut(&mut m[..whole])[..len])
            }
            Memory::Mapped(..) => unreachable!("mapped rows were copied"),
        }
    }

    /// An owned copy.
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

    /// Row `i` without its padding.
    pub fn row(&self, i: usize) -> &[f32] {
        &self.as_slice()[i * self.stride()..][..self.rank]
    }

    /// Row `i` with its padding.
    pub fn padded_row(&self, i: usize) -> &[f32] {
        let stride = self.stride();
        &self.as_slice()[i * stride..(i + 1) * stride]
    }
}
