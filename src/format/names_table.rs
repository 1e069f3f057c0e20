//! The text of names files and other tables whose first two columns are read: TSV or CSV.

use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;

use super::line_reader::LineReader;
use super::whole_file::{SizeLimit, read_whole};
use crate::error::{Error, Result};
use crate::printable::is_deceptive;

/// Header line of the files that this library writes. In such files backslash, tab, line ends and other deceptive characters are
/// escaped.
pub(super) const HEADER: &str = "index\tname";

/// Header of the first column of a file that numbers rows.
pub(super) const INDEX_COLUMN: &str = "index";

/// Calls `visit` with the number, the first and the second field of each line of a table, TSV or CSV. Errors of `visit` get
/// the file and the line.
pub(super) fn read_lines(
    path: &Path,
    mut visit: impl FnMut(u64, &str, Option<&str>) -> std::result::Result<(), String>,
) -> Result<()> {
    let file = path.display().to_string();
    let text = read_whole(path, SizeLimit::Table)?;
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&text);
    // A file whose first line has commas and no tab is CSV.
    let mut lines = text.split(|&b| matches!(b, b'\n' | b'\r'));
    let first = lines.next().unwrap_or_default();
    if !first.contains(&b'\t') && first.contains(&b',') {
        return read_csv(&file, text, visit);
    }
    let mut escaped = false;
    let mut lines = LineReader::new(text);
    loop {
        let line_no = lines.number() + 1;
        let line = match lines.next() {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(()),
            Err(e) => return Err(Error::text(&file, line_no, e.to_string())),
        };
        let Ok(line) = std::str::from_utf8(line) else {
            return Err(Error::text(&file, line_no, "is not UTF-8 text"));
        };
        if line.is_empty() {
            continue;
        }
        escaped |= line_no == 1 && line == HEADER;
        let mut fields = line.split('\t');
        let (first, second) = (fields.next().unwrap_or_default(), fields.next());
        let second = match (escaped, second) {
            (true, Some(text)) => Some(Cow::from(unescape(text))),
            (_, text) => text.map(Cow::from),
        };
        visit(line_no, first, second.as_deref())
            .map_err(|what| Error::text(&file, line_no, what))?;
    }
}

fn read_csv(
    file: &str,
    text: &[u8],
    mut visit: impl FnMut(u64, &str, Option<&str>) -> std::result::Result<(), String>,
) -> Result<()> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(text);
    let mut record = csv::StringRecord::new();
    loop {
        let line = reader.position().line();
        match reader.read_record(&mut record) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(_) => return Err(Error::text(file, line, "is not UTF-8 text")),
        }
        visit(line, record.get(0).unwrap_or_default(), record.get(1))
            .map_err(|what| Error::text(file, line, what))?;
    }
}

/// Escapes backslash and deceptive characters, as in files of this library: tab and line ends by letters, others by their number
/// (`\u{202e}`).
pub(super) fn escape(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '\\' => escaped.push_str("\\\\"),
            '\t' => escaped.push_str("\\t"),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            c if is_deceptive(c) => {
                let _ = write!(escaped, "\\u{{{:x}}}", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    escaped
}

/// Parses the number of an escaped character, `{202e}`. Returns the character and the text behind it.
fn numbered(text: &str) -> Option<(char, &str)> {
    let (number, rest) = text.strip_prefix('{')?.split_once('}')?;
    let c = char::from_u32(u32::from_str_radix(number, 16).ok()?)?;
    Some((c, rest))
}

fn unescape(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut chars = name.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('t') => out.push('\t'),
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some('u') => match numbered(chars.as_str()) {
                    Some((c, rest)) => {
                        out.push(c);
                        chars = rest.chars();
                    }
                    None => out.push('u'),
                },
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            c => out.push(c),
        }
    }
    out
}
