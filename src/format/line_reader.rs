//! Reads lines through one reused buffer.

use std::io::{self, Read};

/// Longest line in bytes. The limit bounds the memory for files without line ends.
const MAX_LINE_LEN: usize = 1 << 20;

/// Yields the lines of a reader. A line ends with a line feed, a carriage return, or both.
pub(crate) struct LineReader<R> {
    reader: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    finished: bool,
    /// Whether a line feed at `start` belongs to the end of the line before.
    skip_line_feed: bool,
    number: u64,
    bytes_read: u64,
}

impl<R: Read> LineReader<R> {
    pub(crate) fn new(reader: R) -> Self {
        LineReader {
            reader,
            buffer: vec![0; MAX_LINE_LEN],
            start: 0,
            end: 0,
            finished: false,
            skip_line_feed: false,
            number: 0,
            bytes_read: 0,
        }
    }

    /// Returns the number of the line returned last, counted from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the number of bytes read so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// Returns the next line without its line end and, for the first line, without a byte order mark.
    #[inline]
    pub(crate) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        if self.skip_line_feed && self.start < self.end {
            self.skip_line_feed = false;
            self.start += usize::from(self.buffer[self.start] == b'\n');
        }
        let line = match memchr::memchr2(b'\n', b'\r', &self.buffer[self.start..self.end]) {
            Some(len) => {
                let from = self.start;
                self.end_line(from + len);
                from..from + len
            }
            None => match self.refill()? {
                Some(range) => range,
                None => return Ok(None),
            },
        };
        self.number += 1;
        let line = &self.buffer[line];
        if self.number == 1 {
            return Ok(Some(line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line)));
        }
        Ok(Some(line))
    }

    /// Moves `start` past the line end at `at`.
    #[inline]
    fn end_line(&mut self, at: usize) {
        self.start = at + 1;
        if self.buffer[at] != b'\r' {
            return;
        }
        if self.start < self.end {
            self.start += usize::from(self.buffer[self.start] == b'\n');
        } else {
            self.skip_line_feed = true;
        }
    }

    /// Reads until the buffer has a whole line, and returns its range.
    #[cold]
    fn refill(&mut self) -> io::Result<Option<std::ops::Range<usize>>> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let mut searched = 0;
        loop {
            if let Some(len) = memchr::memchr2(b'\n', b'\r', &self.buffer[searched..self.end]) {
                let from = self.start;
                self.end_line(searched + len);
                return Ok(Some(from..searched + len));
            }
            searched = self.end;
            if self.finished {
                if self.end == self.start {
                    return Ok(None);
                }
                // The last line, without a line end.
                let from = self.start;
                self.start = self.end;
                return Ok(Some(from..self.end));
            }
            if self.end == self.buffer.len() {
                return Err(io::Error::new(
                    io::ErrorKind::FileTooLarge,
                    format!("a line longer than {MAX_LINE_LEN} bytes; is this a text file?"),
                ));
            }
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.finished = true,
                Ok(n) => {
                    self.end += n;
                    self.bytes_read += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
            if self.skip_line_feed && self.end > 0 {
                self.skip_line_feed = false;
                self.start = usize::from(self.buffer[0] == b'\n');
                searched = self.start;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Yields one byte at a time, the worst case for a buffer.
    struct Trickle<'a>(&'a [u8]);

    impl Read for Trickle<'_> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let n = self.0.len().min(1);
            buf[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    fn collect(reader: impl Read) -> Vec<String> {
        let mut lines = LineReader::new(reader);
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push(String::from_utf8(line.to_vec()).unwrap());
        }
        assert_eq!(all.len() as u64, lines.number());
        all
    }

    #[test]
    fn lines_come_out_whole() {
        for text in [
            "",
            "\n",
            "a",
            "a\n",
            "a\n\nb",
            "\u{feff}a\nb\r\n",
            "x\u{feff}\n",
            "a\rb\r",
            "a\r\rb",
            "\r\n\r\n\n\ra\n\r\n",
        ] {
            let unix = text.replace("\r\n", "\n").replace('\r', "\n");
            let expected: Vec<String> = unix
                .trim_start_matches('\u{feff}')
                .split_inclusive('\n')
                .map(|l| l.trim_end_matches('\n').to_string())
                .collect();
            assert_eq!(collect(text.as_bytes()), expected, "{text:?}");
            assert_eq!(
                collect(Trickle(text.as_bytes())),
                expected,
                "{text:?} trickling"
            );
        }
    }

    #[test]
    fn lines_across_buffers_and_endless_lines() {
        let text = "0123456789\n".repeat(MAX_LINE_LEN / 4);
        assert_eq!(collect(text.as_bytes()).len(), MAX_LINE_LEN / 4);
        let endless = vec![b'x'; MAX_LINE_LEN + 1];
        assert!(LineReader::new(&endless[..]).next().is_err());
        assert_eq!(collect(&endless[..MAX_LINE_LEN - 1]).len(), 1);
    }
}
