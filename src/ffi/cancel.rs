//! Cancellation tokens.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::arg::{given, hand_over};
use super::error_handle::ErrorHandle;
use super::guard::{guard, release};
use crate::progress::Monitor;

/// A cancellation token. Pass it to any number of calls; s3cmtf_cancel_request() makes them return S3CMTF_CANCELLED (a
/// fit with at least one epoch returns its model). A token stays requested until it is reset. All its functions except
/// s3cmtf_cancel_free() may run concurrently.
pub struct CancelHandle {
    pub(super) flag: Arc<AtomicBool>,
}

/// Creates a token; free it with s3cmtf_cancel_free().
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_cancel_new(
    cancel: Option<&mut MaybeUninit<*mut CancelHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let out = given(cancel, "cancel")?;
        hand_over(
            out,
            CancelHandle {
                flag: Arc::default(),
            },
        );
        Ok(())
    })
}

/// Cancels all current and future calls that have the token. May be called on any thread and in a signal handler. NULL
/// is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_cancel_request(cancel: Option<&CancelHandle>) {
    if let Some(cancel) = cancel {
        cancel.flag.store(true, Ordering::Relaxed);
    }
}

/// Withdraws the request. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_cancel_reset(cancel: Option<&CancelHandle>) {
    if let Some(cancel) = cancel {
        cancel.flag.store(false, Ordering::Relaxed);
    }
}

/// Returns 1 if cancellation is requested, otherwise 0. NULL is allowed and returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_cancel_requested(cancel: Option<&CancelHandle>) -> i32 {
    cancel.map_or(0, |c| i32::from(c.flag.load(Ordering::Relaxed)))
}

/// Frees a token. Fits that have it continue, and cannot be cancelled by it any more. All other calls that have it must
/// have returned. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_cancel_free(cancel: Option<Box<CancelHandle>>) {
    release(|| drop(cancel));
}

/// Monitors the token of a call, if it has one.
pub(super) struct Token<'a>(pub Option<&'a CancelHandle>);

impl Monitor for Token<'_> {
    fn cancelled(&self) -> bool {
        self.0.is_some_and(|c| c.flag.load(Ordering::Relaxed))
    }
}
