//! Fits by `sals`: normal equations, monotone loss, agreement with `als`, recovery, independence of the thread count, refusals.

use crate::common::planted::{
    PlantedData, StopAfter, fit_planted, generate_planted, parameter_bits, small_data,
};
use crate::common::random_problem::RandomTensor;
use crate::common::{Scratch, kernel_choice};
use crate::support::*;
use s3cmtf::format::{CooView, Values};
use s3cmtf::generate::GenerateOptions;
use s3cmtf::model::Model;
use s3cmtf::options::{Algorithm, Initialization, ModelKind, Options, Penalty, PenaltyScaling};
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::simd::Level;
use s3cmtf::solver::tune::{TuneOptions, tune};
use s3cmtf::solver::{FitInput, fit};
use s3cmtf_reproduction::ALGORITHMS;

const PENALTY: f64 = 0.3;

/// Returns the options of the plain method: no mean, no biases.
fn options(rank: usize, columns: u64) -> Options {
    let mut o = Options::preset("paper")
        .unwrap()
        .with_algorithms(ALGORITHMS);
    o.algorithm = SALS;
    o.model = ModelKind::Cp;
    o.rank = vec![rank];
    set(&mut o, "subset_size", columns);
    o.start = Initialization::Normal;
    o.lambda_reg = Some(PENALTY);
    o.threads = 1;
    o
}

fn fit_tensor(tensor: &RandomTensor, weights: &[f32], options: &Options) -> Model {
    let columns: Vec<&[u32]> = tensor.columns.iter().map(Vec::as_slice).collect();
    let values = Values::F32(&tensor.values);
    let mut view = CooView::new("x", &tensor.dims, &columns, values).unwrap();
    if !weights.is_empty() {
        view = view.with_weights(Values::F32(weights)).unwrap();
    }
    let problem = Problem::builder(view).build(&()).unwrap();
    let input = FitInput::default();
    fit(&problem, options, &input, &mut (), &()).unwrap().0
}

/// Returns the factor row of mode `n` for an index in the data.
fn row(model: &Model, n: usize, index: u32) -> Vec<f64> {
    let row = model.modes()[n].factor.row(model.row_of(n, index) as usize);
    row.iter().map(|&x| f64::from(x)).collect()
}

#[test]
fn rows_of_the_last_block_solve_their_normal_equations() {
    let tensors = [
        RandomTensor::skewed(&[200, 40], 6000),
        RandomTensor::skewed(&[60, 90, 3], 15_000),
        RandomTensor::skewed(&[30, 20, 40, 7], 9000),
        RandomTensor::skewed(&[12, 8, 20, 5, 4], 5000),
    ];
    // Rows are padded to 1, 2, 4, 8, 16 and 32 columns, most of blocks that do not divide the rank.
    let settings = [
        (7usize, 1, 1),
        (7, 2, 1),
        (7, 3, 2),
        (7, 4, 1),
        (11, 8, 1),
        (7, 20, 1),
        (40, 20, 1),
    ];
    for (tensor, (rank, columns, inner)) in tensors.iter().flat_map(|t| settings.map(|s| (t, s))) {
        let weights: Vec<f32> = (0..tensor.values.len())
            .map(|e| [1.0, 0.5, 3.0][e % 3])
            .collect();
        // The mode with the most rows is updated last, and the last columns are.
        let last = (0..tensor.dims.len())
            .max_by_key(|&n| tensor.dims[n])
            .unwrap();
        let blocks = rank.div_ceil(columns as usize);
        let block = (blocks - 1) * rank / blocks..rank;
        for weights in [&[][..], &weights] {
            let mut o = options(rank, columns);
            o.epochs = 2;
            set(&mut o, "inner_epochs", inner);
            let model = fit_tensor(tensor, weights, &o);
            assert!(model.core()[..rank].iter().all(|&g| g == 1.0));
            // The gradient of half the objective, and the sum of the absolute values of its terms.
            let rows = tensor.dims[last] as usize;
            let mut sums = vec![[0.0f64; 2]; rows * rank];
            for e in 0..tensor.values.len() {
                let index = |n: usize| tensor.columns[n][e];
                let others = (0..tensor.dims.len()).filter(|&n| n != last);
                let mut d = vec![1.0; rank];
                for n in others {
                    let row = row(&model, n, index(n));
                    d.iter_mut().zip(row).for_each(|(d, u)| *d *= u);
                }
                let own = row(&model, last, index(last));
                let value: f64 = d.iter().zip(&own).map(|(d, u)| d * u).sum();
                let residual = f64::from(tensor.values[e]) - value;
                let weight = f64::from(weights.get(e).copied().unwrap_or(1.0));
                for j in block.clone() {
                    let sum = &mut sums[index(last) as usize * rank + j];
                    let term = weight * d[j] * residual;
                    (sum[0], sum[1]) = (sum[0] + term, sum[1] + term.abs());
                }
            }
            let (mut gradients, mut scale) = (0.0f64, 0.0f64);
            for index in 0..rows as u32 {
                let own = row(&model, last, index);
                for j in block.clone() {
                    let [sum, of_terms] = sums[index as usize * rank + j];
                    if of_terms > 0.0 {
                        gradients = gradients.max((sum - PENALTY * own[j]).abs());
                        scale = scale.max(of_terms);
                    }
                }
            }
            assert!(
                scale > 1.0 && gradients < 1e-5 * scale,
                "{:?}, {columns} columns: {gradients} of {scale}",
                tensor.dims
            );
        }
    }
}

