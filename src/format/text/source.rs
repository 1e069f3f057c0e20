//! The input text: a file or any reader, decompressed if it is gzipped.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;

use crate::error::{Error, Result};

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
        // A truncated gzip file may still yield its start; the error occurs when the rest is read.
        let peeked = reader.by_ref().take(HEAD_LEN as u64).read_to_end(&mut head);
        if head.is_empty() {
            peeked.map_err(|e| source.read_error(e, 1))?;
        }
        source.reader = Some(Box::new(Cursor::new(head.clone()).chain(reader)));
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

    /// Returns the bytes read so far and the length of the file (0 if unknown).
    pub(crate) fn progress(&self) -> (u64, u64) {
        (self.position.get(), self.total)
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
