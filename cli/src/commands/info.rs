//! `s3cmtf info`

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use s3cmtf::format::{
    CooFile, Header, ModeSummary, Names, OpenMode, Summary, TextOptions, ValueKind, summarize,
};
use s3cmtf::model;
use s3cmtf::options::ExternalAlgorithm;
use s3cmtf::problem::MatrixKind;
use s3cmtf::{Error, Result};
use serde_json::json;

use crate::input::{TextArguments, VerifyArguments, open};
use crate::outcome::Outcome;
use crate::output::{
    Output, format_count, format_dims, format_integer, format_number, format_rmse,
};
use crate::progress::Progress;

/// Describe a file: sizes, values, entries per row; for a model, how it was fitted
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    s3cmtf info ratings.coo\n  \
    s3cmtf info ratings.csv --columns user,movie,month --value stars\n  \
    s3cmtf info model.s3m --json")]
pub(crate) struct Arguments {
    /// File to describe: binary COO, text, or a model
    file: PathBuf,

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
    if model::is_model(&a.file) {
        if a.text.options()? != TextOptions::default() {
            return Err(Error::Argument(format!(
                "{}: is a model; options for reading text do not apply",
                a.file.display()
            )));
        }
        print_model(&a.file, algorithms, out)?;
        return Ok(Outcome::Success);
    }
    let file = open(&a.file, &a.text, a.verify, progress)?;
    let names = file.names()?;
    print_data(&file, names, progress, out)?;
    Ok(Outcome::Success)
}

/// Describes a model and how it was fitted.
fn print_model(
    path: &Path,
    algorithms: &'static [&'static ExternalAlgorithm],
    out: &mut Output,
) -> Result<()> {
    let m = model::load_with(path, OpenMode::Mapped, algorithms)?;
    let ranks: Vec<String> = m.shape().ranks().iter().map(usize::to_string).collect();
    let options = m.options();
    let kind = options.get("model").unwrap_or_default();
    out.line(path.display().to_string());
    out.line(format!(
        "  a {kind} model of {}, ranks {}",
        format_dims(&m.dims()),
        ranks.join(" x ")
    ));
    for (n, mode) in m.modes().iter().enumerate() {
        out.line(format!(
            "  mode {}: {} of {} rows, {} training entries",
            n + 1,
            format_integer(mode.rows.len() as u64),
            format_integer(mode.rows.dim()),
            format_integer(mode.counts.iter().sum())
        ));
    }
    for (k, matrix) in m.matrices().iter().enumerate() {
        let description = match matrix.kind {
            MatrixKind::Graph => "graph".to_string(),
            kind => format!(
                "{kind} matrix with {} columns",
                format_integer(matrix.columns.len() as u64)
            ),
        };
        out.line(format!(
            "  {} {description} on mode {}, weight {}",
            k + 1,
            matrix.mode + 1,
            format_number(matrix.weight)
        ));
    }
    let biases = m.modes().iter().any(|x| !x.biases.is_empty());
    let offsets = m.matrices().iter().any(|x| !x.offsets.is_empty());
    out.line(format!(
        "  mean {}, {}{}",
        format_number(m.mean()),
        if biases { "biases" } else { "no biases" },
        match (m.matrices().is_empty(), offsets) {
            (true, _) => "",
            (false, true) => ", offsets",
            (false, false) => ", no offsets",
        }
    ));
    let range = m.range();
    out.line(format!(
        "  training values {} to {}",
        format_number(range.min),
        format_number(range.max)
    ));
    if let Some(last) = m.history().iter().rfind(|e| e.loss.is_finite()) {
        out.line(format!(
            "  after {} epochs: training RMSE {}",
            last.epoch,
            format_rmse(last.train_rmse)
        ));
    }
    let record = m.record();
    if let Some(e) = &record.outcome {
        out.line(format!(
            "  stopped ({}) after {} s on {} with {} kernels; the model is that of epoch {}",
            e.reason,
            format_number(e.seconds),
            format_count(e.threads, "thread", "threads"),
            e.kernel,
            e.best_epoch
        ));
    }
    for event in &record.events {
        out.line(match &event.kind[..] {
            "selected" => format!("  {}", event.message),
            _ => format!("  after epoch {}: {}", event.epoch, event.message),
        });
    }
    // Choices are events, and options have their line.
    let plan = m.plan().map(ToString::to_string).unwrap_or_default();
    for line in plan
        .lines()
        .filter(|l| !l.starts_with("choice:") && !l.starts_with("options:"))
    {
        out.line(format!("  {line}"));
    }
    out.line(format!(
        "  options: {}",
        options.to_text().trim_end().replace('\n', ", ")
    ));
    out.object(&json!({
        "file": path.display().to_string(),
        "model": kind,
        "dims": m.dims(),
        "ranks": m.shape().ranks(),
        "rows": m.modes().iter().map(|x| x.rows.len()).collect::<Vec<_>>(),
        "orthogonal": m.is_orthogonal(),
        "mean": m.mean(),
        "biases": biases,
        "offsets": offsets,
        "epochs": m.history().len(),
        "reason": record.outcome.as_ref().map(|e| &e.reason),
        "best_epoch": record.outcome.as_ref().map(|e| e.best_epoch),
        "kernel": record.outcome.as_ref().map(|e| &e.kernel),
        "threads": record.outcome.as_ref().map(|e| e.threads),
        "seconds": record.outcome.as_ref().map(|e| e.seconds),
        "plan": m.plan().map(|plan| serde_json::from_str::<serde_json::Value>(&plan.to_json()).expect("a plan is JSON")),
        "events": record.events.iter().map(|n| json!({"epoch": n.epoch, "event": n.kind, "text": n.message})).collect::<Vec<_>>(),
        "options": options.all_options().iter().map(|o| (o.name.to_string(), json!(options.get(o.name)))).collect::<serde_json::Map<_, _>>(),
    }));
    Ok(())
}

