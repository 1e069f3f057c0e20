//! Which thread does what, and when it may.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Looks this many times before giving way to other threads.
const SPINS: usize = 200;

/// A counter that has its cache lines to itself.
#[derive(Default)]
#[repr(align(128))]
struct Counter(AtomicUsize);

fn counters(count: usize) -> Vec<Counter> {
    (0..count).map(|_| Counter::default()).collect()
}

/// Who does which task of one or more rounds, all of the same number of tasks. Every thread has tasks of
/// its own, the same in every round, whose rows stay in its cache; when it is done with them it helps
/// the others. Nobody waits at the end of a round: what a task needs of earlier rounds it waits for
/// itself, which it may, since those were all taken before.
pub(super) struct Turns {
    /// For each task, in how many rounds it was taken.
    taken: Vec<Counter>,
    /// For each coordinate and part, in how many rounds a task that has it was done.
    done: Vec<Vec<Counter>>,
}

impl Turns {
    /// For up to `tasks` tasks, which have one of `parts` parts in each of some coordinates.
    pub(super) fn new(tasks: usize, coordinates: usize, parts: usize) -> Turns {
        Turns {
            taken: counters(tasks),
            done: (0..coordinates).map(|_| counters(parts)).collect(),
        }
    }

    /// Makes ready for the next rounds. Nobody may be taking turns.
    pub(super) fn again(&self) {
        let all = self.taken.iter().chain(self.done.iter().flatten());
        all.for_each(|c| c.0.store(0, Ordering::Relaxed));
    }

    /// Does tasks `0..count` of each of `rounds` rounds, each once, together with the other threads,
    /// until a task says that it is enough: then the result is `false`.
    pub(super) fn take(
        &self,
        rounds: usize,
        count: usize,
        (thread, threads): (usize, usize),
        mut task: impl FnMut(usize, usize) -> bool,
    ) -> bool {
        for round in 0..rounds {
            for t in crate::parallel::stealing_order(thread, threads, count) {
                let taken = &self.taken[t].0;
                let next = round + 1;
                let order = Ordering::Relaxed;
                let mine = taken.load(order) == round
                    && taken.compare_exchange(round, next, order, order).is_ok();
                if mine && !task(round, t) {
                    return false;
                }
            }
        }
        true
    }

    /// Waits until the parts of a task are done with in all rounds before `round`; `false` if `stop`
    /// says so before.
    pub(super) fn wait(&self, place: &[usize], round: usize, stop: impl Fn() -> bool) -> bool {
        for (done, &part) in self.done.iter().zip(place) {
            let mut looks = 0;
            while done[part].0.load(Ordering::Acquire) < round {
                looks += 1;
                if looks < SPINS {
                    std::hint::spin_loop();
                } else if stop() {
                    return false;
                } else {
                    std::thread::yield_now();
                }
            }
        }
        true
    }

    /// Says that a task of `round` is done with its parts.
    pub(super) fn done(&self, place: &[usize], round: usize) {
        for (done, &part) in self.done.iter().zip(place) {
            done[part].0.store(round + 1, Ordering::Release);
        }
    }
}

/// Who does which of some tasks that may be done in any order. Every thread has a run of neighbours of its
/// own, so that what they leave is in its cache; when it is done with those it helps the others.
pub(super) struct Runs {
    /// For each thread, how many of its tasks were taken.
    taken: Vec<Counter>,
}

impl Runs {
    pub(super) fn new(threads: usize) -> Runs {
        Runs {
            taken: counters(threads),
        }
    }

    /// Makes ready for the next tasks. Nobody may be taking any.
    pub(super) fn again(&self) {
        self.taken
            .iter()
            .for_each(|c| c.0.store(0, Ordering::Relaxed));
    }

    /// Does tasks `0..count`, each once, together with the other threads.
    pub(super) fn take(&self, count: usize, thread: usize, mut task: impl FnMut(usize)) {
        let threads = self.taken.len();
        for t in (0..threads).map(|other| (thread + other) % threads) {
            let (start, end) = (count * t / threads, count * (t + 1) / threads);
            let taken = &self.taken[t].0;
            while start + taken.load(Ordering::Relaxed) < end {
                let next = start + taken.fetch_add(1, Ordering::Relaxed);
                if next < end {
                    task(next);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn tasks_of_a_part_go_in_the_order_of_rounds() {
        let parts = 6;
        for (threads, rounds) in [(1, 5), (2, 5), (4, 5), (9, 5), (1, 1), (4, 1), (9, 1)] {
            let turns = Turns::new(parts, 2, parts);
            for _ in 0..if cfg!(miri) { 2 } else { 50 } {
                let seen: Vec<Mutex<Vec<usize>>> =
                    (0..2 * parts).map(|_| Mutex::default()).collect();
                std::thread::scope(|scope| {
                    for thread in 0..threads {
                        let (turns, seen) = (&turns, &seen);
                        scope.spawn(move || {
                            assert!(turns.take(rounds, parts, (thread, threads), |round, t| {
                                let place = [t, (t + 2 * round) % parts];
                                assert!(turns.wait(&place, round, || false));
                                seen[t].lock().unwrap().push(round);
                                seen[parts + place[1]].lock().unwrap().push(round);
                                turns.done(&place, round);
                                true
                            }));
                        });
                    }
                });
                let expected: Vec<usize> = (0..rounds).collect();
                assert!(seen.iter().all(|s| *s.lock().unwrap() == expected));
                turns.again();
            }
        }
    }

    #[test]
    fn every_task_of_a_run_is_done_once() {
        for threads in [1, 2, 5] {
            let runs = Runs::new(threads);
            for count in [0, 1, 4, 5, 100] {
                let done: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
                std::thread::scope(|scope| {
                    // Those of the last thread are left to the others.
                    for thread in 0..(threads - 1).max(1) {
                        let (runs, done) = (&runs, &done);
                        scope.spawn(move || {
                            runs.take(count, thread, |t| {
                                done[t].fetch_add(1, Ordering::Relaxed);
                            });
                        });
                    }
                });
                assert!(done.iter().all(|d| d.load(Ordering::Relaxed) == 1));
                runs.again();
            }
        }
    }

    #[test]
    fn nobody_waits_for_ever() {
        let turns = Turns::new(2, 1, 2);
        let stop = AtomicBool::new(true);
        assert!(!turns.wait(&[1], 1, || stop.load(Ordering::Relaxed)));
        assert!(!turns.take(1, 2, (0, 1), |_, t| t == 0));
    }
}
