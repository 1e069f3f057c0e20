//! Fits by `cmtf-opt`: recovery by both forms, their agreement, monotone loss, independence of the thread count, resumption,
//! refusals.

use crate::common::planted::{
    PlantedData, StopAfter, fit_planted, generate_planted, parameter_bits, predictions, small_data,
};
use crate::common::random_problem::RandomTensor;
use crate::common::{Scratch, kernel_choice};
use crate::support::*;
use crate::tucker_als::reference::eigenvalues;
use s3cmtf::Error;
use s3cmtf::format::{CooView, Values};
use s3cmtf::generate::{GenerateOptions, MatrixEntries, MatrixSpec};
use s3cmtf::model::Model;
use s3cmtf::options::{Algorithm, Initialization, ModelKind, Options, Penalty};
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::simd::Level;
use s3cmtf::solver::tune::{TuneOptions, tune};
use s3cmtf::solver::{FitInput, StopReason, fit};
use s3cmtf_reproduction::ALGORITHMS;

/// Returns the options of the plain method: no mean, no biases.
fn options(rank: usize, unobserved: Unobserved) -> Options {
    let mut o = Options::preset("paper")
        .unwrap()
        .with_algorithms(ALGORITHMS);
    o.algorithm = CMTF_OPT;
    o.model = ModelKind::Cp;
    o.rank = vec![rank];
    set(&mut o, "unobserved", (unobserved).name());
    o.start = Initialization::Normal;
    o.lambda_reg = Some(0.01);
    o.lambda_m = vec![1.0];
    o.threads = 1;
    o
}

/// Generates data of a planted CP model with matrices on the first mode.
fn planted(name: &str, dims: &[u64], matrices: usize) -> PlantedData {
    let mut g = GenerateOptions::new(dims, 30_000);
    g.ranks = vec![3];
    g.noise = 0.1;
    g.test_fraction = 0.2;
    g.model = ModelKind::Cp;
    let matrix = MatrixSpec {
        mode: 0,
        columns: 12,
        entries: MatrixEntries::All,
        ones_fraction: None,
        group_fraction: None,
    };
    g.matrices = vec![matrix; matrices];
    generate_planted(name, &g)
}

#[test]
fn planted_models_are_recovered_from_observed_entries() {
    for (name, dims, matrices) in [
        ("cmtf-opt-order3", &[120, 90, 20][..], 0),
        ("cmtf-opt-coupled", &[120, 90, 20], 2),
        ("cmtf-opt-order4", &[40, 30, 20, 10], 1),
    ] {
        let data = planted(name, dims, matrices);
        let mut o = options(3, Unobserved::Unknown);
        (o.epochs, o.eval_every) = (300, 300);
        let error = fit_planted(&data, &o, true).1.test_rmse;
        let noise = data.floor_rmse;
        assert!(error < 1.05 * noise, "{name}: {error} for noise {noise}");
        // Zeros at the cells without an entry are another model.
        set(&mut o, "unobserved", (Unobserved::Zeros).name());
        let (_, summary) = fit_planted(&data, &o, true);
        assert!(summary.test_rmse > 3.0 * noise, "{}", summary.test_rmse);
    }
}

/// A tensor with an entry in every cell: a CP model plus noise.
struct FullTensor {
    tensor: RandomTensor,
    truth: Vec<f64>,
}

const NOISE: f64 = 0.1;

