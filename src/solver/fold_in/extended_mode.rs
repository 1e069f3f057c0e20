//! A mode with new rows inserted among its rows.

use std::sync::Arc;

use crate::error::Result;
use crate::format::{RowMap, RowMapBuilder};

use crate::model::{FactorMatrix, QuantizedRows};
use crate::try_alloc::try_with_capacity;

/// The rows of a mode with new ones among them, in the order of their indices. A new row replaces an old one of the
/// same index.
pub(super) struct ExtendedMode {
    pub map: Arc<RowMap>,
    /// The origin of each row.
    origins: Vec<RowOrigin>,
    /// Number of rows before.
    old_count: usize,
}

/// Where a row comes from: its position among the old rows, or among the new ones.
#[derive(Clone, Copy)]
enum RowOrigin {
    Old(u32),
    New(u32),
}

impl ExtendedMode {
    /// Inserts the rows of `new_indices`, which are ascending.
    pub(super) fn new(old: &RowMap, new_indices: &[u32]) -> Result<ExtendedMode> {
        let dim = new_indices.last().map_or(0, |&i| u64::from(i) + 1);
        let mut builder = RowMapBuilder::new(old.dim().max(dim))?;
        old.indices()
            .chain(new_indices.iter().copied())
            .for_each(|i| {
                builder.mark(i);
            });
        let map = builder.finish()?;
        let mut origins = try_with_capacity(map.len(), "rows")?;
        for index in map.indices() {
            origins.push(match new_indices.binary_search(&index) {
                Ok(k) => RowOrigin::New(k as u32),
                Err(_) => RowOrigin::Old(old.compact(index).unwrap_or(0)),
            });
        }
        Ok(ExtendedMode {
            map: Arc::new(map),
            origins,
            old_count: old.len(),
        })
    }

    /// Merges a list with one item per row. Items after the last old row stay at the end.
    pub(super) fn merge_list<T: Copy>(&self, old: &[T], new: impl Iterator<Item = T>) -> Vec<T> {
        let new: Vec<T> = new.collect();
        let mut all: Vec<T> = Vec::with_capacity(self.origins.len() + 1);
        all.extend(self.origins.iter().map(|origin| match *origin {
            RowOrigin::Old(i) => old[i as usize],
            RowOrigin::New(i) => new[i as usize],
        }));
        all.extend_from_slice(&old[self.old_count..]);
        all
    }

    /// Merges factor rows. The mean row stays the last.
    pub(super) fn merge_rows<'r>(
        &self,
        old: &FactorMatrix,
        new: impl Iterator<Item = &'r [f32]>,
    ) -> Result<FactorMatrix> {
        let new: Vec<&[f32]> = new.collect();
        let mut all = FactorMatrix::zeros(self.origins.len() + 1, old.rank())?;
        let (rank, stride) = (all.rank(), all.stride());
        let origins = self.origins_and_mean();
        for (row, origin) in all.as_mut_slice()?.chunks_exact_mut(stride).zip(origins) {
            row[..rank].copy_from_slice(match origin {
                RowOrigin::Old(i) => old.row(i as usize),
                RowOrigin::New(i) => new[i as usize],
            });
        }
        Ok(all)
    }

    /// Merges the rows of a posterior sample, of `size` elements each. The mean row stays the last.
    pub(super) fn merge_quantized(
        &self,
        old: &QuantizedRows,
        size: usize,
        new: &[f32],
    ) -> Result<QuantizedRows> {
        let new = QuantizedRows::quantize(size, new)?;
        let origins = self.origins_and_mean();
        Ok(QuantizedRows::gather(origins.map(|origin| match origin {
            RowOrigin::Old(i) => (old, i as usize),
            RowOrigin::New(i) => (&new, i as usize),
        })))
    }

    /// The origin of each row, and of the mean row.
    fn origins_and_mean(&self) -> impl Iterator<Item = RowOrigin> + '_ {
        let mean = RowOrigin::Old(self.old_count as u32);
        self.origins.iter().copied().chain([mean])
    }
}
