//! Models and checkpoints that are intact but were not written by this library: a clear error, no panic and no output.

use std::path::Path;

use crate::common::Scratch;
use crate::common::forged_model::ForgedModel;
use crate::runner::{expand_paths, fit_command, generated_data, run, run_command};

/// Fits the generated data into `m.s3m`, with the checkpoint `c.s3m`.
fn fitted(name: &str, extra: &[&str]) -> Scratch {
    let dir = generated_data(name);
    let arguments = ["--checkpoint", "@c.s3m", "--epochs", "3", "-o", "@m.s3m"];
    run_command(fit_command(&dir, &[&arguments[..], extra].concat())).ok();
    dir
}

fn resume(dir: &Scratch, words: &[&str]) {
    let arguments = ["--resume", "@c.s3m", "--epochs", "5", "-o", "@resumed.s3m"];
    run_command(fit_command(dir, &arguments)).failed(2, words);
    assert!(!dir.join("resumed.s3m").exists());
}

#[test]
fn a_checkpoint_without_biases_is_rejected() {
    let dir = fitted("forged-biases", &[]);
    let checkpoint = dir.join("c.s3m");
    ForgedModel::read(&checkpoint)
        .remove("mode1.biases")
        .write(&checkpoint);
    resume(&dir, &["c.s3m", "0 biases of mode 2 instead of 51"]);
}

#[test]
fn a_checkpoint_whose_best_model_lacks_biases_is_rejected() {
    // Validation by noise: an early epoch is the best, so that the checkpoint has it in its own sections.
    let dir = generated_data("forged-best");
    let noise: String = (0..300)
        .map(|i| {
            format!(
                "{} {} {} {}\n",
                i % 60 + 1,
                i % 50 + 1,
                i % 8 + 1,
                i * 37 % 11
            )
        })
        .collect();
    dir.file("valid.tns", noise);
    let arguments = [
        "--valid",
        "@valid.tns",
        "--checkpoint",
        "@c.s3m",
        "--epochs",
        "8",
        "-o",
        "@m.s3m",
    ];
    run_command(fit_command(&dir, &arguments)).ok();
    let checkpoint = dir.join("c.s3m");
    ForgedModel::read(&checkpoint)
        .remove("best.biases0")
        .write(&checkpoint);
    let arguments = [
        "--valid",
        "@valid.tns",
        "--resume",
        "@c.s3m",
        "--epochs",
        "9",
        "-o",
        "@resumed.s3m",
    ];
    run_command(fit_command(&dir, &arguments)).failed(2, &["section best.biases0 is missing"]);
    assert!(!dir.join("resumed.s3m").exists());
}

#[test]
fn weights_and_penalties_of_matrices_must_be_finite_and_not_negative() {
    let dir = fitted("forged-weights", &["--matrix", "2:@matrix1.coo:2.5:0.25"]);
    let forged = dir.join("f.s3m");
    for (from, to) in [
        ("2.5e0,", "NaN,"),
        ("2.5e0,", "inf,"),
        ("2.5e0,", "-1,"),
        (",2.5e-1", ",NaN"),
        (",2.5e-1", ",-2"),
    ] {
        ForgedModel::read(&dir.join("m.s3m"))
            .replace_text("meta", from, to)
            .write(&forged);
        run([Path::new("info"), &forged]).failed(2, &["f.s3m", "finite and 0 or more"]);
    }
}

#[test]
fn more_entries_than_a_file_can_have_are_rejected() {
    let dir = fitted("forged-counts", &[]);
    let model = dir.join("m.s3m");
    let mut forged = ForgedModel::read(&model);
    for count in forged.section_mut("mode1.counts").chunks_exact_mut(8) {
        count.copy_from_slice(&(1u64 << 60).to_le_bytes());
    }
    forged.write(&model);
    run(expand_paths(
        &dir,
        &["report", "@m.s3m", "-o", "@page.html"],
    ))
    .failed(2, &["m.s3m", "mode1.counts add up to more than"]);
}

#[test]
fn numbers_that_no_fit_gives_a_model_are_rejected() {
    let dir = fitted("forged-numbers", &["--matrix", "2:@matrix1.coo"]);
    let forged = dir.join("f.s3m");
    let ranks = ["1024"; 8].join(",");
    let dims = ["4294967295"; 8].join(",");
    for (from, to, words) in [
        ("mean=", "mean=1e39\nx=", "'mean' is"),
        (
            "high=",
            "high=1e39\nx=",
            "the range of the training values is",
        ),
        ("precision=", "precision=0\nx=", "'precision' is 0"),
        (
            "dims=60,50,8\nranks=3,3,3",
            &format!("dims={dims}\nranks={ranks}"),
            "kind \"tucker\"",
        ),
        (
            "matrix0=1,6,",
            "matrix0=1,99999999999,",
            "add up to 100000000",
        ),
    ] {
        ForgedModel::read(&dir.join("m.s3m"))
            .replace_text("meta", from, to)
            .write(&forged);
        for command in ["info", "eval"] {
            let data = dir.join("tensor.test.coo");
            let data = (command == "eval").then_some(data);
            let words = ["f.s3m", words, "was not written by this library"];
            let arguments = [Path::new(command), &forged];
            run(arguments.into_iter().chain(data.as_deref())).failed(2, &words);
        }
    }
    let mut model = ForgedModel::read(&dir.join("m.s3m"));
    model.section_mut("history")[..8].copy_from_slice(&(-1.0f64).to_le_bytes());
    model.write(&forged);
    run([Path::new("info"), &forged]).failed(2, &["section history has no epoch number"]);
}

