//! `s3cmtf eval`

use std::path::PathBuf;

use clap::Args;
use s3cmtf::discover::{RankBy, RankingOptions, RankingReport, evaluate_ranking};
use s3cmtf::format::OpenMode;
use s3cmtf::model::{self, Model};
use s3cmtf::options::ExternalAlgorithm;
use s3cmtf::predict::{
    DistributionEvaluation, DistributionScores, evaluate, evaluate_distributions,
};
use s3cmtf::{Error, Result};
use serde_json::{Value, json};

use crate::input::{
    InputFormat, MatchedFile, TextArguments, VerifyArguments, any_text, mode_from_one,
};
use crate::outcome::Outcome;
use crate::output::{Output, format_count, format_error, format_integer};
use crate::progress::Progress;

/// Measure the errors of a model on a file: RMSE and MAE, clipped and unclipped
///
/// For entries with exactly two values, such as 0 and 1, also the AUC (area under the ROC curve) and the log loss. The
/// predicted probability of the larger value is where the prediction lies between the two.
///
/// For models with posterior samples (gibbs) also scores of the predictive distributions, all better if lower, and the
/// coverage of the central 50% and 90% intervals, also by the number of training entries of the shortest row of an entry.
/// Discrete values, such as ratings or counts, are scored by the probability of their level: 2 to 32 distinct values, or up to 4,096
/// that occur 20 times on average.
///
/// With --mode also ranking metrics (hit rate, recall, NDCG): the rows of that mode are ranked for each row of another mode (a
/// user), without the training entries of that user, and compared with a ranking by popularity.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    s3cmtf eval model.s3m test.coo\n  \
    s3cmtf eval model.s3m test.coo --mode 2 --exclude train.coo --relevant 4\n  \
    s3cmtf eval model.s3m test.coo --mode 2 --for 1 --top 20 --exclude train.coo --json")]
pub(crate) struct Arguments {
    /// Model file
    model: PathBuf,

    /// Test entries: binary COO, or text
    file: PathBuf,

    /// Also evaluate rankings of the rows of this mode
    #[arg(long, value_name = "MODE", requires = "exclude")]
    mode: Option<usize>,

    /// Mode whose rows (users) the rankings are for [default: the first other mode]
    #[arg(long = "for", value_name = "MODE", requires = "mode")]
    users: Option<usize>,

    /// Length of the rankings (the K of recall@K)
    #[arg(
        short = 'n',
        long,
        value_name = "N",
        default_value_t = 10,
        requires = "mode"
    )]
    top: usize,

    /// Training entries, whose rows are left out of the rankings of their user
    #[arg(long, value_name = "FILE", requires = "mode")]
    exclude: Option<PathBuf>,

    /// Smallest value of a relevant entry [default: every entry is relevant]
    #[arg(
        long,
        value_name = "VALUE",
        requires = "mode",
        allow_negative_numbers = true
    )]
    relevant: Option<f64>,

    /// Rank by this predictive quantile, 0 to 1, instead of the mean (gibbs models)
    #[arg(long, value_name = "Q", requires = "mode")]
    quantile: Option<f64>,

    /// Number of threads; 0: all available cores
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,

    #[command(flatten)]
    text: TextArguments,

    #[command(flatten)]
    verify: VerifyArguments,
}

pub(super) fn run(
    a: &Arguments,
    algorithms: &'static [&'static ExternalAlgorithm],
    progress: &Progress,
    out: &mut Output,
) -> Result<Outcome> {
    let model = model::load_with(&a.model, OpenMode::Mapped, algorithms)?;
    let format = InputFormat {
        options: a.text.options()?,
        any_text: any_text([&a.file].into_iter().chain(&a.exclude))?,
        verify: a.verify,
    };
    let mut matcher = model.row_matcher(&a.model)?;
    let file = format.open_entries(&a.file, &mut matcher, progress)?;
    model.check_order(&file.view())?;
    let ranking = match (a.mode, &a.exclude) {
        (Some(mode), Some(train)) => Some(evaluate_ranking_of(
            a,
            &model,
            mode_from_one(mode)?,
            &format.open_entries(train, &mut matcher, progress)?,
            &file,
            progress,
        )?),
        _ => None,
    };
    let e = evaluate(&model, &file.view(), model.range(), a.threads, progress)?;
    if e.count == 0 {
        return Err(Error::Argument(format!(
            "{}: has no entries to measure errors on",
            file.file.name()
        )));
    }
    out.line(format!(
        "{}: {}",
        file.file.name(),
        format_count(e.count, "entry", "entries")
    ));
    let range = model.range();
    let clipped = format!("clipped to {} to {}", range.min, range.max);
    let kinds = [
        ("unclipped", e.unclipped, !model.clips()),
        (clipped.as_str(), e.clipped, model.clips()),
    ];
    for (kind, errors, is_default) in kinds {
        out.line(format!(
            "  {kind:<28}  RMSE {}  MAE {}{}",
            format_error(errors.rmse, 6),
            format_error(errors.mae, 6),
            if is_default {
                "  (default of predict)"
            } else {
                ""
            }
        ));
    }
    let mut object = json!({
        "file": file.file.name(),
        "count": e.count,
        "rmse": e.unclipped.rmse,
        "mae": e.unclipped.mae,
        "clipped_rmse": e.clipped.rmse,
        "clipped_mae": e.clipped.mae,
        "clipped": model.clips(),
        "range": [range.min, range.max],
    });
    if let Some(binary) = &e.binary {
        out.line(format!(
            "  {:<28}  AUC {}  log loss {}",
            format!("values {} and {}", binary.low, binary.high),
            format_error(binary.auc, 6),
            format_error(binary.log_loss, 6),
        ));
        object["binary"] = json!({
            "auc": binary.auc,
            "log_loss": binary.log_loss,
            "values": [binary.low, binary.high],
            "high_fraction": binary.high_fraction,
        });
    }
    if model.samples().is_some() {
        let scores = evaluate_distributions(&model, &file.view(), a.threads, progress)?;
        object["distribution"] = print_scores(&scores, out);
    }
    if let Some((options, report)) = ranking {
        object["ranking"] = print_ranking(&options, &report, out);
    }
    out.object(&object);
    Ok(Outcome::Success)
}

