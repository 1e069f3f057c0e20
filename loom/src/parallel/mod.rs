//! The files of `kernel/src/parallel` that are checked, and replacements of those they import.

#[allow(dead_code)]
#[path = "../../../kernel/src/parallel/barrier.rs"]
pub mod barrier;
#[path = "../../../kernel/src/parallel/lock.rs"]
pub mod lock;
#[path = "../../../kernel/src/parallel/stealing_order.rs"]
mod stealing_order;
#[path = "../../../kernel/src/parallel/worker_threads.rs"]
pub mod worker_threads;

pub(crate) use stealing_order::stealing_order;

/// Replaces the primitives of `std`.
pub mod sync {
    pub use loom::hint::spin_loop;
    pub use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
    pub use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
    pub use loom::thread::{JoinHandle, Thread, current, panicking, yield_now};

    /// Without a timeout, so that a wake-up that is missing is a deadlock.
    pub fn park_timeout(_: std::time::Duration) {
        loom::thread::park();
    }
}

pub mod cpu_affinity {
    #[derive(Clone, Copy)]
    pub struct CoreId;

    pub fn pin_current_thread(_: CoreId) {}

    pub fn available_threads() -> usize {
        1
    }
}

pub mod signals {
    pub fn with_signals_blocked<T>(start: impl FnOnce() -> T) -> T {
        start()
    }
}

pub mod spawn {
    pub fn builder() -> loom::thread::Builder {
        loom::thread::Builder::new()
    }
}

/// Calls [`worker_threads::WorkerThreads`] with the visibility of this crate.
pub struct Workers(worker_threads::WorkerThreads);

impl Workers {
    pub fn new(threads: usize) -> Workers {
        let mut workers = worker_threads::WorkerThreads::new();
        workers.grow(threads, &[]).unwrap();
        Workers(workers)
    }

    pub fn run(&mut self, threads: usize, body: &(dyn Fn(usize) + Sync)) {
        self.0.run(threads, body, &mut || {});
    }
}
