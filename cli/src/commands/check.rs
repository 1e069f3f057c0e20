//! `s3cmtf check`

use std::path::PathBuf;

use clap::Args;
use s3cmtf::Result;
use s3cmtf::format::{self, CheckReport, DuplicatePolicy, InvalidEntry};
use serde_json::{Value, json};

use crate::input::{TextArguments, VerifyArguments, open};
use crate::outcome::Outcome;
use crate::output::{Output, format_count, format_dims, format_integer, format_number};
use crate::progress::Progress;

/// Check a file: structure, checksums, index ranges, values, duplicates, empty rows
///
/// Exits with 2 if anything is wrong. With --fix, a corrected copy is written and the exit code is 0: duplicate entries
/// are merged, entries out of range or not finite are dropped.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    s3cmtf check ratings.coo\n  \
    s3cmtf check ratings.csv --columns user,movie,month --value stars --json\n  \
    s3cmtf check ratings.coo --fix fixed.coo --keep last")]
pub(crate) struct Arguments {
    /// File to check: binary COO, or text
    file: PathBuf,

    /// Write a corrected copy to this file
    #[arg(long, value_name = "FILE")]
    fix: Option<PathBuf>,

    /// Value that --fix keeps of duplicate entries
    #[arg(long, value_name = "NAME", default_value = "mean", value_parser = ["mean", "first", "last"], requires = "fix")]
    keep: String,

    #[command(flatten)]
    text: TextArguments,
}

pub(super) fn run(a: &Arguments, progress: &Progress, out: &mut Output) -> Result<Outcome> {
    let file = open(&a.file, &a.text, VerifyArguments::LATER, progress)?;
    let report = format::check(&file, progress)?;
    let h = file.header();
    let name = file.name();
    out.line(format!(
        "{name}: {}, {}",
        format_count(h.count, "entry", "entries"),
        format_dims(&h.dims)
    ));
    print_report(&report, &h.dims, file.is_temporary(), out);
    let mut object = to_json(&report, name, h.count, &h.dims);
    let mut outcome = if report.is_clean() {
        Outcome::Success
    } else {
        Outcome::InvalidInput
    };
    if let Some(path) = &a.fix {
        let keep = match a.keep.as_str() {
            "first" => DuplicatePolicy::First,
            "last" => DuplicatePolicy::Last,
            _ => DuplicatePolicy::Mean,
        };
        // Prints the report even if the copy cannot be written.
        out.flush()?;
        let fixed = format::repair(&file, path, keep, progress)?;
        out.line(format!(
            "{}: {} ({} left out, {} merged)",
            path.display(),
            format_count(fixed.header.count, "entry", "entries"),
            format_integer(fixed.dropped),
            format_integer(fixed.merged)
        ));
        object["fixed"] = json!({
            "output": path.display().to_string(),
            "count": fixed.header.count,
            "dropped": fixed.dropped,
            "merged": fixed.merged,
        });
        outcome = Outcome::Success;
    }
    out.object(&object);
    Ok(outcome)
}

/// Prints the report as a list of checks with the first entries that fail each.
fn print_report(r: &CheckReport, dims: &[u64], is_text: bool, out: &mut Output) {
    let mark = |ok: bool| if ok { "ok " } else { "BAD" };
    out.line(format!("  {} structure", mark(true)));
    match &r.damaged[..] {
        // Text has no checksums, and those of its temporary copy were just written.
        [] if is_text => {}
        [] => out.line(format!("  {} checksums", mark(true))),
        sections => out.line(format!(
            "  {} checksums: the bytes of {} changed since they were written; copy or convert the file again",
            mark(false),
            sections.join(", ")
        )),
    }
    let print_entries =
        |out: &mut Output, check: &str, rule: &str, count: u64, first: &[InvalidEntry]| {
            if count == 0 {
                out.line(format!("  {} {check}", mark(true)));
                return;
            }
            out.line(format!(
                "  {} {check}: {}; {rule}",
                mark(false),
                format_count(count, "entry", "entries")
            ));
            for e in first {
                let weight = e.weight.map_or(String::new(), |w| format!(", weight {w}"));
                let mode = e.mode.map_or(String::new(), |m| {
                    format!(" (mode {} has size {})", m + 1, dims[m])
                });
                out.line(format!(
                    "      entry {}: {} = {}{weight}{mode}",
                    e.entry + 1,
                    format_index(&e.index),
                    e.value
                ));
            }
        };
    let ranged = &r.out_of_range;
    print_entries(
        out,
        "indices in range",
        "they must not exceed the sizes",
        ranged.count,
        &ranged.examples,
    );
    let finite = &r.not_finite;
    print_entries(
        out,
        "values finite",
        "NaN, infinity and negative weights are not allowed",
        finite.count,
        &finite.examples,
    );
    if r.duplicates.count == 0 {
        out.line(format!("  {} no duplicates", mark(true)));
    } else {
        out.line(format!(
            "  {} duplicates: {} listed more than once, {}; --fix OUT merges them",
            mark(false),
            format_count(r.duplicates.count, "cell", "cells"),
            format_count(r.repeated_entries, "surplus entry", "surplus entries")
        ));
        for d in &r.duplicates.examples {
            let entries: Vec<String> = d
                .entries
                .iter()
                .map(|(e, v)| format!("entry {} = {}", e + 1, format_number(*v)))
                .collect();
            out.line(format!(
                "      {}: {}",
                format_index(&d.index),
                entries.join(", ")
            ));
        }
    }
    for (n, (&empty, &dim)) in r.empty_rows.iter().zip(dims).enumerate() {
        out.line(format!(
            "      mode {}: {} of {} rows are empty",
            n + 1,
            format_integer(empty),
            format_integer(dim)
        ));
    }
}

/// Formats the cell of an entry, with indices from 1.
fn format_index(index: &[u32]) -> String {
    let indices: Vec<String> = index
        .iter()
        .map(|&i| (u64::from(i) + 1).to_string())
        .collect();
    format!("({})", indices.join(", "))
}

fn to_json(r: &CheckReport, name: &str, count: u64, dims: &[u64]) -> Value {
    let from_one = |index: &[u32]| index.iter().map(|&i| u64::from(i) + 1).collect::<Vec<_>>();
    let entries = |first: &[InvalidEntry]| {
        first
            .iter()
            // Values are text here, since JSON cannot represent NaN and infinity.
            .map(|e| json!({"entry": e.entry + 1, "index": from_one(&e.index), "value": e.value.to_string(), "weight": e.weight.map(|w| w.to_string()), "mode": e.mode.map(|m| m + 1)}))
            .collect::<Vec<_>>()
    };
    json!({
        "file": name,
        "clean": r.is_clean(),
        "count": count,
        "dims": dims,
        "damaged_sections": r.damaged,
        "out_of_range": {"count": r.out_of_range.count, "first": entries(&r.out_of_range.examples)},
        "not_finite": {"count": r.not_finite.count, "first": entries(&r.not_finite.examples)},
        "duplicates": {
            "cells": r.duplicates.count,
            "surplus": r.repeated_entries,
            "first": r.duplicates.examples.iter().map(|d| json!({
                "index": from_one(&d.index),
                "entries": d.entries.iter().map(|(e, v)| json!([e + 1, v])).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
        },
        "empty_rows": r.empty_rows,
    })
}
