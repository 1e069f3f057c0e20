//! `s3cmtf similar`

use std::path::PathBuf;

use clap::Args;
use s3cmtf::Result;
use s3cmtf::discover::{SimilarOptions, similar_rows};
use s3cmtf::format::OpenMode;
use s3cmtf::model;

use super::Verdict;
use super::lists::{ListArguments, Lists, mode_and_row};
use super::output::Output;
use super::progress::Progress;

/// List the rows of a mode that are most like some of its rows
///
/// Rows are as alike as what they predict: cosines are those of the predictions over all cells, without biases, so
/// that the scale of a core or of columns does not matter. Rows without tensor entries are left out.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    s3cmtf similar model.s3m 2:1 --names 2:movies.tsv\n  \
    s3cmtf similar model.s3m \"2:Toy Story (1995)\" -k 20 --names 2:movies.tsv\n  \
    s3cmtf similar model.s3m 2:all --csv > alike.csv")]
pub(super) struct Arguments {
    /// The model
    model: PathBuf,

    /// The row, by name or number (#12 is a number in any case, =12 a name); or many: a range of numbers (2:1-100),
    /// 2:all, or 2:@FILE with a row in each line
    #[arg(value_name = "MODE:ROW")]
    row: String,

    #[command(flatten)]
    list: ListArguments,
}

pub(super) fn run(a: &Arguments, progress: &Progress, out: &mut Output) -> Result<Verdict> {
    let model = model::load(&a.model, OpenMode::Mapped)?;
    let names = a.list.row_names(&model, &[a.model.as_path()])?;
    let (mode, row) = mode_and_row(&a.row, "", &model)?;
    let rows = names.select(mode, row, &model.modes()[mode].rows)?;
    let how = SimilarOptions {
        mode,
        top: a.list.top()?,
        threads: a.list.threads,
    };
    let mut lists = Lists::new(&a.list, &names, mode, "cosine");
    similar_rows(&model, &rows, &how, progress, |q, list| {
        lists.print(&[(mode, rows[q])], list, out)
    })?;
    Ok(Verdict::Good)
}
