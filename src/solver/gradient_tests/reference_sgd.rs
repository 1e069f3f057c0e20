//! Epochs of the lock-free algorithms against plain SGD in `f64`, and against each other.

use super::random_entries::RandomEntries;
use super::{Fixture, values};
use crate::kernel::{CoreKind, reference};
use crate::model::Model;
use crate::options::{Algorithm, Initialization, ModelKind, Options, Penalty};
use crate::problem::{MatrixKind, Problem};
use crate::simd::Level;
use crate::solver::data::Data;
use crate::solver::sgd::hogwild::visits;

/// Runs a plain epoch of SGD in `f64`, entry by entry as in Algorithm 1, in the order of `visits`.
fn reference_epoch(model: &mut Model, data: &Data, eta: f64, visits: &[(usize, usize)]) {
    let narrow = |x: f64| x as f32;
    let wide = |xs: &[f32]| xs.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
    let row = |model: &Model, n: usize, i: u32| wide(model.modes[n].factor.row(i as usize));
    let put = |rows: &mut crate::model::FactorMatrix, i: u32, values: &[f64]| {
        let stride = rows.stride();
        let out = &mut rows.as_mut_slice().unwrap()[i as usize * stride..];
        out.iter_mut()
            .zip(values)
            .for_each(|(o, &v)| *o = narrow(v));
    };
    for &(part, i) in visits {
        if part == 0 {
            let entry = data.tensor.list().row(i).to_vec();
            let core = wide(&model.shape.dense_core(&model.core).unwrap());
            let rows: Vec<Vec<f64>> = entry
                .iter()
                .enumerate()
                .map(|(n, &r)| row(model, n, r))
                .collect();
            let slices: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
            let error = f64::from(data.tensor.list().values[i]) - reference::value(&core, &slices);
            let error = f64::from(data.tensor.list().weight(i)) * error;
            let outer = reference::outer(&slices);
            let on_core = |k: usize| model.shape.kind() == CoreKind::Full || core[k] != 0.0;
            let next: Vec<f32> = (0..core.len())
                .map(|k| {
                    let weighted = if on_core(k) { error * outer[k] } else { 0.0 };
                    narrow(core[k] + eta * (weighted - data.core_penalty * core[k]))
                })
                .collect();
            for (n, &r) in entry.iter().enumerate() {
                let partial = reference::gradient(&core, &slices, n);
                let penalty = f64::from(data.row_penalty[n][r as usize]);
                let moved: Vec<f64> = rows[n]
                    .iter()
                    .zip(&partial)
                    .map(|(u, d)| u + eta * (error * d - penalty * u))
                    .collect();
                put(&mut model.modes[n].factor, r, &moved);
            }
            model
                .core
                .copy_from_slice(&model.shape.padded_core(&next).unwrap());
        } else {
            let matrix = &data.matrices[part - 1];
            let &[a, b] = matrix.entries.list().row(i) else {
                unreachable!()
            };
            let (u, v) = (
                row(model, matrix.mode, a),
                wide(model.matrices[part - 1].factor.row(b as usize)),
            );
            let dot: f64 = u.iter().zip(&v).map(|(p, q)| p * q).sum();
            let entries = matrix.entries.list();
            let weight = f64::from(matrix.weight) * f64::from(entries.weight(i));
            let weighted_residual = weight * (f64::from(entries.values[i]) - dot);
            let own = f64::from(data.matrix_row_penalty[matrix.mode][a as usize]);
            let other = f64::from(matrix.column_penalty[b as usize]);
            let moved_u: Vec<f64> = u
                .iter()
                .zip(&v)
                .map(|(p, q)| p + eta * (weighted_residual * q - own * p))
                .collect();
            let moved_v: Vec<f64> = u
                .iter()
                .zip(&v)
                .map(|(p, q)| q + eta * (weighted_residual * p - other * q))
                .collect();
            put(&mut model.modes[matrix.mode].factor, a, &moved_u);
            put(&mut model.matrices[part - 1].factor, b, &moved_v);
        }
    }
}

