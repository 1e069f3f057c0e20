//! `fit`, `eval`, `predict` and `export` as a user runs them, also when they are killed.
#![cfg(feature = "cli")]

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use common::{Ran, Scratch, program, run};
use s3cmtf::format::OpenMode;
use s3cmtf::model;

/// A folder with planted data.
fn data(name: &str) -> Scratch {
    let dir = Scratch::new(name);
    run([
        "generate",
        "-o",
        dir.path().to_str().unwrap(),
        "--dims",
        "60,50,8",
        "--entries",
        "6000",
        "--rank",
        "3",
        "--noise",
        "0.1",
        "--test",
        "0.2",
        "--matrix",
        "2:6:full",
        "--skew",
        "0.5",
    ])
    .ok();
    dir
}

/// `fit` on that data, with further arguments; words that start with @ are files of the folder.
fn fit(dir: &Scratch, extra: &[&str]) -> Command {
    let mut command = program();
    command.args(words(
        dir,
        &[
            "fit",
            "--tensor",
            "@tensor.train.coo",
            "--rank",
            "3",
            "--threads",
            "1",
        ],
    ));
    command.args(words(dir, extra));
    command
}

fn words(dir: &Scratch, list: &[&str]) -> Vec<String> {
    list.iter()
        .map(|a| a.replace('@', &format!("{}/", dir.path().display())))
        .collect()
}

fn finished(mut command: Command) -> Ran {
    Ran::from(command.output().unwrap())
}

#[test]
fn from_fit_to_predictions() {
    let dir = data("whole");
    let ran = finished(fit(
        &dir,
        &[
            "--test",
            "@tensor.test.coo",
            "--matrix",
            "2:@matrix1.coo:0.5:0.2",
            "--start",
            "normal",
            "--eta",
            "0.02",
            "--lambda-reg",
            "0.01",
            "--epochs",
            "120",
            "-o",
            "@m.s3m",
            "--json",
        ],
    ))
    .ok();
    let lines = ran.json();
    assert_eq!(
        lines
            .iter()
            .filter(|l| l["epoch"].is_u64() && l["eta"].is_f64() && l["loss"].is_f64())
            .count(),
        120
    );
    for key in [
        "train_rmse",
        "test_rmse",
        "update_seconds",
        "eval_seconds",
        "entries_per_second",
    ] {
        assert!(lines[0][key].is_f64(), "{key}");
    }
    assert!(lines[0]["valid_rmse"].is_null());
    let summary = &lines.last().unwrap()["summary"];
    for key in [
        "train_rmse",
        "test_rmse",
        "best_epoch",
        "clipped",
        "threads",
        "kernel",
        "algorithm",
        "seed",
        "epochs",
        "seconds",
        "peak_memory_bytes",
    ] {
        assert!(!summary[key].is_null(), "{key}");
    }
    let rmse = summary["test_rmse"].as_f64().unwrap();
    assert!(rmse < 0.2, "{rmse}");

    let info = run(words(&dir, &["info", "@m.s3m"])).ok().out;
    for part in [
        "a tucker model of 60 x 50 x 8, ranks 3 x 3 x 3",
        "weight 0.5",
        "epochs=120",
        "after 120 epochs",
    ] {
        assert!(info.contains(part), "{info} lacks {part:?}");
    }
    let eval = run(words(
        &dir,
        &["eval", "@m.s3m", "@tensor.test.coo", "--json"],
    ))
    .ok();
    assert!((eval.json()[0]["clipped_rmse"].as_f64().unwrap() - rmse).abs() < 1e-6);
    let text = run(words(&dir, &["predict", "@m.s3m", "@tensor.test.coo"]))
        .ok()
        .out;
    assert_eq!(text.lines().count(), 1200);
    let cells = dir.file("cells.tns", "1 2 3\n60 50 8\n9999 1 1\n");
    let some = run([
        "predict".as_ref(),
        dir.join("m.s3m").as_os_str(),
        cells.as_os_str(),
        "--no-value".as_ref(),
    ])
    .ok();
    assert_eq!(some.out.lines().count(), 3);
    assert!(some.out.starts_with("1 2 3 "), "{}", some.out);
    run(words(
        &dir,
        &["predict", "@m.s3m", "@tensor.test.coo", "-o", "@p.coo"],
    ))
    .ok();
    let back = run(words(&dir, &["convert", "@p.coo", "@p.tns"])).ok();
    assert!(back.out.contains("1,200 entries"));
    assert_eq!(
        fs::read_to_string(dir.join("p.tns")).unwrap(),
        text,
        "printed and stored predictions agree"
    );

    let files = run(words(&dir, &["export", "@m.s3m", "@ex"])).ok().out;
    for name in [
        "factor1.npy",
        "factor3.rows.npy",
        "core.npy",
        "matrix1.npy",
        "FACTOR1",
        "CFACTOR1",
        "CORETENSOR",
    ] {
        assert!(files.contains(name), "{files}");
    }
    let read = |name: &str| fs::read_to_string(dir.join("ex").join(name)).unwrap();
    assert_eq!(
        (
            read("FACTOR1").lines().count(),
            read("FACTOR2").lines().count(),
            read("CFACTOR1").lines().count()
        ),
        (60, 50, 6)
    );
    let core: Vec<Vec<String>> = read("CORETENSOR")
        .lines()
        .map(|l| l.split('\t').map(String::from).collect())
        .collect();
    assert_eq!((core.len(), core[0].len()), (27, 4));
    assert_eq!(&core[26][..3], ["3", "3", "3"]);
    // The text alone predicts what the model predicts.
    let table = |name: &str| -> Vec<Vec<f64>> {
        read(name)
            .lines()
            .map(|l| {
                l.split_terminator('\t')
                    .map(|x| x.parse().unwrap())
                    .collect()
            })
            .collect()
    };
    let factors = [table("FACTOR1"), table("FACTOR2"), table("FACTOR3")];
    let first: Vec<f64> = text
        .lines()
        .next()
        .unwrap()
        .split(' ')
        .map(|x| x.parse().unwrap())
        .collect();
    let mut x = 0.0;
    for line in &core {
        let at: Vec<usize> = line[..3].iter().map(|j| j.parse().unwrap()).collect();
        let rows = (0..3)
            .map(|n| factors[n][first[n] as usize - 1][at[n] - 1])
            .product::<f64>();
        x += rows * line[3].parse::<f64>().unwrap();
    }
    assert!((x - first[3]).abs() < 1e-3, "{x} {}", first[3]);
}

