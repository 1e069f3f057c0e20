//! The gradient of every term of the objective, by central differences.

use std::collections::HashMap;

use super::random_entries::RandomEntries;
use super::{Fixture, parameters, value_mut};
use crate::kernel::{Regularizer, reference};
use crate::model::Model;
use crate::options::{Algorithm, Initialization, ModelKind, Options, Penalty};
use crate::problem::{MatrixKind, Problem};
use crate::simd::{Level, padded_len};
use crate::solver::data::{Data, MatrixData};
use crate::solver::entries::Entries;
use crate::solver::{full_matrix_update, loss};

/// Computes f of the paper in `f64`, straight from its definition.
fn objective(model: &Model, data: &Data, options: &Options) -> f64 {
    let wide = |xs: &[f32]| xs.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
    let size = |xs: &[f64]| -> f64 {
        match options.penalty {
            Penalty::L2 => xs.iter().map(|x| x * x).sum(),
            Penalty::L1 => 2.0 * xs.iter().map(|x| x.abs()).sum::<f64>(),
        }
    };
    let core = wide(&model.shape.dense_core(&model.core).unwrap());
    let row = |n: usize, i: u32| wide(model.modes[n].factor.row(i as usize));
    let lambda_reg = options.lambda_reg.unwrap();
    let mut tensor = lambda_reg * size(&core);
    for (n, mode) in model.modes.iter().enumerate() {
        for i in 0..mode.rows.len() {
            tensor += lambda_reg * size(&row(n, i as u32));
        }
    }
    data.tensor.for_each(|entry, value, weight| {
        let rows = entry.iter().enumerate().map(|(n, &r)| row(n, r));
        let rows: Vec<Vec<f64>> = rows.collect();
        let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
        let error = f64::from(value) - reference::value(&core, &rows);
        tensor += f64::from(weight) * error * error;
    });
    let mut f = 0.5 * tensor;
    for (m, matrix) in data.matrices.iter().enumerate() {
        let mut part = 0.0;
        for Position {
            row: a,
            column: b,
            value: y,
            weight,
        } in positions(model, m, matrix)
        {
            let u = row(matrix.mode, a);
            part += match matrix.kind {
                MatrixKind::Graph => {
                    let v = row(matrix.mode, b);
                    y * u
                        .iter()
                        .zip(&v)
                        .map(|(p, q)| (p - q) * (p - q))
                        .sum::<f64>()
                }
                _ => {
                    let v = wide(model.matrices[m].factor.row(b as usize));
                    weight * (y - u.iter().zip(&v).map(|(p, q)| p * q).sum::<f64>()).powi(2)
                }
            };
        }
        for k in 0..model.matrices[m].factor.len() {
            part += matrix.penalty.lambda / f64::from(matrix.weight)
                * size(&wide(model.matrices[m].factor.row(k)));
        }
        f += 0.5 * f64::from(matrix.weight) * part;
    }
    f
}

/// A position of a matrix that counts in the objective.
struct Position {
    row: u32,
    column: u32,
    value: f64,
    weight: f64,
}

/// Returns the positions of matrix `m` that count: its entries, or all positions if it is full.
fn positions(model: &Model, m: usize, matrix: &MatrixData) -> Vec<Position> {
    let mut all = Vec::new();
    let mut index = HashMap::new();
    if let Some(full) = &matrix.full {
        for row in 0..model.modes[matrix.mode].rows.len() as u32 {
            for column in 0..model.matrices[m].factor.len() as u32 {
                index.insert((row, column), all.len());
                all.push(Position {
                    row,
                    column,
                    value: f64::from(full.unobserved_values[column as usize]),
                    weight: 1.0,
                });
            }
        }
    }
    matrix.entries.for_each(|entry, value, weight| {
        let (row, column) = (entry[0], entry[1]);
        match index.get(&(row, column)) {
            Some(&at) => all[at].value += f64::from(value),
            None => all.push(Position {
                row,
                column,
                value: f64::from(value),
                weight: f64::from(weight),
            }),
        }
    });
    all
}

/// Checks that `copied` contains the entries of `given` with their weights, without those of weight 0.
fn check_weights(given: &RandomEntries, copied: &Entries) {
    let mut expected: Vec<(f32, f32)> = (0..given.values.len())
        .map(|i| {
            let weight = given.weights.get(i).copied().unwrap_or(1.0);
            (given.values[i] as f32, weight as f32)
        })
        .filter(|e| e.1 > 0.0)
        .collect();
    let mut found = Vec::new();
    copied.for_each(|_, value, weight| found.push((value, weight)));
    let by_value = |a: &(f32, f32), b: &(f32, f32)| a.0.total_cmp(&b.0);
    expected.sort_by(by_value);
    found.sort_by(by_value);
    assert_eq!(found, expected);
}

