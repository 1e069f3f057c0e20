//! Concepts of models of all orders and kinds, compared with sums over all positions in `f64`.

use crate::common::in_memory::{Entries, fit_ratings, hash_unit, options};
use s3cmtf::discover::{ConceptOptions, describe_concepts};
use s3cmtf::model::Model;

use s3cmtf::kernel::CoreKind;
use s3cmtf::options::{Algorithm, ModelKind};

/// Fits a rank-3 model whose rows have different numbers of entries.
fn fitted_model(dims: &[u64], kind: ModelKind, nonneg: bool) -> Model {
    let mut tensor = Entries::new(dims);
    let positions: u64 = dims.iter().product();
    for position in 0..positions {
        // The number of entries of a row grows with its index.
        if hash_unit(position) < 0.2 + 0.6 * (position % dims[0]) as f64 / dims[0] as f64 {
            let mut rest = position;
            let index = dims.iter().map(|d| {
                let i = (rest % d) as u32;
                rest /= d;
                i
            });
            let index: Vec<u32> = index.collect();
            let below = if nonneg { 0.0 } else { 0.4 };
            let value = |p: u64, n: usize| {
                let name = (u64::from(index[n]) * 10 + n as u64) * 10 + p;
                hash_unit(1_000_000 + name) - below
            };
            let term = |p: u64| (0..dims.len()).map(|n| 2.0 * value(p, n)).product::<f64>();
            tensor.push(&index, term(0) + term(1) + term(2));
        }
    }
    let mut o = options(Algorithm::Als, kind, 3);
    (o.epochs, o.nonneg, o.biases, o.lambda_reg) = (8, nonneg, false, Some(0.001));
    if nonneg {
        o.start = s3cmtf::options::Initialization::Auto;
    }
    if kind == ModelKind::Tucker && !nonneg {
        o.rank = (0..dims.len()).map(|n| 2 + n % 2).collect();
    }
    fit_ratings(&tensor, None, &o)
}

fn row(model: &Model, n: usize, at: usize) -> Vec<f64> {
    let row = model.modes()[n].factor.row(at);
    row[..model.shape().ranks()[n]]
        .iter()
        .map(|&x| f64::from(x))
        .collect()
}

/// Returns the elements of the core with their indices.
fn core(model: &Model) -> Vec<(Vec<usize>, f64)> {
    let ranks = model.shape().ranks();
    if model.shape().kind() == CoreKind::Diagonal {
        let diagonal = model.core()[..ranks[0]].iter().enumerate();
        return diagonal
            .map(|(p, &g)| (vec![p; ranks.len()], f64::from(g)))
            .collect();
    }
    let dense = model.shape().dense_core(model.core()).unwrap();
    let index_of = |mut at: usize| {
        let mut index = vec![0; ranks.len()];
        for n in (0..ranks.len()).rev() {
            index[n] = at % ranks[n];
            at /= ranks[n];
        }
        index
    };
    let all = dense.iter().enumerate();
    all.map(|(at, &g)| (index_of(at), f64::from(g))).collect()
}

/// Returns the contribution of each concept of a mode to the prediction at these rows.
fn contributions(core: &[(Vec<usize>, f64)], mode: usize, rows: &[Vec<f64>]) -> Vec<f64> {
    let mut sums = vec![0.0; rows[mode].len()];
    for (index, g) in core {
        let each = index.iter().zip(rows).map(|(&p, row)| row[p]);
        sums[index[mode]] += g * each.product::<f64>();
    }
    sums
}