#[test]
fn presets_config_and_the_options_of_the_table() {
    let dir = data("options");
    dir.file("c.txt", "# mine\nepochs=2\neta = 0.0001\nrank=2\n");
    finished(fit(
        &dir,
        &[
            "--config",
            "@c.txt",
            "--preset",
            "paper-yelp",
            "--eta",
            "0.003",
            "-o",
            "@m.s3m",
        ],
    ))
    .ok();
    let m = model::load(dir.join("m.s3m"), OpenMode::Mapped).unwrap();
    // What is typed counts most, then the file, then the preset.
    assert_eq!(
        (m.options().eta, m.options().epochs, m.options().lambda_m),
        (0.003, 2, 10.0)
    );
    assert_eq!(m.shape().ranks, [3, 3, 3]);
    assert!(m.is_orthogonal());
    finished(fit(
        &dir,
        &[
            "--no-orthogonal",
            "--no-pin",
            "--no-clip",
            "--nonneg",
            "--model",
            "cp",
            "--epochs",
            "1",
            "-o",
            "@n.s3m",
        ],
    ))
    .ok();
    let n = model::load(dir.join("n.s3m"), OpenMode::Mapped).unwrap();
    assert!(!n.options().orthogonal && !n.options().pin && n.options().nonneg);
    let help = run(["fit", "--help"]).ok().out;
    for option in s3cmtf::options::TABLE {
        assert!(
            help.contains(&option.name.replace('_', "-")),
            "{} is missing in the help",
            option.name
        );
    }
}

