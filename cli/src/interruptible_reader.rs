//! A reader whose wait for data ends on Ctrl-C.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Bytes per read of the source.
const CHUNK_BYTES: usize = 1 << 18;
/// Chunks that the source may be ahead of the reader.
const QUEUED_CHUNKS: usize = 4;
/// Time between two checks for Ctrl-C.
const INTERRUPT_POLL: Duration = Duration::from_millis(50);

/// Reads a source on another thread, so that Ctrl-C ends a read that waits for data.
pub(crate) struct InterruptibleReader {
    chunks: Receiver<io::Result<Vec<u8>>>,
    /// The unread rest of the last chunk.
    current: io::Cursor<Vec<u8>>,
    interrupted: Arc<AtomicBool>,
}

impl InterruptibleReader {
    /// Starts a thread that opens the source and reads it. Opening is on that thread because a named pipe waits for its
    /// writer.
    pub(crate) fn new<R: Read>(
        open: impl FnOnce() -> io::Result<R> + Send + 'static,
        interrupted: Arc<AtomicBool>,
    ) -> Self {
        let (send, chunks) = sync_channel(QUEUED_CHUNKS);
        let not_started = send.clone();
        let started = std::thread::Builder::new().spawn(move || {
            let mut source = match open() {
                Ok(source) => source,
                Err(e) => {
                    let _ = send.send(Err(e));
                    return;
                }
            };
            loop {
                let mut chunk = vec![0; CHUNK_BYTES];
                let read = source.read(&mut chunk);
                let end = matches!(read, Ok(0));
                let message = read.map(|n| {
                    chunk.truncate(n);
                    chunk
                });
                let failed = message.is_err();
                if send.send(message).is_err() || end || failed {
                    return;
                }
            }
        });
        if let Err(e) = started {
            let _ = not_started.send(Err(e));
        }
        InterruptibleReader {
            chunks,
            current: io::Cursor::default(),
            interrupted,
        }
    }
}

impl Read for InterruptibleReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(io::Error::other("interrupted"));
            }
            let n = self.current.read(buf)?;
            if n > 0 {
                return Ok(n);
            }
            match self.chunks.recv_timeout(INTERRUPT_POLL) {
                Ok(Ok(chunk)) if chunk.is_empty() => return Ok(0),
                Ok(Ok(chunk)) => self.current = io::Cursor::new(chunk),
                Ok(Err(e)) => return Err(e),
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}
