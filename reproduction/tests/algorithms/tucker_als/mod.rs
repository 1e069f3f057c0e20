//! Fits by `tucker-als`: leading subspaces, the objective over all cells, recovery, independence of the thread count, refusals.

pub(crate) mod reference;

use reference::*;

use crate::common::Scratch;
use crate::common::in_memory::{Entries, predictions};
use crate::common::next_unit;
use crate::common::planted::{StopAfter, parameter_bits, small_data};
use crate::common::random_problem::RandomTensor;
use crate::support::*;
use s3cmtf::Error;
use s3cmtf::kernel::CoreKind;
use s3cmtf::model::Model;
use s3cmtf::options::{Algorithm, Initialization, ModelKind, Options, Penalty};
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::solver::tune::{TuneOptions, tune};
use s3cmtf::solver::{FitInput, fit};

fn options(ranks: &[usize], epochs: u64) -> Options {
    let mut o = s3cmtf_reproduction::options();
    (o.algorithm, o.rank) = (TUCKER_ALS, ranks.to_vec());
    (o.epochs, o.threads) = (epochs, 1);
    o
}

/// A tensor and matrices that are coupled to its modes.
struct Coupled {
    tensor: Entries,
    /// The mode, the weight and the entries of each matrix.
    matrices: Vec<(usize, f64, Entries)>,
}

impl Coupled {
    /// Creates random entries, with several at some cells of the tensor, and matrices with this many columns of these modes.
    fn random(dims: &[u64], count: usize, matrices: &[(usize, u64)]) -> Coupled {
        let random = RandomTensor::skewed(dims, count);
        let mut tensor = Entries::new(dims);
        for e in 0..count {
            let index: Vec<u32> = random.columns.iter().map(|c| c[e]).collect();
            tensor.push(&index, f64::from(random.values[e]) - 1.5);
        }
        let mut state = 7;
        let matrix = |&(mode, columns): &(usize, u64)| {
            let mut matrix = Entries::new(&[dims[mode], columns]);
            for i in 0..dims[mode] as u32 {
                for k in 0..columns as u32 {
                    if next_unit(&mut state) < 0.3 {
                        matrix.push(&[i, k], next_unit(&mut state) - 0.3);
                    }
                }
            }
            (mode, 0.5 + mode as f64, matrix)
        };
        let matrices = matrices.iter().map(matrix).collect();
        Coupled { tensor, matrices }
    }

