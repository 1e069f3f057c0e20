//! Where jobs come from: lines of a file or of anything else that can be read, as they come.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// No line is longer; what is cannot be a job.
pub const LONGEST_LINE: usize = 1 << 20;

/// Jobs, one in each line. Empty lines and those that begin with `#` are passed over.
pub struct Jobs {
    name: String,
    /// The file, if it is one: no job may write to it.
    pub(super) file: Option<PathBuf>,
    reader: Box<dyn Read + Send>,
}

impl Jobs {
    /// Those of a file.
    pub fn open(path: impl AsRef<Path>) -> Result<Jobs> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|e| Error::cannot_open(path, e))?;
        if file.metadata().is_ok_and(|m| m.is_dir()) {
            let name = path.display().to_string();
            return Err(Error::file(name, "is a folder; name a file in it"));
        }
        Ok(Jobs {
            file: Some(path.to_path_buf()),
            ..Jobs::read(path.display().to_string(), file)
        })
    }

    /// Those that come from anywhere else, such as a pipe; `name` is what errors call it. A job begins when its line
    /// is there, whatever comes behind. If the batch is cancelled while the reader waits for more, it is left waiting,
    /// on a thread that ends with it.
    pub fn read(name: impl Into<String>, reader: impl Read + Send + 'static) -> Jobs {
        Jobs {
            name: name.into(),
            file: None,
            reader: Box::new(reader),
        }
    }

    /// Hands over the lines until `take` wants no more.
    pub(super) fn each(self, mut take: impl FnMut(Line) -> bool) {
        let mut reader = BufReader::new(self.reader);
        let mut number = 0;
        loop {
            number += 1;
            let line = match next(&mut reader, number == 1) {
                Ok(Some(text)) => text,
                Ok(None) => break,
                Err(e) => {
                    let failed = Error::io(format!("cannot read {}", self.name), e);
                    take(Line::End(Some(failed)));
                    return;
                }
            };
            let line = match line {
                Ok(text) if text.is_empty() || text.starts_with('#') => continue,
                Ok(text) => Line::Job(number, text),
                Err(what) => Line::Bad(number, what),
            };
            if !take(line) {
                return;
            }
        }
        take(Line::End(None));
    }
}

/// What a line is, with its number from 1.
pub(super) enum Line {
    Job(u64, String),
    /// It cannot be read, and why.
    Bad(u64, String),
    /// There is no more, perhaps since it could not be read.
    End(Option<Error>),
}

/// The next line without blanks around it, or what is wrong with it; `None` at the end.
type Next = io::Result<Option<std::result::Result<String, String>>>;

fn next(reader: &mut impl BufRead, first: bool) -> Next {
    let mut bytes = Vec::new();
    let most = LONGEST_LINE as u64 + 1;
    if reader.by_ref().take(most).read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    if bytes.len() > LONGEST_LINE && bytes.last() != Some(&b'\n') {
        pass_over(reader)?;
        return Ok(Some(Err(format!(
            "it is longer than {LONGEST_LINE} bytes, which no job is"
        ))));
    }
    Ok(Some(match std::str::from_utf8(&bytes) {
        Ok(text) => {
            // The mark of Unicode that some programs begin files with.
            let text = text
                .strip_prefix('\u{feff}')
                .filter(|_| first)
                .unwrap_or(text);
            Ok(text.trim().to_string())
        }
        Err(e) => Err(format!(
            "byte {} is not UTF-8, which jobs are written in",
            e.valid_up_to() + 1
        )),
    }))
}

/// Leaves out the rest of a line, however long it is.
fn pass_over(reader: &mut impl BufRead) -> io::Result<()> {
    loop {
        let piece = reader.fill_buf()?;
        let (used, done) = match memchr::memchr(b'\n', piece) {
            Some(at) => (at + 1, true),
            None => (piece.len(), piece.is_empty()),
        };
        reader.consume(used);
        if done {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Vec<String> {
        let mut found = Vec::new();
        Jobs::read("test", io::Cursor::new(text.to_vec())).each(|line| {
            found.push(match line {
                Line::Job(n, text) => format!("{n} {text}"),
                Line::Bad(n, what) => format!("{n} bad: {what}"),
                Line::End(e) => format!("end {}", e.is_some()),
            });
            true
        });
        found
    }

    #[test]
    fn blanks_and_comments_are_passed_over() {
        assert_eq!(lines(b""), ["end false"]);
        assert_eq!(lines(b"\n \t\r\n# {}\n"), ["end false"]);
        let text = b"\xEF\xBB\xBF{}\r\n\n  #x\n {\"a\":1} \n\xff\nlast";
        let expected = [
            "1 {}",
            "4 {\"a\":1}",
            "5 bad: byte 1 is not UTF-8, which jobs are written in",
            "6 last",
            "end false",
        ];
        assert_eq!(lines(text), expected);
        // Bytes are those of the file, the mark of Unicode among them; UTF-16 is no text.
        let marked = lines(b"\xEF\xBB\xBF{\"a\":\"\xe9\"}\n");
        assert!(
            marked[0].starts_with("1 bad: byte 10 is not UTF-8"),
            "{marked:?}"
        );
        let wide = lines(b"\xFF\xFE{\0}\0\n\0");
        assert!(
            wide[0].starts_with("1 bad: byte 1 is not UTF-8"),
            "{wide:?}"
        );
    }

    #[test]
    fn a_line_may_be_long_but_not_endless() {
        let mut text = vec![b'x'; LONGEST_LINE];
        text.push(b'\n');
        text.extend(vec![b'y'; 3 * LONGEST_LINE]);
        text.extend(b"\nz");
        let found = lines(&text);
        assert_eq!(found.len(), 4);
        assert!(found[0].starts_with("1 xxx") && found[1].starts_with("2 bad: it is longer"));
        assert_eq!(found[2], "3 z");
        assert_eq!(lines(&vec![b'y'; 2 * LONGEST_LINE])[1], "end false");
    }
}
