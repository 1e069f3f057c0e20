//! Signals sent to the process are delivered to threads of the host, never to threads of this library.
#![allow(unsafe_code)]

/// Runs `spawn` with signals blocked on the calling thread. Threads started by `spawn` inherit the mask, so a
/// signal handler of the host runs on a thread of the host. Signals that a thread raises itself (SIGSEGV and
/// the like) and SIGPROF stay unblocked.
#[cfg(all(unix, not(miri)))]
pub fn with_signals_blocked<T>(spawn: impl FnOnce() -> T) -> T {
    use std::mem::MaybeUninit;

    const NEVER_BLOCKED: [libc::c_int; 7] = [
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGILL,
        libc::SIGTRAP,
        libc::SIGABRT,
        libc::SIGPROF,
    ];

    /// Restores the signal mask of the calling thread, also after a panic.
    struct RestoreMask(libc::sigset_t);

    impl Drop for RestoreMask {
        fn drop(&mut self) {
            // SAFETY: the mask was read from this thread.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
        }
    }

    let mut blocked = MaybeUninit::uninit();
    let mut previous = MaybeUninit::uninit();
    // SAFETY: `sigfillset` initializes the set before any other use. `pthread_sigmask` fails only for an
    // invalid first argument; it then changes nothing, and `previous` is not read.
    let _restore = unsafe {
        libc::sigfillset(blocked.as_mut_ptr());
        for signal in NEVER_BLOCKED {
            libc::sigdelset(blocked.as_mut_ptr(), signal);
        }
        let status =
            libc::pthread_sigmask(libc::SIG_BLOCK, blocked.as_ptr(), previous.as_mut_ptr());
        (status == 0).then(|| RestoreMask(previous.assume_init()))
    };
    spawn()
}

/// Runs `spawn`: this system, and Miri, have no signals to block.
#[cfg(any(miri, not(unix)))]
pub fn with_signals_blocked<T>(spawn: impl FnOnce() -> T) -> T {
    spawn()
}
