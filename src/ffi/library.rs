//! The library itself: version, build, kernels.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char};
use std::mem::MaybeUninit;
use std::sync::OnceLock;

use super::arg::{c_text, given, place};
use super::error_handle::ErrorHandle;
use super::guard::guard;
use super::status::{Failure, Outcome};
use crate::simd::Level;

/// The version of this header. Versions with the same major number are compatible (while it is 0: the
/// same minor number); newer ones have more functions.
pub const S3CMTF_VERSION_MAJOR: u32 = 0;
/// See S3CMTF_VERSION_MAJOR.
pub const S3CMTF_VERSION_MINOR: u32 = 1;
/// See S3CMTF_VERSION_MAJOR.
pub const S3CMTF_VERSION_PATCH: u32 = 0;
/// The version as one number: 10203 for 1.2.3.
pub const S3CMTF_VERSION_NUMBER: u32 =
    S3CMTF_VERSION_MAJOR * 10000 + S3CMTF_VERSION_MINOR * 100 + S3CMTF_VERSION_PATCH;

/// In s3cmtf_progress: the kernel is not known yet.
pub const S3CMTF_KERNEL_UNKNOWN: i32 = -1;
/// The kernels, slowest first: one number at a time. Everywhere.
pub const S3CMTF_KERNEL_SCALAR: i32 = 0;
/// Portable vectors: SSE2 or NEON. Everywhere.
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

/// The version of the library that is linked, as S3CMTF_VERSION_NUMBER is that of the header that was
/// compiled with.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_version_number() -> u32 {
    S3CMTF_VERSION_NUMBER
}

/// The same as text, such as "1.2.3". Constant, never freed.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_version() -> *const c_char {
    VERSION.as_ptr()
}

/// How the library was built: version, machine, system, and whether with optimisations. Constant, never
/// freed.
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

/// The name of a kernel (S3CMTF_KERNEL_...), as the option "kernel" takes it. Constant, never freed.
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

/// Whether this machine has a kernel: writes 1 or 0.
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

/// The fastest kernel of this machine, which is used where neither the option "kernel" nor the environment
/// variable S3CMTF_KERNEL says otherwise.
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
