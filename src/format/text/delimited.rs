//! Reads CSV and TSV: selected columns, with ids that are numbers or strings.

use super::attributes;
use super::columns::{StringIds, assign_roles, choose_string_ids, entry_parser, string_index};
use super::derived;
use super::entry::{Entry, EntryParser};
use super::header::HeaderColumns;
use super::options::TextOptions;
use super::records::Records;
use super::sink::Sink;
use super::source::TextSource;
use super::text_result::TextResult;
use crate::error::{Error, Result};
use crate::format::header::check_dims;
use crate::progress::Monitor;

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
    let (mut records, first) = Records::open(source, delimiter, d, monitor)?;
    if d.rows_of.is_some() {
        return attributes::read(source, &mut records, &first, options, sink, monitor);
    }
    if d.derives_ids() {
        return derived::read(source, &mut records, &first, options, sink, monitor);
    }
    let roles = assign_roles(&HeaderColumns::new(&first, d), options.no_value)
        .map_err(|what| Error::text(&source.name, first.line, what))?;
    // Names of each mode whose ids are strings.
    let mut string_ids: Vec<Option<StringIds>> = Vec::new();
    let mut parser = EntryParser::new(0, None, sink.value_kind);
    let mut entry = Entry::new();
    while let Some(line) = records.next(source, monitor)? {
        let bad = |what: String| Error::text(&source.name, line, what);
        let record = &records.record;
        records.check_width(roles.width).map_err(bad)?;
        if !sink.has_begun() {
            parser = entry_parser(&roles, options, sink)?;
            string_ids = choose_string_ids(record, &roles, d)?;
            sink.begin(roles.indices.len(), roles.weight.is_some())?;
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
    if !sink.has_begun() && options.dims.is_some() {
        sink.begin(roles.indices.len(), roles.weight.is_some())?;
    }
    let names = string_ids
        .into_iter()
        .enumerate()
        .filter_map(|(n, names)| Some((n, names?.names)))
        .collect();
    Ok(TextResult {
        names,
        columns: roles.labels,
        is_delimited: true,
        ..TextResult::default()
    })
}
