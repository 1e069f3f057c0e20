//! Reads a table of attributes as a matrix whose rows are those of a mode of a tensor.
//!
//! Each line has the key of a row and its attributes. A column of categories becomes one column of the matrix for each
//! category, with the value 1 where a row has it (one-hot coding); a column of numbers becomes one column with these values.

use std::collections::HashMap;
use std::path::Path;

use super::bins::Bins;
use super::columns::{check_distinct, load_ids};
use super::derived::{IdRules, list_parts};
use super::entry::{Entry, EntryParser};
use super::fields::{id_text, quote};
use super::header::{FirstLines, HeaderColumns};
use super::options::TextOptions;
use super::records::Records;
use super::sink::Sink;
use super::source::TextSource;
use super::text_result::{SkippedLines, TextResult};
use crate::error::{Error, Result};
use crate::format::coo_file::CooFile;
use crate::format::file_bytes::OpenMode;
use crate::format::names::{Names, find_names_beside};
use crate::progress::Monitor;

/// The rows of the tensor that keys refer to.
struct TensorRows {
    dim: u64,
    /// The ids of the rows; without names, keys are indices.
    names: Option<Names>,
    /// What keys are compared with, for messages.
    described: String,
}

impl TensorRows {
    fn open(file: &Path, mode: usize) -> Result<TensorRows> {
        let tensor = CooFile::open(file, OpenMode::Mapped)?;
        let dims = &tensor.header().dims;
        let Some(&dim) = dims.get(mode) else {
            return Err(Error::file(
                file.display().to_string(),
                format!("has {} modes; there is no mode {}", dims.len(), mode + 1),
            ));
        };
        let path = find_names_beside(file, mode);
        let described = match &path {
            Some(path) => format!("a name in {}", path.display()),
            None => format!("an index of mode {} of {}", mode + 1, file.display()),
        };
        Ok(TensorRows {
            dim,
            names: path.as_deref().map(load_ids).transpose()?,
            described,
        })
    }

    /// Returns the row of a key; `None` if the tensor does not have it.
    fn find(&self, key: &[u8], zero_based: bool) -> std::result::Result<Option<u32>, String> {
        let text = id_text(key).map_err(|what| format!("the key {what}"))?;
        if text.is_empty() {
            return Err("the key is empty".into());
        }
        let row = match &self.names {
            Some(names) => names.find(text).map(u64::from),
            None => {
                let number: u64 = text.parse().map_err(|_| {
                    format!(
                        "the key {} is not an index, but the rows of the tensor have no names",
                        quote(key)
                    )
                })?;
                number.checked_sub(u64::from(!zero_based))
            }
        };
        Ok(row.filter(|&row| row < self.dim).map(|row| row as u32))
    }
}

/// The columns of the matrix that one column of the table becomes.
enum Attribute {
    /// One column for each category.
    Categories(Names),
    /// One column for each bin.
    Bins(Bins),
    /// One column.
    Number,
}

/// A parsed attribute of a row.
enum Cell {
    /// The bytes of a category in its field.
    Category(std::ops::Range<usize>),
    Bin(u64),
    Number(f64),
}

/// The role of each column of the table.
struct TableColumns<'a> {
    key: usize,
    /// The attributes: columns of categories, then those of numbers.
    attributes: Vec<usize>,
    labels: Vec<String>,
    /// Of the columns of categories.
    rules: IdRules<'a>,
    width: usize,
}

impl TableColumns<'_> {
    /// Returns the attributes before the first line.
    fn new_attributes(&self) -> std::result::Result<Vec<Attribute>, String> {
        let attribute = |n: usize| match self.rules.bin.get(n) {
            None => Ok(Attribute::Number),
            Some(None) => Ok(Attribute::Categories(Names::default())),
            Some(Some(rule)) => Bins::new(*rule, None).map(Attribute::Bins),
        };
        (0..self.attributes.len()).map(attribute).collect()
    }
}