/// Prints the scores of predictive distributions and returns them as a JSON object.
fn print_scores(found: &DistributionEvaluation, out: &mut Output) -> Value {
    out.line(format!(
        "  {:<28}  log score {}  CRPS {}",
        "predictive distributions",
        format_error(found.all.log_score, 6),
        format_error(found.all.crps, 6),
    ));
    let coverage = |label: &str, scores: &DistributionScores| {
        format!(
            "  {label:<28}  50%: {:.1}%  90%: {:.1}%  mean width of 90% {}",
            100.0 * scores.coverage_50,
            100.0 * scores.coverage_90,
            format_error(scores.width_90, 4),
        )
    };
    out.line(coverage("values inside intervals", &found.all));
    for group in &found.by_row_length {
        let label = match (group.min_len, group.max_len) {
            (0, _) => "  rows without entries".to_string(),
            (min, max) if min == max => format!("  rows of {}", format_integer(min)),
            (min, max) => format!(
                "  rows of {} to {}",
                format_integer(min),
                format_integer(max)
            ),
        };
        out.line(coverage(&label, &group.scores));
    }
    let mut object = scores_object(&found.all);
    object["levels"] = json!(found.all.levels);
    let groups = found.by_row_length.iter().map(|group| {
        let mut object = scores_object(&group.scores);
        object["min_row_entries"] = json!(group.min_len);
        object["max_row_entries"] = json!(group.max_len);
        object["count"] = json!(group.scores.count);
        object
    });
    object["by_row_length"] = groups.collect();
    object
}

fn scores_object(scores: &DistributionScores) -> Value {
    json!({
        "log_score": scores.log_score,
        "crps": scores.crps,
        "coverage_50": scores.coverage_50,
        "coverage_90": scores.coverage_90,
        "width_90": scores.width_90,
    })
}

/// Computes the ranking metrics of the model and of a ranking by popularity.
fn evaluate_ranking_of(
    a: &Arguments,
    model: &Model,
    mode: usize,
    train: &MatchedFile,
    test: &MatchedFile,
    progress: &Progress,
) -> Result<(RankingOptions, RankingReport)> {
    let options = RankingOptions {
        mode,
        user_mode: a.users.map_or(Ok(usize::from(mode == 0)), mode_from_one)?,
        list_len: a.top,
        rank_by: a.quantile.map_or(RankBy::Mean, RankBy::Quantile),
        min_relevant_value: a.relevant,
        threads: a.threads,
    };
    let report = evaluate_ranking(model, &test.view(), &train.view(), &options, progress)?;
    if report.users == 0 {
        return Err(Error::Argument(format!(
            "{}: no row of mode {} has a relevant entry outside the --exclude file; lower --relevant, or give test entries",
            test.file.name(),
            options.user_mode + 1
        )));
    }
    Ok((options, report))
}

/// Prints the ranking metrics and returns them as a JSON object.
fn print_ranking(options: &RankingOptions, report: &RankingReport, out: &mut Output) -> Value {
    out.line(format!(
        "  rankings of mode {} for {} of mode {}, top {}:",
        options.mode + 1,
        format_count(report.users, "row", "rows"),
        options.user_mode + 1,
        format_integer(options.list_len as u64)
    ));
    let mut object = json!({
        "mode": options.mode + 1,
        "user_mode": options.user_mode + 1,
        "top": options.list_len,
        "relevant": options.min_relevant_value,
        "users": report.users,
    });
    for (source, m) in [("model", report.model), ("popularity", report.popularity)] {
        out.line(format!(
            "    {source:<12}  hit rate {:.4}  recall {:.4}  NDCG {:.4}",
            m.hit_rate, m.recall, m.ndcg
        ));
        object[source] = json!({"hit_rate": m.hit_rate, "recall": m.recall, "ndcg": m.ndcg});
    }
    object
}
