//! `s3cmtf similar`

use std::path::PathBuf;

use clap::Args;
use s3cmtf::Result;
use s3cmtf::discover::{SimilarOptions, similar_rows};
use s3cmtf::format::OpenMode;
use s3cmtf::model;

use crate::outcome::Outcome;
use crate::output::Output;
use crate::progress::Progress;
use crate::row_lists::{ListArguments, ListPrinter};
use crate::row_names::mode_and_row;

/// List the rows of a mode that are most similar to given rows
///
/// The similarity of two rows is the cosine of their predictions over all cells, without biases. It does not depend on
/// the scale of the core or of factor columns. Rows without tensor entries are left out. A row is given by its name or number
/// (#12 is always a number, =12 always a name); several rows by a range of numbers (2:1-100), all (2:all), or a file with
/// one row per line (2:@FILE).
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    s3cmtf similar model.s3m --for 2:1 --names 2:movies.tsv\n  \
    s3cmtf similar model.s3m --for \"2:Toy Story (1995)\" --top 20 --names 2:movies.tsv\n  \
    s3cmtf similar model.s3m --for 2:all --csv > similar.csv")]
pub(crate) struct Arguments {
    /// Model file
    model: PathBuf,

    /// Row whose neighbours are listed, by name or number
    #[arg(long = "for", value_name = "MODE:ROW")]
    row: String,

    #[command(flatten)]
    list: ListArguments,
}

pub(super) fn run(a: &Arguments, progress: &Progress, out: &mut Output) -> Result<Outcome> {
    let model = model::load(&a.model, OpenMode::Mapped)?;
    let names = a.list.row_names(&model, &a.model, &[])?;
    let (mode, row) = mode_and_row(&a.row, "--for ", &model)?;
    let rows = names.select(mode, row, &model.modes()[mode].rows)?;
    let options = SimilarOptions {
        mode,
        top: a.list.top()?,
        threads: a.list.threads,
    };
    let mut lists = ListPrinter::new(&a.list, &names, mode, "cosine");
    similar_rows(&model, &rows, &options, progress, |q, list| {
        lists.print(&[(mode, rows[q])], list, out)
    })?;
    Ok(Outcome::Success)
}
