//! A folder of real data for a demo.
//!
//! `tensor.train` and `tensor.test` are entries. Every other `.coo`, `.tns` or `.tns.gz` is a matrix, called after its
//! rows and columns: `movie_genre` has the rows of the mode `movie` and the columns `genre`. `movies.tsv` has the names of
//! the rows of `movie`, `genres.tsv` those of the columns. `meta.json`, if there is one, says what modes are called
//! (`tensor.modes`) and may have the names of columns as a list in an object called as the matrix. Without it a matrix
//! belongs to the first mode of its size, which then is called as its rows are.

use std::path::{Path, PathBuf};

use s3cmtf::format::{CooFile, Names, TextOptions};
use s3cmtf::problem::MatrixKind;
use s3cmtf::{Error, Result};
use serde_json::Value;

use super::super::input::open_with;
use super::super::output::Output;
use super::super::progress::Progress;
use super::data::{Set, Table};

/// The ends of names of data, of which the first that exists counts.
const ENDS: [&str; 3] = [".coo", ".tns", ".tns.gz"];

pub(super) fn open(
    folder: &Path,
    target: &Path,
    progress: &Progress,
    out: &mut Output,
) -> Result<Set> {
    if !folder.is_dir() {
        return Err(Error::File {
            file: folder.display().to_string(),
            reason: "is no folder; --data takes one with tensor.train.tns and tensor.test.tns"
                .into(),
        });
    }
    let read = |path: &Path| open_with(path, &TextOptions::default(), progress);
    let entries = |stem: &str| {
        match found(folder, stem) {
        Some(path) => read(&path),
        None => Err(Error::File {
            file: folder.join(format!("{stem}.tns")).display().to_string(),
            reason: "is missing; a folder for a demo has tensor.train and tensor.test as .coo, .tns or .tns.gz".into(),
        }),
    }
    };
    let (train, test) = (entries("tensor.train")?, entries("tensor.test")?);
    let meta = meta(&folder.join("meta.json"))?;
    let order = train.header().dims.len();
    if test.header().dims.len() != order {
        return Err(Error::File {
            file: test.name().into(),
            reason: format!(
                "has {} modes, but {} has {order}; entries for training and testing are of one tensor",
                test.header().dims.len(),
                train.name()
            ),
        });
    }
    let said = meta["tensor"]["modes"].as_array();
    let said = |n: usize| said.and_then(|m| m.get(n)?.as_str()).map(String::from);
    let mut modes: Vec<Option<String>> = (0..order).map(said).collect();
    let mut used = Vec::new();
    let mut tables = Vec::new();
    for (stem, path) in matrices(folder)? {
        let file = read(&path)?;
        if file.header().dims.len() != 2 {
            out.line(format!(
                "{} has more than two modes and is left out",
                path.display()
            ));
            continue;
        }
        let (rows, columns) = stem.split_once('_').unwrap_or((&stem, ""));
        let sizes = &train.header().dims;
        // `zone_attr` is of the `pickup zone`.
        let word = |m: &Option<String>| m.iter().any(|m| words(m).any(|word| word == rows));
        let named = modes.iter().position(word);
        let sized = || sizes.iter().position(|&d| d == file.header().dims[0]);
        let Some(mode) = named.or_else(sized) else {
            out.line(format!(
                "{} belongs to no mode and is left out",
                path.display()
            ));
            continue;
        };
        if !columns.is_empty() {
            modes[mode].get_or_insert_with(|| rows.to_string());
        }
        let width = file.header().dims[1];
        let own = names(folder, columns, &mut used)?;
        tables.push(Table {
            what: columns.to_string(),
            mode,
            kind: kind(&file),
            columns: listed(&meta[&stem], width).or(own),
            file,
        });
    }
    let mut rows = Vec::new();
    for mode in &modes {
        // `pickup zone` has the names of zones.
        let mut own = None;
        for word in mode.iter().flat_map(|m| words(m).rev()) {
            own = match own {
                None => names(folder, word, &mut used)?,
                some => some,
            };
        }
        rows.push(own);
    }
    for path in listing(folder, ".tsv")? {
        if !used.contains(&path) {
            out.line(format!(
                "{} has the names of no mode and of no columns that are known, and is left out",
                path.display()
            ));
        }
    }
    let numbered = |(n, mode): (usize, Option<String>)| mode.unwrap_or(format!("mode {}", n + 1));
    let modes = modes.into_iter().enumerate().map(numbered).collect();
    // Now that all of it can be read.
    std::fs::create_dir_all(target).map_err(|source| Error::Io {
        action: format!("cannot make the folder {}", target.display()),
        source,
    })?;
    Ok(Set {
        train,
        test,
        tables,
        modes,
        names: rows,
        floor: None,
    })
}

