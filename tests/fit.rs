//! Fits of planted data: what is planted is found, and what must not change does not.

mod common;

use std::path::Path;

use common::Scratch;
use s3cmtf::analysis::{Predictor, evaluate};
use s3cmtf::format::{CooFile, CooView, OpenMode, Values, summarize};
use s3cmtf::generate::{CellChoice, GenerateOptions, MatrixSpec, generate};
use s3cmtf::model::{self, Epoch, Model, Predict};
use s3cmtf::options::{ModelKind, Options, Penalty, Start};
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::solver::{Control, Event, FitInput, FitSummary, Observer, StopReason, fit};

/// Planted data in files.
struct Planted {
    train: CooFile,
    test: CooFile,
    matrices: Vec<CooFile>,
    floor: f64,
    _dir: Scratch,
}

fn planted(name: &str, options: &GenerateOptions) -> Planted {
    let dir = Scratch::new(name);
    let made = generate(dir.path(), options, &()).unwrap();
    let open = |path: &Path| CooFile::open(path, OpenMode::Private).unwrap();
    Planted {
        train: open(&made.train.0),
        test: open(&made.test.unwrap().0),
        matrices: made.matrices.iter().map(|(p, _)| open(p)).collect(),
        floor: made.floor_rmse,
        _dir: dir,
    }
}

/// Options that find planted models with values around 0.
fn options(rank: &[usize]) -> Options {
    let mut o = Options::default();
    o.rank = rank.to_vec();
    o.start = Start::Normal;
    o.eta = 0.02;
    o.decay = 0.01;
    o.lambda_reg = 0.001;
    o.epochs = 120;
    o.eval_every = 10;
    o.threads = 1;
    o
}

fn run(data: &Planted, options: &Options, coupled: bool) -> (Model, FitSummary) {
    let mut builder = Problem::builder(data.train.view());
    if coupled {
        for matrix in &data.matrices {
            builder = builder.matrix(0, matrix.view(), 1.0, MatrixKind::Observed);
        }
    }
    let problem = builder.build(&()).unwrap();
    let input = FitInput {
        test: Some(data.test.view()),
        ..FitInput::default()
    };
    fit(&problem, options, &input, &mut (), &()).unwrap()
}

fn deviation(file: &CooFile) -> f64 {
    summarize(&file.view(), &())
        .unwrap()
        .values
        .unwrap()
        .deviation
}

#[test]
fn planted_models_without_noise_are_recovered() {
    for (name, dims, ranks, model) in [
        (
            "tucker3",
            vec![200, 150, 20],
            vec![3, 2, 3],
            ModelKind::Tucker,
        ),
        ("tucker4", vec![60, 50, 20, 10], vec![2], ModelKind::Tucker),
        ("cp3", vec![200, 150, 20], vec![3], ModelKind::Cp),
    ] {
        let mut g = GenerateOptions::new(&dims, 60_000);
        g.ranks = ranks.clone();
        g.model = model;
        g.test = 0.1;
        let data = planted(name, &g);
        let mut o = options(&ranks);
        o.model = model;
        let (_, summary) = run(&data, &o, false);
        let share = summary.test_rmse / deviation(&data.test);
        assert!(share < 0.02, "{name}: {share}");
    }
}

#[test]
fn with_noise_the_error_comes_down_to_it() {
    let mut g = GenerateOptions::new(&[200, 150, 20], 60_000);
    g.ranks = vec![3];
    g.noise = 0.3;
    g.test = 0.1;
    let data = planted("noise", &g);
    let mut o = options(&[3]);
    o.eta = 0.01;
    let (_, summary) = run(&data, &o, false);
    assert!(
        summary.test_rmse < 1.05 * data.floor,
        "{} against {}",
        summary.test_rmse,
        data.floor
    );
}

