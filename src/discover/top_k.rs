//! Selection of the k best of many scores.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A row and its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankedRow {
    /// The row, counted from 0.
    pub index: u32,
    /// Its score.
    pub score: f64,
}

/// Sorts by descending score, then by ascending row. Rows whose score is NaN are removed.
pub(super) fn sort_best_first(list: &mut Vec<RankedRow>) {
    list.retain(|r| !r.score.is_nan());
    list.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.index.cmp(&b.index)));
}

/// A position in the list of candidate rows, with its score. The order is reversed, so that the top of a max-heap is the
/// worst of the kept positions.
struct HeapEntry {
    score: f32,
    position: u32,
}

impl Ord for HeapEntry {
    #[inline]
    fn cmp(&self, other: &HeapEntry) -> Ordering {
        let by_score = other.score.total_cmp(&self.score);
        by_score.then(self.position.cmp(&other.position))
    }
}

impl PartialOrd for HeapEntry {
    #[inline]
    fn partial_cmp(&self, other: &HeapEntry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for HeapEntry {
    fn eq(&self, other: &HeapEntry) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for HeapEntry {}

/// Scores tested together against the threshold. Most groups hold no score above it, and one branch then rejects the
/// group.
const SCORES_PER_TEST: usize = 16;

/// The `k` best of the scores offered so far. Scores are offered in ascending order of their positions.
pub(super) struct TopK {
    k: usize,
    heap: BinaryHeap<HeapEntry>,
}

impl TopK {
    pub(super) fn new(k: usize) -> TopK {
        TopK {
            k,
            heap: BinaryHeap::new(),
        }
    }

    /// Returns the score that a new score must exceed to be kept. Of equal scores the first position stays.
    fn threshold(&self) -> f32 {
        match self.heap.peek() {
            Some(worst) if self.heap.len() >= self.k => worst.score,
            _ => f32::NEG_INFINITY,
        }
    }

    /// Offers the scores of the positions from `first` on.
    ///
    /// NaN scores are never kept. `is_excluded` is only called for positions whose score exceeds the threshold.
    #[inline]
    pub(super) fn offer(
        &mut self,
        scores: &[f32],
        first: usize,
        is_excluded: impl Fn(usize) -> bool,
    ) {
        if self.k == 0 {
            return;
        }
        let mut threshold = self.threshold();
        let (groups, rest) = scores.as_chunks::<SCORES_PER_TEST>();
        for (g, group) in groups.iter().enumerate() {
            // A bitwise OR instead of `any`: it has no branch per score and vectorizes.
            let mut exceeds = false;
            for &score in group {
                exceeds |= score > threshold;
            }
            if exceeds {
                self.offer_each(group, first + g * SCORES_PER_TEST, &is_excluded);
                threshold = self.threshold();
            }
        }
        self.offer_each(rest, first + groups.len() * SCORES_PER_TEST, &is_excluded);
    }

    fn offer_each(&mut self, scores: &[f32], first: usize, is_excluded: &dyn Fn(usize) -> bool) {
        let mut threshold = self.threshold();
        for (offset, &score) in scores.iter().enumerate() {
            let position = first + offset;
            if score > threshold && !is_excluded(position) {
                // Adding 0 turns -0 into 0: `total_cmp` in the heap orders the two, `>` above does not.
                let entry = HeapEntry {
                    score: score + 0.0,
                    position: position as u32,
                };
                if self.heap.len() < self.k {
                    self.heap.push(entry);
                } else if let Some(mut worst) = self.heap.peek_mut() {
                    *worst = entry;
                }
                threshold = self.threshold();
            }
        }
    }

    /// Returns the kept positions, in no particular order.
    pub(super) fn positions(self) -> impl Iterator<Item = usize> {
        self.heap.into_iter().map(|entry| entry.position as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_k_largest_scores_are_kept() {
        let nan = f32::NAN;
        let scores: Vec<f32> = (0..100u32)
            .map(|i| match i % 10 {
                3 => nan,
                k => ((i * 37 + k) % 23) as f32 - 11.0,
            })
            .collect();
        for k in [0, 1, 5, 89, 90, 1000] {
            let mut expected: Vec<usize> = (0..100).filter(|i| i % 10 != 3 && i % 7 != 0).collect();
            expected.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
            expected.truncate(k);
            expected.sort();
            for piece in [1, 7, 16, 100] {
                let mut top = TopK::new(k);
                for (p, these) in scores.chunks(piece).enumerate() {
                    top.offer(these, p * piece, |position| position % 7 == 0);
                }
                let mut found: Vec<usize> = top.positions().collect();
                found.sort();
                assert_eq!(found, expected, "k {k}, pieces of {piece}");
            }
        }
    }
}
