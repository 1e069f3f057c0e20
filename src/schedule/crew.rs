//! The threads of a fit.

use std::thread;

use core_affinity::CoreId;

use super::pin::{cores_for, pin};

/// A number of threads, pinned one per core if that was asked for and is possible.
pub(crate) struct Crew {
    threads: usize,
    cores: Vec<CoreId>,
}

/// Which thread of a crew is running.
#[derive(Clone, Copy)]
pub(crate) struct Worker {
    /// From 0.
    pub number: usize,
}

impl Crew {
    /// `place` lets crews side by side begin on different cores.
    pub(crate) fn new(threads: usize, pinned: bool, place: u64) -> Crew {
        Crew {
            threads: threads.max(1),
            cores: if pinned {
                cores_for(threads.max(1), place)
            } else {
                Vec::new()
            },
        }
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Runs `work` on every thread and returns what each gave, in the order of their numbers. The
    /// calling thread waits and is never pinned.
    pub(crate) fn run<T: Send>(&self, work: impl Fn(Worker) -> T + Sync) -> Vec<T> {
        thread::scope(|scope| {
            let handles: Vec<_> = (0..self.threads)
                .map(|number| {
                    let (work, core) = (&work, self.cores.get(number).copied());
                    scope.spawn(move || {
                        if let Some(core) = core {
                            pin(core);
                        }
                        work(Worker { number })
                    })
                })
                .collect();
            handles
                .into_iter()
                .map(|h| {
                    h.join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
                .collect()
        })
    }
}
