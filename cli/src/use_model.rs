//! `s3cmtf eval`, `predict` and `export`: what a fitted model is used for.

use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::Args;
use s3cmtf::discover::{RankBy, RankingOptions, RankingReport, RowNames, evaluate_ranking};
use s3cmtf::format::{CooFile, CooView, CooWriter, Dims, OpenMode, ValueKind, Values};
use s3cmtf::model::{self, Model};
use s3cmtf::predict::{evaluate, export, predict_all, predict_spread};
use s3cmtf::{Error, Result};
use serde_json::{Value, json};

use super::input::{Mixed, TextArguments, any_text, open, same_file};
use super::output::{Output, counted, error, grouped};
use super::progress::Progress;
use super::{Verdict, mode_from_one};

/// Measure the errors of a model on a file: RMSE and MAE, clipped and not
///
/// With --rank also how good its rankings are: for each row of another mode (a user), the first rows that it has no
/// training entry with, beside those with the most training entries.
#[derive(Args)]
pub(super) struct EvalArguments {
    /// The model
    model: PathBuf,

    /// Entries with their values: binary COO, or text
    file: PathBuf,

    /// Also rank the rows of this mode: hit rate, recall and NDCG
    #[arg(long, value_name = "MODE", requires = "exclude")]
    rank: Option<usize>,

    /// How many rows of a ranking count
    #[arg(long, value_name = "K", default_value_t = 10, requires = "rank")]
    at: usize,

    /// The mode for whose rows they are ranked; by default the first other one
    #[arg(long, value_name = "MODE", requires = "rank")]
    by: Option<usize>,

    /// The training entries, whose rows are not ranked again
    #[arg(long, value_name = "FILE", requires = "rank")]
    exclude: Option<PathBuf>,

    /// The least value of a relevant entry; by default every entry is
    #[arg(
        long,
        value_name = "VALUE",
        requires = "rank",
        allow_negative_numbers = true
    )]
    relevant: Option<f64>,

    /// Rank by this quantile of the value instead of the prediction, for a model fitted with gibbs
    #[arg(long, value_name = "Q", requires = "rank")]
    quantile: Option<f64>,

    /// Number of threads; 0 takes all this process may use
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,

    #[command(flatten)]
    text: TextArguments,
}

/// Predict the cells listed in a file
///
/// Prints a line per cell: its indices, then the prediction. With -o, writes a binary COO file.
#[derive(Args)]
pub(super) struct PredictArguments {
    /// The model
    model: PathBuf,

    /// The cells: binary COO, or text (with --no-value if it has no value column)
    file: PathBuf,

    /// Write a binary COO file instead of printing
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,

    /// Do not limit predictions to the range of the training values
    #[arg(long)]
    no_clip: bool,

    /// Also print the standard deviation of the value, for a model fitted with gibbs
    #[arg(long, conflicts_with = "output")]
    deviation: bool,

    /// Also print these quantiles of the value, as in 0.05,0.95, for a model fitted with gibbs
    #[arg(
        long,
        value_name = "Q[,Q...]",
        value_delimiter = ',',
        conflicts_with = "output"
    )]
    quantiles: Vec<f64>,

    /// Number of threads; 0 takes all this process may use
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,

    #[command(flatten)]
    text: TextArguments,
}

/// Write a model as .npy files and as text in the layout of the original program
#[derive(Args)]
pub(super) struct ExportArguments {
    /// The model
    model: PathBuf,

    /// The folder to write into
    folder: PathBuf,
}

fn load(path: &Path) -> Result<Model> {
    model::load(path, OpenMode::Mapped)
}

/// Rows that have other names than those of the model are others. Text that is read by the names of a file says by
/// them which rows it means.
fn refuse_other_rows<'a>(
    model: &'a Path,
    order: usize,
    files: impl IntoIterator<Item = &'a PathBuf>,
    text: &TextArguments,
) -> Result<()> {
    if text.has_names() {
        return Ok(());
    }
    let files = files.into_iter().map(PathBuf::as_path);
    let files: Vec<&Path> = [model].into_iter().chain(files).collect();
    RowNames::check_sidecars(order, &files)
}

