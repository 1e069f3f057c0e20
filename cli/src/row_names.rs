//! Names of rows and columns: arguments, files of names, and rows as typed.

use std::borrow::Cow;
use std::path::Path;

use clap::Args;
use s3cmtf::discover::RowNames;
use s3cmtf::format::{ModelNames, Names};
use s3cmtf::model::Model;
use s3cmtf::{Error, Result};
use serde_json::{Value, json};

use crate::input::{mode_and_file, mode_from_one};
use crate::output::{format_count, format_integer, print_note, printable};

/// Arguments that give names of rows.
#[derive(Args)]
pub(crate) struct NameArguments {
    /// Table of row names (TSV, CSV): number or id, then name [default: files beside the model]
    #[arg(long, value_name = "MODE:FILE")]
    names: Vec<String>,
}

impl NameArguments {
    /// Loads the names of the model, for modes without names those beside the data files, and those given by `--names`, which
    /// replace them. Where the stored names
    /// are ids, a table of `--names` may give titles by id.
    pub(crate) fn row_names(&self, model: &Model, path: &Path, data: &[&Path]) -> Result<RowNames> {
        let sizes: Vec<Option<u64>> = model.dims().into_iter().map(Some).collect();
        let mut names = RowNames::new(sizes.len());
        names.load_of_model(path)?;
        for file in data {
            names.load_beside(file)?;
        }
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
    let found = ModelNames::load(file, 0, widths.len())?.columns;
    for (m, beside) in found.into_iter().enumerate() {
        if let (None, Some(beside)) = (names.of_mode(m), beside) {
            names.set(m, Names::clone(&beside))?;
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
