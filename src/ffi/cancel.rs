//! Tokens that end work from anywhere.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::arg::{given, hand_over};
use super::error_handle::ErrorHandle;
use super::guard::{guard, release};
use crate::progress::Monitor;

/// Ends work from any thread, also from a signal handler: give it to a call, and request. All its
/// functions but s3cmtf_cancel_free() may run concurrently with each other and with the work. A token stays
/// requested until it is reset, and may be given to any number of calls.
pub struct CancelHandle {
    pub(super) flag: Arc<AtomicBool>,
}

/// Makes a token, to be freed with s3cmtf_cancel_free().
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

/// Asks all work that has the token to end, now and later. Safe in a signal handler. NULL does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_cancel_request(cancel: Option<&CancelHandle>) {
    if let Some(cancel) = cancel {
        cancel.flag.store(true, Ordering::Relaxed);
    }
}

/// Makes a requested token fresh again. NULL does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_cancel_reset(cancel: Option<&CancelHandle>) {
    if let Some(cancel) = cancel {
        cancel.flag.store(false, Ordering::Relaxed);
    }
}

/// Whether the token was requested: 1 or 0. NULL gives 0.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_cancel_requested(cancel: Option<&CancelHandle>) -> i32 {
    cancel.map_or(0, |c| i32::from(c.flag.load(Ordering::Relaxed)))
}

/// Frees a token. Fits that have it go on, and can no longer be cancelled by it. Any other call that was given
/// it must have returned. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_cancel_free(cancel: Option<Box<CancelHandle>>) {
    release(|| drop(cancel));
}

/// Watches the token of a call, if it has one.
pub(super) struct Token<'a>(pub Option<&'a CancelHandle>);

impl Monitor for Token<'_> {
    fn cancelled(&self) -> bool {
        self.0.is_some_and(|c| c.flag.load(Ordering::Relaxed))
    }
}
