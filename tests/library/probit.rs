//! Two-valued tensors in `gibbs`: the probit likelihood, its choice, and models that have it.

use crate::common::Scratch;
use crate::common::in_memory::{
    Entries, SilentObserver, fit_ratings, fold_in_input, folded_model, hash_unit, options,
    predictions,
};
use s3cmtf::discover::{RankBy, RecommendOptions, recommend};
use s3cmtf::format::OpenMode;
use s3cmtf::model::{self, Model};
use s3cmtf::options::{Algorithm, LikelihoodChoice, ModelKind, Options};
use s3cmtf::predict::{
    BinaryScores, PredictOptions, evaluate, evaluate_distributions, predict_intervals,
};
use s3cmtf::problem::Problem;
use s3cmtf::solver::{FitInput, fit, fold_in};

const DIMS: [u32; 3] = [70, 50, 4];

/// Returns training and test entries with the values `low` and `high`. One in six or so is high.
fn planted(low: f64, high: f64) -> [Entries; 2] {
    let normal = |i: u64| {
        let (a, b) = (hash_unit(2 * i), hash_unit(2 * i + 1));
        (-2.0 * (1.0 - a).ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    };
    let mut parts = [(); 2].map(|()| Entries::new(&DIMS.map(u64::from)));
    for i in 0..DIMS[0] {
        for j in 0..DIMS[1] {
            for k in 0..DIMS[2] {
                let cell = u64::from((i * DIMS[1] + j) * DIMS[2] + k);
                let draw = hash_unit((1 << 40) + cell);
                if draw > 0.5 {
                    continue;
                }
                let (u, v) = (u64::from(i), (1 << 20) + u64::from(j));
                let product = 1.5 * normal(u) * normal(v);
                let biases = 0.5 * normal((1 << 21) + u) + 0.5 * normal((1 << 21) + v);
                let latent = product + biases - 1.6 + normal((1 << 30) + cell);
                let value = if latent > 0.0 { high } else { low };
                parts[usize::from(draw < 0.1)].push(&[i, j, k], value);
            }
        }
    }
    parts
}

fn with_likelihood(likelihood: LikelihoodChoice) -> Options {
    let mut o = options(Algorithm::Gibbs, ModelKind::Cp, 3);
    (o.likelihood, o.samples) = (likelihood, 20);
    o
}

fn fitted(train: &Entries, likelihood: LikelihoodChoice) -> Model {
    fit_ratings(train, None, &with_likelihood(likelihood))
}

fn is_probit(model: &Model) -> bool {
    model.samples().unwrap().link().is_some()
}

fn scores(model: &Model, test: &Entries) -> BinaryScores {
    let found = evaluate(model, &test.view(), model.range(), 1, &()).unwrap();
    found.binary.unwrap()
}

#[test]
fn probit_is_chosen_and_beats_the_gaussian_likelihood() {
    let [train, test] = planted(0.0, 1.0);
    let gaussian = fitted(&train, LikelihoodChoice::Gaussian);
    let auto = fitted(&train, LikelihoodChoice::Auto);
    assert!(!is_probit(&gaussian) && is_probit(&auto));
    let (a, b) = (scores(&auto, &test), scores(&gaussian, &test));
    assert!(a.log_loss < 0.95 * b.log_loss, "{a:?} {b:?}");
    assert!(a.auc > b.auc - 0.005, "{a:?} {b:?}");
    let found = evaluate(&auto, &test.view(), auto.range(), 2, &()).unwrap();
    assert_eq!(found.unclipped, found.clipped);
    let of_gaussian = evaluate(&gaussian, &test.view(), gaussian.range(), 2, &()).unwrap();
    assert!(found.clipped.rmse < of_gaussian.clipped.rmse);
    let events = &auto.record().events;
    let selected = events
        .iter()
        .find(|e| e.message.starts_with("likelihood: "));
    assert!(selected.unwrap().message.contains("probit (held-out RMSE"));
    // Other values are an affine function, so predictions are, too.
    let [train, test] = planted(-3.0, -1.0);
    let shifted = fitted(&train, LikelihoodChoice::Auto);
    let all = predictions(&shifted, &test);
    assert!(all.iter().all(|x| (-3.0..=-1.0).contains(x)));
    assert!((scores(&shifted, &test).log_loss / a.log_loss - 1.0).abs() < 0.1);
}

#[test]
fn the_predictive_distribution_has_two_values() {
    let [train, test] = planted(0.0, 1.0);
    let model = fitted(&train, LikelihoodChoice::Probit);
    let means = predictions(&model, &test);
    let predict = PredictOptions {
        clip: false,
        threads: 2,
    };
    let view = test.view();
    predict_intervals(&model, &view, &[0.3, 0.7], &predict, &(), |range, all| {
        for (i, d) in range.zip(all) {
            let p = means[i];
            assert_eq!(d.mean, p);
            assert!((d.standard_deviation - (p * (1.0 - p)).sqrt()).abs() < 1e-12);
            let quantile = |q: f64| f64::from(u8::from(q > 1.0 - p));
            assert_eq!(d.quantiles, [quantile(0.3), quantile(0.7)]);
        }
        Ok(())
    })
    .unwrap();
    let found = evaluate_distributions(&model, &view, 1, &()).unwrap().all;
    assert_eq!(found.levels, 2);
    assert!((found.log_score - scores(&model, &test).log_loss).abs() < 1e-9);
    let brier = evaluate(&model, &view, model.range(), 1, &()).unwrap();
    assert!((found.crps - brier.unclipped.rmse.powi(2)).abs() < 1e-9);
    assert!((0.86..0.94).contains(&found.coverage_90), "{found:?}");
}

#[test]
fn other_values_and_algorithms_are_refused() {
    let [train, _] = planted(0.0, 1.0);
    let refusal = |train: &Entries, o: &Options| {
        let problem = Problem::builder(train.view()).build(&()).unwrap();
        let input = FitInput::default();
        let fitted = fit(&problem, o, &input, &mut SilentObserver, &());
        fitted.err().map(|e| e.to_string()).unwrap_or_default()
    };
    let mut o = with_likelihood(LikelihoodChoice::Probit);
    let mut three = train.clone();
    three.values[7] = 2.0;
    assert!(refusal(&three, &o).contains("exactly two values"));
    let mut one = train.clone();
    one.values.fill(1.0);
    assert!(refusal(&one, &o).contains("exactly two values"));
    assert!(!is_probit(&fitted(&three, LikelihoodChoice::Auto)));
    assert!(!is_probit(&fitted(&one, LikelihoodChoice::Auto)));
    o.algorithm = Algorithm::Als;
    assert!(refusal(&train, &o).contains("only the algorithm gibbs"));
}

#[test]
fn samples_are_independent_of_threads_and_of_interruptions() {
    let [train, test] = planted(0.0, 1.0);
    let mut o = with_likelihood(LikelihoodChoice::Auto);
    (o.model, o.threads) = (ModelKind::Tucker, 1);
    let model = fit_ratings(&train, None, &o);
    assert!(is_probit(&model));
    let expected = predictions(&model, &test);
    o.threads = 3;
    assert_eq!(predictions(&fit_ratings(&train, None, &o), &test), expected);
    let dir = Scratch::new("probit-resume");
    let path = dir.join("c.s3m");
    let problem = Problem::builder(train.view()).build(&()).unwrap();
    let run = |o: &Options, input: FitInput<'_>| {
        fit(&problem, o, &input, &mut SilentObserver, &()).unwrap()
    };
    let mut first = o.clone();
    first.samples = 7;
    let checkpoint = FitInput {
        checkpoint: Some(path.clone()),
        ..FitInput::default()
    };
    run(&first, checkpoint);
    let resumed = FitInput {
        resume: Some(path),
        test: Some(test.view()),
        ..FitInput::default()
    };
    let (resumed, summary) = run(&o, resumed);
    assert_eq!(predictions(&resumed, &test), expected);
    let rmse = evaluate(&resumed, &test.view(), resumed.range(), 1, &()).unwrap();
    assert!((summary.test_rmse / rmse.clipped.rmse - 1.0).abs() < 1e-4);
}

