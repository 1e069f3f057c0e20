//! The flag that asks workers to return early.

use std::sync::atomic::{AtomicBool, Ordering};

/// Asks the workers of a parallel computation to return early.
pub struct StopFlag(AtomicBool);

impl StopFlag {
    pub(crate) fn new() -> StopFlag {
        StopFlag(AtomicBool::new(false))
    }

    /// Returns whether workers should return early. Their results are then discarded, so a worker with a
    /// long piece polls this and returns any value.
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
