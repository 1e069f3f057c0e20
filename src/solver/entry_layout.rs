//! Arrangement of entries in memory: in random order, in that of the source, in blocks, or in conflict-free classes.

use std::ops::Range;
use std::sync::Arc;

use super::entries::EntryList;
use crate::error::Result;
use crate::kernel::{
    BlockingSpec, ColouringPlan, ConflictFreeClass, ConflictFreeClasses, EntryBlock, RowBitSets,
    SortedChunk,
};
use crate::parallel::ThreadPool;
use crate::problem::EntryChunk;
use crate::progress::{Monitor, report_progress};
use crate::random::Permutation;
use crate::sort::stable_sort_by_key;
use crate::try_alloc::{try_with_capacity, try_zeroed};

/// The arrangement that an algorithm needs for the entries of the tensor and of the matrices.
pub enum EntryLayout {
    /// In random order.
    Shuffled,
    /// In the order of the source.
    InOrder,
    /// In the blocks of a partition.
    Blocked(Partition),
}

/// A partition of the tensor and of each coupled matrix into blocks.
pub struct Partition {
    pub tensor: Arc<BlockingSpec>,
    /// Number of entries of the longest row, if the entries of the tensor are in conflict-free classes
    /// instead of blocks.
    pub longest_row: Option<usize>,
    /// One per matrix. Full matrices do not use theirs: their entries are always in random order.
    pub matrices: Vec<Arc<BlockingSpec>>,
}

/// Reads the entries of a range into a chunk. It may leave entries out.
pub(super) type ReadEntries<'a> = &'a (dyn Fn(Range<usize>, &mut EntryChunk) -> Result<()> + Sync);

/// Copies up to `count` entries and puts each at a random position.
pub(super) fn shuffle(
    count: usize,
    order: usize,
    stream: &[u64],
    monitor: &dyn Monitor,
    read: ReadEntries<'_>,
) -> Result<EntryList> {
    const CHUNK: usize = 1 << 16;
    let mut chunk = EntryChunk::default();
    let for_chunks = |visit: &mut dyn FnMut(&EntryChunk), chunk: &mut EntryChunk| -> Result<()> {
        for start in (0..count).step_by(CHUNK) {
            report_progress(monitor, "copying entries", start as u64, count as u64)?;
            read(start..(start + CHUNK).min(count), chunk)?;
            visit(chunk);
        }
        Ok(())
    };
    // `read` may leave entries out, so a first pass counts those that remain.
    let (mut kept, mut weighted) = (0, false);
    let count_chunk = &mut |c: &EntryChunk| {
        kept += c.values.len();
        weighted |= !c.weights.is_empty();
    };
    for_chunks(count_chunk, &mut chunk)?;
    let mut entries = EntryList {
        order,
        rows: try_zeroed(kept * order, "indices")?,
        values: try_zeroed(kept, "entries")?,
        weights: try_zeroed(if weighted { kept } else { 0 }, "entries")?,
        values_with_biases: Vec::new(),
    };
    let permutation = Permutation::new(kept as u64, stream);
    let mut next = 0;
    let mut place_chunk = |c: &EntryChunk| {
        for (k, &value) in c.values.iter().enumerate() {
            let to = permutation.apply(next) as usize;
            next += 1;
            let row = &mut entries.rows[to * order..][..order];
            for (m, slot) in row.iter_mut().enumerate() {
                *slot = c.rows[m][k];
            }
            entries.values[to] = value;
            if weighted {
                entries.weights[to] = c.weights[k];
            }
        }
    };
    for_chunks(&mut place_chunk, &mut chunk)?;
    Ok(entries)
}

/// Copies up to `count` entries, in their order.
pub(super) fn list_in_order(
    count: usize,
    order: usize,
    pool: &ThreadPool<'_>,
    monitor: &dyn Monitor,
    read: ReadEntries<'_>,
) -> Result<EntryList> {
    const CHUNK: usize = 1 << 16;
    report_progress(monitor, "copying entries", 0, count as u64)?;
    let copy = |chunk: &mut EntryChunk, c: usize| {
        read(c * CHUNK..((c + 1) * CHUNK).min(count), chunk)?;
        let kept = chunk.values.len();
        let mut rows = try_with_capacity(kept * order, "indices")?;
        for k in 0..kept {
            rows.extend(chunk.rows.iter().map(|rows| rows[k]));
        }
        let [values, weights] = [&mut chunk.values, &mut chunk.weights].map(std::mem::take);
        Ok((rows, values, weights))
    };
    let state = || Ok(EntryChunk::default());
    let chunks = pool.try_map(count.div_ceil(CHUNK), state, copy)?;
    let kept = chunks.iter().map(|(_, values, _)| values.len()).sum();
    let weighted = chunks.iter().map(|(.., weights)| weights.len()).sum();
    let mut entries = EntryList {
        order,
        rows: try_with_capacity(kept * order, "indices")?,
        values: try_with_capacity(kept, "entries")?,
        weights: try_with_capacity(weighted, "entries")?,
        values_with_biases: Vec::new(),
    };
    for (rows, values, weights) in chunks {
        entries.rows.extend_from_slice(&rows);
        entries.values.extend_from_slice(&values);
        entries.weights.extend_from_slice(&weights);
    }
    Ok(entries)
}

