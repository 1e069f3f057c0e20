//! The threads of a fit: [`ThreadPool`].

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::cpu_affinity::{CoreId, cpus_for_threads};
use super::lock::lock_ignoring_poison;
use super::result_slots::ResultSlots;
use super::stealing_order::stealing_order;
use super::worker_threads::WorkerThreads;
use crate::error::{Error, Result};
use crate::progress::{Monitor, StopFlag, check_cancelled};
use crate::trace::ParallelRegion;

/// A fixed number of threads, optionally pinned one per CPU. They are started on first use and live as long as
/// the pool. The pool works for an operation that its monitor can cancel.
pub struct ThreadPool<'m> {
    threads: usize,
    /// One CPU per thread; empty if the threads are not pinned.
    cpus: Vec<CoreId>,
    workers: Mutex<WorkerThreads>,
    monitor: &'m dyn Monitor,
    /// Set when the closures of the current call should return early.
    stop: StopFlag,
}

/// The arguments of a closure that [`ThreadPool::run`] executes on one thread.
pub struct WorkerContext<'a> {
    /// Index of this thread, from 0.
    pub index: usize,
    /// Number of threads that run the closure.
    pub threads: usize,
    /// Set when the closure should return early.
    pub stop: &'a StopFlag,
}

/// The work of one thread of [`ThreadPool::map`]: calls its argument for the index of the next piece until there is none.
type PieceLoop<'a> = dyn Fn(&mut dyn FnMut() -> Option<usize>) + Sync + 'a;

impl ThreadPool<'static> {
    /// Creates a pool that nothing cancels. Concurrent pinned pools should pass different values of `first_cpu`
    /// ([`super::varying_first_cpu`]), so that they start on different cores.
    pub fn new(threads: usize, pinned: bool, first_cpu: u64) -> ThreadPool<'static> {
        let threads = threads.max(1);
        ThreadPool {
            threads,
            cpus: if pinned {
                cpus_for_threads(threads, first_cpu)
            } else {
                Vec::new()
            },
            workers: Mutex::new(WorkerThreads::new()),
            monitor: &(),
            stop: StopFlag::new(),
        }
    }
}

