//! Measurements. The measured speeds themselves are not tested.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::common::native::is_installed;
use crate::common::{ProgramRun, Scratch, workspace_root};
use crate::runner::{expand_paths, program, run, signal};
use serde_json::Value;

/// Generates a folder with one small data set, `sets/tiny`, with a matrix of mode 2.
fn tiny_sets(name: &str) -> Scratch {
    let dir = Scratch::new(name);
    let made = [
        "generate",
        "-o",
        "@sets/tiny",
        "--dims",
        "60,50,8",
        "--entries",
        "3000",
        "--test",
        "0.2",
        "--matrix",
        "2:6:full",
        "--no-truth",
    ];
    run(expand_paths(&dir, &made)).ok();
    let matrix = dir.join("sets/tiny/matrix1.coo");
    fs::rename(matrix, dir.join("sets/tiny/2_groups.coo")).unwrap();
    dir
}

fn reproduce(dir: &Scratch, arguments: &[&str]) -> ProgramRun {
    run(expand_paths(dir, arguments))
}

fn results(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("results.json")).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    all["measurements"].as_array().unwrap().clone()
}

/// Measures figures of `sets` with increasing budgets until every method has a result, because the required time depends on the
/// speed and the load of the machine. Returns the last budget and the standard output of all runs.
fn reproduce_completely(dir: &Scratch, figures: &[&str]) -> (String, String) {
    let mut text = String::new();
    let mut minutes = 0.05;
    loop {
        let budget = minutes.to_string();
        let options = ["--data", "@sets", "-o", "@out", "--budget", &budget];
        text += &reproduce(dir, &[figures, &options].concat()).ok().stdout;
        let found = results(&dir.join("out"));
        if minutes > 5.0 || found.iter().all(|m| m["status"] == "ok") {
            return (budget, text);
        }
        minutes *= 4.0;
    }
}