impl FullTensor {
    fn new(dims: &[u64], rank: usize) -> FullTensor {
        let cells = dims.iter().product::<u64>() as usize;
        // Its values are uniform between 0 and 4.
        let random = RandomTensor::uniform(&[2], 2 * cells + 1000).values;
        let mut uniform = random.iter().map(|&x| f64::from(x) / 2.0 - 1.0);
        let mut factor =
            |rows: u64| -> Vec<f64> { uniform.by_ref().take(rows as usize * rank).collect() };
        let factors: Vec<Vec<f64>> = dims.iter().map(|&d| factor(d)).collect();
        let mut columns = vec![Vec::new(); dims.len()];
        let (mut values, mut truth) = (Vec::new(), Vec::new());
        for cell in 0..cells {
            let mut rest = cell;
            let mut products = vec![1.0; rank];
            for (n, &d) in dims.iter().enumerate() {
                let row = rest % d as usize;
                rest /= d as usize;
                columns[n].push(row as u32);
                let row = &factors[n][row * rank..(row + 1) * rank];
                products.iter_mut().zip(row).for_each(|(p, u)| *p *= u);
            }
            let value: f64 = products.iter().sum();
            truth.push(value);
            // Uniform noise between -1 and 1 has the variance 1/3.
            values.push((value + NOISE * 3f64.sqrt() * uniform.next().unwrap()) as f32);
        }
        let dims = dims.to_vec();
        FullTensor {
            tensor: RandomTensor {
                dims,
                columns,
                values,
            },
            truth,
        }
    }

    fn view(&self) -> (CooView<'_>, &[f64]) {
        (view(&self.tensor), &self.truth)
    }
}

fn view(tensor: &RandomTensor) -> CooView<'_> {
    let columns: Vec<&[u32]> = tensor.columns.iter().map(Vec::as_slice).collect();
    CooView::new("x", &tensor.dims, &columns, Values::F32(&tensor.values)).unwrap()
}

fn fit_view(view: CooView<'_>, options: &Options) -> Model {
    let problem = Problem::builder(view).build(&()).unwrap();
    let input = FitInput::default();
    fit(&problem, options, &input, &mut (), &()).unwrap().0
}

#[test]
fn both_forms_are_the_same_where_every_cell_is_observed() {
    for dims in [&[40, 30][..], &[20, 15, 12], &[10, 9, 8, 6]] {
        let data = FullTensor::new(dims, 2);
        let (view, truth) = data.view();
        let fit_form = |unobserved: Unobserved, seed: u64| {
            let mut o = options(2, unobserved);
            (o.epochs, o.eval_every, o.seed) = (200, 200, seed);
            let model = fit_view(view.clone(), &o);
            let loss = model.history().last().unwrap().loss;
            (predictions(&model, &view), loss)
        };
        let seeds = 0..4;
        let losses = seeds.map(|s| (fit_form(Unobserved::Zeros, s).1, s));
        let (_, seed) = losses.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
        let (zeros, zeros_loss) = fit_form(Unobserved::Zeros, seed);
        let (unknown, unknown_loss) = fit_form(Unobserved::Unknown, seed);
        let rms = |differences: &mut dyn Iterator<Item = f64>| {
            let squares: f64 = differences.map(|d| d * d).sum();
            (squares / truth.len() as f64).sqrt()
        };
        // The model explains all but the noise, and the rank is so low that most of the noise is averaged out.
        let error = rms(&mut zeros.iter().zip(truth).map(|(a, b)| a - b));
        assert!(error < 0.4 * NOISE, "{dims:?}: {error}");
        let difference = rms(&mut zeros.iter().zip(&unknown).map(|(a, b)| a - b));
        assert!(difference < 0.01 * NOISE, "{dims:?}: {difference}");
        assert!(
            (zeros_loss - unknown_loss).abs() < 1e-4 * unknown_loss,
            "{dims:?}: {zeros_loss}, {unknown_loss}"
        );
    }
}

/// Returns the rows of a dense matrix with pseudorandom values around 0, row-major, as entries.
fn dense_matrix(rows: u32, columns: u32, scale: f32) -> RandomTensor {
    let count = (rows * columns) as usize;
    let mut entries = RandomTensor::uniform(&[rows.into(), columns.into()], count);
    let cells = 0..rows * columns;
    entries.columns = vec![
        cells.clone().map(|k| k / columns).collect(),
        cells.map(|k| k % columns).collect(),
    ];
    entries
        .values
        .iter_mut()
        .for_each(|x| *x = scale * (*x - 2.0));
    entries
}

