//! `s3cmtf predict`

use std::ops::Range;
use std::path::PathBuf;

use clap::Args;
use s3cmtf::format::{CooWriter, Dims, Names, OpenMode, ValueKind, Values};
use s3cmtf::model::{self, Model};
use s3cmtf::options::ExternalAlgorithm;
use s3cmtf::predict::{PredictOptions, predict_entries, predict_intervals};
use s3cmtf::{Result, ValueRange};
use serde_json::json;

use crate::input::{InputFormat, MatchedFile, TextArguments, VerifyArguments, any_text};
use crate::outcome::Outcome;
use crate::output::{Output, format_integer, warn_renamed};
use crate::progress::Progress;

/// Predict the values of the cells in a file
///
/// Prints a line per cell: its indices, then the prediction. With -o, writes a binary COO file.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    s3cmtf predict model.s3m test.coo\n  \
    s3cmtf predict model.s3m cells.tns --no-value -o predictions.coo\n  \
    s3cmtf predict gibbs.s3m cells.tns --no-value --deviation --quantiles 0.05,0.95")]
pub(crate) struct Arguments {
    /// Model file
    model: PathBuf,

    /// Cells: binary COO, or text (with --no-value if it has no value column)
    file: PathBuf,

    /// Binary COO file to write, instead of printing
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Clip predictions to the range of the training values [default: if the model does, see fit]
    #[arg(long, overrides_with = "no_clip")]
    clip: bool,

    /// Do not clip predictions to the range of the training values
    #[arg(long, overrides_with = "clip")]
    no_clip: bool,

    /// Also print the predictive standard deviation (gibbs models)
    #[arg(long, conflicts_with = "output")]
    deviation: bool,

    /// Also print these predictive quantiles, such as 0.05,0.95 (gibbs models)
    #[arg(
        long,
        value_name = "Q,...",
        value_delimiter = ',',
        conflicts_with = "output"
    )]
    quantiles: Vec<f64>,

    /// Number of threads; 0: all available cores
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,

    #[command(flatten)]
    text: TextArguments,

    #[command(flatten)]
    verify: VerifyArguments,
}

impl Arguments {
    /// Returns whether predictions are clipped.
    fn clips(&self, model: &Model) -> bool {
        self.clip || (model.clips() && !self.no_clip)
    }
}

/// Returns the storage type of predictions. Single precision is enough unless the values lie in a narrow range far from 0.
fn value_kind(model: &Model) -> ValueKind {
    let ValueRange { min, max } = model.range();
    if max - min < 1e-3 * min.abs().max(max.abs()) {
        ValueKind::F64
    } else {
        ValueKind::F32
    }
}

/// Formats a prediction with the digits of its storage type.
fn format_prediction(x: f64, kind: ValueKind) -> String {
    match kind {
        ValueKind::F64 => x.to_string(),
        ValueKind::F32 => (x as f32).to_string(),
    }
}

/// Receives the predictions at a range of entries.
type Receiver<'a> = dyn FnMut(Range<usize>, &[f64]) -> Result<()> + 'a;

pub(super) fn run(
    a: &Arguments,
    algorithms: &'static [&'static ExternalAlgorithm],
    progress: &Progress,
    out: &mut Output,
) -> Result<Outcome> {
    let model = model::load_with(&a.model, OpenMode::Mapped, algorithms)?;
    let kind = value_kind(&model);
    let format = InputFormat {
        options: a.text.options()?,
        any_text: any_text([&a.file])?,
        verify: a.verify,
    };
    let mut matcher = model.row_matcher(&a.model)?;
    let file = format.open_entries(&a.file, &mut matcher, progress)?;
    let (matched, view) = (file.view(), file.file.view());
    let is_clipped = a.clips(&model);
    let predict = |receiver: &mut Receiver<'_>| {
        predict_entries(
            &model,
            &matched,
            &PredictOptions {
                clip: is_clipped,
                threads: a.threads,
            },
            progress,
            receiver,
        )
    };
    if a.deviation || !a.quantiles.is_empty() {
        return print_predictive_distribution(a, &model, &file, progress, out);
    }
    let Some(path) = &a.output else {
        predict(&mut |range, values| {
            for (i, x) in range.zip(values) {
                let index: Vec<u64> = (0..view.order())
                    .map(|n| u64::from(view.column(n)[i]) + 1)
                    .collect();
                if out.json {
                    out.object(&json!({"index": index, "prediction": x}));
                } else {
                    let index: Vec<String> = index.iter().map(u64::to_string).collect();
                    out.line(format!(
                        "{} {}",
                        index.join(" "),
                        format_prediction(*x, kind)
                    ));
                }
            }
            out.flush()
        })?;
        return Ok(Outcome::Success);
    };
    let mut writer = CooWriter::create(path, view.order(), kind, None, Some(view.len() as u64))?;
    predict(&mut |range, values| writer.push_at_positions(&view, range, Values::F64(values)))?;
    warn_renamed(&Names::save_to_data(file.file.names()?, path)?);
    let header = writer.finish(Dims::Stated(view.dims().to_vec()))?;
    out.line(format!(
        "{}: {} predictions, {}",
        path.display(),
        format_integer(header.count),
        if is_clipped {
            format!("clipped to {} to {}", model.range().min, model.range().max)
        } else {
            "not clipped".into()
        }
    ));
    out.object(&json!({
        "output": path.display().to_string(),
        "count": header.count,
        "clipped": is_clipped,
        "range": [model.range().min, model.range().max],
    }));
    Ok(Outcome::Success)
}

/// Prints predictions with their predictive standard deviations and quantiles.
fn print_predictive_distribution(
    a: &Arguments,
    model: &Model,
    file: &MatchedFile,
    progress: &Progress,
    out: &mut Output,
) -> Result<Outcome> {
    let (kind, view) = (value_kind(model), file.file.view());
    predict_intervals(
        model,
        &file.view(),
        &a.quantiles,
        &PredictOptions {
            clip: a.clips(model),
            threads: a.threads,
        },
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
                        "deviation": spread.standard_deviation,
                        "quantiles": spread.quantiles,
                    }));
                    continue;
                }
                let deviation = a.deviation.then_some(spread.standard_deviation);
                let values = [spread.mean].into_iter().chain(deviation);
                let values = values.chain(spread.quantiles.iter().copied());
                let mut words: Vec<String> = index.iter().map(u64::to_string).collect();
                words.extend(values.map(|x| format_prediction(x, kind)));
                out.line(words.join(" "));
            }
            out.flush()
        },
    )?;
    Ok(Outcome::Success)
}
