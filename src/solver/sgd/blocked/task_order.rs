//! The distribution of tasks among threads, and the order in which tasks may start.

use crate::cache_line::CacheLine;
use crate::error::Result;
use crate::parallel::stealing_order;
use crate::parallel::sync::{AtomicUsize, Ordering, spin_loop, yield_now};

/// Number of polls before a waiting thread yields its time slice.
const SPINS_BEFORE_YIELD: usize = if cfg!(loom) { 0 } else { 200 };

fn counters(count: usize) -> Vec<CacheLine<AtomicUsize>> {
    (0..count).map(|_| CacheLine::default()).collect()
}

/// Distributes the tasks of one or more rounds among threads. All rounds have the same number of tasks.
///
/// Every thread has tasks of its own, the same in every round, whose rows stay in its cache; after those it takes
/// tasks of other threads. There is no barrier between rounds. A task waits for the tasks of earlier rounds that have one of
/// its parts. This cannot deadlock, because threads take all tasks of a round before any of the next.
pub(super) struct RoundTasks {
    /// For each task, the number of rounds in which a thread took it.
    taken: Vec<CacheLine<AtomicUsize>>,
    /// For each axis and part, the number of rounds in which a task with this part finished.
    finished: Vec<Vec<CacheLine<AtomicUsize>>>,
}

impl RoundTasks {
    /// Creates counters for up to `tasks` tasks per round. On each of `axes` axes, a task has one of `parts` parts.
    pub(super) fn new(tasks: usize, axes: usize, parts: usize) -> RoundTasks {
        RoundTasks {
            taken: counters(tasks),
            finished: (0..axes).map(|_| counters(parts)).collect(),
        }
    }

    /// Resets the counters for the next [`Self::run`]. Must not be called while a thread is in [`Self::run`].
    pub(super) fn reset(&self) {
        let all = self.taken.iter().chain(self.finished.iter().flatten());
        all.for_each(|c| c.0.store(0, Ordering::Relaxed));
    }

