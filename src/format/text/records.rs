//! Records of CSV and TSV, one at a time, with their lines.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use super::header::{FirstLines, check_header};
use super::options::DelimitedOptions;
use super::source::{ReportPace, TextSource};
use crate::error::{Error, Result};
use crate::progress::Monitor;

/// Reads records through one reused buffer.
pub(super) struct Records {
    reader: csv::Reader<LimitedReader>,
    since_record: Rc<Cell<u64>>,
    bytes_read: Rc<Cell<u64>>,
    pace: ReportPace,
    /// The record that [`next`](Self::next) read.
    pub record: csv::ByteRecord,
    /// The line of `record`, which [`next`](Self::next) returns again.
    unread: Option<u64>,
}

impl Records {
    /// Reads the first lines. All records besides the header are left to be read. `delimiter` is that of the format; the
    /// options may state another.
    pub(super) fn open(
        source: &mut TextSource,
        delimiter: u8,
        d: &DelimitedOptions,
        monitor: &dyn Monitor,
    ) -> Result<(Records, FirstLines)> {
        // Tab-separated files have no quoting convention; a lone quote there is a quote.
        let has_quotes = delimiter != b'\t';
        let mut records = Records::new(source, d.delimiter.unwrap_or(delimiter), has_quotes);
        let Some(line) = records.next(source, monitor)? else {
            return Err(Error::file(
                &source.name,
                "has no lines; it should have a header and one entry per line",
            ));
        };
        let header = records.record.clone();
        if d.no_header {
            records.unread = Some(line);
        } else {
            check_header(&header, has_quotes)
                .map_err(|what| Error::text(&source.name, line, what))?;
            records.unread = records.next(source, monitor)?;
        }
        let data = match records.unread {
            Some(_) => records.record.clone(),
            None => csv::ByteRecord::new(),
        };
        Ok((records, FirstLines { line, header, data }))
    }

    fn new(source: &mut TextSource, delimiter: u8, has_quotes: bool) -> Self {
        let since_record = Rc::new(Cell::new(0));
        let bytes_read = Rc::new(Cell::new(0));
        let reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .quoting(has_quotes)
            .has_headers(false)
            .flexible(true)
            .buffer_capacity(1 << 18)
            .from_reader(LimitedReader {
                inner: source.take_reader(),
                since: since_record.clone(),
                bytes_read: bytes_read.clone(),
            });
        Records {
            reader,
            since_record,
            bytes_read,
            pace: ReportPace::default(),
            record: csv::ByteRecord::new(),
            unread: None,
        }
    }

    /// Reads the next record that is not blank and returns its line; `None` at the end.
    #[inline]
    pub(super) fn next(
        &mut self,
        source: &TextSource,
        monitor: &dyn Monitor,
    ) -> Result<Option<u64>> {
        if let Some(line) = self.unread.take() {
            return Ok(Some(line));
        }
        loop {
            let next_line = self.reader.position().line();
            let more = self.reader.read_byte_record(&mut self.record);
            self.since_record.set(0);
            match more {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(e) => return Err(read_error(e, source, next_line)),
            }
            source.report_line(&mut self.pace, self.bytes_read.get(), monitor)?;
            // The reader skips empty lines but not blank ones.
            if self.record.len() == 1 && self.record[0].trim_ascii().is_empty() {
                continue;
            }
            return Ok(Some(self.record.position().map_or(1, csv::Position::line)));
        }
    }

    /// Returns a message if the record does not have `width` columns, the number of the first line.
    #[inline]
    pub(super) fn check_width(&self, width: usize) -> std::result::Result<(), String> {
        if self.record.len() == width {
            Ok(())
        } else {
            Err(self.width_message(width))
        }
    }

    #[cold]
    fn width_message(&self, width: usize) -> String {
        let quote = if self.record.iter().any(|f| f.contains(&b'\n')) {
            "; is a quote on this line not closed?"
        } else {
            ""
        };
        format!(
            "{} columns, but the first line has {width}{quote}",
            self.record.len()
        )
    }
}

#[cold]
fn read_error(e: csv::Error, source: &TextSource, next_line: u64) -> Error {
    match e.into_kind() {
        csv::ErrorKind::Io(e) => source.read_error(e, next_line.saturating_sub(1)),
        other => Error::text(&source.name, next_line, format!("{other:?}")),
    }
}

/// Longest record in bytes. A longer one is an unclosed quote; the limit bounds the memory.
const MAX_RECORD_LEN: u64 = 16 << 20;

/// Returns an error when a record is too long.
struct LimitedReader {
    inner: Box<dyn Read>,
    since: Rc<Cell<u64>>,
    bytes_read: Rc<Cell<u64>>,
}

impl Read for LimitedReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.since.get() > MAX_RECORD_LEN {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("a record longer than {MAX_RECORD_LEN} bytes; is a quote not closed?"),
            ));
        }
        let n = self.inner.read(buf)?;
        self.since.set(self.since.get() + n as u64);
        self.bytes_read.set(self.bytes_read.get() + n as u64);
        Ok(n)
    }
}
