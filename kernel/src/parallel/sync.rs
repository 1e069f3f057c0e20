//! The primitives of `std` that the barrier, the worker threads and the order of tasks are built from. The models in
//! `loom/` compile those files with the primitives of loom instead.

pub use std::hint::spin_loop;
pub use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub use std::sync::{Arc, Condvar, Mutex, MutexGuard};
pub use std::thread::{Builder, JoinHandle, Thread, current, panicking, park_timeout, yield_now};
