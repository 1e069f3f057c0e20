//! FROSTT `.tns`: one entry per line, `#` starts a comment line.

use super::entry::{Entry, EntryParser};
use super::fields::fields;
use super::options::TextOptions;
use super::sink::Sink;
use super::source::{ReportPace, TextSource};
use super::text_result::TextResult;
use crate::error::{Error, Result};
use crate::format::header::{MAX_ORDER, MIN_ORDER, check_dims};
use crate::format::line_reader::LineReader;
use crate::progress::Monitor;

/// Reads all entries into `sink`.
pub(super) fn read(
    source: &mut TextSource,
    options: &TextOptions,
    sink: &mut Sink<'_>,
    monitor: &dyn Monitor,
) -> Result<TextResult> {
    let dims = options.dims.as_deref();
    if let Some(dims) = dims {
        check_dims(dims)?;
    }
    let extra = usize::from(!options.no_value) + usize::from(options.weighted);
    let mut lines = LineReader::new(source.take_reader());
    let mut parser: Option<EntryParser> = None;
    let mut entry = Entry::new();
    let mut pace = ReportPace::default();
    loop {
        source.report_line(&mut pace, lines.bytes_read(), monitor)?;
        let line = match lines.next() {
            Ok(Some(line)) => line,
            Ok(None) => break,
            Err(e) => return Err(source.read_error(e, lines.number())),
        };
        let is_entry = match line {
            [b'0'..=b'9', ..] => true,
            _ => fields(line).next().is_some_and(|f| f[0] != b'#'),
        };
        if !is_entry {
            continue;
        }
        let parser = match &mut parser {
            Some(p) => p,
            None => {
                let columns = fields(line).count();
                let order = columns.saturating_sub(extra);
                if let Some(dims) = dims
                    && order != dims.len()
                {
                    return Err(Error::text(
                        &source.name,
                        lines.number(),
                        format!(
                            "{columns} columns, but {} sizes were stated, which makes {} columns",
                            dims.len(),
                            dims.len() + extra
                        ),
                    ));
                }
                if !(MIN_ORDER..=MAX_ORDER).contains(&order) {
                    return Err(Error::text(
                        &source.name,
                        lines.number(),
                        format!(
                            "{columns} columns; a line needs {MIN_ORDER} to {MAX_ORDER} indices{}, \
                             so {} to {} columns{}",
                            if options.no_value { "" } else { " and a value" },
                            MIN_ORDER + extra,
                            MAX_ORDER + extra,
                            if columns == 1 {
                                "; if they are not separated by blanks, set --from csv and --delimiter (options from and \
                                 delimiter)"
                            } else {
                                ""
                            }
                        ),
                    ));
                }
                sink.begin(order, options.weighted)?;
                let mut p = EntryParser::new(order, dims, sink.value_kind);
                p.has_value = !options.no_value;
                p.has_weight = options.weighted;
                p.zero_based = options.zero_based;
                parser.insert(p)
            }
        };
        if let Err(what) = parser.parse(line, &mut entry) {
            return Err(Error::text(&source.name, lines.number(), what));
        }
        sink.push(&entry)?;
    }
    // A tensor without entries is valid if its sizes are stated.
    if let (Some(dims), None) = (dims, &parser) {
        sink.begin(dims.len(), options.weighted)?;
    }
    Ok(TextResult::default())
}