/// Reads the matrix into `sink`. Its first mode has the rows of the tensor, its second the attributes.
pub(super) fn read(
    source: &TextSource,
    records: &mut Records,
    first: &FirstLines,
    options: &TextOptions,
    sink: &mut Sink<'_>,
    monitor: &dyn Monitor,
) -> Result<TextResult> {
    let d = &options.delimited;
    check_options(options)?;
    let (mode, file) = d.rows_of.as_ref().expect("the caller checked it");
    let rows = TensorRows::open(file, *mode)?;
    let parser = EntryParser::new(2, None, sink.value_kind);
    let in_first_line = |what: String| Error::text(&source.name, first.line, what);
    let table = table_columns(&HeaderColumns::new(first, d)).map_err(in_first_line)?;
    let mut attributes = table
        .new_attributes()
        .map_err(|what| Error::argument(format!("rows-of: {what}")))?;
    let mut cells: Vec<(usize, Cell)> = Vec::new();
    // The provisional column of the matrix of each category or bin of an attribute.
    let mut columns: Vec<Vec<Option<u32>>> = vec![Vec::new(); attributes.len()];
    let mut provisional: Vec<(usize, u32)> = Vec::new();
    // The last line with an entry in each column of the matrix.
    let mut last_line: Vec<u64> = Vec::new();
    // Line and fingerprint of the attributes of each row.
    let mut seen: HashMap<u32, (u64, u64)> = HashMap::new();
    let hasher = foldhash::fast::RandomState::default();
    let mut skipped = SkippedLines::default();
    let mut first_unknown = None;
    let mut known = 0u64;
    sink.begin(2, false)?;
    while let Some(line) = records.next(source, monitor)? {
        let bad = |what: String| Error::text(&source.name, line, what);
        let record = &records.record;
        let parsed = (|| -> std::result::Result<Option<(u32, bool)>, String> {
            records.check_width(table.width)?;
            let key = record[table.key].trim_ascii();
            let Some(row) = rows.find(key, options.zero_based)? else {
                return Ok(None);
            };
            cells.clear();
            let mut missing = false;
            for (n, attribute) in attributes.iter_mut().enumerate() {
                let field = record[table.attributes[n]].trim_ascii();
                if d.is_missing(field) {
                    missing = true;
                    continue;
                }
                let separator = table.rules.separator.get(n).copied().flatten();
                parse_cells(attribute, &parser, separator, field, |cell| {
                    cells.push((n, cell))
                })
                .map_err(|what| format!("column '{}': {what}", table.labels[n]))?;
            }
            Ok(Some((row, missing)))
        })();
        let (row, missing) = match parsed {
            Ok(Some(found)) => found,
            Ok(None) => {
                skipped.unknown_keys += 1;
                first_unknown.get_or_insert_with(|| (line, quote(record[table.key].trim_ascii())));
                continue;
            }
            Err(message) => {
                skipped.skip(message, &source.name, line, d)?;
                continue;
            }
        };
        known += 1;
        let fields: Vec<&[u8]> = table
            .attributes
            .iter()
            .map(|&c| record[c].trim_ascii())
            .collect();
        let fingerprint = std::hash::BuildHasher::hash_one(&hasher, &fields);
        let &mut (earlier_line, earlier) = seen.entry(row).or_insert((line, fingerprint));
        if earlier_line != line {
            if earlier == fingerprint {
                skipped.repeated += 1;
                continue;
            }
            let key = quote(record[table.key].trim_ascii());
            let fault = format!(
                "the key {key} has other attributes on line {earlier_line}; give each key once"
            );
            skipped.skip(fault, &source.name, line, d)?;
            continue;
        }
        skipped.missing += u64::from(missing);
        for (n, cell) in cells.drain(..) {
            let field = fields[n];
            let (local, value) = match (&mut attributes[n], cell) {
                (Attribute::Categories(names), Cell::Category(range)) => {
                    let text = std::str::from_utf8(&field[range]).unwrap_or_default();
                    let local = names.intern(text);
                    (local.ok_or_else(|| bad("too many categories".into()))?, 1.0)
                }
                (Attribute::Bins(bins), Cell::Bin(key)) => (bins.intern(key), 1.0),
                (_, Cell::Number(value)) => (0, value),
                _ => unreachable!("the cells of an attribute are of its kind"),
            };
            let of_attribute = &mut columns[n];
            if local as usize >= of_attribute.len() {
                of_attribute.resize(local as usize + 1, None);
            }
            let column = *of_attribute[local as usize].get_or_insert_with(|| {
                provisional.push((n, local));
                last_line.push(0);
                provisional.len() as u32 - 1
            });
            // A list may repeat a category.
            if std::mem::replace(&mut last_line[column as usize], line) == line {
                continue;
            }
            let mut entry = Entry::new();
            entry.indices[..2].copy_from_slice(&[row, column]);
            entry.value = value;
            sink.push(&entry)?;
        }
    }
    if let (0, Some((line, key))) = (known, first_unknown) {
        return Err(Error::text(
            &source.name,
            line,
            format!("the key {key}, like all others, is not {}", rows.described),
        ));
    }
    if provisional.is_empty() {
        return Err(skipped.nothing_left(&source.name));
    }
    let (columns, names) = matrix_columns(attributes, &table.labels, &provisional)
        .map_err(|what| Error::file(&source.name, what))?;
    let dims = vec![rows.dim, names.len() as u64];
    let mut all_names = vec![(1, names)];
    if let Some(names) = rows.names {
        all_names.insert(0, (0, names));
    }
    Ok(TextResult {
        names: all_names,
        dims: Some(dims),
        renumbered: vec![(1, columns)],
        skipped,
        ..TextResult::default()
    })
}