/// Copies `count` entries in chunks, each sorted by block.
fn sorted_chunks(
    spec: &BlockingSpec,
    count: usize,
    pool: &ThreadPool<'_>,
    monitor: &dyn Monitor,
    read: ReadEntries<'_>,
) -> Result<Vec<SortedChunk>> {
    // Some for every thread, but not too small.
    let size = count.div_ceil(32).clamp(1 << 14, 1 << 17);
    report_progress(monitor, "sorting entries", 0, count as u64)?;
    let state = || Ok(EntryChunk::default());
    let sorted = pool.try_map(count.div_ceil(size), state, |chunk, c| {
        let range = c * size..((c + 1) * size).min(count);
        read(range.clone(), chunk).and_then(|()| SortedChunk::new(spec, chunk, range.start))
    })?;
    report_progress(monitor, "sorting entries", count as u64 / 2, count as u64)?;
    Ok(sorted)
}

/// Number of groups of blocks in [`sort_into_blocks`]. The chunks of a group are freed before the next group is built, so
/// that there is a second copy of a quarter of the entries at most.
const BLOCK_GROUPS: usize = 4;

/// Copies `count` entries into blocks. Threads first sort chunks by block, then each block collects its part
/// of every chunk: entries pass through memory twice, and the result is independent of the thread count.
pub(super) fn sort_into_blocks(
    spec: &Arc<BlockingSpec>,
    count: usize,
    pool: &ThreadPool<'_>,
    monitor: &dyn Monitor,
    read: ReadEntries<'_>,
) -> Result<Vec<EntryBlock>> {
    let mut sorted = sorted_chunks(spec, count, pool, monitor, read)?;
    let parts = spec.parts_per_axis;
    let stop = pool.stop();
    let mut blocks: Vec<EntryBlock> = Vec::new();
    // Chunks are freed from their end.
    for group in (0..BLOCK_GROUPS).rev() {
        let blocks_per_part = spec.block_count() / parts;
        let of_part = |group: usize| group * blocks_per_part / BLOCK_GROUPS;
        let first = of_part(group) * parts;
        // One thread builds all blocks of a part, so that their memory is near the thread that will run them.
        let part = |p: usize| (first + p..of_part(group + 1) * parts).step_by(parts);
        let build = |(): &mut (), p: usize| -> Result<Vec<EntryBlock>> {
            let until_stop = part(p).take_while(|_| !stop.requested());
            until_stop
                .map(|block| EntryBlock::new(spec, &sorted, block))
                .collect()
        };
        for part in pool.try_map(parts, || Ok(()), build)? {
            blocks.extend(part);
        }
        sorted.iter_mut().for_each(|c| c.truncate(spec, first));
    }
    stable_sort_by_key(&mut blocks, &EntryBlock::index);
    Ok(blocks)
}

/// Copies `count` entries into conflict-free classes; `longest_row` is the largest number of entries that
/// share a row. Threads colour random shards of the entries, then each colour becomes a class: the result is
/// independent of the thread count.
pub(super) fn colour_into_classes(
    spec: &Arc<BlockingSpec>,
    count: usize,
    longest_row: usize,
    pool: &ThreadPool<'_>,
    monitor: &dyn Monitor,
    read: ReadEntries<'_>,
) -> Result<ConflictFreeClasses> {
    let plan = ColouringPlan::new(&spec.row_counts, count, longest_row);
    let sorted = sorted_chunks(&spec.random_shards(plan.shards), count, pool, monitor, read)?;
    let shard = |(): &mut (), s| plan.colour_shard(spec, &sorted, s);
    let shards = pool.try_map(plan.shards, || Ok(()), shard)?;
    drop(sorted);
    let colouring = plan.combine(spec, shards)?;
    let class = |rows: &mut RowBitSets, c| ConflictFreeClass::new(spec, &colouring, c, rows);
    let row_sets = || Ok(RowBitSets::default());
    let classes = pool.try_map(colouring.count(), row_sets, class)?;
    Ok(ConflictFreeClasses::new(spec, classes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::splitmix64;

    /// Returns the entries of each class, block by block.
    fn classes(threads: usize, rows: usize, count: usize) -> Vec<Vec<(Vec<u32>, u32)>> {
        let spec = Arc::new(BlockingSpec {
            row_counts: vec![rows; 3],
            fiber_mode: None,
            cuts: vec![None; 3],
            parts_per_axis: 1,
            axes: 1,
            seed: 3,
            weighted: false,
        });
        let row = |i: usize, m: u64| (splitmix64(i as u64 * 3 + m) % rows as u64) as u32;
        let read = |range: Range<usize>, chunk: &mut EntryChunk| {
            chunk.rows = (0..3)
                .map(|m| range.clone().map(|i| row(i, m)).collect())
                .collect();
            chunk.values = range.map(|i| i as f32).collect();
            Ok(())
        };
        let pool = ThreadPool::new(threads, false, 0);
        let classes = colour_into_classes(&spec, count, 9, &pool, &(), &read).unwrap();
        let class = |c: usize| {
            let mut entries = Vec::new();
            for block in &classes.blocks()[classes.block_range(c)] {
                block.for_each_entry(|rows, value, _| {
                    entries.push((rows.to_vec(), value.to_bits()))
                });
            }
            entries
        };
        (0..classes.count()).map(class).collect()
    }

    #[test]
    fn classes_are_independent_of_the_thread_count() {
        // Few enough for one shard, and enough for two.
        for (count, least) in [(20_000, 9), (260_000, 6)] {
            let one = classes(1, count, count);
            assert!(one.len() >= least && one[0].len() > count / 20);
            assert_eq!(one.iter().map(Vec::len).sum::<usize>(), count);
            for threads in [2, 3, 7, 16] {
                assert!(classes(threads, count, count) == one, "{threads} threads");
            }
        }
    }
}