#[test]
fn bad_requests_leave_nothing() {
    let dir = data("bad");
    for (extra, word) in [
        (&["--eta", "-1"][..], "eta"),
        (&["--eta", "nan"], "eta"),
        (&["--rank", "0"], "rank"),
        (&["--epochs", "x"], "epochs"),
        (&["--algorithm", "magic"], "algorithm"),
        (&["--matrix", "matrix1.coo"], "MODE:FILE"),
        (&["--matrix", "0:@matrix1.coo"], "mode 0"),
        (&["--matrix", "4:@matrix1.coo"], "mode 4"),
        (&["--matrix", "1:@matrix1.coo"], "mode 1 has size 60"),
        (&["--matrix", "2:@matrix1.coo:-1"], "weight -1"),
        (&["--matrix", "2:@nothing.coo"], "no such file"),
        (&["--graph", "2:@matrix1.coo"], "square"),
        (&["--test", "@matrix1.coo"], "has 2 modes"),
        (&["--init", "@tensor.train.coo"], "not a model file"),
        (&["--resume", "@nothing.s3m"], "no such file"),
        (&["--config", "@nothing.txt"], "nothing.txt"),
        (
            &["--checkpoint", "@no/such/folder/c.s3m"],
            "folder does not exist",
        ),
    ] {
        let mut all = extra.to_vec();
        all.extend(["-o", "@m.s3m"]);
        let ran = finished(fit(&dir, &all));
        assert!(
            ran.code == Some(2) || word == "nothing.txt",
            "{extra:?}: {} {}",
            ran.out,
            ran.err
        );
        assert!(ran.err.contains(word), "{extra:?}: {}", ran.err);
    }
    assert!(!dir.join("m.s3m").exists());
    finished(fit(&dir, &["--epochs", "1", "-o", "@m.s3m"])).ok();
    // Nothing that is read is written over.
    for (extra, word) in [
        (&["-o", "@tensor.train.coo"][..], "would be overwritten"),
        (
            &["--checkpoint", "@tensor.train.coo", "-o", "@n.s3m"],
            "would be overwritten",
        ),
        (
            &["--matrix", "2:@matrix1.coo", "-o", "@matrix1.coo"],
            "would be overwritten",
        ),
        (&["--checkpoint", "@n.s3m", "-o", "@n.s3m"], "use two files"),
        (&["--patience", "2", "-o", "@n.s3m"], "validation file"),
        (
            &["--graph", "1:@matrix1.coo:1:5", "-o", "@n.s3m"],
            "no columns of its own",
        ),
    ] {
        let mut all = vec!["--epochs", "1"];
        all.extend(extra);
        finished(fit(&dir, &all)).failed(2, &[word]);
    }
    run(words(&dir, &["check", "@tensor.train.coo"])).ok();
    // Weights that would be ignored are refused.
    dir.file("w.tns", "1 1 1 1 2\n2 2 2 1 3\n");
    run(words(&dir, &["convert", "@w.tns", "@w.coo", "--weighted"])).ok();
    run(words(&dir, &["fit", "--tensor", "@w.coo", "-o", "@n.s3m"]))
        .failed(2, &["w.coo", "has weights"]);
    // Said before the fit, not after it.
    let ran = finished(fit(&dir, &["--epochs", "1", "-o", "@no/such/m.s3m"]))
        .failed(2, &["folder does not exist"]);
    assert!(!ran.out.contains("epoch"), "{}", ran.out);
    // A model is no checkpoint.
    finished(fit(&dir, &["--resume", "@m.s3m", "-o", "@o.s3m"])).failed(2, &["not a checkpoint"]);
    run(words(&dir, &["eval", "@m.s3m", "@matrix1.coo"])).failed(2, &["has 2 modes"]);
    run(words(&dir, &["predict", "@m.s3m", "@matrix1.coo"])).failed(2, &["has 2 modes"]);
    run(words(
        &dir,
        &["eval", "@tensor.train.coo", "@tensor.test.coo"],
    ))
    .failed(2, &["not a model file"]);
}

