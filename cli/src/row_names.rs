//! Names of rows and columns: arguments, files of names, and rows as typed.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use clap::Args;
use s3cmtf::discover::RowNames;
use s3cmtf::format::Names;
use s3cmtf::model::Model;
use s3cmtf::{Error, Result};
use serde_json::{Value, json};

use crate::input::{TextArguments, mode_and_file, mode_from_one};
use crate::output::{format_count, format_integer, print_note, print_warning, printable};

/// Arguments that give names of rows.
#[derive(Args)]
pub(crate) struct NameArguments {
    /// Table of row names (TSV, CSV): number or id, then name [default: files beside the model]
    #[arg(long, value_name = "MODE:FILE")]
    names: Vec<String>,
}

impl NameArguments {
    /// Returns the files given by `--names`.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>> {
        files_in(&self.names, "--names")
    }

    /// Loads the names stored beside the files, and those given by `--names`, which replace them. Where the stored names
    /// are ids, a table of `--names` may give titles by id.
    pub(crate) fn row_names(&self, model: &Model, beside: &[&Path]) -> Result<RowNames> {
        let sizes: Vec<Option<u64>> = model.dims().into_iter().map(Some).collect();
        let mut names = RowNames::new(sizes.len());
        names.load_sidecars(beside)?;
        load_names(&mut names, &self.names, &sizes, &MODES)?;
        Ok(names)
    }
}

/// Returns a row as a JSON object with its index counted from 1 and, if it has them, its id and its name.
pub(crate) fn row_json(names: &RowNames, mode: usize, index: u32) -> Value {
    let mut row = json!({"index": u64::from(index) + 1});
    if let Some(id) = names.id(mode, index) {
        row["id"] = id.into();
    }
    if let Some(name) = names.name(mode, index) {
        row["name"] = name.into();
    }
    row
}

/// Returns what lists print before the name of a row: its id if names are titles, otherwise its number counted from 1.
pub(crate) fn id_or_number(names: &RowNames, mode: usize, index: u32) -> Cow<'_, str> {
    match names.id(mode, index) {
        Some(id) => printable(id),
        None => (u64::from(index) + 1).to_string().into(),
    }
}

/// Loads the names of columns given by `--matrix-names`, for matrices of these widths.
pub(crate) fn column_names(specs: &[String], widths: &[Option<u64>]) -> Result<RowNames> {
    let mut names = RowNames::new(widths.len());
    load_names(&mut names, specs, widths, &MATRICES)?;
    Ok(names)
}

/// Loads the names of columns for the matrices of a model, and at least `count` matrices. Matrices without names in
/// `specs` take those stored beside the model's `file`.
pub(crate) fn column_names_of_model(
    specs: &[String],
    model: &Model,
    file: &Path,
    count: usize,
) -> Result<RowNames> {
    let width = |m: usize| Some(model.matrices().get(m)?.columns.dim());
    let widths: Vec<Option<u64>> = (0..count.max(model.matrices().len())).map(width).collect();
    let mut names = column_names(specs, &widths)?;
    for m in 0..widths.len() {
        if names.of_mode(m).is_none()
            && let Some(beside) = Names::load_columns(file, m)?
        {
            names.set(m, beside)?;
        }
    }
    Ok(names)
}

/// An option that gives names by number, and the nouns of its messages.
struct NameOption {
    option: &'static str,
    singular: &'static str,
    plural: &'static str,
    /// The named items of a mode or matrix.
    items: &'static str,
}

const MODES: NameOption = NameOption {
    option: "--names",
    singular: "mode",
    plural: "modes",
    items: "rows",
};

const MATRICES: NameOption = NameOption {
    option: "--matrix-names",
    singular: "matrix",
    plural: "matrices",
    items: "columns",
};

