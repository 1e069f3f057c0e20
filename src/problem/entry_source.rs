//! The entries of a tensor or matrix, read in chunks with compact row numbers.

use std::ops::Range;

use super::entry_weights::EntryWeights;
use crate::error::{Error, Result};
use crate::format::{CooView, RowMap};
use crate::kernel::EntryChunk;
use crate::progress::Monitor;
use crate::try_alloc::{try_reserve, try_with_capacity};

/// A map of values: subtract the offset, then divide by the scale, a power of two.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AffineMap {
    pub offset: f64,
    pub scale: f64,
}

impl AffineMap {
    pub(crate) const IDENTITY: AffineMap = AffineMap {
        offset: 0.0,
        scale: 1.0,
    };

    #[inline]
    pub(crate) fn apply(self, value: f64) -> f64 {
        (value - self.offset) / self.scale
    }
}

/// The entries of one tensor or matrix of a problem, in the columns they came in.
pub struct EntrySource<'a> {
    pub(crate) view: CooView<'a>,
    /// The weights of the entries of the view.
    pub(crate) weights: EntryWeights<'a>,
    /// Rows and columns of sampled zeros, which count as entries behind those of the view.
    pub(super) zeros: [Vec<u32>; 2],
}

impl<'a> EntrySource<'a> {
    /// Makes a source of the entries of a view, without sampled zeros.
    pub(super) fn new(view: CooView<'a>, monitor: &dyn Monitor) -> Result<EntrySource<'a>> {
        Ok(EntrySource {
            weights: EntryWeights::of(&view, monitor)?,
            view,
            zeros: Default::default(),
        })
    }

    /// Returns the number of entries, including those of weight 0.
    pub fn len(&self) -> usize {
        self.view.len() + self.zeros[0].len()
    }

    /// Returns whether entries have weights.
    pub fn is_weighted(&self) -> bool {
        self.weights.are_given()
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the name that error messages use.
    pub fn name(&self) -> &str {
        self.view.name()
    }

    /// Returns the original columns, without sampled zeros. Their contents may have changed since they were validated.
    pub fn view(&self) -> &CooView<'a> {
        &self.view
    }

    /// Copies the entries of `range` into `chunk`, with the compact row numbers of `maps` (one map per mode). Every index
    /// and value is read once and checked again: one that changed since the problem was built is an error. Entries of
    /// weight 0 are left out.
    ///
    /// # Panics
    /// If the range is out of bounds, or the number of maps is not the number of modes.
    pub fn read_chunk(
        &self,
        maps: &[&RowMap],
        range: Range<usize>,
        chunk: &mut EntryChunk,
    ) -> Result<()> {
        self.read_selected(maps, range, AffineMap::IDENTITY, None, chunk)
    }

    /// As [`read_chunk`](Self::read_chunk), but maps the values before they are rounded to `f32`, which keeps small differences
    /// of large values. Only entries whose number satisfies `is_selected` are copied.
    pub(crate) fn read_selected(
        &self,
        maps: &[&RowMap],
        range: Range<usize>,
        map: AffineMap,
        is_selected: Option<&dyn Fn(usize) -> bool>,
        chunk: &mut EntryChunk,
    ) -> Result<()> {
        assert_eq!(maps.len(), self.view.order());
        let observed = self.view.len();
        match is_selected {
            None => {
                let zeros = range.start.max(observed)..range.end.max(observed);
                let listed = range.start.min(observed)..range.end.min(observed);
                self.read_entries(maps, listed, zeros, map, chunk)
            }
            Some(is_selected) => {
                let mut selected: Vec<usize> = try_with_capacity(range.len(), "entries")?;
                selected.extend(range.filter(|&i| is_selected(i)));
                let listed = selected.partition_point(|&i| i < observed);
                let (listed, zeros) = selected.split_at(listed);
                let [listed, zeros] = [listed, zeros].map(|numbers| numbers.iter().copied());
                self.read_entries(maps, listed, zeros, map, chunk)
            }
        }
    }

    /// Copies entries with these numbers: first those that are `listed` in the view, then sampled zeros.
    fn read_entries(
        &self,
        maps: &[&RowMap],
        listed: impl ExactSizeIterator<Item = usize> + Clone,
        zeros: impl ExactSizeIterator<Item = usize> + Clone,
        map: AffineMap,
        chunk: &mut EntryChunk,
    ) -> Result<()> {
        let v = &self.view;
        let count = listed.len() + zeros.len();
        chunk.rows.resize(v.order(), Vec::new());
        clear_and_reserve(&mut chunk.values, count)?;
        for i in listed.clone() {
            let given = v.values().get(i);
            let value = map.apply(given) as f32;
            if !value.is_finite() {
                return Err(self.changed(i));
            }
            chunk.values.push(value);
        }
        chunk.values.resize(count, map.apply(0.0) as f32);
        chunk.weights.clear();
        if self.is_weighted() {
            clear_and_reserve(&mut chunk.weights, count)?;
            for i in listed.clone() {
                let weight = self.weights.get(i);
                if !(weight.is_finite() && weight >= 0.0) {
                    return Err(self.changed(i));
                }
                chunk.weights.push(weight);
            }
        }
        let EntryChunk { rows, weights, .. } = chunk;
        for (n, map) in maps.iter().enumerate() {
            let out = &mut rows[n];
            clear_and_reserve(out, count)?;
            let indices = v.column(n);
            for (k, i) in listed.clone().enumerate() {
                out.push(match map.compact(indices[i]) {
                    Some(row) => row,
                    // Removed by `retain_weighted` below.
                    None if weights.get(k) == Some(&0.0) => u32::MAX,
                    None => return Err(self.changed(i)),
                });
            }
            for i in zeros.clone() {
                match map.compact(self.zeros[n][i - v.len()]) {
                    Some(row) => out.push(row),
                    None => return Err(self.changed(i)),
                }
            }
        }
        chunk.retain_weighted();
        Ok(())
    }

    /// Returns the error of an entry that changed since the problem was built.
    fn changed(&self, i: usize) -> Error {
        Error::entry(
            self.name(),
            i as u64,
            "is not what it was when the problem was built; do not change a file in use, or open it \
             as a private copy",
        )
    }
}

/// Empties a vector and reserves capacity for `count` entries.
fn clear_and_reserve<T>(vector: &mut Vec<T>, count: usize) -> Result<()> {
    vector.clear();
    try_reserve(vector, count, "entries")
}