/// Starts a long fit that writes a checkpoint every epoch and reads its output.
fn long_fit(dir: &Scratch, extra: &[&str]) -> (Child, impl Iterator<Item = String> + use<>) {
    let mut command = fit(
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
    command.args(words(dir, extra)).stdout(Stdio::piped());
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
fn kill_9_leaves_a_checkpoint_that_loads_and_resumes() {
    let dir = data("kill");
    let checkpoint = dir.join("c.s3m");
    finished(fit(&dir, &["--epochs", "2", "-o", "@old.s3m"])).ok();
    for round in 0..8 {
        let _ = fs::remove_file(&checkpoint);
        // A model from earlier, which the killed fit was to replace, stays.
        fs::copy(dir.join("old.s3m"), dir.join("m.s3m")).unwrap();
        let (mut child, mut lines) = long_fit(&dir, &[]);
        // Somewhere in the life of the fit: checkpoints follow one another closely, so that most of
        // these moments are in the middle of writing one.
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
            // Resuming ends exactly where a fit that was never killed ends, without retyping its
            // options (the checkpoint has them; one thread and the rank come from the helper).
            let last = (epoch + 3).to_string();
            finished(fit(
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
            finished(fit(&dir, &["--epochs", &last, "-o", "@whole.s3m"])).ok();
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
fn ctrl_c_ends_a_fit_with_the_model_it_has() {
    let dir = data("interrupt");
    let (mut child, mut lines) = long_fit(&dir, &[]);
    lines
        .by_ref()
        .find(|l| l.contains("\"checkpoint\""))
        .unwrap();
    let sent = Command::new("kill")
        .arg("-INT")
        .arg(child.id().to_string())
        .status()
        .unwrap();
    assert!(sent.success());
    let last = lines.last().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(last.contains("\"reason\":\"cancelled\""), "{last}");
    assert!(epoch_of(&dir.join("m.s3m")) >= 1);
}

#[cfg(target_os = "linux")]
#[test]
fn thread_counts_are_honoured_and_the_program_stays_unpinned() {
    // A fit started on one CPU only: it must not ask for another, and still run two threads.
    let dir = data("cpus");
    let has_taskset = Command::new("taskset")
        .arg("--version")
        .output()
        .is_ok_and(|o| o.status.success());
    if !has_taskset {
        println!("skipped: no taskset");
        return;
    }
    for (threads, expected) in [("0", 1), ("2", 2)] {
        let out = Command::new("taskset")
            .args(["-c", "0", env!("CARGO_BIN_EXE_s3cmtf")])
            .args(words(
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
        let lines = Ran::from(out).ok().json();
        assert_eq!(
            lines.last().unwrap()["summary"]["threads"],
            expected,
            "--threads {threads}"
        );
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_and_the_time_limit_do_not_wait_for_the_end_of_an_epoch() {
    let dir = Scratch::new("slow");
    // One epoch of this takes half a minute: the signal must be seen in the middle of it.
    run(words(
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
    limited.extend(["--time-limit", "0.2"]);
    let ran = run(words(&dir, &limited)).ok();
    assert!(
        ran.out.contains("stopped (time-limit) after 0 epochs"),
        "{}",
        ran.out
    );
    let child = program()
        .args(words(&dir, &slow))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Whenever it comes, before or during the epoch, it ends the fit.
    let sent = Command::new("kill")
        .arg("-INT")
        .arg(child.id().to_string())
        .status()
        .unwrap();
    assert!(sent.success());
    let ended = child.wait_with_output().unwrap();
    assert!(
        ended.status.code() == Some(130) || ended.status.code().is_none(),
        "{:?}",
        ended.status
    );
}

#[test]
fn a_cp_model_never_becomes_a_dense_core() {
    let dir = Scratch::new("cp");
    run(words(
        &dir,
        &[
            "generate",
            "-o",
            "@",
            "--dims",
            "9,9,9,9,9,9,9,9",
            "--entries",
            "300",
            "--rank",
            "2",
            "--no-truth",
        ],
    ))
    .ok();
    for rank in ["20", "256"] {
        let fitted = words(
            &dir,
            &[
                "fit",
                "--tensor",
                "@tensor.train.coo",
                "--model",
                "cp",
                "--rank",
                rank,
                "--epochs",
                "1",
                "-o",
                "@m.s3m",
            ],
        );
        run(fitted).ok();
        run(words(&dir, &["export", "@m.s3m", "@ex"])).ok();
        let core = fs::read_to_string(dir.join("ex/CORETENSOR")).unwrap();
        assert_eq!(core.lines().count(), rank.parse::<usize>().unwrap());
        assert!(core.starts_with("1\t1\t1\t1\t1\t1\t1\t1\t"));
        // The ranks come from the model.
        let again = words(
            &dir,
            &[
                "fit",
                "--tensor",
                "@tensor.train.coo",
                "--init",
                "@m.s3m",
                "--epochs",
                "1",
                "-o",
                "@n.s3m",
            ],
        );
        run(again).ok();
    }
}
