//! `s3cmtf concepts`

use std::path::PathBuf;

use clap::Args;
use s3cmtf::discover::{
    Association, Concept, ConceptOptions, Concepts, RankedRow, RowNames, describe_concepts,
};
use s3cmtf::format::OpenMode;
use s3cmtf::model::{self, Model};
use s3cmtf::{Error, Result};
use serde_json::{Value, json};

use crate::input::mode_from_one;
use crate::outcome::Outcome;
use crate::output::{Output, format_number, printable};
use crate::progress::Progress;
use crate::row_names::{
    NameArguments, column_names_of_model, id_or_number, mode_and_row, row_json,
};

/// Number of strongest and of weakest concepts printed with `--for` by default.
const DEFAULT_ENDS: usize = 2;

/// Describe the columns of a factor (concepts), and their effect on the predictions for a row
///
/// The strength of a concept is the root mean square of its contribution to predictions; with --for, to those of that
/// row. A loading is an entry of its column, divided by the root mean square of the column. Concepts are identified best in
/// a model fitted with --nonneg or --model cp; in a Tucker model they are determined only up to a rotation.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    s3cmtf concepts model.s3m --mode 2 --names 2:movies.tsv\n  \
    s3cmtf concepts model.s3m --mode 2 --for 1:17 --top 3 --min-entries 20")]
pub(crate) struct Arguments {
    /// Model file
    model: PathBuf,

    /// Mode whose concepts are described
    #[arg(long, value_name = "MODE")]
    mode: usize,

    /// Row of another mode, by name or number; other modes are averaged over
    #[arg(long = "for", value_name = "MODE:ROW")]
    rows: Vec<String>,

    /// Number of rows and matrix columns to list at either end of a concept
    #[arg(short = 'n', long, value_name = "N", default_value_t = 5)]
    top: usize,

    /// Print the N strongest and the N weakest concepts [default: all; 2 with --for]
    #[arg(long, value_name = "N")]
    ends: Option<usize>,

    /// List only rows with at least N tensor entries
    #[arg(long, value_name = "N", default_value_t = 1)]
    min_entries: u64,

    #[command(flatten)]
    names: NameArguments,

    /// File of column names of matrix N, numbered as by `info` [default: files beside the model]
    #[arg(long, value_name = "N:FILE")]
    matrix_names: Vec<String>,
}

pub(super) fn run(a: &Arguments, progress: &Progress, out: &mut Output) -> Result<Outcome> {
    let model = model::load(&a.model, OpenMode::Mapped)?;
    let names = a.names.row_names(&model, &a.model, &[])?;
    let columns = column_names_of_model(&a.matrix_names, &model, &a.model, 0)?;
    let mut given = Vec::new();
    for spec in &a.rows {
        let (n, row) = mode_and_row(spec, "--for ", &model)?;
        given.push((n, names.find(n, row, &model.modes()[n].rows)?));
    }
    let options = ConceptOptions {
        mode: mode_from_one(a.mode)?,
        given,
        top: a.top,
        min_entries: a.min_entries,
    };
    let found = describe_concepts(&model, &options, progress)?;
    let all = found.concepts.len();
    let ends = match (a.ends, options.given.is_empty()) {
        (Some(0), _) => {
            return Err(Error::Argument(
                "--ends 0: at least 1 concept must be printed".into(),
            ));
        }
        (Some(ends), _) => ends,
        (None, true) => all,
        // With --json all are printed; the reader can filter.
        (None, false) if out.json => all,
        (None, false) => DEFAULT_ENDS,
    };
    let printer = ConceptPrinter {
        model: &model,
        names: &names,
        columns: &columns,
    };
    let is_shown = |place: usize| place < ends || place + ends >= all;
    if out.json {
        out.object(&printer.to_json(&options, &found, is_shown));
        return Ok(Outcome::Success);
    }
    out.line(printer.title(&options));
    for (place, concept) in found.concepts.iter().enumerate() {
        if is_shown(place) {
            printer.print(options.mode, place, concept, out);
        } else if place == ends {
            out.line(format!("  ... {} omitted ...", all - 2 * ends));
        }
    }
    Ok(Outcome::Success)
}

