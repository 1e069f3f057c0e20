//! Reads the lines of jobs from a file or a stream, as they arrive.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use s3cmtf::{Error, Result};

/// The longest line of a job, in bytes.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// A longer line, in bytes, is not skipped: the input is no list of jobs, and may never end.
const MAX_SKIPPED_BYTES: usize = 64 * MAX_LINE_BYTES;

/// Reads jobs, one per line. Empty lines and lines that begin with `#` are skipped.
pub struct JobReader {
    name: String,
    /// The file, if it is one. No job may write to it.
    pub(super) file: Option<PathBuf>,
    reader: Box<dyn Read + Send>,
}

impl JobReader {
    /// Opens a file.
    pub fn open(path: impl AsRef<Path>) -> Result<JobReader> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|e| Error::cannot_open(path, e))?;
        if file.metadata().is_ok_and(|m| m.is_dir()) {
            let name = path.display().to_string();
            return Err(Error::file(name, "is a folder; name a file in it"));
        }
        Ok(JobReader {
            file: Some(path.to_path_buf()),
            ..JobReader::new(path.display().to_string(), file)
        })
    }

    /// Reads from any stream, such as a pipe. `name` stands for it in errors.
    ///
    /// A job may start as soon as its line has arrived. If the batch is cancelled while the stream blocks, its thread
    /// stays blocked and ends with the stream.
    pub fn new(name: impl Into<String>, reader: impl Read + Send + 'static) -> JobReader {
        JobReader {
            name: name.into(),
            file: None,
            reader: Box::new(reader),
        }
    }

    /// Calls `take` with each line until it returns false. The last one is [`JobLine::End`].
    pub(super) fn for_each(self, mut take: impl FnMut(JobLine) -> bool) {
        let mut reader = BufReader::new(self.reader);
        let mut number = 0;
        loop {
            number += 1;
            let line = match read_line(&mut reader, number == 1) {
                Ok(Some(text)) => text,
                Ok(None) => break,
                Err(e) if e.kind() == io::ErrorKind::InvalidData => {
                    let failed = Error::file(self.name, e.to_string());
                    take(JobLine::End(Some(failed)));
                    return;
                }
                Err(e) => {
                    let failed = Error::io(format!("cannot read {}", self.name), e);
                    take(JobLine::End(Some(failed)));
                    return;
                }
            };
            let line = match line {
                Ok(text) if text.is_empty() || text.starts_with('#') => continue,
                Ok(text) => JobLine::Job { number, text },
                Err(message) => JobLine::Unreadable { number, message },
            };
            if !take(line) {
                return;
            }
        }
        take(JobLine::End(None));
    }
}

/// A line, with its number counted from 1.
pub(super) enum JobLine {
    Job {
        number: u64,
        text: String,
    },
    /// A line that is too long or not UTF-8.
    Unreadable {
        number: u64,
        message: String,
    },
    /// The end of the input, with the error that caused it, if any.
    End(Option<Error>),
}

/// The text of a line, or the message of the error that makes it unreadable.
type LineText = std::result::Result<String, String>;

/// Reads the next line without surrounding white space; `None` at the end.
fn read_line(reader: &mut impl BufRead, is_first: bool) -> io::Result<Option<LineText>> {
    let mut bytes = Vec::new();
    let limit = MAX_LINE_BYTES as u64 + 1;
    if reader.by_ref().take(limit).read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    if bytes.len() > MAX_LINE_BYTES && bytes.last() != Some(&b'\n') {
        skip_line(reader)?;
        return Ok(Some(Err(format!(
            "it is longer than {MAX_LINE_BYTES} bytes, the limit for a job"
        ))));
    }
    Ok(Some(match std::str::from_utf8(&bytes) {
        Ok(text) => {
            // Some programs begin files with a byte order mark.
            let text = text
                .strip_prefix('\u{feff}')
                .filter(|_| is_first)
                .unwrap_or(text);
            Ok(text.trim().to_string())
        }
        Err(e) => Err(format!("byte {} is not valid UTF-8", e.valid_up_to() + 1)),
    }))
}

/// Skips the rest of a line.
fn skip_line(reader: &mut impl BufRead) -> io::Result<()> {
    let mut skipped = 0;
    loop {
        if skipped > MAX_SKIPPED_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "it has a line of more than 64 MiB; is it a file of jobs?",
            ));
        }
        let piece = reader.fill_buf()?;
        let (used, is_end) = match piece.iter().position(|&b| b == b'\n') {
            Some(at) => (at + 1, true),
            None => (piece.len(), piece.is_empty()),
        };
        reader.consume(used);
        skipped += used;
        if is_end {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Vec<String> {
        let mut found = Vec::new();
        JobReader::new("test", io::Cursor::new(text.to_vec())).for_each(|line| {
            found.push(match line {
                JobLine::Job { number, text } => format!("{number} {text}"),
                JobLine::Unreadable { number, message } => format!("{number} bad: {message}"),
                JobLine::End(e) => format!("end {}", e.is_some()),
            });
            true
        });
        found
    }

    #[test]
    fn empty_lines_and_comments_are_skipped() {
        assert_eq!(lines(b""), ["end false"]);
        assert_eq!(lines(b"\n \t\r\n# {}\n"), ["end false"]);
        let text = b"\xEF\xBB\xBF{}\r\n\n  #x\n {\"a\":1} \n\xff\nlast";
        let expected = [
            "1 {}",
            "4 {\"a\":1}",
            "5 bad: byte 1 is not valid UTF-8",
            "6 last",
            "end false",
        ];
        assert_eq!(lines(text), expected);
        // Byte numbers include the byte order mark. UTF-16 is not accepted.
        let marked = lines(b"\xEF\xBB\xBF{\"a\":\"\xe9\"}\n");
        assert!(
            marked[0].starts_with("1 bad: byte 10 is not valid UTF-8"),
            "{marked:?}"
        );
        let wide = lines(b"\xFF\xFE{\0}\0\n\0");
        assert!(
            wide[0].starts_with("1 bad: byte 1 is not valid UTF-8"),
            "{wide:?}"
        );
    }

    #[test]
    fn lines_beyond_the_limit_are_unreadable_and_skipped() {
        let mut text = vec![b'x'; MAX_LINE_BYTES];
        text.push(b'\n');
        text.extend(vec![b'y'; 3 * MAX_LINE_BYTES]);
        text.extend(b"\nz");
        let found = lines(&text);
        assert_eq!(found.len(), 4);
        assert!(found[0].starts_with("1 xxx") && found[1].starts_with("2 bad: it is longer"));
        assert_eq!(found[2], "3 z");
        assert_eq!(lines(&vec![b'y'; 2 * MAX_LINE_BYTES])[1], "end false");
    }

    #[test]
    fn a_line_without_end_ends_the_input() {
        let mut message = String::new();
        JobReader::new("zeros", io::repeat(0)).for_each(|line| {
            if let JobLine::End(Some(e)) = line {
                message = e.to_string();
            }
            true
        });
        assert!(
            message.contains("zeros: it has a line of more than 64 MiB"),
            "{message}"
        );
    }
}
