//! A random partition of rows into parts with nearly the same number of entries.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::kernel::RowPartition;
use crate::random::RandomStream;
use crate::sort::stable_sort_by_key;

/// Rows with more than this fraction of a mean part's entries are assigned first.
const LONG_ROW_FRACTION: u64 = 64;

/// Partitions rows with `counts` entries each into `part_count` parts. Rows are in random order, except that the longest
/// come first; each goes to the part with the fewest entries so far.
pub(super) fn balanced_partition(
    counts: &[u64],
    part_count: usize,
    stream_id: &[u64],
) -> Arc<RowPartition> {
    let mut order: Vec<u32> = (0..counts.len() as u32).collect();
    let mut stream = RandomStream::new(stream_id);
    for i in (1..order.len()).rev() {
        order.swap(i, stream.below(i as u64 + 1) as usize);
    }
    let total: u64 = counts.iter().sum();
    let long = total / (part_count as u64 * LONG_ROW_FRACTION) + 1;
    let mut long_rows: Vec<u32> = order
        .iter()
        .copied()
        .filter(|&r| counts[r as usize] > long)
        .collect();
    stable_sort_by_key(&mut long_rows, &|&r| Reverse(counts[r as usize]));
    let other_rows = order.into_iter().filter(|&r| counts[r as usize] <= long);
    let mut loads: BinaryHeap<Reverse<(u64, u16)>> =
        (0..part_count as u16).map(|p| Reverse((0, p))).collect();
    let mut part_of = vec![0; counts.len()];
    for row in long_rows.iter().copied().chain(other_rows) {
        if let Some(mut smallest) = loads.peek_mut() {
            part_of[row as usize] = smallest.0.1;
            // A row without entries counts as one, so that such rows are distributed too.
            smallest.0.0 += counts[row as usize].max(1);
        }
    }
    RowPartition::new(part_of, part_count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_nearly_the_same_number_of_entries() {
        let counts: Vec<u64> = (0..5000u64).map(|i| 20_000 / (i + 10)).collect();
        let partition = balanced_partition(&counts, 16, &[1]);
        let entries = |p: usize| -> u64 {
            let rows = partition.rows_of(p).iter();
            rows.map(|&r| counts[r as usize]).sum()
        };
        let loads: Vec<u64> = (0..16).map(entries).collect();
        let (smallest, largest) = (loads.iter().min().unwrap(), loads.iter().max().unwrap());
        assert!(largest - smallest < largest / 50, "{loads:?}");
    }
}
