//! Groups entries by a key, in bounded memory.
//!
//! Entries are sorted by (hash of the key, number). If that would exceed the memory budget, the hashes are partitioned
//! and the columns are read once per partition.

use crate::error::{Error, Result};
use crate::progress::{Monitor, check_cancelled, report_progress};
use crate::random::splitmix64;
use crate::sort::sort_polling;

/// Default memory budget in bytes: 32M entries at once.
pub(super) const DEFAULT_MEMORY: u64 = 512 << 20;

/// Bytes of a (hash, number) pair.
const PAIR: u64 = 16;

/// Number of pairs that are visited between two polls for a cancellation: about a tenth of a second.
const PAIRS_PER_POLL: usize = 1 << 20;

/// Calls `visit` with the ascending numbers of each group of entries, out of `count`, that have the same hash of `key`.
/// Groups of one entry are visited only with `singles`. The order of groups depends on `memory`, the budget in bytes,
/// which is exceeded only if one key needs it. Different keys may share a hash.
pub(crate) fn for_each_group(
    count: u64,
    memory: u64,
    singles: bool,
    key: impl Fn(usize) -> u64,
    monitor: &dyn Monitor,
    mut visit: impl FnMut(&[u64]) -> Result<()>,
) -> Result<()> {
    // Partitions differ in size; a quarter of slack keeps them within the budget.
    let partitions = (count.saturating_mul(PAIR + PAIR / 4))
        .div_ceil(memory.max(1 << 20))
        .max(1);
    let mut pairs: Vec<(u64, u64)> = Vec::new();
    let mut group: Vec<u64> = Vec::new();
    for partition in 0..partitions {
        pairs.clear();
        for i in 0..count {
            if i % (1 << 20) == 0 {
                report_progress(
                    monitor,
                    "grouping",
                    partition * count + i,
                    partitions * count,
                )?;
            }
            let hashed = splitmix64(key(i as usize));
            // The high bits of the product choose the partition, so equal keys share one.
            if (u128::from(hashed) * u128::from(partitions)) >> 64 == u128::from(partition) {
                if pairs.try_reserve(1).is_err() {
                    return Err(Error::out_of_memory(
                        pairs.len() + 1,
                        "entries to be grouped",
                    ));
                }
                pairs.push((hashed, i));
            }
        }
        sort_polling(&mut pairs, monitor)?;
        let mut visited = 0;
        for run in pairs.chunk_by(|a, b| a.0 == b.0) {
            if visited / PAIRS_PER_POLL < (visited + run.len()) / PAIRS_PER_POLL {
                check_cancelled(monitor)?;
            }
            visited += run.len();
            if singles || run.len() > 1 {
                group.clear();
                group.extend(run.iter().map(|p| p.1));
                visit(&group)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;
    use std::collections::BTreeMap;

    #[test]
    fn groups_are_the_same_for_any_budget() {
        let mut s = RandomStream::new(&[3]);
        let keys: Vec<u64> = (0..200_000).map(|_| s.below(120_000)).collect();
        let mut expected: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for (i, &k) in keys.iter().enumerate() {
            expected.entry(k).or_default().push(i as u64);
        }
        for (memory, singles) in [(1 << 20, true), (1 << 21, false), (1 << 30, true)] {
            let mut found = BTreeMap::new();
            for_each_group(
                keys.len() as u64,
                memory,
                singles,
                |i| keys[i],
                &(),
                |g| {
                    found.insert(keys[g[0] as usize], g.to_vec());
                    Ok(())
                },
            )
            .unwrap();
            let mut expected = expected.clone();
            expected.retain(|_, g| singles || g.len() > 1);
            assert_eq!(found, expected);
        }
    }
}
