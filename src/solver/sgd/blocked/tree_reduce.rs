//! What the cells of a group move the core by, added up as they come in, always in the same order.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Something to add up.
#[derive(Default)]
pub(super) struct Sum {
    pub moves: Vec<f32>,
    pub squares: f64,
}

/// Sums of pairs, of pairs of pairs and so on: whoever is second of a pair adds up both.
pub(super) struct Gather {
    sums: Vec<Mutex<Sum>>,
    /// For the right one of each pair, whether the first of both has come.
    come: Vec<AtomicBool>,
}

fn locked<T>(sum: &Mutex<T>) -> MutexGuard<'_, T> {
    sum.lock().unwrap_or_else(|e| e.into_inner())
}

impl Gather {
    /// For up to `count`.
    pub(super) fn new(count: usize) -> Gather {
        Gather {
            sums: (0..count).map(|_| Mutex::default()).collect(),
            come: (0..count).map(|_| AtomicBool::new(false)).collect(),
        }
    }

    /// Number `k` of `count` comes, with what `fill` leaves there.
    pub(super) fn put(&self, k: usize, count: usize, fill: impl FnOnce(&mut Sum)) {
        fill(&mut locked(&self.sums[k]));
        let (mut at, mut span) = (k, 1);
        while span < count {
            let (left, right) = (at & !span, at | span);
            if right < count {
                if !self.come[right].swap(true, Ordering::AcqRel) {
                    return;
                }
                self.come[right].store(false, Ordering::Relaxed);
                let (mut to, from) = (locked(&self.sums[left]), locked(&self.sums[right]));
                let each = to.moves.iter_mut().zip(&from.moves);
                each.for_each(|(x, y)| *x += y);
                to.squares += from.squares;
            }
            (at, span) = (left, 2 * span);
        }
    }

    /// The sum, when all have come.
    pub(super) fn total(&self) -> MutexGuard<'_, Sum> {
        locked(&self.sums[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    #[test]
    fn sums_have_everything_once_and_do_not_depend_on_who_comes_first() {
        let gather = Gather::new(13);
        for count in 1..=13usize {
            let mut first = None;
            for round in 0..20 {
                let mut order: Vec<usize> = (0..count).collect();
                let mut stream = RandomStream::new(&[round]);
                for i in (1..count).rev() {
                    order.swap(i, stream.below(i as u64 + 1) as usize);
                }
                for &k in &order {
                    gather.put(k, count, |sum| {
                        sum.moves = vec![1.0 / (k as f32 + 3.0); 2];
                        sum.squares = (1u64 << k) as f64;
                    });
                }
                let sum = gather.total();
                assert_eq!(sum.squares, ((1u64 << count) - 1) as f64);
                let bits = sum.moves[1].to_bits();
                assert_eq!(*first.get_or_insert(bits), bits);
            }
        }
    }
}