#[test]
fn naive_opt_and_the_reference_agree_after_an_epoch() {
    for (dims, ranks) in [
        (vec![40, 30], vec![5, 3]),
        (vec![40, 30, 20], vec![5, 4, 3]),
        (vec![20, 15, 12, 10], vec![3, 2, 4, 2]),
    ] {
        let weighted = dims.len() > 2;
        let tensor = RandomEntries::new(&dims, 500, 5, false).weighted(weighted);
        let matrix_dims = [dims[0], 9];
        let matrix = RandomEntries::new(&matrix_dims, 120, 6, false).weighted(weighted);
        let problem = Problem::builder(tensor.view("x", &dims))
            .matrix(0, matrix.view("y", &matrix_dims), 0.5, MatrixKind::Observed)
            .build(&())
            .unwrap();
        for model_kind in [ModelKind::Tucker, ModelKind::Cp] {
            let mut results = Vec::new();
            for algorithm in [Some(Algorithm::Naive), Some(Algorithm::Opt), None] {
                let options = Options {
                    algorithm: algorithm.unwrap_or(Algorithm::Opt),
                    model: model_kind,
                    rank: if model_kind == ModelKind::Cp {
                        vec![4]
                    } else {
                        ranks.clone()
                    },
                    start: Initialization::Normal,
                    ..Options::preset("paper").unwrap()
                };
                let mut fit = Fixture::new(&problem, &options, Level::best());
                if algorithm.is_some() {
                    fit.run_epoch(0.01);
                } else {
                    let data = &fit.context.data;
                    let visits = visits(data, options.seed, &[1, 0]);
                    assert_eq!(visits.len(), data.entry_count);
                    reference_epoch(&mut fit.model, data, 0.01, &visits);
                }
                results.push(values(&mut fit.model));
            }
            for pair in [(0, 1), (0, 2), (1, 2)] {
                let (a, b) = (&results[pair.0], &results[pair.1]);
                let difference = a
                    .iter()
                    .zip(b)
                    .map(|(x, y)| (x - y).abs())
                    .fold(0.0, f32::max);
                // The penalty of the core is applied at intervals, in which it amounts to 2^-12.
                assert!(
                    difference < 4e-4,
                    "{dims:?} {model_kind:?} {pair:?}: {difference}"
                );
            }
        }
    }
}

/// Compares every level of `opt` with `naive`, for ranks below and above the vector length and all kinds of penalties.
#[test]
fn every_level_of_opt_agrees_with_naive() {
    for (dims, ranks) in [
        (vec![40, 30], vec![17, 5]),
        (vec![40, 30, 20], vec![12, 12, 12]),
        (vec![40, 30, 20], vec![16, 16, 16]),
        (vec![40, 30, 20], vec![3, 14, 11]),
        (vec![40, 30, 20], vec![33, 2, 18]),
        (vec![40, 30, 20], vec![2, 20, 7]),
        (vec![40, 30, 20, 9], vec![5, 3, 9, 6]),
        (vec![40, 30, 20, 9], vec![2, 3, 2, 17]),
        (vec![9, 8, 7, 6, 5], vec![3, 2, 4, 3, 5]),
    ] {
        let tensor = RandomEntries::new(&dims, 600, 5, true).weighted(ranks[0] % 2 == 1);
        let problem = Problem::builder(tensor.view("x", &dims))
            .build(&())
            .unwrap();
        let mut cases = Vec::new();
        for penalty in [Penalty::L2, Penalty::L1] {
            for nonneg in [false, true] {
                for model in [ModelKind::Tucker, ModelKind::Cp] {
                    for lambda_reg in [0.0, 30.0] {
                        cases.push((penalty, nonneg, model, lambda_reg));
                    }
                }
            }
        }
        for case in cases {
            let (penalty, nonneg, model, lambda_reg) = case;
            let after = |algorithm, level| {
                let options = Options {
                    algorithm,
                    model,
                    penalty,
                    nonneg,
                    lambda_reg: Some(lambda_reg),
                    rank: match model {
                        ModelKind::Cp => vec![ranks[0]],
                        _ => ranks.clone(),
                    },
                    start: Initialization::Normal,
                    ..Options::preset("paper").unwrap()
                };
                let mut fit = Fixture::new(&problem, &options, level);
                fit.run_epoch(0.01);
                let model = &mut fit.model;
                let dense = model.shape.dense_core(&model.core).unwrap();
                assert_eq!(
                    model.shape.padded_core(&dense).unwrap(),
                    *model.core,
                    "padding"
                );
                values(model)
            };
            let expected = after(Algorithm::Naive, Level::Scalar);
            let largest = expected.iter().fold(1.0f32, |most, x| most.max(x.abs()));
            for level in Level::available() {
                let found = after(Algorithm::Opt, level);
                let difference = found
                    .iter()
                    .zip(&expected)
                    .map(|(x, y)| (x - y).abs())
                    .fold(0.0, f32::max);
                assert!(
                    difference < 1e-3 * largest,
                    "{} {dims:?} {ranks:?} {case:?}: {difference} of {largest}",
                    level.name()
                );
            }
        }
    }
}
