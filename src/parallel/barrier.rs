//! Where threads wait for each other between steps.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Looks this many times before giving way to other threads.
const SPINS: usize = 200;

/// A point that a number of threads pass together, again and again.
pub(crate) struct Meeting {
    threads: usize,
    arrived: AtomicUsize,
    round: AtomicUsize,
    over: AtomicBool,
    spins: usize,
}

impl Meeting {
    pub(crate) fn new(threads: usize) -> Meeting {
        Meeting {
            threads,
            arrived: AtomicUsize::new(0),
            round: AtomicUsize::new(0),
            over: AtomicBool::new(false),
            // With more threads than cores, looking keeps those from running that are waited for.
            spins: if threads > super::available_threads() {
                0
            } else {
                SPINS
            },
        }
    }

    /// Waits for all threads. What they wrote before, all see after. The last to arrive asks `stop`;
    /// if it says so, or a thread has panicked, all are told to stop: the result is `false`.
    pub(crate) fn wait(&self, stop: impl FnOnce() -> bool) -> bool {
        let round = self.round.load(Ordering::Relaxed);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            if stop() {
                self.over.store(true, Ordering::Relaxed);
            }
            self.arrived.store(0, Ordering::Relaxed);
            self.round.store(round.wrapping_add(1), Ordering::Release);
        } else {
            let mut looks = 0;
            while self.round.load(Ordering::Acquire) == round {
                if self.over.load(Ordering::Relaxed) {
                    return false;
                }
                if looks < self.spins {
                    looks += 1;
                    std::hint::spin_loop();
                } else {
                    std::thread::yield_now();
                }
            }
        }
        !self.over.load(Ordering::Relaxed)
    }

    /// Ends the meeting for everybody: whoever waits, or comes, is told to stop.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Whether it was ended.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Ends the meeting for everybody if the calling thread panics before the guard is dropped.
    pub(crate) fn guard(&self) -> Guard<'_> {
        Guard(self)
    }
}

pub(crate) struct Guard<'a>(&'a Meeting);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_passes_before_all_are_there() {
        let rounds = if cfg!(miri) { 10 } else { 500 };
        for threads in [1, 2, 5] {
            let meeting = Meeting::new(threads);
            let done = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        for r in 0..rounds {
                            done.fetch_add(1, Ordering::Relaxed);
                            assert!(meeting.wait(|| false));
                            let seen = done.load(Ordering::Relaxed);
                            assert!(seen >= (r + 1) * threads, "{seen} in round {r}");
                            assert!(meeting.wait(|| false));
                        }
                    });
                }
            });
        }
    }

    #[test]
    fn all_stop_in_the_same_round() {
        let meeting = Meeting::new(3);
        let rounds = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut passed = 0;
                    while meeting.wait(|| passed == 4) {
                        passed += 1;
                    }
                    rounds.fetch_add(passed, Ordering::Relaxed);
                });
            }
        });
        assert_eq!(rounds.into_inner(), 12);
    }

    #[test]
    fn a_panic_lets_nobody_wait_for_ever() {
        let meeting = Meeting::new(2);
        let result = std::thread::scope(|scope| {
            let one = scope.spawn(|| meeting.wait(|| false));
            let other = scope.spawn(|| {
                let _guard = meeting.guard();
                panic!("on purpose");
            });
            assert!(other.join().is_err());
            one.join()
        });
        assert!(!result.unwrap());
    }
}
