//! Fits by `als` and `gibbs`: independence of the thread count, monotone loss, recovery, warm starts, stopping.

use std::cell::Cell;

use crate::common::kernel_choice;
use crate::common::planted::{
    PlantedData, fit_planted, generate_planted, model_bits, parameter_bits, predictions, small_data,
};
use crate::common::random_problem::{MatrixColumns, RandomTensor};
use s3cmtf::Monitor;
use s3cmtf::format::{CooView, Values};
use s3cmtf::generate::GenerateOptions;
use s3cmtf::model::EpochMetrics;
use s3cmtf::options::{Algorithm, Initialization, ModelKind, Options, Penalty, PenaltyScaling};
use s3cmtf::predict::evaluate;
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::simd::Level;
use s3cmtf::solver::{Control, FitInput, Observer, StopReason, fit};

/// Returns the options of these tests, for 60 sweeps.
pub(crate) fn options(algorithm: Algorithm, model: ModelKind, rank: usize) -> Options {
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
pub(crate) fn set_sweeps(o: &mut Options, count: u64) {
    o.epochs = count;
    o.samples = count - o.burn_in;
}

pub(crate) const BOTH: [Algorithm; 2] = [Algorithm::Als, Algorithm::Gibbs];
pub(crate) const MODELS: [ModelKind; 2] = [ModelKind::Cp, ModelKind::Tucker];

/// The matrix on every mode of the random tensors.
const MATRICES: [MatrixColumns; 1] = [MatrixColumns {
    multiplier: 1,
    count: 9,
}];

#[test]
fn als_and_gibbs_are_independent_of_thread_count() {
    let tensors = [
        RandomTensor::skewed(&[300, 40], 9000),
        RandomTensor::skewed(&[90, 200, 5], 14000),
        RandomTensor::skewed(&[30, 20, 9, 7], 9000),
    ];
    for tensor in &tensors {
        tensor.with_matrices(300, &MATRICES, |problem| {
            for (algorithm, model) in BOTH.into_iter().flat_map(|a| MODELS.map(|m| (a, m))) {
                for level in [Level::Wide, Level::best()] {
                    let mut o = options(algorithm, model, 5);
                    (o.burn_in, o.kernel) = (1, kernel_choice(level));
                    set_sweeps(&mut o, 3);
                    let mut first = None;
                    // The thread count changes the schedule only, which all levels share.
                    let all: &[u64] = match level == Level::best() {
                        true => &[1, 2, 3, 7],
                        false => &[1, 3],
                    };
                    for &threads in all {
                        o.threads = threads;
                        let input = FitInput::default();
                        let (model, _) = fit(problem, &o, &input, &mut (), &()).unwrap();
                        let found = model_bits(&model, problem.tensor().view());
                        let first = first.get_or_insert_with(|| found.clone());
                        assert!(*first == found, "{algorithm:?} {:?} {threads}", tensor.dims);
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
    let tensors = [
        RandomTensor::skewed(&[300, 40], 4000),
        RandomTensor::skewed(&[90, 100, 5], 6000),
        RandomTensor::skewed(&[30, 20, 9, 7], 6000),
    ];
    for tensor in &tensors {
        tensor.with_matrices(300, &MATRICES, |problem| {
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
pub(crate) fn planted_tucker(name: &str, ranks: &[usize], noise: f64) -> PlantedData {
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
            assert!(!summary.clipped, "the planted values have no bounds");
            assert!(
                (e.unclipped.rmse / error - 1.0).abs() < 1e-4,
                "{} {error}",
                e.unclipped.rmse
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
fn warm_start_begins_with_a_lower_error() {
    let data = planted_tucker("rowwise-init", &[3], 0.2);
    let problem = Problem::builder(data.train.view()).build(&()).unwrap();
    for kind in MODELS {
        let (als, _) = fit_planted(&data, &options(Algorithm::Als, kind, 3), false);
        let error = |algorithm, init| {
            let mut o = options(algorithm, kind, 3);
            o.burn_in = 1;
            set_sweeps(&mut o, 3);
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
        let [warm, cold] = [Some(&als), None].map(|init| error(Algorithm::Als, init));
        assert!(warm < 0.9 * cold, "{kind:?} {warm} {cold}");
        // The pilot chain of a cold start has burned in.
        let [warm, cold] = [Some(&als), None].map(|init| error(Algorithm::Gibbs, init));
        assert!(warm < 1.02 * cold, "{kind:?} {warm} {cold}");
    }
}

/// Cancels after 1000 checks, which is in the middle of a sweep.
struct CancelDuringSweep(Cell<u32>);

impl Monitor for CancelDuringSweep {
    fn cancelled(&self) -> bool {
        self.0.set(self.0.get() + 1);
        self.0.get() > 1000
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
