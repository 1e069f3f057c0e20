//! Matches the rows of files by their names.
//!
//! The same row has different numbers in files that were converted one by one. A [`RowMatcher`] has the names of the rows of a tensor
//! or of a model. [`RowMatcher::match_file`] compares them with those of another file and returns a [`RowMatch`], which gives the
//! entries of that file the row numbers of the tensor. Rows that only the file has are appended to the mode. The columns of a matrix
//! of a model are matched in the same way.
//!
//! - Both have names: rows are matched by name. Without a common name that is an error.
//! - One has names: rows are matched by number, with a warning.
//! - None has names: rows are matched by number.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::coo_file::CooFile;
use super::coo_view::CooView;
use super::names::{ModeNames, ModelNames, Names};
use crate::error::{Error, Result};
use crate::try_alloc::{try_reserve, try_with_capacity};

/// The rows of the modes of a tensor or a model, and the columns of matrices of a model.
#[derive(Debug, Clone)]
pub struct RowMatcher {
    /// What messages call the tensor or model.
    source: String,
    modes: Vec<Mode>,
    /// Number of modes of the tensor; columns of matrices follow.
    order: usize,
    /// Whether the sizes of the tensor are stated, so that rows by number are within them.
    has_stated_sizes: bool,
}

#[derive(Debug, Clone)]
struct Mode {
    /// What messages call the mode, and its rows.
    label: String,
    rows: &'static str,
    names: Option<Arc<Names>>,
    own_size: u64,
    /// Number of rows that files without names can mean. Rows appended by name follow.
    numbered: u64,
    size: u64,
    /// Whether all rows of a file may be new.
    takes_new_rows: bool,
}

impl Mode {
    fn new(label: String, rows: &'static str, names: Option<Arc<Names>>, size: u64) -> Mode {
        Mode {
            label,
            rows,
            names,
            own_size: size,
            numbered: size,
            size,
            takes_new_rows: false,
        }
    }
}

/// What the entries of a file are to the tensor or model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchedRole {
    /// A coupled matrix or graph: rows that only it has become rows of the model.
    Coupled,
    /// Other entries: rows that only they have are unseen rows.
    Entries,
}

/// The rows of a file, by the numbers of the tensor or model it was matched to.
#[derive(Debug, Clone, Default)]
pub struct RowMatch {
    modes: Vec<MatchedMode>,
    /// The sizes of the modes of the tensor or model.
    sizes: Vec<u64>,
    /// What a user should check.
    pub warnings: Vec<String>,
    /// How many rows only one of the files has.
    pub notes: Vec<String>,
}

/// A mode of a file.
#[derive(Debug, Clone, Default)]
struct MatchedMode {
    /// The mode of the tensor or model.
    mode: Option<usize>,
    /// The rows of the entries, if they have other numbers than in the file.
    column: Option<Vec<u32>>,
    is_by_name: bool,
    /// Whether the tensor has no row of the file, but must have one.
    is_all_new: bool,
    /// The size of the mode of the tensor without appended rows.
    own_size: u64,
    /// By how much rows beyond those of the tensor were moved behind appended ones.
    shift: u64,
}

impl RowMatch {
    /// Takes the sizes of the modes after other files were matched, whose rows may have been appended.
    pub fn update_sizes(&mut self, matcher: &RowMatcher) {
        self.sizes = matcher.sizes();
    }

    /// Returns a view of the same entries with the row numbers and sizes of the tensor or model.
    pub fn apply<'a>(&'a self, view: &CooView<'a>) -> CooView<'a> {
        let mut matched = view.clone();
        for (n, of_file) in self.modes.iter().enumerate() {
            let Some(mode) = of_file.mode else { continue };
            if let Some(column) = &of_file.column {
                matched.columns[n] = column;
            }
            let dim = &mut matched.dims[n];
            *dim = match of_file.is_by_name || *dim == of_file.own_size {
                true => self.sizes[mode],
                false => *dim + of_file.shift,
            };
        }
        matched
    }
}

