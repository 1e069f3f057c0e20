//! A block of entries in the layout of the kernels, its fiber batches, and the number of entries of each of its rows.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::chunk::{SortedChunk, concat_records, radix_sort};
use super::grid::BlockingSpec;
use crate::error::{Error, Result};
use crate::graph_update::Edges;
use crate::random::RandomStream;
use crate::shape::core_shape::MAX_ORDER;
use crate::try_alloc::{try_collect, try_with_capacity, try_zeroed};

/// Consecutive entries of a block that share their row of the fiber mode. Without a fiber mode all entries of a
/// block form one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FiberRun {
    /// The shared row; 0 without a fiber mode.
    pub fiber_row: u32,
    /// Index of the first entry.
    pub start: u32,
    /// Number of entries.
    pub len: u32,
}

/// `len` consecutive entries of a run from entry `first` of the run on. The run is cyclic: its first entry
/// follows its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FiberBatch {
    pub(crate) run: FiberRun,
    pub(crate) first: u32,
    pub(crate) len: u32,
}

impl FiberBatch {
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// Cuts the batch evenly into batches of at most `max_len` entries.
    pub(crate) fn pieces(self, max_len: usize) -> impl Iterator<Item = FiberBatch> {
        even_pieces(self.len, max_len).map(move |Range { start, end }| FiberBatch {
            run: self.run,
            first: rotated(start, self.first, self.run.len),
            len: end - start,
        })
    }

    /// Returns the records of the batch in `block` as two slices: up to the end of the run, and from its start.
    #[inline]
    pub(crate) fn record_slices<'a>(&self, block: &'a EntryBlock) -> [&'a [u32]; 2] {
        let width = block.record_words();
        let run =
            &block.records[self.run.start as usize * width..][..self.run.len as usize * width];
        let (first, len) = (self.first as usize, self.len as usize);
        let end = (first + len).min(self.run.len as usize);
        let wrapped = first + len - end;
        [&run[first * width..end * width], &run[..wrapped * width]]
    }
}

/// The entries of one block. The constructors check that every row lies within the row counts and, for a cut
/// mode, in the block's part; nothing changes rows afterwards. Kernels rely on this.
pub struct EntryBlock {
    spec: Arc<BlockingSpec>,
    index: usize,
    /// For each entry its rows of the non-fiber modes, the bits of its value and, if entries have weights, the
    /// bits of its weight.
    records: Vec<u32>,
    runs: Vec<FiberRun>,
    /// Sum of the weights; the number of entries if they have none.
    total_weight: f64,
    /// The values before biases were subtracted; empty if none were.
    original_values: Vec<f32>,
    row_counts: RowCounts,
}

impl EntryBlock {
    /// Builds block `index` from all sorted chunks. The entries of a run are in random order.
    ///
    /// # Panics
    /// If an entry does not belong to the block.
    pub fn new(
        spec: &Arc<BlockingSpec>,
        chunks: &[SortedChunk],
        index: usize,
    ) -> Result<EntryBlock> {
        let (order, width) = (spec.order(), spec.full_record_words());
        let unsorted = concat_records(spec, chunks, index)?;
        let n = unsorted.len() / width;
        if n >= u32::MAX as usize {
            return Err(Error::argument(format!(
                "a block of {n} entries; at most {} are possible, with more threads there are more blocks",
                u32::MAX - 1
            )));
        }
        let coordinates = spec.coordinates(index);
        for record in unsorted.chunks_exact(width) {
            for (m, &row) in record[..order].iter().enumerate() {
                let in_part = match &spec.cuts[m] {
                    Some(cut) => {
                        (row as usize) < cut.partition.row_count()
                            && usize::from(cut.partition.part_of(row)) == coordinates[cut.axis]
                    }
                    None => true,
                };
                assert!(
                    in_part && (row as usize) < spec.row_counts[m],
                    "an entry in the wrong block"
                );
            }
        }
        let mut stream = RandomStream::new(&[spec.seed, index as u64]);
        let mut sequence: Vec<u32> = try_collect(n, 0..n as u32, "entries")?;
        for i in (1..n).rev() {
            sequence.swap(i, stream.below(i as u64 + 1) as usize);
        }
        let mut runs = Vec::new();
        match spec.fiber_mode {
            Some(f) => {
                let fiber_row = |i: u32| unsorted[i as usize * width + f];
                radix_sort(&mut sequence, spec.row_counts[f], fiber_row)?;
                add_runs(n, |k| fiber_row(sequence[k]), &mut runs);
            }
            None => runs.extend(single_run(n)),
        }
        let non_fiber = spec.non_fiber_modes();
        let mut records = try_with_capacity(n * spec.record_words(), "words of entries")?;
        for &i in &sequence {
            let record = &unsorted[i as usize * width..][..width];
            for &m in &non_fiber {
                records.push(record[m]);
            }
            records.extend_from_slice(&record[order..]);
        }
        Ok(EntryBlock {
            index,
            total_weight: total_weight(spec, &records),
            spec: spec.clone(),
            records,
            runs,
            original_values: Vec::new(),
            row_counts: RowCounts::default(),
        })
    }

