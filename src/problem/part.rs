//! The entries of a tensor or matrix, handed out with compact indices.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::format::{CooView, RowMap};
use crate::kernel::EntryChunk;

/// The entries of one tensor or matrix of a problem, still where they came from.
pub struct EntrySource<'a> {
    pub(crate) view: CooView<'a>,
    /// Cells of a matrix that are 0 and count as entries behind those of the view: rows and columns.
    pub(super) zeros: [Vec<u32>; 2],
}

impl<'a> EntrySource<'a> {
    /// The entries of a view and nothing else.
    pub(super) fn new(view: CooView<'a>) -> EntrySource<'a> {
        EntrySource {
            view,
            zeros: Default::default(),
        }
    }

    /// The number of entries, also of those that weigh nothing.
    pub fn len(&self) -> usize {
        self.view.len() + self.zeros[0].len()
    }

    /// Whether entries have weights.
    pub fn is_weighted(&self) -> bool {
        self.view.weights().is_some()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What errors call it.
    pub fn name(&self) -> &str {
        self.view.name()
    }

    /// The original columns, as they are and without zeros that were drawn: nothing about them can be
    /// relied on.
    pub fn view(&self) -> &CooView<'a> {
        &self.view
    }

    /// Copies the entries of `range` into `chunk`, with the compact numbers that `maps` (one per
    /// mode) give their rows. Every index and value is read once and checked; what was not there
    /// when the problem was built is an error. An entry of weight 0 is left out.
    ///
    /// # Panics
    /// If the range is not inside, or there are not as many maps as modes.
    pub fn read_chunk(
        &self,
        maps: &[&RowMap],
        range: Range<usize>,
        chunk: &mut EntryChunk,
    ) -> Result<()> {
        self.read_selected(maps, range, 0.0, None, chunk)
    }

    /// The same, with values counted from `zero`: so small differences of large values are not lost.
    /// Only entries that `chosen` says, by their number among all, are copied.
    pub(crate) fn read_selected(
        &self,
        maps: &[&RowMap],
        range: Range<usize>,
        zero: f64,
        chosen: Option<&dyn Fn(usize) -> bool>,
        chunk: &mut EntryChunk,
    ) -> Result<()> {
        let v = &self.view;
        assert_eq!(maps.len(), v.order());
        let (listed, first) = (v.len(), range.start);
        let drawn = range.start.max(listed) - listed..range.end.max(listed) - listed;
        let range = range.start.min(listed)..range.end.min(listed);
        chunk.rows.resize(v.order(), Vec::new());
        let floats = |values: crate::format::Values<'_>, zero: f64, out: &mut Vec<f32>| {
            out.clear();
            for i in range.clone() {
                let value = (values.get(i) - zero) as f32;
                if !value.is_finite() {
                    return Err(self.changed(i));
                }
                out.push(value);
            }
            Ok(())
        };
        floats(v.values(), zero, &mut chunk.values)?;
        let with_zeros = chunk.values.len() + drawn.len();
        chunk.values.resize(with_zeros, -zero as f32);
        chunk.weights.clear();
        if let Some(weights) = v.weights() {
            floats(weights, 0.0, &mut chunk.weights)?;
            if let Some(k) = chunk.weights.iter().position(|&w| w < 0.0) {
                return Err(self.changed(range.start + k));
            }
        }
        let EntryChunk { rows, weights, .. } = chunk;
        for (n, map) in maps.iter().enumerate() {
            let out = &mut rows[n];
            out.clear();
            for (k, &index) in v.column(n)[range.clone()].iter().enumerate() {
                match map.compact(index) {
                    Some(row) => out.push(row),
                    // It is left out below.
                    None if weights.get(k) == Some(&0.0) => out.push(u32::MAX),
                    None => return Err(self.changed(range.start + k)),
                }
            }
            for k in drawn.clone() {
                match map.compact(self.zeros[n][k]) {
                    Some(row) => out.push(row),
                    None => return Err(self.changed(listed + k)),
                }
            }
        }
        if let Some(chosen) = chosen {
            chunk.retain(|k| chosen(first + k));
        }
        chunk.retain_weighted();
        Ok(())
    }

    fn changed(&self, i: usize) -> Error {
        Error::entry(
            self.name(),
            i as u64,
            "is not what it was when the problem was built; do not change a file in use, or open it \
             as a private copy",
        )
    }
}
