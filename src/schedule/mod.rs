//! Who runs what: thread counts, and work in parallel whose result does not depend on them.

mod crew;
mod meeting;
mod ordered;
mod pin;
mod pool;
mod signals;
mod topology;

pub(crate) use crew::{Crew, Worker, turns};
pub(crate) use meeting::Meeting;
pub use ordered::{Stop, in_order};
pub(crate) use signals::undisturbed;

/// What every thread of this library is called, in debuggers and to whoever must tell its own threads
/// from ours.
pub(crate) const THREAD_NAME: &str = "s3cmtf";

fn builder() -> std::thread::Builder {
    std::thread::Builder::new().name(THREAD_NAME.into())
}

/// The number of threads to use where the caller has no opinion: the CPUs this process may run on,
/// within its cgroup quota.
pub fn available_threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
