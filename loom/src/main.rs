//! Checks the synchronization of the library with loom, which runs a model in every interleaving of its threads and every
//! outcome that the memory model permits. The files of the library are compiled here with the primitives of loom.
//!
//! A wrong ordering is reported as concurrent access of a cell, a lost wake-up as a deadlock.

mod error {
    pub type Result<T> = std::result::Result<T, Error>;

    #[derive(Debug)]
    pub struct Error;

    impl Error {
        pub fn io(_: impl Into<String>, _: std::io::Error) -> Error {
            Error
        }
    }
}

mod blocked;
#[path = "../../kernel/src/base/cache_line.rs"]
mod cache_line;
mod parallel;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU64;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use parallel::Workers;
use parallel::barrier::Barrier;

/// Memory without synchronization of its own: loom reports concurrent access.
struct Cells(Vec<UnsafeCell<usize>>);

// SAFETY: the models check that accesses do not overlap.
unsafe impl Sync for Cells {}

impl Cells {
    fn new(count: usize) -> Cells {
        Cells((0..count).map(|_| UnsafeCell::new(0)).collect())
    }

    fn add(&self, cell: usize, amount: usize) {
        // SAFETY: loom checks that no other thread accesses the cell.
        self.0[cell].with_mut(|p| unsafe { *p += amount });
    }

    fn get(&self, cell: usize) -> usize {
        // SAFETY: loom checks that no other thread writes to the cell.
        self.0[cell].with(|p| unsafe { *p })
    }
}

/// Runs `body` on `threads` threads, the calling one among them.
fn together(threads: usize, body: impl Fn(usize) + Send + Sync + 'static) {
    let body = Arc::new(body);
    let others: Vec<_> = (1..threads)
        .map(|thread| {
            let body = body.clone();
            loom::thread::spawn(move || body(thread))
        })
        .collect();
    body(0);
    others.into_iter().for_each(|other| other.join().unwrap());
}

/// What threads wrote before a barrier is visible after it, in every round. With three threads, two of which may wait for
/// each other's time slices in turn, loom does not come to an end.
fn barrier_orders_memory(rounds: usize) {
    let (barrier, cells) = (Arc::new(Barrier::new(2)), Arc::new(Cells::new(2)));
    together(2, move |thread| {
        for round in 1..=rounds {
            cells.add(thread, 1);
            assert!(barrier.wait(|| false));
            assert_eq!(cells.get(1 - thread), round);
            assert!(barrier.wait(|| false));
        }
    });
}

/// All threads stop in the round in which the last to arrive says so.
fn barrier_stops_all_threads() {
    let barrier = Arc::new(Barrier::new(2));
    together(2, move |_| {
        assert!(barrier.wait(|| false));
        assert!(!barrier.wait(|| true));
    });
}

/// A thread that does not arrive but cancels releases the other one.
fn barrier_is_released_by_cancel() {
    let barrier = Arc::new(Barrier::new(2));
    together(2, move |thread| {
        if thread == 0 {
            assert!(!barrier.wait(|| false));
        } else {
            barrier.cancel();
        }
    });
}

/// Every thread runs the closure of each call once, and the caller sees what it wrote.
fn workers_run_every_call(calls: &[usize]) {
    let mut workers = Workers::new(2);
    let cells = Cells::new(2);
    let mut expected = [0; 2];
    for &threads in calls {
        workers.run(threads, &|index| cells.add(index, 1));
        for (index, expected) in expected.iter_mut().enumerate() {
            *expected += usize::from(index < threads);
            assert_eq!(cells.get(index), *expected);
        }
    }
}

/// A panic reaches the caller after all threads have returned, and the threads serve the next call.
fn workers_pass_panics_on() {
    let mut workers = Workers::new(1);
    let cells = Cells::new(1);
    let failing = |_: usize| {
        cells.add(0, 1);
        std::panic::panic_any("on purpose");
    };
    assert!(catch_unwind(AssertUnwindSafe(|| workers.run(1, &failing))).is_err());
    workers.run(1, &|_| cells.add(0, 1));
    assert_eq!(cells.get(0), 2);
}

/// Runs a model in all interleavings with at most `preemptions` switches away from a thread that could go on. Each more
/// multiplies their number, and few errors need more than two.
fn check(name: &str, preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 100_000;
    let runs = std::sync::Arc::new(AtomicU64::new(0));
    let counter = runs.clone();
    builder.check(move || {
        counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        model();
    });
    let runs = runs.load(std::sync::atomic::Ordering::Relaxed);
    println!("{name}: {runs} interleavings");
}

fn main() {
    // The panic of a model is on purpose; its message would be printed once per interleaving.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if info.payload().downcast_ref::<&str>() != Some(&"on purpose") {
            report(info);
        }
    }));
    check("barrier", 3, || barrier_orders_memory(2));
    check("barrier, stop", 3, barrier_stops_all_threads);
    check("barrier, cancel", 3, barrier_is_released_by_cancel);
    check("worker threads, 2 calls", 2, || {
        workers_run_every_call(&[2, 1])
    });
    check("worker threads, panic", 2, workers_pass_panics_on);
    check(
        "tasks of rounds",
        3,
        blocked::tasks_of_rounds_do_not_overlap,
    );
    check("independent tasks", 3, blocked::independent_tasks_run_once);
}
