//! Options that a fit does not use or refuses, and what it records instead.

use s3cmtf::format::OpenMode;
use s3cmtf::model;
use serde_json::{Value, json};

use crate::common::{ProgramRun, Scratch};
use crate::runner::{fit_command, generated_data, run, run_command};

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
            "--algorithm als --eta 0.1 --samples 3",
            "not used by als: eta, samples",
        ),
        (
            "--algorithm gibbs --no-mean --lambda-reg 0.3",
            "not used by gibbs: epochs, mean, lambda_reg",
        ),
    ] {
        assert_eq!(
            warnings(&json_lines(options)),
            [json!(expected)],
            "{options}"
        );
        let shown = fit(&dir, options).ok();
        assert_eq!(
            shown.stderr.matches(expected).count(),
            1,
            "{}",
            shown.stderr
        );
    }
    // Neither a preset nor a file that has all options.
    let paper = json_lines("--algorithm als --preset paper");
    assert!(warnings(&paper).is_empty());
    let fitted = model::load(dir.join("m.s3m"), OpenMode::Mapped).unwrap();
    dir.file("all.conf", fitted.options().to_text());
    let again = json_lines("--config @all.conf");
    assert!(warnings(&again).is_empty());
    // A line of the file.
    dir.file("one.conf", "algorithm=als\nburn_in=3\n");
    let one = json_lines("--config @one.conf");
    assert_eq!(warnings(&one), [json!("not used by als: burn_in")]);
}

#[test]
fn the_model_records_what_was_fitted() {
    let dir = generated_data("effective");
    let recorded = |options: &str, names: &[&str]| -> Vec<String> {
        fit(&dir, options).ok();
        let fitted = model::load(dir.join("m.s3m"), OpenMode::Mapped).unwrap();
        let value = |name: &&str| fitted.options().get(name).unwrap();
        names.iter().map(value).collect()
    };
    let names = ["mean", "biases", "start", "lambda_reg", "eta"];
    let gibbs = "--algorithm gibbs --burn-in 1 --samples 1 --no-mean --start paper --lambda-reg 2";
    assert_eq!(
        recorded(gibbs, &names),
        ["true", "true", "identity", "0", "0"]
    );
    let als = recorded("--algorithm als --nonneg", &names[..2]);
    assert_eq!(als, ["false", "false"]);
}

#[test]
fn a_resumed_fit_takes_the_options_of_the_first() {
    let dir = generated_data("effective-resume");
    let options = "--algorithm als --nonneg";
    fit(&dir, &format!("{options} --checkpoint @c.s3m")).ok();
    let words = format!("{options} --mean --resume @c.s3m");
    let words: Vec<&str> = words
        .split(' ')
        .chain(["--epochs", "3", "-o", "@n.s3m"])
        .collect();
    run_command(fit_command(&dir, &words)).ok();
}

#[test]
fn only_fits_with_a_learning_rate_print_one() {
    let dir = generated_data("no-eta");
    for algorithm in ["als", "gibbs", "blocked"] {
        let options = format!("--algorithm {algorithm} --samples 1 --burn-in 1");
        let has_eta = algorithm == "blocked";
        let shown = fit(&dir, &options).ok();
        let heading = shown.stdout.lines().find(|l| l.contains("train RMSE"));
        assert_eq!(
            heading.unwrap().contains("eta"),
            has_eta,
            "{}",
            shown.stdout
        );
        let lines = fit(&dir, &format!("{options} --json")).ok().json();
        let epoch = lines.iter().find(|l| l["epoch"].is_u64()).unwrap();
        let eta = epoch.as_object().unwrap().get("eta").unwrap();
        assert_eq!(
            (eta.is_null(), eta.is_f64()),
            (!has_eta, has_eta),
            "{epoch}"
        );
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
    for algorithm in ["sals", "cmtf-opt", "tucker-als"] {
        refused(&format!("--algorithm {algorithm}"), "blocked");
    }
    // Before the starting values are computed.
    dir.file(
        "ranks.conf",
        "algorithm=als\nmodel=cp\nrank=5,4,3\ntime_limit=1e-9\n",
    );
    let tensor = dir.join("tensor.train.coo").display().to_string();
    let config = dir.join("ranks.conf").display().to_string();
    let target = dir.join("m.s3m").display().to_string();
    let ran = run([
        "fit", "--tensor", &tensor, "--config", &config, "-o", &target,
    ]);
    let message = "a cp model has the same rank in every mode";
    assert!(ran.stderr.contains(message), "{}", ran.stderr);
    fit(&dir, "--model cp --algorithm als").ok();
    std::fs::rename(dir.join("m.s3m"), dir.join("cp.s3m")).unwrap();
    refused(
        "--algorithm als --model tucker --init @cp.s3m",
        "the model to start from is cp, and this fit has model = tucker",
    );
}