    fn with_problem<T>(&self, act: impl FnOnce(&Problem<'_>) -> T) -> T {
        let mut builder = Problem::builder(self.tensor.view());
        for (k, (mode, weight, entries)) in self.matrices.iter().enumerate() {
            // Both kinds are the same to this algorithm.
            let kind = [MatrixKind::Full, MatrixKind::Auto][k % 2];
            builder = builder.matrix(*mode, entries.view(), *weight, kind);
        }
        act(&builder.build(&()).unwrap())
    }

    fn fit_from(&self, options: &Options, init: Option<&Model>) -> Model {
        let input = FitInput {
            init,
            ..FitInput::default()
        };
        self.with_problem(|problem| fit(problem, options, &input, &mut (), &()).unwrap().0)
    }

    fn fit(&self, options: &Options) -> Model {
        self.fit_from(options, None)
    }
}

fn assert_orthonormal(model: &Model) {
    assert!(model.is_orthogonal());
    for (n, mode) in model.modes().iter().enumerate() {
        let rank = model.shape().ranks()[n];
        for (j, k) in (0..rank * rank).map(|x| (x / rank, x % rank)) {
            let rows = (0..mode.rows.len()).map(|i| mode.factor.row(i));
            let sum: f64 = rows.map(|r| f64::from(r[j]) * f64::from(r[k])).sum();
            let expected = f64::from(u8::from(j == k));
            assert!((sum - expected).abs() < 1e-6, "mode {n}: {sum}");
        }
    }
}

/// Problems for every way to find singular vectors, with the ranks.
fn problems() -> Vec<(Coupled, Vec<usize>)> {
    vec![
        (Coupled::random(&[40, 90], 700, &[(1, 5)]), vec![4, 3]),
        (Coupled::random(&[9, 120, 14], 2000, &[]), vec![3, 5, 4]),
        // The Gram matrix of the columns.
        (
            Coupled::random(&[9, 14, 150], 2000, &[(2, 30), (2, 12), (0, 7)]),
            vec![3, 4, 5],
        ),
        // More columns than rows.
        (
            Coupled::random(&[30, 20, 40], 2000, &[(2, 55)]),
            vec![9, 9, 3],
        ),
        // Too many columns for a Gram matrix.
        (
            Coupled::random(&[10, 12, 260], 3000, &[(2, 80)]),
            vec![9, 12, 2],
        ),
        (
            Coupled::random(&[8, 30, 7, 9], 1500, &[(1, 6)]),
            vec![2, 4, 3, 3],
        ),
        // Fewer columns than singular vectors.
        (Coupled::random(&[8, 30, 7], 500, &[]), vec![1, 5, 2]),
    ]
}

#[test]
fn the_factor_of_the_last_mode_spans_the_leading_subspace() {
    for (data, ranks) in problems() {
        let model = data.fit(&options(&ranks, 3));
        assert_orthonormal(&model);
        let dims = data.tensor.dims.clone();
        // The mode with the most rows is updated last.
        let last = (0..dims.len()).max_by_key(|&n| dims[n]).unwrap();
        let m = unfolding(&model, &data, last);
        let columns: Vec<Vec<f64>> = (0..m[0].len())
            .map(|c| m.iter().map(|row| row[c]).collect())
            .collect();
        let gram = |rows: &[Vec<f64>]| -> Vec<Vec<f64>> {
            let row = |a: &Vec<f64>| rows.iter().map(|b| dot(a, b)).collect();
            rows.iter().map(row).collect()
        };
        let expected = match columns.len() < m.len() {
            true => eigenvalues(gram(&columns)),
            false => eigenvalues(gram(&m)),
        };
        let rank = ranks[last];
        let expected: f64 = expected.iter().take(rank).sum();
        let factor: Vec<Vec<f64>> = (0..m.len()).map(|i| row(&model, last, i)).collect();
        let mut found = 0.0;
        for column in &columns {
            for j in 0..rank {
                let product: f64 = column.iter().zip(&factor).map(|(x, u)| x * u[j]).sum();
                found += product * product;
            }
        }
        assert!(
            (found - expected).abs() < 1e-6 * expected,
            "{dims:?}: {found} of {expected}"
        );
        // The core and the columns of matrices are the projections.
        let w = unfolding(
            &model,
            &Coupled {
                tensor: data.tensor,
                matrices: Vec::new(),
            },
            last,
        );
        let after: usize = ranks[last + 1..].iter().product();
        for (k, g) in core(&model).iter().enumerate() {
            let (j, before) = (k / after % rank, k / after / rank);
            let column = before * after + k % after;
            let expected: f64 = w.iter().zip(&factor).map(|(w, u)| w[column] * u[j]).sum();
            assert!((g - expected).abs() < 1e-5, "{g} {expected}");
        }
        for ((mode, _, entries), matrix) in data.matrices.iter().zip(model.matrices()) {
            assert_eq!(matrix.kind, MatrixKind::Full);
            let (cells, count) = (dense(entries), matrix.factor.len());
            for (k, j) in (0..count * ranks[*mode]).map(|x| (x / ranks[*mode], x % ranks[*mode])) {
                let terms = (0..cells.len() / count)
                    .map(|i| cells[i * count + k] * row(&model, *mode, i)[j]);
                let expected: f64 = terms.sum();
                let found = f64::from(matrix.factor.row(k)[j]);
                assert!((found - expected).abs() < 1e-5, "{found} {expected}");
            }
        }
    }
}

#[test]
fn the_loss_is_that_of_all_cells_and_never_rises() {
    for (data, ranks) in problems() {
        let mut losses = Vec::new();
        for epochs in [0, 1, 2, 5, 12] {
            let model = data.fit(&options(&ranks, epochs));
            let expected = brute_force_objective(&model, &data);
            if let Some(last) = model.history().last() {
                let (found, dims) = (last.loss, data.tensor.dims.clone());
                let difference = (found - expected).abs();
                assert!(difference < 1e-9 * expected, "{dims:?}: {found} {expected}");
                assert!(expected < 0.999 * losses[0], "{losses:?}");
                let all: Vec<f64> = model.history().iter().map(|e| e.loss).collect();
                assert!(
                    all.windows(2).all(|w| w[1] <= w[0] * (1.0 + 1e-10)),
                    "{all:?}"
                );
            }
            losses.push(expected);
        }
        assert!(
            losses.windows(2).all(|w| w[1] <= w[0] * (1.0 + 1e-10)),
            "{losses:?}"
        );
    }
}

#[test]
fn complete_planted_data_is_recovered() {
    for (dims, ranks) in [
        (&[12, 9, 7][..], &[3, 2, 4][..]),
        (&[30, 8], &[3, 3]),
        (&[8, 7, 6, 5], &[2, 3, 2, 2]),
    ] {
        let mut state = 3;
        let mut normal = || 2.0 * next_unit(&mut state) - 1.0;
        let factors: Vec<Vec<f64>> = dims
            .iter()
            .zip(ranks)
            .map(|(&i, &j)| (0..i * j).map(|_| normal()).collect())
            .collect();
        let mut sizes = ranks.to_vec();
        let mut values: Vec<f64> = (0..ranks.iter().product()).map(|_| normal()).collect();
        for n in 0..dims.len() {
            values = mode_product(&values, &sizes, n, dims[n], |i, j| {
                factors[n][i * ranks[n] + j]
            });
            sizes[n] = dims[n];
        }
        let all: Vec<u64> = dims.iter().map(|&d| d as u64).collect();
        let mut tensor = Entries::new(&all);
        for (k, &x) in values.iter().enumerate() {
            let mut rest = k;
            let mut index: Vec<u32> = Vec::new();
            for &d in dims.iter().rev() {
                index.insert(0, (rest % d) as u32);
                rest /= d;
            }
            tensor.push(&index, x);
        }
        let mut matrix = Entries::new(&[all[0], 6]);
        let columns: Vec<f64> = (0..6 * ranks[0]).map(|_| normal()).collect();
        for (i, k) in (0..dims[0] * 6).map(|x| (x / 6, x % 6)) {
            let u = &factors[0][i * ranks[0]..][..ranks[0]];
            matrix.push(
                &[i as u32, k as u32],
                dot(u, &columns[k * ranks[0]..][..ranks[0]]),
            );
        }
        let data = Coupled {
            tensor,
            matrices: vec![(0, 2.0, matrix)],
        };
        let model = data.fit(&options(ranks, 30));
        let squares = dot(&values, &values);
        let loss = brute_force_objective(&model, &data);
        assert!(loss < 1e-11 * squares, "{dims:?}: {loss} of {squares}");
        let found = predictions(&model, &data.tensor);
        for (x, y) in values.iter().zip(found) {
            assert!((x - y).abs() < 1e-5, "{x} {y}");
        }
    }
}

#[test]
fn fits_are_independent_of_the_thread_count() {
    // The rows of the last mode have so many entries that they are divided into parts.
    let cases = [
        (
            Coupled::random(&[300, 200, 3], 40_000, &[(0, 70), (2, 4)]),
            vec![5, 4, 3],
        ),
        (
            Coupled::random(&[300, 250, 60], 20_000, &[(1, 400)]),
            vec![3, 2, 20],
        ),
    ];
    for (data, ranks) in cases {
        let mut o = options(&ranks, 2);
        let one = parameter_bits(&data.fit(&o));
        for threads in [2, 3] {
            o.threads = threads;
            assert!(one == parameter_bits(&data.fit(&o)), "{threads} threads");
        }
        o.seed = 5;
        assert!(one != parameter_bits(&data.fit(&o)));
    }
}

#[test]
fn a_resumed_fit_equals_an_uninterrupted_one() {
    let data = Coupled::random(&[60, 25, 12], 2500, &[(0, 9), (1, 5)]);
    let dir = Scratch::new("tucker-als-resume");
    let path = dir.join("c.s3m");
    let mut o = options(&[4, 3, 5], 6);
    let expected = data.fit(&o);
    data.with_problem(|problem| {
        let first = FitInput {
            checkpoint: Some(path.clone()),
            ..FitInput::default()
        };
        fit(problem, &o, &first, &mut StopAfter(3), &()).unwrap();
        let rest = FitInput {
            resume: Some(path.clone()),
            ..FitInput::default()
        };
        o.threads = 2;
        let (resumed, summary) = fit(problem, &o, &rest, &mut (), &()).unwrap();
        assert_eq!(summary.epochs, 6);
        assert!(parameter_bits(&resumed) == parameter_bits(&expected));
        assert_eq!(
            resumed.history().last().unwrap().loss,
            expected.history().last().unwrap().loss
        );
    });
}

#[test]
fn a_fit_from_a_model_goes_on_where_it_ended() {
    let data = Coupled::random(&[60, 25, 12], 2500, &[(0, 9)]);
    let loss = |model: &Model| model.history().last().unwrap().loss;
    let ten = data.fit(&options(&[4, 3, 5], 10));
    let more = data.fit_from(&options(&[], 1), Some(&ten));
    assert_eq!(more.shape(), ten.shape());
    assert!(loss(&more) <= loss(&ten) * (1.0 + 1e-9));
    // Factors of other algorithms are made orthonormal.
    let mut o = options(&[4, 3, 5], 2);
    (o.algorithm, o.model, o.lambda_m) = (Algorithm::Als, ModelKind::Tucker, vec![1.0]);
    let als = data.fit(&o);
    let model = data.fit_from(&options(&[], 2), Some(&als));
    assert_orthonormal(&model);
    // The start has no effect.
    for start in [
        Initialization::Identity,
        Initialization::Gibbs,
        Initialization::Paper,
    ] {
        let mut o = options(&[4, 3, 5], 10);
        o.start = start;
        assert!(parameter_bits(&data.fit(&o)) == parameter_bits(&ten));
    }
}

#[test]
fn rows_without_entries_are_predicted_as_zero() {
    let mut tensor = Entries::new(&[50, 40, 9]);
    let random = RandomTensor::uniform(&[40, 30, 8], 1500);
    for e in 0..1500 {
        let index: Vec<u32> = random.columns.iter().map(|c| c[e]).collect();
        tensor.push(&index, 3.0 + f64::from(random.values[e]));
    }
    let mut cells = Entries::new(&[50, 40, 9]);
    for index in [[45, 3, 2], [3, 35, 2], [3, 4, 8], [45, 35, 8]] {
        cells.push(&index, 1.0);
    }
    let data = Coupled {
        tensor,
        matrices: Vec::new(),
    };
    let mut o = options(&[3], 2);
    (o.mean, o.biases) = (true, true);
    let model = data.fit(&o);
    assert_eq!(model.mean(), 0.0);
    assert_eq!(model.shape().kind(), CoreKind::Full);
    assert!(model.modes().iter().all(|m| m.biases.is_empty()));
    assert!(predictions(&model, &cells).iter().all(|&x| x == 0.0));
    let text = format!("{:?}", model.record());
    assert!(text.contains("mean and biases"), "{text}");
}

#[test]
fn what_the_method_lacks_is_refused() {
    let data = small_data();
    let refused = |change: &dyn Fn(&mut Options), kind: Option<MatrixKind>, word: &str| {
        let mut builder = Problem::builder(data.train.view());
        let side = data.train.view().dims()[0];
        let mut graph = Entries::new(&[side, side]);
        graph.push(&[0, 1], 1.0);
        if let Some(kind) = kind {
            let matrix = match kind {
                MatrixKind::Graph => graph.view(),
                _ => data.matrices[0].view(),
            };
            builder = builder.matrix(0, matrix, 1.0, kind);
        }
        let problem = builder.build(&()).unwrap();
        let mut o = options(&[4], 2);
        change(&mut o);
        let input = FitInput::default();
        let error = fit(&problem, &o, &input, &mut (), &()).err().unwrap();
        assert!(error.to_string().contains(word), "{error}");
        let search = TuneOptions::default();
        let error = tune(&problem, &o, &search, &mut (), &()).err().unwrap();
        assert!(error.to_string().contains(word), "{error}");
    };
    let nothing = |_: &mut Options| {};
    let cp = |o: &mut Options| o.model = ModelKind::Cp;
    refused(&cp, None, "tucker-als fits tucker models only");
    refused(&|o| o.nonneg = true, None, "either sign");
    refused(&|o| o.penalty = Penalty::L1, None, "no penalty");
    refused(&nothing, Some(MatrixKind::Graph), "no graphs");
    refused(&nothing, Some(MatrixKind::Sampled(2)), "samples none");
    let weights = vec![1.0f32; data.train.view().len()];
    let weighted = data.train.view();
    let weighted = weighted.with_weights(s3cmtf::format::Values::F32(&weights));
    let problem = Problem::builder(weighted.unwrap()).build(&()).unwrap();
    let input = FitInput::default();
    let error = fit(&problem, &options(&[4], 2), &input, &mut (), &()).err();
    assert!(
        error
            .unwrap()
            .to_string()
            .contains("does not support weights")
    );
}

#[test]
fn a_fit_that_needs_too_much_memory_is_refused() {
    // All rows of a matrix count.
    let dims = [4_000_000_000, 20, 10];
    let mut tensor = Entries::new(&dims);
    let mut matrix = Entries::new(&[dims[0], 4]);
    for k in 0..40 {
        tensor.push(&[k * 99_999_999, k % 20, k % 10], 1.0);
        matrix.push(&[k, k % 4], 1.0);
    }
    let data = Coupled {
        tensor,
        matrices: Vec::new(),
    };
    // Rows that do not occur need none.
    assert!(data.fit(&options(&[5], 2)).is_orthogonal());
    let builder = Problem::builder(data.tensor.view());
    let builder = builder.matrix(0, matrix.view(), 1.0, MatrixKind::Auto);
    let problem = builder.build(&()).unwrap();
    let input = FitInput::default();
    let error = fit(&problem, &options(&[5], 2), &input, &mut (), &())
        .err()
        .unwrap();
    let text = error.to_string();
    assert!(matches!(error, Error::Io { .. }), "{text}");
    assert!(
        text.contains("tucker-als needs about") && text.contains(" GB of memory"),
        "{text}"
    );
    assert!(text.contains("mode 1 (4000000000 rows)"), "{text}");
}

#[test]
fn tuning_takes_matrices_as_zero_filled() {
    let data = Coupled::random(&[60, 25, 12], 2500, &[(0, 9)]);
    let search = TuneOptions {
        trials: 3,
        rungs: 1,
        ..TuneOptions::default()
    };
    let result = data
        .with_problem(|problem| tune(problem, &options(&[], 3), &search, &mut (), &()).unwrap());
    assert!(result.trials[0].valid_rmse.is_finite());
}
