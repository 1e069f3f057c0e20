//! `s3cmtf batch`

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::common::Scratch;
use crate::runner::{
    expand_paths, fit_command, generated_data, program, run, run_command, run_with_input,
};
use s3cmtf::format::OpenMode;
use s3cmtf::model;
use serde_json::Value;

/// Returns the line of a fit job. `more` has further fields, `options` further options.
fn job_line(dir: &Scratch, id: &str, more: &str, options: &str) -> String {
    expand_paths(
        dir,
        &[&format!(
            r#"{{"id":"{id}","job":"fit","tensor":"@tensor.train.coo","test":"@tensor.test.coo","output":"@{id}.s3m"{more},"options":{{"rank":3{options}}}}}"#
        )],
    )
    .remove(0)
}

fn predict(dir: &Scratch, id: &str, of: &str) -> String {
    let line = format!(
        r#"{{"id":"{id}","job":"predict","model":"@{of}.s3m","file":"@tensor.test.coo","output":"@{id}.coo"}}"#
    );
    expand_paths(dir, &[&line]).remove(0)
}

fn batch(dir: &Scratch, lines: &[String], extra: &[&str]) -> Command {
    dir.file("jobs.jsonl", lines.join("\n"));
    let mut command = program();
    command.args(expand_paths(
        dir,
        &["batch", "@jobs.jsonl", "--threads", "2"],
    ));
    command.args(expand_paths(dir, extra));
    command
}

fn results(dir: &Scratch, folder: &str) -> Vec<Value> {
    let text = fs::read_to_string(dir.join(folder).join("results.jsonl")).unwrap();
    text.lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect()
}

fn numbers(path: &Path) -> (Vec<f32>, Vec<f32>) {
    let m = model::load(path, OpenMode::Private).unwrap();
    let rows = m.modes().iter().flat_map(|x| x.factor.as_slice().to_vec());
    (m.core().to_vec(), rows.collect())
}

