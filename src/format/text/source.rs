//! The input text: a file or any reader, decompressed if it is gzipped.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;

use crate::error::{Error, Result};
use crate::progress::{Monitor, report_progress};

/// An input for [`convert`](crate::format::convert).
pub enum Input {
    /// A file.
    Path(PathBuf),
    /// Any reader, such as standard input.
    Reader {
        /// Name for error messages.
        name: String,
        /// The text, plain or gzipped.
        reader: Box<dyn Read>,
    },
}

impl From<&Path> for Input {
    fn from(path: &Path) -> Self {
        Input::Path(path.to_path_buf())
    }
}

/// Bytes of decoded text that are examined to detect the format.
const HEAD_LEN: usize = 4096;

/// Lines and decoded bytes between two progress reports: a few milliseconds, whether lines are short or long.
const REPORT_LINES: u32 = 1 << 16;
const REPORT_BYTES: u64 = 4 << 20;

/// When to report progress next.
#[derive(Default)]
pub(crate) struct ReportPace {
    /// Lines since the last report.
    lines: u32,
    /// Number of decoded bytes at the next report.
    next_bytes: u64,
}

/// An opened input.
pub(crate) struct TextSource {
    pub name: String,
    /// The start of the decoded text.
    pub head: Vec<u8>,
    reader: Option<Box<dyn Read>>,
    gzip: bool,
    /// Bytes read from the file so far (before decompression).
    position: Rc<Cell<u64>>,
    /// The length of the file, 0 if unknown.
    total: u64,
}

impl TextSource {
    pub(crate) fn open(input: Input) -> Result<TextSource> {
        let (name, raw, total): (String, Box<dyn Read>, u64) = match input {
            Input::Path(path) => {
                let file = File::open(&path).map_err(|e| Error::cannot_open(&path, e))?;
                let name = path.display().to_string();
                let meta = file
                    .metadata()
                    .map_err(|e| Error::io(format!("cannot read {name}"), e))?;
                if meta.is_dir() {
                    return Err(Error::file(name, "is a folder; name a file in it"));
                }
                (name, Box::new(file), meta.len())
            }
            Input::Reader { name, reader } => (name, reader, 0),
        };
        let position = Rc::new(Cell::new(0));
        let mut raw: Box<dyn Read> = Box::new(CountingReader {
            inner: raw,
            position: position.clone(),
        });
        let mut magic = Vec::new();
        let reading = |e| Error::io(format!("cannot read {name}"), e);
        raw.by_ref()
            .take(2)
            .read_to_end(&mut magic)
            .map_err(reading)?;
        let gzip = magic == [0x1F, 0x8B];
        let whole = Cursor::new(magic).chain(raw);
        let mut reader: Box<dyn Read> = if gzip {
            Box::new(MultiGzDecoder::new(io::BufReader::with_capacity(
                1 << 16,
                whole,
            )))
        } else {
            Box::new(whole)
        };
        let mut source = TextSource {
            name,
            head: Vec::new(),
            reader: None,
            gzip,
            position,
            total,
        };
        let mut head = Vec::new();
        // A damaged gzip file may still yield its start. The error is that of the first read after the start: a decoder
        // reports it only once.
        let error = reader
            .by_ref()
            .take(HEAD_LEN as u64)
            .read_to_end(&mut head)
            .err();
        let error = match error {
            Some(e) if head.is_empty() => return Err(source.read_error(e, 1)),
            error => error,
        };
        source.reader = Some(Box::new(PeekedReader {
            head: Cursor::new(head.clone()),
            error,
            rest: reader,
        }));
        source.head = head;
        Ok(source)
    }

    /// Returns a reader of the whole text. Can be called once.
    pub(crate) fn take_reader(&mut self) -> Box<dyn Read> {
        self.reader.take().expect("a source is read once")
    }

    /// Makes the error of a read that failed after `line`.
    pub(crate) fn read_error(&self, e: io::Error, line: u64) -> Error {
        if self.gzip && e.kind() == io::ErrorKind::UnexpectedEof {
            return Error::text(
                &self.name,
                line,
                "the gzip data ends early after this line (or something that is not gzip follows it); copy the file again",
            );
        }
        if self.gzip
            && matches!(
                e.kind(),
                io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData
            )
        {
            return Error::text(
                &self.name,
                line,
                format!("the gzip data after this line is damaged ({e}); copy the file again"),
            );
        }
        if e.kind() == io::ErrorKind::FileTooLarge {
            return Error::text(&self.name, line + 1, e.to_string());
        }
        Error::io(format!("cannot read {} after line {line}", self.name), e)
    }

    /// Reports progress and checks for cancellation, every few milliseconds. Call it after each line, with the
    /// number of decoded bytes read so far.
    #[inline]
    pub(crate) fn report_line(
        &self,
        pace: &mut ReportPace,
        decoded: u64,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        pace.lines += 1;
        if pace.lines < REPORT_LINES && decoded < pace.next_bytes {
            return Ok(());
        }
        *pace = ReportPace {
            lines: 0,
            next_bytes: decoded + REPORT_BYTES,
        };
        let (done, total) = self.progress();
        report_progress(monitor, "reading", done, total)
    }

    /// Returns the bytes read so far and the length of the file (0 if unknown).
    pub(crate) fn progress(&self) -> (u64, u64) {
        (self.position.get(), self.total)
    }
}

/// Yields a text whose start was read already: the start, the error that ended it if there was one, and the rest.
struct PeekedReader {
    head: Cursor<Vec<u8>>,
    error: Option<io::Error>,
    rest: Box<dyn Read>,
}

impl Read for PeekedReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.head.read(buf)?;
        if n > 0 || buf.is_empty() {
            return Ok(n);
        }
        match self.error.take() {
            Some(e) => Err(e),
            None => self.rest.read(buf),
        }
    }
}

/// Counts the bytes read.
struct CountingReader {
    inner: Box<dyn Read>,
    position: Rc<Cell<u64>>,
}

impl Read for CountingReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.position.set(self.position.get() + n as u64);
        Ok(n)
    }
}