#[test]
fn files_keep_the_likelihood() {
    let [train, test] = planted(1.0, 2.0);
    let model = fitted(&train, LikelihoodChoice::Probit);
    let dir = Scratch::new("probit-file");
    let path = dir.join("m.s3m");
    model::save(&model, &path).unwrap();
    let loaded = model::load(&path, OpenMode::Private).unwrap();
    let link = |m: &Model| m.samples().unwrap().link().unwrap();
    assert_eq!(link(&loaded), link(&model));
    assert_eq!((link(&model).low, link(&model).high), (1.0, 2.0));
    assert_eq!(predictions(&loaded, &test), predictions(&model, &test));
}

#[test]
fn rankings_are_by_probability() {
    let [train, _] = planted(0.0, 1.0);
    let model = fitted(&train, LikelihoodChoice::Probit);
    let ranked = |rank_by: RankBy| {
        let options = RecommendOptions {
            rank_by,
            ..RecommendOptions::new(1, 50)
        };
        let mut list = Vec::new();
        let query = |_: usize, index: &mut [u32]| index.copy_from_slice(&[5, 0, 2]);
        recommend(&model, 1, query, &options, &(), |_, rows| {
            list = rows.to_vec();
            Ok(())
        })
        .unwrap();
        list
    };
    let list = ranked(RankBy::Mean);
    let mut cells = Entries::new(&DIMS.map(u64::from));
    list.iter().for_each(|r| cells.push(&[5, r.index, 2], 0.0));
    let scores: Vec<f64> = list.iter().map(|r| r.score).collect();
    assert_eq!(predictions(&model, &cells), scores);
    assert!(list.len() == 50 && scores.is_sorted_by(|a, b| a >= b));
    // A low quantile of the probability is below its mean, a high one above.
    let score = |list: &[s3cmtf::discover::RankedRow], row: u32| {
        list.iter().find(|r| r.index == row).unwrap().score
    };
    let [low, high] = [0.1, 0.9].map(|q| ranked(RankBy::Quantile(q)));
    for r in &list {
        assert!(score(&low, r.index) < score(&high, r.index));
        assert!((0.0..=1.0).contains(&score(&low, r.index)));
    }
}

