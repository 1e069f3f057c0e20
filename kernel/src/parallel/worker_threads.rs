//! The long-lived threads behind [`super::ThreadPool`]: they sleep between calls of [`WorkerThreads::run`].
#![allow(unsafe_code)]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use super::cpu_affinity::{CoreId, pin_current_thread};
use super::lock::lock_ignoring_poison;
use super::signals::with_signals_blocked;
use super::spawn::builder;
use super::sync::{
    Arc, AtomicU64, AtomicUsize, Condvar, JoinHandle, Mutex, Ordering, Thread, current,
    park_timeout, spin_loop,
};
use crate::error::{Error, Result};

/// How often the calling thread polls for a cancellation.
const CANCEL_POLL: Duration = Duration::from_millis(20);

/// Number of polls for the next call before an idle thread sleeps. Epochs follow each other closely, and waking
/// up takes longer than many SGD updates.
const SPINS_BEFORE_SLEEP: usize = if cfg!(loom) { 1 } else { 2000 };

/// State shared by the caller and the threads.
struct Shared {
    /// Upper 32 bits: number of the current call. Lower 32 bits: number of threads that take part in it, or
    /// [`SHUTDOWN`]. Idle threads poll only this.
    round: AtomicU64,
    /// Held while a thread falls asleep and while the caller publishes a round.
    sleep: Mutex<()>,
    wake: Condvar,
    /// The closure of the current call and the thread that waits for it.
    call: Mutex<Option<(ClosurePtr, Thread)>>,
    /// Number of threads that have not returned from the closure.
    unfinished: AtomicUsize,
    /// The first panic payload of this call.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// Thread count of the last round: all threads return.
const SHUTDOWN: u32 = u32::MAX;

/// Pointer to a closure on the caller's stack. The caller waits until no thread uses it.
#[derive(Clone, Copy)]
struct ClosurePtr(*const (dyn Fn(usize) + Sync));

// SAFETY: the closure is `Sync`, and `WorkerThreads::run` does not return while a thread uses the pointer.
unsafe impl Send for ClosurePtr {}

/// A growing set of threads that run one closure at a time.
pub(super) struct WorkerThreads {
    shared: Arc<Shared>,
    handles: Vec<JoinHandle<()>>,
}

impl WorkerThreads {
    pub(super) fn new() -> WorkerThreads {
        WorkerThreads {
            shared: Arc::new(Shared {
                round: AtomicU64::new(0),
                sleep: Mutex::new(()),
                wake: Condvar::new(),
                call: Mutex::new(None),
                unfinished: AtomicUsize::new(0),
                panic: Mutex::new(None),
            }),
            handles: Vec::new(),
        }
    }

    /// Starts threads until there are `threads`. Thread `i` is pinned to `cpus[i]`, if that exists.
    pub(super) fn grow(&mut self, threads: usize, cpus: &[CoreId]) -> Result<()> {
        for index in self.handles.len()..threads {
            let (shared, cpu) = (self.shared.clone(), cpus.get(index).copied());
            let body = move || {
                if let Some(cpu) = cpu {
                    pin_current_thread(cpu);
                }
                shared.serve(index);
            };
            let started = with_signals_blocked(|| builder().spawn(body));
            self.handles.push(started.map_err(|e| {
                let which = index + 1;
                Error::io(
                    format!("cannot start thread {which} of {threads}; ask for fewer"),
                    e,
                )
            })?);
        }
        Ok(())
    }

    /// Calls `body` with 0, 1, ... on the first `threads` threads and waits for all of them. Calls `poll`
    /// every [`CANCEL_POLL`] meanwhile. Resumes a panic of `poll` or of a thread.
    pub(super) fn run(
        &mut self,
        threads: usize,
        body: &(dyn Fn(usize) + Sync),
        poll: &mut dyn FnMut(),
    ) {
        let shared = &self.shared;
        shared.unfinished.store(threads, Ordering::Relaxed);
        // SAFETY: only the lifetime changes. No thread uses the pointer after `unfinished` is 0, and this
        // function neither returns nor unwinds before that.
        let body: *const (dyn Fn(usize) + Sync) = unsafe { std::mem::transmute(body) };
        *lock_ignoring_poison(&shared.call) = Some((ClosurePtr(body), current()));
        shared.publish(threads as u32);
        let mut poll_panic = None;
        while shared.unfinished.load(Ordering::Acquire) > 0 {
            if poll_panic.is_none() {
                // Not even a panic of the host may leave this function before the threads are done.
                poll_panic = catch_unwind(AssertUnwindSafe(&mut *poll)).err();
            }
            park_timeout(CANCEL_POLL);
        }
        *lock_ignoring_poison(&shared.call) = None;
        let worker_panic = lock_ignoring_poison(&shared.panic).take();
        if let Some(panic) = poll_panic.or(worker_panic) {
            resume_unwind(panic);
        }
    }
}

impl Drop for WorkerThreads {
    fn drop(&mut self) {
        self.shared.publish(SHUTDOWN);
        for handle in self.handles.drain(..) {
            // `run` has passed on panics of its closure.
            let _ = handle.join();
        }
    }
}

impl Shared {
    /// Starts a new round and wakes all threads.
    fn publish(&self, threads: u32) {
        {
            // While this lock is held, no thread can miss the round between its check and its sleep.
            let _awake = lock_ignoring_poison(&self.sleep);
            let call = self.round.load(Ordering::Relaxed) >> 32;
            let round = (call + 1) << 32 | u64::from(threads);
            self.round.store(round, Ordering::Release);
        }
        self.wake.notify_all();
    }

    /// Waits for a round other than `seen` and returns it.
    fn next_round(&self, seen: u64) -> u64 {
        for _ in 0..SPINS_BEFORE_SLEEP {
            let round = self.round.load(Ordering::Acquire);
            if round != seen {
                return round;
            }
            spin_loop();
        }
        let mut asleep = lock_ignoring_poison(&self.sleep);
        loop {
            let round = self.round.load(Ordering::Acquire);
            if round != seen {
                return round;
            }
            asleep = self.wake.wait(asleep).unwrap_or_else(|e| e.into_inner());
        }
    }

    /// Runs the closures of all rounds on thread `index` until shutdown.
    fn serve(&self, index: usize) {
        let mut seen = 0;
        loop {
            seen = self.next_round(seen);
            let threads = seen as u32;
            if threads == SHUTDOWN {
                return;
            }
            if index >= threads as usize {
                continue;
            }
            let Some((body, caller)) = lock_ignoring_poison(&self.call).clone() else {
                continue;
            };
            // SAFETY: the caller waits until `unfinished` is 0, and this thread decrements it only afterwards.
            let result = catch_unwind(AssertUnwindSafe(|| unsafe { (*body.0)(index) }));
            if let Err(panic) = result {
                lock_ignoring_poison(&self.panic).get_or_insert(panic);
            }
            self.unfinished.fetch_sub(1, Ordering::Release);
            caller.unpark();
        }
    }
}
