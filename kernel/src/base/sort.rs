//! Stable sorting where speed does not matter, and sorting of long lists that can be cancelled.
//!
//! Every sort of the standard library compiles to thousands of instructions per element type and comparison.
//! These functions share one such sort, that of a permutation, and compare through a trait object. Sorts of
//! all entries or all rows call the standard library, piece by piece.

use std::cmp::Ordering;

use crate::error::Result;
use crate::progress::{Monitor, check_cancelled};

/// Sorts `items`; equal ones keep their order. Equivalent to [`slice::sort_by`].
pub fn stable_sort_by<T>(items: &mut [T], compare: &dyn Fn(&T, &T) -> Ordering) {
    let mut permutation: Vec<usize> = (0..items.len()).collect();
    sort_permutation(&mut permutation, &|a, b| compare(&items[a], &items[b]));
    apply_permutation(&mut permutation, &mut |a, b| items.swap(a, b));
}

/// Sorts `items` by `key`; those with equal keys keep their order. Equivalent to [`slice::sort_by_key`].
pub fn stable_sort_by_key<T, K: Ord>(items: &mut [T], key: &dyn Fn(&T) -> K) {
    stable_sort_by(items, &|a, b| key(a).cmp(&key(b)));
}

fn sort_permutation(permutation: &mut [usize], compare: &dyn Fn(usize, usize) -> Ordering) {
    permutation.sort_by(|&a, &b| compare(a, b));
}

/// Moves the item at `permutation[i]` to `i`, for every `i`, by calls of `swap`. Consumes the permutation.
fn apply_permutation(permutation: &mut [usize], swap: &mut dyn FnMut(usize, usize)) {
    for start in 0..permutation.len() {
        // Follows one cycle; a position that is done maps to itself.
        let mut to = start;
        loop {
            let from = std::mem::replace(&mut permutation[to], to);
            if from == start {
                break;
            }
            swap(to, from);
            to = from;
        }
    }
}

/// Number of items that are sorted between two polls for a cancellation: about a tenth of a second.
const ITEMS_PER_POLL: usize = 1 << 20;

/// Sorts items, and polls `monitor` after every `ITEMS_PER_POLL` of them.
pub fn sort_polling<T: Ord>(items: &mut [T], monitor: &dyn Monitor) -> Result<()> {
    check_cancelled(monitor)?;
    if items.len() <= ITEMS_PER_POLL {
        items.sort_unstable();
        return Ok(());
    }
    let middle = items.len() / 2;
    let (smaller, _, larger) = items.select_nth_unstable(middle);
    sort_polling(smaller, monitor)?;
    sort_polling(larger, monitor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::progress::StopFlag;
    use crate::random::{RandomStream, splitmix64};

    #[test]
    fn sorts_as_the_standard_library_does() {
        for len in [0, 1, 2, 3, 10, 1000] {
            // Few keys, so that many are equal; the index shows whether their order is kept.
            let items: Vec<(u64, usize)> =
                (0..len).map(|i| (splitmix64(i as u64) % 7, i)).collect();
            let mut expected = items.clone();
            expected.sort_by_key(|item| item.0);
            let mut found = items.clone();
            stable_sort_by_key(&mut found, &|item| item.0);
            assert_eq!(found, expected);
            let mut found = items;
            stable_sort_by(&mut found, &|a, b| a.0.cmp(&b.0));
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn long_lists_are_sorted_and_polled() {
        let mut s = RandomStream::new(&[2]);
        let count = 5 * ITEMS_PER_POLL / 2;
        let mut pairs: Vec<(u64, u64)> = (0..count as u64).map(|i| (s.below(1000), i)).collect();
        sort_polling(&mut pairs, &()).unwrap();
        assert!(pairs.is_sorted());
        let stop = StopFlag::new();
        stop.request();
        let cancelled = sort_polling(&mut pairs, &stop);
        assert!(matches!(cancelled, Err(Error::Cancelled)));
    }
}
