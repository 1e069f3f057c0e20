//! The noise of `gibbs`, which is chosen by held-out training entries: structure is found, and noise is not fitted.

use crate::common::in_memory::{Entries, SilentObserver, hash_unit, options, rmse};
use s3cmtf::model::Model;
use s3cmtf::options::{Algorithm, ModelKind};
use s3cmtf::predict::{PredictOptions, predict_intervals};
use s3cmtf::problem::Problem;
use s3cmtf::solver::{FitInput, fit};

const USERS: u32 = 400;
const ITEMS: u32 = 300;

/// Returns training and test entries: user and item biases of standard deviation 0.5, a product of standard deviation
/// `structure`, and noise of standard deviation 1.
fn planted(structure: f64) -> [Entries; 2] {
    let normal = |i: u64| {
        let (a, b) = (hash_unit(2 * i), hash_unit(2 * i + 1));
        (-2.0 * (1.0 - a).ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    };
    let dims = [USERS, ITEMS].map(u64::from);
    let mut parts = [Entries::new(&dims), Entries::new(&dims)];
    for i in 0..USERS {
        for j in 0..ITEMS {
            let cell = u64::from(i * ITEMS + j);
            let draw = hash_unit((1 << 40) + cell);
            if draw > 0.08 {
                continue;
            }
            let (u, v) = (u64::from(i), (1 << 20) + u64::from(j));
            let biases = 0.5 * normal(u) + 0.5 * normal(v);
            let product = structure * normal((1 << 21) + u) * normal((1 << 21) + v);
            let part = usize::from(draw < 0.02);
            parts[part].push(&[i, j], biases + product + normal((1 << 30) + cell));
        }
    }
    parts
}

fn fit_gibbs(train: &Entries, rank: usize) -> Model {
    let problem = Problem::builder(train.view()).build(&()).unwrap();
    let o = options(Algorithm::Gibbs, ModelKind::Cp, rank);
    let (model, _) = fit(&problem, &o, &FitInput::default(), &mut SilentObserver, &()).unwrap();
    model
}

#[test]
fn a_large_rank_does_not_fit_noise() {
    let [train, test] = planted(0.0);
    let (none, many) = (
        rmse(&fit_gibbs(&train, 1), &test),
        rmse(&fit_gibbs(&train, 24), &test),
    );
    assert!(many < 1.005 * none, "{many} {none}");
    let [train, test] = planted(0.8);
    let (one, many) = (
        rmse(&fit_gibbs(&train, 1), &test),
        rmse(&fit_gibbs(&train, 24), &test),
    );
    assert!(many < 1.02 * one, "{many} {one}");
    assert!(many < 1.12, "{many}");
}

#[test]
fn intervals_of_biases_alone_have_nominal_coverage() {
    let [train, test] = planted(0.0);
    let model = fit_gibbs(&train, 8);
    let predict = PredictOptions {
        clip: false,
        threads: 2,
    };
    let mut inside = 0.0;
    let view = test.view();
    predict_intervals(&model, &view, &[0.05, 0.95], &predict, &(), |range, all| {
        for (i, d) in range.zip(all) {
            let interval = d.quantiles[0]..=d.quantiles[1];
            inside += f64::from(interval.contains(&test.values[i]));
        }
        Ok(())
    })
    .unwrap();
    let coverage = inside / test.values.len() as f64;
    assert!((0.86..0.94).contains(&coverage), "{coverage}");
}

#[test]
fn outliers_are_reported_by_every_algorithm() {
    let [mut train, _] = planted(0.8);
    let warnings = |train: &Entries, algorithm: Algorithm| -> Vec<String> {
        let problem = Problem::builder(train.view()).build(&()).unwrap();
        let mut o = options(algorithm, ModelKind::Cp, 2);
        (o.burn_in, o.samples, o.epochs) = (2, 10, 5);
        let (model, _) = fit(&problem, &o, &FitInput::default(), &mut SilentObserver, &()).unwrap();
        let events = model.record().events.iter();
        let warnings = events.filter(|event| event.kind == "warning");
        warnings.map(|event| event.message.clone()).collect()
    };
    for algorithm in [Algorithm::Gibbs, Algorithm::Blocked] {
        assert_eq!(warnings(&train, algorithm), [""; 0]);
    }
    for k in (0..train.values.len()).step_by(33) {
        train.values[k] += 40.0;
    }
    for algorithm in [Algorithm::Gibbs, Algorithm::Blocked] {
        let found = warnings(&train, algorithm);
        assert!(
            found.len() == 1 && found[0].contains("values are outliers"),
            "{found:?}"
        );
    }
}
