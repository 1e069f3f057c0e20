//! Pieces made in parallel and used in order.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;

use crate::error::Result;

/// Makes pieces `0..count` with `make` on `threads` threads and hands them to `take`, on the calling
/// thread, in the order of their numbers. At most a few pieces per thread exist at a time. The
/// outcome is that of a plain loop, whatever the number of threads.
///
/// The first error of `take` ends the work and is returned.
pub fn in_order<T: Send>(
    count: u64,
    threads: usize,
    make: impl Fn(u64) -> T + Sync,
    mut take: impl FnMut(u64, T) -> Result<()>,
) -> Result<()> {
    if threads <= 1 || count <= 1 {
        return (0..count).try_for_each(|i| take(i, make(i)));
    }
    let threads = threads.min(usize::try_from(count).unwrap_or(usize::MAX));
    let next = AtomicU64::new(0);
    // A worker claims a piece only when its turn is near: within this window of what was taken.
    let taken = AtomicU64::new(0);
    let window = 4 * threads as u64;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let (send, receive) = sync_channel::<(u64, T)>(threads);
        for _ in 0..threads {
            let send = send.clone();
            let (next, taken, stop, make) = (&next, &taken, &stop, &make);
            scope.spawn(move || {
                let _guard = StopOnPanic(stop);
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= count {
                        return;
                    }
                    while i >= taken.load(Ordering::Acquire) + window {
                        if stop.load(Ordering::Relaxed) {
                            return;
                        }
                        thread::park_timeout(std::time::Duration::from_millis(1));
                    }
                    // The receiver is gone only if `take` failed.
                    if send.send((i, make(i))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(send);
        let mut waiting = BTreeMap::new();
        let mut outcome = Ok(());
        let mut turn = 0;
        while turn < count {
            // All senders gone early means a worker panicked; the scope passes the panic on.
            let Ok((i, piece)) = receive.recv() else {
                break;
            };
            waiting.insert(i, piece);
            while let Some(piece) = waiting.remove(&turn) {
                if let Err(e) = take(turn, piece) {
                    outcome = Err(e);
                    break;
                }
                turn += 1;
                taken.store(turn, Ordering::Release);
            }
            if outcome.is_err() {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
        drop(receive);
        outcome
    })
}

/// A piece that panicked never comes; without this the others would wait for its turn.
struct StopOnPanic<'a>(&'a AtomicBool);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn pieces_arrive_in_order_whatever_the_threads() {
        for threads in [1, 2, 3, 16] {
            for count in [0u64, 1, 2, 1000] {
                let mut seen = Vec::new();
                in_order(
                    count,
                    threads,
                    |i| i * i,
                    |i, x| {
                        seen.push((i, x));
                        Ok(())
                    },
                )
                .unwrap();
                assert_eq!(seen, (0..count).map(|i| (i, i * i)).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn an_error_ends_the_work() {
        for threads in [1, 4] {
            let mut seen = 0;
            let result = in_order(
                1_000_000,
                threads,
                |i| i,
                |i, _| {
                    seen += 1;
                    if i == 10 {
                        Err(Error::Cancelled)
                    } else {
                        Ok(())
                    }
                },
            );
            assert!(matches!(result, Err(Error::Cancelled)));
            assert_eq!(seen, 11);
        }
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_panic_of_a_worker_is_passed_on() {
        let _ = in_order(100, 2, |i| assert_ne!(i, 50, "no fifty"), |_, ()| Ok(()));
    }
}
