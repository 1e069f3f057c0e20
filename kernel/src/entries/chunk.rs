//! A chunk of entries between a problem and the layout of a solver, and sorting: of chunks by block, of indices by key.

use super::grid::BlockingSpec;
use crate::error::Result;
use crate::random::splitmix64;
use crate::try_alloc::{try_with_capacity, try_zeroed};

/// Entries in structure-of-arrays form: compact, validated row indices and `f32` values.
#[derive(Debug, Default)]
pub struct EntryChunk {
    /// One column of compact row indices per mode.
    pub rows: Vec<Vec<u32>>,
    /// One value per entry.
    pub values: Vec<f32>,
    /// One weight per entry; empty if the data has none.
    pub weights: Vec<f32>,
}

impl EntryChunk {
    /// Returns the weight of entry `k`: 1 if the data has no weights.
    #[inline]
    pub fn weight(&self, k: usize) -> f32 {
        self.weights.get(k).copied().unwrap_or(1.0)
    }

    /// Keeps the entries for which `stays` returns true.
    pub fn retain(&mut self, stays: impl Fn(usize) -> bool) {
        let mut kept = 0;
        for k in (0..self.values.len()).filter(|&k| stays(k)) {
            for column in &mut self.rows {
                column[kept] = column[k];
            }
            self.values[kept] = self.values[k];
            if let Some(&weight) = self.weights.get(k) {
                self.weights[kept] = weight;
            }
            kept += 1;
        }
        for column in &mut self.rows {
            column.truncate(kept);
        }
        self.values.truncate(kept);
        self.weights.truncate(kept);
    }

    /// Removes entries of weight 0.
    pub fn retain_weighted(&mut self) {
        if self.weights.contains(&0.0) {
            let weights = std::mem::take(&mut self.weights);
            self.retain(|k| weights[k] > 0.0);
            self.weights = weights;
            self.weights.retain(|&w| w > 0.0);
        }
    }
}

/// The entries of one chunk, sorted by block.
pub struct SortedChunk {
    /// Entry records of [`BlockingSpec::full_record_words`] words, block after block.
    pub(crate) records: Vec<u32>,
    /// For each block, the number of the chunk's first entry in it; the last is the number of entries.
    pub(crate) starts: Vec<u32>,
}

impl SortedChunk {
    /// Sorts the entries of `chunk` by block with a counting sort. `first_entry` is the index of its first entry
    /// among all entries; it seeds the coordinates of axes without a mode.
    ///
    /// # Panics
    /// If `chunk` has weights and `spec` has not, or the reverse.
    pub fn new(spec: &BlockingSpec, chunk: &EntryChunk, first_entry: usize) -> Result<SortedChunk> {
        let (n, order, width) = (chunk.values.len(), spec.order(), spec.full_record_words());
        assert_eq!(chunk.weights.len(), if spec.weighted { n } else { 0 });
        let mut blocks = try_with_capacity(n, "entries")?;
        let mut starts = vec![0u32; spec.block_count() + 1];
        let random_axis: Vec<bool> = (0..spec.axes)
            .map(|axis| !spec.cuts.iter().flatten().any(|cut| cut.axis == axis))
            .collect();
        let axis_stride: Vec<usize> = (0..spec.axes)
            .map(|axis| spec.parts_per_axis.pow(axis as u32))
            .collect();
        for i in 0..n {
            let mut block = 0;
            for (m, cut) in spec.cuts.iter().enumerate() {
                if let Some(cut) = cut {
                    let part = cut.partition.part_of(chunk.rows[m][i]);
                    block += usize::from(part) * axis_stride[cut.axis];
                }
            }
            for axis in 0..spec.axes {
                if random_axis[axis] {
                    let hash = splitmix64(
                        spec.seed ^ splitmix64((first_entry + i) as u64 * 8 + axis as u64),
                    );
                    let part = (u128::from(hash) * spec.parts_per_axis as u128) >> 64;
                    block += part as usize * axis_stride[axis];
                }
            }
            starts[block + 1] += 1;
            blocks.push(block as u32);
        }
        for b in 0..spec.block_count() {
            starts[b + 1] += starts[b];
        }
        let mut next = starts.clone();
        let mut records: Vec<u32> = try_zeroed(n * width, "words of entries")?;
        for i in 0..n {
            let slot = &mut next[blocks[i] as usize];
            let record = &mut records[*slot as usize * width..][..width];
            *slot += 1;
            for (m, column) in chunk.rows.iter().enumerate() {
                record[m] = column[i];
            }
            record[order] = chunk.values[i].to_bits();
            if spec.weighted {
                record[order + 1] = chunk.weights[i].to_bits();
            }
        }
        Ok(SortedChunk { records, starts })
    }

    /// Frees the records of block `first` and of all blocks after it.
    pub fn truncate(&mut self, spec: &BlockingSpec, first: usize) {
        let len = self.starts[first] as usize * spec.full_record_words();
        self.records.truncate(len);
        self.records.shrink_to_fit();
    }

    /// Returns the records of one block.
    fn block(&self, spec: &BlockingSpec, block: usize) -> &[u32] {
        let start = |b: usize| self.starts[b] as usize * spec.full_record_words();
        &self.records[start(block)..start(block + 1)]
    }
}

/// Concatenates the records of one block from all chunks.
pub(super) fn concat_records(
    spec: &BlockingSpec,
    chunks: &[SortedChunk],
    block: usize,
) -> Result<Vec<u32>> {
    let pieces = chunks.iter().map(|chunk| chunk.block(spec, block));
    let mut records =
        try_with_capacity(pieces.clone().map(<[u32]>::len).sum(), "words of entries")?;
    pieces.for_each(|piece| records.extend_from_slice(piece));
    Ok(records)
}

/// Sorts `items` by a key below `key_limit` with a stable least-significant-digit radix sort.
pub(super) fn radix_sort(
    items: &mut Vec<u32>,
    key_limit: usize,
    key: impl Fn(u32) -> u32,
) -> Result<()> {
    const DIGIT_BITS: u32 = 8;
    let mut sorted = try_zeroed(items.len(), "entries")?;
    let mut shift = 0;
    while shift < u32::BITS && key_limit.saturating_sub(1) >> shift > 0 {
        let digit = |i: u32| (key(i) >> shift) as usize & ((1 << DIGIT_BITS) - 1);
        let mut starts = [0usize; (1 << DIGIT_BITS) + 1];
        for &i in items.iter() {
            starts[digit(i) + 1] += 1;
        }
        for d in 0..1 << DIGIT_BITS {
            starts[d + 1] += starts[d];
        }
        for &i in items.iter() {
            let slot = &mut starts[digit(i)];
            sorted[*slot] = i;
            *slot += 1;
        }
        std::mem::swap(items, &mut sorted);
        shift += DIGIT_BITS;
    }
    Ok(())
}