fn found(folder: &Path, stem: &str) -> Option<PathBuf> {
    let paths = ENDS.iter().map(|end| folder.join(format!("{stem}{end}")));
    paths.into_iter().find(|path| path.is_file())
}

/// What `meta.json` says; nothing if there is none.
fn meta(path: &Path) -> Result<Value> {
    let Ok(text) = std::fs::read_to_string(path) else {
        return Ok(Value::Null);
    };
    serde_json::from_str(&text).map_err(|e| Error::Text {
        file: path.display().to_string(),
        line: e.line() as u64,
        reason: format!("is not JSON: {e}"),
    })
}

/// The words in the name of a mode.
fn words(mode: &str) -> impl DoubleEndedIterator<Item = &str> {
    mode.split([' ', '_'])
}

/// All files with this end of their name, but hidden ones, by name.
fn listing(folder: &Path, end: &str) -> Result<Vec<PathBuf>> {
    let failed = |source| Error::Io {
        action: format!("cannot list {}", folder.display()),
        source,
    };
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let text = name.to_string_lossy();
        if text.ends_with(end) && !text.starts_with('.') {
            all.push(folder.join(&name));
        }
    }
    all.sort();
    Ok(all)
}

/// All data files but the tensor, by name, each once.
fn matrices(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut stems: Vec<String> = Vec::new();
    for end in ENDS {
        for path in listing(folder, end)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let stem = name.strip_suffix(end).unwrap_or(&name);
            if !stem.starts_with("tensor.") {
                stems.push(stem.to_string());
            }
        }
    }
    stems.sort();
    stems.dedup();
    let each = stems
        .into_iter()
        .filter_map(|stem| Some((stem.clone(), found(folder, &stem)?)));
    Ok(each.collect())
}

/// A matrix of ones alone does not list its zeros.
fn kind(file: &CooFile) -> MatrixKind {
    let values = file.view().values();
    let constant = (1..file.view().len()).all(|i| values.get(i) == values.get(0));
    match constant {
        true => MatrixKind::Full,
        false => MatrixKind::Observed,
    }
}

/// A list of texts of this length among what is said of a matrix.
fn listed(said: &Value, width: u64) -> Option<Names> {
    let lists = said.as_object()?.values().filter_map(Value::as_array);
    let texts = lists.filter_map(|l| l.iter().map(Value::as_str).collect::<Option<Vec<&str>>>());
    let mut fitting = texts.filter(|l| l.len() as u64 == width);
    fitting.next().map(Names::from_names)
}

/// The names in `movies.tsv` of a `movie`, `category.tsv` of a `category`; which file that is, is noted.
fn names(folder: &Path, what: &str, used: &mut Vec<PathBuf>) -> Result<Option<Names>> {
    if what.is_empty() {
        return Ok(None);
    }
    let plural = what.strip_suffix('y').map(|w| format!("{w}ies"));
    let stems = [Some(format!("{what}s")), plural, Some(what.to_string())];
    let paths = stems
        .into_iter()
        .flatten()
        .map(|stem| folder.join(format!("{stem}.tsv")));
    let file = paths.into_iter().find(|path| path.is_file());
    used.extend(file.clone());
    file.map(Names::load).transpose()
}
