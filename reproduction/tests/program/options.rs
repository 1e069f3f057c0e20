//! Fits of baselines: options that they do not use or refuse, what the model records, and files that are no outputs.

use s3cmtf::format::OpenMode;
use s3cmtf::model;
use s3cmtf_reproduction::ALGORITHMS;
use serde_json::{Value, json};

use crate::common::{ProgramRun, Scratch};
use crate::runner::{expand_paths, fit_command, generated_data, run, run_command};

/// Fits the generated data with options separated by spaces.
fn fit(dir: &Scratch, options: &str) -> ProgramRun {
    let mut words: Vec<&str> = options.split(' ').collect();
    words.extend(["--epochs", "2", "-o", "@m.s3m"]);
    run_command(fit_command(dir, &words))
}

fn warnings(lines: &[Value]) -> Vec<Value> {
    let warnings = lines.iter().filter(|l| l["event"] == "warning");
    warnings.map(|l| l["text"].clone()).collect()
}

#[test]
fn given_options_that_the_algorithm_does_not_use_are_named_once() {
    let dir = generated_data("unused");
    let json_lines = |options: &str| fit(&dir, &format!("{options} --json")).ok().json();
    for (options, expected) in [
        (
            "--algorithm sals --unobserved zeros --lambda-m 3",
            "not used by sals: lambda_m, unobserved",
        ),
        (
            "--algorithm als --subset-size 2",
            "not used by als: subset_size",
        ),
        (
            "--algorithm tucker-als --unobserved unknown --lambda-reg 0.3",
            "not used by tucker-als: lambda_reg, unobserved",
        ),
    ] {
        let found = warnings(&json_lines(options));
        assert_eq!(found, [json!(expected)], "{options}");
    }
    // Neither a preset nor a file that has all options.
    assert!(warnings(&json_lines("--algorithm tucker-als --preset paper")).is_empty());
    let fitted = model::load_with(dir.join("m.s3m"), OpenMode::Mapped, ALGORITHMS).unwrap();
    dir.file("all.conf", fitted.options().to_text());
    let again = json_lines("--config @all.conf");
    assert!(warnings(&again).is_empty(), "{again:?}");
}

#[test]
fn the_model_records_what_was_fitted() {
    let dir = generated_data("effective");
    let recorded = |options: &str, names: &[&str]| -> Vec<String> {
        fit(&dir, options).ok();
        let fitted = model::load_with(dir.join("m.s3m"), OpenMode::Mapped, ALGORITHMS).unwrap();
        let value = |name: &&str| fitted.options().get(name).unwrap();
        names.iter().map(value).collect()
    };
    let names = ["mean", "biases", "start", "lambda_reg", "eta"];
    let tucker = recorded(
        "--algorithm tucker-als --start paper --lambda-reg 2",
        &names,
    );
    assert_eq!(tucker, ["false", "false", "normal", "0", "0"]);
    let names = ["unobserved", "mean", "biases", "start"];
    let cmtf = recorded("--algorithm cmtf-opt --unobserved zeros", &names);
    assert_eq!(cmtf, ["zeros", "false", "false", "normal"]);
    let sals = recorded("--algorithm sals --unobserved zeros", &names[1..3]);
    assert_eq!(sals, ["true", "true"]);
}

#[test]
fn a_resumed_fit_takes_the_options_of_the_first() {
    let dir = generated_data("effective-resume");
    for options in [
        "--algorithm tucker-als",
        "--algorithm cmtf-opt --unobserved zeros",
        "--algorithm sals --subset-size 2",
    ] {
        fit(&dir, &format!("{options} --checkpoint @c.s3m")).ok();
        for options in ["", options] {
            let words = format!("--resume @c.s3m {options}");
            let words: Vec<&str> = words.split_whitespace().collect();
            let further = ["--epochs", "3", "-o", "@n.s3m"];
            run_command(fit_command(&dir, &[&words[..], &further].concat())).ok();
        }
    }
}

#[test]
fn refusals_say_what_would_be_right() {
    let dir = generated_data("refused-options");
    let refused = |options: &str, message: &str| {
        let ran = fit(&dir, options);
        assert_eq!(ran.code, Some(2), "{options}");
        assert!(ran.stderr.contains(message), "{options}: {}", ran.stderr);
    };
    for zeros in ["tucker-als", "cmtf-opt --unobserved zeros"] {
        refused(
            &format!("--algorithm {zeros} --matrix 2:@matrix1.coo:sampled=3"),
            "takes all unlisted cells as 0 and samples none; couple the matrix as full",
        );
    }
    fit(&dir, "--model cp --algorithm als").ok();
    std::fs::rename(dir.join("m.s3m"), dir.join("cp.s3m")).unwrap();
    for model in ["", " --model tucker"] {
        refused(
            &format!("--algorithm tucker-als --init @cp.s3m{model}"),
            "the model to start from is cp, and tucker-als fits tucker models only; start from a tucker model",
        );
    }
    refused("--algorithm cmtf-op", "cmtf-opt");
    refused(
        "--algorithm sals --model tucker",
        "sals fits cp models only",
    );
}

#[test]
fn only_fits_with_a_learning_rate_print_one() {
    let dir = generated_data("no-eta");
    for algorithm in ["sals", "cmtf-opt", "tucker-als"] {
        let lines = fit(&dir, &format!("--algorithm {algorithm} --json"))
            .ok()
            .json();
        let epoch = lines.iter().find(|l| l["epoch"].is_u64()).unwrap();
        assert!(epoch.as_object().unwrap().get("eta").unwrap().is_null());
    }
}

#[cfg(unix)]
#[test]
fn results_do_not_replace_what_a_link_names() {
    let dir = Scratch::new("linked-results");
    dir.file("precious", "kept");
    std::fs::create_dir(dir.join("out")).unwrap();
    std::os::unix::fs::symlink(dir.join("precious"), dir.join("out/results.json")).unwrap();
    let ran = run(expand_paths(&dir, &["report", "-o", "@out"]));
    ran.failed(2, &["results.json", "is a symbolic link"]);
    assert_eq!(
        std::fs::read_to_string(dir.join("precious")).unwrap(),
        "kept"
    );
}
