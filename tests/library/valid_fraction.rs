//! `valid_fraction`: a holdout determines the best epoch, then the model is refitted to all entries.

use crate::common::Scratch;
use crate::common::planted::parameter_bits;
use s3cmtf::format::{CooView, Values};
use s3cmtf::model::{EpochMetrics, Model};
use s3cmtf::options::{Algorithm, Initialization, ModelKind, Options};
use s3cmtf::problem::Problem;
use s3cmtf::solver::{Control, Event, FitInput, FitSummary, Observer, StopReason, fit};

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

/// Records epochs and the refit. Stops after `stop_after` epochs, counted over both fits.
#[derive(Default)]
struct RecordingObserver {
    epochs: Vec<u64>,
    refit: Option<u64>,
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

    fn event(&mut self, event: &Event) {
        if let Event::Refit { epochs } = event {
            assert_eq!(self.refit.replace(*epochs), None);
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
fn refit_uses_all_entries_for_the_best_number_of_epochs() {
    let entries = Entries::new();
    for algorithm in ALGORITHMS {
        let o = options(algorithm);
        let mut observer = RecordingObserver::default();
        let (model, summary) = entries.run(&o, FitInput::default(), &mut observer).unwrap();
        let best = observer.refit.expect("the fit must end with a refit");
        assert_eq!(summary.reason, StopReason::Patience, "{algorithm:?}");
        assert_eq!(
            (summary.best_epoch, model.history().len() as u64),
            (best, best)
        );
        assert_eq!(observer.epochs.len() as u64, 2 * best + o.patience);
        assert_eq!(summary.epochs, observer.epochs.len() as u64);
        assert!(summary.valid_rmse.is_finite() && best < o.epochs);
        // The model equals that of a fit to all entries that stops at the best epoch.
        let mut plain = o.clone();
        (plain.valid_fraction, plain.patience) = (0.0, 0);
        let mut observer = RecordingObserver {
            stop_after: Some(best as usize),
            ..RecordingObserver::default()
        };
        let (expected, _) = entries
            .run(&plain, FitInput::default(), &mut observer)
            .unwrap();
        assert!(
            parameter_bits(&model) == parameter_bits(&expected),
            "{algorithm:?}"
        );
        // Without refit the model of the best epoch is returned, which was not fitted to the holdout.
        let mut kept = o.clone();
        kept.refit = false;
        let mut observer = RecordingObserver::default();
        let (other, kept_summary) = entries
            .run(&kept, FitInput::default(), &mut observer)
            .unwrap();
        assert_eq!((observer.refit, kept_summary.best_epoch), (None, best));
        assert_eq!(
            kept_summary.valid_rmse.to_bits(),
            summary.valid_rmse.to_bits()
        );
        assert!(parameter_bits(&other) != parameter_bits(&model));
        let train_rmse = other.history()[best as usize - 1].train_rmse;
        assert!(
            kept_summary.valid_rmse > train_rmse,
            "{} {train_rmse}",
            kept_summary.valid_rmse
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
        let best = observer.refit.unwrap() as usize;
        let refit_start = all - best;
        // Stops during the fit with holdout, at its last epoch, and during the refit.
        for stop in [
            1,
            2,
            refit_start - 1,
            refit_start,
            refit_start + 1,
            all - 1,
            all,
        ] {
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
            let (stopped, stopped_summary) = entries.run(&o, input, &mut part).unwrap();
            if stop > refit_start && stop < all {
                // A stopped refit returns the best model of the fit with holdout.
                assert_eq!(stopped_summary.best_epoch as usize, best);
                let mut kept = o.clone();
                kept.refit = false;
                let kept = entries.run(
                    &kept,
                    FitInput::default(),
                    &mut RecordingObserver::default(),
                );
                assert!(
                    parameter_bits(&stopped) == parameter_bits(&kept.unwrap().0),
                    "{stop}"
                );
            }
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
