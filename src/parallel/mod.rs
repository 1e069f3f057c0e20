//! Who runs what: thread counts, and work in parallel whose result does not depend on them.

mod affinity;
mod barrier;
mod ordered;
mod signals;
mod thread_pool;
mod topology;
mod workers;

use std::thread::{JoinHandle, Scope, ScopedJoinHandle};

use crate::error::{Error, Result};

pub(crate) use affinity::{anywhere, confine, cores_to_share};
pub(crate) use barrier::Meeting;
pub use ordered::{Stop, in_order};
pub(crate) use signals::undisturbed;
pub(crate) use thread_pool::{Crew, Worker, turns};

/// What every thread of this library is called, in debuggers and to whoever must tell its own threads
/// from ours.
pub(crate) const THREAD_NAME: &str = "s3cmtf";

fn builder() -> std::thread::Builder {
    std::thread::Builder::new().name(THREAD_NAME.into())
}

/// Starts a thread that ends with its scope.
pub(crate) fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    undisturbed(|| builder().spawn_scoped(scope, work)).map_err(not_started)
}

/// Starts a thread that ends by itself.
pub(crate) fn spawn<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    undisturbed(|| builder().spawn(work)).map_err(not_started)
}

fn not_started(e: std::io::Error) -> Error {
    Error::io("cannot start a thread", e)
}

/// The number of threads to use where the caller has no opinion: the CPUs this process may run on,
/// within its cgroup quota.
pub fn available_threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