impl RowMatcher {
    /// Makes a matcher for a tensor or model with modes of these sizes.
    pub fn new(source: impl Into<String>, sizes: &[u64], names: ModeNames) -> RowMatcher {
        let mut names = names.into_iter();
        let mode = |(n, &size)| {
            Mode::new(
                format!("mode {}", n + 1),
                "rows",
                names.next().flatten(),
                size,
            )
        };
        RowMatcher {
            source: source.into(),
            modes: sizes.iter().enumerate().map(mode).collect(),
            order: sizes.len(),
            has_stated_sizes: false,
        }
    }

    /// Makes a matcher for the rows of a tensor with these names.
    pub fn of_tensor(view: &CooView<'_>, names: ModeNames) -> RowMatcher {
        RowMatcher {
            has_stated_sizes: !view.dims_inferred(),
            ..RowMatcher::new(view.name(), view.dims(), names)
        }
    }

    /// Makes a matcher for a model with modes and matrices of these sizes.
    pub fn of_model(
        source: impl Into<String>,
        sizes: &[u64],
        widths: &[u64],
        names: ModelNames,
    ) -> RowMatcher {
        let mut matcher = RowMatcher::new(source, sizes, names.modes);
        for (m, (&width, names)) in widths.iter().zip(names.columns).enumerate() {
            let label = format!("matrix {}", m + 1);
            matcher
                .modes
                .push(Mode::new(label, "columns", names, width));
        }
        matcher
    }

    /// Returns the number by which modes of files are matched with the columns of a matrix (counted from 0) of a model.
    pub fn columns_of(&self, matrix: usize) -> usize {
        self.order + matrix
    }

    /// Accepts files of which no row of this mode is known.
    pub fn take_new_rows(&mut self, mode: usize) {
        self.modes[mode].takes_new_rows = true;
    }

    /// Returns the number of modes of the tensor or model.
    pub fn order(&self) -> usize {
        self.order
    }

    /// Returns the size of each mode, with the rows that were appended.
    fn sizes(&self) -> Vec<u64> {
        self.modes.iter().map(|mode| mode.size).collect()
    }

    /// Returns an error if a row has different names here and in `other`: both are used by number. Returns what to check where only
    /// one of them has names.
    pub fn require_same_rows(&self, other: &RowMatcher) -> Result<Vec<String>> {
        let mut warnings = Vec::new();
        for (a_mode, b_mode) in self.modes.iter().zip(&other.modes) {
            let (label, rows) = (&a_mode.label, a_mode.rows);
            let (a, b) = match (&a_mode.names, &b_mode.names) {
                (Some(a), Some(b)) => (a, b),
                (None, None) => continue,
                (named, _) => {
                    let (named, unnamed) = match named {
                        Some(_) => (&self.source, &other.source),
                        None => (&other.source, &self.source),
                    };
                    warnings.push(format!(
                        "{label} has names of {rows} in {named}, but not in {unnamed}: they are compared by number"
                    ));
                    continue;
                }
            };
            let differs = |(row, name): &(u32, &str)| {
                b.name(u64::from(*row)).is_some_and(|other| other != *name)
            };
            if let Some((row, name)) = a.iter().find(differs) {
                return Err(Error::file(
                    &self.source,
                    format!(
                        "number {} of the {rows} of {label} is called {name:?}, but {:?} in {}: {rows} are numbered differently; \
                         convert the data with --names, the names of the model",
                        u64::from(row) + 1,
                        b.name(u64::from(row)).unwrap_or_default(),
                        other.source,
                    ),
                ));
            }
        }
        Ok(warnings)
    }

