//! `als` and `gibbs`: independence of the thread count, monotone loss, recovery, predictive intervals, resuming, export.

use std::cell::Cell;
use std::path::Path;

use crate::common::Scratch;
use crate::common::planted::{
    PlantedData, fit_planted, generate_planted, parameter_bits, predictions, small_data,
};
use s3cmtf::Monitor;
use s3cmtf::format::{CooView, OpenMode, Values};
use s3cmtf::generate::GenerateOptions;
use s3cmtf::model::{self, EpochMetrics, Model};
use s3cmtf::options::{
    Algorithm, Initialization, KernelChoice, ModelKind, Options, Penalty, PenaltyScaling,
};
use s3cmtf::predict::{PredictOptions, evaluate, export, predict_intervals};
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::simd::Level;
use s3cmtf::solver::{Control, FitInput, Observer, StopReason, fit};

fn options(algorithm: Algorithm, model: ModelKind, rank: usize) -> Options {
    let mut o = Options::default();
    o.algorithm = algorithm;
    o.model = model;
    o.rank = vec![rank];
    o.lambda_reg = Some(0.01);
    o.penalty_per = PenaltyScaling::Constant;
    o.start = Initialization::Normal;
    o.burn_in = 20;
    set_sweeps(&mut o, 60);
    o.threads = 1;
    o.orthogonal = false;
    o
}

/// Sets the number of epochs. `gibbs` derives it from its samples.
fn set_sweeps(o: &mut Options, count: u64) {
    o.epochs = count;
    o.samples = count - o.burn_in;
}

const BOTH: [Algorithm; 2] = [Algorithm::Als, Algorithm::Gibbs];
const MODELS: [ModelKind; 2] = [ModelKind::Cp, ModelKind::Tucker];

/// A tensor with skewed random positions, and a matrix and a graph on every mode.
struct RandomProblem {
    dims: Vec<u64>,
    columns: Vec<Vec<u32>>,
    values: Vec<f32>,
}

impl RandomProblem {
    fn new(dims: &[u64], count: usize) -> RandomProblem {
        let mut state = 1u64;
        let mut draw = |n: u64| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        let columns = dims
            .iter()
            .map(|&d| (0..count).map(|_| draw(d).min(draw(d)) as u32).collect())
            .collect();
        let values = (0..count).map(|_| draw(1000) as f32 / 250.0).collect();
        RandomProblem {
            dims: dims.to_vec(),
            columns,
            values,
        }
    }

