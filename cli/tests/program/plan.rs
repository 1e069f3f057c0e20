//! `s3cmtf fit --dry-run` and `--plan`

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::{ProgramRun, Scratch};
use crate::runner::{expand_paths, fit_command, generated_data, run, run_command};

const BLOCKED: [&str; 4] = ["--matrix", "2:@matrix1.coo", "--epochs", "4"];
const GIBBS: [&str; 5] = ["--algorithm", "gibbs", "--samples", "3", "--seed=7"];

/// Runs `fit` on the generated data with a list of arguments and further ones.
fn fit(dir: &Scratch, arguments: &[&str], further: &[&str]) -> ProgramRun {
    run_command(fit_command(dir, &[arguments, further].concat()))
}

/// Runs `fit` with the tensor, a matrix if `arguments` have one, and a plan; without options.
fn follow(dir: &Scratch, arguments: &[&str], further: &[&str]) -> ProgramRun {
    let data = match arguments.contains(&"--matrix") {
        true => &arguments[..2],
        false => &[],
    };
    let fixed = ["fit", "--tensor", "@tensor.train.coo"];
    run(expand_paths(dir, &[&fixed, data, further].concat()))
}

/// Writes the plan of a fit to a file.
fn write_plan(dir: &Scratch, arguments: &[&str], name: &str) -> String {
    let text = fit(dir, arguments, &["--dry-run", "--json"]).ok().stdout;
    dir.file(name, &text);
    text
}

/// Returns the exported arrays of a model by name.
fn exported(dir: &Scratch, model: &str) -> BTreeMap<String, Vec<u8>> {
    let folder = format!("{model}.arrays");
    run(expand_paths(
        dir,
        &["export", &format!("@{model}"), "-o", &format!("@{folder}")],
    ))
    .ok();
    let files = fs::read_dir(dir.join(&folder)).unwrap().map(|f| f.unwrap());
    let arrays = files.filter(|f| f.path().extension().is_some_and(|e| e == "npy"));
    arrays
        .map(|f| {
            (
                f.file_name().into_string().unwrap(),
                fs::read(f.path()).unwrap(),
            )
        })
        .collect()
}

