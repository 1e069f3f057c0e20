//! Matrix Market coordinate files: a banner, comments, a line of sizes, then the entries, 1-based.

use super::entry::{Entry, EntryParser};
use super::fields::{fields, quote, starts_with_ignore_case};
use super::options::TextOptions;
use super::sink::Sink;
use super::source::{ReportPace, TextSource};
use super::text_result::TextResult;
use crate::error::{Error, Result};
use crate::format::header::MAX_DIM;
use crate::format::line_reader::LineReader;
use crate::progress::Monitor;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Symmetry {
    General,
    Symmetric,
    Skew,
}

/// Reads all entries into `sink`.
pub(super) fn read(
    source: &mut TextSource,
    options: &TextOptions,
    sink: &mut Sink<'_>,
    monitor: &dyn Monitor,
) -> Result<TextResult> {
    if options.zero_based || options.weighted || options.no_value {
        return Err(Error::argument(
            "Matrix Market files count from 1, have no weights and say themselves whether there are \
             values; leave out --zero-based, --weighted and --no-value",
        ));
    }
    let mut lines = LineReader::new(source.take_reader());
    let banner = match lines.next() {
        Ok(line) => parse_banner(line.unwrap_or_default()),
        Err(e) => return Err(source.read_error(e, lines.number())),
    };
    let (pattern, symmetry) = banner.map_err(|what| Error::text(&source.name, 1, what))?;
    let mut sizes: Option<(EntryParser, u64)> = None;
    let mut entry = Entry::new();
    let mut seen = 0u64;
    let mut pace = ReportPace::default();
    loop {
        source.report_line(&mut pace, lines.bytes_read(), monitor)?;
        let line = match lines.next() {
            Ok(Some(line)) => line,
            Ok(None) => break,
            Err(e) => return Err(source.read_error(e, lines.number())),
        };
        match fields(line).next() {
            None => continue,
            Some(f) if f[0] == b'%' => continue,
            Some(_) => {}
        }
        let Some((parser, count)) = &sizes else {
            let (dims, count) =
                parse_sizes(line).map_err(|w| Error::text(&source.name, lines.number(), w))?;
            if symmetry != Symmetry::General && dims[0] != dims[1] {
                return Err(Error::text(
                    &source.name,
                    lines.number(),
                    format!(
                        "a symmetric matrix must be square, this is {} x {}",
                        dims[0], dims[1]
                    ),
                ));
            }
            if let Some(stated) = &options.dims
                && stated[..] != dims
            {
                return Err(Error::text(
                    &source.name,
                    lines.number(),
                    format!(
                        "the file says {} x {}, the option dims says {stated:?}",
                        dims[0], dims[1]
                    ),
                ));
            }
            let mut parser = EntryParser::new(2, Some(&dims), sink.value_kind);
            parser.has_value = !pattern;
            sink.begin(2, false)?;
            sizes = Some((parser, count));
            continue;
        };
        if seen == *count {
            return Err(Error::text(
                &source.name,
                lines.number(),
                format!("more entries than the {count} the file announces"),
            ));
        }
        seen += 1;
        if let Err(what) = parser.parse(line, &mut entry) {
            return Err(Error::text(&source.name, lines.number(), what));
        }
        sink.push(&entry)?;
        if symmetry != Symmetry::General && entry.indices[0] != entry.indices[1] {
            entry.indices.swap(0, 1);
            if symmetry == Symmetry::Skew {
                entry.value = -entry.value;
            }
            sink.push(&entry)?;
        }
    }
    let Some((parser, count)) = sizes else {
        return Err(Error::text(
            &source.name,
            lines.number(),
            "the file ends before the line of sizes (rows, columns, entries)",
        ));
    };
    if seen < count {
        return Err(Error::text(
            &source.name,
            lines.number(),
            format!("the file ends after {seen} of the {count} entries it announces"),
        ));
    }
    Ok(TextResult {
        dims: Some(parser.dims[..2].to_vec()),
        ..TextResult::default()
    })
}

/// Parses the banner. Returns whether it is a pattern (a matrix without values), and its symmetry.
fn parse_banner(line: &[u8]) -> std::result::Result<(bool, Symmetry), String> {
    if !starts_with_ignore_case(line, b"%%MatrixMarket") {
        return Err(format!(
            "a Matrix Market file starts with '%%MatrixMarket matrix coordinate ...', this with {}",
            quote(line)
        ));
    }
    let words: Vec<String> = fields(line)
        .skip(1)
        .map(|w| String::from_utf8_lossy(w).to_lowercase())
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [object, format, field, symmetry] = words[..] else {
        return Err(
            "the banner needs four words after %%MatrixMarket: matrix coordinate real general"
                .into(),
        );
    };
    if object != "matrix" || format != "coordinate" {
        return Err(format!(
            "'{object} {format}' is not supported; only 'matrix coordinate' (sparse) is"
        ));
    }
    let pattern = match field {
        "real" | "double" | "integer" => false,
        "pattern" => true,
        _ => {
            return Err(format!(
                "'{field}' values are not supported; real, integer and pattern are"
            ));
        }
    };
    let symmetry = match symmetry {
        "general" => Symmetry::General,
        "symmetric" => Symmetry::Symmetric,
        "skew-symmetric" if !pattern => Symmetry::Skew,
        _ => {
            return Err(format!(
                "'{symmetry}' is not supported here; general, symmetric and (with values) skew-symmetric are"
            ));
        }
    };
    Ok((pattern, symmetry))
}

/// Parses the line of sizes. Returns rows and columns, and the number of entries.
fn parse_sizes(line: &[u8]) -> std::result::Result<([u64; 2], u64), String> {
    let numbers: Vec<Option<u64>> = fields(line)
        .map(|f| std::str::from_utf8(f).ok()?.parse().ok())
        .collect();
    let [Some(rows), Some(columns), Some(count)] = numbers[..] else {
        return Err(format!(
            "expected three numbers (rows, columns, entries), found {}",
            quote(line)
        ));
    };
    if rows == 0 || columns == 0 || rows > MAX_DIM || columns > MAX_DIM {
        return Err(format!(
            "sizes {rows} x {columns}; each must be 1 to {MAX_DIM}"
        ));
    }
    Ok(([rows, columns], count))
}
