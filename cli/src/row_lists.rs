//! Prints ranked lists of rows with their scores, as text, CSV or JSON.

use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;

use clap::Args;
use s3cmtf::discover::{RankedRow, RowNames};
use s3cmtf::model::Model;
use s3cmtf::{Error, Result};
use serde_json::Value;

use crate::output::{Output, printable};
use crate::row_names::{NameArguments, id_or_number};

/// Lists between two writes to standard output.
const LISTS_PER_FLUSH: usize = 64;

/// Arguments of the commands that print lists of rows.
#[derive(Args)]
pub(crate) struct ListArguments {
    /// Number of rows to list
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    top: usize,

    #[command(flatten)]
    names: NameArguments,

    /// Print CSV, one line per row; --json prints one object per list
    #[arg(long)]
    csv: bool,

    /// Number of threads; 0: all available cores
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub threads: usize,
}

impl ListArguments {
    /// Returns the length of the lists.
    pub(crate) fn top(&self) -> Result<usize> {
        match self.top {
            0 => Err(Error::Argument(
                "--top 0: a list must have at least 1 row".into(),
            )),
            k => Ok(k),
        }
    }

    /// Loads the names given by `--names`, and those stored beside the files for modes without.
    pub(crate) fn row_names(&self, model: &Model, path: &Path, data: &[&Path]) -> Result<RowNames> {
        self.names.row_names(model, path, data)
    }
}

/// Prints lists of rows of one mode, each for rows of other modes.
pub(crate) struct ListPrinter<'a> {
    names: &'a RowNames,
    mode: usize,
    /// The name of the score: a column of CSV and a key of JSON.
    score: &'a str,
    csv: bool,
    /// Number of lists printed.
    printed: usize,
}

impl<'a> ListPrinter<'a> {
    pub(crate) fn new(
        a: &ListArguments,
        names: &'a RowNames,
        mode: usize,
        score: &'a str,
    ) -> ListPrinter<'a> {
        ListPrinter {
            names,
            mode,
            score,
            csv: a.csv,
            printed: 0,
        }
    }

    /// Prints the list for the rows `given`, each as mode and index.
    pub(crate) fn print(
        &mut self,
        given: &[(usize, u32)],
        list: &[RankedRow],
        out: &mut Output,
    ) -> Result<()> {
        if out.json {
            out.object(&self.to_json(given, list));
        } else if self.csv {
            self.print_csv(given, list, out);
        } else {
            self.print_text(given, list, out);
        }
        self.printed += 1;
        if self.printed.is_multiple_of(LISTS_PER_FLUSH) {
            out.flush()
        } else {
            Ok(())
        }
    }

    /// Formats the list directly: building a tree of JSON values per row takes longer than ranking it.
    fn to_json(&self, given: &[(usize, u32)], list: &[RankedRow]) -> String {
        let mut text = String::from("{\"for\":[");
        let add_row = |text: &mut String, mode: usize, index: u32, key: &str, value: String| {
            let comma = if text.ends_with('[') { "" } else { "," };
            let _ = write!(text, "{comma}{{\"index\":{}", u64::from(index) + 1);
            if let Some(id) = self.names.id(mode, index) {
                let _ = write!(text, ",\"id\":{}", Value::from(id));
            }
            if let Some(name) = self.names.name(mode, index) {
                let _ = write!(text, ",\"name\":{}", Value::from(name));
            }
            let _ = write!(text, ",\"{key}\":{value}}}");
        };
        for &(mode, index) in given {
            add_row(&mut text, mode, index, "mode", (mode + 1).to_string());
        }
        let _ = write!(text, "],\"mode\":{},\"rows\":[", self.mode + 1);
        for r in list {
            let score = if r.score.is_finite() {
                format!("{:?}", r.score)
            } else {
                "null".into()
            };
            add_row(&mut text, self.mode, r.index, self.score, score);
        }
        text + "]}"
    }

    /// Prints indices from 1, and ids and names for the modes that have them.
    fn print_csv(&self, given: &[(usize, u32)], list: &[RankedRow], out: &mut Output) {
        if self.printed == 0 {
            let mut head = String::new();
            for &(mode, _) in given {
                let title = format!("mode{}", mode + 1);
                let labels = csv_label_columns(self.names, mode, &title);
                let _ = write!(head, "{title},{labels}");
            }
            let labels = csv_label_columns(self.names, self.mode, "row");
            out.line(format!("{head}place,row,{labels}{}", self.score));
        }
        let mut query = String::new();
        for &(mode, index) in given {
            let labels = csv_labels(self.names, mode, index);
            let _ = write!(query, "{},{labels}", u64::from(index) + 1);
        }
        let mut lines = String::new();
        for (place, r) in list.iter().enumerate() {
            let (place, row) = (place + 1, u64::from(r.index) + 1);
            let labels = csv_labels(self.names, self.mode, r.index);
            let score = r.score as f32;
            let _ = writeln!(lines, "{query}{place},{row},{labels}{score}");
        }
        out.data_lines(&lines);
    }

    fn print_text(&self, given: &[(usize, u32)], list: &[RankedRow], out: &mut Output) {
        let titles = given.iter().map(|&(mode, index)| {
            let number = id_or_number(self.names, mode, index);
            match self.names.name(mode, index) {
                Some(name) => format!("row {number} of mode {}, {}", mode + 1, printable(name)),
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
            out.line("  no rows remain to be listed");
        }
        for (place, r) in list.iter().enumerate() {
            let row = id_or_number(self.names, self.mode, r.index);
            let (place, score) = (place + 1, format!("{:.5}", r.score));
            let mut line = format!("  {place:>3}  {score:<10}  {row:>8}");
            if let Some(name) = self.names.name(self.mode, r.index) {
                line.push_str("  ");
                line.push_str(&printable(name));
            }
            out.line(line);
        }
    }
}

/// Returns the CSV columns with the ids and the names of a mode that has them, each followed by a comma.
pub(crate) fn csv_label_columns(names: &RowNames, mode: usize, title: &str) -> String {
    let mut columns = String::new();
    if names.has_ids(mode) {
        let _ = write!(columns, "{title}_id,");
    }
    if names.of_mode(mode).is_some() {
        let _ = write!(columns, "{title}_name,");
    }
    columns
}

/// Returns the fields of a row in the columns of [`csv_label_columns`].
pub(crate) fn csv_labels(names: &RowNames, mode: usize, index: u32) -> String {
    let mut fields = String::new();
    if names.has_ids(mode) {
        fields.push_str(&csv_field(names.id(mode, index).unwrap_or_default()));
        fields.push(',');
    }
    if names.of_mode(mode).is_some() {
        fields.push_str(&csv_field(names.name(mode, index).unwrap_or_default()));
        fields.push(',');
    }
    fields
}

/// Returns a CSV field, quoted if it contains separators, quotes or line ends.
fn csv_field(field: &str) -> Cow<'_, str> {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\"")).into()
    } else {
        field.into()
    }
}