pub(super) fn eval(a: &EvalArguments, progress: &Progress, out: &mut Output) -> Result<Verdict> {
    let model = load(&a.model)?;
    let files = Mixed {
        options: a.text.options()?,
        any_text: any_text([&a.file].into_iter().chain(&a.exclude))?,
    };
    let file = files.open(&a.file, progress)?;
    model.check_order(&file.view())?;
    let read = [&a.file].into_iter().chain(&a.exclude);
    refuse_other_rows(&a.model, model.order(), read, &a.text)?;
    let ranking = match (a.rank, &a.exclude) {
        (Some(rank), Some(train)) => Some(ranking_of(
            a,
            (&model, rank),
            &files.open(train, progress)?,
            &file,
            progress,
        )?),
        _ => None,
    };
    let e = evaluate(&model, &file.view(), model.range(), a.threads, progress)?;
    if e.count == 0 {
        return Err(Error::Argument(format!(
            "{}: without entries there are no errors to measure",
            file.name()
        )));
    }
    out.line(format!(
        "{}: {}",
        file.name(),
        counted(e.count, "entry", "entries")
    ));
    let (low, high) = model.range();
    let clipped = format!("clipped to {low} to {high}");
    for (what, errors) in [("as they are", e.plain), (clipped.as_str(), e.clipped)] {
        out.line(format!(
            "  {what:<28}  RMSE {}  MAE {}",
            error(errors.rmse, 6),
            error(errors.mae, 6)
        ));
    }
    let mut object = json!({
        "file": file.name(),
        "count": e.count,
        "rmse": e.plain.rmse,
        "mae": e.plain.mae,
        "clipped_rmse": e.clipped.rmse,
        "clipped_mae": e.clipped.mae,
    });
    if let Some((how, report)) = ranking {
        object["ranking"] = print_ranking(&how, &report, out);
    }
    out.object(&object);
    Ok(Verdict::Good)
}

fn ranking_of(
    a: &EvalArguments,
    (model, rank): (&Model, usize),
    train: &CooFile,
    test: &CooFile,
    progress: &Progress,
) -> Result<(RankingOptions, RankingReport)> {
    let mode = mode_from_one(rank)?;
    let how = RankingOptions {
        mode,
        user_mode: a.by.map_or(Ok(usize::from(mode == 0)), mode_from_one)?,
        list_len: a.at,
        rank_by: a.quantile.map_or(RankBy::Mean, RankBy::Quantile),
        min_relevant_value: a.relevant,
        threads: a.threads,
    };
    let report = evaluate_ranking(model, &test.view(), &train.view(), &how, progress)?;
    if report.users == 0 {
        return Err(Error::Argument(format!(
            "{}: no row of mode {} has a relevant entry to be found; lower --relevant, or is it --exclude itself?",
            test.name(),
            how.user_mode + 1
        )));
    }
    Ok((how, report))
}

fn print_ranking(how: &RankingOptions, report: &RankingReport, out: &mut Output) -> Value {
    out.line(format!(
        "  rankings of mode {} for {} of mode {}, the first {}:",
        how.mode + 1,
        counted(report.users, "row", "rows"),
        how.user_mode + 1,
        grouped(how.list_len as u64)
    ));
    let mut object = json!({
        "mode": how.mode + 1,
        "by": how.user_mode + 1,
        "at": how.list_len,
        "relevant": how.min_relevant_value,
        "users": report.users,
    });
    for (what, m) in [("model", report.model), ("popularity", report.popularity)] {
        out.line(format!(
            "    {what:<12}  hit rate {:.4}  recall {:.4}  NDCG {:.4}",
            m.hit_rate, m.recall, m.ndcg
        ));
        object[what] = json!({"hit_rate": m.hit_rate, "recall": m.recall, "ndcg": m.ndcg});
    }
    object
}

/// What predictions are written as: single precision says all that is known, but of values far from 0 that differ by
/// little.
fn kind(model: &Model) -> ValueKind {
    let (low, high) = model.range();
    match high - low < 1e-3 * low.abs().max(high.abs()) {
        true => ValueKind::F64,
        false => ValueKind::F32,
    }
}

