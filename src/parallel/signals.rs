//! Signals stay with the threads of the host.
#![allow(unsafe_code)]

/// Starts threads that signals sent to the process are not delivered to: a handler of the host then runs
/// on a thread of the host. What a thread brings upon itself (SIGSEGV and the like), and what profilers
/// send, is not held back.
#[cfg(unix)]
pub(crate) fn undisturbed<T>(spawn: impl FnOnce() -> T) -> T {
    use std::mem::MaybeUninit;

    const OWN: [libc::c_int; 7] = [
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGILL,
        libc::SIGTRAP,
        libc::SIGABRT,
        libc::SIGPROF,
    ];

    /// Puts the mask of the calling thread back, also after a panic.
    struct Back(libc::sigset_t);

    impl Drop for Back {
        fn drop(&mut self) {
            // SAFETY: a mask that was read from this thread.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
        }
    }

    let mut all = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // SAFETY: the set is filled before anything else is done with it. The only thing that can go wrong
    // is an argument that does not exist; then nothing was changed and there is nothing to put back.
    let _back = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        OWN.iter().for_each(|&own| {
            libc::sigdelset(all.as_mut_ptr(), own);
        });
        let done = libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr()) == 0;
        done.then(|| Back(before.assume_init()))
    };
    spawn()
}

/// No signals, nothing to do.
#[cfg(not(unix))]
pub(crate) fn undisturbed<T>(spawn: impl FnOnce() -> T) -> T {
    spawn()
}