/// Prints concepts as text or JSON.
struct ConceptPrinter<'a> {
    model: &'a Model,
    names: &'a RowNames,
    columns: &'a RowNames,
}

impl ConceptPrinter<'_> {
    fn title(&self, options: &ConceptOptions) -> String {
        let of = format!("concepts of mode {}", options.mode + 1);
        let rows = options.given.iter().map(|&(n, row)| {
            let number = id_or_number(self.names, n, row);
            match self.names.name(n, row) {
                Some(name) => format!("row {number} of mode {}, {}", n + 1, printable(name)),
                None => format!("row {number} of mode {}", n + 1),
            }
        });
        if options.given.is_empty() {
            format!("{of}, the strongest first:")
        } else {
            format!("{of} for {}:", rows.collect::<Vec<_>>().join("; "))
        }
    }

    fn to_json(
        &self,
        options: &ConceptOptions,
        found: &Concepts,
        is_shown: impl Fn(usize) -> bool,
    ) -> Value {
        let mode = options.mode;
        let rows = |list: &[RankedRow]| -> Vec<Value> {
            let each = list.iter().map(|r| {
                let mut row = row_json(self.names, mode, r.index);
                row["loading"] = r.score.into();
                row
            });
            each.collect()
        };
        let columns = |list: &[Association]| -> Vec<Value> {
            let each = list.iter().map(|a| {
                let mut column = row_json(self.columns, a.matrix, a.column);
                column["matrix"] = (a.matrix + 1).into();
                column["contribution"] = a.contribution.into();
                column
            });
            each.collect()
        };
        let concepts = found.concepts.iter().enumerate();
        let concepts = concepts
            .filter(|(place, _)| is_shown(*place))
            .map(|(_, c)| {
                json!({
                    "concept": c.column + 1,
                    "strength": c.strength,
                    "effect": c.effect,
                    "sign_flipped": c.sign_flipped,
                    "largest": rows(&c.largest),
                    "smallest": rows(&c.smallest),
                    "positive": columns(&c.positive),
                    "negative": columns(&c.negative),
                })
            });
        let given = options.given.iter().map(|&(n, row)| {
            let mut row = row_json(self.names, n, row);
            row["mode"] = (n + 1).into();
            row
        });
        let profile = found.profile.as_ref().map(|p| {
            let rows: Vec<&[f64]> = p.values.chunks_exact(p.columns).collect();
            json!({"mode": p.mode + 1, "rows": rows})
        });
        json!({
            "for": given.collect::<Vec<_>>(),
            "mode": mode + 1,
            "concepts": concepts.collect::<Vec<_>>(),
            "profile": profile,
        })
    }

    fn print(&self, mode: usize, place: usize, concept: &Concept, out: &mut Output) {
        out.line(format!(
            "  {}. concept {}: strength {}, effect {}",
            place + 1,
            concept.column + 1,
            format_number(concept.strength),
            format_number(concept.effect)
        ));
        let columns = |list: &[Association]| -> String {
            let several = self.model.matrices().len() > 1;
            let each = list.iter().map(|a| {
                let label = self.columns.display_name(a.matrix, a.column);
                let label = if several && self.columns.of_mode(a.matrix).is_none() {
                    format!("matrix {} column {label}", a.matrix + 1)
                } else {
                    label
                };
                format!("{} {:+.2}", printable(&label), a.contribution)
            });
            each.collect::<Vec<_>>().join(", ")
        };
        if !concept.positive.is_empty() {
            out.line(format!("     with     {}", columns(&concept.positive)));
            out.line(format!("     against  {}", columns(&concept.negative)));
        }
        let ends = [("large", &concept.largest), ("small", &concept.smallest)];
        for (end, list) in ends {
            for (k, r) in list.iter().enumerate() {
                let line = format!(
                    "     {:<7}  {:>+8.3}  {:>8}  {}",
                    if k == 0 { end } else { "" },
                    r.score,
                    id_or_number(self.names, mode, r.index),
                    printable(self.names.name(mode, r.index).unwrap_or_default())
                );
                out.line(line.trim_end());
            }
        }
    }
}
