//! Lists of rows with their scores, and the names of rows.

use std::borrow::Cow;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use s3cmtf::discover::{RankedRow, RowNames};
use s3cmtf::format::Names;
use s3cmtf::model::Model;
use s3cmtf::{Error, Result};
use serde_json::{Value, json};

use super::input::mode_and_file;
use super::mode_from_one;
use super::output::{Output, complain, counted, grouped, plain};

/// After so many lists they are printed.
const TOGETHER: usize = 64;

/// What rows are called.
#[derive(Args)]
pub(super) struct NameArguments {
    /// Names of the rows of a mode: an index and a name in each line of a TSV or CSV file. Those that `convert`
    /// left beside the model or an excluded file are found without
    #[arg(long, value_name = "MODE:FILE")]
    names: Vec<String>,
}

impl NameArguments {
    /// The files that were given.
    pub(super) fn files(&self) -> Result<Vec<PathBuf>> {
        files_of(&self.names, "--names")
    }

    /// The names that were given, and those that lie beside these files.
    pub(super) fn row_names(&self, model: &Model, beside: &[&Path]) -> Result<RowNames> {
        let sizes: Vec<Option<u64>> = model.dims().into_iter().map(Some).collect();
        let mut names = loaded(&self.names, &sizes, ("--names", ["mode", "modes", "rows"]))?;
        names.load_sidecars(beside)?;
        Ok(names)
    }
}

/// A row for programs: its number, and its name if it has one.
pub(super) fn row_json(names: &RowNames, mode: usize, index: u32) -> Value {
    let mut row = json!({"index": u64::from(index) + 1});
    if let Some(name) = names.name(mode, index) {
        row["name"] = name.into();
    }
    row
}

/// The names of the columns of matrices with so many, numbered from 1 as typed.
pub(super) fn column_names(specs: &[String], widths: &[Option<u64>]) -> Result<RowNames> {
    let words = ["matrix", "matrices", "columns"];
    loaded(specs, widths, ("--matrix-names", words))
}

/// The same for the matrices of a model, `count` of them at least, with the names that lie beside it for those that none
/// are given for.
pub(super) fn column_names_of(
    specs: &[String],
    (model, file): (&Model, &Path),
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

/// The names in files that are given for some modes or matrices of these sizes, numbered from 1 as typed, each once.
fn loaded(
    specs: &[String],
    sizes: &[Option<u64>],
    (option, [one, many, rows]): (&str, [&str; 3]),
) -> Result<RowNames> {
    let count = sizes.len();
    let mut names = RowNames::new(count);
    for spec in specs {
        let (n, file) = mode_and_file(spec, option)?;
        let wrong = |why: String| Error::Argument(format!("{option} {spec}: {why}"));
        if n >= count {
            let there = counted(count as u64, one, many);
            let are = if count == 1 { "is" } else { "are" };
            return Err(wrong(format!("there {are} {there}")));
        }
        if names.of_mode(n).is_some() {
            let why = format!("{one} {} has names already; give one file for each", n + 1);
            return Err(wrong(why));
        }
        let found = Names::load(file)?;
        // No error: a dictionary may know more than was trained on.
        let last = found.iter().map(|(row, _)| u64::from(row) + 1).max();
        if let (Some(last), Some(size)) = (last, sizes[n])
            && last > size
        {
            complain(&format!(
                "{option} {spec}: has names up to number {}, but {one} {} has {} {rows}; is it for another {one}?",
                grouped(last),
                n + 1,
                grouped(size)
            ));
        }
        names.set(n, found)?;
    }
    Ok(names)
}

/// The files of options that have numbers before them.
pub(super) fn files_of(specs: &[String], option: &str) -> Result<Vec<PathBuf>> {
    let each = specs.iter().map(|spec| mode_and_file(spec, option));
    each.map(|found| found.map(|(_, file)| file)).collect()
}

/// What commands that print lists have in common.
#[derive(Args)]
pub(super) struct ListArguments {
    /// How many rows to list
    #[arg(short = 'k', long, value_name = "K", default_value_t = 10)]
    top: usize,

    #[command(flatten)]
    names: NameArguments,

    /// Print CSV, with a line for each row; --json prints an object for each list
    #[arg(long)]
    csv: bool,

    /// Number of threads; 0 takes all this process may use
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub threads: usize,
}

impl ListArguments {
    pub(super) fn top(&self) -> Result<usize> {
        match self.top {
            0 => Err(Error::Argument(
                "--top 0: a list of no rows; give at least 1".into(),
            )),
            k => Ok(k),
        }
    }

    /// The names that were given, and those that lie beside these files.
    pub(super) fn row_names(&self, model: &Model, beside: &[&Path]) -> Result<RowNames> {
        self.names.row_names(model, beside)
    }
}

/// Splits `MODE:WHAT`; modes count from 1 there and from 0 here.
pub(super) fn mode_and_row<'a>(
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

/// Prints lists, each of rows of one mode for rows of others.
pub(super) struct Lists<'a> {
    names: &'a RowNames,
    mode: usize,
    /// What a score is.
    score: &'a str,
    csv: bool,
    done: usize,
}

