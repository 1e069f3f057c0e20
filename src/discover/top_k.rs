//! The best few of many scores.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A row and what it scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranked {
    /// The row, counted from 0.
    pub index: u32,
    /// Its score.
    pub score: f64,
}

/// Puts the best first; of equal scores the smaller row. What is no number is left out.
pub(super) fn sort(list: &mut Vec<Ranked>) {
    list.retain(|r| !r.score.is_nan());
    list.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.index.cmp(&b.index)));
}

/// A place in a list of rows, by its score. The largest is the worst, so that a heap has that on top.
struct Kept {
    score: f32,
    place: u32,
}

impl Ord for Kept {
    fn cmp(&self, other: &Kept) -> Ordering {
        let by_score = other.score.total_cmp(&self.score);
        by_score.then(self.place.cmp(&other.place))
    }
}

impl PartialOrd for Kept {
    fn partial_cmp(&self, other: &Kept) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Kept {
    fn eq(&self, other: &Kept) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Kept {}

/// Scores looked at together: most are below what is kept, which one test tells for all of them.
const TOGETHER: usize = 16;

/// The `most` best of the scores offered so far, which come in the order of their places.
pub(super) struct Top {
    most: usize,
    heap: BinaryHeap<Kept>,
}

impl Top {
    pub(super) fn new(most: usize) -> Top {
        Top {
            most,
            heap: BinaryHeap::new(),
        }
    }

    /// What a score must be above to be kept. Places come in order, so that of equal scores the first is.
    fn floor(&self) -> f32 {
        match self.heap.peek() {
            Some(worst) if self.heap.len() >= self.most => worst.score,
            _ => f32::NEG_INFINITY,
        }
    }

    /// Offers the scores of the places from `first` on. One that is no number is above nothing; `skip` tells places
    /// that do not count, and is asked only where the score would.
    pub(super) fn offer(&mut self, scores: &[f32], first: usize, skip: impl Fn(usize) -> bool) {
        if self.most == 0 {
            return;
        }
        let mut floor = self.floor();
        for (c, these) in scores.chunks(TOGETHER).enumerate() {
            // Without a branch for each.
            if !these.iter().fold(false, |any, &s| any | (s > floor)) {
                continue;
            }
            for (k, &score) in these.iter().enumerate() {
                let place = first + c * TOGETHER + k;
                if score > floor && !skip(place) {
                    // There are no two zeros: one would be above the other here, and is not elsewhere.
                    let (score, place) = (score + 0.0, place as u32);
                    let kept = Kept { score, place };
                    if self.heap.len() < self.most {
                        self.heap.push(kept);
                    } else if let Some(mut worst) = self.heap.peek_mut() {
                        *worst = kept;
                    }
                    floor = self.floor();
                }
            }
        }
    }

    /// The places kept, in no order.
    pub(super) fn places(self) -> impl Iterator<Item = usize> {
        self.heap.into_iter().map(|kept| kept.place as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_are_kept_whatever_the_scores() {
        let nan = f32::NAN;
        let scores: Vec<f32> = (0..100u32)
            .map(|i| match i % 10 {
                3 => nan,
                k => ((i * 37 + k) % 23) as f32 - 11.0,
            })
            .collect();
        for most in [0, 1, 5, 89, 90, 1000] {
            let mut expected: Vec<usize> = (0..100).filter(|i| i % 10 != 3 && i % 7 != 0).collect();
            expected.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
            expected.truncate(most);
            expected.sort();
            for piece in [1, 7, 16, 100] {
                let mut top = Top::new(most);
                for (k, these) in scores.chunks(piece).enumerate() {
                    top.offer(these, k * piece, |place| place % 7 == 0);
                }
                let mut found: Vec<usize> = top.places().collect();
                found.sort();
                assert_eq!(found, expected, "{most} {piece}");
            }
        }
    }
}