#[test]
fn coupled_matrices_reach_their_singular_value_decomposition_from_every_start() {
    const ROWS: usize = 20;
    const RANK: usize = 3;
    for (columns, scale) in [(12, 1.0), (30, 0.3), (6, 5.0)] {
        let (x, y) = (dense_matrix(20, 12, 1.0), dense_matrix(20, columns, scale));
        // With f = |[X, Y] - U [W, V]^T|^2 / 2 the optimum has the first singular values of [X, Y].
        let mut gram = vec![vec![0.0; ROWS]; ROWS];
        for (i, row) in gram.iter_mut().enumerate() {
            for (k, element) in row.iter_mut().enumerate() {
                for entries in [&x, &y] {
                    let width = entries.dims[1] as usize;
                    let at = |i: usize, j| f64::from(entries.values[i * width + j]);
                    *element += (0..width).map(|j| at(i, j) * at(k, j)).sum::<f64>();
                }
            }
        }
        let squares: f64 = (0..ROWS).map(|i| gram[i][i]).sum();
        let eigenvalues = eigenvalues(gram);
        let optimum = 0.5 * (squares - eigenvalues[..RANK].iter().sum::<f64>());
        for seed in 0..8 {
            let mut o = options(RANK, Unobserved::Zeros);
            (o.lambda_reg, o.seed) = (Some(0.0), seed);
            (o.epochs, o.eval_every) = (150, 150);
            let builder = Problem::builder(view(&x));
            let builder = builder.matrix(0, view(&y), 1.0, MatrixKind::Observed);
            let problem = builder.build(&()).unwrap();
            let (model, _) = fit(&problem, &o, &FitInput::default(), &mut (), &()).unwrap();
            let loss = model.history().last().unwrap().loss;
            assert!(
                loss < optimum * (1.0 + 1e-4),
                "{columns} columns, seed {seed}: {loss} instead of {optimum}"
            );
        }
    }
}

#[test]
fn the_loss_never_rises() {
    let data = small_data();
    for (unobserved, biases, coupled, start) in [
        (Unobserved::Unknown, false, false, Initialization::Normal),
        (Unobserved::Unknown, true, true, Initialization::Auto),
        (Unobserved::Unknown, false, true, Initialization::Paper),
        (Unobserved::Zeros, false, true, Initialization::Normal),
        (Unobserved::Zeros, true, false, Initialization::Auto),
    ] {
        let mut o = options(5, unobserved);
        (o.epochs, o.biases, o.mean, o.start) = (40, biases, biases, start);
        let (model, _) = fit_planted(&data, &o, coupled);
        let losses: Vec<f64> = model.history().iter().map(|e| e.loss).collect();
        assert_eq!(losses.len(), 40);
        for pair in losses.windows(2) {
            assert!(pair[1] <= pair[0] * (1.0 + 1e-6), "{o:?}: {losses:?}");
        }
        assert!(losses[39] < 0.9 * losses[0], "{losses:?}");
        assert!(model.core()[..5].iter().all(|&g| g == model.core()[0]));
    }
}

