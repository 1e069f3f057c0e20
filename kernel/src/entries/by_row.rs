//! Tensor entries grouped by the rows of one mode, in compressed sparse row (CSR) form.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::progress::{Monitor, check_cancelled};
use crate::try_alloc::try_zeroed;

/// Number of entries between two polls for a cancellation. Each takes a few memory accesses that miss the cache.
const ENTRIES_PER_POLL: usize = 1 << 20;

/// Number of groups of rows that are sorted on their own, so that only the records of the groups at hand have further copies.
const ROW_GROUPS: usize = 8;

/// Entries in coordinate form, borrowed: the input of [`ModeCsr::new`].
#[derive(Clone, Copy)]
pub struct CooSlices<'a> {
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
#[derive(Clone)]
pub struct ModeCsr {
    mode: usize,
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

/// The entries of a group of rows of a [`ModeCsr`], to be filled in.
pub struct RowGroup<'a> {
    mode: usize,
    other_modes: &'a [usize],
    rows: Range<usize>,
    records: &'a mut [u32],
    weights: &'a mut [f32],
}

impl ModeCsr {
    /// Groups `entries` by their row of `mode`, by stable radix sorts: O(order * (entries + rows)).
    ///
    /// # Panics
    /// If the slices disagree in length or a row index is out of range.
    pub fn new(mode: usize, entries: CooSlices<'_>, monitor: &dyn Monitor) -> Result<ModeCsr> {
        let mut csr = ModeCsr::with_row_starts(mode, entries, monitor)?;
        for mut group in csr.row_groups() {
            group.fill(entries, monitor)?;
        }
        Ok(csr)
    }

