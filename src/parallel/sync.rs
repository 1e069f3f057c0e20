//! The primitives of `std` that the barrier, the worker threads and the order of tasks are built from. The models in
//! `loom/` compile those files with the primitives of loom instead.

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard};
pub(crate) use std::thread::{
    Builder, JoinHandle, Thread, current, panicking, park_timeout, yield_now,
};
