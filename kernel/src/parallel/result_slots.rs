//! Results of numbered pieces, written by many threads.

use std::sync::{Mutex, MutexGuard};

use crate::error::Result;

/// One slot per piece. It depends on the type of the results only, so that functions that are generic over
/// closures stay small.
pub(super) struct ResultSlots<T>(Vec<Mutex<Option<T>>>);

impl<T> ResultSlots<T> {
    pub(super) fn new(count: usize) -> ResultSlots<T> {
        let mut slots = Vec::with_capacity(count);
        for _ in 0..count {
            slots.push(Mutex::new(None));
        }
        ResultSlots(slots)
    }

    /// Stores the result of piece `index`.
    pub(super) fn put(&self, index: usize, result: T) {
        *self.lock(index) = Some(result);
    }

    /// Empties the slot of piece `index`.
    pub(super) fn take(&self, index: usize) -> Option<T> {
        self.lock(index).take()
    }

    /// Returns the results in index order, without empty slots. Passes the error on if the computation was not completed.
    pub(super) fn into_results(self, completed: Result<()>) -> Result<Vec<T>> {
        completed?;
        let mut results = Vec::with_capacity(self.0.len());
        for slot in self.0 {
            if let Some(result) = slot.into_inner().unwrap_or_else(|e| e.into_inner()) {
                results.push(result);
            }
        }
        Ok(results)
    }

    fn lock(&self, index: usize) -> MutexGuard<'_, Option<T>> {
        self.0[index].lock().unwrap_or_else(|e| e.into_inner())
    }
}
