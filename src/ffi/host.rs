//! What the host sets on an object: a function to be called, a token to end by.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::guard::outside;
use super::status::{Failure, Outcome, S3CMTF_BAD_STATE};
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

/// What a run found; before there was one, `what` has not run.
pub(super) fn ran<'a, T>(found: Option<&'a Vec<T>>, what: &str) -> Outcome<&'a [T]> {
    let missing = || Failure::new(S3CMTF_BAD_STATE, format!("{what} has not run"));
    Ok(found.ok_or_else(missing)?)
}
