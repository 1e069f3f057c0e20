//! Names of the rows of a mode, and the files they are kept in.
//!
//! A names file is tab-separated text: `index`, `name`, and further columns that are ignored, with
//! or without a header line; indices count from 1. Importing text with string ids writes one beside
//! the output for each such mode: `ratings.coo` gets `ratings.mode1.tsv`. [`Names::load_beside`] finds
//! it again, also for `ratings.train.coo`, by leaving out one extension after the other.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::atomic::{self, AtomicFile};
use super::header::{MAX_DIM, MAX_ORDER};
use super::names_table::{HEADER, INDEX_COLUMN, escape, read_lines};
use crate::error::{Error, Result};

/// The names of the rows of one mode.
#[derive(Debug, Default, Clone)]
pub struct Names {
    list: Vec<Option<Arc<str>>>,
    index: HashMap<Arc<str>, NamedRows, foldhash::fast::RandomState>,
}

/// The names of each mode of a file; `None` for a mode without names.
pub type ModeNames = Vec<Option<Arc<Names>>>;

impl PartialEq for Names {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}

/// The rows that have a name.
#[derive(Debug, Clone, Copy)]
struct NamedRows {
    first: u32,
    /// Whether more than one row has the name.
    is_shared: bool,
}

impl Names {
    /// Makes names of the first rows, in their order.
    pub fn from_names<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> Names {
        let mut all = Names::default();
        for (at, name) in (0u32..).zip(names) {
            let name: Arc<str> = name.as_ref().into();
            all.index_name(at, name.clone());
            all.list.push(Some(name));
        }
        all
    }

