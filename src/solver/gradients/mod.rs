//! Tests: an epoch follows the gradient of the paper's objective in every term, by central differences.

mod cells;

use std::collections::HashMap;

use cells::Cells;

use super::data::{Data, Entries, How, MatrixData, Penalties};
use super::full_matrices;
use super::sgd::blocked::{Blocked, Pace, Plan};
use super::sgd::hogwild::{LockFree, visits};
use super::standardization::Centre;
use super::{initialization, loss};
use crate::kernel::{Rule, reference};

use crate::model::Model;
use crate::simd::Level;

use crate::kernel::{CoreKind, CoreShape};
use crate::options::{Algorithm, Initialization, ModelKind, Options, Penalty};
use crate::parallel::ThreadPool;
use crate::problem::{MatrixKind, Problem};

/// Steps of modes, as shares of that of the epoch.
const MODE_STEPS: [f64; 5] = [0.5, 2.0, 0.25, 1.5, 0.75];

/// The data as a fit with these options has it.
fn prepared(
    problem: &Problem<'_>,
    shape: &CoreShape,
    options: &Options,
    plan: Option<&Plan>,
    pool: &ThreadPool,
) -> Data {
    let how = How {
        seed: options.seed,
        weights: &problem.matrix_weights(options).unwrap(),
        mode_steps: &problem.mode_steps(options).unwrap(),
        penalties: Penalties {
            lambda: options.lambda_reg.unwrap(),
            per: options.penalty_per,
        },
        centre: &Centre::new(problem, options, &ThreadPool::new(1, false, 0), &()).unwrap(),
        held: None,
    };
    Data::new(problem, shape, how, plan, pool, &()).unwrap()
}

/// f of the paper in f64, straight from its definition.
fn objective(model: &Model, data: &Data, options: &Options) -> f64 {
    let wide = |xs: &[f32]| xs.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
    let size = |xs: &[f64]| -> f64 {
        match options.penalty {
            Penalty::L2 => xs.iter().map(|x| x * x).sum(),
            Penalty::L1 => 2.0 * xs.iter().map(|x| x.abs()).sum::<f64>(),
        }
    };
    let core = wide(&model.shape.dense_core(&model.core));
    let row = |n: usize, i: u32| wide(model.modes[n].factor.row(i as usize));
    let lambda_reg = options.lambda_reg.unwrap();
    let mut tensor = lambda_reg * size(&core);
    for (n, mode) in model.modes.iter().enumerate() {
        for i in 0..mode.rows.len() {
            tensor += lambda_reg * size(&row(n, i as u32));
        }
    }
    data.tensor.each(|entry, value, weight| {
        let rows = entry.iter().enumerate().map(|(n, &r)| row(n, r));
        let rows: Vec<Vec<f64>> = rows.collect();
        let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
        let error = f64::from(value) - reference::value(&core, &rows);
        tensor += f64::from(weight) * error * error;
    });
    let mut f = 0.5 * tensor;
    for (m, matrix) in data.matrices.iter().enumerate() {
        let mut part = 0.0;
        for ((a, b), (y, weight)) in cells(model, m, matrix) {
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
            part += matrix.penalties.lambda / f64::from(matrix.weight)
                * size(&wide(model.matrices[m].factor.row(k)));
        }
        f += 0.5 * f64::from(matrix.weight) * part;
    }
    f
}

/// The cells of a matrix that count, with their values and weights.
fn cells(model: &Model, m: usize, matrix: &MatrixData) -> Vec<((u32, u32), (f64, f64))> {
    let mut all = Vec::new();
    let mut index = HashMap::new();
    if let Some(full) = &matrix.full {
        for a in 0..model.modes[matrix.mode].rows.len() as u32 {
            for b in 0..model.matrices[m].factor.len() as u32 {
                index.insert((a, b), all.len());
                all.push(((a, b), (f64::from(full.base[b as usize]), 1.0)));
            }
        }
    }
    matrix.entries.each(
        |entry, value, weight| match index.get(&(entry[0], entry[1])) {
            Some(&at) => all[at].1.0 += f64::from(value),
            None => {
                let numbers = (f64::from(value), f64::from(weight));
                all.push(((entry[0], entry[1]), numbers));
            }
        },
    );
    all
}