#[test]
fn a_coupled_matrix_earns_its_keep() {
    let (mut with, mut without) = (0.0, 0.0);
    for seed in 0..5 {
        let mut g = GenerateOptions::new(&[300, 60, 10], 8000);
        g.ranks = vec![3];
        g.noise = 0.1;
        g.test = 0.3;
        g.seed = seed;
        g.matrices = vec![MatrixSpec {
            mode: 0,
            columns: 40,
            cells: CellChoice::Full,
            ones: None,
        }];
        let data = planted(&format!("coupled{seed}"), &g);
        let mut o = options(&[3]);
        o.lambda_reg = 0.05;
        o.decay = 0.02;
        let (coupled, alone) = (
            run(&data, &o, true).1.test_rmse,
            run(&data, &o, false).1.test_rmse,
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

/// Predictions at every entry of a view.
fn predictions(model: &Model, view: &CooView<'_>) -> Vec<f64> {
    let mut predictor = Predictor::new(model);
    (0..view.len())
        .map(|i| {
            let index: Vec<u32> = (0..view.order()).map(|n| view.column(n)[i]).collect();
            predictor.predict(&index)
        })
        .collect()
}

fn small() -> Planted {
    let mut g = GenerateOptions::new(&[80, 60, 12], 9000);
    g.ranks = vec![4];
    g.noise = 0.2;
    g.test = 0.2;
    g.factor_mean = 1.0;
    g.matrices = vec![
        MatrixSpec {
            mode: 0,
            columns: 9,
            cells: CellChoice::Full,
            ones: None
        };
        2
    ];
    planted(&format!("small-{:?}", std::thread::current().id()), &g)
}

#[test]
fn orthonormal_factors_and_normalised_columns_change_no_prediction() {
    let data = small();
    for nonneg in [false, true] {
        for rank in [vec![4, 4, 4], vec![1, 1, 1], vec![5, 4, 12]] {
            let mut o = options(&rank);
            o.epochs = 5;
            o.nonneg = nonneg;
            o.orthogonal = true;
            let (finished, _) = run(&data, &o, true);
            // The same without the last step; non-negative models are always normalised, so their
            // plain form is the checkpoint taken before it.
            let plain = {
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
                predictions(&plain, &data.test.view()),
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
                "nonneg {nonneg} rank {rank:?}: predictions moved by {worst}"
            );
            // And the matrices: u . v of every pair.
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
                    let (x, y) = (dot(&finished, i, k), dot(&plain, i, k));
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
                let ranks = finished.shape().ranks[n];
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

/// All numbers of a model.
fn numbers(model: &Model) -> Vec<u32> {
    let factors = model.modes().iter().map(|m| m.factor.as_slice());
    let columns = model.matrices().iter().map(|m| m.factor.as_slice());
    [model.core()]
        .into_iter()
        .chain(factors)
        .chain(columns)
        .flatten()
        .map(|x| x.to_bits())
        .collect()
}

#[test]
fn one_thread_repeats_itself_bit_by_bit_and_the_seed_decides() {
    let data = small();
    let mut o = options(&[4]);
    o.epochs = 3;
    let first = numbers(&run(&data, &o, true).0);
    assert_eq!(numbers(&run(&data, &o, true).0), first);
    o.pin = false;
    assert_eq!(numbers(&run(&data, &o, true).0), first);
    o.seed = 1;
    assert_ne!(numbers(&run(&data, &o, true).0), first);
}

#[test]
fn a_resumed_fit_ends_where_an_uninterrupted_one_does() {
    let data = small();
    let dir = Scratch::new("resume");
    let problem = Problem::builder(data.train.view())
        .matrix(0, data.matrices[0].view(), 0.5, MatrixKind::Observed)
        .build(&())
        .unwrap();
    let mut o = options(&[4]);
    o.epochs = 9;
    o.eval_every = 2;
    o.patience = 50;
    let whole = FitInput {
        valid: Some(data.test.view()),
        ..FitInput::default()
    };
    let (expected, summary) = fit(&problem, &o, &whole, &mut (), &()).unwrap();
    for stop in [1, 4, 5] {
        let path = dir.join("c.s3m");
        let mut first = o.clone();
        first.epochs = stop;
        let part = FitInput {
            valid: Some(data.test.view()),
            checkpoint: Some(path.clone()),
            ..FitInput::default()
        };
        fit(&problem, &first, &part, &mut (), &()).unwrap();
        let rest = FitInput {
            valid: Some(data.test.view()),
            resume: Some(path),
            ..FitInput::default()
        };
        let mut second = Options::default();
        second.epochs = 9;
        second.threads = 1;
        let (model, resumed) = fit(&problem, &second, &rest, &mut (), &()).unwrap();
        assert_eq!(numbers(&model), numbers(&expected), "stopped after {stop}");
        assert_eq!(resumed.epochs, summary.epochs);
        assert_eq!(model.history().len(), 9);
    }
    // Not on other data.
    let other = Problem::builder(data.train.view()).build(&()).unwrap();
    let rest = FitInput {
        resume: Some(dir.join("c.s3m")),
        ..FitInput::default()
    };
    let error = fit(&other, &o, &rest, &mut (), &())
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("other data"), "{error}");
}

#[test]
fn models_survive_a_file_and_damage_is_noticed() {
    let data = small();
    let dir = Scratch::new("file");
    let mut o = options(&[4, 3, 2]);
    o.epochs = 2;
    let (fitted, _) = run(&data, &o, true);
    let path = dir.join("m.s3m");
    model::save(&fitted, &path).unwrap();
    for mode in [OpenMode::Mapped, OpenMode::Private] {
        let back = model::load(&path, mode).unwrap();
        assert_eq!(numbers(&back), numbers(&fitted));
        assert_eq!(
            (back.dims(), back.range(), back.options()),
            (fitted.dims(), fitted.range(), fitted.options())
        );
        assert_eq!(back.history().len(), 2);
        assert_eq!(
            predictions(&back, &data.test.view()),
            predictions(&fitted, &data.test.view())
        );
    }
    let bytes = std::fs::read(&path).unwrap();
    let refused = |bytes: &[u8], what: &str| {
        std::fs::write(dir.join("bad"), bytes).unwrap();
        assert!(
            model::load(dir.join("bad"), OpenMode::Mapped).is_err(),
            "{what}"
        );
    };
    for at in (0..bytes.len()).step_by(97) {
        let mut bad = bytes.clone();
        bad[at] ^= 0x20;
        std::fs::write(dir.join("bad"), &bad).unwrap();
        // Padding between sections is the only thing that may change unnoticed.
        if let Ok(model) = model::load(dir.join("bad"), OpenMode::Mapped) {
            assert_eq!(numbers(&model), numbers(&fitted), "byte {at}");
        }
    }
    for len in [0, 7, 63, 64, 500, bytes.len() / 2, bytes.len() - 1] {
        refused(&bytes[..len], "cut short");
    }
    refused(&[&bytes[..], b"x"].concat(), "longer");
    refused(b"1 2 3\n", "text");
}

#[test]
fn a_warm_start_goes_on_from_a_model_also_with_larger_sizes() {
    let data = small();
    let mut o = options(&[4]);
    o.epochs = 30;
    let (first, cold) = run(&data, &o, false);
    assert!(first.is_orthogonal());
    // The same rows in a larger space, and a few that are new.
    let view = data.train.view();
    let mut columns: Vec<Vec<u32>> = (0..3).map(|n| view.column(n).to_vec()).collect();
    let mut values: Vec<f64> = (0..view.len()).map(|i| view.values().get(i)).collect();
    for k in 0..5 {
        columns
            .iter_mut()
            .zip([500 + k, k, 1])
            .for_each(|(c, i)| c.push(i));
        values.push(0.5);
    }
    let slices: Vec<&[u32]> = columns.iter().map(Vec::as_slice).collect();
    let larger = CooView::new("larger", &[1000, 60, 12], &slices, Values::F64(&values)).unwrap();
    let problem = Problem::builder(larger).build(&()).unwrap();
    o.epochs = 1;
    o.eta = 0.001;
    let start = |init| {
        let input = FitInput {
            test: Some(data.test.view()),
            init,
            ..FitInput::default()
        };
        fit(&problem, &o, &input, &mut (), &()).unwrap().1.test_rmse
    };
    let (warm, anew) = (start(Some(&first)), start(None));
    assert!(
        warm < 1.1 * cold.test_rmse && warm < 0.8 * anew,
        "warm {warm}, cold {}, anew {anew}",
        cold.test_rmse
    );
    let mut other = options(&[3]);
    other.epochs = 1;
    let input = FitInput {
        init: Some(&first),
        ..FitInput::default()
    };
    let error = fit(&problem, &other, &input, &mut (), &())
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("must be the same"), "{error}");
}

#[derive(Default)]
struct Watch {
    epochs: Vec<Epoch>,
    events: Vec<Event>,
    stop_after: Option<u64>,
}

impl Observer for Watch {
    fn epoch(&mut self, figures: &Epoch) -> Control {
        self.epochs.push(*figures);
        if Some(figures.epoch) == self.stop_after {
            Control::Stop
        } else {
            Control::Continue
        }
    }

    fn event(&mut self, event: &Event) {
        self.events.push(event.clone());
    }
}

#[test]
fn every_way_to_stop() {
    let data = small();
    let problem = Problem::builder(data.train.view()).build(&()).unwrap();
    let fit_with = |o: &Options, watch: &mut Watch| {
        let input = FitInput {
            valid: Some(data.test.view()),
            ..FitInput::default()
        };
        fit(&problem, o, &input, watch, &()).unwrap()
    };
    let mut o = options(&[4]);
    o.epochs = 6;
    o.eval_every = 4;
    let mut watch = Watch::default();
    let (_, s) = fit_with(&o, &mut watch);
    assert_eq!(
        (s.reason, s.epochs, watch.epochs.len()),
        (StopReason::Epochs, 6, 6)
    );
    // Errors are measured when asked for, and at the end.
    let measured: Vec<u64> = watch
        .epochs
        .iter()
        .filter(|e| !e.loss.is_nan())
        .map(|e| e.epoch)
        .collect();
    assert_eq!(measured, [4, 6]);
    assert_eq!(
        watch.events.last(),
        Some(&Event::Stopped(StopReason::Epochs))
    );

    let mut watch = Watch {
        stop_after: Some(2),
        ..Watch::default()
    };
    assert_eq!(fit_with(&o, &mut watch).1.reason, StopReason::Cancelled);
    assert_eq!(watch.epochs.len(), 2);

    o.eval_every = 1;
    o.epochs = 100_000;
    o.tolerance = 0.01;
    assert_eq!(
        fit_with(&o, &mut Watch::default()).1.reason,
        StopReason::Tolerance
    );

    o.tolerance = 0.0;
    o.time_limit = 1e-9;
    let (_, s) = fit_with(&o, &mut Watch::default());
    assert_eq!((s.reason, s.epochs), (StopReason::TimeLimit, 0));

    // Overfitting on purpose: the validation error rises, and the best model comes back.
    o.time_limit = 0.0;
    o.rank = vec![12];
    o.eta = 0.05;
    o.patience = 3;
    let mut watch = Watch::default();
    let (_, s) = fit_with(&o, &mut watch);
    assert_eq!(s.reason, StopReason::Patience);
    let best = watch
        .epochs
        .iter()
        .map(|e| e.valid_rmse)
        .fold(f64::INFINITY, f64::min);
    assert!(
        (s.valid_rmse - best).abs() < 1e-4,
        "{} {best}",
        s.valid_rmse
    );
    assert_eq!(s.best_epoch + 3, s.epochs);
}

#[test]
fn a_fit_that_diverges_goes_back_and_slows_down() {
    let data = small();
    let problem = Problem::builder(data.train.view()).build(&()).unwrap();
    let mut o = options(&[4]);
    o.epochs = 20;
    o.eval_every = 3;
    o.eta = 2.0;
    let mut watch = Watch::default();
    let (model, s) = fit(&problem, &o, &FitInput::default(), &mut watch, &()).unwrap();
    let back = watch
        .events
        .iter()
        .filter(|e| matches!(e, Event::RolledBack { .. }))
        .count();
    assert!(back > 0, "{:?}", watch.events);
    assert!(
        s.train_rmse.is_finite() && s.train_rmse < 2.0 * deviation(&data.train),
        "{}",
        s.train_rmse
    );
    let epochs: Vec<u64> = model.history().iter().map(|e| e.epoch).collect();
    assert_eq!(
        epochs,
        (1..=20).collect::<Vec<u64>>(),
        "the history has each epoch once"
    );
    o.attempts = 2;
    o.eta = 1e6;
    let error = fit(&problem, &o, &FitInput::default(), &mut (), &())
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("diverges") && error.contains("smaller eta"),
        "{error}"
    );
}

#[test]
fn penalties_graphs_and_constraints_do_what_they_say() {
    let data = small();
    let mut o = options(&[4]);
    o.epochs = 20;
    let size = |o: &Options| {
        let (model, _) = run(&data, o, false);
        model
            .core()
            .iter()
            .map(|&g| f64::from(g) * f64::from(g))
            .sum::<f64>()
    };
    let weak = size(&o);
    o.lambda_reg = 50.0;
    assert!(size(&o) < 0.5 * weak, "a strong penalty shrinks the model");
    o.penalty = Penalty::L1;
    o.lambda_reg = 20.0;
    o.orthogonal = false;
    let (sparse, _) = run(&data, &o, false);
    assert!(
        sparse.modes()[0]
            .factor
            .as_slice()
            .iter()
            .all(|x| x.is_finite())
    );
    // A graph draws the rows it links together.
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
        let mut o = options(&[4]);
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
    let (free, drawn) = (distance(0.0), distance(20.0));
    assert!(drawn < 0.5 * free, "{drawn} {free}");
}

#[test]
fn two_threads_reach_what_one_reaches() {
    let data = small();
    let mut o = options(&[4]);
    o.epochs = 40;
    let one = run(&data, &o, true).1;
    o.threads = 2;
    let two = run(&data, &o, true).1;
    assert_eq!(two.threads, 2);
    assert!(
        (two.test_rmse / one.test_rmse - 1.0).abs() < 0.05,
        "{} {}",
        two.test_rmse,
        one.test_rmse
    );
}

#[test]
fn errors_are_those_of_the_returned_model() {
    let data = small();
    let mut o = options(&[4]);
    o.epochs = 10;
    for clip in [true, false] {
        o.clip = clip;
        let (model, s) = run(&data, &o, false);
        let e = evaluate(
            &mut Predictor::new(&model),
            &data.test.view(),
            model.range(),
            &(),
        )
        .unwrap();
        let expected = if clip { e.clipped.rmse } else { e.plain.rmse };
        assert!(
            (s.test_rmse - expected).abs() < 1e-6,
            "{} {expected}",
            s.test_rmse
        );
        assert_eq!(s.clipped, clip);
    }
}
