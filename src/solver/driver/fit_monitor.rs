//! The monitor of a fit with a time limit.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::fit_state::Clock;
use crate::error::{Error, Result};
use crate::progress::Monitor;
use crate::solver::observer::StopReason;

/// Time that preparations may take beyond the time limit, and that the completion of the model may take after a
/// cancellation or beyond the limit. Small problems are then prepared and completed as usual.
const GRACE: Duration = Duration::from_millis(500);

/// What a fit is doing, which decides when it is cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::solver) enum Phase {
    /// A cancellation ends it at once, the time limit after [`GRACE`], with `Error::Cancelled`.
    Preparation,
    /// Cancellation and time limit end it at once; the model is that of the last complete epoch.
    Epochs,
    /// Cancellation and time limit end it after [`GRACE`]; the model then lacks what is not completed.
    Completion,
}

/// The caller's monitor, which also cancels when the time limit has passed.
pub(in crate::solver) struct FitMonitor<'a> {
    monitor: &'a dyn Monitor,
    clock: Clock,
    /// In seconds; 0 is no limit.
    time_limit: f64,
    phase: Cell<Phase>,
    /// When a cancellation was first seen.
    cancelled_at: Cell<Option<Instant>>,
}

impl<'a> FitMonitor<'a> {
    /// The limit counts from the start of the clock.
    pub(in crate::solver) fn new(
        monitor: &'a dyn Monitor,
        clock: Clock,
        time_limit: f64,
    ) -> FitMonitor<'a> {
        FitMonitor {
            monitor,
            clock,
            time_limit,
            phase: Cell::new(Phase::Preparation),
            cancelled_at: Cell::new(None),
        }
    }

    pub(in crate::solver) fn clock(&self) -> Clock {
        self.clock
    }

    pub(in crate::solver) fn enter(&self, phase: Phase) {
        self.phase.set(phase);
    }

    /// Returns whether the caller's monitor cancels the fit.
    pub(in crate::solver) fn is_cancelled_by_caller(&self) -> bool {
        let is_cancelled = self.monitor.cancelled();
        if is_cancelled && self.cancelled_at.get().is_none() {
            self.cancelled_at.set(Some(Instant::now()));
        }
        is_cancelled
    }

    /// Returns whether there is a time limit.
    pub(super) fn has_time_limit(&self) -> bool {
        self.time_limit > 0.0
    }

    /// Returns whether the time limit has passed.
    pub(in crate::solver) fn is_out_of_time(&self) -> bool {
        self.is_past_limit_by(Duration::ZERO)
    }

    fn is_past_limit_by(&self, more: Duration) -> bool {
        let seconds = self.clock.started.elapsed().as_secs_f64();
        self.has_time_limit() && seconds >= self.time_limit + more.as_secs_f64()
    }

    /// Returns why the epochs end now.
    pub(in crate::solver) fn stop_reason(&self) -> StopReason {
        if self.is_cancelled_by_caller() {
            StopReason::Cancelled
        } else {
            StopReason::TimeLimit
        }
    }
}

impl Monitor for FitMonitor<'_> {
    fn progress(&self, phase: &str, done: u64, total: u64) {
        self.monitor.progress(phase, done, total);
    }

    fn cancelled(&self) -> bool {
        let by_caller = self.is_cancelled_by_caller();
        match self.phase.get() {
            Phase::Preparation => by_caller || self.is_past_limit_by(GRACE),
            Phase::Epochs => by_caller || self.is_out_of_time(),
            Phase::Completion => {
                let at = self.cancelled_at.get();
                at.is_some_and(|at| at.elapsed() >= GRACE) || self.is_past_limit_by(GRACE)
            }
        }
    }
}

/// Returns the result, or `None` if it was cancelled.
pub(super) fn unless_cancelled<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(Error::Cancelled) => Ok(None),
        result => result.map(Some),
    }
}
