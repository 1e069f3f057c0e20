//! The error handle: status and message of the last failure.

use std::ffi::CString;

use super::status::Failure;

/// What the last call that failed with this handle had to say. Make one, pass it to any number of calls,
/// and read it after a failure; a call that succeeds leaves it as it was. One handle per thread: a call
/// that is given it writes to it.
pub struct ErrorHandle {
    pub(super) status: i32,
    pub(super) message: CString,
}

impl ErrorHandle {
    pub(super) fn set(&mut self, failure: &Failure) {
        self.status = failure.status;
        // A name from outside may hold a NUL.
        self.message = CString::new(failure.message.replace('\0', "\u{fffd}")).unwrap_or_default();
    }
}
