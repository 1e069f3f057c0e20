//! Binary COO files with right checksums and an entry that a tensor or matrix cannot have: every command that reads entries
//! names the entry and writes nothing.

use crate::common::Scratch;
use crate::common::forged_entries::{Fault, ForgedEntries, faults};
use crate::runner::{expand_paths, run};

const TENSOR: &[u64] = &[6, 5, 2];
const MATRIX: &[u64] = &[5, 5];

/// A command line. `@f.coo` is the forged file, `@x.coo` and `@y.coo` are valid ones.
struct Case {
    command: &'static str,
    /// Sizes of the forged file.
    dims: &'static [u64],
    /// Whether the command reads values and weights.
    reads: [bool; 2],
}

const fn case(command: &'static str, dims: &'static [u64]) -> Case {
    Case {
        command,
        dims,
        reads: [true; 2],
    }
}

const FIT: &str = "--rank 2 --epochs 1 --threads 1 --algorithm als --start identity";

const CASES: &[Case] = &[
    case("info @f.coo", TENSOR),
    case("split @f.coo -o @part", TENSOR),
    case("convert @f.coo @o.coo", TENSOR),
    case("convert @f.coo @o.tns", TENSOR),
    case("fit --tensor @f.coo FIT -o @o.s3m", TENSOR),
    case("fit --tensor @x.coo --test @f.coo FIT -o @o.s3m", TENSOR),
    case("fit --tensor @x.coo --valid @f.coo FIT -o @o.s3m", TENSOR),
    case(
        "fit --tensor @x.coo --matrix 2:@f.coo FIT -o @o.s3m",
        MATRIX,
    ),
    case(
        "fit --tensor @x.coo --matrix 2:@f.coo:1 FIT -o @o.s3m",
        MATRIX,
    ),
    case("fit --tensor @x.coo --graph 2:@f.coo FIT -o @o.s3m", MATRIX),
    Case {
        reads: [true, false],
        ..case(
            "fit --tensor @x.coo --matrix 2:@f.coo:full FIT -o @o.s3m",
            MATRIX,
        )
    },
    Case {
        reads: [true, false],
        ..case(
            "fit --tensor @x.coo --matrix 2:@f.coo:sampled=2 FIT -o @o.s3m",
            MATRIX,
        )
    },
    Case {
        reads: [true, false],
        ..case("fit --tensor @x.coo --weights @f.coo FIT -o @o.s3m", TENSOR)
    },
    case("tune --tensor @f.coo --trials 1 FIT -o @o.txt", TENSOR),
    case(
        "tune --tensor @x.coo --valid @f.coo --trials 1 FIT -o @o.txt",
        TENSOR,
    ),
    case("eval @m.s3m @f.coo", TENSOR),
    case("eval @m.s3m @f.coo --mode 2 --exclude @x.coo", TENSOR),
    case("eval @m.s3m @x.coo --mode 2 --exclude @f.coo", TENSOR),
    Case {
        reads: [false; 2],
        ..case("predict @m.s3m @f.coo", TENSOR)
    },
    Case {
        reads: [false; 2],
        ..case("predict @m.s3m @f.coo -o @o.coo", TENSOR)
    },
    case(
        "recommend @m.s3m --mode 2 --for 1:2 --exclude @f.coo",
        TENSOR,
    ),
    case(
        "fold-in @m.s3m --mode 1 --tensor @f.coo --replace -o @o.s3m",
        TENSOR,
    ),
    case(
        "fold-in @m.s3m --mode 2 --matrix 2:@f.coo --replace -o @o.s3m",
        MATRIX,
    ),
    case("clusters @m.s3m --mode 2 -k 2 --matrix @f.coo", MATRIX),
    case("report @m.s3m --data @f.coo --max-k 0 -o @o.html", TENSOR),
    case("report @m.s3m --test @f.coo --max-k 0 -o @o.html", TENSOR),
    case(
        "report @m.s3m --matrix 2:@f.coo --max-k 0 -o @o.html",
        MATRIX,
    ),
];

fn run_case(dir: &Scratch, case: &Case) -> crate::common::ProgramRun {
    let command = case.command.replace("FIT", FIT);
    let words: Vec<&str> = command.split(' ').collect();
    run(expand_paths(dir, &words))
}

