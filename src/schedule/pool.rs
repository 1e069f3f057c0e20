//! Threads that live from one piece of work to the next.
#![allow(unsafe_code)]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use core_affinity::CoreId;

use super::pin::pin;
use super::signals::undisturbed;
use crate::error::{Error, Result};

/// How often the calling thread looks whether to stop.
const LOOK: Duration = Duration::from_millis(20);

/// A thread without work looks this many times for more before it sleeps: epochs follow each other closely, and
/// waking up takes longer than many steps.
const SPINS: usize = 2000;

/// What the threads of one crew share.
struct Shared {
    /// The number of the work there is, ahead of the lock for those who look for it.
    round: AtomicU64,
    order: Mutex<Order>,
    wake: Condvar,
    /// Threads that have not finished the present work.
    left: AtomicUsize,
    /// What a thread panicked with.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// What threads are to do.
struct Order {
    round: u64,
    /// How many of them.
    threads: usize,
    work: Option<Work>,
    caller: Option<Thread>,
    over: bool,
}

/// Work of the caller, which waits until no thread is at it any more.
#[derive(Clone, Copy)]
struct Work(*const (dyn Fn(usize) + Sync));

// SAFETY: it is `Sync`, and who sends it waits until it is not used any more.
unsafe impl Send for Work {}

/// The threads of a crew.
pub(super) struct Pool {
    shared: Arc<Shared>,
    handles: Vec<JoinHandle<()>>,
}

impl Pool {
    pub(super) fn new() -> Pool {
        Pool {
            shared: Arc::new(Shared {
                round: AtomicU64::new(0),
                order: Mutex::new(Order {
                    round: 0,
                    threads: 0,
                    work: None,
                    caller: None,
                    over: false,
                }),
                wake: Condvar::new(),
                left: AtomicUsize::new(0),
                panic: Mutex::new(None),
            }),
            handles: Vec::new(),
        }
    }

    /// Starts threads until there are so many.
    pub(super) fn grow(&mut self, threads: usize, cores: &[CoreId]) -> Result<()> {
        for number in self.handles.len()..threads {
            let (shared, core) = (self.shared.clone(), cores.get(number).copied());
            let live = move || {
                if let Some(core) = core {
                    pin(core);
                }
                shared.live(number);
            };
            let started = undisturbed(|| super::builder().spawn(live));
            self.handles.push(started.map_err(|e| {
                let which = number + 1;
                Error::io(
                    format!("cannot start thread {which} of {threads}; ask for fewer"),
                    e,
                )
            })?);
        }
        Ok(())
    }

    /// Has the first threads do `work`, each with its number, and waits for all of them; asks `look` now and then. A
    /// panic of one of them is passed on.
    pub(super) fn run(
        &mut self,
        threads: usize,
        work: &(dyn Fn(usize) + Sync),
        look: &mut dyn FnMut(),
    ) {
        let shared = &self.shared;
        shared.left.store(threads, Ordering::Relaxed);
        // SAFETY: only the lifetime changes. No thread looks at it after `left` is 0, and this function does not
        // return or unwind before that.
        let work: *const (dyn Fn(usize) + Sync) = unsafe { std::mem::transmute(work) };
        {
            let mut order = shared.order();
            order.round += 1;
            (order.threads, order.work) = (threads, Some(Work(work)));
            order.caller = Some(thread::current());
            shared.round.store(order.round, Ordering::Release);
        }
        shared.wake.notify_all();
        let mut unwinds = None;
        while shared.left.load(Ordering::Acquire) > 0 {
            if unwinds.is_none() {
                // Nothing leaves here before the threads are done, not even a panic of the host.
                unwinds = catch_unwind(AssertUnwindSafe(&mut *look)).err();
            }
            thread::park_timeout(LOOK);
        }
        shared.order().work = None;
        let panicked = shared
            .panic
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .take();
        if let Some(panic) = unwinds.or(panicked) {
            resume_unwind(panic);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        {
            let mut order = self.shared.order();
            order.over = true;
            order.round += 1;
            self.shared.round.store(order.round, Ordering::Release);
        }
        self.shared.wake.notify_all();
        for handle in self.handles.drain(..) {
            // Panics of work were passed on before.
            let _ = handle.join();
        }
    }
}

impl Shared {
    fn order(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The life of thread `number`.
    fn live(&self, number: usize) {
        let mut seen = 0;
        loop {
            for _ in 0..SPINS {
                if self.round.load(Ordering::Acquire) != seen {
                    break;
                }
                std::hint::spin_loop();
            }
            let mut order = self.order();
            while order.round == seen {
                order = self.wake.wait(order).unwrap_or_else(|e| e.into_inner());
            }
            seen = order.round;
            if order.over {
                return;
            }
            let (Some(work), true) = (order.work, number < order.threads) else {
                continue;
            };
            let caller = order.caller.clone();
            drop(order);
            // SAFETY: the caller waits until `left` is 0, and this thread takes its 1 away afterwards.
            let done = catch_unwind(AssertUnwindSafe(|| unsafe { (*work.0)(number) }));
            if let Err(panic) = done {
                let mut first = self.panic.lock().unwrap_or_else(|e| e.into_inner());
                first.get_or_insert(panic);
            }
            self.left.fetch_sub(1, Ordering::Release);
            if let Some(caller) = caller {
                caller.unpark();
            }
        }
    }
}
