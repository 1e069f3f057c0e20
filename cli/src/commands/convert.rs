//! `s3cmtf convert`

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use s3cmtf::Result;
use s3cmtf::format::{self, ConversionReport, SkippedLines, TextOptions, ValueKind};
use serde_json::json;

use crate::input::{
    TextArguments, VerifyArguments, cancelled_or, input_of, mode_and_file, open_with,
};
use crate::outcome::Outcome;
use crate::output::{Output, format_count, format_dims, print_warning, printable};
use crate::progress::Progress;

/// Convert text to a binary COO file (or a binary file to .tns)
///
/// Reads FROSTT .tns, Matrix Market .mtx, .csv and .tsv, each also gzipped, in bounded memory. Text ids are numbered, and
/// their names are written beside the output.
#[derive(Args)]
#[command(after_help = "\
Values: the default of --value is the only column that --columns leaves; else the one called rating, value, stars, score \
or count; else the only one with a number on the first line of data. Without a header it is the last column.
Times: --time COLUMN:UNIT[:FORMAT]. UNIT is year, quarter, month, week, day, hour, weekday or hour-of-week (UTC). The \
column has seconds or milliseconds since 1970, or ISO 8601 dates; the first field decides, unless FORMAT is s, ms or \
iso. Bins are consecutive and named: 1996-04, 1996-W17, Mon 13:00.
Numbers: --bin COLUMN:RULE. RULE is quantiles=N (about equally many lines per bin; equal numbers share a bin), width=W \
([0, W), [W, 2W), ...) or log=B ([1, B), [B, B^2), ...). The name of a bin is its range.
Attribute tables: with --rows-of the first of --columns is the key, the id of a row in the text of the tensor. Each \
category of the other columns becomes a column of the matrix, with the value 1 where a row has it. Keys that the tensor \
does not have are skipped and counted.

Examples:
  s3cmtf convert ratings.csv ratings.coo --columns user,movie,month --value stars
  s3cmtf convert ratings.csv ratings.coo --columns user,movie,when --value stars --time when:month
  s3cmtf convert films.csv genres.coo --rows-of 2:train.coo --columns id,genres --split 'genres:|'
  zcat big.tns.gz | s3cmtf convert - big.coo --dims 1000000,50000,365")]
pub(crate) struct Arguments {
    /// Text or binary COO file to convert, or - for standard input
    input: PathBuf,

    /// Binary COO file to write; text if its extension is .tns
    output: PathBuf,

    /// Storage type: f32 or f64 [default: f32; unchanged for a binary file]
    #[arg(long, value_name = "TYPE", value_parser = ["f32", "f64"], hide_possible_values = true)]
    values: Option<String>,

    #[command(flatten)]
    text: TextArguments,

    #[command(flatten)]
    derived: DerivedArguments,
}

/// Arguments for ids that are computed from fields, and for attribute tables.
#[derive(Args)]
#[command(next_help_heading = "Times, bins, lists and attributes (CSV/TSV)")]
struct DerivedArguments {
    /// Make a mode of times from a column, such as when:month; see below
    #[arg(long, value_name = "COLUMN:UNIT")]
    time: Vec<String>,

    /// Make a mode of ranges of numbers, such as age:quantiles=10; see below
    #[arg(long, value_name = "COLUMN:RULE")]
    bin: Vec<String>,

    /// Split a column of several ids per field; each id gives an entry
    #[arg(long, value_name = "COLUMN:TEXT")]
    split: Vec<String>,

    /// Make a matrix from an attribute table, with the rows of this mode of a tensor
    #[arg(long, value_name = "MODE:FILE", requires = "columns")]
    rows_of: Option<String>,

    /// With --rows-of: columns of numbers, each a column of the matrix
    #[arg(
        long,
        value_name = "COLUMN,...",
        value_delimiter = ',',
        requires = "rows_of"
    )]
    numeric: Vec<String>,

    /// Text of a missing field, such as NA; lines that have it are skipped and counted
    #[arg(long, value_name = "TEXT")]
    missing: Option<String>,

    /// Skip and count lines with invalid or empty fields instead of failing
    #[arg(long, alias = "skip-bad-rows")]
    skip_bad_lines: bool,
}

impl DerivedArguments {
    /// Adds the arguments to the options of the library.
    fn add_to(&self, options: &mut TextOptions) -> Result<()> {
        for (name, specs) in [
            ("time", &self.time),
            ("bin", &self.bin),
            ("split", &self.split),
        ] {
            for spec in specs {
                options.set(name, spec)?;
            }
        }
        let d = &mut options.delimited;
        let rows_of = self.rows_of.as_deref();
        d.rows_of = rows_of
            .map(|spec| mode_and_file(spec, "--rows-of"))
            .transpose()?;
        d.numeric.clone_from(&self.numeric);
        d.missing.clone_from(&self.missing);
        d.skip_bad_lines = self.skip_bad_lines;
        Ok(())
    }
}

pub(super) fn run(a: &Arguments, progress: &Progress, out: &mut Output) -> Result<Outcome> {
    let started = Instant::now();
    let mut options = a.text.options()?;
    a.derived.add_to(&mut options)?;
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
        let file = open_with(&a.input, &options, VerifyArguments::LATER, progress)?;
        format::write_tns(&file, &a.output, progress)?;
        let report = ConversionReport {
            header: file.header().clone(),
            names: Vec::new(),
            skipped: SkippedLines::default(),
            warnings: Vec::new(),
        };
        print_report(a, &report, started, out);
        return Ok(Outcome::Success);
    }
    let converted = format::convert(input_of(&a.input, progress), &a.output, &options, progress)
        .map_err(|e| cancelled_or(e, progress))?;
    print_report(a, &converted, started, out);
    Ok(Outcome::Success)
}

/// Prints the converted file, the files of names, the lines that were skipped and the warnings.
fn print_report(a: &Arguments, report: &ConversionReport, started: Instant, out: &mut Output) {
    let seconds = started.elapsed().as_secs_f64();
    let ConversionReport {
        header,
        names,
        skipped,
        warnings,
    } = report;
    for text in warnings {
        if !out.json {
            print_warning(text);
        }
        out.object(&json!({"event": "warning", "text": text}));
    }
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
    for line in skipped_lines(skipped) {
        out.line(line);
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
        "skipped": {
            "bad": skipped.bad,
            "first_bad": skipped.first_bad.as_ref().map(|(line, fault)| json!({
                "line": line, "error": fault,
            })),
            "missing": skipped.missing,
            "unknown_keys": skipped.unknown_keys,
            "repeated": skipped.repeated,
        },
        "seconds": seconds,
    }));
}

/// Describes the lines that were skipped, one sentence for each reason that occurs.
fn skipped_lines(skipped: &SkippedLines) -> Vec<String> {
    let mut lines = Vec::new();
    let mut add = |count: u64, what: String| {
        if count > 0 {
            lines.push(format!("{} {what}", format_count(count, "line", "lines")));
        }
    };
    if let Some((line, fault)) = &skipped.first_bad {
        let fault = printable(fault);
        add(
            skipped.bad,
            format!("skipped as invalid; the first is line {line}: {fault}"),
        );
    }
    add(skipped.missing, "with a missing field".into());
    add(
        skipped.unknown_keys,
        "with a key that the tensor does not have".into(),
    );
    add(skipped.repeated, "repeated exactly".into());
    lines
}
