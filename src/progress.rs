//! Progress reports and cancellation of long operations.
//!
//! A long operation polls its [`Monitor`] on the thread that called it; worker threads poll a [`StopFlag`]. The work between
//! two polls is bounded by `OPERATIONS_PER_POLL`: loops whose steps are cheap poll after `steps_per_poll` of them.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// Observes a long operation. The library calls it from the thread that called the operation, every few milliseconds of
/// work; implementations must be quick.
///
/// `()` is the monitor that shows nothing and never cancels.
pub trait Monitor {
    /// Receives that `done` of `total` units of `phase` are complete; a `total` of 0 means unknown.
    fn progress(&self, phase: &str, done: u64, total: u64) {
        let _ = (phase, done, total);
    }

    /// Returns whether to stop. The operation then returns [`Error::Cancelled`] and leaves no partial output. A fit is the
    /// exception: it returns the model of the last complete epoch, or one without epochs.
    fn cancelled(&self) -> bool {
        false
    }
}

impl Monitor for () {}

/// Asks the workers of a parallel computation to return early.
#[derive(Default)]
pub struct StopFlag {
    is_requested: AtomicBool,
    #[cfg(test)]
    pub(crate) operations: operations::Largest,
}

impl StopFlag {
    pub(crate) fn new() -> StopFlag {
        StopFlag::default()
    }

    /// Returns whether workers should return early. Their results are then discarded, so a worker with a
    /// long piece polls this and returns any value.
    #[inline]
    pub fn requested(&self) -> bool {
        #[cfg(test)]
        self.operations.poll();
        self.is_requested.load(Ordering::Relaxed)
    }

    pub(crate) fn request(&self) {
        self.is_requested.store(true, Ordering::Relaxed);
    }

    /// Withdraws the request, so that another computation can use the flag.
    pub(crate) fn clear(&self) {
        self.is_requested.store(false, Ordering::Relaxed);
    }
}

impl Monitor for StopFlag {
    fn cancelled(&self) -> bool {
        self.requested()
    }
}

/// Most multiply-adds, or steps of similar cost, between two polls for a cancellation: at most a tenth of a second of scalar
/// code, and so many that the cost of polling is negligible. The limit is lower in unit tests, so that small problems exceed it.
pub(crate) const OPERATIONS_PER_POLL: usize = if cfg!(test) { 1 << 20 } else { 1 << 26 };

/// Cost of a sample of the normal distribution, in operations.
pub(crate) const OPERATIONS_PER_NORMAL_SAMPLE: usize = 64;

/// Cost of a memory access with a large stride, in operations.
pub(crate) const OPERATIONS_PER_STRIDED_ENTRY: usize = 8;

/// Returns the number of steps between two polls for a cancellation if each step takes `cost` operations.
#[inline]
pub(crate) fn steps_per_poll(cost: usize) -> usize {
    (OPERATIONS_PER_POLL / cost.max(1)).max(1)
}

/// Polls for a cancellation in a loop, as often as the cost of its steps requires.
pub(crate) struct StepPolls<'m> {
    monitor: &'m dyn Monitor,
    /// Operations of a step.
    cost: usize,
    /// Steps until the next poll.
    steps_left: usize,
}

impl<'m> StepPolls<'m> {
    /// Polls `monitor`; each step takes `cost` operations.
    pub(crate) fn new(monitor: &'m dyn Monitor, cost: usize) -> StepPolls<'m> {
        StepPolls {
            monitor,
            cost,
            steps_left: 0,
        }
    }

    /// Call before each step. Returns [`Error::Cancelled`] if the monitor asks to stop.
    #[inline]
    pub(crate) fn step(&mut self) -> Result<()> {
        if self.steps_left == 0 {
            check_cancelled(self.monitor)?;
            self.steps_left = steps_per_poll(self.cost);
        }
        self.steps_left -= 1;
        count_operations(self.cost);
        Ok(())
    }
}

/// Returns [`Error::Cancelled`] if the monitor asks to stop.
pub(crate) fn check_cancelled(monitor: &dyn Monitor) -> Result<()> {
    #[cfg(test)]
    operations::poll();
    if monitor.cancelled() {
        return Err(Error::Cancelled);
    }
    Ok(())
}

/// Reports progress to the monitor, or returns [`Error::Cancelled`] if it asks to stop.
pub(crate) fn report_progress(
    monitor: &dyn Monitor,
    phase: &str,
    done: u64,
    total: u64,
) -> Result<()> {
    check_cancelled(monitor)?;
    monitor.progress(phase, done, total);
    Ok(())
}

/// Counts operations for the tests that bound the work between two polls. Innermost functions call it with their cost;
/// outside of unit tests it does nothing.
#[inline(always)]
pub(crate) fn count_operations(count: usize) {
    #[cfg(test)]
    operations::add(count);
    let _ = count;
}

/// The most operations between two polls for a cancellation, as tests measure them.
#[cfg(test)]
pub(crate) mod operations {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU64, Ordering};

    thread_local! {
        /// Operations of this thread since its last poll.
        static SINCE_POLL: Cell<u64> = const { Cell::new(0) };
        /// The most operations between two polls of this thread, and of the threads that worked for it.
        static LARGEST: Cell<u64> = const { Cell::new(0) };
    }

    pub(super) fn add(count: usize) {
        SINCE_POLL.set(SINCE_POLL.get() + count as u64);
    }

    pub(super) fn poll() {
        LARGEST.set(LARGEST.get().max(SINCE_POLL.take()));
    }

    /// Runs `body` and returns its result with the most operations between two polls.
    pub(crate) fn largest_between_polls<T>(body: impl FnOnce() -> T) -> (T, u64) {
        SINCE_POLL.set(0);
        LARGEST.set(0);
        let result = body();
        poll();
        (result, LARGEST.take())
    }

    /// The most operations between two polls of the worker threads of one computation.
    #[derive(Default)]
    pub(crate) struct Largest(AtomicU64);

    impl Largest {
        /// Starts to count on a worker thread.
        pub(crate) fn start(&self) {
            SINCE_POLL.set(0);
        }

        pub(crate) fn poll(&self) {
            self.0.fetch_max(SINCE_POLL.take(), Ordering::Relaxed);
        }

        /// Adds the counts of the workers to those of the thread that they worked for.
        pub(crate) fn report(&self) {
            LARGEST.set(LARGEST.get().max(self.0.swap(0, Ordering::Relaxed)));
        }
    }
}