    /// Runs tasks `0..count` of each of `rounds` rounds once, together with the other threads. `run_task` gets the
    /// round and the task. Returns `false`, or an error, as soon as `run_task` does.
    pub(super) fn run(
        &self,
        rounds: usize,
        count: usize,
        thread: usize,
        threads: usize,
        mut run_task: impl FnMut(usize, usize) -> Result<bool>,
    ) -> Result<bool> {
        for round in 0..rounds {
            for task in stealing_order(thread, threads, count) {
                let taken = &self.taken[task].0;
                let relaxed = Ordering::Relaxed;
                let won = taken.load(relaxed) == round
                    && taken
                        .compare_exchange(round, round + 1, relaxed, relaxed)
                        .is_ok();
                if won && !run_task(round, task)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Waits until the tasks of all rounds before `round` are done with the parts at `coordinates`. Returns `false` if
    /// `stop` does before.
    pub(super) fn wait_for_earlier_rounds(
        &self,
        coordinates: &[usize],
        round: usize,
        stop: impl Fn() -> bool,
    ) -> bool {
        for (finished, &part) in self.finished.iter().zip(coordinates) {
            let mut spins = 0;
            while finished[part].0.load(Ordering::Acquire) < round {
                spins += 1;
                if spins < SPINS_BEFORE_YIELD {
                    spin_loop();
                } else if stop() {
                    return false;
                } else {
                    yield_now();
                }
            }
        }
        true
    }

    /// Marks the task of `round` with the parts at `coordinates` as finished.
    pub(super) fn finish(&self, coordinates: &[usize], round: usize) {
        for (finished, &part) in self.finished.iter().zip(coordinates) {
            finished[part].0.store(round + 1, Ordering::Release);
        }
    }
}

/// Distributes independent tasks among threads. Every thread has a contiguous range of tasks of its own, whose results stay
/// in its cache; after those it takes tasks of other threads.
pub(super) struct ContiguousTasks {
    /// For each thread, the number of its tasks that were taken.
    taken: Vec<CacheLine<AtomicUsize>>,
}

impl ContiguousTasks {
    pub(super) fn new(threads: usize) -> ContiguousTasks {
        ContiguousTasks {
            taken: counters(threads),
        }
    }

    /// Resets the counters for the next [`Self::run`]. Must not be called while a thread is in [`Self::run`].
    pub(super) fn reset(&self) {
        self.taken
            .iter()
            .for_each(|c| c.0.store(0, Ordering::Relaxed));
    }

    /// Runs tasks `0..count` once, together with the other threads. Returns the first error of this thread at once.
    pub(super) fn run(
        &self,
        count: usize,
        thread: usize,
        mut run_task: impl FnMut(usize) -> Result<()>,
    ) -> Result<()> {
        let threads = self.taken.len();
        for owner in (0..threads).map(|other| (thread + other) % threads) {
            let (start, end) = (count * owner / threads, count * (owner + 1) / threads);
            let taken = &self.taken[owner].0;
            while start + taken.load(Ordering::Relaxed) < end {
                let task = start + taken.fetch_add(1, Ordering::Relaxed);
                if task < end {
                    run_task(task)?;
                }
            }
        }
        Ok(())
    }
}

/// Runs tasks `0..count` once, together with the other threads that share the counter `next`. Returns the first error of
/// this thread at once.
pub(super) fn run_shared_tasks(
    next: &AtomicUsize,
    count: usize,
    mut run_task: impl FnMut(usize) -> Result<()>,
) -> Result<()> {
    loop {
        let task = next.fetch_add(1, Ordering::Relaxed);
        if task >= count {
            return Ok(());
        }
        run_task(task)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn tasks_with_a_common_part_run_in_the_order_of_rounds() {
        let parts = 6;
        for (threads, rounds) in [(1, 5), (2, 5), (4, 5), (9, 5), (1, 1), (4, 1), (9, 1)] {
            let tasks = RoundTasks::new(parts, 2, parts);
            for _ in 0..if cfg!(miri) { 2 } else { 50 } {
                let rounds_of_part: Vec<Mutex<Vec<usize>>> =
                    (0..2 * parts).map(|_| Mutex::default()).collect();
                std::thread::scope(|scope| {
                    for thread in 0..threads {
                        let (tasks, rounds_of_part) = (&tasks, &rounds_of_part);
                        scope.spawn(move || {
                            let all_run = tasks.run(rounds, parts, thread, threads, |round, t| {
                                let coordinates = [t, (t + 2 * round) % parts];
                                assert!(
                                    tasks.wait_for_earlier_rounds(&coordinates, round, || false)
                                );
                                rounds_of_part[t].lock().unwrap().push(round);
                                rounds_of_part[parts + coordinates[1]]
                                    .lock()
                                    .unwrap()
                                    .push(round);
                                tasks.finish(&coordinates, round);
                                Ok(true)
                            });
                            assert!(all_run.unwrap());
                        });
                    }
                });
                let expected: Vec<usize> = (0..rounds).collect();
                assert!(
                    rounds_of_part
                        .iter()
                        .all(|r| *r.lock().unwrap() == expected)
                );
                tasks.reset();
            }
        }
    }

    #[test]
    fn every_contiguous_task_runs_once() {
        for threads in [1, 2, 5] {
            let tasks = ContiguousTasks::new(threads);
            for count in [0, 1, 4, 5, 100] {
                let runs: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
                std::thread::scope(|scope| {
                    // The last thread does not run, so the others have to take its tasks.
                    for thread in 0..(threads - 1).max(1) {
                        let (tasks, runs) = (&tasks, &runs);
                        scope.spawn(move || {
                            let run = |t: usize| {
                                runs[t].fetch_add(1, Ordering::Relaxed);
                                Ok(())
                            };
                            tasks.run(count, thread, run).unwrap();
                        });
                    }
                });
                assert!(runs.iter().all(|r| r.load(Ordering::Relaxed) == 1));
                tasks.reset();
            }
        }
    }

    #[test]
    fn a_stop_request_ends_waiting() {
        let tasks = RoundTasks::new(2, 1, 2);
        let stop = AtomicBool::new(true);
        assert!(!tasks.wait_for_earlier_rounds(&[1], 1, || stop.load(Ordering::Relaxed)));
        assert!(!tasks.run(1, 2, 0, 1, |_, t| Ok(t == 0)).unwrap());
    }
}
