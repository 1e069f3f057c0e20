//! Faults of the system in small jobs.
//!
//! Every file creation, write, sync, rename, map and new thread that fails must give a clear error and the right exit code, and
//! leave earlier files intact and no temporary file. A process that is killed at such a call must leave earlier files intact,
//! and the next run must succeed and remove the temporary files. `c_tests/fault.c` fails the n-th call or kills the process
//! there, so that the points do not depend on time. The long form has all points: `CONTRIBUTING.md` has its command.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::common::native::{WARNINGS, is_installed};
use crate::common::{ProgramRun, Scratch, workspace_root};
use crate::runner::{expand_paths, program, run};
use s3cmtf::format::{OpenMode, TextOptions, is_temporary_name, open};
use s3cmtf::model;

/// Whether to test all points instead of a sample.
fn is_long() -> bool {
    std::env::var_os("S3CMTF_LONG_TESTS").is_some_and(|v| v == "1")
}

/// Returns the library that injects faults; `None` without a C compiler.
fn fault_library() -> Option<&'static Path> {
    static LIBRARY: OnceLock<Option<(Scratch, PathBuf)>> = OnceLock::new();
    let library = LIBRARY.get_or_init(|| {
        let Some(compiler) = ["gcc", "clang"].into_iter().find(|c| is_installed(c)) else {
            println!("skipped: no C compiler");
            return None;
        };
        let dir = Scratch::new("fault-library");
        let library = dir.join("libfault.so");
        let mut command = Command::new(compiler);
        command
            .args(["-std=c11", "-O1", "-shared", "-fPIC"])
            .args(WARNINGS)
            .arg(workspace_root().join("c_tests/fault.c"))
            .arg("-o")
            .arg(&library)
            .args(["-ldl", "-lpthread"]);
        ProgramRun::from(command.output().unwrap()).ok();
        Some((dir, library))
    });
    library.as_ref().map(|(_, path)| path.as_path())
}

