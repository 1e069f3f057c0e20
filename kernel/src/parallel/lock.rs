//! Locks of mutexes that a panic does not invalidate.

use super::sync::{Mutex, MutexGuard};

/// Locks a mutex whose data stays consistent if a holder panics.
pub fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}
