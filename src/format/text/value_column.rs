//! Chooses the value column of CSV and TSV files if the options do not name it.

use super::fields::{looks_missing, quote};
use super::header::HeaderColumns;
use super::options::DelimitedOptions;

/// Names of value columns, in upper or lower case.
const VALUE_NAMES: [&[u8]; 5] = [b"rating", b"value", b"stars", b"score", b"count"];

/// Characters of numbers that are not written as this program reads them: decimal commas, separators of thousands, units.
const NUMBER_CHARACTERS: &str =
    "0123456789.,'\u{2019} \u{a0}\u{202f}\u{2009}+-\u{2212}%$\u{20ac}\u{a3}\u{a5}";

/// What to do if there are no values.
pub(super) const NO_VALUE_REMEDY: &str =
    "if there are no values, set --no-value (option no_value): every value is then 1";

/// Returns whether the column of this field, on the first line of data, may have numbers.
fn may_be_number(field: &[u8], d: &DelimitedOptions) -> bool {
    let field = field.trim_ascii();
    let Ok(text) = std::str::from_utf8(field) else {
        return false;
    };
    // A minus elsewhere is part of a date.
    let has_minus = |text: &str| text.chars().skip(1).any(|c| c == '-');
    let is_number_like = text.chars().all(|c| NUMBER_CHARACTERS.contains(c))
        && text.contains(|c: char| c.is_ascii_digit())
        && !has_minus(text);
    let is_missing = text.is_empty() || looks_missing(text) || d.is_missing(field);
    is_missing || is_number_like || text.parse::<f64>().is_ok()
}

/// Returns the value column of a text with a header. `indices` and `weight` are columns that the options name.
///
/// It is the only column that the options leave; else the one with a name of [`VALUE_NAMES`]; else the only column that may have
/// numbers.
pub(super) fn choose_value_column(
    columns: &HeaderColumns<'_>,
    indices: &[usize],
    weight: Option<usize>,
) -> Result<usize, String> {
    let d = columns.options;
    let mut is_open = vec![true; columns.width()];
    indices
        .iter()
        .chain(&weight)
        .for_each(|&c| is_open[c] = false);
    if indices.is_empty() {
        // Columns whose ids the options describe are index columns.
        for name in d.id_column_names() {
            is_open[columns.find(name)?] = false;
        }
    }
    // A column without a name has numbers of lines, or nothing behind the last delimiter.
    let open: Vec<usize> = (0..columns.width())
        .filter(|&c| is_open[c] && !columns.name(c).is_empty())
        .collect();
    let has_value_name = |c: usize| {
        VALUE_NAMES
            .iter()
            .any(|name| name.eq_ignore_ascii_case(columns.name(c)))
    };
    let named: Vec<usize> = open
        .iter()
        .copied()
        .filter(|&c| has_value_name(c))
        .collect();
    let data = &columns.first.data;
    let is_number = |c: usize| data.get(c).is_none_or(|field| may_be_number(field, d));
    let numbers: Vec<usize> = open.iter().copied().filter(|&c| is_number(c)).collect();
    let found = match (&open[..], &named[..], &numbers[..]) {
        (&[column], ..) | (_, &[column], _) | (.., &[column]) => column,
        ([], ..) => {
            return Err(format!(
                "no column is left for the values; {NO_VALUE_REMEDY}"
            ));
        }
        // Without a line of data it does not matter.
        (&[.., last], ..) if data.is_empty() => last,
        (.., []) => {
            return Err(format!(
                "no column has numbers, which could be the values; {NO_VALUE_REMEDY}{}",
                columns.data_hint()
            ));
        }
        (.., numbers) => {
            return Err(ambiguous(
                columns,
                &named,
                numbers,
                indices.is_empty(),
                weight,
            ));
        }
    };
    if columns.has_data_name(found) {
        return Err(format!(
            "the name of the value column is {}, which looks like data{}; if it is a header, name the column: --value {} \
             (option value)",
            quote(columns.name(found)),
            columns.data_hint(),
            columns.typed(found)
        ));
    }
    Ok(found)
}

/// Returns the message for several columns that may have the values, with options that choose one.
#[cold]
fn ambiguous(
    columns: &HeaderColumns<'_>,
    named: &[usize],
    numbers: &[usize],
    needs_indices: bool,
    weight: Option<usize>,
) -> String {
    let (candidates, why) = match named {
        [] => (
            numbers,
            " have numbers, and none is called rating, value, stars, score or count",
        ),
        _ => (named, " may have them"),
    };
    // For the example: times are rarely values.
    let is_small = |c: &&usize| {
        let field = columns.first.data.get(**c).unwrap_or_default();
        let text = std::str::from_utf8(field);
        text.is_ok_and(|text| text.trim().parse().is_ok_and(|x: f64| x.abs() < 1e8))
    };
    let value = candidates.iter().rfind(is_small).or(candidates.last());
    let value = value.copied().unwrap_or_default();
    let mut options = format!("--value {}", columns.typed(value));
    if needs_indices {
        let is_index = |&c: &usize| {
            c != value && Some(c) != weight && !named.contains(&c) && !columns.name(c).is_empty()
        };
        let indices = columns.typed_columns((0..columns.width()).filter(is_index));
        options = format!("{indices} {options}");
    }
    format!(
        "which column has the values? {}{why}; name it, such as {options} (options columns and value){}",
        columns.list_names(candidates),
        columns.data_hint()
    )
}
