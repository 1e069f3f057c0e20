//! The one error type of the library.
//!
//! A message states the fault, its location (file and line, byte or entry) and how to correct it.

use std::fmt;
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;

/// The result type of all fallible functions of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of the library.
///
/// [`Error::kind`] classifies the variants by their remedy.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system reported an error: no permission, disk full, a device error.
    Io {
        /// The failed action, with the name of the file.
        action: String,
        /// The error of the system.
        source: io::Error,
    },
    /// A file is missing, empty, a folder, or not of the expected kind.
    File {
        /// The file.
        file: String,
        /// The fault and how to correct it.
        reason: String,
    },
    /// A line of a text file cannot be parsed.
    Text {
        /// The file.
        file: String,
        /// Number of the line, counted from 1.
        line: u64,
        /// The fault and how to correct it.
        reason: String,
    },
    /// The structure of a binary file is damaged.
    Format {
        /// The file.
        file: String,
        /// Offset of the damaged bytes.
        byte: u64,
        /// The fault and how to correct it.
        reason: String,
    },
    /// An entry of a tensor or matrix is invalid.
    Entry {
        /// The file, or the name of data in memory.
        file: String,
        /// Number of the entry, counted from 1.
        entry: u64,
        /// The fault and how to correct it.
        reason: String,
    },
    /// Arguments are invalid, or contradict each other or the data.
    Argument(String),
    /// The caller cancelled the operation.
    Cancelled,
}

/// The remedy of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The caller has to correct the data or the arguments.
    BadInput,
    /// The state of the machine has to change: permissions, disk space, memory.
    System,
    /// There is no fault: the operation was cancelled.
    Cancelled,
}

impl Error {
    /// Returns the remedy of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Io { .. } => ErrorKind::System,
            Error::Cancelled => ErrorKind::Cancelled,
            _ => ErrorKind::BadInput,
        }
    }

    /// Makes an [`Error::Io`]. `action` is the failed action, such as `cannot write FILE`.
    pub fn io(action: impl Into<String>, source: io::Error) -> Self {
        Error::Io {
            action: action.into(),
            source,
        }
    }

    /// Makes an [`Error::File`].
    pub fn file(file: impl Into<String>, reason: impl Into<String>) -> Self {
        Error::File {
            file: file.into(),
            reason: reason.into(),
        }
    }

    /// Makes an [`Error::Text`]. `line` counts from 1.
    pub fn text(file: &str, line: u64, reason: impl Into<String>) -> Self {
        Error::Text {
            file: file.into(),
            line,
            reason: reason.into(),
        }
    }

    /// Makes an [`Error::Format`]. `byte` is the offset of the damaged bytes.
    pub fn format(file: &str, byte: u64, reason: impl Into<String>) -> Self {
        Error::Format {
            file: file.into(),
            byte,
            reason: reason.into(),
        }
    }

    /// Makes an [`Error::Entry`]. `entry` counts from 0; messages count from 1.
    pub fn entry(file: &str, entry: u64, reason: impl Into<String>) -> Self {
        Error::Entry {
            file: file.into(),
            entry: entry + 1,
            reason: reason.into(),
        }
    }

    /// Makes the error of a failed allocation of `count` `items`.
    pub fn out_of_memory(count: usize, items: &str) -> Self {
        Error::io(
            format!("no memory for {count} {items}"),
            io::ErrorKind::OutOfMemory.into(),
        )
    }

    /// Returns an [`Error::Argument`] unless a number that decides how much memory or time an operation takes is in its range.
    pub fn check_range(name: &str, number: usize, range: RangeInclusive<usize>) -> Result<()> {
        if range.contains(&number) {
            return Ok(());
        }
        let (low, high) = (range.start(), range.end());
        Err(Error::argument(format!(
            "{name} = {number}: it must be a whole number from {low} to {high}"
        )))
    }

    /// Makes an [`Error::Argument`].
    pub fn argument(reason: impl Into<String>) -> Self {
        Error::Argument(reason.into())
    }

    /// Makes the error of opening `path` for reading. A missing file or a folder is bad input; anything else is an error
    /// of the system.
    pub fn cannot_open(path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::NotFound => Error::file(
                path.display().to_string(),
                "no such file; check the path and the working folder",
            ),
            io::ErrorKind::IsADirectory => {
                Error::file(path.display().to_string(), "is a folder; name a file in it")
            }
            _ => Error::io(format!("cannot open {}", path.display()), source),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { action, source } => write!(f, "{action}: {source}"),
            Error::File { file, reason } => write!(f, "{file}: {reason}"),
            Error::Text { file, line, reason } => write!(f, "{file}: line {line}: {reason}"),
            Error::Format { file, byte, reason } => write!(f, "{file}: byte {byte}: {reason}"),
            Error::Entry {
                file,
                entry,
                reason,
            } => write!(f, "{file}: entry {entry}: {reason}"),
            Error::Argument(reason) => f.write_str(reason),
            Error::Cancelled => f.write_str("cancelled"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Returns the message of a panic.
pub fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