/// Compares the concepts of a mode for given rows with sums over all positions.
fn check(model: &Model, mode: usize, given: &[(usize, u32)]) {
    let (order, core) = (model.order(), core(model));
    let fraction = |n: usize, r: usize| {
        let counts = &model.modes()[n].counts;
        counts[r] as f64 / counts.iter().sum::<u64>() as f64
    };
    let choices: Vec<Vec<(usize, f64)>> = (0..order)
        .map(|n| match given.iter().find(|g| g.0 == n) {
            Some(&(_, index)) => {
                let r = model.modes()[n].rows.compact(index).unwrap();
                vec![(r as usize, 1.0)]
            }
            None => {
                let rows = 0..model.modes()[n].rows.len();
                rows.map(|r| (r, fraction(n, r))).collect()
            }
        })
        .collect();
    let rank = model.shape().ranks()[mode];
    let mut squares = vec![0.0; rank];
    let positions: usize = choices.iter().map(Vec::len).product();
    for position in 0..positions {
        let mut rest = position;
        let chosen: Vec<(usize, f64)> = choices
            .iter()
            .map(|c| {
                let one = c[rest % c.len()];
                rest /= c.len();
                one
            })
            .collect();
        let rows: Vec<Vec<f64>> = (0..order).map(|n| row(model, n, chosen[n].0)).collect();
        let weight: f64 = chosen.iter().map(|c| c.1).product();
        for (s, x) in squares.iter_mut().zip(contributions(&core, mode, &rows)) {
            *s += weight * x * x;
        }
    }
    let size = |n: usize, j: usize| -> f64 {
        let rows = 0..model.modes()[n].rows.len();
        let sum: f64 = rows
            .map(|r| fraction(n, r) * row(model, n, r)[j].powi(2))
            .sum();
        sum.sqrt()
    };
    // The mean row of a mode is stored after its other rows; a row of loading 1 equals the size of the column.
    let average: Vec<Vec<f64>> = (0..order)
        .map(|n| match (n == mode, given.iter().find(|g| g.0 == n)) {
            (true, _) => (0..rank).map(|j| size(n, j)).collect(),
            (_, Some(_)) => row(model, n, choices[n][0].0),
            _ => row(model, n, model.modes()[n].rows.len()),
        })
        .collect();
    let effects = contributions(&core, mode, &average);
    let concept_options = ConceptOptions {
        given: given.to_vec(),
        ..ConceptOptions::new(mode)
    };
    let found = describe_concepts(model, &concept_options, &()).unwrap();
    assert_eq!((found.mode, found.concepts.len()), (mode, rank));
    let near = 1e-5 * found.concepts[0].strength;
    assert!(near > 0.0);
    for c in &found.concepts {
        let expected = squares[c.column].sqrt();
        assert!((c.strength - expected).abs() < near, "{c:?} {expected}");
        let effect = effects[c.column];
        assert!((c.effect - effect.abs()).abs() < near, "{c:?} {effect}");
        assert!(c.sign_flipped == (effect < 0.0) || effect.abs() < near);
        let sign = if c.sign_flipped { -1.0 } else { 1.0 };
        let best = (0..model.modes()[mode].rows.len())
            .map(|r| sign * row(model, mode, r)[c.column] / size(mode, c.column).max(1e-30))
            .fold(f64::NEG_INFINITY, f64::max);
        assert!((c.largest[0].score - best).abs() < 1e-5, "{c:?} {best}");
    }
    // The profile R exists if exactly one mode is free.
    let free: Vec<usize> = (0..order)
        .filter(|n| *n != mode && given.iter().all(|g| g.0 != *n))
        .collect();
    let Some(profile) = &found.profile else {
        assert_ne!(free.len(), 1);
        return;
    };
    assert_eq!(free, [profile.mode]);
    assert_eq!(profile.columns, model.shape().ranks()[profile.mode]);
    let mut expected = vec![0.0; rank * profile.columns];
    for (index, g) in &core {
        let each = given.iter().map(|&(n, _)| average[n][index[n]]);
        expected[index[mode] * profile.columns + index[profile.mode]] += g * each.product::<f64>();
    }
    for (at, (x, r)) in profile.values.iter().zip(expected).enumerate() {
        let (j, k) = (at / profile.columns, at % profile.columns);
        let r = r * size(mode, j) * size(profile.mode, k);
        assert!((x - r).abs() < near, "{x} {r}");
    }
    assert_eq!(profile.values.len(), rank * profile.columns);
}

#[test]
fn concepts_match_brute_force_for_all_orders_and_models() {
    for dims in [&[9u64, 14][..], &[6, 9, 4], &[5, 9, 3, 4]] {
        for kind in [ModelKind::Tucker, ModelKind::Cp] {
            for nonneg in [false, true] {
                let model = fitted_model(dims, kind, nonneg);
                for mode in 0..dims.len() {
                    check(&model, mode, &[]);
                    let others = (0..dims.len()).filter(|&n| n != mode);
                    let others: Vec<(usize, u32)> = others.map(|n| (n, n as u32 % 3)).collect();
                    (1..=others.len()).for_each(|k| check(&model, mode, &others[..k]));
                }
                if nonneg {
                    let all = (0..dims.len())
                        .map(|n| describe_concepts(&model, &ConceptOptions::new(n), &()).unwrap());
                    let mut all = all.flat_map(|found| found.concepts);
                    assert!(
                        all.all(|c| !c.sign_flipped),
                        "non-negative columns are never flipped"
                    );
                }
            }
        }
    }
}
