//! `s3cmtf tune`

use std::fs;
use std::process::Command;

use crate::common::Scratch;
use crate::runner::{expand_paths, generated_data, program, run_command};
use serde_json::Value;

fn tune(dir: &Scratch, extra: &[&str]) -> Command {
    let mut command = program();
    let fixed = [
        "tune",
        "--tensor",
        "@tensor.train.coo",
        "--matrix",
        "2:@matrix1.coo",
        "--threads",
        "2",
        "--lambda-reg",
        "0.1..1",
        "--epochs",
        "10",
        "--trials",
        "9",
    ];
    command
        .args(expand_paths(dir, &fixed))
        .args(expand_paths(dir, extra));
    command
}

#[test]
fn fit_takes_the_options_that_tune_writes() {
    let dir = generated_data("tune-config");
    let ran = run_command(tune(&dir, &["--json", "-o", "@best.conf"])).ok();
    let objects = ran.json();
    let summary = &objects.last().unwrap()["summary"];
    let table: Vec<&Value> = objects.iter().filter(|o| o["place"].is_u64()).collect();
    assert_eq!((table.len(), summary["trials"].as_u64()), (9, Some(9)));
    assert!(objects.iter().any(|o| o["rung"] == 1 && o["done"] == 9));
    assert_eq!(
        (
            summary["reason"].as_str(),
            summary["failed_trials"].as_u64()
        ),
        (Some("epochs"), Some(0))
    );
    assert!(summary["valid_rmse"].as_f64() <= summary["default_rmse"].as_f64());
    let options = table[0]["options"].as_object().unwrap();
    assert_eq!(table[0]["valid_rmse"], summary["valid_rmse"]);
    let config = fs::read_to_string(dir.join("best.conf")).unwrap();
    assert!(!config.contains("threads=") && config.contains("seed=0\n"));
    // A fit with that file has its options, including the weight of the matrix.
    let mut fit = program();
    let arguments = [
        "fit",
        "--tensor",
        "@tensor.train.coo",
        "--matrix",
        "2:@matrix1.coo",
        "--config",
        "@best.conf",
        "--threads",
        "1",
        "-o",
        "@model.s3m",
    ];
    fit.args(expand_paths(&dir, &arguments));
    run_command(fit).ok();
    let mut info = program();
    info.args(expand_paths(&dir, &["info", "--json", "@model.s3m"]));
    let info = run_command(info).ok().stdout;
    for (name, value) in options {
        let value = value.as_str().unwrap();
        assert!(
            config.contains(&format!("{name}={value}\n")),
            "{name}={value}: {config}"
        );
        assert!(info.contains(value), "{name}={value}: {info}");
    }
    assert!(options.contains_key("lambda_m") && options.contains_key("rank"));
    // Text output and a resumed search give the same options.
    let text = run_command(tune(&dir, &["-o", "@again.conf", "--checkpoint", "@state"]))
        .ok()
        .stdout;
    assert!(
        text.contains("trial 0 has the default options") && text.contains("validation RMSE"),
        "{text}"
    );
    assert_eq!(fs::read_to_string(dir.join("again.conf")).unwrap(), config);
    fs::remove_file(dir.join("again.conf")).unwrap();
    let known = run_command(tune(&dir, &["-o", "@again.conf", "--resume", "@state"]))
        .ok()
        .stdout;
    assert!(
        !known.contains("rung 1/3"),
        "nothing is fitted again: {known}"
    );
    assert_eq!(fs::read_to_string(dir.join("again.conf")).unwrap(), config);
}

#[test]
fn invalid_tune_arguments_are_rejected() {
    let dir = generated_data("tune-bad");
    for (extra, words) in [
        (&["-o", "@x", "--valid", "0"][..], "above 0 and below 1"),
        (&["-o", "@x", "--valid", "1"], "above 0 and below 1"),
        (&["-o", "@x", "--valid", "@none.coo"], "no such file"),
        (&["-o", "@x", "--rank", "8..2"], "the interval is empty"),
        (&["-o", "@x", "--rank", "2,"], "a value is missing"),
        (&["-o", "@x", "--model", "cq"], "must be one of"),
        (&["-o", "@x", "--rungs", "0"], "rungs = 0"),
        (&["-o", "@x", "--resume", "@none"], "no such file"),
        (&["-o", "@tensor.train.coo"], "would be overwritten"),
        (&["-o", "@x", "--checkpoint", "@x"], "cannot be both"),
        (&["-o", "@no/such/x"], "folder does not exist"),
        (&["-o", "@x", "--lambda-m", "-1..1"], "must be"),
        (
            &["-o", "@x", "--algorithm", "als", "--eta", "0.1,0.2"],
            "als does not use eta",
        ),
        (&["-o", "@x", "--config", "@matrix1.coo"], "not UTF-8"),
    ] {
        run_command(tune(&dir, extra)).failed(2, &[words]);
        assert!(!dir.join("x").exists());
    }
    let mut unknown = tune(&dir, &["-o", "@x"]);
    unknown.args(["--rnak", "3"]);
    run_command(unknown).failed(2, &["--rnak"]);
    // Validation entries from a file.
    run_command(tune(&dir, &["-o", "@x", "--valid", "@tensor.test.coo"])).ok();
}

#[cfg(unix)]
#[test]
fn ctrl_c_saves_the_best_options_so_far() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;
    let dir = generated_data("tune-int");
    let mut command = program();
    let arguments = [
        "tune",
        "--tensor",
        "@tensor.train.coo",
        "--threads",
        "2",
        "--lambda-reg",
        "0.1..1",
        "--trials",
        "2000",
        "-o",
        "@best.conf",
        "--checkpoint",
        "@state",
    ];
    command
        .args(expand_paths(&dir, &arguments))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("rung 1/3"));
    crate::runner::signal(&child, "-INT");
    let rest: Vec<String> = lines.map_while(|l| l.ok()).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(
        rest.iter().any(|l| l.contains("stopped (cancelled)")),
        "{rest:?}"
    );
    assert!(
        fs::read_to_string(dir.join("best.conf"))
            .unwrap()
            .contains("rank=")
    );
    assert!(
        fs::read_to_string(dir.join("state"))
            .unwrap()
            .starts_with("s3cmtf-tune")
    );
}