/// All numbers of a model that mean something, as places to read and change.
fn places(model: &Model) -> Vec<(usize, usize)> {
    let mut all = Vec::new();
    let last = model.shape.ranks[model.order() - 1];
    let stride = crate::simd::padded_len(last);
    all.extend(
        (0..model.core.len())
            .filter(|k| k % stride < last)
            .map(|k| (0, k)),
    );
    for (n, mode) in model.modes.iter().enumerate() {
        let (rank, stride) = (mode.factor.rank(), mode.factor.stride());
        all.extend(
            (0..mode.rows.len() * stride)
                .filter(|k| k % stride < rank)
                .map(|k| (1 + n, k)),
        );
    }
    for (m, matrix) in model.matrices.iter().enumerate() {
        let (rank, stride) = (matrix.factor.rank(), matrix.factor.stride());
        let count = matrix.factor.len() * stride;
        all.extend(
            (0..count)
                .filter(|k| k % stride < rank)
                .map(|k| (1 + model.order() + m, k)),
        );
    }
    all
}

fn number(model: &mut Model, (part, k): (usize, usize)) -> &mut f32 {
    let order = model.order();
    if part == 0 {
        &mut model.core[k]
    } else if part <= order {
        &mut model.modes[part - 1].factor.as_mut_slice().unwrap()[k]
    } else {
        &mut model.matrices[part - 1 - order]
            .factor
            .as_mut_slice()
            .unwrap()[k]
    }
}

/// Entries are there with their weights, and none of weight 0.
fn check_weights(cells: &Cells, entries: &Entries) {
    let mut expected: Vec<(f32, f32)> = (0..cells.values.len())
        .map(|i| {
            let weight = cells.weights.get(i).copied().unwrap_or(1.0);
            (cells.values[i] as f32, weight as f32)
        })
        .filter(|e| e.1 > 0.0)
        .collect();
    let mut found = Vec::new();
    entries.each(|_, value, weight| found.push((value, weight)));
    let by_value = |a: &(f32, f32), b: &(f32, f32)| a.0.total_cmp(&b.0);
    expected.sort_by(by_value);
    found.sort_by(by_value);
    assert_eq!(found, expected);
}

