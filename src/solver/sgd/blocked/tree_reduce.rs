//! Tree reduction of core deltas whose order of additions is fixed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::error::Result;
use crate::parallel::lock_ignoring_poison;

/// One summand, or the sum over a subtree.
#[derive(Default)]
pub(super) struct PartialSum {
    /// Change of the core.
    pub core_delta: Vec<f32>,
    /// Weighted sum of squared errors.
    pub squared_error: f64,
}

/// Adds up numbered summands in a binary tree while they arrive in any order. Of two sibling subtrees, the thread that
/// completes the second adds both, so the order of additions depends on the number of summands only.
pub(super) struct TreeReduction {
    sums: Vec<Mutex<PartialSum>>,
    /// For the right one of each pair of siblings, whether one of the two is complete.
    sibling_complete: Vec<AtomicBool>,
}

impl TreeReduction {
    /// Creates a reduction of up to `max_count` summands.
    pub(super) fn new(max_count: usize) -> TreeReduction {
        TreeReduction {
            sums: (0..max_count).map(|_| Mutex::default()).collect(),
            sibling_complete: (0..max_count).map(|_| AtomicBool::new(false)).collect(),
        }
    }

    /// Adds summand `k` of `count`, which `fill` writes. After an error of `fill` the sum is unusable.
    pub(super) fn add(
        &self,
        k: usize,
        count: usize,
        fill: impl FnOnce(&mut PartialSum) -> Result<()>,
    ) -> Result<()> {
        fill(&mut lock_ignoring_poison(&self.sums[k]))?;
        let (mut node, mut span) = (k, 1);
        while span < count {
            let (left, right) = (node & !span, node | span);
            if right < count {
                if !self.sibling_complete[right].swap(true, Ordering::AcqRel) {
                    return Ok(());
                }
                self.sibling_complete[right].store(false, Ordering::Relaxed);
                let mut sum = lock_ignoring_poison(&self.sums[left]);
                let other = lock_ignoring_poison(&self.sums[right]);
                let floats = sum.core_delta.iter_mut().zip(&other.core_delta);
                floats.for_each(|(x, y)| *x += y);
                sum.squared_error += other.squared_error;
            }
            (node, span) = (left, 2 * span);
        }
        Ok(())
    }

    /// Returns the sum of all summands. All must have been added.
    pub(super) fn total(&self) -> MutexGuard<'_, PartialSum> {
        lock_ignoring_poison(&self.sums[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    #[test]
    fn a_sum_contains_every_summand_once_and_is_independent_of_their_arrival() {
        let reduction = TreeReduction::new(13);
        for count in 1..=13usize {
            let mut first = None;
            for round in 0..20 {
                let mut order: Vec<usize> = (0..count).collect();
                let mut stream = RandomStream::new(&[round]);
                for i in (1..count).rev() {
                    order.swap(i, stream.below(i as u64 + 1) as usize);
                }
                for &k in &order {
                    let fill = |sum: &mut PartialSum| {
                        sum.core_delta = vec![1.0 / (k as f32 + 3.0); 2];
                        sum.squared_error = (1u64 << k) as f64;
                        Ok(())
                    };
                    reduction.add(k, count, fill).unwrap();
                }
                let sum = reduction.total();
                assert_eq!(sum.squared_error, ((1u64 << count) - 1) as f64);
                let bits = sum.core_delta[1].to_bits();
                assert_eq!(*first.get_or_insert(bits), bits);
            }
        }
    }
}
