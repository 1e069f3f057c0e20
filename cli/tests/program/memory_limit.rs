//! Commands under a limit of memory that a core does not fit into: an error, never an abort.

use std::process::Command;

use crate::common::{ProgramRun, Scratch};
use crate::runner::{expand_paths, run};

/// Entries of a tensor of order 7. A core of rank 8 takes 16 MiB, so that it is the core that does not fit into memory.
fn entries() -> String {
    let index = |i: u32, mode: u32| 1 + (i * (7 + 2 * mode) + i / 3) % 9;
    let line = |i: u32| {
        let row: Vec<String> = (0..7).map(|mode| index(i, mode).to_string()).collect();
        format!("{} {}\n", row.join(" "), i % 5)
    };
    (0..40).map(line).collect()
}

/// Bytes between two limits, less than a core.
const STEP: usize = 12_000_000;

/// Runs a command under limits of its address space that rise by `step` bytes until it succeeds. Returns the number of runs that failed.
fn failures(dir: &Scratch, arguments: &[&str], step: usize) -> u32 {
    let mut failures = 0;
    // Below the first limit the program itself does not start.
    for limit in (24_000_000_u64..).step_by(step) {
        let script = format!("ulimit -v {} && exec \"$@\"", limit / 1024);
        let output = Command::new("sh")
            .args(["-c", &script, "sh", env!("CARGO_BIN_EXE_s3cmtf")])
            .args(expand_paths(dir, arguments))
            // Otherwise every thread reserves 64 MiB.
            .env("MALLOC_ARENA_MAX", "1")
            .output();
        let run = ProgramRun::from(output.unwrap());
        if run.code == Some(0) {
            break;
        }
        let context = format!(
            "{} below {limit} bytes: {:?}: {}",
            arguments[0], run.code, run.stderr
        );
        assert_eq!(run.code, Some(1), "{context}");
        let causes = ["out of memory", "Cannot allocate memory"];
        assert!(causes.iter().any(|c| run.stderr.contains(c)), "{context}");
        failures += 1;
    }
    failures
}

#[test]
fn cores_that_do_not_fit_into_memory_are_errors() {
    let dir = Scratch::new("memory-limit");
    dir.file("t.tns", entries());
    run(expand_paths(&dir, &["convert", "@t.tns", "@t.coo"])).ok();
    let fit = [
        "fit",
        "--tensor=@t.coo",
        "--model=tucker",
        "--rank=8",
        "--start=normal",
        "--epochs=1",
        "--threads=1",
        "-o@m.s3m",
    ];
    // `als` has many buffers of the size of the core, in double precision.
    for (algorithm, step) in [("blocked", STEP), ("opt", STEP), ("als", 5 * STEP)] {
        let algorithm = format!("--algorithm={algorithm}");
        let arguments = [&fit[..], &[&algorithm]].concat();
        let failures = failures(&dir, &arguments, step);
        println!("fit {algorithm}: {failures} limits were too low");
        // A fit has several buffers of the size of the core.
        assert!(failures >= 3, "{algorithm}: {failures}");
    }
    for arguments in [
        &["info", "@m.s3m"][..],
        &["predict", "@m.s3m", "@t.coo", "--threads=1", "-o@p.coo"],
        &["export", "@m.s3m", "-o", "@exported"],
    ] {
        let failures = failures(&dir, arguments, STEP);
        println!("{}: {failures} limits were too low", arguments[0]);
        assert!(failures >= 2, "{}: {failures}", arguments[0]);
    }
}