impl<'a> Lists<'a> {
    pub(super) fn new(
        a: &ListArguments,
        names: &'a RowNames,
        mode: usize,
        score: &'a str,
    ) -> Lists<'a> {
        Lists {
            names,
            mode,
            score,
            csv: a.csv,
            done: 0,
        }
    }

    /// Prints a list for these rows of these modes.
    pub(super) fn print(
        &mut self,
        of: &[(usize, u32)],
        list: &[RankedRow],
        out: &mut Output,
    ) -> Result<()> {
        if out.json {
            out.object(&self.to_json(of, list));
        } else if self.csv {
            self.print_csv(of, list, out);
        } else {
            self.print_text(of, list, out);
        }
        self.done += 1;
        match self.done.is_multiple_of(TOGETHER) {
            true => out.flush(),
            false => Ok(()),
        }
    }

    /// Written at once: a tree of values for every row would take longer than finding it.
    fn to_json(&self, of: &[(usize, u32)], list: &[RankedRow]) -> String {
        let mut text = String::from("{\"for\":[");
        let row = |text: &mut String, (mode, index): (usize, u32), what: &str, value: String| {
            let comma = if text.ends_with('[') { "" } else { "," };
            let _ = write!(text, "{comma}{{\"index\":{}", u64::from(index) + 1);
            if let Some(name) = self.names.name(mode, index) {
                let _ = write!(text, ",\"name\":{}", Value::from(name));
            }
            let _ = write!(text, ",\"{what}\":{value}}}");
        };
        for &(mode, index) in of {
            row(&mut text, (mode, index), "mode", (mode + 1).to_string());
        }
        let _ = write!(text, "],\"mode\":{},\"rows\":[", self.mode + 1);
        for r in list {
            let score = match r.score.is_finite() {
                true => format!("{:?}", r.score),
                false => "null".into(),
            };
            row(&mut text, (self.mode, r.index), self.score, score);
        }
        text + "]}"
    }

    /// Numbers and names, names only of modes that have some.
    fn print_csv(&self, of: &[(usize, u32)], list: &[RankedRow], out: &mut Output) {
        let named = |mode: usize| self.names.of_mode(mode).is_some();
        if self.done == 0 {
            let mut head = String::new();
            let mut column = |what: &str, name: bool| {
                head += &format!("{what},");
                if name {
                    head += &format!("{what}_name,");
                }
            };
            for &(mode, _) in of {
                column(&format!("mode{}", mode + 1), named(mode));
            }
            column("place", false);
            column("row", named(self.mode));
            out.line(head + self.score);
        }
        let add = |to: &mut String, mode: usize, index: u32| {
            let _ = write!(to, "{},", u64::from(index) + 1);
            if named(mode) {
                to.push_str(&quoted(self.names.name(mode, index).unwrap_or_default()));
                to.push(',');
            }
        };
        let mut given = String::new();
        for &(mode, index) in of {
            add(&mut given, mode, index);
        }
        let mut line = String::new();
        for (place, r) in list.iter().enumerate() {
            line.clear();
            let _ = write!(line, "{given}{},", place + 1);
            add(&mut line, self.mode, r.index);
            let _ = write!(line, "{}", r.score as f32);
            out.line(&line);
        }
    }

    fn print_text(&self, of: &[(usize, u32)], list: &[RankedRow], out: &mut Output) {
        let titles = of.iter().map(|&(mode, index)| {
            let number = u64::from(index) + 1;
            match self.names.name(mode, index) {
                Some(name) => format!("row {number} of mode {}, {}", mode + 1, plain(name)),
                None => format!("row {number} of mode {}", mode + 1),
            }
        });
        let title = titles.collect::<Vec<_>>().join("; ");
        let title = if title.is_empty() {
            "over all modes".into()
        } else {
            title
        };
        out.line(format!("{title}:"));
        if list.is_empty() {
            out.line("  nothing is left to list");
        }
        for (place, r) in list.iter().enumerate() {
            let line = format!(
                "  {:>3}  {:<10}  {:>8}  {}",
                place + 1,
                format!("{:.5}", r.score),
                u64::from(r.index) + 1,
                plain(self.names.name(self.mode, r.index).unwrap_or_default())
            );
            out.line(line.trim_end());
        }
    }
}

/// A field of CSV, in quotes if it needs them.
pub(super) fn quoted(field: &str) -> Cow<'_, str> {
    match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")).into(),
        false => field.into(),
    }
}
