//! The threads of a fit: [`ThreadPool`].

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use core_affinity::CoreId;

use super::cpu_affinity::cpus_for_threads;
use super::result_slots::ResultSlots;
use super::stop_flag::StopFlag;
use super::worker_threads::WorkerThreads;
use crate::error::Result;

/// A fixed number of threads, optionally pinned one per CPU. They are started on first use and live as long as
/// the pool.
pub(crate) struct ThreadPool {
    threads: usize,
    /// One CPU per thread; empty if the threads are not pinned.
    cpus: Vec<CoreId>,
    workers: Mutex<WorkerThreads>,
}

/// The arguments of a closure that [`ThreadPool::run`] executes on one thread.
pub(crate) struct WorkerContext<'a> {
    /// Index of this thread, from 0.
    pub index: usize,
    /// Number of threads that run the closure.
    pub threads: usize,
    /// Set when the closure should return early.
    pub stop: &'a StopFlag,
}

/// The work of one thread of [`ThreadPool::map`]: calls its argument for the index of the next piece until there is none.
type PieceLoop<'a> = dyn Fn(&mut dyn FnMut() -> Option<usize>) + Sync + 'a;

impl ThreadPool {
    /// Creates a pool. Concurrent pinned pools should pass different values of `first_cpu`
    /// ([`super::varying_first_cpu`]), so that they start on different cores.
    pub(crate) fn new(threads: usize, pinned: bool, first_cpu: u64) -> ThreadPool {
        let threads = threads.max(1);
        ThreadPool {
            threads,
            cpus: if pinned {
                cpus_for_threads(threads, first_cpu)
            } else {
                Vec::new()
            },
            workers: Mutex::new(WorkerThreads::new()),
        }
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Runs `body` on `threads` of the threads and returns their results in the order of the thread index. The
    /// calling thread waits, is never pinned, and polls `cancelled`. Returns `None` if that returned `true`:
    /// workers then see [`WorkerContext::stop`], and their results are discarded.
    pub(crate) fn run<T: Send>(
        &self,
        threads: usize,
        cancelled: &mut dyn FnMut() -> bool,
        body: impl Fn(WorkerContext<'_>) -> T + Sync,
    ) -> Result<Option<Vec<T>>> {
        let results = ResultSlots::new(self.threads);
        let completed = self.run_dyn(threads, cancelled, &|worker| {
            let index = worker.index;
            results.put(index, body(worker));
        });
        results.into_results(completed)
    }

    /// [`ThreadPool::run`] without results and without type parameters. Returns `false` if cancelled.
    fn run_dyn(
        &self,
        threads: usize,
        cancelled: &mut dyn FnMut() -> bool,
        body: &(dyn Fn(WorkerContext<'_>) + Sync),
    ) -> Result<bool> {
        let threads = threads.clamp(1, self.threads);
        let stop = StopFlag::new();
        let run_one = |index: usize| {
            body(WorkerContext {
                index,
                threads,
                stop: &stop,
            });
        };
        let mut workers = self.workers.lock().unwrap_or_else(|e| e.into_inner());
        workers.grow(threads, &self.cpus)?;
        workers.run(threads, &run_one, &mut || {
            if !stop.requested() && cancelled() {
                stop.request();
            }
        });
        Ok(!stop.requested())
    }

    /// Computes pieces `0..count` with `work` and returns them in index order. Each thread creates its own
    /// `state` first. Threads take pieces in [`stealing_order`]: the same thread computes the same pieces in
    /// every call unless it falls behind, so that memory stays near its CPU. Returns `None` if cancelled.
    pub(crate) fn map<S, T: Send>(
        &self,
        count: usize,
        cancelled: &mut dyn FnMut() -> bool,
        state: impl Fn() -> S + Sync,
        work: impl Fn(&mut S, usize) -> T + Sync,
    ) -> Result<Option<Vec<T>>> {
        let results = ResultSlots::new(count);
        let completed = self.map_dyn(count, cancelled, &|next_piece| {
            let mut state = state();
            while let Some(i) = next_piece() {
                results.put(i, work(&mut state, i));
            }
        });
        results.into_results(completed)
    }

    /// [`ThreadPool::map`] without results and without type parameters: calls `body` once per thread with a
    /// function that returns the next piece. Returns `false` if cancelled.
    fn map_dyn(
        &self,
        count: usize,
        cancelled: &mut dyn FnMut() -> bool,
        body: &PieceLoop<'_>,
    ) -> Result<bool> {
        let taken: Vec<AtomicBool> = (0..count).map(|_| AtomicBool::new(false)).collect();
        self.run_dyn(self.threads.min(count), cancelled, &|worker| {
            let mut order = stealing_order(worker.index, worker.threads, count);
            body(&mut || {
                if worker.stop.requested() {
                    return None;
                }
                order.find(|&i| !taken[i].swap(true, Ordering::Relaxed))
            });
        })
    }
}

/// Returns `0..count` in the order in which thread `thread` of `threads` tries to take tasks: its own tasks
/// `thread`, `thread + threads`, ... first, then those of the following threads.
pub(crate) fn stealing_order(
    thread: usize,
    threads: usize,
    count: usize,
) -> impl Iterator<Item = usize> {
    (0..threads).flat_map(move |other| ((thread + other) % threads..count).step_by(threads))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_runs_and_results_are_in_thread_order() {
        let pool = ThreadPool::new(3, true, 0);
        let got = pool.run(3, &mut || false, |w| w.index * 10).unwrap();
        assert_eq!(got, Some(vec![0, 10, 20]));
        assert_eq!(
            pool.run(1, &mut || false, |w| w.threads).unwrap(),
            Some(vec![1])
        );
    }

    #[test]
    fn map_returns_pieces_in_index_order() {
        for threads in [1, 3] {
            let pool = ThreadPool::new(threads, false, 0);
            for count in [0, 1, 2, 100] {
                let got = pool
                    .map(count, &mut || false, || (), |(), i| i * i)
                    .unwrap();
                assert_eq!(got, Some((0..count).map(|i| i * i).collect()));
            }
        }
    }

    #[test]
    fn a_thread_takes_its_own_tasks_first_and_then_all_others() {
        assert!(stealing_order(1, 3, 7).eq([1, 4, 2, 5, 0, 3, 6]));
        assert!(stealing_order(2, 4, 2).eq([0, 1]));
        assert!(stealing_order(0, 1, 3).eq([0, 1, 2]));
    }

    #[test]
    fn an_endless_closure_can_be_cancelled() {
        let endless = |w: WorkerContext<'_>| {
            while !w.stop.requested() {
                std::thread::yield_now();
            }
        };
        assert!(
            ThreadPool::new(2, false, 0)
                .run(2, &mut || true, endless)
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn threads_are_reused_and_added_on_demand() {
        let pool = ThreadPool::new(4, false, 0);
        let ids = |threads: usize| {
            let id = |_: WorkerContext<'_>| std::thread::current().id();
            pool.run(threads, &mut || false, id).unwrap().unwrap()
        };
        let (two, four, again) = (ids(2), ids(4), ids(2));
        assert_eq!((&two[..], &again[..]), (&four[..2], &four[..2]));
        // A panic leaves all threads alive.
        let failing_run = || pool.run(4, &mut || false, |w| assert_ne!(w.index, 2, "this one"));
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(failing_run));
        assert!(caught.is_err());
        assert_eq!(ids(4), four);
    }

    #[test]
    #[should_panic(expected = "not this one")]
    fn a_panic_reaches_the_caller() {
        let work = |w: WorkerContext<'_>| assert_ne!(w.index, 1, "not this one");
        let _ = ThreadPool::new(2, false, 0).run(2, &mut || false, work);
    }
}
