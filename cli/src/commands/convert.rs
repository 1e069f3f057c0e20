//! `s3cmtf convert`

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use s3cmtf::Result;
use s3cmtf::format::{self, ValueKind};
use serde_json::json;

use crate::input::{TextArguments, cancelled_or, input_of, open_with};
use crate::outcome::Outcome;
use crate::output::{Output, format_count, format_dims};
use crate::progress::Progress;

/// Convert text to a binary COO file (or a binary file to .tns)
///
/// Reads FROSTT .tns, Matrix Market .mtx, .csv and .tsv, each also gzipped, in bounded memory. Text ids are numbered, and
/// their names are written beside the output.
#[derive(Args)]
#[command(after_help = "\
Examples:
  s3cmtf convert ratings.tns.gz ratings.coo
  s3cmtf convert ratings.csv ratings.coo --columns user,movie,month --value stars
  s3cmtf convert genres.csv genres.coo --names 1:ratings.mode2.tsv --no-value
  zcat big.tns.gz | s3cmtf convert - big.coo --dims 1000000,50000,365")]
pub(crate) struct Arguments {
    /// The text, or a binary COO file, or - for standard input
    input: PathBuf,

    /// The binary COO file to write; with the extension .tns, text
    output: PathBuf,

    /// Storage type of the values; by default f32, and unchanged for a binary file
    #[arg(long, value_name = "KIND", value_parser = ["f32", "f64"])]
    values: Option<String>,

    #[command(flatten)]
    text: TextArguments,
}

pub(super) fn run(a: &Arguments, progress: &Progress, out: &mut Output) -> Result<Outcome> {
    let started = Instant::now();
    let mut options = a.text.options()?;
    options.value_kind = a.values.as_deref().map(|v| {
        if v == "f64" {
            ValueKind::F64
        } else {
            ValueKind::F32
        }
    });
    if a.output
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("tns"))
    {
        let file = open_with(&a.input, &options, progress)?;
        format::write_tns(&file, &a.output, progress)?;
        report(a, file.header(), &[], started, out);
        return Ok(Outcome::Success);
    }
    let converted = format::convert(input_of(&a.input, progress), &a.output, &options, progress)
        .map_err(|e| cancelled_or(e, progress))?;
    report(a, &converted.header, &converted.names, started, out);
    Ok(Outcome::Success)
}

/// Prints the converted file and the files of names.
fn report(
    a: &Arguments,
    header: &format::Header,
    names: &[(usize, PathBuf, usize)],
    started: Instant,
    out: &mut Output,
) {
    let seconds = started.elapsed().as_secs_f64();
    out.line(format!(
        "{}: {}, {}{} ({:.2} s)",
        a.output.display(),
        format_count(header.count, "entry", "entries"),
        format_dims(&header.dims),
        if header.dims_inferred {
            " (the largest indices)"
        } else {
            ""
        },
        seconds
    ));
    for (mode, path, count) in names {
        out.line(format!(
            "{}: {} of mode {}",
            path.display(),
            format_count(*count as u64, "name", "names"),
            mode + 1
        ));
    }
    out.object(&json!({
        "output": a.output.display().to_string(),
        "order": header.dims.len(),
        "dims": header.dims,
        "dims_inferred": header.dims_inferred,
        "count": header.count,
        "names": names.iter().map(|(mode, path, count)| json!({
            "mode": mode + 1, "file": path.display().to_string(), "count": count,
        })).collect::<Vec<_>>(),
        "seconds": seconds,
    }));
}