/// Returns the names of the files in a folder.
fn files(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = files
        .map(|f| f.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_dry_run_prints_the_plan_and_writes_nothing() {
    let dir = generated_data("dry-run");
    let before = files(dir.path());
    let outputs = ["-o", "@m.s3m", "--checkpoint", "@c.s3m"];
    for further in [&[][..], &outputs] {
        let further = [&["--dry-run"], further].concat();
        let text = fit(&dir, &BLOCKED, &further).ok().stdout;
        for line in [
            "data: 60 x 50 x 8, ",
            "ranks 3 x 3 x 3\n",
            "algorithm: blocked, 4 epochs\n",
            "matrix 1: of mode 2, ",
            "choice: ",
            "options: algorithm=blocked ",
        ] {
            assert!(text.contains(line), "{line:?} in {text}");
        }
        let object = fit(&dir, &BLOCKED, &[&further[..], &["--json"]].concat()).ok();
        assert_eq!(object.stdout.lines().count(), 1, "{}", object.stdout);
        let plan = &object.json()[0];
        assert_eq!(plan["s3cmtf_plan"], 1);
        assert_eq!(plan["data"]["tensor"]["dims"], json!([60, 50, 8]));
        assert_eq!(plan["options"]["epochs"], "4");
        assert_eq!(plan["matrices"][0]["mode"], 2);
        let choices = plan["choices"].as_array().unwrap();
        let has_evidence = |c: &Value| c["evidence"].as_object().is_some_and(|e| !e.is_empty());
        assert!(choices.iter().any(has_evidence), "{choices:?}");
    }
    assert_eq!(files(dir.path()), before);
    // Without --dry-run the file is needed.
    fit(&dir, &BLOCKED, &[]).failed(2, &["--output <MODEL>"]);
}

#[test]
fn a_fit_that_follows_a_plan_has_the_same_arrays() {
    let dir = generated_data("plan-followed");
    for arguments in [&BLOCKED[..], &GIBBS] {
        let text = write_plan(&dir, arguments, "plan.json");
        fit(&dir, arguments, &["-o", "@fitted.s3m"]).ok();
        let lines = follow(
            &dir,
            arguments,
            &["--plan", "@plan.json", "-o", "@followed.s3m", "--json"],
        )
        .ok()
        .json();
        assert_eq!(lines.last().unwrap()["summary"]["reason"], "epochs");
        // The same options may be given again.
        let again = ["--plan", "@plan.json", "-o", "@again.s3m"];
        fit(&dir, arguments, &again).ok();
        let fitted = exported(&dir, "fitted.s3m");
        assert!(fitted.len() >= 8, "{:?}", fitted.keys());
        for model in ["followed.s3m", "again.s3m"] {
            let arrays = exported(&dir, model);
            assert!(arrays == fitted, "{model} of {arguments:?}");
            let info = run(expand_paths(
                &dir,
                &["info", &format!("@{model}"), "--json"],
            ));
            let plan: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(info.ok().json()[0]["plan"], plan);
        }
    }
}

#[test]
fn events_of_choices_have_their_evidence() {
    let dir = generated_data("plan-events");
    write_plan(&dir, &BLOCKED, "plan.json");
    let followed = ["--plan", "@plan.json", "-o", "@m.s3m", "--json"];
    let runs = [
        fit(&dir, &BLOCKED, &["-o", "@m.s3m", "--json"]),
        follow(&dir, &BLOCKED, &followed),
    ];
    let selected = runs.map(|ran| {
        let lines = ran.ok().json();
        let lines = lines.into_iter().filter(|l| l["event"] == "selected");
        lines.collect::<Vec<_>>()
    });
    assert!(!selected[0].is_empty());
    assert!(selected[0].iter().all(|l| l["evidence"].is_object()));
    assert_eq!(selected[0], selected[1]);
}

#[test]
fn info_shows_the_plan() {
    let dir = generated_data("plan-info");
    fit(&dir, &BLOCKED, &["-o", "@m.s3m"]).ok();
    let text = run(expand_paths(&dir, &["info", "@m.s3m"])).ok().stdout;
    for line in [
        "  algorithm: blocked, 4 epochs\n",
        "  matrix 1: of mode 2, ",
        "  values: minus ",
        "  estimate: ",
    ] {
        assert!(text.contains(line), "{line:?} in {text}");
    }
    assert_eq!(text.matches("  options: ").count(), 1, "{text}");
}

#[test]
fn plans_that_cannot_be_followed_are_refused() {
    let dir = generated_data("plan-refused");
    let text = write_plan(&dir, &BLOCKED, "plan.json");
    let refused = |further: &[&str], words: &[&str]| {
        let output = ["--plan", "@plan.json", "-o", "@m.s3m"];
        fit(&dir, &[], &[&output, further].concat()).failed(2, words);
        assert!(!dir.join("m.s3m").exists());
    };
    // Other data.
    refused(&[], &["1 matrices and graphs; there are 0"]);
    let tensor = ["fit", "--tensor", "@tensor.test.coo", "-o", "@m.s3m"];
    let other = [&tensor, &BLOCKED[..2], &["--plan", "@plan.json"]].concat();
    run(expand_paths(&dir, &other)).failed(2, &["the plan is for other data: its tensor is"]);
    refused(
        &[&BLOCKED[..2], &["--valid", "@tensor.test.coo"]].concat(),
        &["0 files of validation entries; there are 1"],
    );
    // Another option, another matrix, and arguments that choose options.
    let matrix = &BLOCKED[..2];
    for (argument, words) in [
        ("--epochs=5", "epochs is 5 here and 4 in the plan"),
        ("--seed=1", "seed is 1 here and 0 in the plan"),
        ("--no-biases", "biases is false here and true in the plan"),
        ("--valid=0.2", "valid_fraction is 0.2 here"),
        ("--preset=paper", "'--preset <NAME>'"),
        ("--resume=c.s3m", "c.s3m"),
        ("--dry-run", "'--dry-run'"),
        ("--init=@tensor.test.coo", "tensor.test.coo"),
    ] {
        refused(&[matrix, &[argument]].concat(), &[words]);
    }
    for (matrix, words) in [
        (
            "2:@matrix1.coo:sampled=2",
            "matrix 1: its kind is sampled=2 here and",
        ),
        (
            "2:@matrix1.coo:0.25",
            "matrix 1: its weight is 0.25 here and",
        ),
    ] {
        refused(&["--matrix", matrix], &[words]);
    }
    // Damaged files.
    let damaged = |text: &str, words: &[&str]| {
        dir.file("plan.json", text);
        refused(matrix, &[&["plan.json"], words].concat());
    };
    damaged("", &["the plan is not JSON"]);
    damaged(&text[..text.len() / 2], &["the plan is not JSON"]);
    damaged("{}", &["plan.s3cmtf_plan is missing"]);
    damaged(
        &text.replace("\"s3cmtf_plan\":1", "\"s3cmtf_plan\":9"),
        &["does not read", "--dry-run"],
    );
    damaged(
        &text.replace("\"epochs\":\"4\"", "\"epochs\":\"many\""),
        &["epochs"],
    );
    fs::remove_file(dir.join("plan.json")).unwrap();
    refused(matrix, &["plan.json"]);
}
