//! Reads CSV and TSV: selected columns, with ids that are numbers or strings.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use super::entry::{Entry, EntryParser};
use super::fields::quote;
use super::options::{DelimitedOptions, TextOptions};
use super::sink::Sink;
use super::source::TextSource;
use super::text_result::TextResult;
use crate::error::{Error, Result};
use crate::format::header::{MAX_DIM, MAX_ORDER, MIN_ORDER, check_dims};
use crate::format::names::Names;
use crate::progress::{Monitor, report_progress};

/// The role of each column.
struct ColumnRoles {
    indices: Vec<usize>,
    value: Option<usize>,
    weight: Option<usize>,
    /// Index columns whose ids the caller declared as strings.
    strings: Vec<usize>,
    width: usize,
}

/// Reads all entries into `sink`.
pub(super) fn read(
    source: &mut TextSource,
    delimiter: u8,
    options: &TextOptions,
    sink: &mut Sink<'_>,
    monitor: &dyn Monitor,
) -> Result<TextResult> {
    let d = &options.delimited;
    if options.weighted {
        return Err(Error::argument(
            "for CSV and TSV name the weight column with the option weight",
        ));
    }
    if let Some(dims) = &options.dims {
        check_dims(dims)?;
    }
    let since_record = Rc::new(Cell::new(0));
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(d.delimiter.unwrap_or(delimiter))
        // Tab-separated files have no quoting convention; a lone quote there is a quote.
        .quoting(delimiter != b'\t')
        .has_headers(false)
        .flexible(true)
        .buffer_capacity(1 << 18)
        .from_reader(LimitedReader {
            inner: source.take_reader(),
            since: since_record.clone(),
        });
    let mut record = csv::ByteRecord::new();
    let mut roles: Option<ColumnRoles> = None;
    // Names of each mode whose ids are strings.
    let mut string_ids: Vec<Option<Names>> = Vec::new();
    let mut parser = EntryParser::new(0, None, sink.value_kind);
    let mut entry = Entry::new();
    let mut first_line = true;
    let mut records = 0u64;
    loop {
        let next_line = reader.position().line();
        let more = reader.read_byte_record(&mut record);
        since_record.set(0);
        let line = record.position().map_or(1, csv::Position::line);
        match more {
            Ok(true) => {}
            Ok(false) => break,
            Err(e) => {
                return Err(match e.into_kind() {
                    csv::ErrorKind::Io(e) => source.read_error(e, next_line.saturating_sub(1)),
                    other => Error::text(&source.name, next_line, format!("{other:?}")),
                });
            }
        }
        records += 1;
        if records.is_multiple_of(1 << 16) {
            let (done, total) = source.progress();
            report_progress(monitor, "reading", done, total)?;
        }
        let bad = |what: String| Error::text(&source.name, line, what);
        // The reader skips empty lines but not blank ones.
        if record.len() == 1 && record[0].trim_ascii().is_empty() {
            continue;
        }
        let roles = match &roles {
            Some(r) => r,
            None => roles.insert(assign_roles(&record, d, options.no_value).map_err(bad)?),
        };
        if std::mem::take(&mut first_line) && !d.no_header {
            continue;
        }
        if record.len() != roles.width {
            let quote = if record.iter().any(|f| f.contains(&b'\n')) {
                "; is a quote on this line not closed?"
            } else {
                ""
            };
            return Err(bad(format!(
                "{} columns, but the first line has {}{quote}",
                record.len(),
                roles.width
            )));
        }
        if !sink.has_begun() {
            let order = roles.indices.len();
            if let Some(dims) = &options.dims
                && dims.len() != order
            {
                return Err(Error::argument(format!(
                    "{} sizes for {order} index columns",
                    dims.len()
                )));
            }
            parser = EntryParser::new(order, options.dims.as_deref(), sink.value_kind);
            parser.zero_based = options.zero_based;
            parser.string_id_hint =
                "if ids are strings or larger numbers, name their column with the option strings";
            string_ids = choose_string_ids(&record, roles, d)?;
            sink.begin(order, roles.weight.is_some())?;
        }
        for (n, &column) in roles.indices.iter().enumerate() {
            let field = record[column].trim_ascii();
            entry.indices[n] = match &mut string_ids[n] {
                None => parser.index(n, field).map_err(bad)?,
                Some(names) => string_index(names, n, field, parser.dims[n]).map_err(bad)?,
            };
        }
        if let Some(column) = roles.value {
            entry.value = parser
                .float("value", record[column].trim_ascii())
                .map_err(bad)?;
        }
        if let Some(column) = roles.weight {
            entry.weight = parser.weight(record[column].trim_ascii()).map_err(bad)?;
        }
        sink.push(&entry)?;
    }
    if let (false, Some(roles), Some(_)) = (sink.has_begun(), &roles, &options.dims) {
        sink.begin(roles.indices.len(), roles.weight.is_some())?;
    }
    let names = string_ids
        .into_iter()
        .enumerate()
        .filter_map(|(n, names)| Some((n, names?)))
        .collect();
    Ok(TextResult { names, dims: None })
}

/// Longest record in bytes. A longer one is an unclosed quote; the limit bounds the memory.
const MAX_RECORD_LEN: u64 = 16 << 20;

