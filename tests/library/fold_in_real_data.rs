//! Fold-in and cold start on real data.

use crate::common::in_memory::{
    Entries, fit_ratings, fold_in_input, folded_model, hash_unit, rmse,
};
use crate::common::{open_real_file, real_data_folder};
use s3cmtf::options::{Algorithm, ModelKind, Options};
use s3cmtf::predict::evaluate;
use s3cmtf::problem::Problem;
use s3cmtf::solver::FoldIn;

/// Returns options for small models, with the hyperparameters fixed.
fn options(algorithm: Algorithm) -> Options {
    let mut o = Options::default();
    (o.algorithm, o.model, o.rank) = (algorithm, ModelKind::Cp, vec![16]);
    (o.threads, o.eval_every, o.samples) = (2, 1000, 25);
    o.lambda_reg = Some(1.5);
    o
}

/// A tenth of the rows of a mode is held out and folded in. The error on their test entries is close to that of a fit to
/// all entries.
#[test]
fn fold_in_is_close_to_a_full_fit_on_real_data() {
    let Some(folder) = real_data_folder("ml100k") else {
        return;
    };
    let train = Entries::from_view(&open_real_file(&folder, "tensor.train.tns").view());
    let test = Entries::from_view(&open_real_file(&folder, "tensor.test.tns").view());
    for algorithm in [Algorithm::Blocked, Algorithm::Gibbs] {
        let o = options(algorithm);
        let full = fit_ratings(&train, None, &o);
        for mode in [0, 1] {
            let new = |x: &[u32]| hash_unit(u64::from(x[mode])) < 0.1;
            let model = fit_ratings(&train.filtered(|x| !new(x)), None, &o);
            let more = train.filtered(new);
            let (after, _) = folded_model(
                &model,
                &FoldIn {
                    threads: 2,
                    ..fold_in_input(mode, Some(&more), None)
                },
            );
            let queried = test.filtered(new);
            let (a, b) = (rmse(&after, &queried), rmse(&full, &queried));
            println!(
                "{algorithm:?}, mode {mode}: folded in {a:.4}, fitted {b:.4}, {} entries",
                queried.values.len()
            );
            assert!(a < 1.01 * b, "{algorithm:?} {mode} {a} {b}");
        }
    }
}

/// Films without ratings are predicted from their genres, with a lower error than biases.
#[test]
fn cold_start_films_beat_the_bias_model_on_real_data() {
    let Some(folder) = real_data_folder("ml100k") else {
        return;
    };
    let train = Entries::from_view(&open_real_file(&folder, "tensor.train.tns").view());
    let test = Entries::from_view(&open_real_file(&folder, "tensor.test.tns").view());
    let genres = Entries::from_view(&open_real_file(&folder, "movie_genre.tns").view());
    let new = |x: &[u32]| hash_unit(u64::from(x[1])) < 0.1;
    let base = train.filtered(|x| !new(x));
    let mut queried = train.filtered(new);
    let more = test.filtered(new);
    (0..more.values.len()).for_each(|i| queried.push(&more.index(i), more.values[i]));
    let problem = Problem::builder(base.view()).build(&()).unwrap();
    let biases = s3cmtf::solver::fit_biases(&problem, &Default::default(), &())
        .unwrap()
        .0;
    let bias_rmse = evaluate(&biases, &queried.view(), problem.range(), 2, &())
        .unwrap()
        .clipped
        .rmse;
    for algorithm in [Algorithm::Blocked, Algorithm::Gibbs] {
        let o = options(algorithm);
        let with = rmse(&fit_ratings(&base, Some(&genres), &o), &queried);
        let without = rmse(&fit_ratings(&base, None, &o), &queried);
        println!(
            "{algorithm:?}: with genres {with:.4}, without {without:.4}, biases {bias_rmse:.4}"
        );
        assert!(
            with < 0.99 * bias_rmse && with < 0.99 * without,
            "{with} {without} {bias_rmse}"
        );
    }
}