    /// Builds the only block of a blocking without cuts. `rows` has the rows of one entry after the other, one per mode.
    /// Entries of the same run keep their order. A fiber may have several runs if there are many more fibers than entries.
    ///
    /// # Panics
    /// If an entry has a row beyond the row counts, a length does not match, or the blocking has a cut.
    pub fn from_entries(
        spec: &Arc<BlockingSpec>,
        rows: &[u32],
        values: &[f32],
        weights: &[f32],
    ) -> Result<EntryBlock> {
        // With a constant number of rows the compiler unrolls loops.
        match spec.order() {
            2 => Self::from_entries_of_order::<2>(spec, rows, values, weights),
            3 => Self::from_entries_of_order::<3>(spec, rows, values, weights),
            _ => Self::from_entries_of_order::<0>(spec, rows, values, weights),
        }
    }

    /// Builds a block with entries of `ORDER` rows, any number if it is 0.
    fn from_entries_of_order<const ORDER: usize>(
        spec: &Arc<BlockingSpec>,
        rows: &[u32],
        values: &[f32],
        weights: &[f32],
    ) -> Result<EntryBlock> {
        let (n, width) = (values.len(), spec.record_words());
        let order = if ORDER > 0 { ORDER } else { spec.order() };
        let row_counts = &spec.row_counts[..order];
        assert!(spec.cuts.iter().all(Option::is_none));
        assert!(rows.len() == n * order && n < u32::MAX as usize);
        assert_eq!(weights.len(), if spec.weighted { n } else { 0 });
        // A counting sort by fiber row, or by its leading bits if there are many more rows than entries: hardly any entries
        // share a row then.
        let row_count = spec.fiber_mode.map_or(0, |f| spec.row_counts[f]);
        let mut shift = 0;
        while row_count >> shift > 4 * n {
            shift += 1;
        }
        let mut next: Vec<u32> = try_zeroed((row_count >> shift) + 2, "rows")?;
        let mut fiber_rows: Vec<u32> = Vec::new();
        if let Some(f) = spec.fiber_mode {
            fiber_rows = try_zeroed(n, "entries")?;
            for i in 0..n {
                next[(rows[i * order + f] >> shift) as usize + 1] += 1;
            }
            for bucket in 1..next.len() {
                next[bucket] += next[bucket - 1];
            }
        }
        let mut records = try_zeroed(n * width, "words of entries")?;
        let mut exist = true;
        // Plain loops, which the compiler optimizes better than nested iterator adapters.
        for i in 0..n {
            let rows = &rows[i * order..(i + 1) * order];
            let mut slot = i;
            if let Some(f) = spec.fiber_mode {
                let next = &mut next[(rows[f] >> shift) as usize];
                slot = *next as usize;
                *next += 1;
                fiber_rows[slot] = rows[f];
            }
            let record = &mut records[slot * width..(slot + 1) * width];
            let mut at = 0;
            for m in 0..order {
                exist &= (rows[m] as usize) < row_counts[m];
                if spec.fiber_mode != Some(m) {
                    record[at] = rows[m];
                    at += 1;
                }
            }
            record[at] = values[i].to_bits();
            if spec.weighted {
                record[at + 1] = weights[i].to_bits();
            }
        }
        assert!(exist, "an entry with a row that does not exist");
        let mut runs = Vec::new();
        match spec.fiber_mode {
            Some(_) => add_runs(n, |k| fiber_rows[k], &mut runs),
            None => runs.extend(single_run(n)),
        }
        Ok(EntryBlock {
            index: 0,
            total_weight: total_weight(spec, &records),
            spec: spec.clone(),
            records,
            runs,
            original_values: Vec::new(),
            row_counts: RowCounts::default(),
        })
    }

