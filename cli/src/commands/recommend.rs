//! `s3cmtf recommend`

use std::path::{Path, PathBuf};

use clap::Args;
use s3cmtf::discover::{AVERAGE_ROW, ObservedPairs, RankBy, RecommendOptions, recommend};
use s3cmtf::format::OpenMode;
use s3cmtf::model;
use s3cmtf::{Error, Result};

use crate::input::mode_from_one;
use crate::input::{InputFormat, MatchedFile, VerifyArguments};
use crate::outcome::Outcome;
use crate::output::{Output, format_count, format_dims, format_integer, print_warning};
use crate::progress::Progress;
use crate::row_lists::{ListArguments, ListPrinter};
use crate::row_names::mode_and_row;

/// List the rows of a mode with the largest predictions
///
/// Scores are predictions, not clipped to the range of the training values. Modes without a given row are averaged over.
/// A row is given by its name or number (#12 is always a number, =12 always a name). One mode may have several rows: repeat
/// --for, or give a range of numbers (1:1-100), all (1:all), or a file with one row per line (1:@FILE).
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    s3cmtf recommend model.s3m --mode 2 --for 1:17 --exclude train.coo --names 2:movies.tsv\n  \
    s3cmtf recommend model.s3m --mode 2 --for 1:17 --for 3:5 --top 20 --only new-films.txt\n  \
    s3cmtf recommend model.s3m --mode 2 --for 1:all --exclude train.coo --csv > lists.csv")]
pub(crate) struct Arguments {
    /// Model file
    model: PathBuf,

    /// Mode whose rows are ranked
    #[arg(long, value_name = "MODE")]
    mode: usize,

    /// Row of another mode to recommend for, by name or number; may be repeated
    #[arg(long = "for", value_name = "MODE:ROW")]
    rows: Vec<String>,

    /// Leave out rows that have an entry with the row of --for in this file, such as the training data
    #[arg(long, value_name = "FILE")]
    exclude: Vec<PathBuf>,

    /// Mode whose row selects the excluded entries [default: that of the first --for]
    #[arg(long, value_name = "MODE", requires = "exclude")]
    exclude_by: Option<usize>,

    /// Rank only the rows in this file, one name or number per line
    #[arg(long, value_name = "FILE")]
    only: Option<PathBuf>,

    /// Leave out the rows in this file, one name or number per line
    #[arg(long, value_name = "FILE")]
    not: Option<PathBuf>,

    /// Rank by this predictive quantile, 0 to 1, instead of the mean (gibbs models)
    #[arg(long, value_name = "Q")]
    quantile: Option<f64>,

    #[command(flatten)]
    list: ListArguments,

    #[command(flatten)]
    verify: VerifyArguments,
}

