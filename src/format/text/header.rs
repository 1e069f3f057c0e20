//! The header of CSV and TSV files: whether it is one, and the columns that the options mean.

use std::collections::HashMap;

use super::calendar::parse_iso;
use super::fields::{quote, starts_with_ignore_case};
use super::options::DelimitedOptions;
use crate::nearest_name::did_you_mean;

/// Columns that a message lists at most.
const MAX_LISTED: usize = 30;

/// What to do about a first line that is data.
const DATA_REMEDY: &str = "if the first line is data, set --no-header (option no_header)";

/// Returns whether a field is a number or a date, which a name of a column rarely is.
fn is_data(field: &[u8]) -> bool {
    let text = std::str::from_utf8(field.trim_ascii()).unwrap_or_default();
    text.parse::<f64>().is_ok() || parse_iso(text).is_ok()
}

/// Lists columns for a message.
fn list(columns: &[usize], text: impl Fn(usize) -> String) -> String {
    let listed = columns.iter().take(MAX_LISTED);
    let mut listed: Vec<String> = listed.map(|&c| text(c)).collect();
    if columns.len() > MAX_LISTED {
        listed.push(format!("and {} more", columns.len() - MAX_LISTED));
    }
    listed.join(", ")
}

/// Returns a message if the first line is not a header that can be used. `has_quotes` tells whether quotes enclose fields.
pub(super) fn check_header(
    header: &csv::ByteRecord,
    has_quotes: bool,
) -> std::result::Result<(), String> {
    let mut fields = header.iter().map(<[u8]>::trim_ascii);
    let first = fields.clone().next().unwrap_or_default();
    if starts_with_ignore_case(first, b"sep=") && header.len() <= 2 {
        return Err(
            "the first line tells a spreadsheet program the delimiter; delete it (tail -n +2 FILE) and set --delimiter (option \
             delimiter)"
                .into(),
        );
    }
    let is_named = |field: &[u8]| !field.is_empty() && !is_data(field);
    if !fields.clone().any(is_named) {
        return Err(format!(
            "there is no header: no field of the first line is a name; {DATA_REMEDY}; if it is a header, rename a column"
        ));
    }
    let is_quoted =
        |field: &&[u8]| field.len() > 1 && field.starts_with(b"\"") && field.ends_with(b"\"");
    if let Some(field) = fields.find(is_quoted).filter(|_| !has_quotes) {
        return Err(format!(
            "the name {} has quotes, which in TSV are part of the text; if they enclose fields, set --from csv --delimiter $'\\t' \
             (options from and delimiter)",
            quote(field)
        ));
    }
    Ok(())
}

/// The first line of a text, and its first line of data.
pub(super) struct FirstLines {
    /// The number of the first line.
    pub line: u64,
    /// The names of the columns. Without a header, the first line of data.
    pub header: csv::ByteRecord,
    /// The first line of data; empty if there is none.
    pub data: csv::ByteRecord,
}

/// The columns of the first line, which the options name by their header or their number from 1.
pub(super) struct HeaderColumns<'a> {
    pub first: &'a FirstLines,
    pub options: &'a DelimitedOptions,
    /// The columns with each name that the options mention.
    by_name: HashMap<&'a [u8], Vec<usize>, foldhash::fast::RandomState>,
}

impl<'a> HeaderColumns<'a> {
    /// Finds all names that the options mention in one pass over the header.
    pub(super) fn new(first: &'a FirstLines, options: &'a DelimitedOptions) -> Self {
        let mut by_name: HashMap<&[u8], Vec<usize>, _> = HashMap::default();
        if !options.no_header {
            let names = options.column_names();
            by_name.extend(names.map(|name| (name.trim_ascii().as_bytes(), Vec::new())));
        }
        if !by_name.is_empty() {
            for (column, name) in first.header.iter().enumerate() {
                if let Some(found) = by_name.get_mut(name.trim_ascii()) {
                    found.push(column);
                }
            }
        }
        HeaderColumns {
            first,
            options,
            by_name,
        }
    }

    /// Returns the number of columns.
    pub(super) fn width(&self) -> usize {
        self.first.header.len()
    }

