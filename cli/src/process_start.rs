//! What has to happen before the Rust runtime starts.
//!
//! The runtime opens `/dev/null` in place of a closed standard output, after which a result would be lost without an error. And a
//! write beyond the file size limit of the process (`ulimit -f`) ends it by a signal unless that is ignored; then it is an error
//! like a full disk.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};

static IS_OUTPUT_CLOSED: AtomicBool = AtomicBool::new(false);

/// Returns whether the process was started without a standard output.
pub(crate) fn is_output_closed() -> bool {
    IS_OUTPUT_CLOSED.load(Ordering::Relaxed)
}

#[cfg(unix)]
mod before_main {
    use super::{IS_OUTPUT_CLOSED, Ordering};

    // SAFETY: the section holds pointers to functions that the C runtime calls before `main`, on the only thread.
    #[used]
    #[cfg_attr(
        target_vendor = "apple",
        unsafe(link_section = "__DATA,__mod_init_func")
    )]
    #[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
    static START: extern "C" fn() = start;

    extern "C" fn start() {
        // SAFETY: both calls are permitted at any time. Nothing here uses the Rust runtime.
        let flags = unsafe {
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD)
        };
        IS_OUTPUT_CLOSED.store(flags == -1, Ordering::Relaxed);
    }
}