    /// Writes a names file, complete or not at all. [`Names::load_beside`] finds it beside `data.coo` if it is called
    /// `data.mode1.tsv`.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        atomic::write_atomically(path.as_ref(), |w| self.write(w))
    }

    /// Reads a names file.
    pub fn load(path: impl AsRef<Path>) -> Result<Names> {
        let mut names = Names::default();
        read_lines(path.as_ref(), |line, first, name| {
            if line == 1 && first.trim().parse::<u64>().is_err() {
                return Ok(());
            }
            names.add(line, first, name)
        })?;
        Ok(names)
    }

    /// Reads a table of titles for rows that have ids: each line has an id and the title of its row. Rows without a title
    /// keep their id as their name; ids that no row has are ignored.
    ///
    /// Returns `None` if the table is a names file instead: the first column is headed `index`, or has none of the ids.
    pub fn load_titles(path: impl AsRef<Path>, ids: &Names) -> Result<Option<Names>> {
        let mut list: Vec<Option<Arc<str>>> = vec![None; ids.len()];
        let mut is_names_file = false;
        read_lines(path.as_ref(), |line, id, title| {
            is_names_file |= line == 1 && id.trim() == INDEX_COLUMN;
            let Some(row) = ids.find(id).filter(|_| !is_names_file) else {
                return Ok(());
            };
            let title = title.ok_or_else(|| format!("the id {id:?} has no title"))?;
            match list[row as usize].replace(title.into()) {
                None => Ok(()),
                Some(_) => Err(format!("the id {id:?} has a title already")),
            }
        })?;
        if list.iter().all(Option::is_none) {
            return Ok(None);
        }
        let mut names = Names::default();
        for (row, title) in (0u32..).zip(list) {
            let name = title.or_else(|| ids.list[row as usize].clone());
            if let Some(name) = &name {
                names.index_name(row, name.clone());
            }
            names.list.push(name);
        }
        Ok(Some(names))
    }

    /// Adds the index and the name of a line.
    fn add(
        &mut self,
        line: u64,
        number: &str,
        name: Option<&str>,
    ) -> std::result::Result<(), String> {
        let (Ok(index), Some(name)) = (number.trim().parse::<u64>(), name) else {
            let found = name.map_or(number.to_string(), |name| format!("{number}\t{name}"));
            return Err(format!(
                "expected an index, a tab or comma and a name, found {found:?}"
            ));
        };
        if index == 0 || index > MAX_DIM {
            return Err(format!("index {index}; indices are 1 to {MAX_DIM}"));
        }
        let at = (index - 1) as usize;
        // Gaps are allowed, but memory must stay proportional to the length of the file.
        if at > 64 * (line as usize + 1024) {
            return Err(format!(
                "index {index} leaves almost all rows before it without a name"
            ));
        }
        if at >= self.list.len() {
            self.list.resize(at + 1, None);
        }
        if self.list[at].is_some() {
            return Err(format!("index {index} has a name already"));
        }
        let name: Arc<str> = name.into();
        self.index_name(at as u32, name.clone());
        self.list[at] = Some(name);
        Ok(())
    }

    /// Adds the name of a row to the index.
    fn index_name(&mut self, row: u32, name: Arc<str>) {
        let rows = NamedRows {
            first: row,
            is_shared: false,
        };
        let share = |rows: &mut NamedRows| rows.is_shared = true;
        self.index.entry(name).and_modify(share).or_insert(rows);
    }

    /// Loads the names of `mode` (counted from 0) beside a COO file, if there are any.
    pub fn load_beside(coo: &Path, mode: usize) -> Result<Option<Names>> {
        find_names_beside(coo, mode).map(Names::load).transpose()
    }

    /// Loads the names of each mode beside a COO file.
    pub fn load_all_beside(coo: &Path, order: usize) -> Result<ModeNames> {
        let load = |mode| Ok(Names::load_beside(coo, mode)?.map(Arc::new));
        (0..order).map(load).collect()
    }

    /// Saves the names of the modes of a COO file beside it, before it is written. Names files of an earlier file are renamed; the
    /// result has their new names.
    pub fn save_to_data(modes: &[Option<Arc<Names>>], coo: &Path) -> Result<Vec<PathBuf>> {
        let (mut staged, mut kept) = (Vec::new(), Vec::new());
        for (mode, names) in modes.iter().enumerate() {
            if let Some(names) = names {
                staged.push(names.stage(&path_for(coo, mode))?);
                kept.push(mode);
            }
        }
        let mut renamed = commit_all(staged)?;
        renamed.extend(set_aside_stale(coo, &kept)?);
        Ok(renamed)
    }

    /// Returns whether `path` is called as names of rows or columns beside a file are that begin with `stem`.
    pub fn belongs_to(path: &Path, stem: &Path) -> bool {
        let rest = path.as_os_str().as_encoded_bytes();
        let rest = rest.strip_prefix(stem.as_os_str().as_encoded_bytes());
        let number = rest.and_then(|rest| {
            let rest = rest.strip_suffix(b".tsv")?;
            rest.strip_prefix(b".mode")
                .or_else(|| rest.strip_prefix(b".matrix"))
        });
        number.is_some_and(|n| !n.is_empty() && n.iter().all(u8::is_ascii_digit))
    }

    /// Saves the names of a mode (counted from 0) where they are found beside the file `stem` with any extension. Whatever else has
    /// that name is renamed first; the result is its new name.
    pub fn save_beside(&self, stem: &Path, mode: usize) -> Result<Option<PathBuf>> {
        self.stage(&path_beside(stem, mode))?.commit()
    }

    /// Returns a warning that a names file was renamed to `path`.
    pub fn renamed_warning(path: &Path) -> String {
        format!(
            "a names file that does not belong to the new file is now called {}",
            path.display()
        )
    }

    /// Returns the name of row `index`, counted from 0.
    pub fn name(&self, index: u64) -> Option<&str> {
        self.list.get(usize::try_from(index).ok()?)?.as_deref()
    }

    /// Returns the first row with this name, counted from 0.
    pub fn find(&self, name: &str) -> Option<u32> {
        self.index.get(name).map(|rows| rows.first)
    }

    /// Returns the first two rows with this name, counted from 1, if there are more than one.
    pub(crate) fn shared(&self, name: &str) -> Option<String> {
        self.index.get(name).filter(|rows| rows.is_shared)?;
        let rows = self.rows(name);
        Some(format!("{} and {}", rows[0] + 1, rows[1] + 1))
    }

    /// Returns all rows with this name, counted from 0 and ascending.
    pub fn rows(&self, name: &str) -> Vec<u32> {
        match self.index.get(name) {
            None => Vec::new(),
            Some(rows) if !rows.is_shared => vec![rows.first],
            Some(_) => self.iter().filter(|r| r.1 == name).map(|r| r.0).collect(),
        }
    }

    /// Iterates over the rows that have a name, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &str)> {
        let list = (0..).zip(&self.list);
        list.filter_map(|(i, name)| Some((i, name.as_deref()?)))
    }

    /// Returns one more than the largest index with a name.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns whether there are no names.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the first name that two rows share, which therefore cannot serve as an id.
    pub(crate) fn first_shared(&self) -> Option<&str> {
        let mut all = self.iter().map(|(_, name)| name);
        all.find(|&name| self.index[name].is_shared)
    }

    /// Returns the row with this name, adding one if the name is new. `None` if every index is in use.
    pub(crate) fn intern(&mut self, name: &str) -> Option<u32> {
        if let Some(row) = self.find(name) {
            return Some(row);
        }
        if self.list.len() as u64 >= MAX_DIM {
            return None;
        }
        let i = self.list.len() as u32;
        let name: Arc<str> = name.into();
        self.index_name(i, name.clone());
        self.list.push(Some(name));
        Some(i)
    }

    /// Leaves the rows up to `size` without names, so that new ones follow them.
    pub(crate) fn extend_to(&mut self, size: u64) {
        self.list.resize(self.list.len().max(size as usize), None);
    }

    /// Adds a row with this name behind the first `size` rows, and behind those that have a name. `None` if every index is in use.
    pub(crate) fn append(&mut self, name: &str, size: u64) -> Option<u32> {
        let row = (self.list.len() as u64).max(size);
        if row >= MAX_DIM {
            return None;
        }
        self.list.resize(row as usize, None);
        let name: Arc<str> = name.into();
        self.index_name(row as u32, name.clone());
        self.list.push(Some(name));
        Some(row as u32)
    }

    /// Writes the file under a temporary name, to be committed with the data it belongs to.
    pub(crate) fn stage(&self, path: &Path) -> Result<StagedNames> {
        let file = atomic::stage_companion(path, |w| self.write(w))?;
        Ok(StagedNames {
            file,
            path: path.into(),
        })
    }

    fn write(&self, w: &mut dyn Write) -> io::Result<()> {
        writeln!(w, "{HEADER}")?;
        for (i, name) in self.list.iter().enumerate() {
            if let Some(name) = name {
                writeln!(w, "{}\t{}", i + 1, escape(name))?;
            }
        }
        Ok(())
    }
}

