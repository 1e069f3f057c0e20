//! Names of the rows of each mode, and finding rows by what people type.

use std::path::{Path, PathBuf};

use super::unknown;
use crate::error::{Error, Result};
use crate::format::{Names, RowMap, find_beside};

/// How many names an error suggests.
const SUGGESTED: usize = 3;

/// How many rows of one name an error lists.
const SHOWN: usize = 5;

/// The names of the rows of each mode, where there are some. A mode without has numbers.
#[derive(Debug, Default, Clone)]
pub struct RowNames {
    modes: Vec<Option<Names>>,
    /// Where names lay beside the first file that had some.
    beside: Vec<Option<PathBuf>>,
}

/// What somebody typed for rows of a mode.
enum Meant {
    /// A row, counted from 0; it is a row of the mode.
    Row(u32),
    All,
    /// Numbers counted from 1.
    Range(u64, u64),
    File(PathBuf),
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

    /// Takes the names that lie beside some files, as importing text leaves them, for modes that have none yet. Files
    /// whose rows have other names than those of the first number them otherwise, and are refused.
    pub fn look_beside(&mut self, files: &[&Path]) -> Result<()> {
        for (mode, slot) in self.modes.iter_mut().enumerate() {
            let found = found_beside(files, mode);
            let names = beside(&found, mode, slot.is_none())?;
            if let Some(names) = names {
                slot.get_or_insert(names);
            }
            if let Some((_, first)) = found.into_iter().next() {
                self.beside[mode].get_or_insert(first);
            }
        }
        Ok(())
    }

    /// Refuses files as [`look_beside`](Self::look_beside) does; names are read only where two files have some.
    pub fn check_beside(order: usize, files: &[&Path]) -> Result<()> {
        (0..order).try_for_each(|mode| beside(&found_beside(files, mode), mode, false).map(drop))
    }