#[test]
fn the_loss_never_rises() {
    let data = small_data();
    let settings = [
        (9, 1, 1, false),
        (9, 2, 3, true),
        (9, 4, 1, true),
        (11, 8, 1, false),
        (9, 9, 2, false),
        // Blocks of 16 and 17 columns have rows of the same length.
        (33, 17, 1, true),
    ];
    for (rank, columns, inner, biases) in settings {
        let mut o = options(rank, columns);
        o.epochs = 25;
        set(&mut o, "inner_epochs", inner);
        (o.biases, o.mean) = (biases, biases);
        let (model, _) = fit_planted(&data, &o, false);
        let losses: Vec<f64> = model.history().iter().map(|e| e.loss).collect();
        assert_eq!(losses.len(), 25);
        for pair in losses.windows(2) {
            assert!(
                pair[1] <= pair[0] * (1.0 + 1e-6),
                "{columns} columns: {losses:?}"
            );
        }
        assert!(losses[24] < 0.9 * losses[0], "{losses:?}");
    }
}

/// Returns the largest difference of two models' factors, relative to the largest element.
fn factor_difference(a: &Model, b: &Model) -> f32 {
    let elements = |model: &Model| -> Vec<f32> {
        let factors = model.modes().iter().map(|m| m.factor.as_slice().to_vec());
        factors.collect::<Vec<_>>().concat()
    };
    let (a, b) = (elements(a), elements(b));
    let largest = a.iter().fold(0.0f32, |x, y| x.max(y.abs()));
    let differences = a.iter().zip(&b).map(|(x, y)| (x - y).abs());
    differences.fold(0.0, f32::max) / largest
}

#[test]
fn one_block_of_all_columns_is_als() {
    let data = small_data();
    for biases in [false, true] {
        for rank in [6, 20] {
            let mut o = options(rank, rank as u64);
            (o.epochs, o.biases, o.mean) = (3, biases, biases);
            let (sals, _) = fit_planted(&data, &o, false);
            // More columns than there are make the same block.
            set(&mut o, "subset_size", 1024);
            let (more, _) = fit_planted(&data, &o, false);
            assert!(parameter_bits(&sals) == parameter_bits(&more));
            o.algorithm = Algorithm::Als;
            let (als, _) = fit_planted(&data, &o, false);
            let difference = factor_difference(&sals, &als);
            assert!(difference < 2e-3, "rank {rank}: {difference}");
            o.algorithm = SALS;
            set(&mut o, "subset_size", 3);
            let (blocks, _) = fit_planted(&data, &o, false);
            assert!(factor_difference(&sals, &blocks) > 0.01);
        }
    }
}

#[test]
fn inner_iterations_of_one_block_are_epochs() {
    let data = small_data();
    for rank in [1, 2, 4, 7, 20] {
        let mut o = options(rank, rank as u64);
        o.epochs = 3;
        set(&mut o, "inner_epochs", 2);
        let (inner, _) = fit_planted(&data, &o, false);
        o.epochs = 6;
        set(&mut o, "inner_epochs", 1);
        let (outer, _) = fit_planted(&data, &o, false);
        assert!(
            parameter_bits(&inner) == parameter_bits(&outer),
            "rank {rank}"
        );
    }
}