#[test]
fn fits_are_independent_of_the_thread_count() {
    // The rows of the last mode have so many entries that they are divided into parts.
    let tensor = RandomTensor::skewed(&[300, 200, 3], 40_000);
    let mut matrix = RandomTensor::uniform(&[200, 9], 900);
    // Each position at most once.
    matrix.columns = [|e| e % 200, |e| e / 200]
        .map(|index: fn(u32) -> u32| (0..900).map(index).collect())
        .to_vec();
    for (unobserved, biases) in [
        (Unobserved::Unknown, false),
        (Unobserved::Unknown, true),
        (Unobserved::Zeros, false),
    ] {
        let mut o = options(6, unobserved);
        (o.epochs, o.biases, o.mean) = (4, biases, biases);
        let fitted = |o: &Options| {
            let matrix = view(&matrix);
            let builder = Problem::builder(view(&tensor));
            let builder = builder.matrix(1, matrix, 1.0, MatrixKind::Observed);
            let problem = builder.build(&()).unwrap();
            let (model, _) = fit(&problem, o, &FitInput::default(), &mut (), &()).unwrap();
            parameter_bits(&model)
        };
        for level in [Level::Scalar, Level::Wide, Level::best()] {
            (o.kernel, o.threads) = (kernel_choice(level), 1);
            let one = fitted(&o);
            for threads in [2, 3, 7] {
                o.threads = threads;
                assert!(one == fitted(&o), "{level:?}, {threads} threads");
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
    let mut o = options(4, Unobserved::Unknown);
    o.epochs = 5;
    let weighted = view(&tensor).with_weights(Values::F32(&weights)).unwrap();
    let (a, b) = (fit_view(weighted, &o), fit_view(view(&repeated), &o));
    let all = view(&tensor);
    let pairs = predictions(&a, &all).into_iter().zip(predictions(&b, &all));
    assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-3));
}

#[test]
fn a_resumed_fit_takes_the_course_of_one_without_interruption() {
    let data = small_data();
    let dir = Scratch::new("cmtf-opt-resume");
    let path = dir.join("c.s3m");
    let problem = Problem::builder(data.train.view())
        .matrix(0, data.matrices[0].view(), 1.0, MatrixKind::Observed)
        .build(&())
        .unwrap();
    for (unobserved, biases) in [
        (Unobserved::Unknown, false),
        (Unobserved::Unknown, true),
        (Unobserved::Zeros, true),
    ] {
        let mut o = options(4, unobserved);
        (o.epochs, o.biases, o.mean) = (30, biases, biases);
        let (all, _) = fit(&problem, &o, &FitInput::default(), &mut (), &()).unwrap();
        // The history has no change, some, and as many as are kept.
        for epochs in [1, 4, 17] {
            let first = FitInput {
                checkpoint: Some(path.clone()),
                ..FitInput::default()
            };
            fit(&problem, &o, &first, &mut StopAfter(epochs), &()).unwrap();
            let rest = FitInput {
                resume: Some(path.clone()),
                ..FitInput::default()
            };
            let (resumed, summary) = fit(&problem, &o, &rest, &mut (), &()).unwrap();
            assert_eq!(summary.epochs, 30);
            assert!(parameter_bits(&resumed) == parameter_bits(&all));
            let losses = |model: &Model| -> Vec<u64> {
                let epochs = model.history().iter();
                epochs.map(|e| e.loss.to_bits()).collect()
            };
            assert!(losses(&resumed) == losses(&all), "{o:?}");
        }
    }
}

#[test]
fn a_fit_ends_when_no_step_lowers_the_loss() {
    let dir = Scratch::new("cmtf-opt-converged");
    let path = dir.join("c.s3m");
    let tensor = RandomTensor::skewed(&[6, 5, 4], 60);
    for unobserved in [Unobserved::Unknown, Unobserved::Zeros] {
        let mut o = options(2, unobserved);
        (o.epochs, o.lambda_reg, o.eval_every) = (5000, Some(0.3), 7);
        let problem = Problem::builder(view(&tensor)).build(&()).unwrap();
        let input = FitInput {
            checkpoint: Some(path.clone()),
            ..FitInput::default()
        };
        let (model, summary) = fit(&problem, &o, &input, &mut (), &()).unwrap();
        assert_eq!(summary.reason, StopReason::Converged, "{o:?}");
        assert_eq!(model.record().outcome.as_ref().unwrap().reason, "converged");
        assert!(summary.epochs < 5000);
        // The last epoch is measured, and in the checkpoint.
        assert!(model.history().last().unwrap().loss.is_finite());
        let rest = FitInput {
            resume: Some(path.clone()),
            ..FitInput::default()
        };
        let (resumed, again) = fit(&problem, &o, &rest, &mut (), &()).unwrap();
        assert_eq!(again.reason, StopReason::Converged);
        assert_eq!(again.epochs, summary.epochs + 1);
        assert!(parameter_bits(&resumed) == parameter_bits(&model));
    }
}

#[test]
fn the_record_names_the_form() {
    let data = small_data();
    let problem = Problem::builder(data.train.view())
        .matrix(0, data.matrices[0].view(), 1.0, MatrixKind::Observed)
        .build(&())
        .unwrap();
    for (unobserved, expected) in [
        (Unobserved::Unknown, &["sum over the observed entries"][..]),
        (
            Unobserved::Zeros,
            &[
                "sum over all cells",
                "mean and biases: none",
                "full (cells without an entry are 0)",
            ],
        ),
    ] {
        let mut o = s3cmtf_reproduction::options();
        o.algorithm = CMTF_OPT;
        set(&mut o, "unobserved", unobserved.name());
        (o.epochs, o.threads) = (2, 1);
        let (model, _) = fit(&problem, &o, &FitInput::default(), &mut (), &()).unwrap();
        let text = model.record().to_text();
        for part in expected {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
        assert_eq!(text.contains("all cells"), unobserved == Unobserved::Zeros);
        assert_eq!(model.options().model, ModelKind::Cp);
        let is_zero_filled = unobserved == Unobserved::Zeros;
        assert_eq!(model.mean() == 0.0, is_zero_filled);
    }
}

#[test]
fn what_the_method_lacks_is_refused() {
    let data = small_data();
    let weights: Vec<f32> = vec![1.0; data.train.view().len()];
    let graph = RandomTensor::uniform(&[80, 80], 100);
    let refused = |change: &dyn Fn(&mut Options), kind: Option<MatrixKind>, word: &str| {
        let tensor = data.train.view().with_weights(Values::F32(&weights));
        let mut builder = Problem::builder(tensor.unwrap());
        if let Some(kind) = kind {
            builder = builder.matrix(0, view(&graph), 1.0, kind);
        }
        let problem = builder.build(&()).unwrap();
        let mut o = options(4, Unobserved::Unknown);
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
        None,
        "cmtf-opt fits cp models only",
    );
    refused(&|o| o.nonneg = true, None, "non-negative");
    refused(&|o| o.penalty = Penalty::L1, None, "l1");
    refused(&|_| {}, Some(MatrixKind::Graph), "no graphs");
    refused(
        &|o| set(o, "unobserved", "zeros"),
        None,
        "does not support weights",
    );
    let error = s3cmtf_reproduction::options()
        .set("unobserved", "zero")
        .unwrap_err();
    let message = error.to_string();
    assert!(message.contains("unknown, zeros"), "{message}");
    // Other algorithms have no form to choose.
    let mut o = options(4, Unobserved::Zeros);
    (o.algorithm, o.epochs) = (Algorithm::Als, 2);
    let als = fit_planted(&data, &o, false).0;
    set(&mut o, "unobserved", (Unobserved::Unknown).name());
    assert!(parameter_bits(&als) == parameter_bits(&fit_planted(&data, &o, false).0));
}

#[test]
fn a_fit_that_needs_too_much_memory_is_refused() {
    let dims = [4_000_000_000, 20, 10];
    let index = |step: u32, size: u32| -> Vec<u32> { (0..40).map(|k| k * step % size).collect() };
    let (rows, columns) = (index(99_999_999, u32::MAX), [index(1, 20), index(1, 10)]);
    let ones = [1.0; 40];
    let indices = [&rows[..], &columns[0], &columns[1]];
    let tensor = CooView::new("t", &dims, &indices, Values::F32(&ones)).unwrap();
    let (matrix_rows, matrix_columns) = (index(1, 40), index(1, 4));
    let indices = [&matrix_rows[..], &matrix_columns];
    let matrix = CooView::new("m", &[dims[0], 4], &indices, Values::F32(&ones)).unwrap();
    let builder = Problem::builder(tensor);
    let builder = builder.matrix(0, matrix, 1.0, MatrixKind::Observed);
    let problem = builder.build(&()).unwrap();
    let run = |unobserved| {
        let mut o = options(5, unobserved);
        o.epochs = 2;
        fit(&problem, &o, &FitInput::default(), &mut (), &())
    };
    // Rows that do not occur need none.
    assert!(run(Unobserved::Unknown).unwrap().1.train_rmse.is_finite());
    // All rows of a full matrix occur.
    let error = run(Unobserved::Zeros).err().unwrap();
    let text = error.to_string();
    assert!(matches!(error, Error::Io { .. }), "{text}");
    assert!(
        text.contains("cmtf-opt needs about 1.2 TB of memory"),
        "{text}"
    );
    assert!(text.contains("mode 1 (4000000000 rows)"), "{text}");
}
