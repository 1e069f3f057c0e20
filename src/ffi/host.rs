//! What the host sets on an object: a function to be called, a token to end by.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::error_handle::ErrorHandle;
use super::guard::{caught, guard, outside};
use super::status::Outcome;
use crate::progress::Monitor;
use crate::solver::Control;

type Function<T> = unsafe extern "C" fn(*const T, *mut c_void) -> i32;

/// A function of the host, with its own argument.
pub(super) struct Call<T> {
    function: Function<T>,
    user: *mut c_void,
}

impl<T> Clone for Call<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Call<T> {}

// SAFETY: the argument is only handed back to the function, on the thread on which the host runs the fit or search.
unsafe impl<T> Send for Call<T> {}

impl<T> Call<T> {
    pub(super) fn new(function: Option<Function<T>>, user: *mut c_void) -> Option<Call<T>> {
        function.map(|function| Call { function, user })
    }

    /// Calls it; anything but 0 wants an end.
    pub(super) fn call(&self, figures: &T) -> Control {
        // SAFETY: a function of the host, called as it was promised: on its thread, with a struct that lives as long
        // as the call.
        match outside(|| unsafe { (self.function)(figures, self.user) }) {
            0 => Control::Continue,
            _ => Control::Stop,
        }
    }
}

/// Watches a token that was set, if there is one.
pub(super) struct Flag<'a>(pub Option<&'a Arc<AtomicBool>>);

impl Monitor for Flag<'_> {
    fn cancelled(&self) -> bool {
        self.0.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

/// Runs the body of a call that calls a function of the host, which may pass the same error handle to other calls.
///
/// # Safety
/// If not NULL, `error` is an error handle that is not freed during the call.
pub(super) unsafe fn guard_with_callback(
    error: *mut ErrorHandle,
    body: impl FnOnce() -> Outcome,
) -> i32 {
    let outcome = caught(body);
    // SAFETY: the caller's promise; no other call uses the handle now that the function of the host has returned.
    guard(unsafe { error.as_mut() }, || outcome)
}
