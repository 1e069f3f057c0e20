//! A reusable barrier that can be cancelled.

use super::sync::{AtomicBool, AtomicUsize, Ordering, panicking, spin_loop, yield_now};
use crate::cache_line::CacheLine;

/// Number of polls before a waiting thread yields its time slice.
const SPINS_BEFORE_YIELD: usize = if cfg!(loom) { 0 } else { 200 };

/// A point that a fixed number of threads pass together, any number of times. `std::sync::Barrier` blocks
/// in the kernel and cannot be cancelled; this one spins, since phases of a fit last microseconds.
pub struct Barrier {
    threads: usize,
    spins_before_yield: usize,
    arrived: CacheLine<AtomicUsize>,
    released: CacheLine<Released>,
}

/// What waiting threads poll.
struct Released {
    round: AtomicUsize,
    cancelled: AtomicBool,
}

impl Barrier {
    /// Makes a barrier of `threads` threads.
    pub fn new(threads: usize) -> Barrier {
        Barrier {
            threads,
            // With more threads than CPUs, spinning would keep the late threads from running.
            spins_before_yield: if threads > super::cpu_affinity::available_threads() {
                0
            } else {
                SPINS_BEFORE_YIELD
            },
            arrived: CacheLine(AtomicUsize::new(0)),
            released: CacheLine(Released {
                round: AtomicUsize::new(0),
                cancelled: AtomicBool::new(false),
            }),
        }
    }

    /// Waits until all threads have arrived. Writes that a thread made before this call are visible to all
    /// threads after it. The last thread to arrive evaluates `stop`. Returns `false`, on every thread, if
    /// `stop` returned `true` or the barrier was cancelled.
    pub fn wait(&self, stop: impl FnOnce() -> bool) -> bool {
        let round = self.released.0.round.load(Ordering::Relaxed);
        if self.arrived.0.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            if stop() {
                self.released.0.cancelled.store(true, Ordering::Relaxed);
            }
            self.arrived.0.store(0, Ordering::Relaxed);
            self.released
                .0
                .round
                .store(round.wrapping_add(1), Ordering::Release);
        } else {
            let mut spins = 0;
            while self.released.0.round.load(Ordering::Acquire) == round {
                if self.released.0.cancelled.load(Ordering::Relaxed) {
                    return false;
                }
                if spins < self.spins_before_yield {
                    spins += 1;
                    spin_loop();
                } else {
                    yield_now();
                }
            }
        }
        !self.released.0.cancelled.load(Ordering::Relaxed)
    }

    /// Makes every current and later [`Barrier::wait`] return `false`.
    pub fn cancel(&self) {
        self.released.0.cancelled.store(true, Ordering::Relaxed);
    }

    /// Returns whether the barrier was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.released.0.cancelled.load(Ordering::Relaxed)
    }

    /// Returns a guard that cancels the barrier if the calling thread panics before the guard is dropped.
    pub fn cancel_on_panic(&self) -> CancelOnPanic<'_> {
        CancelOnPanic(self)
    }
}

pub struct CancelOnPanic<'a>(&'a Barrier);

impl Drop for CancelOnPanic<'_> {
    fn drop(&mut self) {
        if panicking() {
            self.0.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_thread_passes_before_all_have_arrived() {
        let rounds = if cfg!(miri) { 10 } else { 500 };
        for threads in [1, 2, 5] {
            let barrier = Barrier::new(threads);
            let done = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        for r in 0..rounds {
                            done.fetch_add(1, Ordering::Relaxed);
                            assert!(barrier.wait(|| false));
                            let seen = done.load(Ordering::Relaxed);
                            assert!(seen >= (r + 1) * threads, "{seen} in round {r}");
                            assert!(barrier.wait(|| false));
                        }
                    });
                }
            });
        }
    }

    #[test]
    fn all_threads_stop_in_the_same_round() {
        let barrier = Barrier::new(3);
        let rounds = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut passed = 0;
                    while barrier.wait(|| passed == 4) {
                        passed += 1;
                    }
                    rounds.fetch_add(passed, Ordering::Relaxed);
                });
            }
        });
        assert_eq!(rounds.into_inner(), 12);
    }

    #[test]
    fn a_panic_releases_waiting_threads() {
        let barrier = Barrier::new(2);
        let result = std::thread::scope(|scope| {
            let one = scope.spawn(|| barrier.wait(|| false));
            let other = scope.spawn(|| {
                let _guard = barrier.cancel_on_panic();
                panic!("on purpose");
            });
            assert!(other.join().is_err());
            one.join()
        });
        assert!(!result.unwrap());
    }
}
