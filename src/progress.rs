//! Progress reports and cancellation of long operations.

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

    /// Returns whether to stop. The operation then returns [`Error::Cancelled`] and leaves no partial output. A fit that has
    /// begun its epochs is the exception: it returns the model of the last complete epoch.
    fn cancelled(&self) -> bool {
        false
    }
}

impl Monitor for () {}

/// Reports progress to the monitor, or returns [`Error::Cancelled`] if it asks to stop.
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