/// Copies the names beside `from` to the new file `to` (a path or a prefix without extension), still
/// under temporary names. Names that would be found beside `to` anyway are left where they are.
pub(crate) fn carry(from: &Path, to: &Path, order: usize) -> Result<Vec<StagedNames>> {
    let mut staged = Vec::new();
    for mode in 0..order {
        let (source, found) = (find_names_beside(from, mode), find_names_beside(to, mode));
        if let Some(source) = source
            && found.as_ref() != Some(&source)
        {
            staged.push(Names::load(&source)?.stage(&path_beside(to, mode))?);
        }
    }
    Ok(staged)
}

/// Renames names files beside `coo` that an earlier conversion wrote for modes that have no names now: they would name
/// the wrong rows. Returns their new names.
pub(crate) fn set_aside_stale(coo: &Path, kept: &[usize]) -> Result<Vec<PathBuf>> {
    let stale = (0..MAX_ORDER).filter(|m| !kept.contains(m));
    let renamed = stale.map(|mode| set_aside_own(&path_for(coo, mode)));
    renamed.filter_map(Result::transpose).collect()
}

/// The names of the rows of a model and of the columns of its matrices.
#[derive(Debug, Clone, Default)]
pub struct ModelNames {
    /// The names of each mode.
    pub modes: ModeNames,
    /// The names of the columns of each matrix.
    pub columns: ModeNames,
}

