//! `blocked` converges as fast per epoch as per-entry SGD (`opt` with one thread), for planted data of the shape of Netflix and
//! for planted data of either sign. The long form (`CONTRIBUTING.md` has its command) has 24 million training entries and more
//! settings.

use crate::common::Scratch;
use crate::runner::{expand_paths, run};

/// Epochs that are compared.
const EPOCHS: usize = 4;

/// The preset `paper` starts on a plateau, and the epoch in which a fit leaves it differs.
const PAPER: Limit = Limit {
    options: "--preset=paper",
    excess: 0.01,
};

/// The initialization of plain `fit`.
const DEFAULT: Limit = Limit {
    options: "",
    excess: 0.003,
};

/// A start and the largest test error of `blocked` relative to `opt` in any epoch, minus 1.
struct Limit {
    options: &'static str,
    excess: f64,
}

/// Generates data with the given options.
fn generate(options: &str) -> Scratch {
    let dir = Scratch::new("convergence");
    let folder = dir.path().to_str().unwrap().to_string();
    let arguments = ["generate", "--no-truth", "-o", &folder];
    run(arguments.into_iter().chain(options.split_whitespace())).ok();
    dir
}

/// Generates data like Netflix. Scale 1 has 80 million training entries.
fn netflix(scale: &str) -> Scratch {
    generate(&format!("--like=netflix --scale={scale}"))
}

/// Fits and returns the test error after each epoch. A rollback to an earlier epoch is an error.
#[track_caller]
fn test_errors(dir: &Scratch, options: &str) -> Vec<f64> {
    let fixed = "fit --tensor=@tensor.train.coo --test=@tensor.test.coo -o@model.s3m --json";
    let list = format!("{fixed} --epochs={EPOCHS} {options}");
    let arguments: Vec<&str> = list.split_whitespace().collect();
    let output = run(expand_paths(dir, &arguments)).ok().stdout;
    let mut errors = Vec::new();
    for line in output.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_ne!(line["event"], "rolled-back", "{options}: {line}");
        if line["epoch"].is_u64() && line["event"].is_null() {
            errors.push(line["test_rmse"].as_f64().unwrap());
        }
    }
    assert_eq!(errors.len(), EPOCHS, "{options}: {output}");
    errors
}

/// Returns the test errors after each epoch, averaged over seeds.
#[track_caller]
fn mean_test_errors(dir: &Scratch, options: &str, seeds: usize) -> Vec<f64> {
    let mut means = vec![0.0; EPOCHS];
    for seed in 0..seeds {
        let errors = test_errors(dir, &format!("{options} --seed={seed}"));
        for (mean, error) in means.iter_mut().zip(errors) {
            *mean += error / seeds as f64;
        }
    }
    means
}

/// Compares the mean errors of both algorithms after every epoch, and prints them.
#[track_caller]
fn compare(dir: &Scratch, limit: &Limit, options: &str, seeds: usize) -> bool {
    let options = format!("{} {options}", limit.options);
    let opt = format!("{options} --algorithm=opt --threads=1");
    let opt = mean_test_errors(dir, &opt, seeds);
    let blocked = mean_test_errors(dir, &options, seeds);
    let excess = |k: usize| blocked[k] / opt[k] - 1.0;
    let largest = (0..EPOCHS).map(excess).fold(f64::MIN, f64::max);
    let percent = 100.0 * largest;
    println!("{options}: opt {opt:.4?}, blocked {blocked:.4?}, at most {percent:+.2}%");
    largest <= limit.excess
}

#[test]
fn blocked_converges_like_per_entry_sgd() {
    let large = netflix("0.1");
    assert!(compare(&large, &PAPER, "--rank=12 --eta=0.001", 1));
    // The errors of small data depend on the seed.
    let small = netflix("0.0125");
    let matrix = "--matrix=2:@matrix1.coo:1";
    let paper = format!("--rank=12 --eta=0.001 {matrix}");
    assert!(compare(&small, &PAPER, &paper, 5));
    assert!(compare(&small, &DEFAULT, "--model=tucker --rank=8", 3));
    assert!(compare(&small, &DEFAULT, "--model=cp --rank=16", 3));
}

#[test]
fn blocked_converges_like_per_entry_sgd_while_features_grow() {
    // From the all-positive start, the features of values of either sign grow by orders of magnitude within an epoch.
    let shape = "--dims=60000,20000,50 --entries=4080000 --test=0.02 --seed=7";
    let dir = generate(&format!("{shape} --rank=6 --noise=0.5 --factor-mean=1"));
    assert!(compare(&dir, &PAPER, "--rank=12 --eta=0.001", 1));
}

#[test]
fn blocked_converges_like_per_entry_sgd_on_24_million_entries() {
    if std::env::var_os("S3CMTF_LONG_TESTS").is_none_or(|v| v != "1") {
        println!("skipped: only with S3CMTF_LONG_TESTS=1");
        return;
    }
    let dir = netflix("0.3");
    let matrix = "--matrix=2:@matrix1.coo:1";
    let mut failed = Vec::new();
    let mut check = |limit: &Limit, options: &str| {
        if !compare(&dir, limit, options, 1) {
            failed.push(format!("{} {options}", limit.options));
        }
    };
    for eta in ["0.0005", "0.001", "0.002"] {
        for rank in [8, 12, 16] {
            check(&PAPER, &format!("--rank={rank} --eta={eta}"));
        }
    }
    check(&PAPER, &format!("--rank=12 --eta=0.001 {matrix}"));
    for rank in [16, 64] {
        check(&PAPER, &format!("--model=cp --rank={rank} --eta=0.001"));
        check(&DEFAULT, &format!("--model=cp --rank={rank}"));
        check(&DEFAULT, &format!("--model=cp --rank={rank} {matrix}"));
    }
    for rank in [8, 12, 16] {
        check(&DEFAULT, &format!("--model=tucker --rank={rank}"));
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
