//! The end of a search: by its monitor, its observer, or the time limit.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::progress::Monitor;

/// The caller's monitor, which also cancels when the time limit is reached or the observer stops the search.
pub(super) struct SearchMonitor<'a> {
    monitor: &'a dyn Monitor,
    deadline: Option<Instant>,
    is_stopped: Cell<bool>,
}

impl<'a> SearchMonitor<'a> {
    /// `time_limit` is in seconds; 0 for none.
    pub(super) fn new(
        monitor: &'a dyn Monitor,
        started: Instant,
        time_limit: f64,
    ) -> SearchMonitor<'a> {
        let limit = Duration::try_from_secs_f64(time_limit).ok();
        let limit = limit.filter(|_| time_limit > 0.0);
        SearchMonitor {
            monitor,
            deadline: limit.and_then(|limit| started.checked_add(limit)),
            is_stopped: Cell::new(false),
        }
    }

    /// Stops the search.
    pub(super) fn stop(&self) {
        self.is_stopped.set(true);
    }

    fn is_past_deadline(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Returns whether the time limit alone ended the search.
    pub(super) fn reached_time_limit(&self) -> bool {
        self.is_past_deadline() && !self.is_stopped.get() && !self.monitor.cancelled()
    }
}

impl Monitor for SearchMonitor<'_> {
    fn progress(&self, phase: &str, done: u64, total: u64) {
        self.monitor.progress(phase, done, total);
    }

    fn cancelled(&self) -> bool {
        self.is_stopped.get() || self.monitor.cancelled() || self.is_past_deadline()
    }
}
