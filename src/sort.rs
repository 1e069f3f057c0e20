//! Stable sorting where speed does not matter.
//!
//! Every sort of the standard library compiles to thousands of instructions per element type and comparison.
//! These functions share one such sort, that of a permutation, and compare through a trait object. Sorts of
//! all entries or all rows call the standard library.

use std::cmp::Ordering;

/// Sorts `items`; equal ones keep their order. Equivalent to [`slice::sort_by`].
pub(crate) fn stable_sort_by<T>(items: &mut [T], compare: &dyn Fn(&T, &T) -> Ordering) {
    let mut permutation: Vec<usize> = (0..items.len()).collect();
    sort_permutation(&mut permutation, &|a, b| compare(&items[a], &items[b]));
    apply_permutation(&mut permutation, &mut |a, b| items.swap(a, b));
}

/// Sorts `items` by `key`; those with equal keys keep their order. Equivalent to [`slice::sort_by_key`].
pub(crate) fn stable_sort_by_key<T, K: Ord>(items: &mut [T], key: &dyn Fn(&T) -> K) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::splitmix64;

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
}
