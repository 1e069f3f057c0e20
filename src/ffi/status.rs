//! What calls return.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char};
use std::io;

use crate::error::Error;

/// Done.
pub const S3CMTF_OK: i32 = 0;
/// A cancel token ended the work before there was a result. Nothing is left behind.
pub const S3CMTF_CANCELLED: i32 = 1;
/// A pointer that must not be NULL is NULL.
pub const S3CMTF_NULL_ARGUMENT: i32 = 2;
/// An argument is out of range, is no number of its list, is not aligned or not UTF-8, or contradicts
/// another argument or the data.
pub const S3CMTF_BAD_ARGUMENT: i32 = 3;
/// A buffer is too small for what would be written; the message says how large it must be.
pub const S3CMTF_BUFFER_TOO_SMALL: i32 = 4;
/// The object is not in a state for this: a fit that runs, or has run already.
pub const S3CMTF_BAD_STATE: i32 = 5;
/// A file is missing, damaged or not what was asked for; the message has the line or byte.
pub const S3CMTF_BAD_FILE: i32 = 6;
/// An entry is out of range or not finite; the message has its number, counted from 1.
pub const S3CMTF_BAD_ENTRY: i32 = 7;
/// The operating system refused: no permission, disk full, no thread.
pub const S3CMTF_SYSTEM: i32 = 8;
/// There is no memory for this many entries or rows.
pub const S3CMTF_OUT_OF_MEMORY: i32 = 9;
/// A mistake in this library. The objects of the call may still be freed, and should not be used
/// otherwise. Please report it.
pub const S3CMTF_INTERNAL: i32 = 10;
/// Codes from here to 999 are reserved: later versions may return them for what is one of the above
/// now. Treat every code but 0 as a failure. Codes are never reused, and never negative.
pub const S3CMTF_RESERVED: i32 = 11;

/// The codes with their names; the number of each is its place.
const NAMES: [&CStr; S3CMTF_RESERVED as usize] = [
    c"S3CMTF_OK",
    c"S3CMTF_CANCELLED",
    c"S3CMTF_NULL_ARGUMENT",
    c"S3CMTF_BAD_ARGUMENT",
    c"S3CMTF_BUFFER_TOO_SMALL",
    c"S3CMTF_BAD_STATE",
    c"S3CMTF_BAD_FILE",
    c"S3CMTF_BAD_ENTRY",
    c"S3CMTF_SYSTEM",
    c"S3CMTF_OUT_OF_MEMORY",
    c"S3CMTF_INTERNAL",
];

/// The name of a status, such as "S3CMTF_OK"; "S3CMTF_RESERVED" for a number that is none. The text is
/// constant and never freed.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_status_name(status: i32) -> *const c_char {
    usize::try_from(status)
        .ok()
        .and_then(|i| NAMES.get(i))
        .map_or(c"S3CMTF_RESERVED".as_ptr(), |name| name.as_ptr())
}

/// Why a call failed.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub status: i32,
    pub message: String,
}

/// What the body of a call returns.
pub(super) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub fn new(status: i32, message: impl Into<String>) -> Failure {
        Failure {
            status,
            message: message.into(),
        }
    }

    pub fn argument(message: impl Into<String>) -> Failure {
        Failure::new(S3CMTF_BAD_ARGUMENT, message)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let status = match &error {
            Error::Io { source, .. } if source.kind() == io::ErrorKind::OutOfMemory => {
                S3CMTF_OUT_OF_MEMORY
            }
            Error::Io { .. } => S3CMTF_SYSTEM,
            Error::File { .. } | Error::Text { .. } | Error::Format { .. } => S3CMTF_BAD_FILE,
            Error::Entry { .. } => S3CMTF_BAD_ENTRY,
            Error::Argument(_) => S3CMTF_BAD_ARGUMENT,
            Error::Cancelled => S3CMTF_CANCELLED,
        };
        Failure::new(status, error.to_string())
    }
}

// The numbers are part of the ABI: a header made anew must not change them.
const _: () = {
    let numbers = [
        S3CMTF_OK,
        S3CMTF_CANCELLED,
        S3CMTF_NULL_ARGUMENT,
        S3CMTF_BAD_ARGUMENT,
        S3CMTF_BUFFER_TOO_SMALL,
        S3CMTF_BAD_STATE,
        S3CMTF_BAD_FILE,
        S3CMTF_BAD_ENTRY,
        S3CMTF_SYSTEM,
        S3CMTF_OUT_OF_MEMORY,
        S3CMTF_INTERNAL,
    ];
    let mut i = 0;
    while i < numbers.len() {
        assert!(numbers[i] == i as i32);
        i += 1;
    }
};