    /// Builds a block from complete records, for a blocking without cuts and fiber mode. Its index is 0 until
    /// [`Self::set_index`].
    ///
    /// # Panics
    /// If an entry has a row beyond the row counts, or the blocking has a cut or a fiber mode.
    pub(crate) fn from_records(spec: &Arc<BlockingSpec>, records: Vec<u32>) -> EntryBlock {
        let (order, width) = (spec.order(), spec.full_record_words());
        assert!(spec.fiber_mode.is_none() && spec.cuts.iter().all(Option::is_none));
        assert!(records.len().is_multiple_of(width) && records.len() / width < u32::MAX as usize);
        for record in records.chunks_exact(width) {
            let mut rows = record[..order].iter().zip(&spec.row_counts);
            assert!(rows.all(|(&row, &row_count)| (row as usize) < row_count));
        }
        EntryBlock {
            index: 0,
            runs: single_run(records.len() / width).into_iter().collect(),
            total_weight: total_weight(spec, &records),
            spec: spec.clone(),
            records,
            original_values: Vec::new(),
            row_counts: RowCounts::default(),
        }
    }

    /// Sets each value to the value as built minus the biases of the entry's rows.
    ///
    /// # Panics
    /// If a row has no bias.
    pub fn subtract_biases(&mut self, biases: &[&[f32]]) -> Result<()> {
        let (width, non_fiber) = (self.record_words(), self.spec.non_fiber_modes());
        if self.original_values.is_empty() {
            let value_at = non_fiber.len();
            let values = self.records.chunks_exact(width);
            let values = values.map(|record| f32::from_bits(record[value_at]));
            self.original_values = try_collect(self.len(), values, "entries")?;
        }
        let row_biases: Vec<&[f32]> = non_fiber.iter().map(|&m| biases[m]).collect();
        for run in &self.runs {
            let fiber_mode = self.spec.fiber_mode;
            let fiber_bias =
                fiber_mode.map_or(0.0, |f| f64::from(biases[f][run.fiber_row as usize]));
            let entries = run.start as usize..(run.start + run.len) as usize;
            let records = &mut self.records[entries.start * width..entries.end * width];
            let originals = &self.original_values[entries];
            // With constant numbers of modes and words the compiler unrolls the loops.
            match (&row_biases[..], width) {
                (&[a, b], 3) => subtract_from_run(records, 3, originals, &[a, b], fiber_bias),
                (&[a, b, c], 4) => subtract_from_run(records, 4, originals, &[a, b, c], fiber_bias),
                (all, width) => subtract_from_run(records, width, originals, all, fiber_bias),
            }
        }
        Ok(())
    }

