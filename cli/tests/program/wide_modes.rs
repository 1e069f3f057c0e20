//! Modes and matrices whose stated sizes are far larger than their data. What a command chooses by itself depends on the entries and
//! the rows that occur: its memory does not grow with the stated sizes.

use std::process::Command;

use serde_json::Value;

use crate::common::{ProgramRun, Scratch};
use crate::runner::{expand_paths, run};

/// The largest size of a mode.
const LARGEST: u64 = u32::MAX as u64;

/// Resident memory of a fit of a few entries, in bytes. Most of it is the program.
const MAX_MEMORY: u64 = 80_000_000;

/// Runs the program with limits of its address space and of processor time: an endless command is ended, and fails.
fn run_limited(dir: &Scratch, arguments: &[&str]) -> ProgramRun {
    let script = "ulimit -v 2000000 && exec \"$@\"";
    let output = Command::new("sh")
        .args(["-c", script, "sh", env!("CARGO_BIN_EXE_s3cmtf")])
        .args(expand_paths(dir, arguments))
        .env("MALLOC_ARENA_MAX", "1")
        .output();
    ProgramRun::from(output.unwrap())
}

/// Returns lines of distinct entries with this number of rows in each mode, spread over modes of any size.
fn entries(order: u64, count: u64, rows: u64, size: u64) -> String {
    let row = |i: u64, n: u64| (i * (1 + 2 * n) + i / rows * n) % rows;
    let index = |i: u64, n: u64| 1 + row(i, n) * (size / rows);
    let line = |i: u64| {
        let indices: Vec<String> = (0..order).map(|n| index(i, n).to_string()).collect();
        format!("{} {}\n", indices.join(" "), 1 + i % 5)
    };
    (0..count).map(line).collect()
}

/// Tensors and matrices, the sizes of which exceed their data.
fn data() -> Scratch {
    let dir = Scratch::new("wide-modes");
    let size = LARGEST.to_string();
    let all = |order: usize| vec![size.as_str(); order].join(",");
    let files = [
        // 500 entries of 50 x 50 x 50 rows, and matrices of two equal entries.
        ("narrow", entries(3, 500, 50, 50), "50,50,50".to_string()),
        ("columns", "1 1 1\n2 2 1\n".into(), "50,50000000".into()),
        ("wider", "1 1 1\n2 2 1\n".into(), format!("50,{size}")),
        // Ten entries, and 500, of modes of the largest size.
        ("ten", entries(3, 10, 10, LARGEST), all(3)),
        ("wide", entries(3, 500, 50, LARGEST), all(3)),
        ("order8", entries(8, 500, 50, LARGEST), all(8)),
        ("matrix", "1 1 1\n2 2 1\n".into(), all(2)),
        ("graph", "1 2 1\n2 3 1\n3 1 1\n".into(), all(2)),
    ];
    for (name, text, dims) in files {
        dir.file(&format!("{name}.tns"), text);
        let (tns, coo, dims) = (
            format!("@{name}.tns"),
            format!("@{name}.coo"),
            format!("--dims={dims}"),
        );
        run(expand_paths(&dir, &["convert", &tns, &coo, &dims])).ok();
    }
    dir
}

/// Runs a fit with `--json`. Returns its lines.
fn fit(dir: &Scratch, arguments: &[&str]) -> Vec<Value> {
    let base = ["fit", "--epochs=2", "-o@m.s3m", "--threads=1", "--json"];
    let lines = run_limited(dir, &[&base[..], arguments].concat())
        .ok()
        .json();
    let mut summaries = lines.iter().map(|l| &l["summary"]);
    let peak = summaries.find_map(|s| s["peak_memory_bytes"].as_u64());
    println!("{arguments:?}: {} bytes", peak.unwrap());
    assert!(peak.unwrap() < MAX_MEMORY, "{arguments:?}: {peak:?} bytes");
    lines
}

