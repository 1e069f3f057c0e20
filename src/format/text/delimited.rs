//! Reads CSV and TSV: selected columns, with ids that are numbers or strings.

use super::attributes;
use super::columns::{
    ColumnRoles, HeaderColumns, assign_roles, choose_string_ids, entry_parser, string_index,
};
use super::derived;
use super::entry::{Entry, EntryParser};
use super::options::TextOptions;
use super::records::Records;
use super::sink::Sink;
use super::source::TextSource;
use super::text_result::TextResult;
use crate::error::{Error, Result};
use crate::format::header::check_dims;
use crate::format::names::Names;
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
    let mut records = Records::new(source, delimiter, d);
    if d.rows_of.is_some() {
        return attributes::read(source, &mut records, options, sink, monitor);
    }
    if d.derives_ids() {
        return derived::read(source, &mut records, options, sink, monitor);
    }
    let mut roles: Option<ColumnRoles> = None;
    // Names of each mode whose ids are strings.
    let mut string_ids: Vec<Option<Names>> = Vec::new();
    let mut parser = EntryParser::new(0, None, sink.value_kind);
    let mut entry = Entry::new();
    let mut first_line = true;
    while let Some(line) = records.next(source, monitor)? {
        let bad = |what: String| Error::text(&source.name, line, what);
        let record = &records.record;
        let roles = match &roles {
            Some(r) => r,
            None => {
                let columns = HeaderColumns::new(record, d);
                roles.insert(assign_roles(&columns, options.no_value).map_err(bad)?)
            }
        };
        if std::mem::take(&mut first_line) && !d.no_header {
            continue;
        }
        records.check_width(roles.width).map_err(bad)?;
        if !sink.has_begun() {
            parser = entry_parser(roles, options, sink)?;
            string_ids = choose_string_ids(record, roles, d)?;
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
    if let (false, Some(roles), Some(_)) = (sink.has_begun(), &roles, &options.dims) {
        sink.begin(roles.indices.len(), roles.weight.is_some())?;
    }
    let names = string_ids
        .into_iter()
        .enumerate()
        .filter_map(|(n, names)| Some((n, names?)))
        .collect();
    Ok(TextResult {
        names,
        columns: roles.map_or(Vec::new(), |roles| roles.labels),
        ..TextResult::default()
    })
}
