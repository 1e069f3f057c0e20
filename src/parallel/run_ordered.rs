//! Pieces produced in parallel and consumed in index order.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use super::spawn::spawn_scoped;
use super::stop_flag::StopFlag;
use crate::error::{Error, Result};
use crate::progress::Monitor;

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
    let next = AtomicU64::new(0);
    // A worker waits before it produces a piece further than this window ahead of the consumer.
    let consumed = AtomicU64::new(0);
    let window = WINDOW_PER_THREAD * threads as u64;
    let stop = StopFlag::new();
    thread::scope(|scope| {
        let (send, receive) = sync_channel::<(u64, T)>(threads);
        let mut workers = Vec::with_capacity(threads);
        for _ in 0..threads {
            let send = send.clone();
            let (next, consumed, stop, produce) = (&next, &consumed, &stop, &produce);
            let body = move || {
                let _guard = StopOnPanic(stop);
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= count {
                        return;
                    }
                    while i >= consumed.load(Ordering::Acquire) + window {
                        if stop.requested() {
                            return;
                        }
                        thread::park_timeout(Duration::from_millis(1));
                    }
                    // The receiver is dropped only after the last piece or an error.
                    if stop.requested() || send.send((i, produce(i, stop))).is_err() {
                        return;
                    }
                }
            };
            match spawn_scoped(scope, body) {
                Ok(worker) => workers.push(worker),
                // One thread suffices; the result does not depend on the thread count.
                Err(_) if !workers.is_empty() => break,
                Err(e) => return Err(e),
            }
        }
        drop(send);
        let mut waiting = BTreeMap::new();
        let mut due = 0;
        let mut outcome = Ok(());
        while due < count && outcome.is_ok() {
            match receive.recv_timeout(CANCEL_POLL) {
                Ok((i, piece)) => {
                    waiting.insert(i, piece);
                }
                Err(RecvTimeoutError::Timeout) if monitor.cancelled() => {
                    outcome = Err(Error::Cancelled)
                }
                Err(RecvTimeoutError::Timeout) => {}
                // All senders disconnect early only after a panic of a worker; the join below passes it on.
                Err(RecvTimeoutError::Disconnected) => break,
            }
            while outcome.is_ok()
                && let Some(piece) = waiting.remove(&due)
            {
                outcome = consume(due, piece);
                due += 1;
                consumed.store(due, Ordering::Release);
            }
        }
        stop.request();
        drop(receive);
        // A scope returns when the closures have returned. A library that may be unloaded afterwards must join
        // the threads themselves.
        for worker in workers {
            worker
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        outcome
    })
}

/// Requests a stop if the thread panics: the other workers would otherwise wait for the missing piece.
struct StopOnPanic<'a>(&'a StopFlag);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.request();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_consumed_in_order_for_any_thread_count() {
        for threads in [1, 2, 3, 16] {
            for count in [0u64, 1, 2, 1000] {
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
}
