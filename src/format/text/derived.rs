//! Reads CSV and TSV whose ids are derived from fields: bins of time or numbers, and lists of ids. Skips invalid lines on request.
//!
//! Each line is parsed as a whole before any of its ids gets an index, so that a skipped line leaves no trace.

use super::bins::{BinRule, Bins};
use super::columns::{
    ColumnRoles, StringIds, assign_roles, choose_string_ids, entry_parser, string_index,
};
use super::entry::{Entry, EntryParser};
use super::fields::id_text;
use super::header::{FirstLines, HeaderColumns};
use super::options::{DelimitedOptions, TextOptions};
use super::records::Records;
use super::sink::Sink;
use super::source::TextSource;
use super::text_result::{SkippedLines, TextResult};
use crate::error::{Error, Result};
use crate::progress::Monitor;

/// The largest number of entries of a line whose lists are combined. A single list may have any length, since the line grows with it.
const MAX_COMBINATIONS: usize = 1_000_000;

impl SkippedLines {
    /// Counts an invalid line if the options ask for that; otherwise returns an error.
    pub(super) fn skip(
        &mut self,
        fault: String,
        file: &str,
        line: u64,
        d: &DelimitedOptions,
    ) -> Result<()> {
        if !d.skip_bad_lines {
            return Err(Error::text(file, line, fault));
        }
        self.bad += 1;
        self.first_bad.get_or_insert((line, fault));
        Ok(())
    }

    /// Returns the error of a text all of whose lines were skipped.
    pub(super) fn nothing_left(&self, file: &str) -> Error {
        match &self.first_bad {
            Some((line, message)) => Error::text(
                file,
                *line,
                format!("no line is left; the first one skipped: {message}"),
            ),
            None if self.missing > 0 => {
                Error::file(file, "no line is left: a field is missing in each")
            }
            None => Error::file(file, "has no lines besides the header"),
        }
    }
}

/// What the options say about the columns that have special ids, in the order of the modes.
pub(super) struct IdRules<'a> {
    pub bin: Vec<Option<BinRule>>,
    pub separator: Vec<Option<&'a str>>,
}

impl<'a> IdRules<'a> {
    /// `columns` are those that may have such ids.
    pub(super) fn new(
        header: &HeaderColumns<'_>,
        columns: &[usize],
        d: &'a DelimitedOptions,
    ) -> std::result::Result<Self, String> {
        let mut rules = IdRules {
            bin: vec![None; columns.len()],
            separator: vec![None; columns.len()],
        };
        let place = |name: &str, what: &str| {
            let column = header.find(name)?;
            let place = columns.iter().position(|&c| c == column);
            place.ok_or_else(|| format!("column '{name}' cannot {what}: it is not an index column"))
        };
        for binned in &d.bins {
            let n = place(&binned.column, "have bins")?;
            if rules.bin[n].replace(binned.rule).is_some() {
                return Err(format!("column '{}' has bins twice", binned.column));
            }
        }
        for (name, separator) in &d.split {
            let n = place(name, "be split")?;
            if rules.separator[n].replace(separator).is_some() {
                return Err(format!("column '{name}' is split twice"));
            }
            if rules.bin[n].is_some() {
                return Err(format!("column '{name}' cannot have both bins and lists"));
            }
        }
        Ok(rules)
    }
}

/// The ids of one mode.
enum RowIds {
    /// Indices.
    Numbers,
    Strings(StringIds),
    Bins(Bins),
}

/// A parsed id.
enum Key {
    Index(u32),
    Bin(u64),
    /// The bytes of a string id in its field.
    Text(std::ops::Range<usize>),
}

