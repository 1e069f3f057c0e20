//! Tensor entries grouped by the rows of one mode, in compressed sparse row (CSR) form.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::progress::{Monitor, check_cancelled};
use crate::try_alloc::{try_collect, try_to_vec, try_zeroed};

/// Number of entries between two polls for a cancellation. Each takes a few memory accesses that miss the cache.
const ENTRIES_PER_POLL: usize = 1 << 20;

/// Entries in coordinate form, borrowed: the input of [`ModeCsr::new`].
#[derive(Clone, Copy)]
pub(crate) struct CooSlices<'a> {
    /// Number of rows of each mode.
    pub row_counts: &'a [usize],
    /// Row indices, one entry after the other, one index per mode.
    pub rows: &'a [u32],
    /// One value per entry.
    pub values: &'a [f32],
    /// One weight per entry; empty if entries are unweighted.
    pub weights: &'a [f32],
}

/// The entries of a tensor or matrix, grouped by their row of one mode.
///
/// Within a row, entries are sorted by the other modes, the mode with the fewest rows first, so that
/// neighbouring entries share most of their rows. [`ModeCsr::new`] checks every row index against the
/// number of rows of its mode; kernels rely on that.
pub(crate) struct ModeCsr {
    /// The other modes, in the order in which an entry record stores its rows.
    other_modes: Vec<usize>,
    /// Number of rows of each of [`Self::other_modes`].
    other_row_counts: Vec<usize>,
    /// The CSR row pointer: first entry of each row, and the number of entries at the end.
    row_starts: Vec<usize>,
    /// One record of `order` words per entry: its rows of the other modes, then the bits of its value.
    records: Vec<u32>,
    /// One weight per entry; empty if entries are unweighted.
    weights: Vec<f32>,
}

impl ModeCsr {
    /// Groups `entries` by their row of `mode`, by a stable radix sort: O(order * (entries + rows)).
    ///
    /// # Panics
    /// If the slices disagree in length or a row index is out of range.
    pub(crate) fn new(
        mode: usize,
        entries: CooSlices<'_>,
        monitor: &dyn Monitor,
    ) -> Result<ModeCsr> {
        let CooSlices {
            row_counts,
            rows,
            values,
            weights,
        } = entries;
        let order = row_counts.len();
        assert!(weights.is_empty() || weights.len() == values.len());
        assert_eq!(rows.len(), order * values.len());
        if values.len() > u32::MAX as usize {
            return Err(Error::argument(format!(
                "{} entries; als and gibbs take at most {}",
                values.len(),
                u32::MAX
            )));
        }
        for (k, &row) in rows.iter().enumerate() {
            assert!((row as usize) < row_counts[k % order], "row out of range");
        }
        let mut other_modes: Vec<usize> = (0..order).filter(|&m| m != mode).collect();
        other_modes.sort_by_key(|&m| row_counts[m]);
        // Least significant mode first: each counting sort keeps the order of the passes before it.
        let mut permutation: Vec<u32> = try_zeroed(values.len(), "entries")?;
        permutation
            .iter_mut()
            .enumerate()
            .for_each(|(i, p)| *p = i as u32);
        let mut sorted: Vec<u32> = try_zeroed(values.len(), "entries")?;
        let mut row_starts = Vec::new();
        for &m in other_modes.iter().rev().chain([&mode]) {
            row_starts = try_zeroed(row_counts[m] + 1, "rows")?;
            let row = |p: u32| rows[p as usize * order + m] as usize;
            for part in permutation.chunks(ENTRIES_PER_POLL) {
                check_cancelled(monitor)?;
                part.iter().for_each(|&p| row_starts[row(p) + 1] += 1);
            }
            for i in 0..row_counts[m] {
                row_starts[i + 1] += row_starts[i];
            }
            let mut next = try_to_vec(&row_starts, "rows")?;
            for part in permutation.chunks(ENTRIES_PER_POLL) {
                check_cancelled(monitor)?;
                for &p in part {
                    let slot = &mut next[row(p)];
                    sorted[*slot] = p;
                    *slot += 1;
                }
            }
            std::mem::swap(&mut permutation, &mut sorted);
        }
        drop(sorted);
        let mut records: Vec<u32> = try_zeroed(rows.len(), "indices")?;
        for (i, &p) in permutation.iter().enumerate() {
            if i % ENTRIES_PER_POLL == 0 {
                check_cancelled(monitor)?;
            }
            let record = &mut records[i * order..][..order];
            for (slot, &m) in other_modes.iter().enumerate() {
                record[slot] = rows[p as usize * order + m];
            }
            record[order - 1] = values[p as usize].to_bits();
        }
        let sorted_weights = permutation[..weights.len()]
            .iter()
            .map(|&p| weights[p as usize]);
        Ok(ModeCsr {
            weights: try_collect(weights.len(), sorted_weights, "entries")?,
            other_row_counts: other_modes.iter().map(|&m| row_counts[m]).collect(),
            other_modes,
            row_starts,
            records,
        })
    }

