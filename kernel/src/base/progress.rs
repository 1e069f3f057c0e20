//! Progress reports and cancellation of long operations.
//!
//! A long operation polls its [`Monitor`] on the thread that called it; worker threads poll a [`StopFlag`]. The work between
//! two polls is bounded by [`operations_per_poll`]: loops whose steps are cheap poll after `steps_per_poll` of them.

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
    pub(crate) operations: operations::Largest,
}

impl StopFlag {
    /// Makes a flag without a request.
    pub fn new() -> StopFlag {
        StopFlag::default()
    }

    /// Returns whether workers should return early. Their results are then discarded, so a worker with a
    /// long piece polls this and returns any value.
    #[inline]
    pub fn requested(&self) -> bool {
        self.operations.poll();
        self.is_requested.load(Ordering::Relaxed)
    }

    /// Asks the workers to return early.
    pub fn request(&self) {
        self.is_requested.store(true, Ordering::Relaxed);
    }

    /// Withdraws the request, so that another computation can use the flag.
    pub fn clear(&self) {
        self.is_requested.store(false, Ordering::Relaxed);
    }
}

impl Monitor for StopFlag {
    fn cancelled(&self) -> bool {
        self.requested()
    }
}

/// Most multiply-adds, or steps of similar cost, between two polls for a cancellation: at most a tenth of a second of scalar
/// code, and so many that the cost of polling is negligible.
const OPERATIONS_PER_POLL: usize = 1 << 26;

/// The same in tests, so that small problems exceed it.
const OPERATIONS_PER_POLL_IN_TESTS: usize = 1 << 20;

/// Returns the most operations between two polls for a cancellation.
#[inline]
pub fn operations_per_poll() -> usize {
    if cfg!(test) || operations::are_counted() {
        OPERATIONS_PER_POLL_IN_TESTS
    } else {
        OPERATIONS_PER_POLL
    }
}

/// Cost of a sample of the normal distribution, in operations.
pub const OPERATIONS_PER_NORMAL_SAMPLE: usize = 64;

/// Cost of a memory access with a large stride, in operations.
pub const OPERATIONS_PER_STRIDED_ENTRY: usize = 8;

/// Returns the number of steps between two polls for a cancellation if each step takes `cost` operations.
#[inline]
pub fn steps_per_poll(cost: usize) -> usize {
    (operations_per_poll() / cost.max(1)).max(1)
}

/// Polls for a cancellation in a loop, as often as the cost of its steps requires.
pub struct StepPolls<'m> {
    monitor: &'m dyn Monitor,
    /// Operations of a step.
    cost: usize,
    /// Steps until the next poll.
    steps_left: usize,
}

impl<'m> StepPolls<'m> {
    /// Polls `monitor`; each step takes `cost` operations.
    pub fn new(monitor: &'m dyn Monitor, cost: usize) -> StepPolls<'m> {
        StepPolls {
            monitor,
            cost,
            steps_left: 0,
        }
    }

    /// Call before each step. Returns [`Error::Cancelled`] if the monitor asks to stop.
    #[inline]
    pub fn step(&mut self) -> Result<()> {
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
pub fn check_cancelled(monitor: &dyn Monitor) -> Result<()> {
    operations::poll();
    if monitor.cancelled() {
        return Err(Error::Cancelled);
    }
    Ok(())
}

/// Reports progress to the monitor, or returns [`Error::Cancelled`] if it asks to stop.
pub fn report_progress(monitor: &dyn Monitor, phase: &str, done: u64, total: u64) -> Result<()> {
    check_cancelled(monitor)?;
    monitor.progress(phase, done, total);
    Ok(())
}

/// Counts operations for the tests that bound the work between two polls. Innermost functions call it with their cost. It does
/// nothing unless a test counts.
#[inline(always)]
pub fn count_operations(count: usize) {
    if operations::are_counted() {
        operations::add(count);
    }
}

/// The most operations between two polls for a cancellation, as tests measure them.
#[doc(hidden)]
pub mod operations {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    thread_local! {
        /// Operations of this thread since its last poll.
        static SINCE_POLL: Cell<u64> = const { Cell::new(0) };
        /// The most operations between two polls of this thread, and of the threads that worked for it.
        static LARGEST: Cell<u64> = const { Cell::new(0) };
    }

    /// Whether this process counts operations. Only tests set it.
    static ARE_COUNTED: AtomicBool = AtomicBool::new(false);

    #[inline(always)]
    pub(super) fn are_counted() -> bool {
        ARE_COUNTED.load(Ordering::Relaxed)
    }

    /// Counts operations from now on, and polls more often. Tests call it before any other work of their process.
    pub fn start_counting() {
        ARE_COUNTED.store(true, Ordering::Relaxed);
    }

    #[cold]
    pub(super) fn add(count: usize) {
        SINCE_POLL.set(SINCE_POLL.get() + count as u64);
    }

    pub(super) fn poll() {
        if are_counted() {
            LARGEST.set(LARGEST.get().max(SINCE_POLL.take()));
        }
    }

    /// Runs `body` and returns its result with the most operations between two polls.
    pub fn largest_between_polls<T>(body: impl FnOnce() -> T) -> (T, u64) {
        assert!(are_counted());
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
            if are_counted() {
                SINCE_POLL.set(0);
            }
        }

        #[inline]
        pub(crate) fn poll(&self) {
            if are_counted() {
                self.0.fetch_max(SINCE_POLL.take(), Ordering::Relaxed);
            }
        }

        /// Adds the counts of the workers to those of the thread that they worked for.
        pub(crate) fn report(&self) {
            if are_counted() {
                LARGEST.set(LARGEST.get().max(self.0.swap(0, Ordering::Relaxed)));
            }
        }
    }
}
