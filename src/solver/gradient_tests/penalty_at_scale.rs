//! The penalty must act in full for any number of entries: SGD divides it over them, and `als` adds it to sums over them. `gibbs`
//! has no penalty.

use super::random_entries::RandomEntries;
use super::{Fixture, parameters, value_mut, values};
use crate::options::{Algorithm, Initialization, ModelKind, Options, Penalty};
use crate::problem::Problem;
use crate::simd::Level;

const LAMBDA: f64 = 10.0;
const ETA: f64 = 0.001;
const EPOCHS: usize = 2;

/// Returns norms of the core before and after some epochs in which the loss has no gradient: values are 0 and so are all rows.
fn core_norms(problem: &Problem<'_>, options: &Options) -> (f64, f64, Fixture) {
    let mut fit = Fixture::new(problem, options, Level::best());
    let dense = fit.model.shape.dense_core(&fit.model.core).unwrap();
    let core: Vec<f32> = (0..dense.len())
        .map(|k| {
            let sign = if k % 3 == 0 { -1.0 } else { 1.0 };
            sign * (0.4 + 0.013 * k as f32)
        })
        .collect();
    let padded = fit.model.shape.padded_core(&core).unwrap();
    fit.model.core.copy_from_slice(&padded);
    for mode in &mut fit.model.modes {
        mode.factor.as_mut_slice().unwrap().fill(0.0);
    }
    let norm = |core: &[f32]| {
        core.iter()
            .map(|g| f64::from(*g).powi(2))
            .sum::<f64>()
            .sqrt()
    };
    let before = norm(&fit.model.core);
    for _ in 0..EPOCHS {
        fit.run_epoch(ETA);
    }
    (before, norm(&fit.model.core), fit)
}

/// Entries with the value 0. Rows of a `dense` tensor have many entries; those of the other one have so few that `blocked` goes
/// through them one by one.
fn zeros(count: usize, is_dense: bool) -> (RandomEntries, [u64; 3]) {
    let side = if is_dense {
        (count as f64).sqrt() as u64
    } else {
        count as u64
    };
    let dims = [side, side, if is_dense { 10 } else { side }];
    let mut entries = RandomEntries::new(&dims, count, 3, false);
    entries.values.fill(0.0);
    (entries, dims)
}

#[test]
fn the_core_shrinks_by_the_same_factor_for_any_number_of_entries() {
    let expected = (-LAMBDA * ETA * EPOCHS as f64).exp();
    for count in [2_000, 400_000] {
        for is_dense in [true, false] {
            let (entries, dims) = zeros(count, is_dense);
            let problem = Problem::builder(entries.view("x", &dims))
                .build(&())
                .unwrap();
            for algorithm in [Algorithm::Naive, Algorithm::Opt, Algorithm::Blocked] {
                for model in [ModelKind::Tucker, ModelKind::Cp] {
                    let options = |lambda: f64| Options {
                        algorithm,
                        model,
                        rank: vec![4],
                        lambda_reg: Some(lambda),
                        start: Initialization::Normal,
                        ..Options::preset("paper").unwrap()
                    };
                    let context = format!("{algorithm:?} {model:?} {count} {is_dense}");
                    let (before, after, fit) = core_norms(&problem, &options(LAMBDA));
                    let ratio = after / before;
                    assert!((ratio / expected - 1.0).abs() < 1e-4, "{context}: {ratio}");
                    if algorithm == Algorithm::Blocked && count > 2_000 {
                        assert_eq!(fit.context.data.tensor.classes().is_none(), is_dense);
                    }
                    if count == 2_000 {
                        let (before, after, _) = core_norms(&problem, &options(0.0));
                        assert_eq!(before, after, "{context}");
                    }
                }
            }
        }
    }
}

#[test]
fn an_l1_penalty_of_the_core_is_subtracted_in_full() {
    let (entries, dims) = zeros(200_000, true);
    let problem = Problem::builder(entries.view("x", &dims))
        .build(&())
        .unwrap();
    for algorithm in [Algorithm::Naive, Algorithm::Opt, Algorithm::Blocked] {
        let options = Options {
            algorithm,
            model: ModelKind::Tucker,
            rank: vec![4],
            penalty: Penalty::L1,
            lambda_reg: Some(LAMBDA),
            start: Initialization::Normal,
            ..Options::preset("paper").unwrap()
        };
        let (_, _, fit) = core_norms(&problem, &options);
        let core = fit.model.shape.dense_core(&fit.model.core).unwrap();
        for (k, g) in core.iter().enumerate() {
            let expected = 0.4 + 0.013 * k as f64 - LAMBDA * ETA * EPOCHS as f64;
            let found = f64::from(g.abs());
            assert!(
                (found - expected).abs() < 1e-5,
                "{algorithm:?} {k}: {found} {expected}"
            );
        }
    }
}

