//! Lock-free parallel SGD: Algorithm 1 of the paper, with the gradients of Algorithm 3 (`opt`) or 2 (`naive`).
//!
//! An epoch visits all tensor and matrix entries in random order (`segments`). Segments of entries are distributed among the
//! threads, and threads update shared rows without synchronization ([`crate::kernel::hogwild_rows`]). Of modes and matrices
//! with few rows every thread has a private replica, which it exchanges with the shared rows periodically
//! (`exchange_period`, [`crate::kernel::RowCache`]).
//!
//! No thread owns a factor row. The first thread alone updates the core, with learning rate eta P as in Algorithm 1, where P
//! is the inverse of its fraction of the entries. It publishes its core after each segment, and the others read it before
//! each of theirs. With one thread this is sequential SGD, and bit-identical from run to run; with several it is not.
//!
//! On cancellation every thread finishes the current part of its segment, publishes its replicas and returns.
//!
//! Open `epoch.rs` first; `worker.rs` is one thread, `algorithm.rs` the interface to the driver.

mod algorithm;
mod definition;
mod epoch;
mod exchange_period;
mod naive_kernel;
mod segments;
mod worker;

pub(in crate::solver) use definition::{Naive, Opt};
#[cfg(test)]
pub(in crate::solver) use segments::visits;