#[test]
fn failed_job_does_not_affect_other_jobs() {
    let dir = generated_data("batch-cli");
    let mut lines = vec![
        "# what to do".into(),
        job_line(&dir, "a", "", r#","epochs":5"#),
        String::new(),
        predict(&dir, "p", "a"),
        job_line(
            &dir,
            "b",
            r#","matrices":[{"mode":2,"file":"@matrix1.coo","weight":2}]"#,
            r#","epochs":5,"threads":2"#,
        ),
    ];
    let good = lines.clone();
    lines.extend([
        job_line(
            &dir,
            "mode",
            r#","matrices":[{"mode":9,"file":"@matrix1.coo"}]"#,
            "",
        ),
        job_line(
            &dir,
            "diverges",
            "",
            r#","eta":900000,"start":"normal","epochs":5"#,
        ),
        job_line(&dir, "folder", "", "").replace("folder.s3m", "no/such/folder.s3m"),
        job_line(&dir, "large", r#","memory":"2T""#, ""),
        job_line(&dir, "wide", "", r#","threads":3"#),
        predict(&dir, "none", "none"),
        job_line(&dir, "a", "", "").replace("a.s3m", "z.s3m"),
        predict(&dir, "twin", "a").replace("twin.coo", "p.coo"),
        job_line(&dir, "in", "", "").replace("in.s3m", "tensor.test.coo"),
        job_line(&dir, "é", "", ""),
        "{\"id\":3}".into(),
        "[1]".into(),
        "{\"id\":\"x\",\"job\":\"bake\"}".into(),
        format!("{{\"id\":\"{}\"}}", "x".repeat(3 << 20)),
        job_line(&dir, "last", "", r#","epochs":2"#),
    ]);
    let ran = run_command(batch(&dir, &lines, &["--json", "--memory", "1G"])).failed(2, &[]);
    let objects = ran.json();
    let summary = &objects.last().unwrap()["summary"];
    let counts = ["jobs", "done", "failed", "skipped"].map(|n| summary[n].as_u64().unwrap());
    assert_eq!(counts, [18, 4, 14, 0], "{}", ran.stdout);
    for (id, reason, word) in [
        ("mode", "bad-input", "modes 1 to 3"),
        ("diverges", "bad-input", "diverges"),
        ("folder", "bad-input", "folder does not exist"),
        ("large", "refused", "--memory"),
        ("wide", "refused", "3 threads, and the batch has 2"),
        ("none", "bad-input", "no such file"),
        ("job-12", "bad-input", "line 2 has the id \"a\" too"),
        ("twin", "bad-input", "is written by job \"p\" (line 4) too"),
        ("in", "bad-input", "would be overwritten"),
        ("job-15", "bad-input", "letters, digits"),
        ("job-16", "bad-input", "\"id\" is a number"),
        ("job-17", "bad-input", "not an array"),
        (
            "x",
            "bad-input",
            "\"bake\"; it must be \"fit\" or \"predict\"",
        ),
        ("job-19", "bad-input", "longer than"),
    ] {
        let found = objects
            .iter()
            .find(|o| o["id"] == id && o["status"] == "failed");
        let found = found.unwrap_or_else(|| panic!("{id} did not fail: {}", ran.stdout));
        let message = found["message"].as_str().unwrap();
        assert!(
            found["reason"] == reason && message.contains(word),
            "{id}: {found}"
        );
    }
    // The journal has the same results, and each started job has a log.
    let journal = results(&dir, "jobs.batch");
    assert_eq!(journal.len(), 18);
    // The last line of a job counts; the rejected job of the same name must not replace it.
    let a = journal.iter().rfind(|r| r["id"] == "a").unwrap();
    assert_eq!(a["status"], "done");
    assert_eq!(
        (a["reason"].as_str(), a["epochs"].as_u64()),
        (Some("epochs"), Some(5))
    );
    assert_eq!(a["job"], lines[1].as_str());
    let log = fs::read_to_string(a["log"].as_str().unwrap()).unwrap();
    let log: Vec<Value> = log
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert!(
        log[0]["begins"] == "a" && log.last().unwrap()["summary"]["test_rmse"] == a["test_rmse"]
    );
    assert_eq!(
        log.iter()
            .filter(|l| l["epoch"].is_u64() && l["eta"].is_f64())
            .count(),
        5
    );
    // The model equals that of a single fit.
    run_command(fit_command(
        &dir,
        &[
            "--test",
            "@tensor.test.coo",
            "--epochs",
            "5",
            "-o",
            "@alone.s3m",
        ],
    ))
    .ok();
    assert_eq!(numbers(&dir.join("a.s3m")), numbers(&dir.join("alone.s3m")));
    run(expand_paths(
        &dir,
        &["predict", "@a.s3m", "@tensor.test.coo", "-o", "@alone.coo"],
    ))
    .ok();
    assert_eq!(
        fs::read(dir.join("p.coo")).unwrap(),
        fs::read(dir.join("alone.coo")).unwrap()
    );
    // A second run without the failing jobs skips all jobs.
    let again = run_command(batch(&dir, &good, &[])).ok();
    assert!(
        again
            .stdout
            .contains("3 jobs: 0 done, 3 skipped; 2 threads"),
        "{}",
        again.stdout
    );
    assert!(
        again.stdout.contains("job  kind     status   reason"),
        "{}",
        again.stdout
    );
}

#[test]
fn job_that_would_overwrite_the_job_file_fails() {
    let dir = generated_data("batch-own");
    let own = job_line(&dir, "own", "", "").replace("own.s3m", "jobs.jsonl");
    let command = batch(&dir, std::slice::from_ref(&own), &[]);
    let said = run_command(command);
    assert_eq!(said.code, Some(2));
    assert!(
        said.stdout.contains("a file of the batch itself"),
        "{}",
        said.stdout
    );
    assert_eq!(fs::read_to_string(dir.join("jobs.jsonl")).unwrap(), own);
}

#[test]
fn invalid_batch_arguments_are_rejected() {
    let dir = generated_data("batch-usage");
    let jobs = [job_line(&dir, "a", "", "")];
    run_command(batch(&dir, &jobs, &["--memory", "much"])).failed(2, &["--memory much", "16G"]);
    run_command(batch(&dir, &jobs, &["--memory", "0"])).failed(2, &["--memory 0"]);
    run(["batch", "-"]).failed(2, &["-o"]);
    run(expand_paths(&dir, &["batch", "@none.jsonl"])).failed(2, &["no such file"]);
    run(expand_paths(&dir, &["batch", "@"])).failed(2, &["is a folder"]);
    let nothing = run_command(batch(&dir, &[], &[])).ok();
    assert!(
        nothing.stdout.contains("0 jobs: 0 done"),
        "{}",
        nothing.stdout
    );
    let help = run(["batch", "--help"]).ok().stdout;
    for word in [
        "results.jsonl",
        "--job-threads",
        "\"job\":\"predict\"",
        "Exit codes",
    ] {
        assert!(help.contains(word), "{help}");
    }
}

/// Reads the printed objects until one satisfies `found`.
fn read_until(lines: &mut impl Iterator<Item = String>, found: impl Fn(&Value) -> bool) -> Value {
    lines
        .map(|l| serde_json::from_str::<Value>(&l).unwrap())
        .find(found)
        .expect("the batch ended before")
}

fn started(mut command: Command) -> (Child, impl Iterator<Item = String> + use<>) {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines.map_while(|l| l.ok()))
}

/// Starts a batch that reads a pipe, and writes its first job.
fn start_piped_batch(dir: &Scratch) -> (Child, impl Iterator<Item = String> + use<>, ChildStdin) {
    let mut command = program();
    command
        .args(expand_paths(dir, &["batch", "-", "-o", "@out", "--json"]))
        .stdin(Stdio::piped());
    let (mut child, out) = started(command);
    let mut pipe = child.stdin.take().unwrap();
    writeln!(pipe, "{}", job_line(dir, "a", "", r#","epochs":2"#)).unwrap();
    (child, out, pipe)
}

/// Waits until a running program has written `words` to a file.
fn wait_for(child: &mut Child, path: &Path, words: &str) {
    while !fs::read_to_string(path).is_ok_and(|t| t.contains(words)) {
        let ended = child.try_wait().unwrap();
        assert!(ended.is_none(), "{} never had {words}", path.display());
        std::thread::yield_now();
    }
}

#[test]
fn killed_batch_continues_with_unfinished_jobs() {
    let dir = generated_data("batch-kill");
    let long = r#","algorithm":"als","epochs":400,"lambda_reg":0.1"#;
    let whole = job_line(&dir, "whole", "", long);
    let lines = [
        job_line(&dir, "quick", "", r#","epochs":2"#),
        job_line(&dir, "cut", r#","checkpoint":"@c.s3m""#, long),
        predict(&dir, "p", "cut"),
    ];
    let (mut child, mut out) = started(batch(&dir, &lines, &["--json"]));
    read_until(&mut out, |o| o["id"] == "quick" && o["status"] == "done");
    let log = dir.join("jobs.batch/cut.log");
    wait_for(&mut child, &log, "\"event\":\"checkpoint\"");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!dir.join("cut.s3m").exists());
    let journal = results(&dir, "jobs.batch");
    assert!(journal.len() == 1 && journal[0]["id"] == "quick");
    // An incomplete last line, as after a crash of the machine.
    let mut journal = fs::OpenOptions::new()
        .append(true)
        .open(dir.join("jobs.batch/results.jsonl"))
        .unwrap();
    journal
        .write_all(b"{\"id\":\"cut\",\"status\":\"do")
        .unwrap();
    drop(journal);
    let ran = run_command(batch(&dir, &lines, &["--json"])).ok();
    let objects = ran.json();
    let of = |id: &str| objects.iter().find(|o| o["id"] == id).unwrap();
    assert_eq!(of("quick")["status"], "skipped");
    assert_eq!(
        (&of("cut")["status"], &of("p")["status"]),
        (&"done".into(), &"done".into())
    );
    assert!(
        of("cut")["resumed_from"].as_u64() >= Some(1),
        "{}",
        of("cut")
    );
    assert_eq!(of("cut")["epochs"], 400);
    // The result equals that of an uninterrupted batch.
    run_command(batch(&dir, &[whole], &["-o", "@other"])).ok();
    assert_eq!(
        numbers(&dir.join("cut.s3m")),
        numbers(&dir.join("whole.s3m"))
    );
    assert_eq!(results(&dir, "jobs.batch").len(), 3);
}

#[cfg(unix)]
#[test]
fn ctrl_c_interrupts_running_jobs_and_a_rerun_continues() {
    let dir = generated_data("batch-int");
    let endless = job_line(&dir, "endless", "", r#","epochs":1000000"#);
    let lines = [endless, predict(&dir, "p", "endless")];
    let (mut child, mut out) = started(batch(&dir, &lines, &["--json"]));
    read_until(&mut out, |o| o["started"] == "endless");
    wait_for(
        &mut child,
        &dir.join("jobs.batch/endless.log"),
        "\"epoch\":1,",
    );
    crate::runner::signal(&child, "-INT");
    let interrupted = read_until(&mut out, |o| o["id"] == "endless");
    assert_eq!(interrupted["status"], "interrupted");
    let summary = read_until(&mut out, |o| o["summary"].is_object());
    assert_eq!(summary["summary"]["not_started"], 1);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!dir.join("endless.s3m").exists());
    // No temporary files remain.
    assert!(
        dir.names().iter().all(|n| !n.ends_with(".tmp")),
        "{:?}",
        dir.names()
    );
    // A folder can be used by one batch at a time.
    let (mut child, mut out) = started(batch(&dir, &lines, &["--json"]));
    read_until(&mut out, |o| o["started"] == "endless");
    run_command(batch(&dir, &lines, &[])).failed(2, &["another batch is running"]);
    crate::runner::signal(&child, "-TERM");
    out.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn jobs_from_a_pipe_start_as_they_arrive() {
    let dir = generated_data("batch-pipe");
    let (mut child, mut out, mut pipe) = start_piped_batch(&dir);
    // The job ends while the pipe is still open.
    assert_eq!(read_until(&mut out, |o| o["id"] == "a")["status"], "done");
    write!(pipe, "{}", predict(&dir, "p", "a")).unwrap();
    drop(pipe);
    assert_eq!(read_until(&mut out, |o| o["id"] == "p")["status"], "done");
    assert_eq!(
        read_until(&mut out, |o| o["summary"].is_object())["summary"]["done"],
        2
    );
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let folder = dir.join("out");
    let arguments = ["batch", "-", "-o", folder.to_str().unwrap()];
    let again = run_with_input(&arguments, b"\n").ok();
    assert!(again.stdout.contains("0 jobs"), "{}", again.stdout);
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_the_wait_for_a_pipe() {
    let dir = generated_data("batch-wait");
    let (mut child, mut out, pipe) = start_piped_batch(&dir);
    read_until(&mut out, |o| o["id"] == "a");
    crate::runner::signal(&child, "-INT");
    out.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(pipe);
}

#[test]
fn job_file_in_another_encoding_is_rejected() {
    let dir = generated_data("batch-encoding");
    let job = job_line(&dir, "a", "", r#","epochs":1"#);
    let good = dir.file("marked.jsonl", format!("\u{feff}{job}\n"));
    let folder = dir.join("out");
    let batch = |file: &Path| {
        let [file, folder] = [file, &folder].map(|p| p.to_str().unwrap().to_string());
        run(["batch", &file, "-o", &folder, "--json"])
    };
    assert_eq!(
        batch(&good).ok().json().pop().unwrap()["summary"]["done"],
        1
    );
    let mut bytes = format!("# jobs\n{job}\n").into_bytes();
    bytes[10] = 0xe9;
    let bad = batch(&dir.file("latin.jsonl", bytes));
    assert_eq!(bad.code, Some(2), "{}", bad.stderr);
    let ended = bad.json();
    let job = ended.iter().find(|o| o["status"] == "failed").unwrap();
    assert_eq!(job["reason"], "bad-input");
    let message = job["message"].as_str().unwrap();
    assert!(
        message.contains("line 2: byte 4 is not valid UTF-8"),
        "{message}"
    );
}
