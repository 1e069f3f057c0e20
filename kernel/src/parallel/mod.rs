//! Threads, CPU pinning, and parallel work whose result does not depend on the thread count.
//!
//! - `ThreadPool`: the threads of one fit. `run` executes a closure once per thread, `map` computes
//!   numbered pieces and returns them in index order. Open `thread_pool.rs` first.
//! - [`run_ordered`]: produces pieces on several threads and consumes them in order on the caller's.
//! - `Barrier`: lets the threads of one `ThreadPool::run` wait for each other; it can be cancelled.
//! - [`StopFlag`]: tells workers to return early.
//! - `worker_threads`: the parked threads behind `ThreadPool`. `spawn` starts single threads.
//! - `stealing_order`: which tasks a thread takes first.
//! - `result_slots`: the results of pieces that threads compute in any order.
//! - `cpu_affinity`, `cpu_topology`: the CPUs that threads are pinned to.
//! - `lock`: locks that ignore poisoning.
//! - `sync`: the primitives of `std` that may be replaced to check the code above.
//! - `signals`: keeps signals of the host process away from these threads.
//!
//! A panic on a worker thread is passed on to the caller after all workers have returned.

mod barrier;
mod cpu_affinity;
mod cpu_topology;
mod lock;
mod result_slots;
mod run_ordered;
mod signals;
mod spawn;
mod stealing_order;
pub mod sync;
mod thread_pool;
mod worker_threads;

pub use crate::progress::StopFlag;
pub use barrier::Barrier;
pub use cpu_affinity::varying_first_cpu;
pub use cpu_affinity::{
    MAX_THREADS, available_threads, cpus_for_concurrent_jobs, restrict_to_cpus, thread_count,
};
pub use lock::lock_ignoring_poison;
pub use run_ordered::run_ordered;
pub use signals::with_signals_blocked;
pub use spawn::THREAD_NAME;
pub use spawn::{spawn, spawn_scoped};
pub use stealing_order::stealing_order;
pub use thread_pool::{ThreadPool, WorkerContext};
