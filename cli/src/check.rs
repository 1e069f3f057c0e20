//! `s3cmtf check`

use std::path::PathBuf;

use clap::Args;
use s3cmtf::Result;
use s3cmtf::format::{self, CheckReport, DuplicatePolicy, InvalidEntry};
use serde_json::{Value, json};

use super::Verdict;
use super::input::{TextArguments, open};
use super::output::{Output, grouped, number, shape};
use super::progress::Progress;

/// Check a file: structure, checksums, index ranges, values, duplicates, empty rows
///
/// Exits with 2 if anything is wrong. With --fix, a mended copy is written and the exit is 0: cells listed more than
/// once are merged, entries out of range or not finite left out.
#[derive(Args)]
pub(super) struct Arguments {
    /// A binary COO file, or text
    file: PathBuf,

    /// Write a mended copy here
    #[arg(long, value_name = "OUT")]
    fix: Option<PathBuf>,

    /// What --fix keeps of a cell that is listed more than once
    #[arg(long, value_name = "WHICH", default_value = "mean", value_parser = ["mean", "first", "last"], requires = "fix")]
    keep: String,

    #[command(flatten)]
    text: TextArguments,
}

pub(super) fn run(a: &Arguments, progress: &Progress, out: &mut Output) -> Result<Verdict> {
    let file = open(&a.file, &a.text, progress)?;
    let report = format::check(&file, progress)?;
    let h = file.header();
    let name = file.name();
    out.line(format!(
        "{name}: {} entries, {}",
        grouped(h.count),
        shape(&h.dims)
    ));
    print_report(&report, &h.dims, file.is_temporary(), out);
    let mut object = to_json(&report, name, h.count, &h.dims);
    let mut verdict = if report.is_clean() {
        Verdict::Good
    } else {
        Verdict::Bad
    };
    if let Some(path) = &a.fix {
        let keep = match a.keep.as_str() {
            "first" => DuplicatePolicy::First,
            "last" => DuplicatePolicy::Last,
            _ => DuplicatePolicy::Mean,
        };
        // The report is worth having even if nothing can be mended.
        out.flush()?;
        let fixed = format::repair(&file, path, keep, progress)?;
        out.line(format!(
            "{}: {} entries ({} left out, {} merged)",
            path.display(),
            grouped(fixed.header.count),
            grouped(fixed.dropped),
            grouped(fixed.merged)
        ));
        object["fixed"] = json!({
            "output": path.display().to_string(),
            "count": fixed.header.count,
            "dropped": fixed.dropped,
            "merged": fixed.merged,
        });
        verdict = Verdict::Good;
    }
    out.object(&object);
    Ok(verdict)
}

fn print_report(r: &CheckReport, dims: &[u64], text: bool, out: &mut Output) {
    let mark = |ok: bool| if ok { "ok " } else { "BAD" };
    out.line(format!("  {} structure", mark(true)));
    match &r.damaged[..] {
        // Text has none; those of its temporary copy say nothing.
        [] if text => {}
        [] => out.line(format!("  {} checksums", mark(true))),
        sections => out.line(format!(
            "  {} checksums: the bytes of {} changed since they were written; copy or convert the file again",
            mark(false),
            sections.join(", ")
        )),
    }
    let entries =
        |out: &mut Output, what: &str, right: &str, count: u64, first: &[InvalidEntry]| {
            if count == 0 {
                out.line(format!("  {} {what}", mark(true)));
                return;
            }
            out.line(format!(
                "  {} {what}: {} entries; {right}",
                mark(false),
                grouped(count)
            ));
            for e in first {
                let weight = e.weight.map_or(String::new(), |w| format!(", weight {w}"));
                let mode = e.mode.map_or(String::new(), |m| {
                    format!(" (mode {} has size {})", m + 1, dims[m])
                });
                out.line(format!(
                    "      entry {}: {} = {}{weight}{mode}",
                    e.entry + 1,
                    cell(&e.index),
                    e.value
                ));
            }
        };
    let ranged = &r.out_of_range;
    entries(
        out,
        "indices in range",
        "they must not exceed the sizes",
        ranged.count,
        &ranged.examples,
    );
    let finite = &r.not_finite;
    entries(
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
            "  {} duplicates: {} cells are listed more than once, {} entries too many; --fix OUT merges them",
            mark(false),
            grouped(r.duplicates.count),
            grouped(r.repeated_entries)
        ));
        for d in &r.duplicates.examples {
            let listed: Vec<String> = d
                .entries
                .iter()
                .map(|(e, v)| format!("entry {} = {}", e + 1, number(*v)))
                .collect();
            out.line(format!("      {}: {}", cell(&d.index), listed.join(", ")));
        }
    }
    for (n, (&empty, &dim)) in r.empty_rows.iter().zip(dims).enumerate() {
        out.line(format!(
            "      mode {}: {} of {} rows are empty",
            n + 1,
            grouped(empty),
            grouped(dim)
        ));
    }
}

/// A cell with indices from 1.
fn cell(index: &[u32]) -> String {
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
            // JSON has no NaN or infinity; as text they survive.
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