impl ModelNames {
    /// Loads the names beside a model: `model.s3m.mode1.tsv` and `model.s3m.matrix1.tsv`. Files such as `model.mode1.tsv` belong to data.
    pub fn load(model: &Path, order: usize, matrices: usize) -> Result<ModelNames> {
        let load = |end: String| {
            let path = with_end(model, &end);
            let names = path.is_file().then(|| Names::load(&path));
            Ok(names.transpose()?.map(Arc::new))
        };
        Ok(ModelNames {
            modes: (0..order)
                .map(|n| load(mode_end(n)))
                .collect::<Result<_>>()?,
            columns: (0..matrices)
                .map(|m| load(columns_end(m)))
                .collect::<Result<_>>()?,
        })
    }

    /// Returns whether there are no names.
    pub fn is_empty(&self) -> bool {
        self.modes.iter().chain(&self.columns).all(Option::is_none)
    }

    /// Stages the files that [`load`](Self::load) reads. They are complete on the disk before the model is written, and replace those of an
    /// earlier model when they are committed.
    pub fn stage(&self, model: &Path) -> Result<StagedModelNames> {
        let modes = self.modes.iter().zip((0..).map(mode_end));
        let columns = self.columns.iter().zip((0..).map(columns_end));
        let (mut staged, mut unnamed) = (Vec::new(), Vec::new());
        for (names, end) in modes.chain(columns) {
            let path = with_end(model, &end);
            match names {
                None => unnamed.push(path),
                Some(names) => staged.push(names.stage(&path)?),
            }
        }
        Ok(StagedModelNames { staged, unnamed })
    }
}

/// Complete names files of a model that still have temporary names.
pub struct StagedModelNames {
    staged: Vec<StagedNames>,
    /// The paths at which names of an earlier model may be.
    unnamed: Vec<PathBuf>,
}

impl StagedModelNames {
    /// Gives the files their names, after the model was written. Names files of an earlier model are renamed; the result has their
    /// new names.
    pub fn commit(self) -> Result<Vec<PathBuf>> {
        let mut renamed = Vec::new();
        for path in &self.unnamed {
            renamed.extend(set_aside_own(path)?);
        }
        renamed.extend(commit_all(self.staged)?);
        Ok(renamed)
    }
}

/// A complete names file that still has a temporary name.
pub(crate) struct StagedNames {
    file: AtomicFile,
    path: PathBuf,
}

impl StagedNames {
    /// Gives the file its final name. Whatever else has that name is renamed first; the result is its new name. Only a file that
    /// this library wrote is replaced, not a link to one.
    pub(crate) fn commit(self) -> Result<Option<PathBuf>> {
        let is_own = std::fs::symlink_metadata(&self.path).is_ok_and(|meta| meta.is_file())
            && has_own_header(&self.path);
        let renamed = if is_own { None } else { set_aside(&self.path)? };
        self.file.commit()?;
        Ok(renamed)
    }
}

/// Commits all files and returns the new names of files that were renamed for them.
pub(crate) fn commit_all(files: Vec<StagedNames>) -> Result<Vec<PathBuf>> {
    let renamed = files.into_iter().map(StagedNames::commit);
    renamed.filter_map(Result::transpose).collect()
}