impl<'m> ThreadPool<'m> {
    /// Returns the pool for an operation that `monitor` can cancel.
    pub fn with_monitor(self, monitor: &dyn Monitor) -> ThreadPool<'_> {
        ThreadPool {
            threads: self.threads,
            cpus: self.cpus,
            workers: self.workers,
            monitor,
            stop: self.stop,
        }
    }

    /// Returns the number of threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Returns the monitor of the operation that the pool works for.
    pub fn monitor(&self) -> &'m dyn Monitor {
        self.monitor
    }

    /// Returns [`Error::Cancelled`] if the monitor asks to stop. The calling thread polls it where it works alone.
    pub fn check_cancelled(&self) -> Result<()> {
        check_cancelled(self.monitor)
    }

    /// Returns the flag that is set when the closures of the current call should return early. A closure with long pieces
    /// polls it and returns any value.
    pub fn stop(&self) -> &StopFlag {
        &self.stop
    }

    /// Runs `body` on `threads` of the threads and returns their results in the order of the thread index. The
    /// calling thread waits, is never pinned, and polls the monitor. If that cancels, workers see
    /// [`WorkerContext::stop`], and the result is [`Error::Cancelled`].
    pub fn run<T: Send>(
        &self,
        threads: usize,
        body: impl Fn(WorkerContext<'_>) -> T + Sync,
    ) -> Result<Vec<T>> {
        let results = ResultSlots::new(self.threads);
        let completed = self.run_dyn(threads, &|_| {}, &|worker| {
            let index = worker.index;
            results.put(index, body(worker));
        });
        results.into_results(completed)
    }

    /// [`ThreadPool::run`] without results and without type parameters. Also calls `report` with the monitor at each poll.
    fn run_dyn(
        &self,
        threads: usize,
        report: &dyn Fn(&dyn Monitor),
        body: &(dyn Fn(WorkerContext<'_>) + Sync),
    ) -> Result<()> {
        let threads = threads.clamp(1, self.threads);
        let (stop, monitor) = (&self.stop, self.monitor);
        let region = ParallelRegion::begin();
        let run_one = |index: usize| {
            stop.operations.start();
            let worker = WorkerContext {
                index,
                threads,
                stop,
            };
            region.record(index, || body(worker));
            stop.operations.poll();
        };
        let mut workers = self.workers.lock().unwrap_or_else(|e| e.into_inner());
        stop.clear();
        workers.grow(threads, &self.cpus)?;
        workers.run(threads, &run_one, &mut || {
            report(monitor);
            if !stop.requested() && monitor.cancelled() {
                stop.request();
            }
        });
        region.end(threads);
        stop.operations.report();
        if stop.requested() {
            return Err(Error::Cancelled);
        }
        Ok(())
    }

    /// Computes pieces `0..count` with `work` and returns them in index order. Each thread creates its own
    /// `state` first. Threads take pieces in [`stealing_order`]: the same thread computes the same pieces in
    /// every call unless it falls behind, so that memory stays near its CPU. Returns [`Error::Cancelled`] if the monitor
    /// cancels.
    pub fn map<S, T: Send>(
        &self,
        count: usize,
        state: impl Fn() -> S + Sync,
        work: impl Fn(&mut S, usize) -> T + Sync,
    ) -> Result<Vec<T>> {
        self.map_with_report(count, &|_| {}, state, work)
    }

    /// [`ThreadPool::map`] of pieces and states that can fail. Returns the first error in index order; after an error of a
    /// state, that of a thread.
    pub fn try_map<S, T: Send>(
        &self,
        count: usize,
        state: impl Fn() -> Result<S> + Sync,
        work: impl Fn(&mut S, usize) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let failed_state = Mutex::new(None);
        let state = || {
            let state = state();
            state
                .map_err(|e| *lock_ignoring_poison(&failed_state) = Some(e))
                .ok()
        };
        let results = self.map(count, state, |state, i| match state {
            Some(state) => work(state, i).map(Some),
            None => Ok(None),
        })?;
        if let Some(error) = lock_ignoring_poison(&failed_state).take() {
            return Err(error);
        }
        let mut items = Vec::with_capacity(count);
        for result in results {
            items.extend(result?);
        }
        Ok(items)
    }

    /// [`ThreadPool::map`] that also calls `report` with the monitor at each poll.
    pub fn map_with_report<S, T: Send>(
        &self,
        count: usize,
        report: &dyn Fn(&dyn Monitor),
        state: impl Fn() -> S + Sync,
        work: impl Fn(&mut S, usize) -> T + Sync,
    ) -> Result<Vec<T>> {
        let results = ResultSlots::new(count);
        let completed = self.map_dyn(count, report, &|next_piece| {
            let mut state = state();
            while let Some(i) = next_piece() {
                results.put(i, work(&mut state, i));
            }
        });
        results.into_results(completed)
    }

    /// [`ThreadPool::map_with_report`] without results and without type parameters: calls `body` once per thread with a
    /// function that returns the next piece.
    fn map_dyn(
        &self,
        count: usize,
        report: &dyn Fn(&dyn Monitor),
        body: &PieceLoop<'_>,
    ) -> Result<()> {
        let taken: Vec<AtomicBool> = (0..count).map(|_| AtomicBool::new(false)).collect();
        self.run_dyn(self.threads.min(count), report, &|worker| {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_runs_and_results_are_in_thread_order() {
        let pool = ThreadPool::new(3, true, 0);
        let got = pool.run(3, |w| w.index * 10).unwrap();
        assert_eq!(got, [0, 10, 20]);
        assert_eq!(pool.run(1, |w| w.threads).unwrap(), [1]);
    }

    #[test]
    fn map_returns_pieces_in_index_order() {
        for threads in [1, 3] {
            let pool = ThreadPool::new(threads, false, 0);
            for count in [0, 1, 2, 100] {
                let got = pool.map(count, || (), |(), i| i * i).unwrap();
                assert_eq!(got, (0..count).map(|i| i * i).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn an_endless_closure_can_be_cancelled() {
        let endless = |w: WorkerContext<'_>| {
            while !w.stop.requested() {
                std::thread::yield_now();
            }
        };
        let cancelling = StopFlag::new();
        cancelling.request();
        let pool = ThreadPool::new(2, false, 0).with_monitor(&cancelling);
        assert!(matches!(pool.run(2, endless), Err(Error::Cancelled)));
        // The pool can be used again.
        cancelling.clear();
        assert_eq!(pool.run(2, |w| w.index).unwrap(), [0, 1]);
    }

    #[test]
    fn errors_of_pieces_and_states_are_passed_on() {
        let pool = ThreadPool::new(2, false, 0);
        let fail = |i: usize| match i {
            3.. => Err(Error::argument(format!("piece {i}"))),
            _ => Ok(i),
        };
        assert_eq!(
            pool.try_map(3, || Ok(()), |(), i| fail(i)).unwrap(),
            [0, 1, 2]
        );
        let error = pool.try_map(9, || Ok(()), |(), i| fail(i)).unwrap_err();
        assert!(error.to_string().contains("piece 3"), "{error}");
        let state = || -> Result<()> { Err(Error::argument("no state")) };
        let error = pool.try_map(9, state, |(), i| Ok(i)).unwrap_err();
        assert!(error.to_string().contains("no state"), "{error}");
    }

    #[test]
    fn threads_are_reused_and_added_on_demand() {
        let pool = ThreadPool::new(4, false, 0);
        let ids = |threads: usize| {
            let id = |_: WorkerContext<'_>| std::thread::current().id();
            pool.run(threads, id).unwrap()
        };
        let (two, four, again) = (ids(2), ids(4), ids(2));
        assert_eq!((&two[..], &again[..]), (&four[..2], &four[..2]));
        // A panic leaves all threads alive.
        let failing_run = || pool.run(4, |w| assert_ne!(w.index, 2, "this one"));
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(failing_run));
        assert!(caught.is_err());
        assert_eq!(ids(4), four);
    }

    #[test]
    #[should_panic(expected = "not this one")]
    fn a_panic_reaches_the_caller() {
        let work = |w: WorkerContext<'_>| assert_ne!(w.index, 1, "not this one");
        let _ = ThreadPool::new(2, false, 0).run(2, work);
    }
}