    /// Counts the entries of each row and allocates their lists. The caller fills all of [`Self::row_groups`] from the same
    /// entries.
    ///
    /// # Panics
    /// If the slices disagree in length or a row index is out of range.
    pub fn with_row_starts(
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
                "{} entries; algorithms other than blocked, opt and naive take at most {}",
                values.len(),
                u32::MAX
            )));
        }
        let mut other_modes: Vec<usize> = (0..order).filter(|&m| m != mode).collect();
        other_modes.sort_by_key(|&m| row_counts[m]);
        for entries in rows.chunks(ENTRIES_PER_POLL * order) {
            check_cancelled(monitor)?;
            for entry in entries.chunks_exact(order) {
                let is_inside = |(&row, &count): (&u32, &usize)| (row as usize) < count;
                assert!(
                    entry.iter().zip(row_counts).all(is_inside),
                    "row out of range"
                );
            }
        }
        let key = RecordKey {
            width: order,
            slot: mode,
            first: 0,
        };
        let row_starts = key.bucket_starts(rows, row_counts[mode], monitor)?;
        Ok(ModeCsr {
            mode,
            records: try_zeroed(values.len() * order, "indices")?,
            weights: try_zeroed(weights.len(), "entries")?,
            other_row_counts: other_modes.iter().map(|&m| row_counts[m]).collect(),
            other_modes,
            row_starts,
        })
    }

    /// Divides the rows into groups with about the same number of entries.
    pub fn row_groups(&mut self) -> Vec<RowGroup<'_>> {
        let (count, row_count, width) = (self.len(), self.row_count(), self.other_modes.len() + 1);
        // Each group counts the rows of all modes.
        let max_rows = self.other_row_counts.iter().copied().max().unwrap_or(0);
        let has_groups = count >= ROW_GROUPS * max_rows.max(row_count);
        let group_count = if has_groups { ROW_GROUPS } else { 1 };
        let row_starts = &self.row_starts;
        let (mut records, mut weights) = (&mut self.records[..], &mut self.weights[..]);
        let mut groups = Vec::new();
        let mut first = 0;
        for k in 1..=group_count {
            let end = row_starts.partition_point(|&start| start < k * count / group_count);
            let end = if k < group_count {
                end.max(first)
            } else {
                row_count
            };
            let entries = row_starts[end] - row_starts[first];
            let of_group;
            (of_group, records) = records.split_at_mut(entries * width);
            let weights_of_group;
            (weights_of_group, weights) = weights.split_at_mut(entries.min(weights.len()));
            groups.push(RowGroup {
                mode: self.mode,
                other_modes: &self.other_modes,
                rows: first..end,
                records: of_group,
                weights: weights_of_group,
            });
            first = end;
        }
        groups
    }

    /// The other modes, in the order in which [`ModeCsr::other_rows`] returns an entry's rows.
    #[inline]
    pub fn other_modes(&self) -> &[usize] {
        &self.other_modes
    }

    /// Number of rows of each of [`ModeCsr::other_modes`].
    #[inline]
    pub fn other_row_counts(&self) -> &[usize] {
        &self.other_row_counts
    }

    /// Number of rows of the mode that entries are grouped by.
    #[inline]
    pub fn row_count(&self) -> usize {
        self.row_starts.len() - 1
    }

    /// Number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.row_starts[self.row_count()]
    }

    /// Returns the sum of the squared values of all cells. Entries of the same cell add up; they follow each other.
    pub fn sum_of_squares(&self) -> f64 {
        let mut sum = 0.0;
        for row in 0..self.row_count() {
            let mut cell = 0.0;
            let entries = self.row_entries(row);
            for entry in entries.clone() {
                cell += f64::from(self.value(entry));
                let next = entry + 1;
                if next == entries.end || self.other_rows(next) != self.other_rows(entry) {
                    sum += cell * cell;
                    cell = 0.0;
                }
            }
        }
        sum
    }

    /// The entries of a row.
    #[inline]
    pub fn row_entries(&self, row: usize) -> Range<usize> {
        self.row_starts[row]..self.row_starts[row + 1]
    }

    /// The records of some entries: for each the rows of the other modes, then the bits of the value.
    #[inline]
    pub fn records(&self, entries: Range<usize>) -> &[u32] {
        let width = self.other_modes.len() + 1;
        &self.records[entries.start * width..entries.end * width]
    }

    /// The weights of some entries; empty if entries are unweighted.
    #[inline]
    pub fn weights(&self, entries: Range<usize>) -> &[f32] {
        if self.weights.is_empty() {
            &[]
        } else {
            &self.weights[entries]
        }
    }

    /// The weight of an entry: 1 if entries are unweighted.
    #[inline]
    pub fn weight(&self, entry: usize) -> f32 {
        self.weights.get(entry).copied().unwrap_or(1.0)
    }

    /// Replaces the weights of all entries; none for unweighted entries.
    ///
    /// # Panics
    /// If their number is wrong.
    pub fn set_weights(&mut self, weights: Vec<f32>) {
        assert!(weights.is_empty() || weights.len() == self.len());
        self.weights = weights;
    }

    /// Replaces the values of all entries.
    ///
    /// # Panics
    /// If their number is wrong.
    pub fn set_values(&mut self, values: impl IntoIterator<Item = f32>) {
        let mut values = values.into_iter();
        self.map_values(|_| values.next().expect("one value per entry"));
        assert!(values.next().is_none());
    }

    /// Replaces the value of each entry by a function of it.
    pub fn map_values(&mut self, mut f: impl FnMut(f32) -> f32) {
        let width = self.other_modes.len() + 1;
        for record in self.records.chunks_exact_mut(width) {
            let value = &mut record[width - 1];
            *value = f(f32::from_bits(*value)).to_bits();
        }
    }

    /// Returns the weights of all entries; none if entries are unweighted.
    pub fn into_weights(self) -> Vec<f32> {
        self.weights
    }

    /// Sum of the weights of a row's entries: their number if they are unweighted.
    #[inline]
    pub fn row_weight(&self, row: usize) -> f64 {
        let entries = self.row_entries(row);
        if self.weights.is_empty() {
            entries.len() as f64
        } else {
            self.weights[entries].iter().map(|&w| f64::from(w)).sum()
        }
    }

    /// Sum of all weights: the number of entries if they are unweighted.
    pub fn total_weight(&self) -> f64 {
        if self.weights.is_empty() {
            self.len() as f64
        } else {
            self.weights.iter().map(|&w| f64::from(w)).sum()
        }
    }

    /// The row that an entry belongs to, by binary search.
    #[inline]
    pub fn row_of(&self, entry: usize) -> usize {
        self.row_starts[1..].partition_point(|&end| end <= entry)
    }

    /// The rows of an entry in the other modes.
    #[inline]
    pub fn other_rows(&self, entry: usize) -> &[u32] {
        let width = self.other_modes.len() + 1;
        &self.records[entry * width..(entry + 1) * width - 1]
    }

    /// The value of an entry.
    #[inline]
    pub fn value(&self, entry: usize) -> f32 {
        let width = self.other_modes.len() + 1;
        f32::from_bits(self.records[(entry + 1) * width - 1])
    }
}

