//! Names of the rows of each mode, and selection of rows by user input.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::model_rows::unknown_row;
use super::name_suggestions::find_by_name;
use crate::error::{Error, Result};
use crate::format::{ModelNames, Names, RowMap, SizeLimit, read_whole};

/// The largest number of rows with the same name that an error lists.
const MAX_LISTED_ROWS: usize = 5;

/// The names of the rows of each mode. Rows of a mode without names are shown by their numbers.
#[derive(Debug, Default, Clone)]
pub struct RowNames {
    modes: Vec<Option<Names>>,
    /// The ids of the rows of a mode whose names are titles from a table.
    ids: Vec<Option<Names>>,
}

/// A parsed selection of rows.
enum Selection {
    /// A row of the mode, counted from 0.
    Row(u32),
    All,
    /// The first and the last row, counted from 1.
    Range(u64, u64),
    /// A file that lists rows.
    File(PathBuf),
}

impl RowNames {
    /// Returns an object without names, for `order` modes.
    pub fn new(order: usize) -> RowNames {
        RowNames {
            modes: vec![None; order],
            ids: vec![None; order],
        }
    }

    /// Sets the names of a mode, counted from 0.
    pub fn set(&mut self, mode: usize, names: Names) -> Result<()> {
        let order = self.modes.len();
        match self.modes.get_mut(mode) {
            Some(slot) => *slot = Some(names),
            None => {
                return Err(Error::argument(format!(
                    "names for mode {}; there are {order} modes",
                    mode + 1
                )));
            }
        }
        Ok(())
    }

    /// Sets the titles of the rows of a mode whose present names are ids. Rows can be selected by both.
    pub fn set_titles(&mut self, mode: usize, titles: Names) -> Result<()> {
        let ids = self.modes.get_mut(mode).and_then(Option::take);
        self.set(mode, titles)?;
        self.ids[mode] = ids;
        Ok(())
    }

    /// Loads the names of a model, for modes without names.
    pub fn load_of_model(&mut self, model: &Path) -> Result<()> {
        let found = ModelNames::load(model, self.modes.len(), 0)?;
        for (slot, names) in self.modes.iter_mut().zip(found.modes) {
            if slot.is_none() {
                *slot = names.map(Arc::unwrap_or_clone);
            }
        }
        Ok(())
    }

    /// Loads the names files beside a data file, for modes without names.
    pub fn load_beside(&mut self, coo: &Path) -> Result<()> {
        for (mode, slot) in self.modes.iter_mut().enumerate() {
            if slot.is_none() {
                *slot = Names::load_beside(coo, mode)?;
            }
        }
        Ok(())
    }

    /// Returns the names of a mode, if it has some.
    pub fn of_mode(&self, mode: usize) -> Option<&Names> {
        self.modes.get(mode)?.as_ref()
    }

    /// Returns the name of a row, counted from 0.
    pub fn name(&self, mode: usize, row: u32) -> Option<&str> {
        self.of_mode(mode)?.name(u64::from(row))
    }

    /// Returns the id of a row, counted from 0, in a mode whose names are titles.
    pub fn id(&self, mode: usize, row: u32) -> Option<&str> {
        self.ids.get(mode)?.as_ref()?.name(u64::from(row))
    }

    /// Returns whether the names of a mode are titles of rows that have ids as well.
    pub fn has_ids(&self, mode: usize) -> bool {
        self.ids.get(mode).is_some_and(Option::is_some)
    }

    /// Returns the name of a row, or else its number counted from 1.
    pub fn display_name(&self, mode: usize, row: u32) -> String {
        let number = || (u64::from(row) + 1).to_string();
        self.name(mode, row).map_or_else(number, str::to_string)
    }

    /// Returns the row, counted from 0, that a text selects: by its name, else by its id, else by its number
    /// counted from 1.
    ///
    /// `#12` is always a number and `=12` always a name. The row must be within the size of the mode, but the model need
    /// not have it. The error for an unknown name suggests similar names. A name of several rows is an error.
    pub fn find(&self, mode: usize, text: &str, rows: &RowMap) -> Result<u32> {
        match self.parse_selection(mode, text, rows)? {
            Selection::Row(row) => Ok(row),
            Selection::All | Selection::Range(..) | Selection::File(_) => {
                Err(Error::argument(format!(
                    "{text} means many rows of mode {}; give one, by its name or number",
                    mode + 1
                )))
            }
        }
    }

    /// Returns the rows that a text selects, all of which the model must have.
    ///
    /// The text is one row as in [`find`](Self::find), `all`, a range of numbers such as `10-20` (of which the existing
    /// rows are taken), or `@FILE`, a file with one row per line. A name takes precedence over the other forms. After `#`
    /// the text is never a name (`#all`, `#10-20`); after `=` it is always one.
    pub fn select(&self, mode: usize, text: &str, rows: &RowMap) -> Result<Vec<u32>> {
        let found = match self.parse_selection(mode, text, rows)? {
            Selection::Row(row) => {
                check_in_model(row, mode, rows)?;
                vec![row]
            }
            Selection::All => rows.indices().collect(),
            Selection::Range(first, last) => {
                let within = |&i: &u32| (first..=last).contains(&(u64::from(i) + 1));
                rows.indices().filter(within).collect()
            }
            Selection::File(file) => {
                let check = |row| check_in_model(row, mode, rows);
                let found = self.read_lines(mode, &file, rows, check)?;
                if found.is_empty() {
                    return Err(Error::file(
                        file.display().to_string(),
                        "lists no row; it must have the name or number of a row in each line",
                    ));
                }
                found
            }
        };
        if found.is_empty() {
            return Err(Error::argument(format!(
                "rows {text} of mode {}: the model has none of them; it has {} of 1 to {}",
                mode + 1,
                rows.len(),
                rows.dim()
            )));
        }
        Ok(found)
    }