/// A command that replaces files of an earlier run.
struct Job {
    dir: Scratch,
    arguments: Vec<&'static str>,
    /// The file for standard input.
    input: Option<&'static str>,
    /// The files that the command replaces, with their contents before.
    outputs: Vec<(&'static str, Vec<u8>)>,
    /// A folder that the command makes.
    made: Option<&'static str>,
}

/// The outcome of a job with a fault.
struct Faulty {
    run: ProgramRun,
    /// Whether the fault occurred.
    is_hit: bool,
    description: String,
}

impl Job {
    fn new(
        dir: Scratch,
        arguments: &[&'static str],
        outputs: &[&'static str],
        made: Option<&'static str>,
    ) -> Job {
        let outputs = outputs.iter();
        let outputs = outputs.map(|&name| (name, fs::read(dir.join(name)).unwrap()));
        Job {
            outputs: outputs.collect(),
            dir,
            arguments: arguments.to_vec(),
            input: None,
            made,
        }
    }

    fn command(&self) -> Command {
        let mut command = program();
        command.args(expand_paths(&self.dir, &self.arguments));
        if let Some(input) = self.input {
            command.stdin(File::open(self.dir.join(input)).unwrap());
        }
        command
    }

    /// Restores the files of the earlier run.
    fn restore(&self) {
        if let Some(folder) = self.made {
            let _ = fs::remove_dir_all(self.dir.join(folder));
        }
        for (name, bytes) in &self.outputs {
            fs::write(self.dir.join(name), bytes).unwrap();
        }
    }

    /// Restores the files and runs the command with a fault.
    fn run_with(&self, fault: &str) -> Faulty {
        self.restore();
        let report = Scratch::new("fault-report");
        let file = report.join("hit");
        let mut command = self.command();
        command
            .env("LD_PRELOAD", fault_library().unwrap())
            .env("S3CMTF_FAULT", fault)
            .env("S3CMTF_FAULT_FILE", &file);
        let run = ProgramRun::from(command.output().unwrap());
        let description = format!(
            "{} with {fault}: {:?}\n{}{}",
            self.arguments[0], run.code, run.stdout, run.stderr
        );
        Faulty {
            run,
            is_hit: file.exists(),
            description,
        }
    }

    /// Returns the number of calls of a kind; of allocations, only those of at least `least_bytes`.
    fn count(&self, kind: &str, least_bytes: u64) -> u64 {
        self.restore();
        let report = Scratch::new("fault-report");
        let file = report.join("count");
        let mut command = self.command();
        command
            .env("LD_PRELOAD", fault_library().unwrap())
            .env("S3CMTF_FAULT", format!("{kind}:0:count:{least_bytes}"))
            .env("S3CMTF_FAULT_FILE", &file);
        ProgramRun::from(command.output().unwrap()).ok();
        fs::read_to_string(file).unwrap().parse().unwrap()
    }

    /// Checks that every output is the earlier file or a complete new one.
    fn check_outputs(&self, context: &str) {
        for (name, before) in &self.outputs {
            let path = self.dir.join(name);
            let now = fs::read(&path).unwrap_or_else(|e| panic!("{name} is lost: {e}: {context}"));
            if now == *before {
                continue;
            }
            let text = TextOptions::default();
            let complete = match path.extension().unwrap().to_str().unwrap() {
                "s3m" => model::load(&path, OpenMode::Private).map(drop),
                "coo" => open((&path as &Path).into(), OpenMode::Private, &text, &()).map(drop),
                "json" => {
                    let trace = serde_json::from_slice::<serde_json::Value>(&now);
                    trace.unwrap_or_else(|e| panic!("{name}: {e}: {context}"));
                    continue;
                }
                _ => s3cmtf::format::Names::load(&path).map(drop),
            };
            complete.unwrap_or_else(|e| panic!("{name}: {e}: {context}"));
        }
    }

    /// Returns the log of the fit of a batch.
    fn log(&self) -> String {
        let log = self.made.map(|folder| self.dir.join(folder).join("m.log"));
        log.map_or(String::new(), |log| fs::read_to_string(log).unwrap())
    }

    fn temporary_files(&self) -> Vec<String> {
        let is_temporary = |name: &String| is_temporary_name(name.as_ref());
        self.dir.names().into_iter().filter(is_temporary).collect()
    }

    /// Fails each call of a kind in turn. Returns their number.
    fn fail_each(&self, kind: &str, message: &str) -> u64 {
        let mut n = 0;
        loop {
            let faulty = self.run_with(&format!("{kind}:{}:fail", n + 1));
            if !faulty.is_hit {
                assert_eq!(faulty.run.code, Some(0), "{}", faulty.description);
                return n;
            }
            n += 1;
            let context = &faulty.description;
            match faulty.run.code {
                // A folder that cannot be synced is no error, nor is a thread that is not there.
                Some(0) if ["fsync", "spawn"].contains(&kind) => {}
                // A checkpoint that a later one replaces is a warning, of a batch in the log of its job.
                Some(0) => {
                    let text = faulty.run.stderr + &self.log();
                    assert!(text.contains("the checkpoint of epoch"), "{context}");
                    assert!(text.contains(message), "no {message:?}: {context}");
                }
                // A batch records the error of a job and ends with code 2.
                Some(1 | 2) => {
                    let is_batch = self.arguments[0] == "batch";
                    assert!(faulty.run.code == Some(1) || is_batch, "{context}");
                    let text = faulty.run.stderr + &faulty.run.stdout;
                    assert!(text.contains(message), "no {message:?}: {context}");
                }
                _ => panic!("{context}"),
            }
            self.check_outputs(context);
            assert!(self.temporary_files().is_empty(), "{context}");
        }
    }

    /// Fails each call that a file system or the scheduler may refuse.
    fn fail_all_kinds(&self) {
        for (kind, message) in [
            ("create", "Too many open files"),
            ("write", "No space left on device"),
            ("fsync", "Input/output error"),
            ("rename", "Input/output error"),
            ("map", "Cannot allocate memory"),
            ("spawn", "Resource temporarily unavailable"),
        ] {
            let calls = self.fail_each(kind, message);
            println!("{}: {kind}: {calls} calls failed", self.arguments[0]);
            let has_none = self.arguments[0] == "convert" && ["map", "spawn"].contains(&kind);
            assert!(calls > 0 || has_none, "{kind}");
        }
    }

    /// Kills the process at `points` calls of a kind, spread evenly, and runs the command again after each.
    fn kill_at(&self, kind: &str, points: u64) -> u64 {
        let calls = self.count(kind, 0);
        let points = points.min(calls);
        let mut left_behind = 0;
        for point in 0..points {
            let n = 1 + point * calls / points;
            let faulty = self.run_with(&format!("{kind}:{n}:kill"));
            let context = &faulty.description;
            assert!(faulty.is_hit && faulty.run.code.is_none(), "{context}");
            self.check_outputs(context);
            left_behind += self.temporary_files().len();
            ProgramRun::from(self.command().output().unwrap()).ok();
            self.check_outputs(context);
            assert!(self.temporary_files().is_empty(), "{context}");
        }
        println!(
            "{}: killed at {points} of {calls} calls of {kind}; {left_behind} temporary files removed",
            self.arguments[0]
        );
        assert!(points == 0 || kind != "write" || left_behind > 0);
        points
    }
}

/// Ratings with names, in a folder. The values depend on `shift`.
fn ratings(rows: u32, shift: u32) -> String {
    let mut text = String::from("user,film,month,stars\n");
    for i in 0..rows {
        let (user, film, month) = (i * 7 % 40, i * 11 % 30, i * 13 % 5 + 1);
        let stars = f64::from((user + film + shift) % 9) / 2.0;
        text += &format!("u{user},f{film},{month},{stars}\n");
    }
    text
}

/// A folder with converted ratings and a model, both from an earlier run.
fn earlier_run(name: &str) -> Scratch {
    let dir = Scratch::new(name);
    dir.file("r.csv", ratings(1200, 0));
    dir.file("new.csv", ratings(1500, 1));
    let genres: String = (1..=30).map(|i| format!("{i} {} 1\n", i % 3 + 1)).collect();
    dir.file("g.tns", genres);
    for list in [
        &["convert", "@r.csv", "@d.coo"][..],
        &["convert", "@g.tns", "@g.coo"],
        &[
            "fit",
            "--tensor=@d.coo",
            "--rank=2",
            "--epochs=1",
            "--checkpoint=@c.s3m",
            "--trace=@t.json",
            "-o@m.s3m",
        ],
        &["predict", "@m.s3m", "@d.coo", "-o@p.coo"],
    ] {
        run(expand_paths(&dir, list)).ok();
    }
    dir
}

fn fit_job(name: &str) -> Job {
    Job::new(
        earlier_run(name),
        &[
            "fit",
            "--tensor=@d.coo",
            "--matrix=2:@g.coo",
            "--rank=2",
            "--threads=2",
            "--checkpoint=@c.s3m",
            "--trace=@t.json",
            "-o@m.s3m",
            "--epochs=3",
        ],
        &["m.s3m", "c.s3m", "t.json"],
        None,
    )
}

fn convert_job(name: &str) -> Job {
    Job::new(
        earlier_run(name),
        &["convert", "@new.csv", "@d.coo"],
        &["d.coo", "d.mode1.tsv", "d.mode2.tsv"],
        None,
    )
}

fn batch_job(name: &str) -> Job {
    let dir = earlier_run(name);
    let lines = [
        r#"{"id":"m","job":"fit","tensor":"@d.coo","checkpoint":"@c.s3m","output":"@m.s3m","options":{"rank":2,"epochs":2}}"#,
        r#"{"id":"p","job":"predict","model":"@m.s3m","file":"@d.coo","output":"@p.coo"}"#,
    ];
    dir.file("jobs.jsonl", expand_paths(&dir, &lines).join("\n"));
    Job::new(
        dir,
        &["batch", "@jobs.jsonl", "--threads=1"],
        &["m.s3m", "c.s3m", "p.coo"],
        Some("jobs.batch"),
    )
}

#[test]
fn failed_calls_of_a_fit_are_errors_and_keep_earlier_files() {
    if fault_library().is_some() {
        fit_job("fault-fit").fail_all_kinds();
    }
}

#[test]
fn failed_calls_of_a_conversion_are_errors_and_keep_earlier_files() {
    if fault_library().is_none() {
        return;
    }
    convert_job("fault-convert").fail_all_kinds();
    // Standard input is read on a thread of its own.
    let from_input = Job {
        arguments: vec!["convert", "-", "@d.coo"],
        input: Some("new.csv"),
        ..convert_job("fault-input")
    };
    assert!(from_input.fail_each("spawn", "Resource temporarily unavailable") > 0);
}

#[test]
fn failed_calls_of_a_batch_are_errors_and_keep_earlier_files() {
    if fault_library().is_some() {
        batch_job("fault-batch").fail_all_kinds();
    }
}

#[test]
fn killed_fit_keeps_earlier_files_and_the_next_run_cleans_up() {
    if fault_library().is_none() {
        return;
    }
    let mut job = fit_job("kill-fit");
    if is_long() {
        // Enough checkpoints for 200 writes.
        job.arguments.pop();
        job.arguments.push("--epochs=10");
    }
    let writes = if is_long() { 200 } else { 8 };
    job.kill_at("write", writes);
    job.kill_at("fsync", writes);
    job.kill_at("rename", writes);
}

#[test]
fn killed_conversion_keeps_earlier_files_and_the_next_run_cleans_up() {
    if fault_library().is_none() {
        return;
    }
    let job = convert_job("kill-convert");
    // Enough text for 200 writes.
    if is_long() {
        job.dir.file("new.csv", ratings(3_000_000, 1));
    }
    let writes = if is_long() { 200 } else { 8 };
    job.kill_at("write", writes);
    job.kill_at("rename", writes);
}

#[test]
fn killed_batch_keeps_earlier_files_and_continues() {
    if fault_library().is_none() {
        return;
    }
    let job = batch_job("kill-batch");
    let writes = if is_long() { 200 } else { 6 };
    job.kill_at("write", writes);
    job.kill_at("rename", writes);
}

#[test]
fn failed_allocations_keep_earlier_files() {
    if fault_library().is_none() {
        return;
    }
    let job = fit_job("fault-alloc");
    let calls = job.count("alloc", 0);
    let points = if is_long() { 2000 } else { 24 };
    let (mut errors, mut aborts) = (0, 0);
    for point in 0..points {
        let faulty = job.run_with(&format!("alloc:{}:fail", 1 + point * calls / points));
        let context = &faulty.description;
        if faulty.run.code.is_some() {
            assert_ne!(faulty.run.code, Some(101), "a panic: {context}");
            assert!(job.temporary_files().is_empty(), "{context}");
            errors += 1;
        } else {
            // A documented limit: failed allocations of small objects, also those of the C library, abort the process. The
            // next run removes its files.
            let messages = ["memory allocation of", "Fatal glibc error"];
            let is_documented = messages.iter().any(|m| faulty.run.stderr.contains(m));
            assert!(is_documented, "{context}");
            aborts += 1;
        }
        job.check_outputs(context);
    }
    println!(
        "fit: {errors} of {points} failed allocations were errors or tolerated, {aborts} aborted"
    );
    ProgramRun::from(job.command().output().unwrap()).ok();
    job.check_outputs("the next run");
    assert!(job.temporary_files().is_empty());
}

#[test]
fn failed_allocations_of_the_size_of_the_data_are_errors() {
    if fault_library().is_none() {
        return;
    }
    // Less than 4 bytes per entry, and more than the program allocates for its arguments.
    let (entries, least_bytes) = (60_000, 100_000);
    for algorithm in ["blocked", "opt", "als", "gibbs"] {
        let dir = Scratch::new("fault-data");
        // Without names, whose reader has a buffer of fixed size.
        let line = |i: u32| {
            format!(
                "{} {} {} {}\n",
                i * 7 % 40 + 1,
                i * 11 % 30 + 1,
                i % 5 + 1,
                i % 9
            )
        };
        dir.file("r.tns", (0..entries).map(line).collect::<String>());
        let fit = [
            "fit",
            "--tensor=@d.coo",
            "--model=tucker",
            "--rank=2",
            "--epochs=1",
            "--burn-in=1",
            "--samples=1",
            "--threads=1",
            "-o@m.s3m",
        ];
        let algorithm: &'static str = Box::leak(format!("--algorithm={algorithm}").into());
        let arguments = [&fit[..], &[algorithm]].concat();
        for list in [&["convert", "@r.tns", "@d.coo"][..], &arguments] {
            run(expand_paths(&dir, list)).ok();
        }
        let job = Job::new(dir, &arguments, &["m.s3m"], None);
        let calls = job.count("alloc", least_bytes);
        let points = if is_long() { calls } else { calls.min(10) };
        for point in 0..points {
            let n = 1 + point * calls / points;
            let faulty = job.run_with(&format!("alloc:{n}:fail:{least_bytes}"));
            let context = &faulty.description;
            assert!(faulty.is_hit && faulty.run.code == Some(1), "{context}");
            assert!(faulty.run.stderr.contains("out of memory"), "{context}");
            job.check_outputs(context);
        }
        println!("{algorithm}: {points} of {calls} large allocations failed");
        assert!(calls > 0);
    }
}
