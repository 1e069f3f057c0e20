//! Fits that are killed, interrupted, stopped by the time limit, or restricted to some CPUs.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::{ProgramRun, Scratch};
use crate::runner::{expand_paths, fit_command, generated_data, program, run, run_command};
use s3cmtf::format::OpenMode;
use s3cmtf::model;

/// Starts a long fit that writes a checkpoint after every epoch. Returns the process and its output lines.
fn long_fit(dir: &Scratch, extra: &[&str]) -> (Child, impl Iterator<Item = String> + use<>) {
    let mut command = fit_command(
        dir,
        &[
            "--checkpoint",
            "@c.s3m",
            "--epochs",
            "1000000",
            "--json",
            "-o",
            "@m.s3m",
        ],
    );
    command
        .args(expand_paths(dir, extra))
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    (child, lines)
}

fn epoch_of(path: &Path) -> u64 {
    model::load(path, OpenMode::Private)
        .unwrap()
        .history()
        .last()
        .unwrap()
        .epoch
}

#[test]
fn killed_fit_leaves_a_checkpoint_that_resumes() {
    let dir = generated_data("kill");
    let checkpoint = dir.join("c.s3m");
    run_command(fit_command(&dir, &["--epochs", "2", "-o", "@old.s3m"])).ok();
    for round in 0..8 {
        let _ = fs::remove_file(&checkpoint);
        // A killed fit does not change an earlier model at its output path.
        fs::copy(dir.join("old.s3m"), dir.join("m.s3m")).unwrap();
        // This schedule is independent of the number of epochs, which differs when resuming.
        let (mut child, mut lines) = long_fit(&dir, &["--schedule", "inverse"]);
        // Checkpoints follow one another closely, so that most kills happen while one is written.
        lines
            .by_ref()
            .find(|l| l.contains("\"checkpoint\""))
            .unwrap();
        let _ = lines.by_ref().nth(3 * round);
        child.kill().unwrap();
        child.wait().unwrap();
        let epoch = epoch_of(&checkpoint);
        assert!(epoch >= 1 && epoch_of(&dir.join("m.s3m")) == 2);
        if round == 3 {
            // The resumed fit equals an uninterrupted one. Its options come from the checkpoint, except for threads and
            // rank, which the helper sets.
            let last = (epoch + 3).to_string();
            run_command(fit_command(
                &dir,
                &[
                    "--resume",
                    "@c.s3m",
                    "--epochs",
                    &last,
                    "-o",
                    "@resumed.s3m",
                ],
            ))
            .ok();
            let whole = [
                "--schedule",
                "inverse",
                "--epochs",
                &last,
                "-o",
                "@whole.s3m",
            ];
            run_command(fit_command(&dir, &whole)).ok();
            let numbers = |name: &str| {
                let m = model::load(dir.join(name), OpenMode::Private).unwrap();
                let rows: Vec<f32> = m
                    .modes()
                    .iter()
                    .flat_map(|x| x.factor.as_slice().to_vec())
                    .collect();
                (m.core().to_vec(), rows)
            };
            assert_eq!(numbers("resumed.s3m"), numbers("whole.s3m"));
        }
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_fit_and_saves_its_model() {
    let dir = generated_data("interrupt");
    let (mut child, mut lines) = long_fit(&dir, &[]);
    lines
        .by_ref()
        .find(|l| l.contains("\"checkpoint\""))
        .unwrap();
    crate::runner::signal(&child, "-INT");
    let last = lines.last().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(last.contains("\"reason\":\"cancelled\""), "{last}");
    assert!(epoch_of(&dir.join("m.s3m")) >= 1);
}

#[cfg(target_os = "linux")]
#[test]
fn fit_uses_only_allowed_cpus() {
    // A fit that is restricted to one CPU runs two threads on it.
    let dir = generated_data("cpus");
    let can_choose = Command::new("taskset")
        .args(["-c", "0", "true"])
        .output()
        .is_ok_and(|o| o.status.success());
    if !can_choose {
        println!("skipped: no taskset, or CPU 0 is not ours");
        return;
    }
    for (threads, expected) in [("0", 1), ("2", 2)] {
        let out = Command::new("taskset")
            .args(["-c", "0", env!("CARGO_BIN_EXE_s3cmtf")])
            .args(expand_paths(
                &dir,
                &[
                    "fit",
                    "--tensor",
                    "@tensor.train.coo",
                    "--epochs",
                    "1",
                    "--rank",
                    "2",
                    "--json",
                    "-o",
                    "@m.s3m",
                    "--threads",
                    threads,
                ],
            ))
            .output()
            .unwrap();
        let lines = ProgramRun::from(out).ok().json();
        assert_eq!(
            lines.last().unwrap()["summary"]["threads"],
            expected,
            "--threads {threads}"
        );
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_and_time_limit_end_a_fit_within_an_epoch() {
    let dir = Scratch::new("slow");
    // One epoch takes half a minute, so the signal must be handled within it.
    run(expand_paths(
        &dir,
        &[
            "generate",
            "-o",
            "@",
            "--dims",
            "3000,2000,50",
            "--entries",
            "100000",
            "--rank",
            "2",
            "--no-truth",
        ],
    ))
    .ok();
    let slow = [
        "fit",
        "--tensor",
        "@tensor.train.coo",
        "--algorithm",
        "naive",
        "--rank",
        "30",
        "--threads",
        "1",
        "-o",
        "@m.s3m",
    ];
    let mut limited = slow.to_vec();
    // Preparations without a fit of their own take under a second, so that the limit passes within the epoch.
    limited.extend(["--start", "normal", "--time-limit", "6"]);
    let ran = run(expand_paths(&dir, &limited)).ok();
    assert!(
        ran.stdout.contains("stopped (time-limit) after 0 epochs"),
        "{}",
        ran.stdout
    );
    // Selections are printed before the first epoch, which the signal then ends.
    for (name, existing) in [("-INT", None), ("-TERM", Some("old"))] {
        let model = dir.join("m.s3m");
        let _ = fs::remove_file(&model);
        if let Some(text) = existing {
            fs::write(&model, text).unwrap();
        }
        let mut child = program()
            .args(expand_paths(&dir, &slow))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let is_last = |line: &String| line.starts_with("noise: ");
        lines.by_ref().map_while(Result::ok).find(is_last).unwrap();
        crate::runner::signal(&child, name);
        let text: Vec<String> = lines.map_while(Result::ok).collect();
        let ended = ProgramRun::from(child.wait_with_output().unwrap());
        ended.failed(130, &["error: cancelled"]);
        let what = match existing {
            None => "is the model of epoch 0",
            Some(_) => "is kept as it was",
        };
        assert!(text.iter().any(|line| line.contains(what)), "{text:?}");
        match existing {
            None => assert!(
                model::load(&model, OpenMode::Private)
                    .unwrap()
                    .history()
                    .is_empty()
            ),
            Some(old) => assert_eq!(fs::read_to_string(&model).unwrap(), old),
        }
        assert!(!dir.join("m.s3m.mode1.tsv").exists());
    }
}

/// Runs a command with a time limit that has passed before its first epoch or trial, without and with a file at its output.
fn run_out_of_time(dir: &Scratch, arguments: &[&str], output: &str) -> ProgramRun {
    let limited = [arguments, &["--time-limit=1e-9", "-o", output]].concat();
    let ran = run(expand_paths(dir, &limited)).ok();
    let path = dir.join(output.trim_start_matches('@'));
    assert!(path.exists());
    fs::write(&path, "old").unwrap();
    let kept = run(expand_paths(dir, &limited)).failed(2, &["the time was up"]);
    assert!(kept.stdout.contains("is kept as it was"), "{}", kept.stdout);
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    ran
}

#[test]
fn results_without_an_epoch_do_not_replace_files() {
    let dir = generated_data("out-of-time");
    let fit = ["fit", "--tensor=@tensor.train.coo", "--rank=2"];
    let ran = run_out_of_time(&dir, &fit, "@m.s3m");
    assert!(
        ran.stdout.contains("is the model of epoch 0"),
        "{}",
        ran.stdout
    );
    let tune = ["tune", "--tensor=@tensor.train.coo", "--rank=2"];
    let ran = run_out_of_time(&dir, &tune, "@best.conf");
    assert!(
        ran.stdout.contains("has the default options"),
        "{}",
        ran.stdout
    );
    // The default options are options of a fit.
    run(expand_paths(
        &dir,
        &[
            "tune",
            "--tensor=@tensor.train.coo",
            "--time-limit=1e-9",
            "-o@d.conf",
        ],
    ))
    .ok();
    let with_options = [&fit[..], &["--config=@d.conf", "--epochs=1", "-o@n.s3m"]].concat();
    run(expand_paths(&dir, &with_options)).ok();
    // A job of a batch.
    let job = r#"{"job":"fit","tensor":"@tensor.train.coo","output":"@b.s3m","options":{"time_limit":1e-9}}"#;
    dir.file("jobs", expand_paths(&dir, &[job]).concat());
    run(expand_paths(&dir, &["batch", "@jobs", "-o@first"])).ok();
    dir.file("b.s3m", "old");
    let failed = run(expand_paths(&dir, &["batch", "@jobs", "-o@second"]));
    assert!(
        failed
            .stdout
            .contains("the time was up before the first epoch"),
        "{}",
        failed.stdout
    );
    assert_eq!(failed.code, Some(2));
    assert_eq!(fs::read_to_string(dir.join("b.s3m")).unwrap(), "old");
}

#[test]
fn the_time_limit_counts_preparations() {
    let dir = Scratch::new("preparations");
    let line = |i: u32| {
        let row: Vec<String> = (0..8).map(|m| (1 + i * (m + 3) % 7).to_string()).collect();
        format!("{} {}\n", row.join(" "), i % 4)
    };
    dir.file("t.tns", (0..50).map(line).collect::<String>());
    // The initial values of a core of 8^8 entries take longer than the limit. Preparations may last half a second beyond it:
    // on a fast machine they end before, and the first epoch is cut short.
    let fit = "fit --tensor=@t.tns --model=tucker --rank=8 --time-limit=0.01 -o@m.s3m";
    let arguments: Vec<&str> = fit.split(' ').collect();
    let ran = run(expand_paths(&dir, &arguments));
    let (out, error) = (&ran.stdout, &ran.stderr);
    assert_eq!(ran.code, Some(0), "{error}");
    let is_first = |n: u32| out.contains(&format!("stopped (time-limit) after {n} epoch"));
    assert!(is_first(0) || is_first(1), "{out}");
    assert!(dir.join("m.s3m").exists());
}

/// Returns whether a process has a handler for SIGINT or has ended.
#[cfg(target_os = "linux")]
pub fn has_interrupt_handler(child: &Child) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigCgt:"));
    let mask = u64::from_str_radix(mask.unwrap().trim(), 16).unwrap();
    const SIGINT: u32 = 2;
    status.contains("(zombie)") || mask & 1 << (SIGINT - 1) != 0
}