/// Returns an error for options that contradict an attribute table.
fn check_options(options: &TextOptions) -> Result<()> {
    let d = &options.delimited;
    let fault = if d.columns.is_empty() {
        "name the key column and the attributes (option columns, such as movieId,genres)"
    } else if d.columns.len() < 2 && d.numeric.is_empty() {
        "name at least one attribute after the key (option columns, such as movieId,genres, or numeric)"
    } else if d.value.is_some() || d.weight.is_some() {
        "categories have the value 1, and columns of numbers are named with the option numeric; \
         value and weight do not apply"
    } else if options.dims.is_some() || !d.names.is_empty() {
        "the tensor determines the rows and the table the columns; dims and names do not apply"
    } else if !d.strings.is_empty() || d.all_strings {
        "keys are what they are in the tensor; strings does not apply"
    } else {
        return Ok(());
    };
    Err(Error::argument(format!("rows-of: {fault}")))
}

/// Finds the columns of the table in its first line.
fn table_columns<'a>(header: &HeaderColumns<'a>) -> std::result::Result<TableColumns<'a>, String> {
    let (width, d) = (header.width(), header.options);
    let find = |names: &[String]| -> std::result::Result<Vec<usize>, String> {
        names.iter().map(|name| header.find(name)).collect()
    };
    let named = find(&d.columns)?;
    let (key, categories) = (named[0], &named[1..]);
    let attributes: Vec<usize> = categories
        .iter()
        .copied()
        .chain(find(&d.numeric)?)
        .collect();
    check_distinct(attributes.iter().copied().chain([key]), width)?;
    Ok(TableColumns {
        key,
        labels: attributes.iter().map(|&c| header.label(c)).collect(),
        rules: IdRules::new(header, categories, d)?,
        attributes,
        width,
    })
}

/// Parses a field of an attribute.
fn parse_cells(
    attribute: &mut Attribute,
    parser: &EntryParser,
    separator: Option<&str>,
    field: &[u8],
    mut add: impl FnMut(Cell),
) -> std::result::Result<(), String> {
    match attribute {
        Attribute::Number => add(Cell::Number(parser.float("value", field)?)),
        Attribute::Bins(bins) => add(Cell::Bin(bins.key(field)?)),
        Attribute::Categories(_) => {
            if let Some(separator) = separator {
                list_parts(field, separator)?.for_each(|range| add(Cell::Category(range)));
                return Ok(());
            }
            if field.is_empty() {
                return Err("the field is empty".into());
            }
            id_text(field)?;
            add(Cell::Category(0..field.len()));
        }
    }
    Ok(())
}

/// Numbers the columns of the matrix: attribute by attribute, categories in the order of their first row, bins in their
/// own. Returns the final column of each provisional one, and the names of all.
fn matrix_columns(
    attributes: Vec<Attribute>,
    labels: &[String],
    provisional: &[(usize, u32)],
) -> std::result::Result<(Vec<u32>, Names), String> {
    let mut all: Vec<String> = Vec::new();
    let mut finals: Vec<Vec<u32>> = Vec::new();
    let prefix = attributes.len() > 1;
    for (attribute, label) in attributes.into_iter().zip(labels) {
        let start = all.len() as u32;
        let full = |name: &str| {
            if prefix {
                format!("{label}={name}")
            } else {
                name.into()
            }
        };
        let (table, names) = match attribute {
            Attribute::Number => {
                all.push(label.clone());
                finals.push(vec![start]);
                continue;
            }
            Attribute::Categories(names) => ((0..names.len() as u32).collect(), names),
            Attribute::Bins(bins) => bins
                .finish()
                .map_err(|what| format!("column '{label}': {what}"))?,
        };
        all.extend(names.iter().map(|(_, name)| full(name)));
        finals.push(table.iter().map(|&local| start + local).collect());
    }
    let table = provisional
        .iter()
        .map(|&(n, local)| finals[n][local as usize]);
    let names = Names::from_names(all);
    match names.first_shared() {
        None => Ok((table.collect(), names)),
        Some(shared) => Err(format!(
            "two columns of the matrix would be called {shared:?}; rename a column of the table"
        )),
    }
}
