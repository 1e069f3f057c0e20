//! Pieces made in parallel and used in order.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::progress::Monitor;

/// Tells the makers of pieces that nobody wants them any more.
pub struct Stop(AtomicBool);

impl Stop {
    pub(crate) fn new() -> Stop {
        Stop(AtomicBool::new(false))
    }

    /// Whether to give up; what is returned then is thrown away. For pieces that take long.
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Makes pieces `0..count` with `make` on `threads` threads and hands them to `take`, on the calling
/// thread, in the order of their numbers. At most a few pieces per thread exist at a time. The
/// outcome is that of a plain loop, whatever the number of threads.
///
/// The first error of `take` ends the work and is returned; so does a cancellation by `monitor`,
/// also while pieces are being made.
pub fn in_order<T: Send>(
    count: u64,
    threads: usize,
    monitor: &dyn Monitor,
    make: impl Fn(u64, &Stop) -> T + Sync,
    mut take: impl FnMut(u64, T) -> Result<()>,
) -> Result<()> {
    let threads = threads
        .max(1)
        .min(usize::try_from(count).unwrap_or(usize::MAX));
    let next = AtomicU64::new(0);
    // A worker makes a piece only when its turn is near: within this window of what was taken.
    let taken = AtomicU64::new(0);
    let window = 4 * threads as u64;
    let stop = Stop::new();
    thread::scope(|scope| {
        let (send, receive) = sync_channel::<(u64, T)>(threads);
        let mut workers = Vec::with_capacity(threads);
        for _ in 0..threads {
            let send = send.clone();
            let (next, taken, stop, make) = (&next, &taken, &stop, &make);
            let work = move || {
                let _guard = StopOnPanic(stop);
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= count {
                        return;
                    }
                    while i >= taken.load(Ordering::Acquire) + window {
                        if stop.requested() {
                            return;
                        }
                        thread::park_timeout(Duration::from_millis(1));
                    }
                    // The receiver is gone only if the work has ended.
                    if stop.requested() || send.send((i, make(i, stop))).is_err() {
                        return;
                    }
                }
            };
            match super::spawn_scoped(scope, work) {
                Ok(worker) => workers.push(worker),
                // One is enough; the result does not depend on their number.
                Err(_) if !workers.is_empty() => break,
                Err(e) => return Err(e),
            }
        }
        drop(send);
        let mut waiting = BTreeMap::new();
        let mut turn = 0;
        let mut outcome = Ok(());
        while turn < count && outcome.is_ok() {
            match receive.recv_timeout(Duration::from_millis(50)) {
                Ok((i, piece)) => {
                    waiting.insert(i, piece);
                }
                Err(RecvTimeoutError::Timeout) if monitor.cancelled() => {
                    outcome = Err(Error::Cancelled)
                }
                Err(RecvTimeoutError::Timeout) => {}
                // All senders gone early means a worker panicked; joining it passes the panic on.
                Err(RecvTimeoutError::Disconnected) => break,
            }
            while outcome.is_ok()
                && let Some(piece) = waiting.remove(&turn)
            {
                outcome = take(turn, piece);
                turn += 1;
                taken.store(turn, Ordering::Release);
            }
        }
        stop.request();
        drop(receive);
        // A scope ends when the work is done; a library that is unloaded needs the threads gone too.
        for worker in workers {
            worker
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        outcome
    })
}

/// A piece that panicked never comes; without this the others would wait for its turn.
struct StopOnPanic<'a>(&'a Stop);

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
    fn pieces_arrive_in_order_whatever_the_threads() {
        for threads in [1, 2, 3, 16] {
            for count in [0u64, 1, 2, 1000] {
                let mut seen = Vec::new();
                let take = |i, x| {
                    seen.push((i, x));
                    Ok(())
                };
                in_order(count, threads, &(), |i, _| i * i, take).unwrap();
                assert_eq!(seen, (0..count).map(|i| (i, i * i)).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn an_error_ends_the_work() {
        for threads in [1, 4] {
            let mut seen = 0;
            let take = |i, _| {
                seen += 1;
                if i == 10 {
                    Err(Error::Cancelled)
                } else {
                    Ok(())
                }
            };
            let result = in_order(1_000_000, threads, &(), |i, _| i, take);
            assert!(matches!(result, Err(Error::Cancelled)));
            assert_eq!(seen, 11);
        }
    }

    #[test]
    fn a_cancellation_reaches_pieces_being_made() {
        struct Cancelled;
        impl Monitor for Cancelled {
            fn cancelled(&self) -> bool {
                true
            }
        }
        // This piece is never finished by itself.
        let endless = |_, stop: &Stop| {
            while !stop.requested() {
                thread::yield_now();
            }
        };
        let result = in_order(5, 2, &Cancelled, endless, |_, ()| Ok(()));
        assert!(matches!(result, Err(Error::Cancelled)));
    }

    #[test]
    #[should_panic(expected = "no fifty")]
    fn a_panic_of_a_worker_is_passed_on() {
        let _ = in_order(
            100,
            2,
            &(),
            |i, _| assert_ne!(i, 50, "no fifty"),
            |_, ()| Ok(()),
        );
    }
}