/// Loads the files of names in `specs` (`NUMBER:FILE`, numbers from 1). `sizes` has the number of rows or columns of each
/// mode or matrix, where known. A second file for the same number is an error. Names that are set already are ids, for which a
/// file may have titles.
fn load_names(
    names: &mut RowNames,
    specs: &[String],
    sizes: &[Option<u64>],
    kind: &NameOption,
) -> Result<()> {
    let NameOption {
        option,
        singular,
        plural,
        items,
    } = kind;
    let count = sizes.len();
    let mut is_given = vec![false; count];
    for spec in specs {
        let (n, file) = mode_and_file(spec, option)?;
        let invalid = |why: String| Error::Argument(format!("{option} {spec}: {why}"));
        if n >= count {
            let verb = if count == 1 { "is" } else { "are" };
            let existing = format_count(count as u64, singular, plural);
            return Err(invalid(format!("there {verb} {existing}")));
        }
        if std::mem::replace(&mut is_given[n], true) {
            let why = format!(
                "{singular} {} has names already; give one file for each",
                n + 1
            );
            return Err(invalid(why));
        }
        if let Some(ids) = names.of_mode(n)
            && let Some(titles) = Names::load_titles(&file, ids)?
        {
            names.set_titles(n, titles)?;
            continue;
        }
        let found = Names::load(file)?;
        // A warning only: a dictionary may contain ids without training entries.
        let last = found.iter().map(|(row, _)| u64::from(row) + 1).max();
        if let (Some(last), Some(size)) = (last, sizes[n])
            && last > size
        {
            print_note(&format!(
                "{option} {spec}: has names up to number {}, but {singular} {} has {} {items}; is it for another {singular}?",
                format_integer(last),
                n + 1,
                format_integer(size)
            ));
        }
        names.set(n, found)?;
    }
    Ok(())
}

/// Returns the files of options of the form `NUMBER:FILE`.
pub(crate) fn files_in(specs: &[String], option: &str) -> Result<Vec<PathBuf>> {
    let parsed = specs.iter().map(|spec| mode_and_file(spec, option));
    parsed.map(|p| p.map(|(_, file)| file)).collect()
}

/// Splits `MODE:ROW` and returns the mode counted from 0. Errors start with `option`.
pub(crate) fn mode_and_row<'a>(
    spec: &'a str,
    option: &str,
    model: &Model,
) -> Result<(usize, &'a str)> {
    let parsed = spec
        .split_once(':')
        .and_then(|(m, row)| Some((m.parse().ok()?, row)));
    let Some((mode, row)) = parsed.filter(|(_, row)| !row.is_empty()) else {
        return Err(Error::Argument(format!(
            "{option}{spec}: expected MODE:ROW, such as 1:17, 1:all, 1:1-100 or 1:@users.txt"
        )));
    };
    let mode = mode_from_one(mode)?;
    if mode >= model.order() {
        return Err(Error::Argument(format!(
            "{option}{spec}: the model has {} modes",
            model.order()
        )));
    }
    Ok((mode, row))
}

/// Rejects data whose rows have other names than those of the model, since the same index would mean different rows.
/// Text that is read with `--names` is exempt: the names determine its indices. Warns of numbers that may be ids.
pub(crate) fn check_names_match_model<'a>(
    model: &'a Path,
    order: usize,
    files: impl IntoIterator<Item = &'a PathBuf>,
    text: &TextArguments,
) -> Result<()> {
    let files = files.into_iter().map(PathBuf::as_path);
    let files: Vec<&Path> = [model].into_iter().chain(files).collect();
    for file in files[1..].iter().filter(|file| text.is_delimited(file)) {
        warn_of_numeric_ids(model, order, file, text)?;
    }
    if text.has_names() {
        return Ok(());
    }
    RowNames::check_sidecars(order, &files)
}

/// Warns if a CSV or TSV file has row numbers for a mode of the model whose ids are numbers too (`convert --strings`).
fn warn_of_numeric_ids(
    model: &Path,
    order: usize,
    file: &Path,
    text: &TextArguments,
) -> Result<()> {
    for mode in (0..order).filter(|&mode| !text.has_names_of(mode)) {
        let ids = Names::load_beside(model, mode)?.unwrap_or_default();
        let is_number = |id: &str| id.bytes().all(|b| b.is_ascii_digit());
        if ids.iter().next().is_some_and(|(_, id)| is_number(id)) {
            let n = mode + 1;
            print_warning(&format!(
                "{}: the numbers of mode {n} are read as row numbers; if they are ids, add --names {n}:FILE, the names \
                 that convert wrote for the data of the model",
                file.display()
            ));
        }
    }
    Ok(())
}
