//! The threads of a fit.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use core_affinity::CoreId;

use super::Stop;
use super::affinity::cores_for;
use super::workers::Pool;
use crate::error::Result;

/// A number of threads, pinned one per core if that was asked for and is possible. They are started when there is
/// work for them and live as long as the crew.
pub(crate) struct Crew {
    threads: usize,
    cores: Vec<CoreId>,
    pool: Mutex<Pool>,
}

/// Which thread of a crew is running.
pub(crate) struct Worker<'a> {
    /// From 0.
    pub number: usize,
    /// How many there are.
    pub threads: usize,
    /// Whether to give up.
    pub stop: &'a Stop,
}

impl Crew {
    /// `place` lets crews side by side begin on different cores.
    pub(crate) fn new(threads: usize, pinned: bool, place: u64) -> Crew {
        let threads = threads.max(1);
        Crew {
            threads,
            cores: if pinned {
                cores_for(threads, place)
            } else {
                Vec::new()
            },
            pool: Mutex::new(Pool::new()),
        }
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Runs `work` on `threads` of the threads and returns what each gave, in the order of their
    /// numbers. The calling thread waits, is never pinned, and asks `cancelled` now and then; `None`
    /// means that it said so and the work was given up.
    pub(crate) fn run<T: Send>(
        &self,
        threads: usize,
        cancelled: &mut dyn FnMut() -> bool,
        work: impl Fn(Worker<'_>) -> T + Sync,
    ) -> Result<Option<Vec<T>>> {
        let threads = threads.clamp(1, self.threads);
        let stop = Stop::new();
        let results: Vec<Mutex<Option<T>>> = (0..threads).map(|_| Mutex::new(None)).collect();
        let one = |number: usize| {
            let made = work(Worker {
                number,
                threads,
                stop: &stop,
            });
            *results[number].lock().unwrap_or_else(|e| e.into_inner()) = Some(made);
        };
        let mut pool = self.pool.lock().unwrap_or_else(|e| e.into_inner());
        pool.grow(threads, &self.cores)?;
        pool.run(threads, &one, &mut || {
            if !stop.requested() && cancelled() {
                stop.request();
            }
        });
        if stop.requested() {
            return Ok(None);
        }
        let made = results
            .into_iter()
            .filter_map(|r| r.into_inner().unwrap_or_else(|e| e.into_inner()));
        Ok(Some(made.collect()))
    }

    /// Makes `count` pieces with `work` and returns them in order; each thread makes its own state
    /// first. A piece is made by the thread whose turn it is ([`turns`]), unless that falls behind: memory then
    /// lies near the one that will use it. `None` means that `cancelled` said so.
    pub(crate) fn map<S, T: Send>(
        &self,
        count: usize,
        cancelled: &mut dyn FnMut() -> bool,
        state: impl Fn() -> S + Sync,
        work: impl Fn(&mut S, usize) -> T + Sync,
    ) -> Result<Option<Vec<T>>> {
        let taken: Vec<AtomicBool> = (0..count).map(|_| AtomicBool::new(false)).collect();
        let made = self.run(self.threads.min(count), cancelled, |worker| {
            let mut state = state();
            let mut made = Vec::new();
            for i in turns(worker.number, worker.threads, count) {
                if worker.stop.requested() {
                    break;
                }
                if !taken[i].swap(true, Ordering::Relaxed) {
                    made.push((i, work(&mut state, i)));
                }
            }
            made
        })?;
        Ok(made.map(|made| {
            let mut all: Vec<(usize, T)> = made.into_iter().flatten().collect();
            all.sort_unstable_by_key(|(i, _)| *i);
            all.into_iter().map(|(_, piece)| piece).collect()
        }))
    }
}

/// All of `0..count` in the order in which a thread looks after them: its own first, the same every
/// time, then those of the others.
pub(crate) fn turns(thread: usize, threads: usize, count: usize) -> impl Iterator<Item = usize> {
    (0..threads).flat_map(move |other| ((thread + other) % threads..count).step_by(threads))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_works_and_results_are_in_order() {
        let crew = Crew::new(3, true, 0);
        let got = crew.run(3, &mut || false, |w| w.number * 10).unwrap();
        assert_eq!(got, Some(vec![0, 10, 20]));
        assert_eq!(
            crew.run(1, &mut || false, |w| w.threads).unwrap(),
            Some(vec![1])
        );
    }

    #[test]
    fn pieces_come_back_in_order() {
        for threads in [1, 3] {
            let crew = Crew::new(threads, false, 0);
            for count in [0, 1, 2, 100] {
                let got = crew
                    .map(count, &mut || false, || (), |(), i| i * i)
                    .unwrap();
                assert_eq!(got, Some((0..count).map(|i| i * i).collect()));
            }
        }
    }

    #[test]
    fn a_thread_looks_after_its_own_first_and_then_after_all() {
        assert!(turns(1, 3, 7).eq([1, 4, 2, 5, 0, 3, 6]));
        assert!(turns(2, 4, 2).eq([0, 1]));
        assert!(turns(0, 1, 3).eq([0, 1, 2]));
    }

    #[test]
    fn work_that_never_ends_can_be_given_up() {
        let endless = |w: Worker<'_>| {
            while !w.stop.requested() {
                std::thread::yield_now();
            }
        };
        assert!(
            Crew::new(2, false, 0)
                .run(2, &mut || true, endless)
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn threads_live_on_and_more_come_when_they_are_asked_for() {
        let crew = Crew::new(4, false, 0);
        let names = |threads: usize| {
            let name = |_: Worker<'_>| std::thread::current().id();
            crew.run(threads, &mut || false, name).unwrap().unwrap()
        };
        let (two, four, again) = (names(2), names(4), names(2));
        assert_eq!((&two[..], &again[..]), (&four[..2], &four[..2]));
        // Also after a panic, which all others outlive.
        let panics = || crew.run(4, &mut || false, |w| assert_ne!(w.number, 2, "this one"));
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics));
        assert!(caught.is_err());
        assert_eq!(names(4), four);
    }

    #[test]
    #[should_panic(expected = "not this one")]
    fn a_panic_is_passed_on() {
        let work = |w: Worker<'_>| assert_ne!(w.number, 1, "not this one");
        let _ = Crew::new(2, false, 0).run(2, &mut || false, work);
    }
}
