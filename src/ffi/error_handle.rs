//! The error handle: status and message of the last failure.

use std::ffi::CString;

use super::arg::c_message;
use super::status::Failure;

/// Status and message of the last failure. May be passed to any number of calls, which write it on failure and leave it
/// unchanged on success; use one per thread.
pub struct ErrorHandle {
    pub(super) status: i32,
    pub(super) message: CString,
}

impl ErrorHandle {
    pub(super) fn set(&mut self, failure: &Failure) {
        self.status = failure.status;
        self.message = c_message(&failure.message);
    }
}