    /// Returns the rows that a file lists, one per line. They are within the size of the mode, but the model need not
    /// have them.
    pub fn read_list(&self, mode: usize, path: &Path, rows: &RowMap) -> Result<Vec<u32>> {
        self.read_lines(mode, path, rows, |_| Ok(()))
    }

    fn read_lines(
        &self,
        mode: usize,
        path: &Path,
        rows: &RowMap,
        check: impl Fn(u32) -> Result<()>,
    ) -> Result<Vec<u32>> {
        let text = read_whole(path, SizeLimit::Table)?;
        let file = path.display().to_string();
        let Ok(text) = String::from_utf8(text) else {
            return Err(Error::file(
                file,
                "is not UTF-8 text; it must have the name or number of a row in each line",
            ));
        };
        let mut found = Vec::new();
        for (at, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let row = self.find(mode, line, rows);
            let row = row.and_then(|row| check(row).map(|()| row));
            found.push(row.map_err(|e| Error::text(&file, at as u64 + 1, e.to_string()))?);
        }
        Ok(found)
    }

    /// Parses a selection. Names take precedence.
    fn parse_selection(&self, mode: usize, text: &str, rows: &RowMap) -> Result<Selection> {
        let n = mode + 1;
        let after_hash = text.strip_prefix('#');
        if let Some(found) = after_hash.and_then(|p| parse_numbers(p, mode, rows)) {
            return found;
        }
        let names = self.of_mode(mode);
        let ids = self.ids.get(mode).and_then(Option::as_ref);
        let candidates = text.strip_prefix('=').into_iter().chain([text]);
        let candidates = candidates.flat_map(|text| [(names, text), (ids, text)]);
        for (names, name) in candidates {
            match names.map_or(Vec::new(), |names| names.rows(name))[..] {
                [] => {}
                [row] if u64::from(row) < rows.dim() => return Ok(Selection::Row(row)),
                [row] => {
                    return Err(Error::argument(format!(
                        "row {} of mode {n}, called {name:?}, is not in the model, whose mode {n} has {} rows",
                        u64::from(row) + 1,
                        rows.dim()
                    )));
                }
                ref several => return Err(ambiguous_name(several, name, mode)),
            }
        }
        if let Some(found) = parse_numbers(text, mode, rows) {
            return found;
        }
        if let Some(file) = text.strip_prefix('@') {
            if file.is_empty() {
                return Err(Error::argument(format!(
                    "rows @ of mode {n}: the name of a file follows, as in @rows.txt"
                )));
            }
            return Ok(Selection::File(file.into()));
        }
        // Similar names do not help with a malformed number.
        let digits = after_hash.unwrap_or(text).trim();
        let is_numeric = |c: char| c.is_ascii_digit() || "+-.,".contains(c);
        if digits.contains(|c: char| c.is_ascii_digit()) && digits.chars().all(is_numeric) {
            return Err(Error::argument(format!(
                "{text:?} is no row of mode {n}; rows have whole numbers, 1 to {}",
                rows.dim()
            )));
        }
        match names {
            Some(names) => {
                let name = text.strip_prefix('=').unwrap_or(text);
                find_by_name(names, name, &format!("row of mode {n}")).map(Selection::Row)
            }
            None => Err(Error::argument(format!(
                "no row of mode {n} is called {text:?}: its rows have no names; give a number from 1, or a file of names"
            ))),
        }
    }
}

/// Parses the number of a row, a range of numbers, or `all`. Returns `None` for any other text.
fn parse_numbers(text: &str, mode: usize, rows: &RowMap) -> Option<Result<Selection>> {
    let text = text.trim();
    if text == "all" {
        return Some(Ok(Selection::All));
    }
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        // A number that overflows is too large for any mode.
        is_number.then(|| text.parse::<u64>().unwrap_or(u64::MAX))
    };
    let n = mode + 1;
    let zero_error = |kind: &str| {
        Err(Error::argument(format!(
            "{kind} {text} of mode {n}: rows are numbered from 1, up to {}",
            rows.dim()
        )))
    };
    if let Some(number) = number(text) {
        return Some(match number {
            0 => zero_error("row"),
            _ if number > rows.dim() => Err(unknown_row(rows, mode, text, number)),
            _ => Ok(Selection::Row((number - 1) as u32)),
        });
    }
    let (first, last) = text.split_once('-')?;
    let (first, last) = (number(first)?, number(last)?);
    Some(match first {
        0 => zero_error("rows"),
        _ if first > last => Err(Error::argument(format!(
            "rows {text} of mode {n}: the smaller number comes first, as in {last}-{first}"
        ))),
        _ => Ok(Selection::Range(first, last)),
    })
}

/// Returns an error if the model does not have a row.
fn check_in_model(row: u32, mode: usize, rows: &RowMap) -> Result<()> {
    let number = u64::from(row) + 1;
    match rows.compact(row) {
        Some(_) => Ok(()),
        None => Err(unknown_row(rows, mode, &number.to_string(), number)),
    }
}

/// Returns the error for a name that several rows have.
fn ambiguous_name(rows: &[u32], name: &str, mode: usize) -> Error {
    let numbers = rows
        .iter()
        .take(MAX_LISTED_ROWS)
        .map(|&row| u64::from(row) + 1);
    let mut list: Vec<String> = numbers.map(|number| number.to_string()).collect();
    if rows.len() > MAX_LISTED_ROWS {
        list.push("...".into());
    }
    Error::argument(format!(
        "{} rows of mode {} are called {name:?}: {}; give the number of one, as in #{}",
        rows.len(),
        mode + 1,
        list.join(", "),
        list[0]
    ))
}