#[test]
fn rows_are_folded_in() {
    let [train, test] = planted(0.0, 1.0);
    let is_new = |index: &[u32]| index[0] % 7 == 3;
    let model = fitted(&train.filtered(|i| !is_new(i)), LikelihoodChoice::Probit);
    let new = train.filtered(is_new);
    let (folded, summary) = folded_model(&model, &fold_in_input(0, Some(&new), None));
    assert_eq!(summary.added, 10);
    let old = test.filtered(|i| !is_new(i));
    assert_eq!(predictions(&folded, &old), predictions(&model, &old));
    let all = fitted(&train, LikelihoodChoice::Probit);
    let new_test = test.filtered(is_new);
    let [of_folded, of_all, of_none] = [&folded, &all, &model].map(|m| scores(m, &new_test));
    assert!(
        of_folded.log_loss < 1.05 * of_all.log_loss,
        "{of_folded:?} {of_all:?}"
    );
    assert!(
        of_folded.log_loss < 0.9 * of_none.log_loss,
        "{of_folded:?} {of_none:?}"
    );
    let mut other = new.clone();
    other.values[0] = 0.5;
    let refused = fold_in(&model, &fold_in_input(0, Some(&other), None), &());
    let message = refused.err().unwrap().to_string();
    assert!(
        message.contains("has the value 0.5") && message.contains("0 and 1"),
        "{message}"
    );
}

#[test]
fn small_and_coupled_data_can_have_the_likelihood() {
    let [train, test] = planted(0.0, 1.0);
    // Too few entries for a comparison.
    let small = train.filtered(|i| i[0] < 6 && i[2] == 0);
    assert!(small.values.len() < 300);
    assert!(!is_probit(&fitted(&small, LikelihoodChoice::Auto)));
    let model = fitted(&small, LikelihoodChoice::Probit);
    assert!(is_probit(&model));
    let all = predictions(&model, &test);
    assert!(all.iter().all(|x| (0.0..=1.0).contains(x)));
    // A film without tensor entries, and a matrix that is not two-valued.
    let known = train.filtered(|i| i[1] != 9);
    let mut genres = Entries::new(&[DIMS[1].into(), 3]);
    (0..DIMS[1]).for_each(|j| genres.push(&[j, j % 3], 0.5 + f64::from(j % 5)));
    let o = with_likelihood(LikelihoodChoice::Probit);
    let model = fit_ratings(&known, Some(&genres), &o);
    assert!(scores(&model, &test.filtered(|i| i[1] != 9)).auc > 0.8);
    let cold = predictions(&model, &test.filtered(|i| i[1] == 9));
    assert!(cold.iter().all(|x| (0.0..=1.0).contains(x)));
}