/// Returns whether a file, or the file that a link leads to, begins with the header line of this library.
fn has_own_header(path: &Path) -> bool {
    // Opening a pipe would wait for its writer.
    if !std::fs::metadata(path).is_ok_and(|meta| meta.is_file()) {
        return false;
    }
    let mut start = vec![0; HEADER.len()];
    let read = open_regular(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == HEADER.as_bytes()
}

/// Opens an ordinary file. Another, such as a pipe, is an error at once.
fn open_regular(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = options.open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Renames a names file that this library may have written, because it does not belong to the data beside it any more.
/// Returns its new name. A file of another format is what a user calls the rows, and stays.
fn set_aside_own(path: &Path) -> Result<Option<PathBuf>> {
    if has_own_header(path) {
        set_aside(path)
    } else {
        Ok(None)
    }
}

/// Renames what is at a path, if anything is, to its name followed by `.old`, or by `.old2` and so on if that exists with other
/// contents. A link is renamed itself. Returns the new name.
fn set_aside(path: &Path) -> Result<Option<PathBuf>> {
    if std::fs::symlink_metadata(path).is_err() {
        return Ok(None);
    }
    let mut old = with_end(path, ".old");
    let mut number = 2;
    while std::fs::symlink_metadata(&old).is_ok() {
        if have_same_contents(path, &old) {
            break;
        }
        old = with_end(path, &format!(".old{number}"));
        number += 1;
    }
    match std::fs::rename(path, &old) {
        Ok(()) => Ok(Some(old)),
        // Another process was faster.
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io(format!("cannot rename {}", path.display()), e)),
    }
}

/// Returns whether two ordinary files, no links, have the same contents.
fn have_same_contents(a: &Path, b: &Path) -> bool {
    let open = |path: &Path| {
        let is_file = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file());
        let file = open_regular(path).ok().filter(|_| is_file)?;
        let length = file.metadata().ok()?.len();
        Some((length, io::BufReader::new(file)))
    };
    let (Some((length, a)), Some((other_length, b))) = (open(a), open(b)) else {
        return false;
    };
    let pairs = a.bytes().zip(b.bytes());
    let are_equal = |(a, b): (io::Result<u8>, io::Result<u8>)| a.is_ok() && a.ok() == b.ok();
    length == other_length && pairs.take(length as usize).all(are_equal)
}

/// Returns the names file of `mode` beside a COO file or prefix, if it exists.
pub(crate) fn find_names_beside(coo: &Path, mode: usize) -> Option<PathBuf> {
    find_with(coo, &mode_end(mode))
}

/// Returns the first existing file whose name is that of `file`, without some of its extensions, followed by `end`.
fn find_with(file: &Path, end: &str) -> Option<PathBuf> {
    let mut stem = file.to_path_buf();
    loop {
        let path = with_end(&stem, end);
        if path.is_file() {
            return Some(path);
        }
        stem.extension()?;
        stem.set_extension("");
    }
}

/// Returns the path of the names of `mode` (counted from 0) of the COO file `coo`.
pub(crate) fn path_for(coo: &Path, mode: usize) -> PathBuf {
    path_beside(&coo.with_extension(""), mode)
}

fn path_beside(stem: &Path, mode: usize) -> PathBuf {
    with_end(stem, &mode_end(mode))
}

fn mode_end(mode: usize) -> String {
    format!(".mode{}.tsv", mode + 1)
}

fn columns_end(matrix: usize) -> String {
    format!(".matrix{}.tsv", matrix + 1)
}