/// Reads all entries into `sink`.
pub(super) fn read(
    source: &TextSource,
    records: &mut Records,
    first: &FirstLines,
    options: &TextOptions,
    sink: &mut Sink<'_>,
    monitor: &dyn Monitor,
) -> Result<TextResult> {
    let d = &options.delimited;
    if !d.numeric.is_empty() {
        return Err(Error::argument(
            "numeric columns are for attribute tables; state whose rows they describe (option rows-of)",
        ));
    }
    let in_first_line = |what: String| Error::text(&source.name, first.line, what);
    let header = HeaderColumns::new(first, d);
    let roles = assign_roles(&header, options.no_value).map_err(in_first_line)?;
    let rules = IdRules::new(&header, &roles.indices, d).map_err(in_first_line)?;
    let mut parser = EntryParser::new(0, None, sink.value_kind);
    let mut modes: Vec<RowIds> = Vec::new();
    let mut keys: Vec<Vec<Key>> = Vec::new();
    let mut indices: Vec<Vec<u32>> = Vec::new();
    let mut distinct = std::collections::HashSet::new();
    let mut entry = Entry::new();
    let mut skipped = SkippedLines::default();
    let mut any_entry = false;
    while let Some(line) = records.next(source, monitor)? {
        let bad = |what: String| Error::text(&source.name, line, what);
        let record = &records.record;
        if let Err(message) = records.check_width(roles.width) {
            skipped.skip(message, &source.name, line, d)?;
            continue;
        }
        let used = roles
            .indices
            .iter()
            .chain(&roles.value)
            .chain(&roles.weight);
        if used
            .into_iter()
            .any(|&c| d.is_missing(record[c].trim_ascii()))
        {
            skipped.missing += 1;
            continue;
        }
        if !sink.has_begun() {
            // The first line decides which ids are strings; an empty id would not tell.
            let is_empty = |&c: &usize| record[c].trim_ascii().is_empty();
            if let Some(n) = roles.indices.iter().position(is_empty) {
                let what = match rules.separator[n] {
                    Some(_) => ": the list is empty",
                    None => " is empty",
                };
                let fault = format!("column '{}'{what}", roles.labels[n]);
                skipped.skip(fault, &source.name, line, d)?;
                continue;
            }
            parser = entry_parser(&roles, options, sink)?;
            modes = row_ids(record, &roles, &rules, d)?;
            keys.resize_with(modes.len(), Vec::new);
            indices.resize_with(modes.len(), Vec::new);
            sink.begin(modes.len(), roles.weight.is_some())?;
        }
        let parsed = (|| -> std::result::Result<(), String> {
            for (n, &column) in roles.indices.iter().enumerate() {
                keys[n].clear();
                let field = record[column].trim_ascii();
                let label = &roles.labels[n];
                let separator = rules.separator[n];
                parse_ids(
                    &mut modes[n],
                    &parser,
                    n,
                    label,
                    separator,
                    field,
                    &mut keys[n],
                )?;
            }
            check_combinations(&keys)?;
            if let Some(column) = roles.value {
                entry.value = parser.float("value", record[column].trim_ascii())?;
            }
            if let Some(column) = roles.weight {
                entry.weight = parser.weight(record[column].trim_ascii())?;
            }
            Ok(())
        })();
        if let Err(fault) = parsed {
            skipped.skip(fault, &source.name, line, d)?;
            continue;
        }
        for (n, &column) in roles.indices.iter().enumerate() {
            indices[n].clear();
            distinct.clear();
            let field = record[column].trim_ascii();
            for key in &keys[n] {
                let index = match (&mut modes[n], key) {
                    (RowIds::Bins(bins), Key::Bin(key)) => bins.intern(*key),
                    (RowIds::Strings(names), Key::Text(range)) => {
                        string_index(names, n, &field[range.clone()], parser.dims[n])
                            .map_err(bad)?
                    }
                    (_, Key::Index(index)) => *index,
                    _ => unreachable!("the keys of a mode are of its kind"),
                };
                // A list may repeat an id.
                if keys[n].len() == 1 || distinct.insert(index) {
                    indices[n].push(index);
                }
            }
        }
        push_product(&indices, &mut entry, sink, monitor)?;
        any_entry = true;
    }
    if !any_entry && skipped != SkippedLines::default() {
        return Err(skipped.nothing_left(&source.name));
    }
    finish(source, options, modes, roles.labels, skipped)
}

/// Refuses a line whose lists multiply without limit.
fn check_combinations(keys: &[Vec<Key>]) -> std::result::Result<(), String> {
    let lists: Vec<usize> = keys.iter().map(Vec::len).filter(|&len| len > 1).collect();
    let combinations = lists
        .iter()
        .try_fold(1usize, |all, &len| all.checked_mul(len));
    if lists.len() < 2 || combinations.is_some_and(|all| all <= MAX_COMBINATIONS) {
        return Ok(());
    }
    let lengths: Vec<String> = lists.iter().map(usize::to_string).collect();
    Err(format!(
        "its lists of {} ids have more than {MAX_COMBINATIONS} combinations, each of which would be an entry; split fewer \
         columns, or shorten the lists",
        lengths.join(" and ")
    ))
}