/// An epoch with a tiny step moves every number by minus the step times the gradient of f: the
/// gradients of all entries, with penalties split between them, add up to the whole.
fn compare_gradients(dims: &[u64], options: &Options, weighted: bool) {
    let tensor = Cells::new(dims, 14, 1, false).weighted(weighted);
    let matrix_dims = [dims[0], 5];
    let graph_dims = [dims[1], dims[1]];
    let matrices = [
        Cells::new(&matrix_dims, 9, 2, false).weighted(weighted),
        Cells::new(&matrix_dims, 6, 3, false),
    ];
    let graph = Cells::new(&graph_dims, 5, 4, true).weighted(weighted);
    let ones = Cells::new(&matrix_dims, 7, 7, false);
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
    // Rows that only matrices know have their own rule for the penalty.
    assert!(
        problem.modes()[0].counts().contains(&0),
        "the data should have such a row"
    );
    let (mut model, _) = Model::zeros(&problem, options).unwrap();
    let pool = ThreadPool::new(1, false, 0);
    let plan = (options.algorithm == Algorithm::Blocked)
        .then(|| Plan::new(&problem, &model.shape, options.seed));
    let data = prepared(&problem, &model.shape, options, plan.as_ref(), &pool);
    initialization::fill(&mut model, &problem, &data, options, &pool).unwrap();
    let all = places(&model);
    for (k, &place) in all.iter().enumerate() {
        if k % 7 == 0 {
            *number(&mut model, place) = 0.0;
        }
    }
    // Columns of full matrices are solved for: they are where their slope is 0.
    let rule = Rule {
        l1: options.penalty == Penalty::L1,
        nonneg: false,
    };
    full_matrices::epoch_side(&mut model, &data, 0.0, false, rule, &pool).unwrap();
    let full_part = 1 + model.order() + 3;
    let context = format!(
        "{dims:?} {:?} {:?} {:?} {:?} {weighted}",
        options.algorithm, options.model, options.rank, options.penalty
    );
    check_weights(&tensor, &data.tensor);
    let f = objective(&model, &data, options);
    let centre = Centre::new(&problem, options, &ThreadPool::new(1, false, 0), &()).unwrap();
    let sums = loss::tensor_squares(&model, &data.tensor, &centre, Level::best(), &pool).unwrap();
    let reported = loss::total(&model, &data, sums.plain, options, Level::best(), &pool).unwrap();
    assert!(
        (reported / f - 1.0).abs() < 1e-5,
        "loss {reported} against {f}: {context}"
    );

    let mut gradients = Vec::new();
    for &place in &all {
        let x = *number(&mut model, place);
        let (up, down) = (x + 1e-3, x - 1e-3);
        *number(&mut model, place) = up;
        let above = objective(&model, &data, options);
        *number(&mut model, place) = down;
        let below = objective(&model, &data, options);
        *number(&mut model, place) = x;
        gradients.push((above - below) / (f64::from(up) - f64::from(down)));
    }
    let before: Vec<f32> = all.iter().map(|&p| *number(&mut model, p)).collect();
    let eta = 1e-4;
    full_matrices::epoch_side(&mut model, &data, eta, false, rule, &pool).unwrap();
    match &plan {
        Some(plan) => Blocked {
            data: &data,
            plan,
            options,
            level: Level::best(),
        }
        .epoch(&mut model, eta, Pace::first(), &[1], &pool, &mut || false)
        .map(|done| done.map(|(squares, _)| squares)),
        None => LockFree::new(&data, options, Level::best()).epoch(
            &mut model,
            eta,
            &[1],
            &pool,
            &mut || false,
        ),
    }
    .unwrap();
    full_matrices::epoch_side(&mut model, &data, eta, true, rule, &pool).unwrap();
    let largest = gradients.iter().fold(0.0f64, |most, g| most.max(g.abs()));
    for ((&place, &x), &gradient) in all.iter().zip(&before).zip(&gradients) {
        if options.penalty == Penalty::L1 && x == 0.0 {
            // No gradient there: the first entry moves it off 0, the penalties of the others pull
            // it back.
            continue;
        }
        let row = place.1 / crate::simd::padded_len(model.shape.ranks[0]);
        if place.0 == 1 && data.full_rows[0][row].alone {
            // Solved for; the columns moved after it.
            continue;
        }
        if place.0 == full_part {
            assert!(
                gradient.abs() < 0.005 * largest,
                "{place:?}: {gradient}: {context}"
            );
            continue;
        }
        let moved = (f64::from(x) - f64::from(*number(&mut model, place))) / eta;
        // Core and columns have the step of the epoch.
        let of_mode = place.0.checked_sub(1).and_then(|n| data.mode_steps.get(n));
        let gradient = gradient * f64::from(*of_mode.unwrap_or(&1.0));
        assert!(
            (moved - gradient).abs() < 0.005 * largest + 0.01 * gradient.abs(),
            "{place:?}: moved {moved}, gradient {gradient}: {context}"
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
                options.mode_steps = MODE_STEPS[..dims.len()].to_vec();
                compare_gradients(&dims, &options, true);
                options.model = ModelKind::Cp;
                options.rank = vec![3];
                compare_gradients(&dims, &options, false);
                compare_gradients(&dims, &options, true);
            }
        }
    }
}