#[test]
fn states_that_no_fit_reaches_are_rejected() {
    let blocked = fitted("forged-state", &[]);
    let chain = ["--algorithm", "gibbs", "--burn-in", "1", "--samples", "2"];
    let gibbs = fitted("forged-chain", &chain);
    for (from, to, name) in [
        ("\nsweeps=", "\nsweeps=0\nx=", "sweeps"),
        ("\nsweeps=", "\nsweeps=3\nx=", "sweeps"),
        ("epoch=3\n", "epoch=9223372036854775808\n", "epoch"),
        (
            "\neta_scale=",
            "\neta_scale=0000000000000000\nx=",
            "eta_scale",
        ),
        (
            "\nnoise_ratio=",
            "\nnoise_ratio=7ff8000000000000\nx=",
            "noise_ratio",
        ),
    ] {
        let dir = match name {
            "noise_ratio" => &gibbs,
            _ => &blocked,
        };
        let checkpoint = dir.join("c.s3m");
        let kept = dir.join("kept.s3m");
        if !kept.exists() {
            std::fs::copy(&checkpoint, &kept).unwrap();
        }
        // A line of another name is refused before.
        let mut forged = ForgedModel::read(&kept).replace_text("state", from, to);
        let state = String::from_utf8(forged.section_mut("state").clone()).unwrap();
        let lines = state.lines().filter(|line| !line.starts_with("x="));
        *forged.section_mut("state") = lines.flat_map(|l| [l, "\n"]).collect::<String>().into();
        forged.write(&checkpoint);
        resume(
            dir,
            &[
                "c.s3m",
                &format!("'{name}' of its state has an invalid value"),
            ],
        );
    }
}

#[test]
fn options_of_a_checkpoint_are_checked_like_given_ones() {
    let dir = fitted("forged-options", &[]);
    let checkpoint = dir.join("c.s3m");
    ForgedModel::read(&checkpoint)
        .replace_text("options", "patience=0", "patience=3")
        .write(&checkpoint);
    resume(&dir, &["patience needs validation entries"]);
    let dir = fitted("forged-algorithm", &[]);
    let checkpoint = dir.join("c.s3m");
    ForgedModel::read(&checkpoint)
        .replace_text("options", "algorithm=blocked", "algorithm=sals")
        .write(&checkpoint);
    resume(&dir, &["it must be one of blocked, opt, naive, als, gibbs"]);
}

#[test]
fn predictions_that_overflow_are_errors() {
    let dir = fitted("forged-huge", &[]);
    let forged = dir.join("f.s3m");
    ForgedModel::read(&dir.join("m.s3m"))
        .fill("mode0.rows", 3e38)
        .fill("mode1.rows", -3e38)
        .write(&forged);
    for command in [
        &["predict", "@f.s3m", "@tensor.test.coo", "-o", "@p.coo"][..],
        &["predict", "@f.s3m", "@tensor.test.coo", "--no-clip"],
        &["eval", "@f.s3m", "@tensor.test.coo"],
    ] {
        run(expand_paths(&dir, command)).failed(2, &["prediction 1 is", "overflows"]);
    }
    assert!(!dir.join("p.coo").exists());
}

#[test]
fn text_tables_beyond_the_limit_need_a_flag() {
    let dir = fitted("forged-size", &["--matrix", "2:@matrix1.coo"]);
    let forged = dir.join("f.s3m");
    for (section, from, to, what) in [
        ("meta", "dims=60,", "dims=4294967295,", "mode 1 has"),
        (
            "meta",
            "matrix0=1,6,",
            "matrix0=1,4294967295,",
            "matrix 1 has",
        ),
    ] {
        ForgedModel::read(&dir.join("m.s3m"))
            .replace_text(section, from, to)
            .write(&forged);
        let export = expand_paths(&dir, &["export", "@f.s3m", "-o", "@factors"]);
        run(&export).failed(2, &[what, "4294967295 rows", "--large"]);
        assert!(!dir.join("factors").exists());
    }
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let dir = fitted("forged-escape", &[]);
    let forged = dir.join("f.s3m");
    ForgedModel::read(&dir.join("m.s3m"))
        .replace_text(
            "record",
            "reason=",
            "note=1 warning \u{1b}]0;owned\u{7}\nreason=",
        )
        .write(&forged);
    let shown = run([Path::new("info"), &forged]).ok();
    assert!(shown.stdout.contains("owned"), "{}", shown.stdout);
    let name = dir.join("a\u{1b}[31mb.s3m");
    let missing = run([Path::new("info"), &name]).failed(2, &["no such file"]);
    dir.file("m.s3m.mode1.tsv", "1\t\u{1b}[2Jname\n");
    let list = ["similar", "@m.s3m", "--for", "1:2", "--top", "60"];
    let listed = run(expand_paths(&dir, &list)).ok();
    assert!(listed.stdout.contains("[2Jname"), "{}", listed.stdout);
    for text in [&shown.stdout, &missing.stderr, &listed.stdout] {
        assert!(!text.contains(['\u{1b}', '\u{7}']), "{text:?}");
    }
    // A file gets names as they are.
    let csv = run(expand_paths(&dir, &[&list[..], &["--csv"]].concat())).ok();
    assert!(csv.stdout.contains("\u{1b}[2Jname"), "{}", csv.stdout);
}