    /// Calls `visit` with the index of every entry, ascending, its row of mode `m` and its weight.
    #[inline]
    pub fn for_each_row_of_mode(&self, m: usize, mut visit: impl FnMut(usize, u32, f64)) {
        // Of the two calls, the compiler simplifies the one with a constant weight.
        if self.spec.weighted {
            self.for_each_row(m, |i, row| visit(i, row, f64::from(self.weight(i))));
        } else {
            self.for_each_row(m, |i, row| visit(i, row, 1.0));
        }
    }

    #[inline(always)]
    fn for_each_row(&self, m: usize, mut visit: impl FnMut(usize, u32)) {
        if self.spec.fiber_mode == Some(m) {
            for run in &self.runs {
                let entries = run.start as usize..(run.start + run.len) as usize;
                entries.for_each(|i| visit(i, run.fiber_row));
            }
            return;
        }
        let at = self.spec.record_position(m);
        let records = self.records.chunks_exact(self.record_words());
        records
            .enumerate()
            .for_each(|(i, record)| visit(i, record[at]));
    }

    /// Calls `visit` with the index of every entry, ascending, its value before biases were subtracted and its weight.
    #[inline]
    pub fn for_each_original_value(&self, mut visit: impl FnMut(usize, f32, f64)) {
        let value_at = self.spec.non_fiber_modes().len();
        let records = self.records.chunks_exact(self.record_words());
        if self.original_values.is_empty() || self.spec.weighted {
            for (i, record) in records.enumerate() {
                let value = match self.original_values.get(i) {
                    Some(&value) => value,
                    None => f32::from_bits(record[value_at]),
                };
                visit(i, value, f64::from(self.weight(i)));
            }
        } else {
            let values = self.original_values.iter().enumerate();
            values.for_each(|(i, &value)| visit(i, value, 1.0));
        }
    }

    /// Returns the weight of entry `i`: 1 if entries have none.
    #[inline]
    pub fn weight(&self, i: usize) -> f32 {
        if self.spec.weighted {
            f32::from_bits(self.records[(i + 1) * self.record_words() - 1])
        } else {
            1.0
        }
    }

    /// Returns the sum of all weights: the number of entries if they have none.
    pub fn total_weight(&self) -> f64 {
        self.total_weight
    }

    /// Returns how the tensor is cut into blocks.
    #[inline]
    pub fn spec(&self) -> &Arc<BlockingSpec> {
        &self.spec
    }

    /// Returns the index of the block in its grid, or among the blocks of all conflict-free classes.
    #[inline]
    pub fn index(&self) -> usize {
        self.index
    }

    pub(super) fn set_index(&mut self, index: usize) {
        self.index = index;
    }

    /// Returns the coordinates of the block in its grid.
    pub fn coordinates(&self) -> [usize; MAX_ORDER] {
        self.spec.coordinates(self.index)
    }

