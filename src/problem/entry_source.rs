//! The entries of a tensor or matrix, read in chunks with compact row numbers.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::format::{CooView, RowMap, Values};
use crate::kernel::EntryChunk;
use crate::try_alloc::try_reserve;

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
        let v = &self.view;
        assert_eq!(maps.len(), v.order());
        let (observed, first) = (v.len(), range.start);
        let zeros = range.start.max(observed) - observed..range.end.max(observed) - observed;
        let range = range.start.min(observed)..range.end.min(observed);
        chunk.rows.resize(v.order(), Vec::new());
        let copy_floats = |values: Values<'_>, offset: f64, out: &mut Vec<f32>| {
            clear_and_reserve(out, range.len() + zeros.len())?;
            for i in range.clone() {
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
        let with_zeros = chunk.values.len() + zeros.len();
        chunk.values.resize(with_zeros, -offset as f32);
        chunk.weights.clear();
        if let Some(weights) = v.weights() {
            copy_floats(weights, 0.0, &mut chunk.weights)?;
            if let Some(k) = chunk.weights.iter().position(|&w| w < 0.0) {
                return Err(self.changed(range.start + k));
            }
        }
        let EntryChunk { rows, weights, .. } = chunk;
        for (n, map) in maps.iter().enumerate() {
            let out = &mut rows[n];
            clear_and_reserve(out, range.len() + zeros.len())?;
            out.resize(range.len(), 0);
            let indices = v.column(n)[range.clone()].iter();
            for (k, (row, &index)) in out.iter_mut().zip(indices).enumerate() {
                *row = match map.compact(index) {
                    Some(row) => row,
                    // Removed by `retain_weighted` below.
                    None if weights.get(k) == Some(&0.0) => u32::MAX,
                    None => return Err(self.changed(range.start + k)),
                };
            }
            for k in zeros.clone() {
                match map.compact(self.zeros[n][k]) {
                    Some(row) => out.push(row),
                    None => return Err(self.changed(observed + k)),
                }
            }
        }
        if let Some(is_selected) = is_selected {
            chunk.retain(|k| is_selected(first + k));
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
