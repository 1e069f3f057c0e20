//! Pieces produced in parallel and consumed in index order.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use super::result_slots::ResultSlots;
use super::spawn::spawn_scoped;
use crate::error::{Error, Result};
use crate::progress::{Monitor, StopFlag};

/// Pieces per thread that may be in production or waiting to be consumed.
const WINDOW_PER_THREAD: u64 = 4;

/// How often the calling thread polls `monitor` while it waits for a piece.
const CANCEL_POLL: Duration = Duration::from_millis(50);

/// Produces pieces `0..count` with `produce` on `threads` threads and passes them to `consume`, on the calling
/// thread, in index order. At most `WINDOW_PER_THREAD` pieces per thread exist at a time. The result is that of
/// a sequential loop and is independent of the thread count.
///
/// Stops at the first error of `consume` and returns it. Returns [`Error::Cancelled`] if `monitor` cancels, also
/// while pieces are being produced.
pub fn run_ordered<T: Send>(
    count: u64,
    threads: usize,
    monitor: &dyn Monitor,
    produce: impl Fn(u64, &StopFlag) -> T + Sync,
    mut consume: impl FnMut(u64, T) -> Result<()>,
) -> Result<()> {
    let threads = threads
        .max(1)
        .min(usize::try_from(count).unwrap_or(usize::MAX));
    let window = Window::new(count, WINDOW_PER_THREAD * threads as u64);
    // A piece occupies the slot that its predecessor, a whole window earlier, has left.
    let slots = ResultSlots::new(window.size as usize);
    window.run(
        threads,
        monitor,
        &|i, stop| slots.put(window.slot(i), produce(i, stop)),
        &mut |i| match slots.take(window.slot(i)) {
            Some(piece) => consume(i, piece),
            None => unreachable!("piece {i} was announced"),
        },
    )
}

/// The pieces that are in production or waiting to be consumed. It knows only their indices, so that its code
/// is compiled once for all types of pieces.
struct Window {
    /// Number of pieces.
    count: u64,
    /// No piece is produced that is this far ahead of the consumer.
    size: u64,
    state: Mutex<WindowState>,
    /// The piece that the consumer waits for is ready, or there is a stop.
    due_ready: Condvar,
    /// The consumer has advanced, or there is a stop.
    advanced: Condvar,
    /// Set while `state` is locked, so that no waiting thread misses it.
    stop: StopFlag,
}

struct WindowState {
    /// The next piece to be produced.
    next: u64,
    /// The next piece to be consumed.
    due: u64,
    /// Whether the piece in each slot is produced and not yet consumed.
    ready: Vec<bool>,
}

/// What the consumer finds after waiting.
enum Waited {
    Ready,
    TimedOut,
    Stopped,
}

impl Window {
    fn new(count: u64, size: u64) -> Window {
        Window {
            count,
            size,
            state: Mutex::new(WindowState {
                next: 0,
                due: 0,
                ready: vec![false; size as usize],
            }),
            due_ready: Condvar::new(),
            advanced: Condvar::new(),
            stop: StopFlag::new(),
        }
    }

    fn slot(&self, piece: u64) -> usize {
        (piece % self.size) as usize
    }

    /// Calls `produce` for every piece on `threads` threads, and `consume` for every piece in index order on the
    /// calling thread.
    fn run(
        &self,
        threads: usize,
        monitor: &dyn Monitor,
        produce: &(dyn Fn(u64, &StopFlag) + Sync),
        consume: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        thread::scope(|scope| {
            let _guard = StopOnPanic(self);
            let mut workers = Vec::with_capacity(threads);
            for _ in 0..threads {
                let body = || {
                    let _guard = StopOnPanic(self);
                    while let Some(i) = self.claim() {
                        produce(i, &self.stop);
                        self.stop.operations.poll();
                        self.announce(i);
                    }
                };
                match spawn_scoped(scope, body) {
                    Ok(worker) => workers.push(worker),
                    // One thread suffices; the result does not depend on the thread count.
                    Err(_) if !workers.is_empty() => break,
                    Err(e) => return Err(e),
                }
            }
            let mut due = 0;
            let mut outcome = Ok(());
            while due < self.count && outcome.is_ok() {
                match self.wait_until_due_is_ready() {
                    Waited::Ready => {
                        outcome = consume(due);
                        due += 1;
                        self.advance();
                    }
                    Waited::TimedOut if monitor.cancelled() => outcome = Err(Error::Cancelled),
                    Waited::TimedOut => {}
                    // A worker panicked; the join below passes the panic on.
                    Waited::Stopped => break,
                }
            }
            self.stop();
            // A scope returns when the closures have returned. A library that may be unloaded afterwards must
            // join the threads themselves.
            for worker in workers {
                worker
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            }
            self.stop.operations.report();
            outcome
        })
    }

