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

use super::lists::{NameArguments, column_names_of, mode_and_row, row_json};
use super::output::{Output, number, plain};
use super::{Verdict, mode_from_one};

/// Strongest and weakest concepts that are printed for somebody, if nothing is said.
const ENDS: usize = 2;

/// Say what the columns of a factor stand for, and how much each matters to somebody
///
/// The strength of a concept is the root mean square of what it adds to predictions; with --for, to those for that
/// row. A loading is a number of its column, over the root mean square of them all. Columns mean most in a model fitted
/// with --nonneg or --model cp; in others they may be turned at will.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    s3cmtf concepts model.s3m 2 --names 2:movies.tsv --matrix-names 1:genres.tsv\n  \
    s3cmtf concepts model.s3m 2 --for 1:17 --names 2:movies.tsv --matrix-names 1:genres.tsv")]
pub(super) struct Arguments {
    /// The model
    model: PathBuf,

    /// The mode whose concepts are described
    mode: usize,

    /// For whom: a row of another mode, by name or number (#12 is a number in any case, =12 a name). Modes that no row is
    /// given of are averaged over
    #[arg(long = "for", value_name = "MODE:ROW")]
    rows: Vec<String>,

    /// How many rows and columns of matrices to list at either end of a concept
    #[arg(short = 'k', long, value_name = "K", default_value_t = 5)]
    top: usize,

    /// Print so many of the strongest concepts and of the weakest; by default all, and 2 of each with --for
    #[arg(long, value_name = "N")]
    ends: Option<usize>,

    /// List only rows with at least so many tensor entries
    #[arg(long, value_name = "N", default_value_t = 1)]
    least: u64,

    #[command(flatten)]
    names: NameArguments,

    /// Names of the columns of a coupled matrix, which are numbered as `info` does: an index and a name in each line.
    /// Those that `fit` and `demo` left beside the model are found without
    #[arg(long, value_name = "N:FILE")]
    matrix_names: Vec<String>,
}

pub(super) fn run(a: &Arguments, out: &mut Output) -> Result<Verdict> {
    let model = model::load(&a.model, OpenMode::Mapped)?;
    let names = a.names.row_names(&model, &[a.model.as_path()])?;
    let columns = column_names_of(&a.matrix_names, (&model, &a.model), 0)?;
    let mut given = Vec::new();
    for spec in &a.rows {
        let (n, row) = mode_and_row(spec, "--for ", &model)?;
        given.push((n, names.find(n, row, &model.modes()[n].rows)?));
    }
    let how = ConceptOptions {
        mode: mode_from_one(a.mode)?,
        given,
        top: a.top,
        min_entries: a.least,
    };
    let found = describe_concepts(&model, &how)?;
    let all = found.concepts.len();
    let ends = match (a.ends, how.given.is_empty()) {
        (Some(0), _) => {
            return Err(Error::Argument(
                "--ends 0: no concepts; give at least 1".into(),
            ));
        }
        (Some(ends), _) => ends,
        (None, true) => all,
        // Programs can leave out what they do not want.
        (None, false) if out.json => all,
        (None, false) => ENDS,
    };
    let shown = Shown {
        model: &model,
        names: &names,
        columns: &columns,
    };
    let listed = |place: usize| place < ends || place + ends >= all;
    if out.json {
        out.object(&shown.to_json(&how, &found, listed));
        return Ok(Verdict::Good);
    }
    out.line(shown.title(&how));
    for (place, concept) in found.concepts.iter().enumerate() {
        if listed(place) {
            shown.print(how.mode, place, concept, out);
        } else if place == ends {
            out.line(format!("  ... {} between ...", all - 2 * ends));
        }
    }
    Ok(Verdict::Good)
}

struct Shown<'a> {
    model: &'a Model,
    names: &'a RowNames,
    columns: &'a RowNames,
}

impl Shown<'_> {
    fn title(&self, how: &ConceptOptions) -> String {
        let of = format!("concepts of mode {}", how.mode + 1);
        let each = how.given.iter().map(|&(n, row)| {
            let number = u64::from(row) + 1;
            match self.names.name(n, row) {
                Some(name) => format!("row {number} of mode {}, {}", n + 1, plain(name)),
                None => format!("row {number} of mode {}", n + 1),
            }
        });
        match how.given.is_empty() {
            true => format!("{of}, the strongest first:"),
            false => format!("{of} for {}:", each.collect::<Vec<_>>().join("; ")),
        }
    }

    fn to_json(
        &self,
        how: &ConceptOptions,
        found: &Concepts,
        listed: impl Fn(usize) -> bool,
    ) -> Value {
        let mode = how.mode;
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
                column["share"] = a.contribution.into();
                column
            });
            each.collect()
        };
        let concepts = found.concepts.iter().enumerate();
        let concepts = concepts.filter(|(place, _)| listed(*place)).map(|(_, c)| {
            json!({
                "concept": c.column + 1,
                "strength": c.strength,
                "effect": c.effect,
                "turned": c.sign_flipped,
                "largest": rows(&c.largest),
                "smallest": rows(&c.smallest),
                "with": columns(&c.positive),
                "against": columns(&c.negative),
            })
        });
        let given = how.given.iter().map(|&(n, row)| {
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
            number(concept.strength),
            number(concept.effect)
        ));
        let columns = |list: &[Association]| -> String {
            let several = self.model.matrices().len() > 1;
            let each = list.iter().map(|a| {
                let label = self.columns.display_name(a.matrix, a.column);
                let label = match several && self.columns.of_mode(a.matrix).is_none() {
                    true => format!("matrix {} column {label}", a.matrix + 1),
                    false => label,
                };
                format!("{} {:+.2}", plain(&label), a.contribution)
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
                    u64::from(r.index) + 1,
                    plain(self.names.name(mode, r.index).unwrap_or_default())
                );
                out.line(line.trim_end());
            }
        }
    }
}
