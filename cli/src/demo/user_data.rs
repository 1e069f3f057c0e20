//! Opens a folder of data files for a demo.
//!
//! - `tensor.train` and `tensor.test` are the entries. Data files end in `.coo`, `.tns` or `.tns.gz`.
//! - Every other data file is a matrix named after its rows and columns: `movie_genre` has the rows of mode `movie` and
//!   columns `genre`.
//! - `movies.tsv` has the names of the rows of `movie`, `genres.tsv` those of the columns.
//! - `meta.json` is optional. `tensor.modes` lists the names of the modes. An object named like a matrix may contain a
//!   list of column names.
//!
//! A matrix whose name starts with no mode name belongs to the first mode of its size. That mode takes the first word of
//! the matrix as its name unless `meta.json` gives one.

use std::path::{Path, PathBuf};

use s3cmtf::format::{CooFile, Names, SizeLimit, TextOptions, read_whole_text};
use s3cmtf::options::Options;
use s3cmtf::problem::MatrixKind;
use s3cmtf::{Error, Result};
use serde_json::Value;

use super::data_set::{AttributeMatrix, DataSet};
use crate::input::{VerifyArguments, open_with};
use crate::output::Output;
use crate::progress::Progress;

/// Extensions of data files, in order of preference.
const EXTENSIONS: [&str; 3] = [".coo", ".tns", ".tns.gz"];

/// Opens the data in `folder` and creates the folder `target` for the results.
pub(super) fn open(folder: &Path, progress: &Progress, out: &mut Output) -> Result<DataSet> {
    if !folder.is_dir() {
        return Err(Error::File {
            file: folder.display().to_string(),
            reason: "is no folder; --data takes a folder with tensor.train.tns and tensor.test.tns"
                .into(),
        });
    }
    let read = |path: &Path| {
        open_with(
            path,
            &TextOptions::default(),
            VerifyArguments::NOW,
            progress,
        )
    };
    let entries = |stem: &str| match find_data_file(folder, stem) {
        Some(path) => read(&path),
        None => Err(Error::File {
            file: folder.join(format!("{stem}.tns")).display().to_string(),
            reason:
                "is missing; --data needs tensor.train and tensor.test as .coo, .tns or .tns.gz"
                    .into(),
        }),
    };
    let (train, test) = (entries("tensor.train")?, entries("tensor.test")?);
    let meta = read_meta(&folder.join("meta.json"))?;
    let order = train.header().dims.len();
    if test.header().dims.len() != order {
        return Err(Error::File {
            file: test.name().into(),
            reason: format!(
                "has {} modes, but {} has {order}; training and test entries must be of one tensor",
                test.header().dims.len(),
                train.name()
            ),
        });
    }
    let listed_modes = meta["tensor"]["modes"].as_array();
    let listed_mode = |n: usize| {
        listed_modes
            .and_then(|m| m.get(n)?.as_str())
            .map(String::from)
    };
    let mut modes: Vec<Option<String>> = (0..order).map(listed_mode).collect();
    let mut used_files = Vec::new();
    let mut attribute_matrices = Vec::new();
    for (stem, path) in matrix_files(folder)? {
        let file = read(&path)?;
        if file.header().dims.len() != 2 {
            out.line(format!(
                "{} has more than two modes and is ignored",
                path.display()
            ));
            continue;
        }
        let (rows, columns) = stem.split_once('_').unwrap_or((&stem, ""));
        let sizes = &train.header().dims;
        // One word of the mode name is enough: `zone_attr` belongs to `pickup zone`.
        let has_name = |m: &Option<String>| m.iter().any(|m| words(m).any(|word| word == rows));
        let by_name = modes.iter().position(has_name);
        let by_size = || sizes.iter().position(|&d| d == file.header().dims[0]);
        let Some(mode) = by_name.or_else(by_size) else {
            out.line(format!("{} matches no mode and is ignored", path.display()));
            continue;
        };
        if !columns.is_empty() {
            modes[mode].get_or_insert_with(|| rows.to_string());
        }
        let width = file.header().dims[1];
        let from_file = read_names(folder, columns, &mut used_files)?;
        attribute_matrices.push(AttributeMatrix {
            attribute: columns.to_string(),
            mode,
            kind: matrix_kind(&file),
            column_names: names_in_meta(&meta[&stem], width).or(from_file),
            file,
        });
    }
    let mut row_names = Vec::new();
    for mode in &modes {
        // Tries the words from the last: `zones.tsv` names the rows of `pickup zone`.
        let mut found = None;
        for word in mode.iter().flat_map(|m| words(m).rev()) {
            found = match found {
                None => read_names(folder, word, &mut used_files)?,
                some => some,
            };
        }
        row_names.push(found);
    }
    for path in files_with_extension(folder, ".tsv")? {
        if !used_files.contains(&path) {
            out.line(format!(
                "{} matches no mode and no matrix columns, and is ignored",
                path.display()
            ));
        }
    }
    let name_or_number =
        |(n, mode): (usize, Option<String>)| mode.unwrap_or(format!("mode {}", n + 1));
    let mode_names = modes.into_iter().enumerate().map(name_or_number).collect();
    Ok(DataSet {
        train,
        test,
        matrices: attribute_matrices,
        mode_names,
        names: row_names,
        // The fit chooses what depends on the data.
        fit_options: Options::default(),
        planted_rmse: None,
    })
}

