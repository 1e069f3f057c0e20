//! Names of the rows of each mode, and finding rows by what people type.

use std::path::Path;

use crate::error::{Error, Result};
use crate::format::{MAX_DIM, Names, RowMap};

/// How many names an error suggests.
const SUGGESTED: usize = 3;

/// The names of the rows of each mode, where there are some. A mode without has numbers.
#[derive(Debug, Default, Clone)]
pub struct RowNames {
    modes: Vec<Option<Names>>,
    /// Those that lay beside the first file that had some.
    beside: Vec<Option<Names>>,
}

impl RowNames {
    /// None yet, for `order` modes.
    pub fn new(order: usize) -> RowNames {
        RowNames {
            modes: vec![None; order],
            beside: vec![None; order],
        }
    }

    /// Gives a mode (counted from 0) its names.
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

    /// Takes the names that lie beside a file, as importing text leaves them, for modes that have none yet. Files whose
    /// rows have other names number them otherwise, and are refused.
    pub fn look_beside(&mut self, file: &Path) -> Result<()> {
        for (mode, slot) in self.modes.iter_mut().enumerate() {
            let Some(found) = Names::beside(file, mode)? else {
                continue;
            };
            let Some(known) = &self.beside[mode] else {
                slot.get_or_insert_with(|| found.clone());
                self.beside[mode] = Some(found);
                continue;
            };
            require_same(known, &found, (file, mode), mode)?;
        }
        Ok(())
    }

    /// Refuses a matrix whose rows, those of `mode`, have other names beside its file than the mode has.
    pub fn check_matrix(&self, mode: usize, file: &Path) -> Result<()> {
        let beside = self.beside.get(mode).and_then(Option::as_ref);
        match (beside.or(self.of(mode)), Names::beside(file, 0)?) {
            (Some(known), Some(found)) => require_same(known, &found, (file, 0), mode),
            _ => Ok(()),
        }
    }

    /// The names of a mode.
    pub fn of(&self, mode: usize) -> Option<&Names> {
        self.modes.get(mode)?.as_ref()
    }

    /// The name of a row, counted from 0.
    pub fn name(&self, mode: usize, row: u32) -> Option<&str> {
        self.of(mode)?.name(u64::from(row))
    }

    /// A row for people: its name, or its number counted from 1.
    pub fn label(&self, mode: usize, row: u32) -> String {
        let number = || (u64::from(row) + 1).to_string();
        self.name(mode, row).map_or_else(number, str::to_string)
    }

    /// The row, counted from 0, that a text means: a name, else a number counted from 1. `#12` is a number in any case.
    /// An unknown name is an error that has the nearest ones.
    pub fn find(&self, mode: usize, text: &str) -> Result<u32> {
        let names = self.of(mode);
        if let Some(row) = names.and_then(|n| n.find(text)) {
            return Ok(row);
        }
        let digits = text.strip_prefix('#').unwrap_or(text).trim();
        if let Ok(number) = digits.parse::<u64>() {
            return match number {
                1..=MAX_DIM => Ok((number - 1) as u32),
                _ => Err(Error::argument(format!(
                    "row {number} of mode {}; rows are 1 to {MAX_DIM}",
                    mode + 1
                ))),
            };
        }
        match names {
            Some(names) => named(names, text, &format!("row of mode {}", mode + 1)),
            None => Err(Error::argument(format!(
                "no row of mode {} is called {text:?}: its rows have no names; give a number from 1, or a file of names",
                mode + 1
            ))),
        }
    }

    /// The rows that a text means, of those that the map has: one as [`find`](Self::find) does, `all`, a range of numbers
    /// such as `10-20`, or `@FILE`, a file with a row in each line. A name comes before any of these.
    pub fn select(&self, mode: usize, text: &str, map: &RowMap) -> Result<Vec<u32>> {
        if self.of(mode).is_some_and(|n| n.find(text).is_some()) {
            return Ok(vec![self.find(mode, text)?]);
        }
        if text == "all" {
            return Ok(map.indices().collect());
        }
        if let Some(file) = text.strip_prefix('@') {
            return self.list(mode, Path::new(file));
        }
        let range = text.split_once('-');
        let range = range.and_then(|(a, b)| Some((a.parse::<u64>().ok()?, b.parse::<u64>().ok()?)));
        let Some((first, last)) = range else {
            return Ok(vec![self.find(mode, text)?]);
        };
        let within = |&i: &u32| (first..=last).contains(&(u64::from(i) + 1));
        let rows: Vec<u32> = map.indices().filter(within).collect();
        if first == 0 || rows.is_empty() {
            return Err(Error::argument(format!(
                "rows {text} of mode {}: the model has none of them; it has {} of 1 to {}",
                mode + 1,
                map.len(),
                map.dim()
            )));
        }
        Ok(rows)
    }