/// Decides what the ids of each mode are, from the first line.
fn row_ids(
    first: &csv::ByteRecord,
    roles: &ColumnRoles,
    rules: &IdRules<'_>,
    d: &DelimitedOptions,
) -> Result<Vec<RowIds>> {
    let strings = choose_string_ids(first, roles, d)?;
    let mut modes = Vec::with_capacity(strings.len());
    for (n, names) in strings.into_iter().enumerate() {
        let given = d.names.iter().find(|(mode, _)| *mode == n);
        modes.push(match (rules.bin[n], names) {
            (Some(rule), ids) => {
                let names = ids.map(|ids| ids.names);
                let given = names.zip(given.map(|(_, path)| path.clone()));
                let bins = Bins::new(rule, given);
                RowIds::Bins(bins.map_err(|what| {
                    Error::argument(format!("column '{}': {what}", roles.labels[n]))
                })?)
            }
            (None, Some(names)) => RowIds::Strings(names),
            // The first list would not tell whether all ids are numbers.
            (None, None) if rules.separator[n].is_some() => RowIds::Strings(StringIds::default()),
            (None, None) => RowIds::Numbers,
        });
    }
    Ok(modes)
}

/// Parses the ids in a field of mode `n` and appends them to `keys`.
fn parse_ids(
    mode: &mut RowIds,
    parser: &EntryParser,
    n: usize,
    label: &str,
    separator: Option<&str>,
    field: &[u8],
    keys: &mut Vec<Key>,
) -> std::result::Result<(), String> {
    let mut add = |range: std::ops::Range<usize>| -> std::result::Result<(), String> {
        let part = &field[range.clone()];
        keys.push(match mode {
            RowIds::Numbers => Key::Index(parser.index(n, part)?),
            RowIds::Bins(bins) => {
                let key = bins.key(part);
                Key::Bin(key.map_err(|what| format!("column '{label}': {what}"))?)
            }
            RowIds::Strings(_) if part.is_empty() => {
                return Err(format!("column '{label}' is empty"));
            }
            RowIds::Strings(_) => {
                id_text(part).map_err(|what| format!("column '{label}': {what}"))?;
                Key::Text(range)
            }
        });
        Ok(())
    };
    match separator {
        None => add(0..field.len()),
        Some(separator) => {
            let parts = list_parts(field, separator);
            parts
                .map_err(|what| format!("column '{label}': {what}"))?
                .try_for_each(add)
        }
    }
}

/// Returns the ranges of the parts of a list that are not blank, without blanks around them. A list without any is an
/// error.
pub(super) fn list_parts<'a>(
    field: &'a [u8],
    separator: &'a str,
) -> std::result::Result<impl Iterator<Item = std::ops::Range<usize>> + 'a, String> {
    let text = id_text(field)?;
    let parts = move || {
        text.split(separator)
            .map(str::trim_ascii)
            .filter(|part| !part.is_empty())
            .map(move |part| {
                let start = part.as_ptr() as usize - text.as_ptr() as usize;
                start..start + part.len()
            })
    };
    if parts().next().is_none() {
        return Err("the list is empty".into());
    }
    Ok(parts())
}

/// Appends an entry for each combination of the indices of the modes.
fn push_product(
    indices: &[Vec<u32>],
    entry: &mut Entry,
    sink: &mut Sink<'_>,
    monitor: &dyn Monitor,
) -> Result<()> {
    let mut at = [0; crate::format::header::MAX_ORDER];
    let mut count = 0u64;
    loop {
        // One line may have a million combinations.
        count += 1;
        if count.is_multiple_of(1 << 16) && monitor.cancelled() {
            return Err(Error::Cancelled);
        }
        for (n, list) in indices.iter().enumerate() {
            entry.indices[n] = list[at[n]];
        }
        sink.push(entry)?;
        // Advances the last mode first, like an odometer.
        let Some(n) = (0..indices.len())
            .rev()
            .find(|&n| at[n] + 1 < indices[n].len())
        else {
            return Ok(());
        };
        at[n] += 1;
        at[n + 1..].fill(0);
    }
}

/// Collects the names, and the bins that are known now.
fn finish(
    source: &TextSource,
    options: &TextOptions,
    modes: Vec<RowIds>,
    labels: Vec<String>,
    skipped: SkippedLines,
) -> Result<TextResult> {
    let mut result = TextResult {
        skipped,
        ..TextResult::default()
    };
    for (n, ids) in modes.into_iter().enumerate() {
        match ids {
            RowIds::Numbers => {}
            RowIds::Strings(ids) => result.names.push((n, ids.names)),
            RowIds::Bins(bins) => {
                let wrong = |what: String| {
                    Error::file(&source.name, format!("column '{}': {what}", labels[n]))
                };
                let (table, names) = bins.finish().map_err(wrong)?;
                if let Some(dims) = &options.dims
                    && names.len() as u64 > dims[n]
                {
                    return Err(wrong(format!(
                        "{} bins, but the stated size of mode {} is {}",
                        names.len(),
                        n + 1,
                        dims[n]
                    )));
                }
                result.renumbered.push((n, table));
                result.names.push((n, names));
            }
        }
    }
    result.columns = labels;
    Ok(result)
}
