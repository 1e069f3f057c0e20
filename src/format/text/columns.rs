//! The columns of CSV and TSV files: their roles, and the indices of ids.

use std::path::Path;

use super::entry::EntryParser;
use super::fields::{id_text, quote};
use super::header::HeaderColumns;
use super::options::{DelimitedOptions, TextOptions};
use super::sink::Sink;
use super::value_column::{NO_VALUE_REMEDY, choose_value_column};
use crate::error::{Error, Result};
use crate::format::header::{MAX_DIM, MAX_ORDER, MIN_ORDER};
use crate::format::names::Names;

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

/// Assigns a role to each column from the first lines.
pub(super) fn assign_roles(
    columns: &HeaderColumns<'_>,
    no_value: bool,
) -> std::result::Result<ColumnRoles, String> {
    let (width, d) = (columns.width(), columns.options);
    let find = |reference: &String| columns.find(reference);
    let weight = d.weight.as_ref().map(find).transpose()?;
    let stated = d.value.as_ref().map(find).transpose()?;
    if stated.is_some() && no_value {
        return Err("a value column is named, but there are no values (option no-value)".into());
    }
    let named: std::result::Result<Vec<usize>, String> = d.columns.iter().map(find).collect();
    let named = named?;
    let others = usize::from(!no_value) + usize::from(weight.is_some());
    let order = if named.is_empty() {
        width.saturating_sub(others)
    } else {
        named.len()
    };
    if !(MIN_ORDER..=MAX_ORDER).contains(&order) {
        let hint = if width == MIN_ORDER && !no_value {
            format!("; {NO_VALUE_REMEDY}")
        } else if width < MIN_ORDER + others {
            columns.delimiter_hint()
        } else {
            String::new()
        };
        return Err(format!(
            "{order} index columns; {MIN_ORDER} to {MAX_ORDER} are needed (choose them with the option columns){hint}"
        ));
    }
    check_distinct(named.iter().copied().chain(stated).chain(weight), width)?;
    let value = match stated {
        Some(column) => Some(column),
        None if no_value => None,
        None if d.no_header => {
            let is_other = |c: &usize| Some(*c) != weight && !named.contains(c);
            let last = (0..width).rfind(is_other);
            Some(last.ok_or(format!(
                "no column is left for the values; {NO_VALUE_REMEDY}"
            ))?)
        }
        None => Some(choose_value_column(columns, &named, weight)?),
    };
    let is_index = |c: &usize| Some(*c) != value && Some(*c) != weight;
    let indices: Vec<usize> = if named.is_empty() {
        (0..width).filter(is_index).collect()
    } else {
        named
    };
    if d.columns.is_empty() && !d.no_header {
        columns.check_named(&indices)?;
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
    let labels = indices.iter().map(|&c| columns.label(c)).collect();
    Ok(ColumnRoles {
        labels,
        indices,
        value,
        weight,
        strings,
        width,
    })
}

/// The ids of a mode that are strings.
#[derive(Debug, Default)]
pub(super) struct StringIds {
    pub names: Names,
    /// Number of the first rows, whose names were known before the text was read. 0: the text alone determines the rows.
    known: u64,
    /// Whether `#50` means row 50. It is a name if known names look like this.
    takes_numbers: bool,
}

/// Decides from the first entry which modes have string ids: those that the caller declares, those with known names,
/// and those whose first id is not a number.
pub(super) fn choose_string_ids(
    first: &csv::ByteRecord,
    roles: &ColumnRoles,
    d: &DelimitedOptions,
) -> Result<Vec<Option<StringIds>>> {
    let mut string_ids = Vec::with_capacity(roles.indices.len());
    for (n, &column) in roles.indices.iter().enumerate() {
        let given = d.names.iter().find(|(mode, _)| *mode == n);
        let known = d.known_names.iter().find(|(mode, _)| *mode == n);
        let id = first[column].trim_ascii();
        let digits = id.strip_prefix(b"-").unwrap_or(id);
        let numeric = !id.is_empty() && digits.iter().all(u8::is_ascii_digit);
        let names = match (given, known) {
            (Some((_, path)), _) => Some(load_ids(path)?),
            (None, Some((_, names))) => Some(Names::clone(names)),
            (None, None) => None,
        };
        string_ids.push(match names {
            Some(names) => {
                let has_numbers = names.iter().any(|(_, name)| row_number(name).is_some());
                Some(StringIds {
                    known: names.len() as u64,
                    takes_numbers: !has_numbers,
                    names,
                })
            }
            None if d.all_strings || roles.strings.contains(&column) || !numeric => {
                Some(StringIds::default())
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

/// Returns the digits of `#50`.
fn row_number(text: &str) -> Option<&str> {
    let digits = text.strip_prefix('#')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    is_number.then_some(digits)
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

/// Returns the index of a string id, adding a name if it is new. In a mode with known names `#50` is row 50, and `=#50` the name
/// `#50`, unless known names look like this.
pub(super) fn string_index(
    ids: &mut StringIds,
    n: usize,
    field: &[u8],
    dim: u64,
) -> std::result::Result<u32, String> {
    if field.is_empty() {
        return Err(format!("the id of mode {} is missing", n + 1));
    }
    let mut text = id_text(field).map_err(|what| format!("mode {}: the id {what}", n + 1))?;
    if ids.known > 0 && ids.takes_numbers {
        if let Some(digits) = row_number(text) {
            return match digits.parse::<u64>() {
                Ok(row) if (1..=ids.known).contains(&row) => Ok((row - 1) as u32),
                _ => Err(format!(
                    "{} is no row of mode {}, which has rows #1 to #{}; write ={text} if this is a name",
                    quote(field),
                    n + 1,
                    ids.known
                )),
            };
        }
        if text.starts_with("=#") {
            text = &text[1..];
        }
    }
    let names = &mut ids.names;
    if let Some(shared) = names.shared(text) {
        return Err(format!(
            "rows {} of mode {} have the name {}",
            shared,
            n + 1,
            quote(field)
        ));
    }
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