    /// Number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.records.len() / self.record_words()
    }

    /// Number of u32 words of an entry record.
    #[inline]
    pub(crate) fn record_words(&self) -> usize {
        self.spec.record_words()
    }

    /// Returns the edges of a graph.
    ///
    /// # Panics
    /// If the entries are not those of a graph.
    pub fn edges(&self) -> Edges<'_> {
        assert!(self.spec.fiber_mode.is_none() && self.record_words() == 3);
        Edges::Records(&self.records)
    }

    /// Returns the records of all entries.
    #[inline]
    pub(crate) fn records(&self) -> &[u32] {
        &self.records
    }

    /// Calls `visit` with the rows of all modes, the value and the weight of every entry.
    #[inline]
    pub fn for_each_entry(&self, mut visit: impl FnMut(&[u32], f32, f32)) {
        let width = self.record_words();
        let mut rows = vec![0; self.spec.order()];
        let non_fiber = self.spec.non_fiber_modes();
        for run in &self.runs {
            if let Some(f) = self.spec.fiber_mode {
                rows[f] = run.fiber_row;
            }
            for i in run.start..run.start + run.len {
                let record = &self.records[i as usize * width..][..width];
                for (k, &m) in non_fiber.iter().enumerate() {
                    rows[m] = record[k];
                }
                let value = f32::from_bits(record[non_fiber.len()]);
                visit(&rows, value, self.weight(i as usize));
            }
        }
    }

    /// Writes the rows of entry `i` in mode order.
    pub fn rows_of_entry(&self, i: usize, rows: &mut [u32]) {
        let width = self.record_words();
        if let Some(f) = self.spec.fiber_mode {
            let run = self.runs.partition_point(|r| (r.start as usize) <= i) - 1;
            rows[f] = self.runs[run].fiber_row;
        }
        let fiber_mode = self.spec.fiber_mode;
        let non_fiber = (0..rows.len()).filter(|&m| fiber_mode != Some(m));
        for (k, m) in non_fiber.enumerate() {
            rows[m] = self.records[i * width + k];
        }
    }

    /// Adds to `counts` the number of entries of each row of mode `m` in this block. `counts` has all rows of the mode.
    pub fn add_row_counts(&self, m: usize, counts: &mut [u32]) {
        let (order, entries) = (self.spec.order(), self.len());
        self.row_counts.add(order, m, entries, counts, |counts| {
            if self.spec.fiber_mode == Some(m) {
                for run in &self.runs {
                    counts[run.fiber_row as usize] += run.len;
                }
            } else {
                let at = self.spec.record_position(m);
                for record in self.records.chunks_exact(self.record_words()) {
                    counts[record[at] as usize] += 1;
                }
            }
        });
    }

    /// Adds all entries to a checksum.
    pub fn update_checksum(&self, crc: &mut crc32fast::Hasher) {
        crc.update(bytemuck::cast_slice(&self.records));
        for run in &self.runs {
            crc.update(bytemuck::cast_slice(&[run.fiber_row, run.len]));
        }
    }

    /// Returns one batch per run, in storage order. Runs of more than `max_len` entries have several batches.
    pub(crate) fn whole_runs(&self, max_len: usize) -> impl Iterator<Item = FiberBatch> {
        let max_len = u32::try_from(max_len).unwrap_or(u32::MAX);
        self.runs.iter().flat_map(move |&run| {
            let firsts = (0..run.len).step_by(max_len as usize);
            firsts.map(move |first| FiberBatch {
                run,
                first,
                len: max_len.min(run.len - first),
            })
        })
    }

    /// Replaces `batches` by batches of at most `max_len` entries in random order. Each run starts at a random
    /// entry and is cut evenly. The records do not move.
    pub(crate) fn shuffled_batches(
        &self,
        max_len: usize,
        stream_id: &[u64],
        batches: &mut Vec<FiberBatch>,
    ) {
        batches.clear();
        let mut stream = RandomStream::new(stream_id);
        for &run in &self.runs {
            let rotation = stream.below(u64::from(run.len)) as u32;
            let whole = FiberBatch {
                run,
                first: rotation,
                len: run.len,
            };
            batches.extend(whole.pieces(max_len));
        }
        for i in (1..batches.len()).rev() {
            batches.swap(i, stream.below(i as u64 + 1) as usize);
        }
    }
}

/// Sets the values of the records of a run to `originals` minus the biases of the fiber row and of the other rows.
#[inline(always)]
fn subtract_from_run(
    records: &mut [u32],
    width: usize,
    originals: &[f32],
    biases: &[&[f32]],
    fiber_bias: f64,
) {
    for (record, &original) in records.chunks_exact_mut(width).zip(originals) {
        let mut sum = 0.0;
        for (n, of_mode) in biases.iter().enumerate() {
            sum += f64::from(of_mode[record[n] as usize]);
        }
        let value = f64::from(original) - (fiber_bias + sum);
        record[biases.len()] = (value as f32).to_bits();
    }
}

