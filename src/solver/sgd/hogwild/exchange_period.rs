//! The number of entries after which a thread exchanges its replica of a small mode with the shared rows.

use crate::solver::entries::EntryList;

/// Largest number of floats of a replicated factor: a replica should stay in the L1 cache.
const MAX_REPLICA_FLOATS: usize = 8 << 10;

/// Number of entries on which row frequencies are measured; entries are in random order.
const SAMPLE_ENTRIES: usize = 1 << 13;

/// Updates of a row between two exchanges, summed over the threads, and their limits per thread.
const UPDATES_PER_PERIOD: f64 = 64.0;
const MIN_UPDATES_PER_THREAD: f64 = 2.0;
const MAX_UPDATES_PER_THREAD: f64 = 8.0;

/// Exchanges per thread and epoch that there should be at least.
const MIN_EXCHANGES: usize = 16;

/// Returns the exchange period for the rows of mode `mode`, or `None` if threads access the shared rows in place.
///
/// Updates that threads do not see from each other add up, so the most frequent rows must not be updated often between two
/// exchanges. The period is a small multiple of the effective number of rows, in which frequent rows count for more.
pub(super) fn exchange_period(
    entries: &EntryList,
    mode: usize,
    row_count: usize,
    stride: usize,
    threads: usize,
) -> Option<usize> {
    if threads == 1 || row_count * stride > MAX_REPLICA_FLOATS {
        return None;
    }
    let mut counts = vec![0u64; row_count];
    let sample = entries.len().min(SAMPLE_ENTRIES);
    (0..sample).for_each(|i| counts[entries.row(i)[mode] as usize] += 1);
    // The inverse of the probability that two entries share their row.
    let pairs: u64 = counts.iter().map(|&c| c * c.saturating_sub(1)).sum();
    let effective_rows = (sample * sample.saturating_sub(1)) as f64 / pairs.max(1) as f64;
    let updates =
        (UPDATES_PER_PERIOD / threads as f64).clamp(MIN_UPDATES_PER_THREAD, MAX_UPDATES_PER_THREAD);
    let period = (updates * effective_rows).ceil() as usize;
    (entries.len() / threads >= MIN_EXCHANGES * period).then_some(period)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    #[test]
    fn small_modes_are_replicated_when_threads_share_them() {
        let entries = |rows: u32, skewed: bool| {
            let mut s = RandomStream::new(&[1]);
            let row = (0..200_000).map(|_| {
                if skewed && s.below(2) == 0 {
                    0
                } else {
                    s.below(u64::from(rows)) as u32
                }
            });
            EntryList {
                order: 1,
                rows: row.collect(),
                values: vec![0.0; 200_000],
                weights: Vec::new(),
                values_with_biases: Vec::new(),
            }
        };
        let even = entries(100, false);
        assert_eq!(exchange_period(&even, 0, 100, 16, 1), None);
        let two = exchange_period(&even, 0, 100, 16, 2).unwrap();
        assert!((760..840).contains(&two), "{two}");
        let sixteen = exchange_period(&even, 0, 100, 16, 16).unwrap();
        assert!((380..420).contains(&sixteen), "{sixteen}");
        // A row with half of the entries determines the period.
        let skewed = exchange_period(&entries(100, true), 0, 100, 16, 2).unwrap();
        assert!((28..36).contains(&skewed), "{skewed}");
        // Many rows, or few entries per row.
        assert_eq!(exchange_period(&entries(1000, false), 0, 1000, 16, 2), None);
        assert_eq!(exchange_period(&entries(500, false), 0, 500, 16, 16), None);
    }
}
