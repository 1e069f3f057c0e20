//! Panics on demand, only in builds for tests (`--cfg s3cmtf_test`); no header has it.
#![allow(unsafe_code)]

use super::error_handle::ErrorHandle;
use super::guard::guard;
use crate::parallel::run_ordered;

/// Panics on the calling thread (0) or on a thread of the library (1).
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_testing_panic(place: i32, error: Option<&mut ErrorHandle>) -> i32 {
    guard(error, || {
        assert_ne!(place, 0, "as was asked for");
        run_ordered(
            9,
            2,
            &(),
            |i, _| assert_ne!(i, 5, "as was asked for"),
            |_, ()| Ok(()),
        )?;
        Ok(())
    })
}