    /// Refuses a matrix whose rows, those of `mode`, have other names beside its file than the mode has.
    pub fn check_matrix(&self, mode: usize, file: &Path) -> Result<()> {
        let Some(found) = Names::beside(file, 0)? else {
            return Ok(());
        };
        let beside = self.beside.get(mode).and_then(Option::as_ref);
        let beside = beside.map(Names::load).transpose()?;
        match beside.as_ref().or(self.of(mode)) {
            Some(known) => require_same(known, &found, (file, 0), mode),
            None => Ok(()),
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

    /// The row, counted from 0, that a text means, of a mode whose rows are these: a name, else a number counted from 1.
    /// `#12` is a number in any case, and `=12` a name. An unknown name is an error that has the nearest ones, and so is
    /// a name that several rows have. The model need not know the row.
    pub fn find(&self, mode: usize, text: &str, rows: &RowMap) -> Result<u32> {
        match self.meant(mode, text, rows)? {
            Meant::Row(row) => Ok(row),
            Meant::All | Meant::Range(..) | Meant::File(_) => Err(Error::argument(format!(
                "{text} means many rows of mode {}; give one, by its name or number",
                mode + 1
            ))),
        }
    }

    /// The rows that a text means, all of which the model must know: one as [`find`](Self::find) does, `all`, those of a
    /// range of numbers such as `10-20` that there are, or `@FILE`, a file with a row in each line. A name comes before
    /// any of these; behind `#` no name is looked for (`#all`, `#10-20`), behind `=` nothing else.
    pub fn select(&self, mode: usize, text: &str, rows: &RowMap) -> Result<Vec<u32>> {
        let found = match self.meant(mode, text, rows)? {
            Meant::Row(row) => {
                check_known(row, mode, rows)?;
                vec![row]
            }
            Meant::All => rows.indices().collect(),
            Meant::Range(first, last) => {
                let within = |&i: &u32| (first..=last).contains(&(u64::from(i) + 1));
                rows.indices().filter(within).collect()
            }
            Meant::File(file) => {
                let check = |row| check_known(row, mode, rows);
                let found = self.lines(mode, &file, rows, check)?;
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

    /// The rows that a file lists, one in each line. They are rows of the mode, but the model need not know them.
    pub fn list(&self, mode: usize, path: &Path, rows: &RowMap) -> Result<Vec<u32>> {
        self.lines(mode, path, rows, |_| Ok(()))
    }

    fn lines(
        &self,
        mode: usize,
        path: &Path,
        rows: &RowMap,
        check: impl Fn(u32) -> Result<()>,
    ) -> Result<Vec<u32>> {
        let text = std::fs::read(path).map_err(|e| Error::cannot_open(path, e))?;
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

    /// What a text means, names first.
    fn meant(&self, mode: usize, text: &str, rows: &RowMap) -> Result<Meant> {
        let n = mode + 1;
        let plain = text.strip_prefix('#');
        if let Some(found) = plain.and_then(|p| numbers(p, mode, rows)) {
            return found;
        }
        let names = self.of(mode);
        let whole = text.strip_prefix('=').into_iter().chain([text]);
        for name in whole {
            match names.map_or(Vec::new(), |names| names.rows(name))[..] {
                [] => {}
                [row] if u64::from(row) < rows.dim() => return Ok(Meant::Row(row)),
                [row] => {
                    return Err(Error::argument(format!(
                        "row {} of mode {n}, called {name:?}, is not in the model, whose mode {n} has {} rows",
                        u64::from(row) + 1,
                        rows.dim()
                    )));
                }
                ref several => return Err(ambiguous(several, name, mode)),
            }
        }
        if let Some(found) = numbers(text, mode, rows) {
            return found;
        }
        if let Some(file) = text.strip_prefix('@') {
            if file.is_empty() {
                return Err(Error::argument(format!(
                    "rows @ of mode {n}: the name of a file follows, as in @rows.txt"
                )));
            }
            return Ok(Meant::File(file.into()));
        }
        // The nearest names are no help with a number.
        let digits = plain.unwrap_or(text).trim();
        let sign = |c: char| c.is_ascii_digit() || "+-.,".contains(c);
        if digits.contains(|c: char| c.is_ascii_digit()) && digits.chars().all(sign) {
            return Err(Error::argument(format!(
                "{text:?} is no row of mode {n}; rows have whole numbers, 1 to {}",
                rows.dim()
            )));
        }
        match names {
            Some(names) => {
                let name = text.strip_prefix('=').unwrap_or(text);
                named(names, name, &format!("row of mode {n}")).map(Meant::Row)
            }
            None => Err(Error::argument(format!(
                "no row of mode {n} is called {text:?}: its rows have no names; give a number from 1, or a file of names"
            ))),
        }
    }
}

/// What a text means that is a number of a row, a range of them or the word for all; nothing if it is none of these.
fn numbers(text: &str, mode: usize, rows: &RowMap) -> Option<Result<Meant>> {
    let text = text.trim();
    if text == "all" {
        return Some(Ok(Meant::All));
    }
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        // What does not fit is too large for any mode.
        digits.then(|| text.parse::<u64>().unwrap_or(u64::MAX))
    };
    let n = mode + 1;
    let zero = |what: &str| {
        Err(Error::argument(format!(
            "{what} {text} of mode {n}: rows are numbered from 1, up to {}",
            rows.dim()
        )))
    };
    if let Some(number) = number(text) {
        return Some(match number {
            0 => zero("row"),
            _ if number > rows.dim() => Err(unknown(rows, mode, text, number)),
            _ => Ok(Meant::Row((number - 1) as u32)),
        });
    }
    let (first, last) = text.split_once('-')?;
    let (first, last) = (number(first)?, number(last)?);
    Some(match first {
        0 => zero("rows"),
        _ if first > last => Err(Error::argument(format!(
            "rows {text} of mode {n}: the smaller number comes first, as in {last}-{first}"
        ))),
        _ => Ok(Meant::Range(first, last)),
    })
}

fn check_known(row: u32, mode: usize, rows: &RowMap) -> Result<()> {
    let number = u64::from(row) + 1;
    match rows.compact(row) {
        Some(_) => Ok(()),
        None => Err(unknown(rows, mode, &number.to_string(), number)),
    }
}

/// Says that several rows have a name.
fn ambiguous(several: &[u32], name: &str, mode: usize) -> Error {
    let numbers = several.iter().take(SHOWN).map(|&row| u64::from(row) + 1);
    let mut list: Vec<String> = numbers.map(|number| number.to_string()).collect();
    if several.len() > SHOWN {
        list.push("...".into());
    }
    Error::argument(format!(
        "{} rows of mode {} are called {name:?}: {}; give the number of one, as in #{}",
        several.len(),
        mode + 1,
        list.join(", "),
        list[0]
    ))
}

/// The files of names of a mode that lie beside some files, each once, with the first file that it lies beside.
fn found_beside<'a>(files: &[&'a Path], mode: usize) -> Vec<(&'a Path, PathBuf)> {
    let mut found: Vec<(&Path, PathBuf)> = Vec::new();
    for &file in files {
        if let Some(names) = find_beside(file, mode)
            && found.iter().all(|(_, before)| *before != names)
        {
            found.push((file, names));
        }
    }
    found
}

/// The names in the first of these files, if they are asked for; those in the others must be the same. None is read
/// for nothing.
fn beside(found: &[(&Path, PathBuf)], mode: usize, asked: bool) -> Result<Option<Names>> {
    let [(_, first), others @ ..] = found else {
        return Ok(None);
    };
    if !asked && others.is_empty() {
        return Ok(None);
    }
    let known = Names::load(first)?;
    for (file, path) in others {
        require_same(&known, &Names::load(path)?, (file, mode), mode)?;
    }
    Ok(Some(known))
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
    let (close, near) = suggestions(names, text);
    let near: Vec<String> = near.iter().map(|name| format!("{name:?}")).collect();
    let near = match &near[..] {
        [] => String::new(),
        [only] if close => format!("; did you mean {only}?"),
        some if close => format!("; did you mean one of {}?", some.join(", ")),
        [only] => format!("; the nearest is {only}"),
        some => format!("; the nearest are {}", some.join(", ")),
    };
    Err(Error::argument(format!(
        "no {what} is called {text:?}{near}"
    )))
}

/// The names nearest to a text, and whether they are close: the same but for case, then those that begin with it or contain
/// it, then those within the fewest edits, of the whole name, of its beginning or of its words in any order. Without one
/// that is close, those that are least far.
fn suggestions<'a>(names: &'a Names, text: &str) -> (bool, Vec<&'a str>) {
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
            None => match edits(&text, &lower).min(word_edits(&plain, &lower)) {
                few if few <= limit => (3, few),
                many => (4, many),
            },
        };
        found.push((key.0, key.1, name));
    }
    // The sort is stable: of equals the first rows.
    found.sort_by_key(|&(kind, distance, _)| (kind, distance));
    found.dedup_by_key(|f| f.2);
    let close = found.first().is_some_and(|f| f.0 < 4);
    found.retain(|f| (f.0 < 4) == close);
    found.truncate(SUGGESTED);
    (close, found.into_iter().map(|(_, _, name)| name).collect())
}

/// How far the words of a text are from those of a name, in whatever order, and one more: for each the edits to the nearest,
/// one where either begins with the other, or all its letters where none is near.
fn word_edits(text: &str, name: &str) -> usize {
    let each = words(text).map(|word| {
        let letters: Vec<char> = word.chars().collect();
        let near = words(name).map(|other| {
            let begins = other.starts_with(word) || (other.len() > 2 && word.starts_with(other));
            match word == other {
                true => 0,
                false if begins => 1,
                false => edits(&letters, other),
            }
        });
        let few = near.filter(|&count| count <= letters.len() / 3);
        few.min().unwrap_or(letters.len())
    });
    each.sum::<usize>() + 1
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let all = text.split(|c: char| !c.is_alphanumeric());
    all.filter(|word| !word.is_empty())
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
