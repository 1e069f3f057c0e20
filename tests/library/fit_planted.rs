//! Fits of planted data: recovery, invariances, and effects of penalties and constraints.

use crate::common::Scratch;
use crate::common::planted::{
    fit_planted, generate_planted, paper_options, predictions, small_data, standard_deviation,
};
use s3cmtf::format::{CooView, OpenMode, Values};
use s3cmtf::generate::{GenerateOptions, MatrixEntries, MatrixSpec};
use s3cmtf::model::{self, Model};
use s3cmtf::options::{ModelKind, Options, Penalty};
use s3cmtf::predict::{PredictOptions, evaluate, predict_entries};
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::solver::{FitInput, fit};

#[test]
fn noiseless_planted_models_are_recovered() {
    for (name, dims, entries, ranks, model) in [
        (
            "tucker3",
            vec![200, 150, 20],
            30_000,
            vec![3, 2, 3],
            ModelKind::Tucker,
        ),
        (
            "tucker4",
            vec![60, 50, 20, 10],
            30_000,
            vec![2],
            ModelKind::Tucker,
        ),
        ("cp3", vec![200, 150, 20], 60_000, vec![3], ModelKind::Cp),
    ] {
        let mut g = GenerateOptions::new(&dims, entries);
        g.ranks = ranks.clone();
        g.model = model;
        g.test_fraction = 0.1;
        let data = generate_planted(name, &g);
        let mut o = paper_options(&ranks);
        o.model = model;
        // CP has local minima in which two components fit three planted ones, also with per-entry SGD. One of
        // eight seeds finds the global minimum. The first that does is enough, so one that is known to comes first.
        // Tucker models are found from most starts: three of the first five, so that the test ends after three.
        let (starts, required): (&[u64], usize) = if model == ModelKind::Cp {
            (&[5, 0, 1, 2, 3, 4, 6, 7], 1)
        } else {
            (&[0, 1, 2, 3, 4], 3)
        };
        let (mut errors, mut recovered) = (Vec::new(), 0);
        for &seed in starts {
            o.seed = seed;
            let error = fit_planted(&data, &o, false).1.test_rmse / standard_deviation(&data.test);
            errors.push(error);
            recovered += usize::from(error < 0.02);
            if recovered == required {
                break;
            }
        }
        println!("{name}: relative errors {errors:?}");
        assert!(recovered == required, "{name}: {errors:?}");
    }
}

#[test]
fn test_error_reaches_the_noise_level() {
    let mut g = GenerateOptions::new(&[200, 150, 20], 60_000);
    g.ranks = vec![3];
    g.noise = 0.3;
    g.test_fraction = 0.1;
    let data = generate_planted("noise", &g);
    let mut o = paper_options(&[3]);
    o.eta = Some(0.01);
    let (_, summary) = fit_planted(&data, &o, false);
    assert!(
        summary.test_rmse < 1.05 * data.floor_rmse,
        "{} against {}",
        summary.test_rmse,
        data.floor_rmse
    );
}

#[test]
fn coupled_matrix_lowers_the_test_error() {
    let (mut with, mut without) = (0.0, 0.0);
    for seed in 0..5 {
        let mut g = GenerateOptions::new(&[300, 60, 10], 8000);
        g.ranks = vec![3];
        g.noise = 0.1;
        g.test_fraction = 0.3;
        g.seed = seed;
        g.matrices = vec![MatrixSpec {
            mode: 0,
            columns: 40,
            entries: MatrixEntries::All,
            ones_fraction: None,
            group_fraction: None,
        }];
        let data = generate_planted(&format!("coupled{seed}"), &g);
        let mut o = paper_options(&[3]);
        o.lambda_reg = Some(0.05);
        o.decay = 0.02;
        let (coupled, alone) = (
            fit_planted(&data, &o, true).1.test_rmse,
            fit_planted(&data, &o, false).1.test_rmse,
        );
        assert!(
            coupled < 0.9 * alone,
            "seed {seed}: {coupled} with the matrix, {alone} without"
        );
        with += coupled;
        without += alone;
    }
    println!(
        "mean test error with the matrix {:.4}, without {:.4}",
        with / 5.0,
        without / 5.0
    );
}

