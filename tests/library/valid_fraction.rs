//! `valid_fraction`: some entries are held out to find the best epoch, and then all are fitted to.

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
    /// So few and so noisy that a fit with many numbers soon gets worse.
    fn new() -> Entries {
        let mut state = 3u64;
        let mut draw = |n: u64| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        let count = 1500;
        let columns: Vec<Vec<u32>> = DIMS
            .iter()
            .map(|&d| (0..count).map(|_| draw(d) as u32).collect())
            .collect();
        let values = (0..count)
            .map(|e| {
                let (i, j) = (f64::from(columns[0][e]), f64::from(columns[1][e]));
                (i * 0.7).sin() * (j * 1.1).cos() + draw(1000) as f64 / 500.0
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
        watch: &mut Watch,
    ) -> s3cmtf::Result<(Model, FitSummary)> {
        let problem = Problem::builder(self.view()).build(&()).unwrap();
        fit(&problem, o, &input, watch, &())
    }
}

/// Notes what happens, and ends a fit after so many epochs in all.
#[derive(Default)]
struct Watch {
    epochs: Vec<u64>,
    refit: Option<u64>,
    stop_after: Option<usize>,
}

impl Observer for Watch {
    fn epoch(&mut self, e: &EpochMetrics) -> Control {
        self.epochs.push(e.epoch);
        match self.stop_after == Some(self.epochs.len()) {
            true => Control::Stop,
            false => Control::Continue,
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

const BOTH: [Algorithm; 3] = [Algorithm::Blocked, Algorithm::Als, Algorithm::Opt];

#[test]
fn refit_uses_all_entries_for_the_best_number_of_epochs() {
    let entries = Entries::new();
    for algorithm in BOTH {
        let o = options(algorithm);
        let mut watch = Watch::default();
        let (model, summary) = entries.run(&o, FitInput::default(), &mut watch).unwrap();
        let best = watch.refit.expect("all entries were fitted to in the end");
        assert_eq!(summary.reason, StopReason::Patience, "{algorithm:?}");
        assert_eq!(
            (summary.best_epoch, model.history().len() as u64),
            (best, best)
        );
        assert_eq!(watch.epochs.len() as u64, 2 * best + o.patience);
        assert_eq!(summary.epochs, watch.epochs.len() as u64);
        assert!(summary.valid_rmse.is_finite() && best < o.epochs);
        // It is the model of a fit that has heard nothing of this and ends there.
        let mut plain = o.clone();
        (plain.valid_fraction, plain.patience) = (0.0, 0);
        let mut until = Watch {
            stop_after: Some(best as usize),
            ..Watch::default()
        };
        let (expected, _) = entries
            .run(&plain, FitInput::default(), &mut until)
            .unwrap();
        assert!(
            parameter_bits(&model) == parameter_bits(&expected),
            "{algorithm:?}"
        );
        // Without it the model of the best epoch comes back, and has not seen what is held out.
        let mut kept = o.clone();
        kept.refit = false;
        let mut watch = Watch::default();
        let (other, of_kept) = entries.run(&kept, FitInput::default(), &mut watch).unwrap();
        assert_eq!((watch.refit, of_kept.best_epoch), (None, best));
        assert_eq!(of_kept.valid_rmse.to_bits(), summary.valid_rmse.to_bits());
        assert!(parameter_bits(&other) != parameter_bits(&model));
        let seen = other.history()[best as usize - 1].train_rmse;
        assert!(of_kept.valid_rmse > seen, "{} {seen}", of_kept.valid_rmse);
    }
}

#[test]
fn holdout_fit_is_independent_of_thread_count() {
    let entries = Entries::new();
    for algorithm in [Algorithm::Blocked, Algorithm::Als] {
        let mut o = options(algorithm);
        let run = |o: &Options| {
            let (model, summary) = entries
                .run(o, FitInput::default(), &mut Watch::default())
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
        let mut watch = Watch::default();
        let (whole, of_whole) = entries.run(&o, FitInput::default(), &mut watch).unwrap();
        let all = watch.epochs.len();
        let best = watch.refit.unwrap() as usize;
        let turn = all - best;
        // While some are held out, at the last epoch of that, and while all are fitted to.
        for stop in [1, 2, turn - 1, turn, turn + 1, all - 1, all] {
            let dir = Scratch::new("valid-resume");
            let path = dir.join("run.s3m");
            let mut part = Watch {
                stop_after: Some(stop),
                ..Watch::default()
            };
            let input = FitInput {
                checkpoint: Some(path.clone()),
                ..FitInput::default()
            };
            let (ended, of_ended) = entries.run(&o, input, &mut part).unwrap();
            if stop > turn && stop < all {
                // What was best before comes back, not what is not done.
                assert_eq!(of_ended.best_epoch as usize, best);
                let mut kept = o.clone();
                kept.refit = false;
                let kept = entries.run(&kept, FitInput::default(), &mut Watch::default());
                assert!(
                    parameter_bits(&ended) == parameter_bits(&kept.unwrap().0),
                    "{stop}"
                );
            }
            let input = FitInput {
                resume: Some(path.clone()),
                ..FitInput::default()
            };
            let mut rest = Watch::default();
            let (resumed, of_resumed) = entries.run(&o, input, &mut rest).unwrap();
            let context = format!("{algorithm:?} {stop} of {all}, best {best}");
            assert!(
                parameter_bits(&resumed) == parameter_bits(&whole),
                "{context}"
            );
            let figures = |s: &FitSummary| (s.best_epoch, s.epochs, s.valid_rmse.to_bits());
            assert_eq!(figures(&of_resumed), figures(&of_whole), "{context}");
            assert_eq!(rest.epochs.len(), all - stop, "{context}");
        }
    }
}

#[test]
fn invalid_holdout_options_are_rejected() {
    let entries = Entries::new();
    let error = |o: &Options, input: FitInput<'_>| {
        let done = entries.run(o, input, &mut Watch::default());
        done.err().expect("refused").to_string()
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
