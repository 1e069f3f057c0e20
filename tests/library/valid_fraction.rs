//! `valid_fraction`: a holdout determines the best epoch, whose model is returned.

use crate::common::Scratch;
use crate::common::planted::parameter_bits;
use s3cmtf::format::{CooView, Values};
use s3cmtf::model::{EpochMetrics, Model};
use s3cmtf::options::{Algorithm, Initialization, ModelKind, Options};
use s3cmtf::problem::Problem;
use s3cmtf::solver::{Control, FitInput, FitSummary, Observer, StopReason, fit};

const DIMS: [u64; 3] = [40, 30, 5];

struct Entries {
    columns: Vec<Vec<u32>>,
    values: Vec<f64>,
}

impl Entries {
    /// Few and noisy entries, so that a model with many parameters overfits soon.
    fn new() -> Entries {
        let mut state = 3u64;
        let mut random_below = |n: u64| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        let count = 1500;
        let columns: Vec<Vec<u32>> = DIMS
            .iter()
            .map(|&d| (0..count).map(|_| random_below(d) as u32).collect())
            .collect();
        let values = (0..count)
            .map(|e| {
                let (i, j) = (f64::from(columns[0][e]), f64::from(columns[1][e]));
                (i * 0.7).sin() * (j * 1.1).cos() + random_below(1000) as f64 / 500.0
            })
            .collect();
        Entries { columns, values }
    }

    fn view(&self) -> CooView<'_> {
        let columns: Vec<&[u32]> = self.columns.iter().map(Vec::as_slice).collect();
        CooView::new("x", &DIMS, &columns, Values::F64(&self.values)).unwrap()
    }

    fn run(
        &self,
        o: &Options,
        input: FitInput<'_>,
        observer: &mut RecordingObserver,
    ) -> s3cmtf::Result<(Model, FitSummary)> {
        let problem = Problem::builder(self.view()).build(&()).unwrap();
        fit(&problem, o, &input, observer, &())
    }
}

/// Records epochs. Stops after `stop_after` of them.
#[derive(Default)]
struct RecordingObserver {
    epochs: Vec<u64>,
    stop_after: Option<usize>,
}

impl Observer for RecordingObserver {
    fn epoch(&mut self, e: &EpochMetrics) -> Control {
        self.epochs.push(e.epoch);
        if self.stop_after == Some(self.epochs.len()) {
            Control::Stop
        } else {
            Control::Continue
        }
    }
}

fn options(algorithm: Algorithm) -> Options {
    let mut o = Options::preset("paper").unwrap();
    o.algorithm = algorithm;
    (o.model, o.rank, o.start) = (ModelKind::Cp, vec![12], Initialization::Normal);
    (o.mean, o.biases, o.lambda_bias) = (true, true, vec![5.0]);
    (o.eta, o.lambda_reg, o.epochs, o.threads) = (Some(0.06), Some(0.01), 40, 1);
    if algorithm == Algorithm::Als {
        o.lambda_reg = Some(0.3);
    }
    (o.valid_fraction, o.patience) = (0.2, 2);
    o
}

const ALGORITHMS: [Algorithm; 3] = [Algorithm::Blocked, Algorithm::Als, Algorithm::Opt];

#[test]
fn the_model_of_the_best_epoch_is_returned() {
    let entries = Entries::new();
    for algorithm in ALGORITHMS {
        let o = options(algorithm);
        let mut observer = RecordingObserver::default();
        let (model, summary) = entries.run(&o, FitInput::default(), &mut observer).unwrap();
        let best = summary.best_epoch;
        assert_eq!(summary.reason, StopReason::Patience, "{algorithm:?}");
        assert_eq!(summary.epochs, best + o.patience);
        assert_eq!(summary.epochs, observer.epochs.len() as u64);
        assert_eq!(model.history().len() as u64, summary.epochs);
        let metrics = &model.history()[best as usize - 1];
        assert!(
            (summary.valid_rmse / metrics.valid_rmse - 1.0).abs() < 1e-6,
            "{} {}",
            summary.valid_rmse,
            metrics.valid_rmse
        );
        // The model was not fitted to the holdout.
        assert!(summary.valid_rmse > metrics.train_rmse, "{algorithm:?}");
        // It equals that of a fit that stops at the best epoch.
        let mut observer = RecordingObserver {
            stop_after: Some(best as usize),
            ..RecordingObserver::default()
        };
        let (expected, _) = entries.run(&o, FitInput::default(), &mut observer).unwrap();
        assert!(
            parameter_bits(&model) == parameter_bits(&expected),
            "{algorithm:?}"
        );
    }
}

#[test]
fn holdout_fit_is_independent_of_thread_count() {
    let entries = Entries::new();
    for algorithm in [Algorithm::Blocked, Algorithm::Als] {
        let mut o = options(algorithm);
        let run = |o: &Options| {
            let (model, summary) = entries
                .run(o, FitInput::default(), &mut RecordingObserver::default())
                .unwrap();
            (parameter_bits(&model), summary.valid_rmse.to_bits())
        };
        let one = run(&o);
        for threads in [2, 3, 7] {
            o.threads = threads;
            assert!(run(&o) == one, "{algorithm:?} {threads}");
        }
    }
}

#[test]
fn holdout_fit_resumes_from_any_epoch_bit_for_bit() {
    let entries = Entries::new();
    for algorithm in [Algorithm::Blocked, Algorithm::Als] {
        let o = options(algorithm);
        let mut observer = RecordingObserver::default();
        let (whole, whole_summary) = entries.run(&o, FitInput::default(), &mut observer).unwrap();
        let all = observer.epochs.len();
        let best = whole_summary.best_epoch as usize;
        for stop in 1..all {
            let dir = Scratch::new("valid-resume");
            let path = dir.join("run.s3m");
            let mut part = RecordingObserver {
                stop_after: Some(stop),
                ..RecordingObserver::default()
            };
            let input = FitInput {
                checkpoint: Some(path.clone()),
                ..FitInput::default()
            };
            entries.run(&o, input, &mut part).unwrap();
            let input = FitInput {
                resume: Some(path.clone()),
                ..FitInput::default()
            };
            let mut rest = RecordingObserver::default();
            let (resumed, resumed_summary) = entries.run(&o, input, &mut rest).unwrap();
            let context = format!("{algorithm:?} {stop} of {all}, best {best}");
            assert!(
                parameter_bits(&resumed) == parameter_bits(&whole),
                "{context}"
            );
            let metrics = |s: &FitSummary| (s.best_epoch, s.epochs, s.valid_rmse.to_bits());
            assert_eq!(
                metrics(&resumed_summary),
                metrics(&whole_summary),
                "{context}"
            );
            assert_eq!(rest.epochs.len(), all - stop, "{context}");
        }
    }
}

#[test]
fn invalid_holdout_options_are_rejected() {
    let entries = Entries::new();
    let error = |o: &Options, input: FitInput<'_>| {
        let done = entries.run(o, input, &mut RecordingObserver::default());
        done.err().expect("must be rejected").to_string()
    };
    let mut o = options(Algorithm::Blocked);
    let valid = FitInput {
        valid: Some(entries.view()),
        ..FitInput::default()
    };
    assert!(error(&o, valid).contains("leave out one of both"));
    o.valid_fraction = 1.0;
    assert!(error(&o, FitInput::default()).contains("must be below 1"));
    o.valid_fraction = 0.0;
    assert!(error(&o, FitInput::default()).contains("patience needs validation entries"));
    o = options(Algorithm::Gibbs);
    assert!(error(&o, FitInput::default()).contains("has no best epoch"));
}
