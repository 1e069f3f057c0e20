//! `s3cmtf info`

use std::path::{Path, PathBuf};

use clap::Args;
use s3cmtf::format::{
    CooFile, Header, ModeSummary, Names, OpenMode, Summary, TextOptions, ValueKind, summarize,
};
use s3cmtf::model;
use s3cmtf::options::OPTION_TABLE;
use s3cmtf::problem::MatrixKind;
use s3cmtf::{Error, Result};
use serde_json::json;

use super::Verdict;
use super::input::{TextArguments, names_of, open};
use super::output::{Output, counted, grouped, number, rmse, shape};
use super::progress::Progress;

/// Show what a file holds: sizes, values, how long its rows are; of a model, how it was fitted
#[derive(Args)]
pub(super) struct Arguments {
    /// A binary COO file, or text, or a model
    file: PathBuf,

    #[command(flatten)]
    text: TextArguments,
}

pub(super) fn run(a: &Arguments, progress: &Progress, out: &mut Output) -> Result<Verdict> {
    if model::is_model(&a.file) {
        if a.text.options()? != TextOptions::default() {
            return Err(Error::Argument(format!(
                "{}: is a model; options about reading text do not apply to it",
                a.file.display()
            )));
        }
        show_model(&a.file, out)?;
        return Ok(Verdict::Good);
    }
    let file = open(&a.file, &a.text, progress)?;
    let names = names_of(&file)?;
    show(&file, &names, progress, out)?;
    Ok(Verdict::Good)
}

/// Prints what a model is and how it was fitted.
fn show_model(path: &Path, out: &mut Output) -> Result<()> {
    let m = model::load(path, OpenMode::Mapped)?;
    let ranks: Vec<String> = m.shape().ranks.iter().map(usize::to_string).collect();
    let options = m.options();
    let kind = options.get("model").unwrap_or_default();
    out.line(path.display().to_string());
    out.line(format!(
        "  a {kind} model of {}, ranks {}",
        shape(&m.dims()),
        ranks.join(" x ")
    ));
    for (n, mode) in m.modes().iter().enumerate() {
        out.line(format!(
            "  mode {}: {} of {} rows, {} training entries",
            n + 1,
            grouped(mode.rows.len() as u64),
            grouped(mode.rows.dim()),
            grouped(mode.counts.iter().sum())
        ));
    }
    for (k, matrix) in m.matrices().iter().enumerate() {
        let what = match matrix.kind {
            MatrixKind::Graph => "graph".to_string(),
            kind => format!(
                "{kind} matrix with {} columns",
                grouped(matrix.columns.len() as u64)
            ),
        };
        out.line(format!(
            "  {} {what} on mode {}, weight {}",
            k + 1,
            matrix.mode + 1,
            number(matrix.weight)
        ));
    }
    let biases = m.modes().iter().any(|x| !x.biases.is_empty());
    let offsets = m.matrices().iter().any(|x| !x.offsets.is_empty());
    out.line(format!(
        "  mean {}, {}{}",
        number(m.mean()),
        if biases { "biases" } else { "no biases" },
        match (m.matrices().is_empty(), offsets) {
            (true, _) => "",
            (false, true) => ", offsets",
            (false, false) => ", no offsets",
        }
    ));
    let (low, high) = m.range();
    out.line(format!(
        "  training values {} to {}",
        number(low),
        number(high)
    ));
    if let Some(last) = m.history().iter().rfind(|e| e.loss.is_finite()) {
        out.line(format!(
            "  after {} epochs: training RMSE {}",
            last.epoch,
            rmse(last.train_rmse)
        ));
    }
    let record = m.record();
    if let Some(e) = &record.outcome {
        out.line(format!(
            "  stopped ({}) after {} s on {} with {} kernels; the model is that of epoch {}",
            e.reason,
            number(e.seconds),
            counted(e.threads, "thread", "threads"),
            e.kernel,
            e.best_epoch
        ));
    }
    for event in &record.events {
        out.line(format!("  after epoch {}: {}", event.epoch, event.message));
    }
    out.line(format!(
        "  options: {}",
        options.to_text().trim_end().replace('\n', ", ")
    ));
    out.object(&json!({
        "file": path.display().to_string(),
        "model": kind,
        "dims": m.dims(),
        "ranks": m.shape().ranks,
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
        "events": record.events.iter().map(|n| json!({"epoch": n.epoch, "event": n.kind, "text": n.message})).collect::<Vec<_>>(),
        "options": OPTION_TABLE.iter().map(|o| (o.name.to_string(), json!(options.get(o.name)))).collect::<serde_json::Map<_, _>>(),
    }));
    Ok(())
}

