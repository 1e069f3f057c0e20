//! A mode with more rows than it had.

use std::sync::Arc;

use crate::error::Result;
use crate::format::{RowMap, RowMapBuilder};

use crate::model::{FactorMatrix, QuantizedRows};
use crate::try_alloc::try_with_capacity;

/// The rows of a mode with new ones among them.
pub(super) struct Grown {
    pub map: Arc<RowMap>,
    /// For each row where it comes from.
    from: Vec<From>,
    /// How many rows there were.
    old: usize,
}

#[derive(Clone, Copy)]
enum From {
    Old(u32),
    New(u32),
}

impl Grown {
    pub(super) fn new(old: &RowMap, names: &[u32]) -> Result<Grown> {
        let largest = names.last().map_or(0, |&i| u64::from(i) + 1);
        let mut builder = RowMapBuilder::new(old.dim().max(largest))?;
        old.indices().chain(names.iter().copied()).for_each(|i| {
            builder.mark(i);
        });
        let map = builder.finish()?;
        let mut from = try_with_capacity(map.len(), "rows")?;
        for index in map.indices() {
            from.push(match names.binary_search(&index) {
                Ok(k) => From::New(k as u32),
                Err(_) => From::Old(old.compact(index).unwrap_or(0)),
            });
        }
        Ok(Grown {
            map: Arc::new(map),
            from,
            old: old.len(),
        })
    }

    /// One item per row; what stands behind the old ones stays behind.
    pub(super) fn list<T: Copy>(&self, old: &[T], new: impl Iterator<Item = T>) -> Vec<T> {
        let new: Vec<T> = new.collect();
        let mut all: Vec<T> = Vec::with_capacity(self.from.len() + 1);
        all.extend(self.from.iter().map(|from| match *from {
            From::Old(i) => old[i as usize],
            From::New(i) => new[i as usize],
        }));
        all.extend_from_slice(&old[self.old..]);
        all
    }

    /// The same of factor rows; the mean row stays the last.
    pub(super) fn rows<'r>(
        &self,
        old: &FactorMatrix,
        new: impl Iterator<Item = &'r [f32]>,
    ) -> Result<FactorMatrix> {
        let new: Vec<&[f32]> = new.collect();
        let mut all = FactorMatrix::zeros(self.from.len() + 1, old.rank())?;
        let (rank, stride) = (all.rank(), all.stride());
        let from = self
            .from
            .iter()
            .copied()
            .chain([From::Old(self.old as u32)]);
        for (row, from) in all.as_mut_slice()?.chunks_exact_mut(stride).zip(from) {
            row[..rank].copy_from_slice(match from {
                From::Old(i) => old.row(i as usize),
                From::New(i) => new[i as usize],
            });
        }
        Ok(all)
    }

    /// The same of the rows of a sample, with so many numbers each.
    pub(super) fn sample(&self, old: &QuantizedRows, numbers: usize, new: &[f32]) -> QuantizedRows {
        let new = QuantizedRows::quantize(numbers, new);
        let from = self
            .from
            .iter()
            .copied()
            .chain([From::Old(self.old as u32)]);
        QuantizedRows::gather(from.map(|from| match from {
            From::Old(i) => (old, i as usize),
            From::New(i) => (&new, i as usize),
        }))
    }
}