/// Describes a file of entries.
fn print_data(
    file: &CooFile,
    names: &[Option<Arc<Names>>],
    progress: &Progress,
    out: &mut Output,
) -> Result<()> {
    let (name, header, view) = (file.name(), file.header(), &file.view());
    let is_text = file.is_temporary();
    let s = summarize(view, progress)?;
    out.line(name);
    out.line(format!(
        "  order {}, {}{}",
        s.dims.len(),
        format_dims(&s.dims),
        if view.dims_inferred() {
            " (the largest indices)"
        } else {
            ""
        }
    ));
    let cells_per_entry = if s.density > 0.0 {
        1.0 / s.density
    } else {
        f64::INFINITY
    };
    let one_in = if cells_per_entry >= 2.0 && cells_per_entry.is_finite() {
        format!(" (1 cell in {})", format_number(cells_per_entry))
    } else {
        String::new()
    };
    out.line(format!(
        "  {}, density {}{one_in}",
        format_count(s.count, "entry", "entries"),
        format_number(s.density)
    ));
    if let Some(v) = s.values {
        out.line(format!(
            "  values {} to {}, mean {}, standard deviation {}{}{}",
            format_number(v.min),
            format_number(v.max),
            format_number(v.mean),
            format_number(v.deviation),
            if is_text {
                String::new()
            } else {
                format!(", stored as {}", kind_name(header.value_kind))
            },
            header.weight_kind.map_or(String::new(), |k| format!(
                ", with weights as {}",
                kind_name(k)
            ))
        ));
    }
    for (n, mode) in s.modes.iter().enumerate() {
        print_mode(n, mode, names.get(n).and_then(Option::as_deref), out);
    }
    out.object(&to_json(name, header, &s, names));
    Ok(())
}

fn kind_name(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::F32 => "f32",
        ValueKind::F64 => "f64",
    }
}

/// Prints the number of rows used, the longest row, and a histogram of entries per row.
fn print_mode(n: usize, mode: &ModeSummary, names: Option<&Names>, out: &mut Output) {
    out.line(format!(
        "  mode {}: {} of {} rows used, {} entries each on average",
        n + 1,
        format_integer(mode.rows_used),
        format_integer(mode.dim),
        format_number(mode.mean_length)
    ));
    let Some((row, length)) = mode.longest_row else {
        return;
    };
    let name = names
        .and_then(|names| names.name(u64::from(row)))
        .map_or(String::new(), |name| format!(" ({name})"));
    out.line(format!(
        "    longest: row {}{name} with {}",
        format_integer(u64::from(row) + 1),
        format_integer(length)
    ));
    /// Characters of the longest bar.
    const BAR_WIDTH: u64 = 40;
    let largest_bin = mode.histogram.iter().copied().max().unwrap_or(1).max(1);
    let shortest = mode
        .histogram
        .iter()
        .position(|&rows| rows > 0)
        .unwrap_or(0);
    for (k, &rows) in mode.histogram.iter().enumerate().skip(shortest) {
        let (low, high) = (1u64 << k, (2u64 << k) - 1);
        let range = if low == high {
            low.to_string()
        } else {
            format!("{low} to {high}")
        };
        // Rounded up, so that a bin with few rows still has a mark.
        let bar = "#".repeat((rows * BAR_WIDTH).div_ceil(largest_bin) as usize);
        let line = format!("    {range:>20} | {bar:<40} {}", format_integer(rows));
        out.line(line.trim_end());
    }
}

fn to_json(
    name: &str,
    header: &Header,
    s: &Summary,
    names: &[Option<Arc<Names>>],
) -> serde_json::Value {
    json!({
        "file": name,
        "order": s.dims.len(),
        "dims": s.dims,
        "dims_inferred": header.dims_inferred,
        "count": s.count,
        "density": s.density,
        "value_kind": kind_name(header.value_kind),
        "weight_kind": header.weight_kind.map(kind_name),
        "values": s.values.map(|v| json!({
            "min": v.min, "max": v.max, "mean": v.mean, "deviation": v.deviation,
        })),
        "modes": s.modes.iter().enumerate().map(|(n, m)| json!({
            "mode": n + 1,
            "dim": m.dim,
            "rows_used": m.rows_used,
            "mean_length": m.mean_length,
            "longest": m.longest_row.map(|(row, length)| json!({
                "row": u64::from(row) + 1,
                "length": length,
                "name": names.get(n).and_then(Option::as_ref).and_then(|x| x.name(u64::from(row))),
            })),
            "histogram": m.histogram.iter().enumerate().map(|(k, rows)| json!({
                "from": 1u64 << k, "to": (2u64 << k) - 1, "rows": rows,
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
    })
}
