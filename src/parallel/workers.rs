//! Threads that live from one piece of work to the next.
#![allow(unsafe_code)]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use core_affinity::CoreId;

use super::affinity::pin;
use super::signals::undisturbed;
use crate::error::{Error, Result};

/// How often the calling thread looks whether to stop.
const LOOK: Duration = Duration::from_millis(20);

/// A thread without work looks this many times for more before it sleeps: epochs follow each other closely, and
/// waking up takes longer than many steps.
const SPINS: usize = 2000;

/// What the threads of one crew share.
struct Shared {
    /// Which work there is, by its number, and below that for how many threads: [`OVER`] for nobody ever again. It is
    /// all that threads without work look at.
    round: AtomicU64,
    /// Where they sleep.
    sleep: Mutex<()>,
    wake: Condvar,
    /// The work, and who waits for it.
    work: Mutex<Option<(Work, Thread)>>,
    /// Threads that have not finished it.
    left: AtomicUsize,
    /// What a thread panicked with.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// There is no more work.
const OVER: u32 = u32::MAX;

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
                sleep: Mutex::new(()),
                wake: Condvar::new(),
                work: Mutex::new(None),
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
        *locked(&shared.work) = Some((Work(work), thread::current()));
        shared.announce(threads as u32);
        let mut unwinds = None;
        while shared.left.load(Ordering::Acquire) > 0 {
            if unwinds.is_none() {
                // Nothing leaves here before the threads are done, not even a panic of the host.
                unwinds = catch_unwind(AssertUnwindSafe(&mut *look)).err();
            }
            thread::park_timeout(LOOK);
        }
        *locked(&shared.work) = None;
        let panicked = locked(&shared.panic).take();
        if let Some(panic) = unwinds.or(panicked) {
            resume_unwind(panic);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.announce(OVER);
        for handle in self.handles.drain(..) {
            // Panics of work were passed on before.
            let _ = handle.join();
        }
    }
}

impl Shared {
    /// Tells all threads of new work for some of them.
    fn announce(&self, threads: u32) {
        {
            // Nobody falls asleep meanwhile.
            let _awake = locked(&self.sleep);
            let number = self.round.load(Ordering::Relaxed) >> 32;
            let round = (number + 1) << 32 | u64::from(threads);
            self.round.store(round, Ordering::Release);
        }
        self.wake.notify_all();
    }

    /// What comes after the round that was seen last.
    fn next(&self, seen: u64) -> u64 {
        for _ in 0..SPINS {
            let round = self.round.load(Ordering::Acquire);
            if round != seen {
                return round;
            }
            std::hint::spin_loop();
        }
        let mut asleep = locked(&self.sleep);
        loop {
            let round = self.round.load(Ordering::Acquire);
            if round != seen {
                return round;
            }
            asleep = self.wake.wait(asleep).unwrap_or_else(|e| e.into_inner());
        }
    }

    /// The life of thread `number`.
    fn live(&self, number: usize) {
        let mut seen = 0;
        loop {
            seen = self.next(seen);
            let threads = seen as u32;
            if threads == OVER {
                return;
            }
            if number >= threads as usize {
                continue;
            }
            let Some((work, caller)) = locked(&self.work).clone() else {
                continue;
            };
            // SAFETY: the caller waits until `left` is 0, and this thread takes its 1 away afterwards.
            let done = catch_unwind(AssertUnwindSafe(|| unsafe { (*work.0)(number) }));
            if let Err(panic) = done {
                locked(&self.panic).get_or_insert(panic);
            }
            self.left.fetch_sub(1, Ordering::Release);
            caller.unpark();
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}
