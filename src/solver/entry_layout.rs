//! Entries put into cells, or into cells of classes, by all threads.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::kernel::{
    BlockingSpec, ColouringPlan, ConflictFreeClass, ConflictFreeClasses, EntryBlock, RowBitSets,
    SortedChunk,
};
use crate::parallel::ThreadPool;
use crate::problem::EntryChunk;
use crate::progress::{Monitor, report_progress};
use crate::sort::stable_sort_by_key;

/// Copies `count` entries in chunks, each sorted by cell.
fn chunks(
    spec: &BlockingSpec,
    count: usize,
    pool: &ThreadPool,
    monitor: &dyn Monitor,
    read: impl Fn(Range<usize>, &mut EntryChunk) -> Result<()> + Sync,
) -> Result<Vec<SortedChunk>> {
    // Some for every thread, but not too small.
    let size = count.div_ceil(32).clamp(1 << 14, 1 << 17);
    report_progress(monitor, "sorting entries", 0, count as u64)?;
    let sorted = pool.map(
        count.div_ceil(size),
        &mut || monitor.cancelled(),
        EntryChunk::default,
        |chunk, c| {
            let range = c * size..((c + 1) * size).min(count);
            read(range.clone(), chunk).and_then(|()| SortedChunk::new(spec, chunk, range.start))
        },
    )?;
    let sorted = sorted.ok_or(Error::Cancelled)?.into_iter().collect();
    report_progress(monitor, "sorting entries", count as u64 / 2, count as u64)?;
    sorted
}

/// Copies `count` entries into cells. Chunks are sorted by cell first, then every cell takes its part
/// of each: entries go through memory twice, and the result does not depend on the threads.
pub(super) fn sort(
    spec: &Arc<BlockingSpec>,
    count: usize,
    pool: &ThreadPool,
    monitor: &dyn Monitor,
    read: impl Fn(Range<usize>, &mut EntryChunk) -> Result<()> + Sync,
) -> Result<Vec<EntryBlock>> {
    let sorted = chunks(spec, count, pool, monitor, read)?;
    // All cells of a part together, made by the thread that will run them.
    let part = |p: usize| (p..spec.block_count()).step_by(spec.parts_per_axis);
    let build = |(): &mut (), p: usize| -> Result<Vec<EntryBlock>> {
        part(p)
            .map(|cell| EntryBlock::new(spec, &sorted, cell))
            .collect()
    };
    let mut cells: Vec<EntryBlock> = Vec::new();
    for part in all(spec.parts_per_axis, pool, monitor, || (), build)? {
        cells.extend(part);
    }
    stable_sort_by_key(&mut cells, &EntryBlock::index);
    Ok(cells)
}

/// Copies `count` entries into classes, the longest row having `longest` of them. Pieces of them get
/// colours first, and then every colour becomes a class: the result does not depend on the threads.
pub(super) fn colour(
    spec: &Arc<BlockingSpec>,
    (count, longest): (usize, usize),
    pool: &ThreadPool,
    monitor: &dyn Monitor,
    read: impl Fn(Range<usize>, &mut EntryChunk) -> Result<()> + Sync,
) -> Result<ConflictFreeClasses> {
    let plan = ColouringPlan::new(&spec.row_counts, count, longest);
    let sorted = chunks(&spec.random_shards(plan.shards), count, pool, monitor, read)?;
    let piece = |(): &mut (), p| plan.colour_shard(spec, &sorted, p);
    let pieces = all(plan.shards, pool, monitor, || (), piece)?;
    drop(sorted);
    let colouring = plan.combine(spec, pieces)?;
    let class = |rows: &mut RowBitSets, c| ConflictFreeClass::new(spec, &colouring, c, rows);
    let classes = all(colouring.count(), pool, monitor, RowBitSets::default, class)?;
    Ok(ConflictFreeClasses::new(spec, classes))
}

/// Makes `count` pieces, every thread with a state of its own.
fn all<S, T: Send>(
    count: usize,
    pool: &ThreadPool,
    monitor: &dyn Monitor,
    state: impl Fn() -> S + Sync,
    make: impl Fn(&mut S, usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let made = pool.map(count, &mut || monitor.cancelled(), state, make)?;
    made.ok_or(Error::Cancelled)?.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::splitmix64;

    /// The entries of each class, cell by cell.
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
        let classes = colour(&spec, (count, 9), &pool, &(), read).unwrap();
        let class = |c: usize| {
            let mut entries = Vec::new();
            for cell in &classes.blocks()[classes.block_range(c)] {
                cell.for_each_entry(|rows, value, _| {
                    entries.push((rows.to_vec(), value.to_bits()))
                });
            }
            entries
        };
        (0..classes.count()).map(class).collect()
    }

    #[test]
    fn classes_do_not_depend_on_the_threads() {
        // In one piece and in two.
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
