//! Fits of real data, if present: errors compared with those of the authors' program, and of several threads with one.
//! The reference errors were measured with the authors' program.

use std::path::Path;

use crate::common::{open_real_file, real_data_folder};
use s3cmtf::format::CooFile;
use s3cmtf::options::{Algorithm, Initialization, Options};
use s3cmtf::predict::evaluate;
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::solver::{FitInput, FitSummary, fit};

/// Fits a model to a data set.
fn fit_data_set(folder: &Path, matrices: &[(&str, usize, f64)], options: &Options) -> FitSummary {
    fit_and_evaluate(folder, matrices, options).0
}

/// Fits a model to a data set. Returns the summary, and the training RMSE of predictions that are not clipped.
fn fit_and_evaluate(
    folder: &Path,
    matrices: &[(&str, usize, f64)],
    options: &Options,
) -> (FitSummary, f64) {
    let (train, test) = (
        open_real_file(folder, "tensor.train.tns"),
        open_real_file(folder, "tensor.test.tns"),
    );
    let files: Vec<CooFile> = matrices
        .iter()
        .map(|(name, _, _)| open_real_file(folder, &format!("{name}.tns")))
        .collect();
    let mut builder = Problem::builder(train.view());
    for ((_, mode, weight), file) in matrices.iter().zip(&files) {
        builder = builder.matrix(*mode, file.view(), *weight, MatrixKind::Observed);
    }
    let problem = builder.build(&()).unwrap();
    let input = FitInput {
        test: Some(test.view()),
        ..FitInput::default()
    };
    let (model, summary) = fit(&problem, options, &input, &mut (), &()).unwrap();
    let evaluation = evaluate(&model, &train.view(), model.range(), 0, &()).unwrap();
    (summary, evaluation.unclipped.rmse)
}

/// Returns the settings of the paper.
fn paper_options(rank: usize, epochs: u64, threads: u64, seed: u64) -> Options {
    let mut o = Options::preset("paper").unwrap();
    o.start = Initialization::Paper;
    o.rank = vec![rank];
    o.eta = Some(0.001);
    o.lambda_reg = Some(0.1);
    o.decay = 0.1;
    o.epochs = epochs;
    o.eval_every = epochs;
    o.threads = threads;
    o.seed = seed;
    o
}

const YELP: [(&str, usize, f64); 3] = [
    ("user_user", 0, 0.1),
    ("business_city", 1, 0.1),
    ("business_category", 1, 0.1),
];

#[test]
fn yelp_toy_reaches_the_error_of_the_reference_program() {
    let Some(folder) = real_data_folder("yelp_toy") else {
        return;
    };
    let options = |algorithm, epochs, seed| {
        let mut o = paper_options(5, epochs, 1, seed);
        o.algorithm = algorithm;
        o
    };
    for seed in 0..2 {
        let (summary, train) =
            fit_and_evaluate(&folder, &YELP, &options(Algorithm::Opt, 100, seed));
        let test = summary.test_rmse;
        println!(
            "yelp_toy seed {seed}: training {train:.4} (reference 0.722), test {test:.4} (1.06 to 1.09)"
        );
        assert!((train / 0.722 - 1.0).abs() < 0.03, "training {train}");
        assert!(test < 1.09, "test {test}");
    }
    // `naive` differs from `opt` in rounding only, so a few epochs suffice.
    let errors = |algorithm| {
        let (summary, train) = fit_and_evaluate(&folder, &YELP, &options(algorithm, 10, 0));
        [train, summary.test_rmse]
    };
    let (opt, naive) = (errors(Algorithm::Opt), errors(Algorithm::Naive));
    println!("yelp_toy, 10 epochs: opt {opt:?}, naive {naive:?}");
    for (opt, naive) in opt.into_iter().zip(naive) {
        assert!((naive / opt - 1.0).abs() < 1e-5, "{naive} {opt}");
    }
}

#[test]
fn ml1m_half_reaches_the_error_of_the_reference_program() {
    let Some(folder) = real_data_folder("ml1m_half") else {
        return;
    };
    for seed in 0..2 {
        let s = fit_data_set(
            &folder,
            &[("movie_genre", 1, 10.0)],
            &paper_options(12, 4, 1, seed),
        );
        println!(
            "ml1m_half seed {seed}: training {:.4} (reference 0.904), test {:.4} (0.919)",
            s.train_rmse, s.test_rmse
        );
        assert!(
            (s.train_rmse / 0.904 - 1.0).abs() < 0.01,
            "training {}",
            s.train_rmse
        );
        assert!(
            (s.test_rmse / 0.919 - 1.0).abs() < 0.01,
            "test {}",
            s.test_rmse
        );
    }
}

/// `blocked` gives the same bits with any number of threads.
#[test]
fn two_threads_give_the_result_of_one_on_real_data() {
    for (name, matrices, rank, epochs) in [
        (
            "ml100k",
            &[("movie_genre", 1usize, 1.0), ("user_attr", 0, 1.0)][..],
            8,
            3,
        ),
        ("yelp_toy", &YELP[..], 5, 6),
    ] {
        let Some(folder) = real_data_folder(name) else {
            continue;
        };
        let errors = |threads| {
            let (summary, train) =
                fit_and_evaluate(&folder, matrices, &paper_options(rank, epochs, threads, 0));
            assert_eq!(summary.threads as u64, threads);
            [summary.test_rmse, summary.train_rmse, train]
        };
        let (one, two) = (errors(1), errors(2));
        println!("{name}: one thread {one:?}, two {two:?}");
        assert_eq!(one, two, "{name}");
    }
}

/// `opt` updates rows without locks, as in the paper.
#[test]
fn lock_free_threads_reach_the_error_of_one_on_real_data() {
    for (name, matrices, rank, epochs) in [
        (
            "ml100k",
            &[("movie_genre", 1usize, 1.0), ("user_attr", 0, 1.0)][..],
            8,
            10,
        ),
        ("ml1m_half", &[("movie_genre", 1, 10.0)], 12, 4),
    ] {
        let Some(folder) = real_data_folder(name) else {
            continue;
        };
        let mut o = paper_options(rank, epochs, 1, 0);
        o.algorithm = Algorithm::Opt;
        let one = fit_data_set(&folder, matrices, &o).test_rmse;
        for threads in [2, 4, 8] {
            o.threads = threads;
            let more = fit_data_set(&folder, matrices, &o).test_rmse;
            println!("{name}: one thread {one:.4}, {threads} {more:.4}");
            assert!((more / one - 1.0).abs() < 0.01, "{name}: {one} {more}");
        }
    }
}