#[test]
fn zeros_of_a_matrix_far_wider_than_its_data_are_not_tried() {
    let dir = data();
    for matrix in ["--matrix=1:@columns.coo", "--matrix=1:@wider.coo"] {
        for algorithm in [
            "--algorithm=blocked",
            "--algorithm=gibbs",
            "--algorithm=als",
        ] {
            let lines = fit(
                &dir,
                &["--tensor=@narrow.coo", matrix, algorithm, "--samples=2"],
            );
            let warning = lines.iter().find_map(|l| {
                let text = l["text"].as_str()?;
                text.contains("cells that it does not list are taken as unknown")
                    .then_some(text)
            });
            assert!(
                warning.unwrap().contains("rows and columns"),
                "{matrix} {algorithm}: {lines:?}"
            );
        }
    }
    // The reason stays with the model.
    let info = run(expand_paths(&dir, &["info", "@m.s3m"])).ok().stdout;
    assert!(info.contains("far more than there are entries"), "{info}");
    // A matrix as wide as the data is tried.
    run(expand_paths(
        &dir,
        &["convert", "@columns.tns", "@small.coo", "--dims=50,500"],
    ))
    .ok();
    let lines = fit(&dir, &["--tensor=@narrow.coo", "--matrix=1:@small.coo"]);
    assert!(
        !lines
            .iter()
            .any(|l| l["text"].as_str().is_some_and(|t| t.contains("far more")))
    );
}

#[test]
fn memory_does_not_grow_with_the_stated_sizes() {
    let dir = data();
    for tensor in [
        "--tensor=@ten.coo",
        "--tensor=@wide.coo",
        "--tensor=@order8.coo",
    ] {
        for algorithm in ["blocked", "gibbs", "als", "opt"] {
            let algorithm = format!("--algorithm={algorithm}");
            fit(&dir, &[tensor, &algorithm, "--samples=2", "--burn-in=1"]);
        }
    }
    for coupled in [
        "--matrix=1:@matrix.coo",
        "--matrix=1:@matrix.coo:1:observed",
        "--matrix=1:@matrix.coo:1:sampled=3",
        "--graph=1:@graph.coo",
    ] {
        fit(&dir, &["--tensor=@wide.coo", coupled]);
    }
    for command in [
        &["info", "@m.s3m"][..],
        &["concepts", "@m.s3m", "--mode=1"],
        &[
            "clusters",
            "@m.s3m",
            "--mode=1",
            "--restarts=2",
            "--references=2",
            "--max-k=3",
        ],
        &["similar", "@m.s3m", "--for=1:all"],
        &["recommend", "@m.s3m", "--mode=2", "--for=1:all"],
        &["eval", "@m.s3m", "@wide.coo"],
        &["predict", "@m.s3m", "@wide.coo"],
        &[
            "report",
            "@m.s3m",
            "-o@r.html",
            "--data=@wide.coo",
            "--max-k=2",
        ],
        &[
            "fold-in",
            "@m.s3m",
            "--mode=1",
            "--tensor=@ten.coo",
            "--replace",
            "-o@new.s3m",
        ],
        &[
            "tune",
            "--tensor=@wide.coo",
            "--trials=2",
            "--epochs=1",
            "-o@c.conf",
        ],
        &["check", "@order8.coo"],
        &["info", "@order8.coo"],
        &["split", "@order8.coo", "-o@s"],
    ] {
        run_limited(&dir, command).ok();
    }
    // Text tables have a line for each row up to the size of the mode.
    let export = run_limited(&dir, &["export", "@m.s3m", "-o@exported"]);
    export.failed(2, &["has 4294967295 rows, of which 50 are in the model"]);
}

#[test]
fn more_zeros_and_rows_than_memory_are_refused() {
    let dir = data();
    for (coupled, words) in [
        (
            "--matrix=1:@wider.coo:1:sampled=4000000000",
            "sampled zeros need about",
        ),
        (
            "--matrix=1:@matrix.coo:1:full",
            "rows and columns of a full matrix need about",
        ),
    ] {
        let tensor = match coupled.contains("wider") {
            true => "--tensor=@narrow.coo",
            false => "--tensor=@wide.coo",
        };
        let refused = run_limited(&dir, &["fit", tensor, coupled, "-o@f.s3m"]);
        // On a machine with more memory than they need, the limit of the address space fails the allocation.
        assert_eq!(refused.code, Some(1), "{}", refused.stderr);
        let is_refused = [words, "no memory for"]
            .iter()
            .any(|w| refused.stderr.contains(w));
        assert!(is_refused, "{}", refused.stderr);
    }
}
