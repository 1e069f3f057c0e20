//! Which thread does what in a step.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Who does which task of a step. Every thread has tasks of its own, the same in every step, whose rows
/// stay in its cache; when it is done with them it helps the others.
pub(super) struct Turns {
    /// For each task, how many steps it was taken in.
    taken: Vec<AtomicUsize>,
}

impl Turns {
    pub(super) fn new(most: usize) -> Turns {
        Turns {
            taken: (0..most).map(|_| AtomicUsize::new(0)).collect(),
        }
    }

    /// Does tasks `0..count` of step `round`, each once, together with the other threads.
    pub(super) fn take(
        &self,
        round: usize,
        count: usize,
        thread: usize,
        threads: usize,
        mut task: impl FnMut(usize),
    ) {
        for other in 0..threads {
            for t in ((thread + other) % threads..count).step_by(threads) {
                // Tasks a step does not have stay behind and are caught up with.
                let taken = &self.taken[t];
                let last = taken.load(Ordering::Relaxed);
                let mine = last <= round
                    && taken
                        .compare_exchange(last, round + 1, Ordering::Relaxed, Ordering::Relaxed)
                        .is_ok();
                if mine {
                    task(t);
                }
            }
        }
    }
}

/// Does tasks `0..count`, each once, together with the other threads that share the counter.
pub(super) fn take_turns(next: &AtomicUsize, count: usize, mut task: impl FnMut(usize)) {
    loop {
        let t = next.fetch_add(1, Ordering::Relaxed);
        if t >= count {
            return;
        }
        task(t);
    }
}