#[test]
fn every_command_refuses_them() {
    let dir = Scratch::new("forged-entries");
    ForgedEntries::all_cells(TENSOR).write(&dir.join("x.coo"));
    ForgedEntries::all_cells(MATRIX).write(&dir.join("y.coo"));
    let fit = "fit --tensor @x.coo --matrix 2:@y.coo FIT -o @m.s3m";
    run_case(&dir, &case(fit, TENSOR)).ok();
    let names = dir.names();
    for case in CASES {
        for fault in faults(case.dims.len()) {
            let [reads_values, reads_weights] = case.reads;
            let is_read = match fault {
                Fault::Index(..) => true,
                Fault::Value(_) => reads_values,
                Fault::Weight(_) => reads_weights,
            };
            if !is_read {
                continue;
            }
            let file = dir.join("f.coo");
            ForgedEntries::all_cells(case.dims)
                .with_fault(fault)
                .write(&file);
            let found = run_case(&dir, case);
            let (code, stderr) = (found.code, &found.stderr);
            let names_entry = stderr.contains("entry 8:") && !stderr.contains("panic");
            assert!(
                code == Some(2) && names_entry,
                "{}, {fault:?}: {code:?} {stderr}",
                case.command
            );
            std::fs::remove_file(file).unwrap();
            assert_eq!(dir.names(), names, "{}, {fault:?}", case.command);
        }
    }
}

#[test]
fn jobs_of_a_batch_refuse_them() {
    let dir = Scratch::new("forged-batch");
    ForgedEntries::all_cells(TENSOR).write(&dir.join("x.coo"));
    run_case(&dir, &case("fit --tensor @x.coo FIT -o @m.s3m", TENSOR)).ok();
    let fit = r#""job":"fit","options":{"rank":2,"epochs":1,"algorithm":"als","start":"identity"}"#;
    let mut jobs = Vec::new();
    for (what, dims, fault, fields) in [
        ("tensor", TENSOR, Fault::Index(0, 0), r#"FIT,"tensor":"@F""#),
        (
            "test",
            TENSOR,
            Fault::Index(1, 1),
            r#"FIT,"tensor":"@x.coo","test":"@F""#,
        ),
        (
            "valid",
            TENSOR,
            Fault::Weight(-1.0),
            r#"FIT,"tensor":"@x.coo","valid":"@F""#,
        ),
        (
            "weights",
            TENSOR,
            Fault::Index(2, 0),
            r#"FIT,"tensor":"@x.coo","weights":"@F""#,
        ),
        (
            "matrix",
            MATRIX,
            Fault::Value(f64::NAN),
            r#"FIT,"tensor":"@x.coo","matrices":[{"mode":2,"file":"@F"}]"#,
        ),
        (
            "predict",
            TENSOR,
            Fault::Index(0, 0),
            r#""job":"predict","model":"@m.s3m","file":"@F""#,
        ),
    ] {
        let file = format!("{what}.coo");
        ForgedEntries::all_cells(dims)
            .with_fault(fault)
            .write(&dir.join(&file));
        let fields = fields
            .replace("FIT", fit)
            .replace("@F", &format!("@{file}"));
        jobs.push(format!(
            r#"{{"id":"{what}",{fields},"output":"@{what}.out"}}"#
        ));
    }
    let lines = expand_paths(&dir, &jobs.iter().map(String::as_str).collect::<Vec<_>>());
    dir.file("jobs.jsonl", lines.join("\n"));
    let batch = ["batch", "@jobs.jsonl", "-o", "@results"];
    run(expand_paths(&dir, &batch)).failed(2, &[]);
    let results = std::fs::read_to_string(dir.join("results/results.jsonl")).unwrap();
    assert_eq!(results.lines().count(), jobs.len(), "{results}");
    for line in results.lines() {
        let is_named = line.contains("failed") && line.contains("entry 8:");
        assert!(is_named, "{line}");
    }
    assert!(!dir.names().iter().any(|name| name.ends_with(".out")));
}

#[test]
fn a_row_beyond_the_sizes_of_the_model_is_an_unseen_row() {
    let dir = Scratch::new("unseen-entries");
    ForgedEntries::all_cells(TENSOR).write(&dir.join("x.coo"));
    ForgedEntries::all_cells(MATRIX).write(&dir.join("y.coo"));
    run_case(
        &dir,
        &case(
            "fit --tensor @x.coo --matrix 2:@y.coo FIT -o @m.s3m",
            TENSOR,
        ),
    )
    .ok();
    let larger: &[u64] = &[9, 7, 3];
    ForgedEntries::all_cells(larger).write(&dir.join("f.coo"));
    for command in [
        "eval @m.s3m @f.coo",
        "predict @m.s3m @f.coo",
        "recommend @m.s3m --mode 2 --for 1:2 --exclude @f.coo",
        "fit --tensor @x.coo --test @f.coo FIT -o @o.s3m",
        "fold-in @m.s3m --mode 1 --tensor @f.coo --replace -o @o.s3m",
    ] {
        run_case(&dir, &case(command, larger)).ok();
    }
}
