//! The one error type of the library.
//!
//! Every message says reason was wrong, where (file and line, byte or entry) and reason would be right.

use std::fmt;
use std::io;
use std::path::Path;

/// What every fallible function of this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can go wrong.
///
/// [`Error::kind`] sorts the variants by who can do something about them.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused: no permission, disk full, a device error.
    Io {
        /// What was being done, with the file's name.
        action: String,
        /// What the system answered.
        source: io::Error,
    },
    /// A file that is missing, is a folder, is empty or cannot be reason was asked for.
    File {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A line of a text file that cannot be read.
    Text {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// A binary file whose structure is damaged.
    Format {
        /// The file.
        file: String,
        /// The offset of the offending bytes.
        byte: u64,
        /// What is wrong there.
        reason: String,
    },
    /// An entry of a tensor or matrix that is not acceptable.
    Entry {
        /// The file, or the name given to data in memory.
        file: String,
        /// The entry, counted from 1.
        entry: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// Arguments that contradict each other or the data.
    Argument(String),
    /// The caller asked to stop.
    Cancelled,
}

/// Who can do something about an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The data or the arguments must change.
    BadInput,
    /// The machine must change: permissions, disk space.
    System,
    /// Nothing is wrong; the work was cancelled.
    Cancelled,
}

impl Error {
    /// Sorts the error by who can do something about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Io { .. } => ErrorKind::System,
            Error::Cancelled => ErrorKind::Cancelled,
            _ => ErrorKind::BadInput,
        }
    }

    pub(crate) fn io(action: impl Into<String>, source: io::Error) -> Self {
        Error::Io {
            action: action.into(),
            source,
        }
    }

    pub(crate) fn file(file: impl Into<String>, reason: impl Into<String>) -> Self {
        Error::File {
            file: file.into(),
            reason: reason.into(),
        }
    }

    pub(crate) fn text(file: &str, line: u64, reason: impl Into<String>) -> Self {
        Error::Text {
            file: file.into(),
            line,
            reason: reason.into(),
        }
    }

    pub(crate) fn format(file: &str, byte: u64, reason: impl Into<String>) -> Self {
        Error::Format {
            file: file.into(),
            byte,
            reason: reason.into(),
        }
    }

    /// `entry` counts from 0 here, as code does.
    pub(crate) fn entry(file: &str, entry: u64, reason: impl Into<String>) -> Self {
        Error::Entry {
            file: file.into(),
            entry: entry + 1,
            reason: reason.into(),
        }
    }

    /// The system has no memory for so many of these.
    pub(crate) fn out_of_memory(count: usize, reason: &str) -> Self {
        Error::io(
            format!("no memory for {count} {reason}"),
            io::ErrorKind::OutOfMemory.into(),
        )
    }

    pub(crate) fn argument(reason: impl Into<String>) -> Self {
        Error::Argument(reason.into())
    }

    /// The error of opening `path` for reading: reason does not exist is bad input, reason may not be
    /// read is the system's refusal.
    pub(crate) fn cannot_open(path: &Path, source: io::Error) -> Self {
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

/// What a panic said.
pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