#[test]
fn a_folder_has_results_tables_charts_and_claims() {
    let dir = tiny_sets("figures");
    let (_, text) = reproduce_completely(&dir, &["sals", "iteration-time", "gap"]);
    assert!(text.contains("accuracy tiny: SALS-single: "), "{text}");
    let out = dir.join("out");
    let found = results(&out);
    let of = |figure: &str, method: &str| {
        let is_it = |m: &&Value| m["figure"] == figure && m["method"] == method;
        found
            .iter()
            .find(is_it)
            .unwrap_or_else(|| panic!("{figure}, {method}"))
    };
    for method in ["SALS-single", "S3CMTF-CP", "S3CMTF-TUCKER"] {
        let m = of("accuracy", method);
        assert_eq!(m["status"], "ok", "{m}");
        assert!(m["test_rmse"].as_f64().unwrap() > 0.0);
        assert!(m["peak_memory_bytes"].as_u64().unwrap() > 0);
        assert!(!m["epochs"].as_array().unwrap().is_empty());
        let (search, fit) = (
            m["search"].as_str().unwrap(),
            m["command"].as_str().unwrap(),
        );
        assert!(
            search.starts_with("s3cmtf-reproduction tune --tensor tiny/train.coo "),
            "{search}"
        );
        assert!(fit.contains("--test tiny/test.coo"), "{fit}");
        // They are compared without matrices.
        assert!(!fit.contains("--matrix"), "{fit}");
    }
    let opt = of("iteration-time", "S3CMTF-opt");
    assert!(
        opt["command"]
            .as_str()
            .unwrap()
            .contains("--matrix 2:tiny/2_groups.coo"),
        "{opt}"
    );
    assert!(
        opt["seconds_per_epoch"].as_f64().unwrap() > 0.0
            && opt["evaluation_seconds"].as_f64().unwrap() > 0.0
    );
    assert!(
        !of("gap", "coupled, non-negative")["gap"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    for file in ["sals.svg", "iteration-time.svg", "gap.svg"] {
        let svg = fs::read_to_string(out.join(file)).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("tiny"), "{file}");
    }
    let page = fs::read_to_string(out.join("reproduction.md")).unwrap();
    assert!(
        page.contains(
            "| An iteration of S3CMTF-CP is 2.3 times faster than one of SALS-single | an iteration of SALS-single takes at least 2.3 times as long, at the same rank | tiny: "
        ),
        "{page}"
    );
    // Figures that were not asked for are not in it.
    assert!(
        !page.contains("number of cores") && !out.join("cores.svg").exists(),
        "{page}"
    );
    let lines = fs::read_to_string(out.join("results.csv"))
        .unwrap()
        .lines()
        .count();
    assert_eq!(lines, 1 + found.len());
    assert!(
        fs::read_to_string(out.join("epochs.csv"))
            .unwrap()
            .contains("accuracy,tiny,SALS-single,,1,")
    );
}

#[test]
fn a_second_run_continues() {
    let dir = tiny_sets("continued");
    let (budget, _) = reproduce_completely(&dir, &["sals"]);
    let first = ["sals", "--data", "@sets", "-o", "@out", "--budget", &budget];
    let before = results(&dir.join("out"));
    // Nothing is measured twice, and what is missing is added.
    let text = reproduce(&dir, &first).ok().stdout;
    assert!(!text.contains("SALS-single"), "{text}");
    assert_eq!(results(&dir.join("out")), before);
    reproduce(&dir, &[&["gap"], &first[..]].concat()).ok();
    let after = results(&dir.join("out"));
    assert_eq!(after[..before.len()], before[..]);
    assert_eq!(after.len(), before.len() + 4);
}

/// reproduction/peers adds a measurement of another program, whose command has no paths of the machine.
#[test]
fn other_programs_are_added_to_the_tables() {
    let python = std::env::var("S3CMTF_PYTHON").unwrap_or_else(|_| "python3".into());
    if !is_installed(&python) {
        println!("skipped: {python} is not on this machine");
        return;
    }
    let dir = tiny_sets("other programs");
    reproduce_completely(&dir, &["sals"]);
    let script = r#"
import argparse, sys
import reproduction
options = argparse.Namespace(train="/home/a b/train.tns", test="text/test.tns", matrix=["2:/home/groups.tns"], threads=2,
                             seed=0, limit=60.0, data_name="tiny")
command = reproduction.recorded_command("smurff", options)
fields = {"status": "ok", "test_rmse": 0.1234, "seconds": 5.0, "limit_seconds": 60.0, "command": command, "reason": "sweeps"}
reproduction.append(sys.argv[1], "tiny", "SMURFF", fields)
"#;
    let peers = workspace_root().join("reproduction/peers");
    let mut add = std::process::Command::new(python);
    add.args(["-B", "-c", script])
        .arg(dir.join("out/results.json"))
        .current_dir(peers);
    // The second measurement replaces the first.
    for _ in 0..2 {
        ProgramRun::from(add.output().unwrap()).ok();
    }
    let found = results(&dir.join("out"));
    let of_smurff: Vec<&Value> = found.iter().filter(|m| m["method"] == "SMURFF").collect();
    assert_eq!(of_smurff.len(), 1);
    assert_eq!(
        of_smurff[0]["command"],
        "python3 reproduction/peers/compare.py --train tiny/train.tns --test tiny/test.tns --matrix 2:tiny/groups.tns \
         --programs smurff --threads 2 --seed 0 --limit 60"
    );
    reproduce(&dir, &["report", "-o", "@out"]).ok();
    let page = fs::read_to_string(dir.join("out/reproduction.md")).unwrap();
    assert!(page.contains("| tiny | SMURFF | 0.1234 | 5 |"), "{page}");
}

#[test]
fn methods_that_cannot_be_measured_are_in_the_tables() {
    let dir = tiny_sets("limits");
    // A budget without time for more than the smallest sizes.
    let arguments = ["entries", "-o", "@out", "--budget", "0.02"];
    reproduce(&dir, &arguments).ok();
    let found = results(&dir.join("out"));
    let largest = |m: &&Value| m["x"] == 100_000_000u64;
    assert_eq!(found.iter().filter(largest).count(), 6);
    for m in found.iter().filter(largest) {
        assert_eq!(m["status"], "skipped", "{m}");
        assert!(m["message"].as_str().unwrap().contains("the budget"), "{m}");
    }
    let page = fs::read_to_string(dir.join("out/reproduction.md")).unwrap();
    assert!(page.contains("- 100M, skipped: "), "{page}");
    let chart = fs::read_to_string(dir.join("out/entries.svg")).unwrap();
    // It is only in the table.
    assert!(!chart.contains("skipped"), "{chart}");
}

#[test]
fn all_methods_are_compared_on_data_of_order_4() {
    let dir = Scratch::new("order 4");
    let made = [
        "generate",
        "-o",
        "@four",
        "--dims",
        "30,20,8,6",
        "--entries",
        "3000",
        "--test",
        "0.2",
        "--matrix",
        "2:6:full",
        "--no-truth",
    ];
    run(expand_paths(&dir, &made)).ok();
    fs::rename(dir.join("four/matrix1.coo"), dir.join("four/2_groups.coo")).unwrap();
    let arguments = [
        "accuracy",
        "--data",
        "@four",
        "-o",
        "@out",
        "--budget",
        "0.3",
        "--threads",
        "1",
    ];
    reproduce(&dir, &arguments).ok();
    let found = results(&dir.join("out"));
    assert_eq!(found.len(), 10);
    let page = fs::read_to_string(dir.join("out/reproduction.md")).unwrap();
    for m in &found {
        assert!(m["given_seconds"].as_f64().unwrap() > 0.0, "{m}");
        // Slow methods may run out of time, but none is missing.
        let status = m["status"].as_str().unwrap();
        assert!(["ok", "O.O.T."].contains(&status), "{m}");
        assert!(
            m["search"]
                .as_str()
                .unwrap()
                .contains("s3cmtf-reproduction tune"),
            "{m}"
        );
        // The command names all options that the search found.
        let (command, options) = (
            m["command"].as_str().unwrap(),
            m["options"].as_str().unwrap(),
        );
        assert!(
            command.contains(options) && !command.contains("--config"),
            "{m}"
        );
        let row = format!("| four | {} |", m["method"].as_str().unwrap());
        assert!(page.contains(&row), "{page}");
    }
    // The recorded command, repeated, has the recorded error, unless time ended the fit.
    let is_complete = |m: &&Value| m["reason"] == "epochs" && m["method"] != "gibbs";
    for m in found.iter().filter(is_complete) {
        let words = m["command"].as_str().unwrap().split(' ').skip(1);
        let words: Vec<&str> = words.collect();
        let limit = words.iter().position(|w| *w == "--time-limit").unwrap();
        let path = |w: &str| match w {
            "four/train.coo" => "@four/tensor.train.coo".into(),
            "four/test.coo" => "@four/tensor.test.coo".into(),
            "2:four/2_groups.coo" => "2:@four/2_groups.coo".into(),
            "model.s3m" => "@model.s3m".into(),
            other => other.to_string(),
        };
        let kept = words
            .iter()
            .enumerate()
            .filter(|(k, _)| *k != limit && *k != limit + 1);
        let words: Vec<String> = kept
            .map(|(_, w)| path(w))
            .chain(["--json".into()])
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let text = run(expand_paths(&dir, &words)).ok().stdout;
        let summary: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        assert_eq!(summary["summary"]["test_rmse"], m["test_rmse"], "{m}");
    }
}

#[test]
fn sizes_of_modes_and_threads_are_compared() {
    let dir = Scratch::new("scaling");
    let arguments = [
        "dimensionality",
        "cores",
        "-o",
        "@out",
        "--budget",
        "0.1",
        "--threads",
        "2",
    ];
    reproduce(&dir, &arguments).ok();
    let found = results(&dir.join("out"));
    let of = |figure: &str| found.iter().filter(|m| m["figure"] == figure).count();
    assert_eq!((of("dimensionality"), of("cores")), (6 * 6, 3 * 2));
    for m in found.iter().filter(|m| m["figure"] == "cores") {
        assert_eq!(m["status"], "ok", "{m}");
        assert!(m["speed_up"].as_f64().unwrap() > 0.0);
        assert_eq!(m["independent_speed_up"].is_number(), m["x"] == 2, "{m}");
        assert!(m["peak_memory_bytes"].as_u64().unwrap() > 0);
    }
    let page = fs::read_to_string(dir.join("out/reproduction.md")).unwrap();
    assert!(
        page.contains("entries instead of 1,000,000")
            && page.contains("Peak memory, including the independent fits: blocked "),
        "{page}"
    );
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_what_is_finished() {
    let dir = tiny_sets("interrupted");
    let arguments = [
        "all",
        "--data",
        "@sets",
        "-o",
        "@out",
        "--budget",
        "5",
        "--threads",
        "1",
    ];
    let mut child = program()
        .args(expand_paths(&dir, &arguments))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let has_results = || {
        let text = fs::read_to_string(dir.join("out/results.json")).unwrap_or_default();
        text.contains("\"status\"")
    };
    while !has_results() {
        assert!(child.try_wait().unwrap().is_none(), "it ended early");
        std::thread::sleep(Duration::from_millis(20));
    }
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let before = results(&dir.join("out"));
    // The measurement that was interrupted is not among them.
    assert!(before.iter().all(|m| m["status"] == "ok"), "{before:?}");
    assert!(!before.is_empty() && dir.join("out/reproduction.md").exists());
    // The next run goes on from there.
    let more = [
        "--threads",
        "1",
        "sals",
        "--data",
        "@sets",
        "-o",
        "@out",
        "--budget",
        "0.05",
    ];
    reproduce(&dir, &more).ok();
    assert_eq!(results(&dir.join("out"))[..before.len()], before[..]);
}

#[test]
fn a_larger_budget_measures_skipped_sizes() {
    let dir = Scratch::new("larger budget");
    let count = |status: &str| {
        let found = results(&dir.join("out"));
        found.iter().filter(|m| m["status"] == status).count()
    };
    let measure = |budget: f64| {
        let budget = budget.to_string();
        reproduce(&dir, &["entries", "-o", "@out", "--budget", &budget]).ok();
    };
    measure(0.01);
    let (measured, all) = (count("ok"), results(&dir.join("out")).len());
    // The time that the next size needs depends on the speed and the load of the machine.
    let mut budget = 0.1;
    while count("ok") == measured && budget < 20.0 {
        measure(budget);
        budget *= 2.0;
    }
    assert!(count("ok") > measured, "{measured} at {budget} minutes");
    // Replaced, not added.
    assert_eq!(results(&dir.join("out")).len(), all);
}

#[test]
fn bad_data_sets_are_refused() {
    let dir = tiny_sets("bad sets");
    let refused = |words: &[&str]| {
        reproduce(
            &dir,
            &["gap", "--data", "@sets", "-o", "@out", "--budget", "0.02"],
        )
        .failed(2, words);
    };
    let matrix = dir.join("sets/tiny/2_groups.coo");
    // A matrix whose name does not say its mode is not ignored.
    fs::copy(&matrix, dir.join("sets/tiny/groups.coo")).unwrap();
    refused(&["groups.coo", "MODE_NAME.coo"]);
    fs::remove_file(dir.join("sets/tiny/groups.coo")).unwrap();
    fs::copy(
        dir.join("sets/tiny/tensor.test.coo"),
        dir.join("sets/tiny/tensor.test.tns"),
    )
    .unwrap();
    refused(&["2 files tensor.test.FORMAT"]);
    fs::remove_file(dir.join("sets/tiny/tensor.test.tns")).unwrap();
    let tensor = dir.join("sets/tiny/tensor.train.coo");
    let test = dir.join("sets/tiny/tensor.test.coo");
    let test_entries = fs::read(&test).unwrap();
    fs::copy(&matrix, &test).unwrap();
    refused(&["tensor.test.coo", "has 2 modes, the training tensor has 3"]);
    fs::copy(&tensor, &test).unwrap();
    refused(&["tensor.test.coo", "has the entries of the training tensor"]);
    fs::write(&test, test_entries).unwrap();
    // Data that no method takes is not measured method by method.
    fs::copy(&tensor, dir.join("sets/tiny/1_cube.coo")).unwrap();
    refused(&["sets/tiny", "1_cube.coo"]);
    fs::remove_file(dir.join("sets/tiny/1_cube.coo")).unwrap();
    fs::write(dir.join("sets/tiny/7_groups.csv"), "a,b,value\n1,1,1\n").unwrap();
    refused(&["7_groups.csv", "a mode from 1 to 3"]);
    fs::remove_file(dir.join("sets/tiny/7_groups.csv")).unwrap();
    fs::write(dir.join("sets/tiny/meta.json"), "{").unwrap();
    refused(&["meta.json", "is not JSON"]);
    fs::remove_file(dir.join("sets/tiny/meta.json")).unwrap();
    fs::rename(&tensor, dir.join("sets/tiny/tensor_train.coo")).unwrap();
    refused(&["tiny", "has no tensor.train.FORMAT"]);
    // Nothing was measured, so repaired data is accepted.
    fs::rename(dir.join("sets/tiny/tensor_train.coo"), &tensor).unwrap();
    let repaired = ["gap", "--data", "@sets", "-o", "@out", "--budget", "0.02"];
    reproduce(&dir, &repaired).ok();
}

#[test]
fn results_of_other_data_are_not_mixed() {
    let dir = tiny_sets("mixed");
    let arguments = ["gap", "--data", "@sets", "-o", "@out", "--budget", "0.02"];
    reproduce(&dir, &arguments).ok();
    for (option, value) in [("--seed", "7"), ("--threads", "1")] {
        // The first run had all threads.
        if option == "--threads" && std::thread::available_parallelism().unwrap().get() == 1 {
            continue;
        }
        let mut other = arguments.to_vec();
        other.extend([option, value]);
        reproduce(&dir, &other).failed(2, &["another seed, number of threads or machine"]);
    }
    // The same sizes with other values.
    let test = dir.join("sets/tiny/tensor.test.coo");
    let made = [
        "generate",
        "-o",
        "@other",
        "--dims",
        "60,50,8",
        "--entries",
        "3000",
        "--test",
        "0.2",
        "--seed",
        "5",
        "--no-truth",
    ];
    run(expand_paths(&dir, &made)).ok();
    fs::copy(dir.join("other/tensor.test.coo"), test).unwrap();
    reproduce(&dir, &arguments).failed(2, &["results of other data", "tiny"]);
}

#[test]
fn bad_arguments_are_refused() {
    let dir = tiny_sets("refused");
    let refused = |arguments: &[&str], words: &[&str]| {
        reproduce(&dir, arguments).failed(2, words);
    };
    refused(&["speed"], &["invalid value 'speed'", "iteration-time"]);
    refused(
        &["sals", "--data", "@none", "-o", "@out"],
        &["none", "no such"],
    );
    fs::create_dir(dir.join("empty")).unwrap();
    refused(
        &["sals", "--data", "@empty", "-o", "@out"],
        &["has no data set", "tensor.train"],
    );
    fs::remove_file(dir.join("sets/tiny/tensor.test.coo")).unwrap();
    refused(
        &["sals", "--data", "@sets/tiny", "-o", "@out"],
        &["tensor.test"],
    );
    for budget in ["--budget=0", "--budget=-1", "--budget=nan", "--budget=inf"] {
        refused(&["cores", budget, "-o", "@out"], &["budget"]);
    }
    refused(
        &["cores", "--threads", "100000", "-o", "@out"],
        &["threads", "4096"],
    );
    refused(&["cores", "--budget=1e300", "-o", "@out"], &["budget"]);
    refused(&["report", "-o", "@nothing"], &["no results to report"]);
    assert!(!dir.join("nothing").exists());
    fs::write(dir.join("file"), "").unwrap();
    reproduce(&dir, &["cores", "-o", "@file"]).failed(2, &["file", "is no folder"]);
    fs::create_dir(dir.join("other")).unwrap();
    fs::write(dir.join("other/results.json"), "[]").unwrap();
    refused(&["cores", "-o", "@other"], &["not a file of results"]);
}
