//! How long-running work reports progress and learns that it should stop.

use crate::error::{Error, Result};

/// Watches a long operation. The library calls it from the thread that called the operation, every
/// few milliseconds of work; it must be quick.
///
/// `()` is the monitor that shows nothing and never cancels.
pub trait Monitor {
    /// `done` of `total` units of `phase` are finished; a `total` of 0 means unknown.
    fn progress(&self, phase: &str, done: u64, total: u64) {
        let _ = (phase, done, total);
    }

    /// Whether to stop. The operation then returns [`Error::Cancelled`] and leaves nothing behind.
    fn cancelled(&self) -> bool {
        false
    }
}

impl Monitor for () {}

/// Reports progress and turns a cancellation into an error.
pub(crate) fn report_progress(
    monitor: &dyn Monitor,
    phase: &str,
    done: u64,
    total: u64,
) -> Result<()> {
    if monitor.cancelled() {
        return Err(Error::Cancelled);
    }
    monitor.progress(phase, done, total);
    Ok(())
}