    /// Returns a view of the tensor with the rows that were appended by name.
    pub fn tensor<'a>(&self, view: CooView<'a>) -> CooView<'a> {
        let mut tensor = view;
        for (dim, mode) in tensor.dims.iter_mut().zip(&self.modes) {
            if mode.size > mode.numbered {
                *dim = mode.size;
            }
        }
        tensor
    }

    /// Returns the names of each mode of the tensor or model, with those of the rows that were appended.
    pub fn names(&self) -> ModeNames {
        let modes = self.modes[..self.order].iter();
        modes.map(|mode| mode.names.clone()).collect()
    }

    /// Returns the names of a mode, or of columns of a matrix.
    pub fn names_of(&self, mode: usize) -> Option<&Arc<Names>> {
        self.modes.get(mode)?.names.as_ref()
    }

    /// Returns the names that ids of a text mean, by its modes. `modes` has the mode of the tensor of each of them.
    pub fn known_names(&self, modes: &[Option<usize>]) -> Vec<(usize, Arc<Names>)> {
        let known = modes.iter().enumerate().filter_map(|(n, mode)| {
            let mode = self.modes.get((*mode)?)?;
            let mut names = mode.names.clone()?;
            // New ids follow all rows, also those without names.
            if (names.len() as u64) < mode.size {
                Arc::make_mut(&mut names).extend_to(mode.size);
            }
            Some((n, names))
        });
        known.collect()
    }

    /// Returns a number that is different if other rows were appended.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = DefaultHasher::new();
        for mode in &self.modes {
            mode.size.hash(&mut hash);
            for row in mode.own_size..mode.size {
                mode.names
                    .as_ref()
                    .and_then(|names| names.name(row))
                    .hash(&mut hash);
            }
        }
        hash.finish()
    }

    /// Matches the rows of a file. `modes` is as for [`match_rows`](Self::match_rows). Ids of a text that are not the numbers of rows
    /// need names to compare them with, or names that give them numbers.
    pub fn match_file(
        &mut self,
        file: &CooFile,
        modes: &[Option<usize>],
        role: MatchedRole,
    ) -> Result<RowMatch> {
        let names = file.names()?;
        for (n, mode) in modes.iter().enumerate() {
            let reference = mode.and_then(|mode| self.modes.get(mode));
            let is_unnamed = reference.is_some_and(|reference| reference.names.is_none());
            let is_named = names.get(n).is_some_and(Option::is_some);
            if is_unnamed && is_named && file.has_text_ids() && !file.has_given_names(n) {
                let n = n + 1;
                return Err(Error::file(
                    file.name(),
                    format!(
                        "the ids of mode {n} are strings, and {} has no names to compare them with: convert both to .coo files, or give \
                         the ids numbers by a table (--names {n}:FILE, option names)",
                        self.source
                    ),
                ));
            }
        }
        let view = file.view();
        let found = self.match_rows(&view, names, modes, role)?;
        // The names of a text begin with those that were known before.
        for (n, names) in names.iter().enumerate().filter(|_| file.has_text_ids()) {
            let of_file = &found.modes[n];
            if let (Some(names), Some(mode), true) = (names, of_file.mode, of_file.is_all_new) {
                let first = view.column(n).first().map_or(0, |&row| u64::from(row));
                return Err(self.no_common_name(&view, names.name(first), mode));
            }
        }
        Ok(found)
    }

    /// Matches the rows of a file with these names. `modes` has the mode of the tensor whose rows a mode of the file has; `None` for
    /// columns that belong to the file alone.
    pub fn match_rows(
        &mut self,
        view: &CooView<'_>,
        names: &[Option<Arc<Names>>],
        modes: &[Option<usize>],
        role: MatchedRole,
    ) -> Result<RowMatch> {
        let mut found = RowMatch::default();
        for n in 0..view.order() {
            found.modes.push(MatchedMode::default());
            let mode = modes.get(n).copied().flatten();
            let Some(mode) = mode.filter(|&mode| mode < self.modes.len()) else {
                continue;
            };
            found.modes[n].mode = Some(mode);
            found.modes[n].own_size = self.modes[mode].own_size;
            let own = names.get(n).and_then(Option::as_ref);
            match (own, &self.modes[mode].names) {
                (Some(own), Some(_)) => self.match_names(view, n, own, mode, role, &mut found)?,
                (None, None) => self.match_numbers(view, n, mode, role, &mut found)?,
                (own, _) => {
                    let Mode { label, rows, .. } = &self.modes[mode];
                    let (named, other) = match own {
                        Some(_) => (view.name(), self.source.as_str()),
                        None => (self.source.as_str(), view.name()),
                    };
                    found.warnings.push(format!(
                        "{label} has names of {rows} in {named}, but not in {other}: {rows} of {} are matched by number",
                        view.name()
                    ));
                    self.match_numbers(view, n, mode, role, &mut found)?;
                }
            }
        }
        found.update_sizes(self);
        Ok(found)
    }

    /// Matches the rows of mode `n` of a file by their numbers. Rows beyond those of the tensor come behind rows that were appended
    /// by name.
    fn match_numbers(
        &mut self,
        view: &CooView<'_>,
        n: usize,
        mode: usize,
        role: MatchedRole,
        found: &mut RowMatch,
    ) -> Result<()> {
        let target = &mut self.modes[mode];
        let Mode { label, rows, .. } = &*target;
        let extent = view
            .column(n)
            .iter()
            .max()
            .map_or(0, |&row| u64::from(row) + 1);
        if extent <= target.numbered {
            return Ok(());
        }
        let file = view.name();
        if role == MatchedRole::Entries {
            found.notes.push(format!(
                "{file}: has {rows} of {label} beyond the {} of {}, up to {extent}: they are unseen",
                target.numbered, self.source
            ));
        } else if target.size > target.numbered {
            return Err(Error::file(
                file,
                format!(
                    "has no names, and {rows} of {label} up to {extent}; {} has {}, behind which others were added by name: convert the \
                     file with names, or give it before those with names",
                    self.source, target.numbered
                ),
            ));
        } else if target.names.is_some() {
            if self.has_stated_sizes {
                return Err(Error::file(
                    file,
                    format!(
                        "has no names, and {rows} of {label} up to {extent}; {} states {}",
                        self.source, target.numbered
                    ),
                ));
            }
            (target.numbered, target.size) = (extent, extent);
            return Ok(());
        }
        let shift = target.size - target.numbered;
        if shift > 0 {
            let moved = |&row: &u32| match u64::from(row) < target.numbered {
                true => Some(row),
                false => u32::try_from(u64::from(row) + shift).ok(),
            };
            let mut column: Vec<u32> = try_with_capacity(view.len(), "indices of matched rows")?;
            for index in view.column(n) {
                column.push(moved(index).ok_or_else(|| {
                    Error::file(
                        file,
                        format!("{rows} of {label} up to {extent} are too many"),
                    )
                })?);
            }
            found.modes[n].column = Some(column);
            found.modes[n].shift = shift;
        }
        Ok(())
    }

    /// Matches the rows of mode `n` of a file with those of `mode` by name.
    fn match_names(
        &mut self,
        view: &CooView<'_>,
        n: usize,
        own: &Arc<Names>,
        mode: usize,
        role: MatchedRole,
        found: &mut RowMatch,
    ) -> Result<()> {
        found.modes[n].is_by_name = true;
        let before = self.modes[mode].names.clone().expect("the mode has names");
        view.validate_indices(0..view.len())?;
        let indices = view.column(n);
        // Where each row goes. Rows without a name keep their numbers, and new ones follow them.
        const ABSENT: u32 = u32::MAX;
        let mut rows: Vec<u32> = Vec::new();
        try_reserve(&mut rows, own.len(), "rows")?;
        rows.resize(own.len(), ABSENT);
        let mut new = 0;
        for &index in indices {
            match rows.get_mut(index as usize) {
                Some(row) if *row != ABSENT || own.name(u64::from(index)).is_some() => *row = index,
                slot => {
                    if let Some(row) = slot {
                        *row = index;
                    }
                    new += u64::from(self.keep_unnamed(view, n, index, mode)?);
                }
            }
        }
        let named = |&row: &u32| row != ABSENT && own.name(u64::from(row)).is_some();
        let mut occurring = rows.iter().filter(|&&row| row != ABSENT).count() as u64;
        self.require_common_name(view, own, &before, mode)?;
        for row in rows.iter_mut().filter(|row| named(row)) {
            let (matched, is_new) = self.row_of(view, n, own, *row, mode)?;
            *row = matched;
            new += u64::from(is_new);
        }
        occurring = occurring.max(new);
        let is_same = rows
            .iter()
            .zip(0u32..)
            .all(|(&row, i)| row == ABSENT || row == i);
        let Mode {
            label,
            rows: noun,
            takes_new_rows,
            ..
        } = &self.modes[mode];
        let (file, source) = (view.name(), &self.source);
        if new > 0 {
            let what = match (role, *noun) {
                (_, "columns") => "left out",
                (MatchedRole::Coupled, _) => "added to the mode",
                (MatchedRole::Entries, _) => "unseen",
            };
            found.notes.push(format!(
                "{file}: {new} of its {occurring} {noun} of {label} are not in {source}: they are {what}"
            ));
        }
        let missing = (before.iter().count() as u64).saturating_sub(occurring - new);
        if role == MatchedRole::Coupled && missing > 0 && !(is_same && own.len() == before.len()) {
            found.notes.push(format!(
                "{file}: {missing} {noun} of {label} of {source} have no entry in it"
            ));
        }
        found.modes[n].is_all_new = new > 0 && new == occurring && !takes_new_rows;
        if is_same {
            return Ok(());
        }
        let mut column: Vec<u32> = try_with_capacity(indices.len(), "indices of matched rows")?;
        let number = |&index: &u32| rows.get(index as usize).copied().unwrap_or(index);
        column.extend(indices.iter().map(number));
        found.modes[n].column = Some(column);
        Ok(())
    }

    /// Makes room for a row without a name, which keeps its number. Returns whether the tensor does not have it.
    fn keep_unnamed(
        &mut self,
        view: &CooView<'_>,
        n: usize,
        index: u32,
        mode: usize,
    ) -> Result<bool> {
        let target = &mut self.modes[mode];
        let other = target.names.as_ref();
        if let Some(other) = other.and_then(|names| names.name(u64::from(index))) {
            let number = u64::from(index) + 1;
            return Err(Error::file(
                view.name(),
                format!(
                    "row {number} of mode {} has no name, but number {number} of the {} of {} of {} is called {other:?}: give names to \
                     all rows that have entries",
                    n + 1,
                    target.rows,
                    target.label,
                    self.source
                ),
            ));
        }
        let is_new = u64::from(index) >= target.size;
        target.size = target.size.max(u64::from(index) + 1);
        Ok(is_new)
    }

    /// Returns the number that a row of a file has in the tensor, appending the row if it is new, and whether it was.
    fn row_of(
        &mut self,
        view: &CooView<'_>,
        n: usize,
        own: &Names,
        index: u32,
        mode: usize,
    ) -> Result<(u32, bool)> {
        let source = &self.source;
        let target = &mut self.modes[mode];
        let names = target.names.as_mut().expect("the mode has names");
        let row_error = |reason: String| Error::file(view.name(), reason);
        let name = own.name(u64::from(index)).expect("the row has a name");
        let found = match names.name(u64::from(index)) == Some(name) {
            true => Some(index),
            false => {
                let in_file = format!("mode {} of {}", n + 1, view.name());
                let in_source = format!("{} of {source}", target.label);
                for (place, names) in [(in_file, own), (in_source, &**names)] {
                    if let Some(rows) = names.shared(name) {
                        return Err(row_error(format!(
                            "numbers {rows} of {place} are both called {name:?}, so they cannot be matched by name; give them \
                             different names"
                        )));
                    }
                }
                names.find(name)
            }
        };
        if let Some(row) = found {
            target.size = target.size.max(u64::from(row) + 1);
            return Ok((row, false));
        }
        let row = Arc::make_mut(names).append(name, target.size);
        let row = row.ok_or_else(|| row_error(format!("{} has too many rows", target.label)))?;
        target.size = u64::from(row) + 1;
        Ok((row, true))
    }

    /// Returns an error if no row of the file has a name of the tensor.
    fn require_common_name(
        &self,
        view: &CooView<'_>,
        own: &Names,
        names: &Names,
        mode: usize,
    ) -> Result<()> {
        let mut all = own.iter().map(|(_, name)| name);
        let first = all.next();
        let is_known = |name: &str| names.find(name).is_some();
        let is_disjoint = first.is_some_and(|first| !is_known(first)) && !all.any(is_known);
        if is_disjoint && !self.modes[mode].takes_new_rows {
            return Err(self.no_common_name(view, first, mode));
        }
        Ok(())
    }

    /// Returns the error of a file without a common name, `name` being one of it.
    fn no_common_name(&self, view: &CooView<'_>, name: Option<&str>, mode: usize) -> Error {
        let Mode {
            label, rows, names, ..
        } = &self.modes[mode];
        let other = names.as_ref().and_then(|names| names.iter().next());
        Error::file(
            view.name(),
            format!(
                "no name of its {rows} (such as {:?}) is a name of {label} of {} (such as {:?}); is it coupled to the right mode, and \
                 do both use the same ids?",
                name.unwrap_or_default(),
                self.source,
                other.map_or("", |(_, name)| name)
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Values;

    fn names(all: &[&str]) -> Option<Arc<Names>> {
        Some(Arc::new(Names::from_names(all)))
    }

    fn matched(
        matcher: &mut RowMatcher,
        rows: &[u32],
        of_rows: Option<Arc<Names>>,
    ) -> Result<(Vec<u32>, RowMatch)> {
        let zeros = vec![0; rows.len()];
        let values = vec![1.0; rows.len()];
        let view = CooView::new("file", &[9, 1], &[rows, &zeros], Values::F32(&values))?;
        let found = matcher.match_rows(
            &view,
            &[of_rows, None],
            &[Some(1), None],
            MatchedRole::Coupled,
        )?;
        Ok((found.apply(&view).column(0).to_vec(), found.clone()))
    }

    fn matcher() -> RowMatcher {
        RowMatcher::new("tensor", &[7, 3], vec![None, names(&["a", "b", "c"])])
    }

    #[test]
    fn rows_have_the_numbers_of_their_names() {
        let mut matcher = matcher();
        let (rows, found) = matched(&mut matcher, &[0, 1, 2, 1], names(&["c", "a", "b"])).unwrap();
        assert_eq!(rows, [2, 0, 1, 0]);
        assert!(found.warnings.is_empty() && found.notes.is_empty());
        assert_eq!(matcher.sizes(), [7, 3]);
    }

    #[test]
    fn new_rows_are_appended_once() {
        let mut matcher = matcher();
        let (rows, found) = matched(&mut matcher, &[0, 1], names(&["new", "b", "unused"])).unwrap();
        assert_eq!(rows, [3, 1]);
        assert_eq!(found.notes.len(), 2, "{:?}", found.notes);
        let (rows, _) = matched(&mut matcher, &[1, 0], names(&["b", "new", "other"])).unwrap();
        assert_eq!(rows, [3, 1]);
        assert_eq!(matcher.sizes(), [7, 4]);
        assert_eq!(matcher.names()[1].as_ref().unwrap().name(3), Some("new"));
    }

    #[test]
    fn names_of_one_side_are_a_warning_and_no_common_name_an_error() {
        let (rows, found) = matched(&mut matcher(), &[2, 0], None).unwrap();
        assert_eq!((rows, found.warnings.len()), (vec![2, 0], 1));
        let error = matched(&mut matcher(), &[0], names(&["x", "y"])).unwrap_err();
        assert!(error.to_string().contains("no name"), "{error}");
    }

    #[test]
    fn shared_names_match_only_by_position() {
        let shared = names(&["a", "b", "a"]);
        let mut same = RowMatcher::new("tensor", &[1, 3], vec![None, shared.clone()]);
        let copy = names(&["a", "b", "a"]);
        assert_eq!(matched(&mut same, &[2, 0], copy).unwrap().0, [2, 0]);
        let error = matched(&mut same, &[1], names(&["b", "a"])).unwrap_err();
        assert!(error.to_string().contains("numbers 1 and 3"), "{error}");
    }
}