pub(super) fn run(a: &Arguments, progress: &Progress, out: &mut Output) -> Result<Outcome> {
    let model = model::load(&a.model, OpenMode::Mapped)?;
    let mode = mode_from_one(a.mode)?;
    if mode >= model.order() {
        return Err(Error::Argument(format!(
            "--mode {}: the model has {} modes",
            a.mode,
            model.order()
        )));
    }
    let named_files: Vec<&Path> = a.exclude.iter().map(PathBuf::as_path).collect();
    let names = a.list.row_names(&model, &a.model, &named_files)?;
    // The modes with given rows in the order typed, each with its rows.
    let mut given: Vec<(usize, Vec<u32>)> = Vec::new();
    for spec in &a.rows {
        let (n, row) = mode_and_row(spec, "--for ", &model)?;
        if n == mode {
            return Err(Error::Argument(format!(
                "--for {spec}: the rows of this mode are ranked; give rows of others"
            )));
        }
        let mut rows = names.select(n, row, &model.modes()[n].rows)?;
        match given.iter_mut().find(|(m, _)| *m == n) {
            Some((_, earlier)) => earlier.append(&mut rows),
            None => given.push((n, rows)),
        }
    }
    let with_several: Vec<usize> = (0..given.len())
        .filter(|&g| given[g].1.len() != 1)
        .collect();
    if with_several.len() > 1 {
        return Err(Error::Argument(format!(
            "--for: several rows of mode {} and of mode {}; only one mode may have several",
            given[with_several[0]].0 + 1,
            given[with_several[1]].0 + 1
        )));
    }
    let count = with_several.first().map_or(1, |&g| given[g].1.len());
    let row = |g: usize, q: usize| match given[g].1[..] {
        [one] => one,
        ref rows => rows[q],
    };
    let index = |q: usize, cell: &mut [u32]| {
        cell.fill(AVERAGE_ROW);
        (0..given.len()).for_each(|g| cell[given[g].0] = row(g, q));
    };
    let format = InputFormat::of(&a.exclude, a.verify)?;
    let mut matcher = model.row_matcher(&a.model)?;
    let files = a
        .exclude
        .iter()
        .map(|file| format.open_entries(file, &mut matcher, progress))
        .collect::<Result<Vec<MatchedFile>>>()?;
    let exclude_by = match (files.is_empty(), a.exclude_by, given.first()) {
        (true, ..) => None,
        (false, Some(by), _) => Some(mode_from_one(by)?),
        (false, None, Some((by, _))) => Some(*by),
        (false, None, None) => {
            return Err(Error::Argument(
                "--exclude: no row selects the entries to exclude; give one with --for".into(),
            ));
        }
    };
    if let Some(by) = exclude_by.filter(|by| given.iter().all(|(n, _)| n != by)) {
        return Err(Error::Argument(format!(
            "--exclude-by {}: no row of that mode is given with --for",
            by + 1
        )));
    }
    let seen = exclude_by.map(|by| {
        let views: Vec<_> = files.iter().map(MatchedFile::view).collect();
        views.iter().try_for_each(|view| model.check_order(view))?;
        let dims = model.dims();
        for view in files.iter().map(|file| file.file.view()) {
            let beyond = |&n: &usize| view.dims()[n] > dims[n];
            if (0..dims.len()).any(|n| beyond(&n)) {
                print_warning(&format!(
                    "{} is {}, but the model is {}; does it belong to other data?",
                    view.name(),
                    format_dims(view.dims()),
                    format_dims(&dims)
                ));
            }
        }
        ObservedPairs::new(&views, by, mode)
    });
    let seen = seen.transpose()?;
    let rows = &model.modes()[mode].rows;
    let read_rows = |file: &Option<PathBuf>| {
        let read = file.as_ref().map(|f| names.read_list(mode, f, rows));
        read.transpose()
    };
    let (only, without) = (read_rows(&a.only)?, read_rows(&a.not)?.unwrap_or_default());
    if let (Some(file), Some(only)) = (&a.only, &only) {
        let unknown = || only.iter().filter(|&&i| rows.compact(i).is_none());
        if let Some(&first) = unknown().next() {
            print_warning(&format!(
                "{}: the model does not have {} of the {} and cannot rank them; the first is row {}",
                file.display(),
                format_integer(unknown().count() as u64),
                format_count(only.len() as u64, "row", "rows"),
                u64::from(first) + 1
            ));
        }
    }
    let options = RecommendOptions {
        rank_by: a.quantile.map_or(RankBy::Mean, RankBy::Quantile),
        exclude_observed: seen.as_ref(),
        candidates: only.as_deref(),
        exclude: &without,
        threads: a.list.threads,
        ..RecommendOptions::new(mode, a.list.top()?)
    };
    let mut lists = ListPrinter::new(&a.list, &names, mode, "score");
    recommend(&model, count, index, &options, progress, |q, list| {
        let rows: Vec<(usize, u32)> = (0..given.len()).map(|g| (given[g].0, row(g, q))).collect();
        lists.print(&rows, list, out)
    })?;
    Ok(Outcome::Success)
}