fn written(x: f64, kind: ValueKind) -> String {
    match kind {
        ValueKind::F64 => x.to_string(),
        ValueKind::F32 => (x as f32).to_string(),
    }
}

/// Takes the predictions at a range of entries.
type Take<'a> = dyn FnMut(Range<usize>, &[f64]) -> Result<()> + 'a;

pub(super) fn predict(
    a: &PredictArguments,
    progress: &Progress,
    out: &mut Output,
) -> Result<Verdict> {
    let model = load(&a.model)?;
    let kind = kind(&model);
    let file = open(&a.file, &a.text, progress)?;
    refuse_other_rows(&a.model, model.order(), [&a.file], &a.text)?;
    let view = file.view();
    let all =
        |take: &mut Take<'_>| predict_all(&model, &view, !a.no_clip, a.threads, progress, take);
    if a.deviation || !a.quantiles.is_empty() {
        return print_spread(a, &model, &view, progress, out);
    }
    let Some(path) = &a.output else {
        all(&mut |range, values| {
            for (i, x) in range.zip(values) {
                let index: Vec<u64> = (0..view.order())
                    .map(|n| u64::from(view.column(n)[i]) + 1)
                    .collect();
                if out.json {
                    out.object(&json!({"index": index, "prediction": x}));
                } else {
                    let index: Vec<String> = index.iter().map(u64::to_string).collect();
                    out.line(format!("{} {}", index.join(" "), written(*x, kind)));
                }
            }
            out.flush()
        })?;
        return Ok(Verdict::Good);
    };
    if [&a.file, &a.model]
        .into_iter()
        .any(|input| same_file(input, path))
    {
        return Err(Error::Argument(format!(
            "{} is read by this command and would be overwritten; write to another file",
            path.display()
        )));
    }
    let mut writer = CooWriter::create(path, view.order(), kind, None, Some(view.len() as u64))?;
    all(&mut |range, values| {
        let columns: Vec<&[u32]> = (0..view.order())
            .map(|n| &view.column(n)[range.clone()])
            .collect();
        writer.push(&columns, Values::F64(values), None)
    })?;
    let header = writer.finish(Dims::Stated(view.dims().to_vec()))?;
    out.line(format!(
        "{}: {} predictions",
        path.display(),
        grouped(header.count)
    ));
    out.object(&json!({"output": path.display().to_string(), "count": header.count}));
    Ok(Verdict::Good)
}

/// Prints predictions with how sure they are.
fn print_spread(
    a: &PredictArguments,
    model: &Model,
    view: &CooView<'_>,
    progress: &Progress,
    out: &mut Output,
) -> Result<Verdict> {
    let kind = kind(model);
    predict_spread(
        model,
        view,
        &a.quantiles,
        !a.no_clip,
        a.threads,
        progress,
        |range, spreads| {
            for (i, spread) in range.zip(spreads) {
                let index: Vec<u64> = (0..view.order())
                    .map(|n| u64::from(view.column(n)[i]) + 1)
                    .collect();
                if out.json {
                    out.object(&json!({
                        "index": index,
                        "prediction": spread.mean,
                        "deviation": spread.deviation,
                        "quantiles": spread.quantiles,
                    }));
                    continue;
                }
                let deviation = a.deviation.then_some(spread.deviation);
                let numbers = [spread.mean].into_iter().chain(deviation);
                let numbers = numbers.chain(spread.quantiles.iter().copied());
                let mut words: Vec<String> = index.iter().map(u64::to_string).collect();
                words.extend(numbers.map(|x| written(x, kind)));
                out.line(words.join(" "));
            }
            out.flush()
        },
    )?;
    Ok(Verdict::Good)
}

pub(super) fn export_model(
    a: &ExportArguments,
    progress: &Progress,
    out: &mut Output,
) -> Result<Verdict> {
    let files = export(&load(&a.model)?, &a.folder, progress)?;
    for file in &files {
        out.line(file.display().to_string());
    }
    out.object(
        &json!({"files": files.iter().map(|f| f.display().to_string()).collect::<Vec<_>>()}),
    );
    Ok(Verdict::Good)
}