/// Prints the summary of a file.
fn show(
    file: &CooFile,
    names: &[Option<Names>],
    progress: &Progress,
    out: &mut Output,
) -> Result<()> {
    let (name, header, view, text) = (
        file.name(),
        file.header(),
        &file.view(),
        file.is_temporary(),
    );
    let s = summarize(view, progress)?;
    out.line(name);
    out.line(format!(
        "  order {}, {}{}",
        s.dims.len(),
        shape(&s.dims),
        if view.dims_inferred() {
            " (the largest indices)"
        } else {
            ""
        }
    ));
    let cells = if s.density > 0.0 {
        1.0 / s.density
    } else {
        f64::INFINITY
    };
    let one_in = if cells >= 2.0 && cells.is_finite() {
        format!(" (one cell in {})", number(cells))
    } else {
        String::new()
    };
    out.line(format!(
        "  {} entries, density {}{one_in}",
        grouped(s.count),
        number(s.density)
    ));
    if let Some(v) = s.values {
        out.line(format!(
            "  values {} to {}, mean {}, deviation {}{}{}",
            number(v.min),
            number(v.max),
            number(v.mean),
            number(v.deviation),
            if text {
                String::new()
            } else {
                format!(", stored as {}", kind(header.value_kind))
            },
            header
                .weight_kind
                .map_or(String::new(), |k| format!(", with weights as {}", kind(k)))
        ));
    }
    for (n, mode) in s.modes.iter().enumerate() {
        print_mode(n, mode, names.get(n).and_then(Option::as_ref), out);
    }
    out.object(&to_json(name, header, &s, names));
    Ok(())
}

fn kind(k: ValueKind) -> &'static str {
    match k {
        ValueKind::F32 => "f32",
        ValueKind::F64 => "f64",
    }
}

fn print_mode(n: usize, mode: &ModeSummary, names: Option<&Names>, out: &mut Output) {
    out.line(format!(
        "  mode {}: {} of {} rows used, {} entries each on average",
        n + 1,
        grouped(mode.rows_used),
        grouped(mode.dim),
        number(mode.mean_length)
    ));
    let Some((row, length)) = mode.longest_row else {
        return;
    };
    let called = names
        .and_then(|names| names.name(u64::from(row)))
        .map_or(String::new(), |name| format!(" ({name})"));
    out.line(format!(
        "    longest: row {}{called} with {}",
        grouped(u64::from(row) + 1),
        grouped(length)
    ));
    const WIDTH: u64 = 40;
    let most = mode.histogram.iter().copied().max().unwrap_or(1).max(1);
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
        // Any row at all is worth a mark.
        let bar = "#".repeat((rows * WIDTH).div_ceil(most) as usize);
        let line = format!("    {range:>20} | {bar:<40} {}", grouped(rows));
        out.line(line.trim_end());
    }
}

fn to_json(name: &str, header: &Header, s: &Summary, names: &[Option<Names>]) -> serde_json::Value {
    json!({
        "file": name,
        "order": s.dims.len(),
        "dims": s.dims,
        "dims_inferred": header.dims_inferred,
        "count": s.count,
        "density": s.density,
        "value_kind": kind(header.value_kind),
        "weight_kind": header.weight_kind.map(kind),
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