/// Computes a sweep of `als` in `f64` for a model of rank 1: modes from the last to the first, then the core unless it is that of a
/// CP model. `parts` are the core and the rows of each mode, and `lambdas` their penalties.
fn reference_sweep(
    entries: &RandomEntries,
    kind: ModelKind,
    mut parts: Vec<Vec<f64>>,
    lambdas: [f64; 4],
) -> Vec<Vec<f64>> {
    let has_core = kind == ModelKind::Tucker;
    for part in (1..4).rev().chain(has_core.then_some(0)) {
        let position = |entry: usize, other: usize| match other {
            0 => 0,
            n => entries.columns[n - 1][entry] as usize,
        };
        let mut sums = vec![(0.0, 0.0); parts[part].len()];
        for (entry, &value) in entries.values.iter().enumerate() {
            let others = (0..4).filter(|&other| other != part);
            let d: f64 = others.map(|n| parts[n][position(entry, n)]).product();
            let (rhs, gram) = &mut sums[position(entry, part)];
            *rhs += d * value;
            *gram += d * d;
        }
        let solve = |(rhs, gram)| rhs / (gram + lambdas[part]);
        parts[part] = sums.into_iter().map(solve).collect();
    }
    parts
}

#[test]
fn als_solves_equations_of_many_entries_with_the_penalty() {
    const LAMBDA: f64 = 100.0;
    const TOLERANCE: f64 = 1e-5;
    // From the first mode to the last, rows have 571, 667 and 200,000 entries.
    let dims = [700, 600, 2];
    let mut entries = RandomEntries::new(&dims, 400_000, 3, false);
    entries
        .values
        .iter_mut()
        .for_each(|x| *x = f64::from((1.0 + 0.5 * *x) as f32));
    let problem = Problem::builder(entries.view("x", &dims))
        .build(&())
        .unwrap();
    for kind in [ModelKind::Tucker, ModelKind::Cp] {
        let options = Options {
            algorithm: Algorithm::Als,
            model: kind,
            rank: vec![1],
            lambda_reg: Some(LAMBDA),
            start: Initialization::Normal,
            ..Options::preset("paper").unwrap()
        };
        let mut fit = Fixture::new(&problem, &options, Level::best());
        for (k, parameter) in parameters(&fit.model).into_iter().enumerate() {
            // Rows are positive like most values, and the core of a CP model is 1.
            let value = 1.0 + if k == 0 { 0.0 } else { 0.1 * (k % 7) as f32 };
            *value_mut(&mut fit.model, parameter) = value;
        }
        let parts = |fit: &mut Fixture| -> Vec<Vec<f64>> {
            let mut all = values(&mut fit.model).into_iter().map(f64::from);
            [1, 700, 600, 2]
                .map(|len| all.by_ref().take(len).collect())
                .to_vec()
        };
        let start = parts(&mut fit);
        fit.run_epoch(ETA);
        let found = parts(&mut fit);
        let expected = reference_sweep(&entries, kind, start.clone(), [LAMBDA; 4]);
        for part in 0..4 {
            let error = |values: &[Vec<f64>]| {
                let pairs = values[part].iter().zip(&expected[part]);
                pairs.map(|(v, e)| (v / e - 1.0).abs()).fold(0.0, f64::max)
            };
            let context = format!("{kind:?} {part}: {}", error(&found));
            assert!(error(&found) < TOLERANCE, "{context}");
            // The tolerance is much smaller than the effect of the penalty of this part.
            let mut lambdas = [LAMBDA; 4];
            lambdas[part] = 0.0;
            let without = reference_sweep(&entries, kind, start.clone(), lambdas);
            let is_fixed = kind == ModelKind::Cp && part == 0;
            assert!(is_fixed || error(&without) > 10.0 * TOLERANCE, "{context}");
        }
    }
}