/// Cuts `0..len` evenly into ranges of at most `max_len` positions.
fn even_pieces(len: u32, max_len: usize) -> impl Iterator<Item = Range<u32>> {
    let count = len.div_ceil(max_len as u32);
    let cut = move |k: u32| (u64::from(len) * u64::from(k) / u64::from(count)) as u32;
    (0..count).map(move |k| cut(k)..cut(k + 1))
}

/// Returns `position` moved by `rotation` in a cycle of `len` positions; both are below `len`, which may exceed 2^31.
fn rotated(position: u32, rotation: u32, len: u32) -> u32 {
    let rest = len - rotation;
    if position < rest {
        position + rotation
    } else {
        position - rest
    }
}

/// Adds the runs of `n` entries in storage order, given the fiber row of each.
#[inline]
fn add_runs(n: usize, fiber_row: impl Fn(usize) -> u32, runs: &mut Vec<FiberRun>) {
    let mut start = 0;
    for end in 1..=n {
        if end == n || fiber_row(end) != fiber_row(start) {
            runs.push(FiberRun {
                fiber_row: fiber_row(start),
                start: start as u32,
                len: (end - start) as u32,
            });
            start = end;
        }
    }
}

/// Returns the run of a block without a fiber mode; none if it is empty.
fn single_run(entries: usize) -> Option<FiberRun> {
    (entries > 0).then_some(FiberRun {
        fiber_row: 0,
        start: 0,
        len: entries as u32,
    })
}

/// Returns the sum of the weights of `records`: the number of records if they have none.
fn total_weight(spec: &BlockingSpec, records: &[u32]) -> f64 {
    let width = spec.record_words();
    if spec.weighted {
        let records = records.chunks_exact(width);
        records
            .map(|record| f64::from(f32::from_bits(record[width - 1])))
            .sum()
    } else {
        (records.len() / width) as f64
    }
}

/// A list of rows is kept if there are at least this many entries per row. Counting the entries again costs little more than
/// reading a longer list.
const MIN_ENTRIES_PER_ROW: usize = 4;

/// Rows and their numbers of entries.
type CountedRows = Box<[(u32, u32)]>;

/// For each mode, the rows with entries; counted on first use.
#[derive(Default)]
pub(super) struct RowCounts {
    modes: OnceLock<Box<[OnceLock<Option<CountedRows>>]>>,
}

impl RowCounts {
    /// Adds the number of entries of each row of mode `m` to `counts`. `add` adds them from the entries.
    pub(crate) fn add(
        &self,
        order: usize,
        m: usize,
        entries: usize,
        counts: &mut [u32],
        add: impl Fn(&mut [u32]),
    ) {
        let modes = self.modes.get_or_init(|| {
            let modes = (0..order).map(|_| OnceLock::new());
            modes.collect()
        });
        let counted = modes[m].get_or_init(|| counted_rows(counts.len(), entries, &add));
        match counted {
            Some(rows) => {
                for &(row, count) in rows {
                    counts[row as usize] += count;
                }
            }
            None => add(counts),
        }
    }
}

/// Returns the rows with entries, or `None` if they are too many to keep.
fn counted_rows(row_count: usize, entries: usize, add: impl Fn(&mut [u32])) -> Option<CountedRows> {
    let mut counts = try_zeroed(row_count, "rows").ok()?;
    add(&mut counts);
    let used = counts.iter().filter(|&&count| count > 0).count();
    if used * MIN_ENTRIES_PER_ROW > entries {
        return None;
    }
    let counted = counts.iter().enumerate().filter(|&(_, &count)| count > 0);
    let counted = counted.map(|(row, &count)| (row as u32, count));
    let rows: Vec<(u32, u32)> = try_collect(used, counted, "rows").ok()?;
    Some(rows.into_boxed_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_are_rotated_without_overflow() {
        let len = u32::MAX - 1;
        assert_eq!(rotated(len - 1, len - 1, len), len - 2);
        assert_eq!(rotated(0, len - 1, len), len - 1);
        assert_eq!(rotated(3, 4, 5), 2);
    }
}
