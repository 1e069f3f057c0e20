//! `fit --algorithm als` and `gibbs`, and predictive distributions.

use crate::common::ProgramRun;
use crate::runner::{expand_paths, fit_command, generated_data, program, run_command};

fn predict(dir: &crate::common::Scratch, model: &str, extra: &[&str]) -> ProgramRun {
    let mut command = program();
    command.args(expand_paths(dir, &["predict", model, "@tensor.test.coo"]));
    command.args(extra);
    run_command(command)
}

#[test]
fn gibbs_model_prints_deviations_and_quantiles() {
    let dir = generated_data("als-gibbs");
    let gibbs = ["--algorithm", "gibbs", "--model", "cp", "--samples", "9"];
    let files = ["--matrix", "2:@matrix1.coo", "-o", "@gibbs.s3m"];
    run_command(fit_command(&dir, &[&gibbs[..], &files].concat())).ok();
    run_command(fit_command(&dir, &["--algorithm", "als", "-o", "@als.s3m"])).ok();
    let distribution = ["--deviation", "--quantiles", "0.05,0.95"];
    let out = predict(&dir, "@gibbs.s3m", &distribution).ok().stdout;
    assert_eq!(out.lines().count(), 1200);
    for line in out.lines() {
        let numbers: Vec<f64> = line.split(' ').map(|x| x.parse().unwrap()).collect();
        let [_, _, _, mean, deviation, low, high] = numbers[..] else {
            panic!("{line}");
        };
        assert!(deviation > 0.0 && low <= mean && mean <= high, "{line}");
    }
    // The predictions equal those without these options.
    let plain = predict(&dir, "@gibbs.s3m", &[]).ok().stdout;
    for (line, plain) in out.lines().zip(plain.lines()) {
        assert!(line.starts_with(plain), "{line} {plain}");
    }
    let rejected = predict(&dir, "@als.s3m", &distribution);
    assert!(
        rejected.code == Some(2) && rejected.stderr.contains("no posterior samples"),
        "{}",
        rejected.stderr
    );
    let rejected = predict(&dir, "@gibbs.s3m", &["--quantiles", "1.5"]);
    assert!(
        rejected.code == Some(2) && rejected.stderr.contains("below 1"),
        "{}",
        rejected.stderr
    );
}

/// Values that differ by less than single precision.
#[test]
fn values_in_a_narrow_range_keep_their_digits() {
    let dir = crate::common::Scratch::new("far");
    let (mut text, mut truth) = (String::new(), Vec::new());
    for (i, j) in (0..40u32).flat_map(|i| (0..30u32).map(move |j| (i, j))) {
        let value = 1000.0 + f64::from((i % 2) ^ (j % 2)) * 1e-6;
        text += &format!("{} {} {value}\n", i + 1, j + 1);
        truth.push(value);
    }
    std::fs::write(dir.join("x.tns"), text).unwrap();
    for algorithm in ["blocked", "gibbs"] {
        let mut command = program();
        let arguments = ["--algorithm", algorithm, "--threads", "1", "-o", "@x.s3m"];
        command.args(expand_paths(&dir, &["fit", "--tensor", "@x.tns"]));
        let run = run_command({
            command.args(expand_paths(&dir, &arguments));
            command
        });
        assert!(
            run.ok().stdout.contains("e-"),
            "the RMSE is in scientific notation"
        );
        let mut command = program();
        command.args(expand_paths(&dir, &["predict", "@x.s3m", "@x.tns"]));
        let out = run_command(command).ok().stdout;
        let last = |line: &str| line.split(' ').next_back().unwrap().parse::<f64>().unwrap();
        let off = out
            .lines()
            .zip(&truth)
            .map(|(line, x)| (last(line) - x).abs());
        let worst = off.fold(0.0, f64::max);
        assert!(worst < 3e-7, "{algorithm}: {worst:e}");
    }
}

#[test]
fn two_values_are_fitted_by_their_probability_and_scored() {
    let dir = crate::common::Scratch::new("two-values");
    let mut text = String::new();
    for (i, j) in (0..50u32).flat_map(|i| (0..40u32).map(move |j| (i, j))) {
        let latent = f64::from(i * j % 7) - 4.0 + f64::from((i * 31 + j * 17) % 11) / 3.0;
        text += &format!("{} {} {}\n", i + 1, j + 1, u8::from(latent > 0.0));
    }
    std::fs::write(dir.join("x.tns"), text).unwrap();
    let run = |words: &[&str]| {
        let mut command = program();
        command.args(expand_paths(&dir, words));
        run_command(command)
    };
    let gibbs = ["--algorithm", "gibbs", "--rank", "2", "--samples", "9"];
    let files = ["fit", "--tensor", "@x.tns", "-o", "@m.s3m"];
    let fitted = run(&[&files[..], &gibbs, &["--likelihood", "probit"]].concat()).ok();
    assert!(fitted.stdout.contains("probit") || fitted.stderr.contains("probit"));
    let info = run(&["info", "@m.s3m"]).ok().stdout;
    assert!(info.contains("likelihood: probit"), "{info}");
    let eval = run(&["eval", "@m.s3m", "@x.tns"]).ok().stdout;
    assert!(
        eval.contains("values 0 and 1 ") && eval.contains("AUC 0."),
        "{eval}"
    );
    let eval = run(&["eval", "@m.s3m", "@x.tns", "--json"]).ok().json();
    let binary = &eval[0]["binary"];
    assert_eq!(binary["values"], serde_json::json!([0.0, 1.0]));
    let number = |key: &str| binary[key].as_f64().unwrap();
    assert!(number("auc") > 0.6 && number("log_loss") < 0.7 && number("high_fraction") < 0.5);
    assert_eq!(eval[0]["rmse"], eval[0]["clipped_rmse"]);
}
