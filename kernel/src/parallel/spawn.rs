//! Starts threads with the name of this library and with signals blocked.

use std::thread::{Scope, ScopedJoinHandle};

use super::signals::with_signals_blocked;
use super::sync::{Builder, JoinHandle};
use crate::error::{Error, Result};

/// Name of every thread of this library. Debuggers show it, and a panic hook recognizes these threads by it.
pub const THREAD_NAME: &str = "s3cmtf";

/// Returns a builder of threads called [`THREAD_NAME`].
pub(super) fn builder() -> Builder {
    Builder::new().name(THREAD_NAME.into())
}

/// Starts a scoped thread with all signals blocked, so that signal handlers run on threads of the host program.
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    body: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    with_signals_blocked(|| builder().spawn_scoped(scope, body)).map_err(spawn_error)
}

/// Starts a thread that is not bound to a scope, with all signals blocked, so that signal handlers run on threads of the
/// host program.
pub fn spawn<T: Send + 'static>(
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    with_signals_blocked(|| builder().spawn(body)).map_err(spawn_error)
}

fn spawn_error(e: std::io::Error) -> Error {
    Error::io("cannot start a thread", e)
}