#[test]
fn singular_equations_have_finite_solutions() {
    // Most rows have fewer entries than columns, many a single one.
    let tensor = RandomTensor::skewed(&[300, 200, 100], 400);
    let squares = tensor.values.iter().map(|&x| f64::from(x) * f64::from(x));
    let mean_square = squares.sum::<f64>() / 400.0;
    for (rank, columns) in [(5, 1), (6, 2), (7, 4), (8, 8), (20, 20)] {
        let mut o = options(rank, columns);
        (o.epochs, o.lambda_reg) = (4, Some(0.0));
        let model = fit_tensor(&tensor, &[], &o);
        for mode in model.modes() {
            assert!(mode.factor.as_slice().iter().all(|x| x.is_finite()));
        }
        let losses: Vec<f64> = model.history().iter().map(|e| e.loss).collect();
        // Sums in f32 leave nearly singular equations an error of their own.
        let limit = losses[0].max(0.01 * mean_square);
        assert!(losses[3] <= limit, "{columns} columns: {losses:?}");
    }
}

/// Generates data of a planted CP model.
fn planted(name: &str, dims: &[u64], rank: usize) -> PlantedData {
    let mut g = GenerateOptions::new(dims, 30_000);
    g.ranks = vec![rank];
    g.noise = 0.1;
    g.test_fraction = 0.2;
    g.model = ModelKind::Cp;
    generate_planted(name, &g)
}

#[test]
fn planted_cp_models_are_recovered() {
    for (name, dims) in [
        ("sals-order3", &[120, 90, 20][..]),
        ("sals-order4", &[40, 30, 20, 10]),
    ] {
        let data = planted(name, dims, 3);
        for (columns, inner) in [(1, 2), (2, 1), (3, 1)] {
            let mut o = options(3, columns);
            o.epochs = 100;
            set(&mut o, "inner_epochs", inner);
            (o.lambda_reg, o.eval_every) = (Some(0.01), 100);
            // Alternating least squares has local minima, so the best of several random starts counts.
            let from_seed = |seed: u64| {
                o.seed = seed;
                fit_planted(&data, &o, false).1
            };
            let fits = (0..4).map(from_seed);
            let best = fits.min_by(|a, b| a.train_rmse.total_cmp(&b.train_rmse));
            let error = best.unwrap().test_rmse;
            assert!(
                error < 1.05 * data.floor_rmse,
                "{name}, {columns} columns: {error} for noise {}",
                data.floor_rmse
            );
        }
    }
}

#[test]
fn fits_are_independent_of_the_thread_count() {
    // The rows of the last mode have so many entries that they are divided into parts.
    let tensor = RandomTensor::skewed(&[300, 200, 3], 40_000);
    let weights: Vec<f32> = (0..40_000).map(|e| (e % 4) as f32).collect();
    for weights in [&[][..], &weights] {
        let mut o = options(6, 4);
        (o.epochs, o.biases, o.mean) = (3, true, true);
        let levels = [Level::Scalar, Level::Wide, Level::best()];
        for (level, columns) in levels.iter().flat_map(|&l| [(l, 1), (l, 4), (l, 6)]) {
            set(&mut o, "subset_size", columns);
            (o.kernel, o.threads) = (kernel_choice(level), 1);
            let one = parameter_bits(&fit_tensor(&tensor, weights, &o));
            for threads in [2, 3, 7] {
                o.threads = threads;
                let many = parameter_bits(&fit_tensor(&tensor, weights, &o));
                assert!(
                    one == many,
                    "{level:?}, {columns} columns, {threads} threads"
                );
            }
        }
    }
}

#[test]
fn a_weight_counts_as_repetitions() {
    let tensor = RandomTensor::skewed(&[50, 40, 5], 3000);
    let weights: Vec<f32> = (0..3000).map(|e| (1 + e % 2) as f32).collect();
    let mut repeated = RandomTensor::skewed(&[50, 40, 5], 3000);
    for e in (1..3000).step_by(2) {
        for n in 0..3 {
            repeated.columns[n].push(tensor.columns[n][e]);
        }
        repeated.values.push(tensor.values[e]);
    }
    let mut o = options(4, 2);
    (o.epochs, o.penalty_per) = (3, PenaltyScaling::Constant);
    let a = fit_tensor(&tensor, &weights, &o);
    let b = fit_tensor(&repeated, &[], &o);
    assert!(factor_difference(&a, &b) < 1e-3);
}