#[test]
fn orthogonalization_and_normalization_keep_predictions() {
    let data = small_data();
    for nonneg in [false, true] {
        for rank in [vec![4, 4, 4], vec![1, 1, 1], vec![5, 4, 12]] {
            let mut o = paper_options(&rank);
            o.epochs = 5;
            o.nonneg = nonneg;
            o.orthogonal = true;
            let (finished, _) = fit_planted(&data, &o, true);
            // The model before orthogonalization or normalization is in the last checkpoint.
            let unchanged = {
                let dir = Scratch::new(&format!("plain-{nonneg}-{}", rank[2]));
                let checkpoint = dir.join("c.s3m");
                let problem = Problem::builder(data.train.view())
                    .matrix(0, data.matrices[0].view(), 1.0, MatrixKind::Observed)
                    .matrix(0, data.matrices[1].view(), 1.0, MatrixKind::Observed)
                    .build(&())
                    .unwrap();
                let input = FitInput {
                    checkpoint: Some(checkpoint.clone()),
                    ..FitInput::default()
                };
                fit(&problem, &o, &input, &mut (), &()).unwrap();
                model::load(&checkpoint, OpenMode::Private).unwrap()
            };
            let (a, b) = (
                predictions(&finished, &data.test.view()),
                predictions(&unchanged, &data.test.view()),
            );
            let scale = b.iter().map(|x| x.abs()).sum::<f64>() / b.len() as f64;
            let worst = a
                .iter()
                .zip(&b)
                .map(|(x, y)| (x - y).abs())
                .fold(0.0, f64::max)
                / scale;
            assert!(
                worst < 1e-5,
                "nonneg {nonneg} rank {rank:?}: predictions changed by {worst}"
            );
            // Predictions of the matrices: u . v.
            for m in 0..2 {
                let dot = |model: &Model, i: usize, k: usize| -> f64 {
                    let (u, v) = (
                        model.modes()[0].factor.row(i),
                        model.matrices()[m].factor.row(k),
                    );
                    u.iter()
                        .zip(v)
                        .map(|(&p, &q)| f64::from(p) * f64::from(q))
                        .sum()
                };
                for (i, k) in [(0, 0), (17, 3), (79, 8)] {
                    let (x, y) = (dot(&finished, i, k), dot(&unchanged, i, k));
                    assert!((x - y).abs() < 1e-4 * (1.0 + y.abs()), "{x} {y}");
                }
            }
            for (n, mode) in finished.modes().iter().enumerate() {
                let count = mode.rows.len();
                let column = |j: usize| {
                    (0..count)
                        .map(|i| f64::from(mode.factor.row(i)[j]))
                        .collect::<Vec<_>>()
                };
                let ranks = finished.shape().ranks()[n];
                for j in 0..ranks {
                    let dot = |k: usize| {
                        column(j)
                            .iter()
                            .zip(column(k))
                            .map(|(x, y)| x * y)
                            .sum::<f64>()
                    };
                    assert!(
                        (dot(j) - 1.0).abs() < 1e-4 || (nonneg && dot(j) == 0.0),
                        "norm {}",
                        dot(j)
                    );
                    if !nonneg {
                        assert!(
                            (j + 1..ranks).all(|k| dot(k).abs() < 1e-4),
                            "columns are orthogonal"
                        );
                    }
                }
                if nonneg {
                    assert!((0..count).all(|i| mode.factor.row(i).iter().all(|&x| x >= 0.0)));
                    assert!(finished.core().iter().all(|&g| g >= 0.0));
                    assert!(
                        finished.matrices()[0]
                            .factor
                            .as_slice()
                            .iter()
                            .all(|&v| v >= 0.0)
                    );
                }
            }
        }
    }
}

