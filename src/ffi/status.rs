//! Status codes.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char};
use std::io;

use crate::error::Error;

/// Success.
pub const S3CMTF_OK: i32 = 0;
/// The call was cancelled before it had a result.
pub const S3CMTF_CANCELLED: i32 = 1;
/// A pointer is NULL that must not be.
pub const S3CMTF_NULL_ARGUMENT: i32 = 2;
/// An argument is out of range, not aligned, not UTF-8, or inconsistent with another argument or the data.
pub const S3CMTF_BAD_ARGUMENT: i32 = 3;
/// A buffer is too small; the message has the required capacity.
pub const S3CMTF_BUFFER_TOO_SMALL: i32 = 4;
/// The object is in the wrong state for the call, such as a fit that is running or has ended.
pub const S3CMTF_BAD_STATE: i32 = 5;
/// A file is missing, damaged or of the wrong kind; the message has the line or byte.
pub const S3CMTF_BAD_FILE: i32 = 6;
/// An entry is out of range or not finite; the message has its number, from 1.
pub const S3CMTF_BAD_ENTRY: i32 = 7;
/// The operating system reported an error, such as missing permission or a full disk.
pub const S3CMTF_SYSTEM: i32 = 8;
/// There is not enough memory for the entries or rows.
pub const S3CMTF_OUT_OF_MEMORY: i32 = 9;
/// A bug in the library; please report it. Free the objects passed to the call, and do not use them otherwise.
pub const S3CMTF_INTERNAL: i32 = 10;
/// First of the codes reserved for later versions, up to 999. Treat every code except 0 as a failure.
pub const S3CMTF_RESERVED: i32 = 11;

/// Names of the codes, by number.
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

/// Returns the name of a status, such as "S3CMTF_OK"; "S3CMTF_RESERVED" for other numbers. A constant string.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_status_name(status: i32) -> *const c_char {
    usize::try_from(status)
        .ok()
        .and_then(|i| NAMES.get(i))
        .map_or(c"S3CMTF_RESERVED".as_ptr(), |name| name.as_ptr())
}

/// The reason why a call failed.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub status: i32,
    pub message: String,
}

/// The result of the body of a call.
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
            Error::Cancelled => S3CMTF_CANCELLED,
            // [`Error::Argument`]; the compiler requires an arm for further variants.
            _ => S3CMTF_BAD_ARGUMENT,
        };
        Failure::new(status, error.to_string())
    }
}

// The numbers are part of the ABI and must not change.
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
