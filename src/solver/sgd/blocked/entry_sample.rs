//! A sample of entries on which curvature and replica divergence are measured.

use crate::kernel::EntryBlock;
use crate::random::splitmix64;
use crate::solver::stream_ids;

/// One sampled entry.
pub(super) struct SampledEntry {
    /// The row of each mode.
    pub rows: Vec<u32>,
    pub weight: f32,
}

/// Returns `count` entries, evenly distributed over the non-empty blocks; none if all blocks are empty.
pub(super) fn sample_entries(
    blocks: &[EntryBlock],
    order: usize,
    count: usize,
) -> Vec<SampledEntry> {
    let non_empty: Vec<&EntryBlock> = blocks.iter().filter(|b| b.len() > 0).collect();
    (0..count.min(non_empty.len() * count))
        .map(|k| {
            let block = non_empty[k * non_empty.len() / count];
            let hash = splitmix64((stream_ids::ENTRY_SAMPLE << 32) ^ k as u64);
            let mut rows = vec![0; order];
            let entry = (hash % block.len() as u64) as usize;
            block.rows_of_entry(entry, &mut rows);
            SampledEntry {
                rows,
                weight: block.weight(entry),
            }
        })
        .collect()
}