/// Returns an error when a record is too long.
struct LimitedReader {
    inner: Box<dyn Read>,
    since: Rc<Cell<u64>>,
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
        Ok(n)
    }
}

/// Assigns a role to each column from the first line.
fn assign_roles(
    header: &csv::ByteRecord,
    d: &DelimitedOptions,
    no_value: bool,
) -> std::result::Result<ColumnRoles, String> {
    let find = |reference: &str| -> std::result::Result<usize, String> {
        if !d.no_header
            && let Some(at) = header
                .iter()
                .position(|f| f.trim_ascii() == reference.as_bytes())
        {
            return Ok(at);
        }
        match reference.parse::<usize>() {
            Ok(number) if (1..=header.len()).contains(&number) => Ok(number - 1),
            _ => {
                let known: Vec<String> = header.iter().map(quote).collect();
                Err(if d.no_header {
                    format!(
                        "there is no column {reference}; columns are numbered 1 to {}",
                        header.len()
                    )
                } else {
                    format!(
                        "there is no column '{reference}'; the first line has {}",
                        known.join(", ")
                    )
                })
            }
        }
    };
    let weight = d.weight.as_deref().map(find).transpose()?;
    let value = match (&d.value, no_value) {
        (Some(_), true) => {
            return Err(
                "a value column is named, but there are no values (option no-value)".into(),
            );
        }
        (Some(name), false) => Some(find(name)?),
        (None, true) => None,
        (None, false) => {
            // The last column that is not the weight.
            let last = header.len().checked_sub(1);
            if last.is_some() && last == weight {
                header.len().checked_sub(2)
            } else {
                last
            }
        }
    };
    let indices: Vec<usize> = if d.columns.is_empty() {
        (0..header.len())
            .filter(|&c| Some(c) != value && Some(c) != weight)
            .collect()
    } else {
        d.columns
            .iter()
            .map(|c| find(c))
            .collect::<std::result::Result<_, _>>()?
    };
    let all: Vec<usize> = indices.iter().copied().chain(value).chain(weight).collect();
    if let Some(twice) = (1..all.len())
        .find(|&i| all[..i].contains(&all[i]))
        .map(|i| all[i])
    {
        return Err(format!("column {} is used twice", twice + 1));
    }
    if !(MIN_ORDER..=MAX_ORDER).contains(&indices.len()) {
        let delimiter_hint = if header.len() == 1 {
            "; is the delimiter right?"
        } else {
            ""
        };
        return Err(format!(
            "{} index columns; {MIN_ORDER} to {MAX_ORDER} are needed (choose them with the option columns){delimiter_hint}",
            indices.len()
        ));
    }
    let mut strings = Vec::new();
    for s in &d.strings {
        let column = find(s)?;
        if !indices.contains(&column) {
            return Err(format!(
                "column '{s}' cannot have string ids: it is not an index column"
            ));
        }
        strings.push(column);
    }
    Ok(ColumnRoles {
        indices,
        value,
        weight,
        strings,
        width: header.len(),
    })
}

/// Decides from the first entry which modes have string ids: those that the caller declares, those with given names,
/// and those whose first id is not a number.
fn choose_string_ids(
    first: &csv::ByteRecord,
    roles: &ColumnRoles,
    d: &DelimitedOptions,
) -> Result<Vec<Option<Names>>> {
    let mut string_ids = Vec::with_capacity(roles.indices.len());
    for (n, &column) in roles.indices.iter().enumerate() {
        let given = d.names.iter().find(|(mode, _)| *mode == n);
        let id = first[column].trim_ascii();
        let digits = id.strip_prefix(b"-").unwrap_or(id);
        let numeric = !id.is_empty() && digits.iter().all(u8::is_ascii_digit);
        string_ids.push(match given {
            Some((_, path)) => {
                let names = Names::load(path)?;
                if let Some(shared) = names.first_shared() {
                    return Err(Error::file(
                        path.display().to_string(),
                        format!(
                            "two rows are called {shared:?}, so ids cannot be told apart by name"
                        ),
                    ));
                }
                Some(names)
            }
            None if d.all_strings || roles.strings.contains(&column) || !numeric => {
                Some(Names::default())
            }
            None => None,
        });
    }
    if let Some((mode, _)) = d.names.iter().find(|(mode, _)| *mode >= string_ids.len()) {
        return Err(Error::argument(format!(
            "names for mode {}, but there are {} modes",
            mode + 1,
            string_ids.len()
        )));
    }
    Ok(string_ids)
}

/// Returns the index of a string id, adding a name if it is new.
fn string_index(
    names: &mut Names,
    n: usize,
    field: &[u8],
    dim: u64,
) -> std::result::Result<u32, String> {
    if field.is_empty() {
        return Err(format!("the id of mode {} is missing", n + 1));
    }
    let Ok(text) = std::str::from_utf8(field) else {
        return Err(format!(
            "id {} of mode {} is not UTF-8 text",
            quote(field),
            n + 1
        ));
    };
    let index = names
        .intern(text)
        .ok_or_else(|| format!("mode {} has more than {MAX_DIM} different ids", n + 1))?;
    if u64::from(index) >= dim {
        return Err(format!(
            "id {} is number {} of mode {}, beyond its size {dim}",
            quote(field),
            u64::from(index) + 1,
            n + 1
        ));
    }
    Ok(index)
}
