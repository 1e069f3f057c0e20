//! The columns of CSV and TSV files: their roles, and the indices of ids.

use std::collections::HashMap;
use std::path::Path;

use super::entry::EntryParser;
use super::fields::quote;
use super::options::{DelimitedOptions, TextOptions};
use super::sink::Sink;
use crate::error::{Error, Result};
use crate::format::header::{MAX_DIM, MAX_ORDER, MIN_ORDER};
use crate::format::names::Names;
use crate::nearest_name::did_you_mean;

/// The role of each column.
pub(super) struct ColumnRoles {
    pub indices: Vec<usize>,
    pub value: Option<usize>,
    pub weight: Option<usize>,
    /// Index columns whose ids the caller declared as strings.
    pub strings: Vec<usize>,
    /// Number of columns of a line.
    pub width: usize,
    /// What messages call the index columns.
    pub labels: Vec<String>,
}

/// Returns the parser of the numbers of an entry. Its sizes are those of the options.
pub(super) fn entry_parser(
    roles: &ColumnRoles,
    options: &TextOptions,
    sink: &Sink<'_>,
) -> Result<EntryParser> {
    let order = roles.indices.len();
    if let Some(dims) = &options.dims
        && dims.len() != order
    {
        return Err(Error::argument(format!(
            "{} sizes for {order} index columns",
            dims.len()
        )));
    }
    let mut parser = EntryParser::new(order, options.dims.as_deref(), sink.value_kind);
    parser.zero_based = options.zero_based;
    parser.string_id_hint =
        "if ids are strings or larger numbers, name their column with the option strings";
    Ok(parser)
}

/// Columns that a message lists at most.
const MAX_LISTED: usize = 30;

/// The columns of the first line, which the options name by their header or their number from 1.
pub(super) struct HeaderColumns<'a> {
    pub header: &'a csv::ByteRecord,
    options: &'a DelimitedOptions,
    /// The first column with each name that the options mention; `None` if no column has it.
    by_name: HashMap<&'a [u8], Option<usize>, foldhash::fast::RandomState>,
}

impl<'a> HeaderColumns<'a> {
    /// Finds all names that the options mention in one pass over the header.
    pub(super) fn new(header: &'a csv::ByteRecord, options: &'a DelimitedOptions) -> Self {
        let mut by_name = HashMap::default();
        if !options.no_header {
            by_name.extend(options.column_names().map(|name| (name.as_bytes(), None)));
        }
        if !by_name.is_empty() {
            for (column, name) in header.iter().enumerate() {
                if let Some(first) = by_name.get_mut(name.trim_ascii()) {
                    first.get_or_insert(column);
                }
            }
        }
        HeaderColumns {
            header,
            options,
            by_name,
        }
    }

    /// Returns the column that `reference`, one of the names in the options, means.
    pub(super) fn find(&self, reference: &str) -> std::result::Result<usize, String> {
        if let Some(&Some(column)) = self.by_name.get(reference.as_bytes()) {
            return Ok(column);
        }
        let width = self.header.len();
        match reference.parse::<usize>() {
            Ok(number) if (1..=width).contains(&number) => Ok(number - 1),
            _ if self.options.no_header => Err(format!(
                "there is no column {reference}; columns are numbered 1 to {width}"
            )),
            _ => Err(self.unknown_column(reference)),
        }
    }

    #[cold]
    fn unknown_column(&self, reference: &str) -> String {
        let names: Vec<_> = self.header.iter().map(String::from_utf8_lossy).collect();
        let suggestion = did_you_mean(reference, names.iter().map(|n| n.trim()));
        let listed = self.header.iter().take(MAX_LISTED).map(quote);
        let mut listed: Vec<String> = listed.collect();
        if names.len() > MAX_LISTED {
            listed.push(format!("and {} more", names.len() - MAX_LISTED));
        }
        format!(
            "there is no column '{reference}'; the first line has {}{suggestion}",
            listed.join(", ")
        )
    }

    /// Returns what messages call a column: its header, or its number from 1 without a header.
    pub(super) fn label(&self, column: usize) -> String {
        if self.options.no_header {
            return (column + 1).to_string();
        }
        String::from_utf8_lossy(self.header[column].trim_ascii()).into_owned()
    }
}

/// Returns a message if two of these columns are the same. `width` is the number of columns of a line.
pub(super) fn check_distinct(
    columns: impl IntoIterator<Item = usize>,
    width: usize,
) -> std::result::Result<(), String> {
    let mut is_used = vec![false; width];
    for column in columns {
        if std::mem::replace(&mut is_used[column], true) {
            return Err(format!("column {} is used twice", column + 1));
        }
    }
    Ok(())
}

/// Assigns a role to each column from the first line.
pub(super) fn assign_roles(
    columns: &HeaderColumns<'_>,
    no_value: bool,
) -> std::result::Result<ColumnRoles, String> {
    let (header, d) = (columns.header, columns.options);
    let find = |reference: &str| columns.find(reference);
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
    check_distinct(
        indices.iter().copied().chain(value).chain(weight),
        header.len(),
    )?;
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
    let labels = indices.iter().map(|&c| columns.label(c)).collect();
    Ok(ColumnRoles {
        labels,
        indices,
        value,
        weight,
        strings,
        width: header.len(),
    })
}

/// Decides from the first entry which modes have string ids: those that the caller declares, those with given names,
/// and those whose first id is not a number.
pub(super) fn choose_string_ids(
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
            Some((_, path)) => Some(load_ids(path)?),
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

/// Loads names that serve as ids, so that no two rows may share one.
pub(super) fn load_ids(path: &Path) -> Result<Names> {
    let names = Names::load(path)?;
    match names.first_shared() {
        None => Ok(names),
        Some(shared) => Err(Error::file(
            path.display().to_string(),
            format!("two rows are called {shared:?}, so ids cannot be told apart by name"),
        )),
    }
}

/// Returns the index of a string id, adding a name if it is new.
pub(super) fn string_index(
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