/// A plain epoch of SGD in f64, entry by entry as Algorithm 1 has it, in the order of `visits`.
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
            let entry = data.tensor.shuffled().row(i).to_vec();
            let core = wide(&model.shape.dense_core(&model.core));
            let rows: Vec<Vec<f64>> = entry
                .iter()
                .enumerate()
                .map(|(n, &r)| row(model, n, r))
                .collect();
            let slices: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
            let error =
                f64::from(data.tensor.shuffled().values[i]) - reference::value(&core, &slices);
            let error = f64::from(data.tensor.shuffled().weight(i)) * error;
            let outer = reference::outer(&slices);
            let on_core = |k: usize| model.shape.kind == CoreKind::Full || core[k] != 0.0;
            let next: Vec<f32> = (0..core.len())
                .map(|k| {
                    let pull = if on_core(k) { error * outer[k] } else { 0.0 };
                    narrow(core[k] + eta * (pull - f64::from(data.core_penalty) * core[k]))
                })
                .collect();
            for (n, &r) in entry.iter().enumerate() {
                let slope = reference::slope(&core, &slices, n);
                let penalty = f64::from(data.row_penalty[n][r as usize]);
                let eta = eta * f64::from(data.mode_steps[n]);
                let moved: Vec<f64> = rows[n]
                    .iter()
                    .zip(&slope)
                    .map(|(u, d)| u + eta * (error * d - penalty * u))
                    .collect();
                put(&mut model.modes[n].factor, r, &moved);
            }
            model.core.copy_from_slice(&model.shape.padded_core(&next));
        } else {
            let matrix = &data.matrices[part - 1];
            let &[a, b] = matrix.entries.shuffled().row(i) else {
                unreachable!()
            };
            let (u, v) = (
                row(model, matrix.mode, a),
                wide(model.matrices[part - 1].factor.row(b as usize)),
            );
            let dot: f64 = u.iter().zip(&v).map(|(p, q)| p * q).sum();
            let entries = matrix.entries.shuffled();
            let weight = f64::from(matrix.weight) * f64::from(entries.weight(i));
            let pull = weight * (f64::from(entries.values[i]) - dot);
            let own = f64::from(data.matrix_row_penalty[matrix.mode][a as usize]);
            let other = f64::from(matrix.column_penalty[b as usize]);
            let eta_u = eta * f64::from(data.mode_steps[matrix.mode]);
            let moved_u: Vec<f64> = u
                .iter()
                .zip(&v)
                .map(|(p, q)| p + eta_u * (pull * q - own * p))
                .collect();
            let moved_v: Vec<f64> = u
                .iter()
                .zip(&v)
                .map(|(p, q)| q + eta * (pull * p - other * q))
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
        let cells = Cells::new(&dims, 500, 5, false).weighted(weighted);
        let matrix_dims = [dims[0], 9];
        let matrix = Cells::new(&matrix_dims, 120, 6, false).weighted(weighted);
        let problem = Problem::builder(cells.view("x", &dims))
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
                    mode_steps: MODE_STEPS[..if weighted { dims.len() } else { 0 }].to_vec(),
                    ..Options::preset("paper").unwrap()
                };
                let (mut model, _) = Model::zeros(&problem, &options).unwrap();
                let pool = ThreadPool::new(1, false, 0);
                let data = prepared(&problem, &model.shape, &options, None, &pool);
                initialization::fill(&mut model, &problem, &data, &options, &pool).unwrap();
                let plan = LockFree::new(&data, &options, Level::best());
                match algorithm {
                    Some(_) => {
                        plan.epoch(&mut model, 0.01, &[1], &pool, &mut || false)
                            .unwrap();
                    }
                    None => {
                        let visits = visits(&plan, &[1]);
                        assert_eq!(visits.len(), data.total());
                        reference_epoch(&mut model, &data, 0.01, &visits);
                    }
                }
                let all = places(&model);
                results.push(
                    all.iter()
                        .map(|&p| *number(&mut model, p))
                        .collect::<Vec<f32>>(),
                );
            }
            for pair in [(0, 1), (0, 2), (1, 2)] {
                let (a, b) = (&results[pair.0], &results[pair.1]);
                let difference = a
                    .iter()
                    .zip(b)
                    .map(|(x, y)| (x - y).abs())
                    .fold(0.0, f32::max);
                assert!(
                    difference < 1e-4,
                    "{dims:?} {model_kind:?} {pair:?}: {difference}"
                );
            }
        }
    }
}

/// Every level of `opt` against `naive`, with ranks across the lanes and everything a penalty can be.
#[test]
fn every_level_of_opt_does_what_naive_does() {
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
        let cells = Cells::new(&dims, 600, 5, true).weighted(ranks[0] % 2 == 1);
        let problem = Problem::builder(cells.view("x", &dims)).build(&()).unwrap();
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
                    mode_steps: MODE_STEPS[..if nonneg { 0 } else { dims.len() }].to_vec(),
                    ..Options::preset("paper").unwrap()
                };
                let (mut model, _) = Model::zeros(&problem, &options).unwrap();
                let pool = ThreadPool::new(1, false, 0);
                let shape = model.shape.clone();
                let data = prepared(&problem, &shape, &options, None, &pool);
                initialization::fill(&mut model, &problem, &data, &options, &pool).unwrap();
                LockFree::new(&data, &options, level)
                    .epoch(&mut model, 0.01, &[1], &pool, &mut || false)
                    .unwrap();
                let dense = model.shape.dense_core(&model.core);
                assert_eq!(model.shape.padded_core(&dense), *model.core, "padding");
                let all = places(&model);
                all.iter()
                    .map(|&p| *number(&mut model, p))
                    .collect::<Vec<f32>>()
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