/// Returns the data file with this stem, if one exists.
fn find_data_file(folder: &Path, stem: &str) -> Option<PathBuf> {
    let paths = EXTENSIONS
        .iter()
        .map(|end| folder.join(format!("{stem}{end}")));
    paths.into_iter().find(|path| path.is_file())
}

/// Reads `meta.json`. Returns null if it does not exist.
fn read_meta(path: &Path) -> Result<Value> {
    if !path.exists() {
        return Ok(Value::Null);
    }
    let text = read_whole_text(path, SizeLimit::Options)?;
    serde_json::from_str(&text).map_err(|e| Error::Text {
        file: path.display().to_string(),
        line: e.line() as u64,
        reason: format!("is not JSON: {e}"),
    })
}

/// Splits the name of a mode into words.
fn words(mode: &str) -> impl DoubleEndedIterator<Item = &str> {
    mode.split([' ', '_'])
}

/// Returns the files whose names end in `extension`, except hidden ones, sorted by name.
fn files_with_extension(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let failed = |source| Error::Io {
        action: format!("cannot list {}", folder.display()),
        source,
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let text = name.to_string_lossy();
        if text.ends_with(extension) && !text.starts_with('.') {
            paths.push(folder.join(&name));
        }
    }
    paths.sort();
    Ok(paths)
}

/// Returns the stems and paths of all data files except the tensor, sorted by name.
fn matrix_files(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut stems: Vec<String> = Vec::new();
    for extension in EXTENSIONS {
        for path in files_with_extension(folder, extension)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let stem = name.strip_suffix(extension).unwrap_or(&name);
            if !stem.starts_with("tensor.") {
                stems.push(stem.to_string());
            }
        }
    }
    stems.sort();
    stems.dedup();
    let each = stems
        .into_iter()
        .filter_map(|stem| Some((stem.clone(), find_data_file(folder, &stem)?)));
    Ok(each.collect())
}

/// Returns the kind of a matrix. If all its values are equal, positions without an entry are zeros.
fn matrix_kind(file: &CooFile) -> MatrixKind {
    let values = file.view().values();
    let constant = (1..file.view().len()).all(|i| values.get(i) == values.get(0));
    if constant {
        MatrixKind::Full
    } else {
        MatrixKind::Observed
    }
}

/// Returns the first list of `width` texts in the object of a matrix in `meta.json`.
fn names_in_meta(matrix: &Value, width: u64) -> Option<Names> {
    let lists = matrix.as_object()?.values().filter_map(Value::as_array);
    let texts = lists.filter_map(|l| l.iter().map(Value::as_str).collect::<Option<Vec<&str>>>());
    let mut fitting = texts.filter(|l| l.len() as u64 == width);
    fitting.next().map(Names::from_names)
}

/// Reads the names of `noun` from its plural or itself (`movies.tsv`, `categories.tsv`, `category.tsv`). Adds the file to
/// `used_files`.
fn read_names(folder: &Path, noun: &str, used_files: &mut Vec<PathBuf>) -> Result<Option<Names>> {
    if noun.is_empty() {
        return Ok(None);
    }
    let plural = noun.strip_suffix('y').map(|w| format!("{w}ies"));
    let stems = [Some(format!("{noun}s")), plural, Some(noun.to_string())];
    let paths = stems
        .into_iter()
        .flatten()
        .map(|stem| folder.join(format!("{stem}.tsv")));
    let file = paths.into_iter().find(|path| path.is_file());
    used_files.extend(file.clone());
    file.map(Names::load).transpose()
}