    /// Builds the problem and passes it to `act`.
    fn with(&self, act: impl FnOnce(&Problem<'_>)) {
        let columns: Vec<&[u32]> = self.columns.iter().map(Vec::as_slice).collect();
        let tensor = CooView::new("x", &self.dims, &columns, Values::F32(&self.values)).unwrap();
        let mut builder = Problem::builder(tensor);
        let n = 300.min(self.values.len());
        let few_columns: Vec<u32> = (0..n as u32).map(|k| k % 9).collect();
        let reversed: Vec<Vec<u32>> = self
            .columns
            .iter()
            .map(|c| c[..n].iter().rev().copied().collect())
            .collect();
        for (mode, reversed) in reversed.iter().enumerate() {
            let rows = &self.columns[mode][..n];
            let values = Values::F32(&self.values[..n]);
            let both = [rows, &few_columns[..]];
            let matrix = CooView::new("y", &[self.dims[mode], 9], &both, values).unwrap();
            builder = builder.matrix(mode, matrix, 0.3, MatrixKind::Observed);
            let both = [rows, &reversed[..]];
            let graph = CooView::new("w", &[self.dims[mode]; 2], &both, values).unwrap();
            builder = builder.matrix(mode, graph, 0.01, MatrixKind::Graph);
        }
        act(&builder.build(&()).unwrap());
    }
}

fn kernel_choice(level: Level) -> KernelChoice {
    match level {
        Level::Scalar => KernelChoice::Scalar,
        Level::Wide => KernelChoice::Wide,
        Level::Avx2 => KernelChoice::Avx2,
        Level::Avx512 => KernelChoice::Avx512,
    }
}

/// Returns the bits of the parameters and of the predictions of a model.
fn model_bits(model: &Model, view: &CooView<'_>) -> (Vec<u32>, Vec<u64>) {
    let predicted = predictions(model, view)
        .iter()
        .map(|x| x.to_bits())
        .collect();
    (parameter_bits(model), predicted)
}

#[test]
fn als_and_gibbs_are_independent_of_thread_count() {
    let problems = [
        RandomProblem::new(&[300, 40], 9000),
        RandomProblem::new(&[90, 200, 5], 14000),
        RandomProblem::new(&[30, 20, 9, 7], 9000),
    ];
    for random_problem in &problems {
        random_problem.with(|problem| {
            for (algorithm, model) in BOTH.into_iter().flat_map(|a| MODELS.map(|m| (a, m))) {
                for level in [Level::Wide, Level::best()] {
                    let mut o = options(algorithm, model, 5);
                    (o.burn_in, o.kernel) = (1, kernel_choice(level));
                    set_sweeps(&mut o, 3);
                    let mut first = None;
                    for threads in [1, 2, 3, 7] {
                        o.threads = threads;
                        let input = FitInput::default();
                        let (model, _) = fit(problem, &o, &input, &mut (), &()).unwrap();
                        let found = model_bits(&model, problem.tensor().view());
                        let first = first.get_or_insert_with(|| found.clone());
                        assert!(
                            *first == found,
                            "{algorithm:?} {:?} {threads}",
                            random_problem.dims
                        );
                    }
                }
            }
        });
    }
}

/// Records the losses, and stops the fit after an epoch if requested.
#[derive(Default)]
struct LossRecorder {
    losses: Vec<f64>,
    stop_after: Option<u64>,
}

impl Observer for LossRecorder {
    fn epoch(&mut self, epoch: &EpochMetrics) -> Control {
        self.losses.push(epoch.loss);
        match self.stop_after {
            Some(last) if epoch.epoch >= last => Control::Stop,
            _ => Control::Continue,
        }
    }
}

#[test]
fn als_loss_is_monotone() {
    let problems = [
        RandomProblem::new(&[300, 40], 4000),
        RandomProblem::new(&[90, 100, 5], 6000),
        RandomProblem::new(&[30, 20, 9, 7], 6000),
    ];
    for random_problem in &problems {
        random_problem.with(|problem| {
            for (model, nonneg) in MODELS.into_iter().flat_map(|m| [(m, false), (m, true)]) {
                let mut o = options(Algorithm::Als, model, 4);
                // The penalty of biases is not part of the loss.
                (o.epochs, o.nonneg, o.biases) = (12, nonneg, false);
                let mut observer = LossRecorder::default();
                let (model, summary) =
                    fit(problem, &o, &FitInput::default(), &mut observer, &()).unwrap();
                assert_eq!((summary.epochs, observer.losses.len()), (12, 12));
                for pair in observer.losses.windows(2) {
                    assert!(
                        pair[1] <= pair[0] * (1.0 + 1e-6),
                        "{nonneg} {:?}",
                        observer.losses
                    );
                }
                assert!(
                    observer.losses[11] < observer.losses[0],
                    "{:?}",
                    observer.losses
                );
                if nonneg {
                    let negative = |x: &u32| f32::from_bits(*x) < 0.0;
                    assert!(!parameter_bits(&model).iter().any(negative));
                }
            }
        });
    }
}

/// Generates a planted Tucker tensor.
fn planted_tucker(name: &str, ranks: &[usize], noise: f64) -> PlantedData {
    let mut g = GenerateOptions::new(&[100, 80, 12], 20_000);
    g.ranks = ranks.to_vec();
    g.noise = noise;
    g.test_fraction = 0.2;
    generate_planted(name, &g)
}

#[test]
fn planted_models_are_recovered_at_every_kernel_level() {
    let data = planted_tucker("rowwise-planted", &[3], 0.2);
    for algorithm in BOTH {
        for level in Level::available() {
            let mut o = options(algorithm, ModelKind::Tucker, 3);
            o.kernel = kernel_choice(level);
            let (model, summary) = fit_planted(&data, &o, false);
            let error = summary.test_rmse;
            assert!(
                error < 1.1 * data.floor_rmse,
                "{algorithm:?} {level:?} {error} {}",
                data.floor_rmse
            );
            // The RMSE of the summary is that of the returned model.
            let e = evaluate(&model, &data.test.view(), model.range(), 1, &()).unwrap();
            assert!(
                (e.clipped.rmse / error - 1.0).abs() < 1e-4,
                "{} {error}",
                e.clipped.rmse
            );
        }
    }
}

#[test]
fn tucker_beats_cp_on_planted_tucker_data() {
    let data = planted_tucker("rowwise-core", &[4], 0.1);
    for algorithm in BOTH {
        let error = |model| {
            fit_planted(&data, &options(algorithm, model, 4), false)
                .1
                .test_rmse
        };
        let (tucker, cp) = (error(ModelKind::Tucker), error(ModelKind::Cp));
        assert!(tucker < 0.9 * cp, "{algorithm:?} {tucker} {cp}");
        assert!(
            tucker < 1.2 * data.floor_rmse,
            "{algorithm:?} {tucker} {}",
            data.floor_rmse
        );
    }
}

#[test]
fn predictive_intervals_have_nominal_coverage() {
    let data = planted_tucker("rowwise-intervals", &[3], 0.5);
    let mut o = options(Algorithm::Gibbs, ModelKind::Tucker, 4);
    set_sweeps(&mut o, 90);
    let (model, _) = fit_planted(&data, &o, false);
    let view = data.test.view();
    let mut means = Vec::new();
    let (mut inside, mut count) = (0, 0);
    predict_intervals(
        &model,
        &view,
        &[0.05, 0.95],
        &PredictOptions {
            clip: false,
            threads: 2,
        },
        &(),
        |range, intervals| {
            for (i, s) in range.zip(intervals) {
                let x = view.values().get(i);
                assert!(
                    s.standard_deviation > 0.0
                        && s.quantiles[0] < s.mean
                        && s.mean < s.quantiles[1]
                );
                inside += usize::from(s.quantiles[0] <= x && x <= s.quantiles[1]);
                count += 1;
                means.push(s.mean);
            }
            Ok(())
        },
    )
    .unwrap();
    assert_eq!(count, view.len());
    let coverage = inside as f64 / count as f64;
    assert!((0.86..0.94).contains(&coverage), "{coverage}");
    assert_eq!(means, predictions(&model, &view));
    // A model without posterior samples has no predictive intervals.
    let (als, _) = fit_planted(&data, &options(Algorithm::Als, ModelKind::Cp, 2), false);
    let rejected = predict_intervals(
        &als,
        &view,
        &[],
        &PredictOptions {
            clip: true,
            threads: 1,
        },
        &(),
        |_, _| Ok(()),
    );
    assert!(rejected.unwrap_err().to_string().contains("gibbs"));
}

#[test]
fn resumed_als_and_gibbs_equal_uninterrupted_fits() {
    let data = small_data();
    let dir = Scratch::new("rowwise-resume");
    let problem = Problem::builder(data.train.view())
        .matrix(0, data.matrices[0].view(), 0.5, MatrixKind::Observed)
        .build(&())
        .unwrap();
    let view = data.test.view();
    for (algorithm, kind) in BOTH.into_iter().flat_map(|a| MODELS.map(|m| (a, m))) {
        let mut o = options(algorithm, kind, 4);
        o.burn_in = 3;
        set_sweeps(&mut o, 11);
        let input = |resume, checkpoint| FitInput {
            test: Some(data.test.view()),
            resume,
            checkpoint,
            ..FitInput::default()
        };
        let (expected, whole) = fit(&problem, &o, &input(None, None), &mut (), &()).unwrap();
        for stop in [1, 6] {
            let path = dir.join("c.s3m");
            let mut first = LossRecorder {
                stop_after: Some(stop),
                ..LossRecorder::default()
            };
            let written = input(None, Some(path.clone()));
            fit(&problem, &o, &written, &mut first, &()).unwrap();
            o.threads = 2;
            let (model, summary) =
                fit(&problem, &o, &input(Some(path), None), &mut (), &()).unwrap();
            assert!(
                model_bits(&model, &view) == model_bits(&expected, &view),
                "{algorithm:?} {stop}"
            );
            assert_eq!(summary.test_rmse, whole.test_rmse);
        }
    }
}

#[test]
fn gibbs_model_file_round_trips() {
    let data = small_data();
    let dir = Scratch::new("rowwise-file");
    for kind in MODELS {
        let mut o = options(Algorithm::Gibbs, kind, 4);
        (o.burn_in, o.samples) = (20, 4);
        let (model, summary) = fit_planted(&data, &o, true);
        // The fit ends with the last sample.
        assert_eq!((summary.epochs, model.samples().unwrap().len()), (24, 4));
        let path = dir.join("m.s3m");
        model::save(&model, &path).unwrap();
        let loaded = model::load(&path, OpenMode::Mapped).unwrap();
        let view = data.test.view();
        assert!(model_bits(&loaded, &view) == model_bits(&model, &view));
        let noise = |m: &Model| {
            m.samples()
                .unwrap()
                .iter()
                .map(|s| s.noise_deviation)
                .collect::<Vec<_>>()
        };
        assert_eq!(noise(&loaded), noise(&model));
    }
}

/// Computes the RMSE of an exported model on entries from its files, in `f64`.
fn exported_rmse(folder: &Path, view: &CooView<'_>) -> f64 {
    fn read<const K: usize>(path: &Path, number: fn([u8; K]) -> f64) -> Vec<f64> {
        let Ok(bytes) = std::fs::read(path) else {
            return Vec::new();
        };
        let head = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        let each = bytes[head..].chunks_exact(K);
        each.map(|b| number(b.try_into().unwrap())).collect()
    }
    let floats = |name: String| read(&folder.join(name), |b| f64::from(f32::from_le_bytes(b)));
    let mean = read(&folder.join("mean.npy"), f64::from_le_bytes)[0];
    let core = std::fs::read_to_string(folder.join("CORETENSOR")).unwrap();
    let core: Vec<(Vec<usize>, f64)> = core
        .lines()
        .map(|l| {
            let (at, g) = l.rsplit_once('\t').unwrap();
            let at = at.split('\t').map(|j| j.parse::<usize>().unwrap() - 1);
            (at.collect(), g.parse().unwrap())
        })
        .collect();
    struct Mode {
        names: Vec<u32>,
        rows: Vec<f64>,
        biases: Vec<f64>,
    }
    let modes: Vec<Mode> = (1..=view.order())
        .map(|n| {
            let names = read(&folder.join(format!("factor{n}.rows.npy")), |b| {
                f64::from(u32::from_le_bytes(b))
            });
            Mode {
                names: names.iter().map(|&i| i as u32).collect(),
                rows: floats(format!("factor{n}.npy")),
                biases: floats(format!("bias{n}.npy")),
            }
        })
        .collect();
    let squares: f64 = (0..view.len())
        .map(|i| {
            let mut x = mean;
            let mut rows: Vec<&[f64]> = Vec::new();
            for (n, mode) in modes.iter().enumerate() {
                let row = mode.names.binary_search(&view.column(n)[i]).unwrap();
                x += mode.biases.get(row).copied().unwrap_or(0.0);
                let rank = mode.rows.len() / mode.names.len();
                rows.push(&mode.rows[row * rank..][..rank]);
            }
            for (at, g) in &core {
                x += g * rows.iter().zip(at).map(|(row, &j)| row[j]).product::<f64>();
            }
            (x - view.values().get(i)).powi(2)
        })
        .sum();
    (squares / view.len() as f64).sqrt()
}

#[test]
fn export_writes_the_last_posterior_sample_with_its_biases() {
    let data = small_data();
    let dir = Scratch::new("rowwise-export");
    let problem = Problem::builder(data.train.view())
        .matrix(0, data.matrices[0].view(), 1.0, MatrixKind::Observed)
        .build(&())
        .unwrap();
    let error = |model: &Model, name: &str| {
        let folder = dir.join(name);
        let files = export(model, &folder, &()).unwrap();
        let biases = files.iter().any(|f| f.ends_with("bias2.npy"));
        assert_eq!(biases, model.options().biases, "{name}");
        exported_rmse(&folder, &data.train.view())
    };
    for (k, (kind, biases)) in [
        (ModelKind::Cp, true),
        (ModelKind::Tucker, true),
        (ModelKind::Cp, false),
    ]
    .into_iter()
    .enumerate()
    {
        let mut o = options(Algorithm::Gibbs, kind, 3);
        (o.burn_in, o.samples, o.biases) = (6, 3, biases);
        let (path, checkpoint) = (dir.join("m.s3m"), dir.join("c.s3m"));
        let input = FitInput {
            checkpoint: Some(checkpoint.clone()),
            ..FitInput::default()
        };
        let (model, summary) = fit(&problem, &o, &input, &mut (), &()).unwrap();
        let near = |error: f64, expected: f64| {
            assert!(
                (error / expected - 1.0).abs() < 1e-4,
                "{error} {expected} {kind:?} {biases}"
            );
        };
        near(error(&model, &format!("fitted{k}")), summary.train_rmse);
        model::save(&model, &path).unwrap();
        for (name, path) in [("saved", &path), ("checkpoint", &checkpoint)] {
            let loaded = model::load(path, OpenMode::Mapped).unwrap();
            near(error(&loaded, &format!("{name}{k}")), summary.train_rmse);
            assert_eq!(loaded.mean(), model.mean());
            for (a, b) in loaded.modes().iter().zip(model.modes()) {
                assert_eq!(a.biases, b.biases);
            }
        }
        // A checkpoint in the middle of the chain.
        let mut early = LossRecorder {
            stop_after: Some(8),
            ..LossRecorder::default()
        };
        fit(&problem, &o, &input, &mut early, &()).unwrap();
        let state = model::load(&checkpoint, OpenMode::Mapped).unwrap();
        let expected = state.history().last().unwrap().train_rmse;
        near(error(&state, &format!("state{k}")), expected);
    }
}

#[test]
fn warm_start_begins_with_a_lower_error() {
    let data = planted_tucker("rowwise-init", &[3], 0.2);
    let problem = Problem::builder(data.train.view()).build(&()).unwrap();
    for kind in MODELS {
        let (als, _) = fit_planted(&data, &options(Algorithm::Als, kind, 3), false);
        let mut o = options(Algorithm::Gibbs, kind, 3);
        o.burn_in = 1;
        set_sweeps(&mut o, 3);
        let error = |init| {
            let input = FitInput {
                test: Some(data.test.view()),
                init,
                ..FitInput::default()
            };
            // Stopped here, because the fit would go on to replace samples from before the chain has burned in.
            let mut three = LossRecorder {
                stop_after: Some(3),
                ..LossRecorder::default()
            };
            let (_, summary) = fit(&problem, &o, &input, &mut three, &()).unwrap();
            summary.test_rmse
        };
        let (warm, cold) = (error(Some(&als)), error(None));
        assert!(warm < 0.9 * cold, "{kind:?} {warm} {cold}");
    }
}

/// Cancels after 400 checks, which is in the middle of a sweep.
struct CancelDuringSweep(Cell<u32>);

impl Monitor for CancelDuringSweep {
    fn cancelled(&self) -> bool {
        self.0.set(self.0.get() + 1);
        self.0.get() > 400
    }
}

#[test]
fn stopped_fit_returns_the_last_completed_sweep() {
    let data = small_data();
    let view = data.test.view();
    let problem = Problem::builder(data.train.view()).build(&()).unwrap();
    for algorithm in BOTH {
        let mut o = options(algorithm, ModelKind::Cp, 4);
        o.burn_in = 1;
        set_sweeps(&mut o, 100_000);
        o.eval_every = 100_000;
        let monitor = CancelDuringSweep(Cell::new(0));
        let (model, summary) = fit(&problem, &o, &FitInput::default(), &mut (), &monitor).unwrap();
        assert_eq!(summary.reason, StopReason::Cancelled);
        assert!(summary.epochs > 1);
        let mut observer = LossRecorder {
            stop_after: Some(summary.epochs),
            ..LossRecorder::default()
        };
        let (whole, _) = fit(&problem, &o, &FitInput::default(), &mut observer, &()).unwrap();
        assert!(
            model_bits(&model, &view) == model_bits(&whole, &view),
            "{algorithm:?} {}",
            summary.epochs
        );
        // An observer stops the fit after a sweep.
        o.burn_in = 2;
        set_sweeps(&mut o, 9);
        let mut three = LossRecorder {
            stop_after: Some(3),
            ..LossRecorder::default()
        };
        let (model, summary) = fit(&problem, &o, &FitInput::default(), &mut three, &()).unwrap();
        assert_eq!(summary.epochs, 3);
        set_sweeps(&mut o, 3);
        three.losses.clear();
        let (whole, _) = fit(&problem, &o, &FitInput::default(), &mut three, &()).unwrap();
        assert!(model_bits(&model, &view) == model_bits(&whole, &view));
    }
}

#[test]
fn uninformative_data_gives_finite_models() {
    let index: Vec<u32> = (0..40).collect();
    let ones: Vec<u32> = vec![0; 40];
    let some: Vec<f32> = (0..40).map(|k| k as f32 * 1e6).collect();
    let same = vec![7.0f32; 40];
    let zero = vec![0.0f32; 40];
    for values in [&some, &same, &zero] {
        // One entry per row, and all entries at one position.
        for columns in [[&index[..], &index, &ones], [&ones[..], &ones, &ones]] {
            let view = CooView::new("x", &[50, 40, 3], &columns, Values::F32(values)).unwrap();
            let matrix = CooView::new("y", &[50, 40], &[&index, &index], Values::F32(&zero));
            let problem = Problem::builder(view)
                .matrix(0, matrix.unwrap(), 1.0, MatrixKind::Observed)
                .build(&())
                .unwrap();
            for (algorithm, kind) in BOTH.into_iter().flat_map(|a| MODELS.map(|m| (a, m))) {
                for lambda_reg in [0.0, 0.1] {
                    let mut o = options(algorithm, kind, 6);
                    (o.burn_in, o.lambda_reg) = (8, Some(lambda_reg));
                    set_sweeps(&mut o, 12);
                    let (model, summary) =
                        fit(&problem, &o, &FitInput::default(), &mut (), &()).unwrap();
                    assert!(summary.train_rmse.is_finite());
                    let all = predictions(&model, problem.tensor().view());
                    assert!(all.iter().all(|x| x.is_finite()), "{algorithm:?} {all:?}");
                    if values == &same && algorithm == Algorithm::Gibbs {
                        assert!(all.iter().all(|x| (x - 7.0).abs() < 0.5), "{all:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn unsupported_options_are_rejected_by_als_and_gibbs() {
    let data = small_data();
    let problem = Problem::builder(data.train.view()).build(&()).unwrap();
    let error_of = |o: &Options| {
        let result = fit(&problem, o, &FitInput::default(), &mut (), &());
        result.err().expect("must be rejected").to_string()
    };
    let mut o = options(Algorithm::Gibbs, ModelKind::Cp, 2);
    o.nonneg = true;
    assert!(error_of(&o).contains("either sign"));
    for algorithm in BOTH {
        let mut o = options(algorithm, ModelKind::Cp, 2);
        o.penalty = Penalty::L1;
        assert!(error_of(&o).contains("l1"));
    }
}