fn with_end(stem: &Path, end: &str) -> PathBuf {
    let mut name = stem.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_joined_by_id() {
        let dir = tempfile::tempdir().unwrap();
        let ids = Names::from_names(["30", "10", "20"]);
        let load = |text: &str| {
            let path = dir.path().join("titles");
            std::fs::write(&path, text).unwrap();
            Names::load_titles(&path, &ids)
        };
        let titles = load("id,title\n10,\"Ten, The\"\n11,Eleven\n30,Thirty\n")
            .unwrap()
            .unwrap();
        let all: Vec<_> = titles.iter().collect();
        assert_eq!(all, [(0, "Thirty"), (1, "Ten, The"), (2, "20")]);
        assert_eq!(titles.find("Ten, The"), Some(1));
        // Files that number rows: by their header, or because none of the numbers is an id.
        assert!(load("index\tname\n10\tTen\n").unwrap().is_none());
        assert!(load("1\tone\n2\ttwo\n").unwrap().is_none());
        let twice = load("10\ta\n10\tb\n").unwrap_err().to_string();
        assert!(
            twice.contains("line 2") && twice.contains("already"),
            "{twice}"
        );
        assert!(load("10\n").unwrap_err().to_string().contains("no title"));
    }

    #[test]
    fn names_survive_a_round_trip() {
        let dir = tempfile::tempdir().unwrap();
        let coo = dir.path().join("r.coo");
        let mut names = Names::default();
        let odd = [
            "plain",
            "tab\there",
            "line\nend",
            "back\\slash\\t",
            "Amélie (2001)",
            " ",
            "right\u{202e}to left",
            "zero\u{200b}width\0",
            "\\u{202e}",
            "\\u{}",
        ];
        for (i, n) in odd.iter().enumerate() {
            assert_eq!(names.intern(n), Some(i as u32));
            assert_eq!(names.intern(n), Some(i as u32));
        }
        names.stage(&path_for(&coo, 0)).unwrap().commit().unwrap();
        for file in ["r.coo", "r.train.coo"] {
            let back = Names::load_beside(&dir.path().join(file), 0)
                .unwrap()
                .unwrap();
            assert_eq!(back.len(), odd.len());
            for (i, n) in odd.iter().enumerate() {
                assert_eq!(back.name(i as u64), Some(*n));
                assert_eq!(back.find(n), Some(i as u32));
            }
        }
        assert!(Names::load_beside(&coo, 1).unwrap().is_none());
    }

    #[test]
    fn no_names_file_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let model = dir.path().join("m.s3m");
        let path = dir.path().join("m.s3m.mode1.tsv");
        let save = |modes: &ModeNames| {
            let names = ModelNames {
                modes: modes.clone(),
                columns: Vec::new(),
            };
            names.stage(&model).and_then(StagedModelNames::commit)
        };
        let mut names = vec![None, None];
        // A user may write files with the header of this library.
        for (text, old) in [
            ("index\tname\n1\tmine\n", "m.s3m.mode1.tsv.old"),
            ("index\tname\n1\tmine too\n", "m.s3m.mode1.tsv.old2"),
            // The same again needs no further copy.
            ("index\tname\n1\tmine too\n", "m.s3m.mode1.tsv.old2"),
        ] {
            std::fs::write(&path, text).unwrap();
            let renamed = save(&names).unwrap();
            assert_eq!(renamed, [dir.path().join(old)]);
            assert_eq!(std::fs::read_to_string(&renamed[0]).unwrap(), text);
            assert!(!path.exists());
        }
        // Files of another format name the rows until there are other names for them.
        std::fs::write(&path, "1\tmine\n").unwrap();
        assert!(save(&names).unwrap().is_empty());
        assert!(path.exists());
        names[0] = Some(Arc::new(Names::from_names(["a"])));
        assert_eq!(
            save(&names).unwrap(),
            [dir.path().join("m.s3m.mode1.tsv.old3")]
        );
        assert_eq!(Names::load(&path).unwrap().name(0), Some("a"));
        // A file of this library is replaced like the model itself.
        assert!(save(&names).unwrap().is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn only_own_files_are_replaced() {
        use std::os::unix::fs::{FileTypeExt, symlink};
        let own = "index\tname\n1\tmine\n";
        // What is at the path of new names, and what is there without any.
        type Make = fn(&Path, &Path);
        let cases: [(&str, Make); 7] = [
            ("a link to a file of this library", |path, target| {
                std::fs::write(target, "index\tname\n1\tmine\n").unwrap();
                symlink(target, path).unwrap();
            }),
            ("a link to another file", |path, target| {
                std::fs::write(target, "precious").unwrap();
                symlink(target, path).unwrap();
            }),
            ("a link without a target", |path, target| {
                symlink(target, path).unwrap();
            }),
            ("a link to itself", |path, _| symlink(path, path).unwrap()),
            ("a folder", |path, _| {
                std::fs::create_dir(path).unwrap();
                std::fs::write(path.join("file"), "precious").unwrap();
            }),
            ("a pipe", |path, _| {
                let made = std::process::Command::new("mkfifo").arg(path).status();
                assert!(made.unwrap().success());
            }),
            ("a link to a device", |path, _| {
                symlink("/dev/zero", path).unwrap();
            }),
        ];
        for (what, make) in cases {
            let dir = tempfile::tempdir().unwrap();
            let (path, target) = (
                dir.path().join("m.s3m.mode1.tsv"),
                dir.path().join("target"),
            );
            make(&path, &target);
            let kind = std::fs::symlink_metadata(&path).unwrap().file_type();
            let contents_of = |path: &Path| match std::fs::symlink_metadata(path) {
                Ok(meta) if meta.is_file() => Some(std::fs::read(path).unwrap()),
                _ => None,
            };
            let before = contents_of(&target);
            let staged = Names::from_names(["new"]).stage(&path).unwrap();
            let renamed = staged.commit().unwrap().unwrap();
            assert_eq!(renamed, dir.path().join("m.s3m.mode1.tsv.old"), "{what}");
            let moved = std::fs::symlink_metadata(&renamed).unwrap().file_type();
            assert_eq!(moved, kind, "{what}");
            assert_eq!(contents_of(&target), before, "{what}");
            assert!(!kind.is_dir() || renamed.join("file").exists());
            let meta = std::fs::symlink_metadata(&path).unwrap();
            assert!(meta.is_file() && !meta.file_type().is_fifo(), "{what}");
            assert_eq!(Names::load(&path).unwrap().name(0), Some("new"), "{what}");
            // Without names for the data, only what would be read as names of this library is renamed.
            std::fs::remove_file(&path).unwrap();
            std::fs::rename(&renamed, &path).unwrap();
            let stale = set_aside_own(&path).unwrap();
            let is_own = before.as_deref() == Some(own.as_bytes());
            assert_eq!(stale.is_some(), is_own, "{what}");
            assert_eq!(contents_of(&target), before, "{what}");
        }
    }

    #[test]
    fn files_of_other_programs_are_read_and_invalid_ones_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("n.tsv");
        let load = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Names::load(&path)
        };
        let n = load("index\ttitle\tgenres\n1\tToy\\tStory\tA|B\n3\tThree\tC\n").unwrap();
        assert_eq!(
            (n.name(0), n.name(1), n.name(2)),
            (Some("Toy\\tStory"), None, Some("Three"))
        );
        for text in ["1\tAction\r\n2\tDrama\r\n", "1\tAction\r2\tDrama\r"] {
            assert_eq!(load(text).unwrap().name(1), Some("Drama"), "{text:?}");
        }
        let csv = "id,title\r\n1,\"Me, Myself & Irene\"\r\n2,\"a \"\"b\"\"\",x\r\n";
        let n = load(csv).unwrap();
        assert_eq!(
            n.iter().collect::<Vec<_>>(),
            [(0, "Me, Myself & Irene"), (1, "a \"b\"")]
        );
        assert_eq!(load("1,x\n2,y\n").unwrap().find("y"), Some(1));
        assert_eq!(load("1\tx\n2\tx\n").unwrap().first_shared(), Some("x"));
        for (text, expected) in [
            ("1\ta\n1\tb\n", "line 2: index 1 has a name already"),
            ("1\ta\nb\n", "line 2: expected an index"),
            ("1,a\nx,b\n", "line 2: expected an index"),
            ("0\ta\n", "index 0"),
            ("1\ta\n4000000000\tb\n", "almost all rows"),
        ] {
            let error = load(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