/// Checks that an epoch with a tiny learning rate changes every parameter by minus eta times the gradient of f: the
/// gradients of all entries, with penalties split between them, add up to that of the objective.
fn compare_gradients(dims: &[u64], options: &Options, weighted: bool) {
    let tensor = RandomEntries::new(dims, 14, 1, false).weighted(weighted);
    let matrix_dims = [dims[0], 5];
    let graph_dims = [dims[1], dims[1]];
    let matrices = [
        RandomEntries::new(&matrix_dims, 9, 2, false).weighted(weighted),
        RandomEntries::new(&matrix_dims, 6, 3, false),
    ];
    let graph = RandomEntries::new(&graph_dims, 5, 4, true).weighted(weighted);
    let ones = RandomEntries::new(&matrix_dims, 7, 7, false);
    let problem = Problem::builder(tensor.view("x", dims))
        .matrix(
            0,
            matrices[0].view("y", &matrix_dims),
            0.5,
            MatrixKind::Observed,
        )
        .matrix(
            0,
            matrices[1].view("z", &matrix_dims),
            2.0,
            MatrixKind::Observed,
        )
        .penalty(4.0)
        .matrix(1, graph.view("w", &graph_dims), 0.7, MatrixKind::Graph)
        .matrix(0, ones.view("o", &matrix_dims), 0.4, MatrixKind::Full)
        .penalty(2.0)
        .build(&())
        .unwrap();
    // The penalty of rows without tensor entries follows a rule of its own.
    assert!(
        problem.modes()[0].counts().contains(&0),
        "the data should have such a row"
    );
    let mut fit = Fixture::new(&problem, options, Level::best());
    let all = parameters(&fit.model);
    for &parameter in all.iter().step_by(7) {
        *value_mut(&mut fit.model, parameter) = 0.0;
    }
    // The columns of full matrices are solved for, which makes their gradient 0.
    let rule = Regularizer {
        l1: options.penalty == Penalty::L1,
        nonneg: false,
    };
    let Fixture { model, context, .. } = &mut fit;
    full_matrix_update::before_epoch(model, &context.data, 0.0, rule, &context.pool).unwrap();
    let full_part = 1 + model.order() + 3;
    let case = format!(
        "{dims:?} {:?} {:?} {:?} {:?} {weighted}",
        options.algorithm, options.model, options.rank, options.penalty
    );
    let data = &context.data;
    check_weights(&tensor, &data.tensor);
    let f = objective(model, data, options);
    let errors = context.squared_errors(model, &data.tensor).unwrap();
    let (level, pool) = (context.level, &context.pool);
    let reported = loss::objective(model, data, errors.plain, options, level, pool).unwrap();
    assert!(
        (reported / f - 1.0).abs() < 1e-5,
        "loss {reported} against {f}: {case}"
    );

    let mut gradients = Vec::new();
    for &parameter in &all {
        let x = *value_mut(model, parameter);
        let (up, down) = (x + 1e-3, x - 1e-3);
        *value_mut(model, parameter) = up;
        let above = objective(model, data, options);
        *value_mut(model, parameter) = down;
        let below = objective(model, data, options);
        *value_mut(model, parameter) = x;
        gradients.push((above - below) / (f64::from(up) - f64::from(down)));
    }
    let before: Vec<f32> = all.iter().map(|&p| *value_mut(model, p)).collect();
    let eta = 1e-4;
    fit.run_epoch(eta);
    let Fixture { model, context, .. } = &mut fit;
    let data = &context.data;
    let largest = gradients.iter().fold(0.0f64, |most, g| most.max(g.abs()));
    for ((&parameter, &x), &gradient) in all.iter().zip(&before).zip(&gradients) {
        if options.penalty == Penalty::L1 && x == 0.0 {
            // The penalty has no gradient at 0.
            continue;
        }
        let row = parameter.index / padded_len(model.shape.ranks()[0]);
        if parameter.part == 1 && data.full_matrix_rows[0][row].is_exclusive {
            // The row is solved for, and the columns changed after that.
            continue;
        }
        if parameter.part == full_part {
            assert!(
                gradient.abs() < 0.005 * largest,
                "{parameter:?}: {gradient}: {case}"
            );
            continue;
        }
        let moved = (f64::from(x) - f64::from(*value_mut(model, parameter))) / eta;
        assert!(
            (moved - gradient).abs() < 0.005 * largest + 0.01 * gradient.abs(),
            "{parameter:?}: moved {moved}, gradient {gradient}: {case}"
        );
    }
}

#[test]
fn an_epoch_follows_the_gradient_of_every_term() {
    for (dims, ranks) in [
        (vec![9, 8], vec![2, 3]),
        (vec![9, 8, 7], vec![3, 2, 4]),
        (vec![9, 8, 7], vec![1, 1, 1]),
        (vec![9, 8, 7, 6], vec![2, 3, 2, 2]),
        (vec![9, 8, 4, 4, 4], vec![2, 2, 1, 2, 3]),
    ] {
        for penalty in [Penalty::L2, Penalty::L1] {
            for algorithm in [Algorithm::Naive, Algorithm::Opt, Algorithm::Blocked] {
                let mut options = Options {
                    start: Initialization::Normal,
                    lambda_reg: Some(1.5),
                    penalty,
                    algorithm,
                    rank: ranks.clone(),
                    ..Options::preset("paper").unwrap()
                };
                compare_gradients(&dims, &options, false);
                compare_gradients(&dims, &options, true);
                options.model = ModelKind::Cp;
                options.rank = vec![3];
                compare_gradients(&dims, &options, false);
                compare_gradients(&dims, &options, true);
            }
        }
    }
}