#[test]
fn a_resumed_fit_equals_an_uninterrupted_one() {
    let data = small_data();
    let dir = Scratch::new("sals-resume");
    let path = dir.join("c.s3m");
    let problem = Problem::builder(data.train.view()).build(&()).unwrap();
    for biases in [false, true] {
        let mut o = options(7, 3);
        (o.epochs, o.biases, o.mean) = (6, biases, biases);
        let all = FitInput::default();
        let (expected, _) = fit(&problem, &o, &all, &mut (), &()).unwrap();
        let first = FitInput {
            checkpoint: Some(path.clone()),
            ..FitInput::default()
        };
        fit(&problem, &o, &first, &mut StopAfter(3), &()).unwrap();
        let rest = FitInput {
            resume: Some(path.clone()),
            ..FitInput::default()
        };
        let (resumed, summary) = fit(&problem, &o, &rest, &mut (), &()).unwrap();
        assert_eq!(summary.epochs, 6);
        assert!(parameter_bits(&resumed) == parameter_bits(&expected));
    }
}

#[test]
fn what_the_method_lacks_is_refused() {
    let data = small_data();
    let refused = |change: &dyn Fn(&mut Options), coupled: bool, word: &str| {
        let mut builder = Problem::builder(data.train.view());
        if coupled {
            let matrix = data.matrices[0].view();
            builder = builder.matrix(0, matrix, 1.0, MatrixKind::Observed);
        }
        let problem = builder.build(&()).unwrap();
        let mut o = options(4, 2);
        change(&mut o);
        let input = FitInput::default();
        let error = fit(&problem, &o, &input, &mut (), &()).err().unwrap();
        assert!(error.to_string().contains(word), "{error}");
        let search = TuneOptions::default();
        let error = tune(&problem, &o, &search, &mut (), &()).err().unwrap();
        assert!(error.to_string().contains(word), "{error}");
    };
    refused(
        &|o| o.model = ModelKind::Tucker,
        false,
        "sals fits cp models only",
    );
    refused(&|_| {}, true, "factorizes the tensor alone");
    refused(&|o| o.nonneg = true, false, "non-negative");
    refused(&|o| o.penalty = Penalty::L1, false, "l1");
    for name in ["subset_size", "inner_epochs"] {
        let error = options(4, 2).set(name, "0").unwrap_err().to_string();
        assert!(
            error.contains(name) && error.contains("it must be"),
            "{error}"
        );
    }
    // The kind of model of a preset gives way to that of the ranges.
    let problem = Problem::builder(data.train.view()).build(&()).unwrap();
    let mut o = Options::preset("paper")
        .unwrap()
        .with_algorithms(ALGORITHMS);
    (o.algorithm, o.rank, o.epochs, o.threads) = (SALS, vec![2], 2, 1);
    let mut search = TuneOptions {
        trials: 2,
        ..TuneOptions::default()
    };
    assert!(tune(&problem, &o, &search, &mut (), &()).is_err());
    search.space.set("model", "cp").unwrap();
    let found = tune(&problem, &o, &search, &mut (), &()).unwrap();
    assert_eq!(found.best().options.model, ModelKind::Cp);
    // A model to start from has its own core.
    let problem = Problem::builder(data.train.view()).build(&()).unwrap();
    let mut o = options(4, 2);
    (o.algorithm, o.model, o.epochs) = (Algorithm::Blocked, ModelKind::Tucker, 1);
    let (tucker, _) = fit(&problem, &o, &FitInput::default(), &mut (), &()).unwrap();
    (o.algorithm, o.model, o.rank) = (SALS, ModelKind::Auto, Vec::new());
    let input = FitInput {
        init: Some(&tucker),
        ..FitInput::default()
    };
    let error = fit(&problem, &o, &input, &mut (), &()).err().unwrap();
    assert!(error.to_string().contains("cp models only"), "{error}");
    // Ranks alone leave the model to the algorithm.
    (o.rank, o.epochs) = (vec![4], 1);
    let (model, _) = fit(&problem, &o, &FitInput::default(), &mut (), &()).unwrap();
    assert_eq!(model.options().model, ModelKind::Cp);
}
