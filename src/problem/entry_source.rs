//! The entries of a tensor or matrix, read in chunks with compact row numbers.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::format::{CooView, RowMap, Values};
use crate::kernel::EntryChunk;
use crate::try_alloc::{try_reserve, try_with_capacity};

/// The entries of one tensor or matrix of a problem, in the columns they came in.
pub struct EntrySource<'a> {
    pub(crate) view: CooView<'a>,
    /// Rows and columns of sampled zeros, which count as entries behind those of the view.
    pub(super) zeros: [Vec<u32>; 2],
}

impl<'a> EntrySource<'a> {
    /// Makes a source of the entries of a view, without sampled zeros.
    pub(super) fn new(view: CooView<'a>) -> EntrySource<'a> {
        EntrySource {
            view,
            zeros: Default::default(),
        }
    }

    /// Returns the number of entries, including those of weight 0.
    pub fn len(&self) -> usize {
        self.view.len() + self.zeros[0].len()
    }

    /// Returns whether entries have weights.
    pub fn is_weighted(&self) -> bool {
        self.view.weights().is_some()
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
        self.read_selected(maps, range, 0.0, None, chunk)
    }

    /// As [`read_chunk`](Self::read_chunk), but subtracts `offset` from the values before they are rounded to `f32`, which
    /// keeps small differences of large values. Only entries whose number satisfies `is_selected` are copied.
    pub(crate) fn read_selected(
        &self,
        maps: &[&RowMap],
        range: Range<usize>,
        offset: f64,
        is_selected: Option<&dyn Fn(usize) -> bool>,
        chunk: &mut EntryChunk,
    ) -> Result<()> {
        assert_eq!(maps.len(), self.view.order());
        let observed = self.view.len();
        match is_selected {
            None => {
                let zeros = range.start.max(observed)..range.end.max(observed);
                let listed = range.start.min(observed)..range.end.min(observed);
                self.read_entries(maps, listed, zeros, offset, chunk)
            }
            Some(is_selected) => {
                let mut selected: Vec<usize> = try_with_capacity(range.len(), "entries")?;
                selected.extend(range.filter(|&i| is_selected(i)));
                let listed = selected.partition_point(|&i| i < observed);
                let (listed, zeros) = selected.split_at(listed);
                let [listed, zeros] = [listed, zeros].map(|numbers| numbers.iter().copied());
                self.read_entries(maps, listed, zeros, offset, chunk)
            }
        }
    }

    /// Copies entries with these numbers: first those that are `listed` in the view, then sampled zeros.
    fn read_entries(
        &self,
        maps: &[&RowMap],
        listed: impl ExactSizeIterator<Item = usize> + Clone,
        zeros: impl ExactSizeIterator<Item = usize> + Clone,
        offset: f64,
        chunk: &mut EntryChunk,
    ) -> Result<()> {
        let v = &self.view;
        let count = listed.len() + zeros.len();
        chunk.rows.resize(v.order(), Vec::new());
        let copy_floats = |values: Values<'_>, offset: f64, out: &mut Vec<f32>| {
            clear_and_reserve(out, count)?;
            for i in listed.clone() {
                let given = values.get(i);
                let value = (given - offset) as f32;
                if !(given as f32).is_finite() {
                    return Err(self.changed(i));
                }
                if !value.is_finite() {
                    return Err(self.too_large(i, given, offset));
                }
                out.push(value);
            }
            Ok(())
        };
        copy_floats(v.values(), offset, &mut chunk.values)?;
        chunk.values.resize(count, -offset as f32);
        chunk.weights.clear();
        if let Some(weights) = v.weights() {
            copy_floats(weights, 0.0, &mut chunk.weights)?;
            let mut weights = chunk.weights.iter().zip(listed.clone());
            if let Some((_, i)) = weights.find(|(weight, _)| **weight < 0.0) {
                return Err(self.changed(i));
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

    /// Returns the error of a value whose difference to the mean is no 32-bit number.
    fn too_large(&self, i: usize, value: f64, mean: f64) -> Error {
        Error::entry(
            self.name(),
            i as u64,
            format!(
                "has the value {value:e}, and its difference to the mean {mean:e} exceeds the range of 32-bit numbers; \
                 scale the values down, for example to a standard deviation near 1"
            ),
        )
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
