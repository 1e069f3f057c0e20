//! Functions of the error handle.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;

use super::arg::{given, hand_over};
use super::error_handle::ErrorHandle;
use super::guard::guard;
use super::status::S3CMTF_OK;

/// Creates an error handle; free it with s3cmtf_error_free().
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_error_new(error: Option<&mut MaybeUninit<*mut ErrorHandle>>) -> i32 {
    guard(None, || {
        let out = given(error, "error")?;
        hand_over(
            out,
            ErrorHandle {
                status: S3CMTF_OK,
                message: CString::default(),
            },
        );
        Ok(())
    })
}

/// Returns the message of the last failure, in UTF-8; "" if there was none or `error` is NULL. Valid until the handle is
/// passed to another call or freed.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_error_message(error: Option<&ErrorHandle>) -> *const c_char {
    error.map_or(c"".as_ptr(), |e| e.message.as_ptr())
}

/// Returns the status of the last failure; S3CMTF_OK if there was none or `error` is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_error_status(error: Option<&ErrorHandle>) -> i32 {
    error.map_or(S3CMTF_OK, |e| e.status)
}

/// Frees an error handle. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_error_free(error: Option<Box<ErrorHandle>>) {
    drop(error);
}