#[test]
fn penalties_graph_and_nonnegativity_have_their_effect() {
    let data = small_data();
    let mut o = paper_options(&[4]);
    o.epochs = 20;
    let size = |o: &Options| {
        let (model, _) = fit_planted(&data, o, false);
        model
            .core()
            .iter()
            .map(|&g| f64::from(g) * f64::from(g))
            .sum::<f64>()
    };
    let weak = size(&o);
    o.lambda_reg = Some(50.0);
    assert!(size(&o) < 0.5 * weak, "a strong penalty shrinks the model");
    o.penalty = Penalty::L1;
    o.lambda_reg = Some(20.0);
    o.orthogonal = false;
    let (sparse, _) = fit_planted(&data, &o, false);
    assert!(
        sparse.modes()[0]
            .factor
            .as_slice()
            .iter()
            .all(|x| x.is_finite())
    );
    // A graph penalty pulls the rows of its edges together.
    let edges: (Vec<u32>, Vec<u32>) = (
        (0..40).map(|i| 2 * i).collect(),
        (0..40).map(|i| 2 * i + 1).collect(),
    );
    let ones = vec![1.0f32; 40];
    let distance = |weight: f64| {
        let graph = CooView::new(
            "graph",
            &[80, 80],
            &[&edges.0, &edges.1],
            Values::F32(&ones),
        )
        .unwrap();
        let problem = Problem::builder(data.train.view())
            .matrix(0, graph, weight, MatrixKind::Graph)
            .build(&())
            .unwrap();
        let mut o = paper_options(&[4]);
        o.epochs = 20;
        o.orthogonal = false;
        let (model, _) = fit(&problem, &o, &FitInput::default(), &mut (), &()).unwrap();
        let row = |i: usize| model.modes()[0].factor.row(i);
        let gap = |i: usize| {
            row(2 * i)
                .iter()
                .zip(row(2 * i + 1))
                .map(|(a, b)| (a - b).powi(2))
                .sum::<f32>()
        };
        (0..40).map(gap).sum::<f32>()
    };
    let (without, with) = (distance(0.0), distance(20.0));
    assert!(with < 0.5 * without, "{with} {without}");
}

#[test]
fn two_threads_reach_the_error_of_one() {
    let data = small_data();
    let mut o = paper_options(&[4]);
    o.epochs = 40;
    let one = fit_planted(&data, &o, true).1;
    o.threads = 2;
    let two = fit_planted(&data, &o, true).1;
    assert_eq!(two.threads, 2);
    assert!(
        (two.test_rmse / one.test_rmse - 1.0).abs() < 0.05,
        "{} {}",
        two.test_rmse,
        one.test_rmse
    );
}

#[test]
fn predictions_are_independent_of_thread_count() {
    let data = small_data();
    let mut o = paper_options(&[4]);
    o.epochs = 3;
    let model = fit_planted(&data, &o, false).0;
    // More than one chunk of entries, with unknown rows.
    let n = 100_001;
    let columns: Vec<Vec<u32>> = [81, 61, 13]
        .iter()
        .map(|size| (0..n).map(|i| (i * 7919 + i / 17) % size).collect())
        .collect();
    let columns: Vec<&[u32]> = columns.iter().map(Vec::as_slice).collect();
    let values = vec![1.0; n as usize];
    let view = CooView::new("positions", &[81, 61, 13], &columns, Values::F64(&values)).unwrap();
    let predicted = |threads| {
        let mut all: Vec<u64> = Vec::new();
        predict_entries(
            &model,
            &view,
            &PredictOptions {
                clip: false,
                threads,
            },
            &(),
            |range, values| {
                assert_eq!((range.start, range.len()), (all.len(), values.len()));
                all.extend(values.iter().map(|x| x.to_bits()));
                Ok(())
            },
        )
        .unwrap();
        all
    };
    let expected: Vec<u64> = predictions(&model, &view)
        .into_iter()
        .map(f64::to_bits)
        .collect();
    let errors = evaluate(&model, &view, model.range(), 1, &()).unwrap();
    for threads in [1, 2, 5] {
        assert!(predicted(threads) == expected, "{threads} threads");
        let same = evaluate(&model, &view, model.range(), threads, &()).unwrap();
        assert_eq!(same, errors, "{threads} threads");
    }
}

#[test]
fn summary_errors_are_those_of_the_returned_model() {
    let data = small_data();
    let mut o = paper_options(&[4]);
    o.epochs = 10;
    for clip in [true, false] {
        o.clip = Some(clip);
        let (model, s) = fit_planted(&data, &o, false);
        let e = evaluate(&model, &data.test.view(), model.range(), 2, &()).unwrap();
        let expected = if clip {
            e.clipped.rmse
        } else {
            e.unclipped.rmse
        };
        assert!(
            (s.test_rmse - expected).abs() < 1e-6,
            "{} {expected}",
            s.test_rmse
        );
        assert_eq!(s.clipped, clip);
    }
}