    /// Waits until the next piece is within the window and returns it. Returns `None` after the last piece and
    /// after a stop.
    fn claim(&self) -> Option<u64> {
        let mut state = self.lock();
        loop {
            let piece = state.next;
            if piece == self.count || self.stop.requested() {
                return None;
            }
            if piece < state.due + self.size {
                state.next += 1;
                return Some(piece);
            }
            state = self.advanced.wait(state).unwrap_or_else(|e| e.into_inner());
        }
    }

    /// Tells the consumer that `piece` is in its slot.
    fn announce(&self, piece: u64) {
        let mut state = self.lock();
        state.ready[self.slot(piece)] = true;
        if state.due == piece {
            self.due_ready.notify_one();
        }
    }

    /// Waits up to [`CANCEL_POLL`] for the piece that is due.
    fn wait_until_due_is_ready(&self) -> Waited {
        let mut state = self.lock();
        let slot = self.slot(state.due);
        if !state.ready[slot] && !self.stop.requested() {
            let waited = self.due_ready.wait_timeout(state, CANCEL_POLL);
            state = waited.unwrap_or_else(|e| e.into_inner()).0;
        }
        if std::mem::take(&mut state.ready[slot]) {
            Waited::Ready
        } else if self.stop.requested() {
            Waited::Stopped
        } else {
            Waited::TimedOut
        }
    }

    /// Records that the piece that was due is consumed.
    fn advance(&self) {
        self.lock().due += 1;
        self.advanced.notify_one();
    }

    /// Makes all waiting threads return, and `produce` stop early.
    fn stop(&self) {
        let _state = self.lock();
        self.stop.request();
        self.due_ready.notify_one();
        self.advanced.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, WindowState> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// Stops the window if the thread panics: the other threads would otherwise wait for it.
struct StopOnPanic<'a>(&'a Window);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_consumed_in_order_for_any_thread_count() {
        for threads in [1, 2, 3, 16] {
            for count in [0u64, 1, 2, if cfg!(miri) { 40 } else { 1000 }] {
                let mut seen = Vec::new();
                let consume = |i, x| {
                    seen.push((i, x));
                    Ok(())
                };
                run_ordered(count, threads, &(), |i, _| i * i, consume).unwrap();
                assert_eq!(seen, (0..count).map(|i| (i, i * i)).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn an_error_of_the_consumer_stops_the_workers() {
        for threads in [1, 4] {
            let mut seen = 0;
            let consume = |i, _| {
                seen += 1;
                if i == 10 {
                    Err(Error::Cancelled)
                } else {
                    Ok(())
                }
            };
            let result = run_ordered(1_000_000, threads, &(), |i, _| i, consume);
            assert!(matches!(result, Err(Error::Cancelled)));
            assert_eq!(seen, 11);
        }
    }

    #[test]
    fn cancellation_interrupts_pieces_in_production() {
        struct Cancelled;
        impl Monitor for Cancelled {
            fn cancelled(&self) -> bool {
                true
            }
        }
        // This piece ends only on request.
        let endless = |_, stop: &StopFlag| {
            while !stop.requested() {
                thread::yield_now();
            }
        };
        let result = run_ordered(5, 2, &Cancelled, endless, |_, ()| Ok(()));
        assert!(matches!(result, Err(Error::Cancelled)));
    }

    #[test]
    #[should_panic(expected = "no fifty")]
    fn a_panic_of_a_worker_reaches_the_caller() {
        let _ = run_ordered(
            100,
            2,
            &(),
            |i, _| assert_ne!(i, 50, "no fifty"),
            |_, ()| Ok(()),
        );
    }

    #[test]
    #[should_panic(expected = "no third")]
    fn a_panic_of_the_consumer_releases_the_workers() {
        let consume = |i, _| {
            assert_ne!(i, 3, "no third");
            Ok(())
        };
        let _ = run_ordered(1000, 2, &(), |i, _| i, consume);
    }
}
