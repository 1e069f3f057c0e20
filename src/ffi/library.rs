//! Version, build information and kernels of the library.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char};
use std::mem::MaybeUninit;
use std::sync::OnceLock;

use super::arg::{c_text, given, place};
use super::error_handle::ErrorHandle;
use super::guard::guard;
use super::status::{Failure, Outcome};
use crate::simd::Level;

/// Version of this header. A newer library is compatible if its major number is the same; while that is 0, if its minor
/// number is.
pub const S3CMTF_VERSION_MAJOR: u32 = 0;
/// See S3CMTF_VERSION_MAJOR.
pub const S3CMTF_VERSION_MINOR: u32 = 2;
/// See S3CMTF_VERSION_MAJOR.
pub const S3CMTF_VERSION_PATCH: u32 = 0;
/// Version as one number: 10203 for 1.2.3.
pub const S3CMTF_VERSION_NUMBER: u32 =
    S3CMTF_VERSION_MAJOR * 10000 + S3CMTF_VERSION_MINOR * 100 + S3CMTF_VERSION_PATCH;

/// In s3cmtf_progress: no kernel has been chosen yet.
pub const S3CMTF_KERNEL_UNKNOWN: i32 = -1;
/// Scalar code; available everywhere. Kernels are numbered from the slowest to the fastest.
pub const S3CMTF_KERNEL_SCALAR: i32 = 0;
/// Portable SIMD, such as SSE2 or NEON; available everywhere.
pub const S3CMTF_KERNEL_WIDE: i32 = 1;
/// AVX2 with fused multiply-add.
pub const S3CMTF_KERNEL_AVX2: i32 = 2;
/// AVX-512.
pub const S3CMTF_KERNEL_AVX512: i32 = 3;

const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("a version has no NUL"),
    };

/// Returns the version of the loaded library as one number; compare it with S3CMTF_VERSION_NUMBER of the header.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_version_number() -> u32 {
    S3CMTF_VERSION_NUMBER
}

/// Returns the version of the loaded library, such as "1.2.3". A constant string.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_version() -> *const c_char {
    VERSION.as_ptr()
}

/// Returns the version, target architecture, operating system and build profile. A constant string.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_build_info() -> *const c_char {
    static INFO: OnceLock<CString> = OnceLock::new();
    let made = || {
        let profile = if cfg!(debug_assertions) {
            "debug"
        } else {
            "release"
        };
        c_text(&format!(
            "s3cmtf {}, {} {}, {profile}",
            crate::VERSION,
            std::env::consts::ARCH,
            std::env::consts::OS
        ))
    };
    INFO.get_or_init(made).as_ptr()
}

/// Gets the name of a kernel (S3CMTF_KERNEL_...), a value of the option "kernel". A constant string.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_kernel_name(
    kernel: i32,
    name: Option<&mut MaybeUninit<*const c_char>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let out = given(name, "name")?;
        let name = match level(kernel)? {
            Level::Scalar => c"scalar",
            Level::Wide => c"wide",
            Level::Avx2 => c"avx2",
            Level::Avx512 => c"avx512",
        };
        out.write(name.as_ptr());
        Ok(())
    })
}

/// Stores 1 if this machine supports a kernel, otherwise 0.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_kernel_available(
    kernel: i32,
    available: Option<&mut MaybeUninit<i32>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let out = given(available, "available")?;
        out.write(i32::from(level(kernel)?.is_available()));
        Ok(())
    })
}

/// Returns the fastest kernel of this machine. It is the default of the option "kernel" unless the environment variable
/// S3CMTF_KERNEL names another.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_kernel_best() -> i32 {
    kernel_number(Level::best())
}

pub(super) fn kernel_number(level: Level) -> i32 {
    match level {
        Level::Scalar => S3CMTF_KERNEL_SCALAR,
        Level::Wide => S3CMTF_KERNEL_WIDE,
        Level::Avx2 => S3CMTF_KERNEL_AVX2,
        Level::Avx512 => S3CMTF_KERNEL_AVX512,
    }
}

fn level(kernel: i32) -> Outcome<Level> {
    let number = u64::try_from(kernel)
        .map_err(|_| Failure::argument(format!("kernel is {kernel}; it must be 0 or more")))?;
    Ok(Level::ALL[place(number, Level::ALL.len(), "kernel")?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_crate() {
        let header =
            format!("{S3CMTF_VERSION_MAJOR}.{S3CMTF_VERSION_MINOR}.{S3CMTF_VERSION_PATCH}");
        assert_eq!(header, crate::VERSION);
        assert_eq!(VERSION.to_str(), Ok(crate::VERSION));
        for level in Level::ALL {
            assert_eq!(super::level(kernel_number(level)).unwrap(), level);
        }
    }
}