impl RowGroup<'_> {
    /// Sorts the entries of the group's rows among all `entries`.
    pub fn fill(&mut self, entries: CooSlices<'_>, monitor: &dyn Monitor) -> Result<()> {
        let (order, is_weighted) = (entries.row_counts.len(), !entries.weights.is_empty());
        // While they are sorted, records also have their row of `mode` and the bits of their weight, behind the value.
        let width = order + 1 + usize::from(is_weighted);
        let count = self.records.len() / order;
        let mut sorted: Vec<u32> = try_zeroed(count * width, "indices")?;
        let mut records = sorted.chunks_exact_mut(width);
        for (i, entry) in entries.rows.chunks_exact(order).enumerate() {
            if i % ENTRIES_PER_POLL == 0 {
                check_cancelled(monitor)?;
            }
            if !self.rows.contains(&(entry[self.mode] as usize)) {
                continue;
            }
            let record = records.next().expect("an entry was not counted");
            for (to, &m) in record.iter_mut().zip(self.other_modes) {
                *to = entry[m];
            }
            (record[order - 1], record[order]) = (entries.values[i].to_bits(), entry[self.mode]);
            if is_weighted {
                record[order + 1] = entries.weights[i].to_bits();
            }
        }
        // Least significant mode first: each counting sort keeps the order of the passes before it.
        for slot in (0..order - 1).rev() {
            let key = RecordKey {
                width,
                slot,
                first: 0,
            };
            let key_count = entries.row_counts[self.other_modes[slot]];
            let starts = key.bucket_starts(&sorted, key_count, monitor)?;
            let mut by_key: Vec<u32> = try_zeroed(sorted.len(), "indices")?;
            key.for_each_sorted(&sorted, starts, monitor, |at, record| {
                let to = &mut by_key[at * width..][..width];
                to.iter_mut().zip(record).for_each(|(to, &word)| *to = word);
            })?;
            sorted = by_key;
        }
        let key = RecordKey {
            width,
            slot: order,
            first: self.rows.start,
        };
        let starts = key.bucket_starts(&sorted, self.rows.len(), monitor)?;
        key.for_each_sorted(&sorted, starts, monitor, |at, record| {
            let to = &mut self.records[at * order..][..order];
            to.iter_mut().zip(record).for_each(|(to, &word)| *to = word);
            if let Some(weight) = self.weights.get_mut(at) {
                *weight = f32::from_bits(record[order + 1]);
            }
        })
    }
}

/// The word of a record that a counting sort sorts by.
struct RecordKey {
    /// Words per record.
    width: usize,
    /// Position of the key in a record.
    slot: usize,
    /// Smallest key.
    first: usize,
}

impl RecordKey {
    /// Returns the position of the first record of each of `count` keys among sorted records, and the number of records at
    /// the end.
    fn bucket_starts(
        &self,
        records: &[u32],
        count: usize,
        monitor: &dyn Monitor,
    ) -> Result<Vec<usize>> {
        let mut starts: Vec<usize> = try_zeroed(count + 1, "rows")?;
        for part in records.chunks(ENTRIES_PER_POLL * self.width) {
            check_cancelled(monitor)?;
            for record in part.chunks_exact(self.width) {
                starts[record[self.slot] as usize - self.first + 1] += 1;
            }
        }
        for i in 0..count {
            starts[i + 1] += starts[i];
        }
        Ok(starts)
    }

    /// Calls `visit` with each record and its position among records that are stably sorted by their key. `next` are the
    /// positions of the first record of each key.
    fn for_each_sorted(
        &self,
        records: &[u32],
        mut next: Vec<usize>,
        monitor: &dyn Monitor,
        mut visit: impl FnMut(usize, &[u32]),
    ) -> Result<()> {
        for part in records.chunks(ENTRIES_PER_POLL * self.width) {
            check_cancelled(monitor)?;
            for record in part.chunks_exact(self.width) {
                let slot = &mut next[record[self.slot] as usize - self.first];
                visit(*slot, record);
                *slot += 1;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::splitmix64;

    #[test]
    fn entries_are_sorted_stably_with_and_without_groups() {
        // Many entries of the same cells, and fewer entries than rows in groups.
        for (count, sizes) in [(3000, [40, 7, 9]), (300, [200, 7, 90]), (0, [3, 1, 2])] {
            let row = |i: usize, m: usize| splitmix64((3 * i + m) as u64) as usize % sizes[m];
            let rows = (0..3 * count).map(|k| row(k / 3, k % 3) as u32);
            let rows: Vec<u32> = rows.collect();
            let values: Vec<f32> = (0..count).map(|i| i as f32).collect();
            let weights: Vec<f32> = values.iter().map(|x| 0.5 * x).collect();
            let entries = CooSlices {
                row_counts: &sizes,
                rows: &rows,
                values: &values,
                weights: &weights,
            };
            for mode in 0..3 {
                let csr = ModeCsr::new(mode, entries, &()).unwrap();
                let others = csr.other_modes();
                let mut expected: Vec<usize> = (0..count).collect();
                expected.sort_by_key(|&i| (row(i, mode), row(i, others[0]), row(i, others[1])));
                assert_eq!(csr.len(), count);
                for (k, &i) in expected.iter().enumerate() {
                    let found = (csr.row_of(k), csr.value(k), csr.weight(k));
                    assert_eq!(found, (row(i, mode), values[i], weights[i]));
                    let of_entry = csr.other_rows(k).iter().zip(others);
                    assert!(of_entry.clone().all(|(&r, &m)| r as usize == row(i, m)));
                }
            }
        }
    }
}
