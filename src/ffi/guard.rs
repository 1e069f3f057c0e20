//! The boundary every call passes: no panic crosses it, nothing is printed.
//!
//! A panic runs the hook of the Rust runtime before it unwinds, and the standard hook prints. The hook is
//! global to a runtime, so it is replaced once, by one that is silent for what happens inside calls of this
//! library (the thread is in a call, or is a thread of ours, known by its name) and leaves everything else
//! to the hook before it. The shared and the static library carry a runtime of their own, which no host
//! sees; a Rust program that links the crate and calls these functions keeps its own hook for its own
//! panics.
//!
//! The first call also reads the environment, on the thread of the host: later it may be changing it.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::{Once, OnceLock};
use std::thread;

use super::error_handle::ErrorHandle;
use super::float;
use super::status::{Failure, Outcome, S3CMTF_INTERNAL, S3CMTF_OK};
use crate::error::panic_message;
use crate::parallel::THREAD_NAME;
use crate::simd::Level;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Runs the body of a call and turns what it returns into a status.
pub(super) fn guard(error: Option<&mut ErrorHandle>, body: impl FnOnce() -> Outcome) -> i32 {
    // The boundary is compiled once; only this closure and the body are compiled per call.
    let mut body = Some(body);
    guard_dyn(error, &mut || match body.take() {
        Some(body) => body(),
        None => Ok(()),
    })
}

fn guard_dyn(error: Option<&mut ErrorHandle>, body: &mut dyn FnMut() -> Outcome) -> i32 {
    match caught_dyn(body) {
        Ok(()) => S3CMTF_OK,
        Err(failure) => {
            if let Some(error) = error {
                error.set(&failure);
            }
            failure.status
        }
    }
}

/// Runs `body` in the standard floating-point mode and turns a panic into a failure.
pub(super) fn caught<T>(body: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    let (mut body, mut value) = (Some(body), None);
    caught_dyn(&mut || {
        value = body.take().map(|body| body()).transpose()?;
        Ok(())
    })?;
    Ok(value.expect("a body that succeeds returns a value"))
}

/// [`caught`] without type parameters; calls `body` once.
fn caught_dyn(body: &mut dyn FnMut() -> Outcome) -> Outcome {
    prepare();
    let was = INSIDE.replace(true);
    // What a panic leaves half done is the object of the call, which the status says not to use.
    let result = catch_unwind(AssertUnwindSafe(|| {
        if was {
            // The mode is the standard one already, and the host's is kept.
            body()
        } else {
            float::standard(body)
        }
    }));
    INSIDE.set(was);
    result.unwrap_or_else(|panic| Err(Failure::new(S3CMTF_INTERNAL, what(&*panic))))
}

/// Runs `work` of the host in the middle of a call, as if the call were not there.
pub(super) fn outside<T>(work: impl FnOnce() -> T) -> T {
    let was = INSIDE.replace(false);
    let result = float::host(work);
    INSIDE.set(was);
    result
}

/// Runs `work`, which frees an object. The caller has no way to receive an error, so a panic is caught and ignored.
pub(super) fn release(work: impl FnOnce()) {
    let mut work = Some(work);
    let _ = caught_dyn(&mut || {
        if let Some(work) = work.take() {
            work();
        }
        Ok(())
    });
}

fn what(panic: &(dyn Any + Send)) -> String {
    format!("internal error, please report it: {}", panic_message(panic))
}

type Hook = Box<dyn Fn(&PanicHookInfo<'_>) + Sync + Send>;

fn prepare() {
    static ONCE: Once = Once::new();
    // Not in the hook itself: neither hook then needs memory, which a library that is unloaded would leave
    // behind.
    static BEFORE: OnceLock<Hook> = OnceLock::new();
    // The hook cannot be replaced in the middle of a panic.
    if ONCE.is_completed() || thread::panicking() {
        return;
    }
    ONCE.call_once(|| {
        Level::forced();
        let _ = BEFORE.set(panic::take_hook());
        panic::set_hook(Box::new(|info| {
            if !INSIDE.get()
                && thread::current().name() != Some(THREAD_NAME)
                && let Some(before) = BEFORE.get()
            {
                before(info);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::run_ordered;

    #[test]
    fn a_panic_becomes_a_failure_wherever_it_happens() {
        let here = caught(|| -> Outcome { panic!("on the calling thread") }).unwrap_err();
        assert_eq!(here.status, S3CMTF_INTERNAL);
        assert!(here.message.contains("on the calling thread"));
        let there = caught(|| {
            run_ordered(9, 2, &(), |i, _| assert_ne!(i, 5), |_, ()| Ok(()))?;
            Ok(())
        });
        assert_eq!(there.unwrap_err().status, S3CMTF_INTERNAL);
        assert!(!INSIDE.get());
    }

    /// The test above, in a process of its own whose standard error is looked at.
    #[test]
    #[cfg_attr(miri, ignore = "cannot start processes")]
    fn a_panic_is_not_printed() {
        let test = "ffi::guard::tests::a_panic_becomes_a_failure_wherever_it_happens";
        let ran = std::process::Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture"])
            .output()
            .unwrap();
        assert!(String::from_utf8_lossy(&ran.stdout).contains("1 passed"));
        assert_eq!(String::from_utf8_lossy(&ran.stderr), "");
    }
}