    /// The other modes, in the order in which [`ModeCsr::other_rows`] returns an entry's rows.
    #[inline]
    pub(crate) fn other_modes(&self) -> &[usize] {
        &self.other_modes
    }

    /// Number of rows of each of [`ModeCsr::other_modes`].
    #[inline]
    pub(super) fn other_row_counts(&self) -> &[usize] {
        &self.other_row_counts
    }

    /// Number of rows of the mode that entries are grouped by.
    #[inline]
    pub(crate) fn row_count(&self) -> usize {
        self.row_starts.len() - 1
    }

    /// Number of entries.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.row_starts[self.row_count()]
    }

    /// The entries of a row.
    #[inline]
    pub(crate) fn row_entries(&self, row: usize) -> Range<usize> {
        self.row_starts[row]..self.row_starts[row + 1]
    }

    /// The records of some entries: for each the rows of the other modes, then the bits of the value.
    #[inline]
    pub(super) fn records(&self, entries: Range<usize>) -> &[u32] {
        let width = self.other_modes.len() + 1;
        &self.records[entries.start * width..entries.end * width]
    }

    /// The weights of some entries; empty if entries are unweighted.
    #[inline]
    pub(crate) fn weights(&self, entries: Range<usize>) -> &[f32] {
        if self.weights.is_empty() {
            &[]
        } else {
            &self.weights[entries]
        }
    }

    /// The weight of an entry: 1 if entries are unweighted.
    #[inline]
    pub(crate) fn weight(&self, entry: usize) -> f32 {
        self.weights.get(entry).copied().unwrap_or(1.0)
    }

    /// Sum of the weights of a row's entries: their number if they are unweighted.
    pub(crate) fn row_weight(&self, row: usize) -> f64 {
        let entries = self.row_entries(row);
        if self.weights.is_empty() {
            entries.len() as f64
        } else {
            self.weights[entries].iter().map(|&w| f64::from(w)).sum()
        }
    }

    /// Sum of all weights: the number of entries if they are unweighted.
    pub(crate) fn total_weight(&self) -> f64 {
        if self.weights.is_empty() {
            self.len() as f64
        } else {
            self.weights.iter().map(|&w| f64::from(w)).sum()
        }
    }

    /// The row that an entry belongs to, by binary search.
    pub(crate) fn row_of(&self, entry: usize) -> usize {
        self.row_starts[1..].partition_point(|&end| end <= entry)
    }

    /// The rows of an entry in the other modes.
    #[inline]
    pub(crate) fn other_rows(&self, entry: usize) -> &[u32] {
        let width = self.other_modes.len() + 1;
        &self.records[entry * width..(entry + 1) * width - 1]
    }

    /// The value of an entry.
    #[inline]
    pub(crate) fn value(&self, entry: usize) -> f32 {
        let width = self.other_modes.len() + 1;
        f32::from_bits(self.records[(entry + 1) * width - 1])
    }
}