    /// The rows that a file lists, one in each line.
    pub fn list(&self, mode: usize, path: &Path) -> Result<Vec<u32>> {
        let text = std::fs::read(path).map_err(|e| Error::opening(path, e))?;
        let file = path.display().to_string();
        let Ok(text) = String::from_utf8(text) else {
            return Err(Error::file(
                file,
                "is not UTF-8 text; it must have the name or number of a row in each line",
            ));
        };
        let mut rows = Vec::new();
        for (at, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let row = self
                .find(mode, line)
                .map_err(|e| Error::text(&file, at as u64 + 1, e.to_string()));
            rows.push(row?);
        }
        Ok(rows)
    }
}

/// Refuses a file one of whose modes has other names for the rows of mode `mode` of the model.
fn require_same(
    known: &Names,
    found: &Names,
    (file, of_file): (&Path, usize),
    mode: usize,
) -> Result<()> {
    let other = |&(row, name): &(u32, &str)| {
        let before = known.name(u64::from(row));
        before.is_some_and(|before| before != name)
    };
    let Some((row, name)) = found.iter().find(other) else {
        return Ok(());
    };
    let n = of_file + 1;
    let whose = match mode == of_file {
        true => String::new(),
        false => format!(" for mode {}", mode + 1),
    };
    Err(Error::file(
        file.display().to_string(),
        format!(
            "its row {} of mode {n} is called {name:?}, but {:?} where the model has its names{whose}: rows are numbered \
             otherwise; convert it with --names {n}:FILE, FILE being the names of the model",
            u64::from(row) + 1,
            known.name(u64::from(row)).unwrap_or_default(),
        ),
    ))
}

/// The row with a name, or an error that suggests others. `what` is what has no such name.
pub(crate) fn named(names: &Names, text: &str, what: &str) -> Result<u32> {
    if let Some(row) = names.find(text) {
        return Ok(row);
    }
    let near: Vec<String> = suggestions(names, text)
        .iter()
        .map(|name| format!("{name:?}"))
        .collect();
    let near = match &near[..] {
        [] => String::new(),
        [only] => format!("; did you mean {only}?"),
        some => format!("; did you mean one of {}?", some.join(", ")),
    };
    Err(Error::argument(format!(
        "no {what} is called {text:?}{near}"
    )))
}

/// The names nearest to a text: the same but for case, then those that begin with it or contain it, then those within the
/// fewest edits, of the whole name or of its beginning.
fn suggestions<'a>(names: &'a Names, text: &str) -> Vec<&'a str> {
    let text: Vec<char> = text.to_lowercase().chars().collect();
    let plain: String = text.iter().collect();
    let limit = text.len().div_ceil(3);
    let mut found: Vec<(usize, usize, &str)> = Vec::new();
    for (_, name) in names.iter() {
        let lower = name.to_lowercase();
        let key = match lower.find(&plain) {
            _ if plain.is_empty() => continue,
            Some(_) if lower == plain => (0, 0),
            Some(0) => (1, lower.len()),
            Some(_) => (2, lower.len()),
            None => (3, edits(&text, &lower)),
        };
        if key.0 < 3 || key.1 <= limit {
            found.push((key.0, key.1, name));
        }
    }
    // The sort is stable: of equals the first rows.
    found.sort_by_key(|&(kind, distance, _)| (kind, distance));
    found.dedup_by_key(|f| f.2);
    found.truncate(SUGGESTED);
    found.into_iter().map(|(_, _, name)| name).collect()
}

/// The number of letters to insert, leave out, change or swap with the next to get from `text` to `name`, or one more than
/// that to get to the beginning of a longer name.
fn edits(text: &[char], name: &str) -> usize {
    let name: Vec<char> = name.chars().collect();
    let mut before = Vec::new();
    let mut last: Vec<usize> = (0..=name.len()).collect();
    for (i, &c) in text.iter().enumerate() {
        let mut line = vec![i + 1];
        for (j, &d) in name.iter().enumerate() {
            let mut least = (last[j] + usize::from(c != d))
                .min(last[j + 1] + 1)
                .min(line[j] + 1);
            if i > 0 && j > 0 && c == name[j - 1] && d == text[i - 1] {
                least = least.min(before[j - 1] + 1);
            }
            line.push(least);
        }
        before = std::mem::replace(&mut last, line);
    }
    let beginning = last.iter().min().map_or(usize::MAX, |m| m + 1);
    last[name.len()].min(beginning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        let of = |a: &str, b: &str| edits(&a.chars().collect::<Vec<_>>(), b);
        for (a, b, count) in [
            ("kitten", "sitting", 3),
            ("", "abc", 1),
            ("abc", "", 3),
            ("toy stroy", "toy story", 1),
            ("toy stroy", "toy story (1995)", 2),
            ("same", "same", 0),
        ] {
            assert_eq!(of(a, b), count, "{a} {b}");
        }
    }
}