    /// Returns the column that `reference`, one of the names in the options, means.
    pub(super) fn find(&self, reference: &str) -> std::result::Result<usize, String> {
        let reference = reference.trim_ascii();
        let named = self.by_name.get(reference.as_bytes());
        let named = named.map_or(&[][..], Vec::as_slice);
        let number = reference.parse::<usize>().ok();
        let numbered = number
            .filter(|n| (1..=self.width()).contains(n))
            .map(|n| n - 1);
        match (named, numbered) {
            (&[column], None) => Ok(column),
            (&[column], Some(_)) => Err(format!(
                "'{reference}' may be the name of column {} or the number of a column; {DATA_REMEDY}; if it is a header, \
                 rename the column",
                column + 1
            )),
            ([], Some(column)) if !self.options.no_header && self.has_data_name(column) => {
                Err(format!(
                    "the name of column {reference} is {}, which looks like data; {DATA_REMEDY}; if it is a header, \
                     give the name instead of the number",
                    quote(self.name(column))
                ))
            }
            ([], Some(column)) => Ok(column),
            ([], None) if self.options.no_header => Err(format!(
                "there is no column {reference}; columns are numbered 1 to {}",
                self.width()
            )),
            ([], None) => Err(self.unknown_column(reference)),
            (several, _) => Err(format!(
                "columns {} are called '{reference}'; give the number of one of them, or rename them",
                list(several, |c| (c + 1).to_string())
            )),
        }
    }

    #[cold]
    fn unknown_column(&self, reference: &str) -> String {
        let header = &self.first.header;
        let names: Vec<_> = header.iter().map(String::from_utf8_lossy).collect();
        let suggestion = did_you_mean(reference, names.iter().map(|n| n.trim()));
        let all: Vec<usize> = (0..names.len()).collect();
        format!(
            "there is no column '{reference}'; the first line has {}{suggestion}",
            list(&all, |c| quote(&header[c]))
        )
    }

    /// Lists the names of columns.
    pub(super) fn list_names(&self, columns: &[usize]) -> String {
        list(columns, |c| quote(self.name(c)))
    }

    /// Returns the name of a column. Without a header it is the first field of the column.
    pub(super) fn name(&self, column: usize) -> &'a [u8] {
        self.first.header[column].trim_ascii()
    }

    /// Returns whether the name of a column looks like data.
    pub(super) fn has_data_name(&self, column: usize) -> bool {
        is_data(self.name(column))
    }

    /// Returns what messages call a column: its name, or its number from 1 without a header.
    pub(super) fn label(&self, column: usize) -> String {
        if self.options.no_header {
            return (column + 1).to_string();
        }
        String::from_utf8_lossy(self.name(column)).into_owned()
    }

    /// Returns a message if one of these columns, which are the index columns by default, has no name.
    pub(super) fn check_named(&self, indices: &[usize]) -> std::result::Result<(), String> {
        let is_unnamed = |c: &&usize| self.name(**c).is_empty();
        let Some(column) = indices.iter().find(is_unnamed) else {
            return Ok(());
        };
        let named = indices.iter().filter(|c| !is_unnamed(c)).copied();
        Err(format!(
            "column {} has no name (numbers of lines, or a delimiter at the end of each line?); state the index columns: {} \
             (option columns)",
            column + 1,
            self.typed_columns(named)
        ))
    }

    /// Returns what the command line calls a column: its name in quotes where the shell needs them; its number if the name
    /// cannot mean it.
    pub(super) fn typed(&self, column: usize) -> String {
        let name = self.label(column);
        let same_name = |field: &&[u8]| field.trim_ascii() == self.name(column);
        let is_number = name
            .parse::<usize>()
            .is_ok_and(|n| (1..=self.width()).contains(&n));
        if name.is_empty()
            || is_number
            || name.contains([',', '\u{fffd}'])
            || self.first.header.iter().filter(same_name).nth(1).is_some()
        {
            return (column + 1).to_string();
        }
        let is_plain = |c: char| c.is_alphanumeric() || "_-.".contains(c);
        if name.chars().all(is_plain) {
            name
        } else {
            format!("'{}'", name.replace('\'', "'\\''"))
        }
    }

    /// Returns the options that name these index columns on the command line.
    pub(super) fn typed_columns(&self, columns: impl Iterator<Item = usize>) -> String {
        let typed: Vec<String> = columns.take(MAX_LISTED).map(|c| self.typed(c)).collect();
        format!("--columns {}", typed.join(","))
    }

    /// Returns advice, for a message, if a name of a column looks like data.
    pub(super) fn data_hint(&self) -> String {
        if (0..self.width()).any(|c| self.has_data_name(c)) {
            format!("; {DATA_REMEDY}")
        } else {
            String::new()
        }
    }

    /// Returns advice, for a message about too few columns, on the delimiter.
    pub(super) fn delimiter_hint(&self) -> String {
        for (delimiter, option) in [
            (b'\t', "--from tsv"),
            (b';', "--delimiter ';'"),
            (b'|', "--delimiter '|'"),
            (b',', "--from csv"),
        ] {
            if self
                .first
                .header
                .iter()
                .any(|field| field.contains(&delimiter))
            {
                return format!(
                    "; is the delimiter right? A name has {}: set {option}",
                    quote(&[delimiter])
                );
            }
        }
        if self.width() == 1 {
            return "; is the delimiter right?".into();
        }
        String::new()
    }
}
