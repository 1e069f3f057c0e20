//! The lifecycle of a fit: reproducibility, stopping, divergence, resuming, warm starts, and model files.

use crate::common::Scratch;
use crate::common::planted::{
    fit_planted, paper_options, parameter_bits, predictions, small_data, standard_deviation,
};
use s3cmtf::format::{CooView, OpenMode, Values};
use s3cmtf::model::{self, EpochMetrics};
use s3cmtf::options::Options;
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::solver::{Control, Event, FitInput, Observer, StopReason, fit};

#[test]
fn single_threaded_fit_is_reproducible_and_depends_on_the_seed() {
    let data = small_data();
    let mut o = paper_options(&[4]);
    o.epochs = 3;
    let first = parameter_bits(&fit_planted(&data, &o, true).0);
    assert_eq!(parameter_bits(&fit_planted(&data, &o, true).0), first);
    o.pin = false;
    assert_eq!(parameter_bits(&fit_planted(&data, &o, true).0), first);
    o.seed = 1;
    assert_ne!(parameter_bits(&fit_planted(&data, &o, true).0), first);
}

#[test]
fn resumed_fit_equals_uninterrupted_fit() {
    let data = small_data();
    let dir = Scratch::new("resume");
    let problem = Problem::builder(data.train.view())
        .matrix(0, data.matrices[0].view(), 0.5, MatrixKind::Observed)
        .build(&())
        .unwrap();
    let mut o = paper_options(&[4]);
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
        let mut second = o.clone();
        second.checkpoint_every = 3;
        let (model, resumed) = fit(&problem, &second, &rest, &mut (), &()).unwrap();
        assert_eq!(
            parameter_bits(&model),
            parameter_bits(&expected),
            "stopped after {stop}"
        );
        assert_eq!(resumed.epochs, summary.epochs);
        assert_eq!(model.history().len(), 9);
    }
    // Other data, other options, or missing validation entries are rejected.
    let path = dir.join("c.s3m");
    let assert_rejected = |problem: &Problem<'_>, options: &Options, valid: bool, word: &str| {
        let valid = valid.then(|| data.test.view());
        let input = FitInput {
            valid,
            resume: Some(path.clone()),
            ..FitInput::default()
        };
        let error = fit(problem, options, &input, &mut (), &())
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains(word), "{error:?} lacks {word:?}");
    };
    let alone = Problem::builder(data.train.view()).build(&()).unwrap();
    assert_rejected(&alone, &o, true, "other data");
    let weight = Problem::builder(data.train.view())
        .matrix(0, data.matrices[0].view(), 0.6, MatrixKind::Observed)
        .build(&())
        .unwrap();
    assert_rejected(&weight, &o, true, "other data");
    let view = data.train.view();
    let doubled: Vec<f64> = (0..view.len())
        .map(|i| 2.0 * view.values().get(i))
        .collect();
    let columns: Vec<&[u32]> = (0..3).map(|n| view.column(n)).collect();
    let values = CooView::new("doubled", view.dims(), &columns, Values::F64(&doubled)).unwrap();
    let other = Problem::builder(values)
        .matrix(0, data.matrices[0].view(), 0.5, MatrixKind::Observed)
        .build(&())
        .unwrap();
    assert_rejected(&other, &o, true, "other data");
    let mut faster = o.clone();
    faster.eta = Some(0.5);
    assert_rejected(
        &problem,
        &faster,
        true,
        "eta is 0.5 here and 0.02 in the checkpoint",
    );
    let mut impatient = o.clone();
    impatient.patience = 0;
    assert_rejected(&problem, &impatient, false, "patience");
}

#[test]
fn resumed_fit_keeps_the_learning_rate_of_its_rollbacks() {
    let data = small_data();
    let dir = Scratch::new("resume-rollback");
    let problem = Problem::builder(data.train.view()).build(&()).unwrap();
    let mut o = paper_options(&[4]);
    o.eta = Some(1.0);
    o.eval_every = 1;
    o.epochs = 8;
    let mut observer = RecordingObserver::default();
    let (expected, _) = fit(&problem, &o, &FitInput::default(), &mut observer, &()).unwrap();
    assert!(
        observer
            .events
            .iter()
            .any(|e| matches!(e, Event::RolledBack { .. }))
    );
    let path = dir.join("c.s3m");
    let mut first = o.clone();
    first.epochs = 4;
    let part = FitInput {
        checkpoint: Some(path.clone()),
        ..FitInput::default()
    };
    fit(&problem, &first, &part, &mut (), &()).unwrap();
    let rest = FitInput {
        resume: Some(path),
        ..FitInput::default()
    };
    let (model, _) = fit(&problem, &o, &rest, &mut (), &()).unwrap();
    assert_eq!(parameter_bits(&model), parameter_bits(&expected));
}

#[test]
fn model_file_round_trips_and_damage_is_detected() {
    let data = small_data();
    let dir = Scratch::new("file");
    let mut o = paper_options(&[4, 3, 2]);
    o.epochs = 2;
    let (fitted, _) = fit_planted(&data, &o, true);
    let path = dir.join("m.s3m");
    model::save(&fitted, &path).unwrap();
    for mode in [OpenMode::Mapped, OpenMode::Private] {
        let back = model::load(&path, mode).unwrap();
        assert_eq!(parameter_bits(&back), parameter_bits(&fitted));
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
    let assert_rejected = |bytes: &[u8], damage: &str| {
        std::fs::write(dir.join("bad"), bytes).unwrap();
        assert!(
            model::load(dir.join("bad"), OpenMode::Mapped).is_err(),
            "{damage}"
        );
    };
    for at in (0..bytes.len()).step_by(97) {
        let mut bad = bytes.clone();
        bad[at] ^= 0x20;
        std::fs::write(dir.join("bad"), &bad).unwrap();
        // Only changes of padding between sections may go undetected.
        if let Ok(model) = model::load(dir.join("bad"), OpenMode::Mapped) {
            assert_eq!(parameter_bits(&model), parameter_bits(&fitted), "byte {at}");
        }
    }
    for len in [0, 7, 63, 64, 500, bytes.len() / 2, bytes.len() - 1] {
        assert_rejected(&bytes[..len], "cut short");
    }
    assert_rejected(&[&bytes[..], b"x"].concat(), "longer");
    assert_rejected(b"1 2 3\n", "text");
}

#[test]
fn warm_start_continues_from_a_model_and_extends_its_modes() {
    let data = small_data();
    let mut o = paper_options(&[4]);
    o.epochs = 30;
    let (first, converged) = fit_planted(&data, &o, false);
    assert!(first.is_orthogonal());
    // The same entries in a larger tensor, with five new rows.
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
    o.eta = Some(0.001);
    let start = |init| {
        let input = FitInput {
            test: Some(data.test.view()),
            init,
            ..FitInput::default()
        };
        fit(&problem, &o, &input, &mut (), &()).unwrap().1.test_rmse
    };
    let (warm, cold_start) = (start(Some(&first)), start(None));
    assert!(
        warm < 1.1 * converged.test_rmse && warm < 0.8 * cold_start,
        "warm {warm}, converged {}, cold start {cold_start}",
        converged.test_rmse
    );
    // A warm start from a non-negative model, whose columns have norm 1, and from a signed one into a non-negative fit.
    let mut nonneg = paper_options(&[4]);
    nonneg.nonneg = true;
    nonneg.start = s3cmtf::options::Initialization::Paper;
    let (positive, before) = fit_planted(&data, &nonneg, false);
    let again = |init: &model::Model| {
        let problem = Problem::builder(data.train.view()).build(&()).unwrap();
        let mut o = nonneg.clone();
        o.epochs = 1;
        o.eta = Some(0.001);
        let input = FitInput {
            test: Some(data.test.view()),
            init: Some(init),
            ..FitInput::default()
        };
        fit(&problem, &o, &input, &mut (), &()).unwrap()
    };
    let (_, after) = again(&positive);
    assert!(
        after.test_rmse < 1.05 * before.test_rmse,
        "{} {}",
        after.test_rmse,
        before.test_rmse
    );
    let (from_signed, _) = again(&first);
    assert!(
        from_signed
            .modes()
            .iter()
            .all(|m| m.factor.as_slice().iter().all(|&x| x >= 0.0))
    );
    let mut other = paper_options(&[3]);
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

/// Records epochs and events.
#[derive(Default)]
struct RecordingObserver {
    epochs: Vec<EpochMetrics>,
    events: Vec<Event>,
    stop_after: Option<u64>,
}

impl Observer for RecordingObserver {
    fn epoch(&mut self, metrics: &EpochMetrics) -> Control {
        self.epochs.push(*metrics);
        if Some(metrics.epoch) == self.stop_after {
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
fn fit_stops_by_every_stopping_rule() {
    let data = small_data();
    let problem = Problem::builder(data.train.view()).build(&()).unwrap();
    let fit_with = |o: &Options, observer: &mut RecordingObserver| {
        let input = FitInput {
            valid: Some(data.test.view()),
            ..FitInput::default()
        };
        fit(&problem, o, &input, observer, &()).unwrap()
    };
    let mut o = paper_options(&[4]);
    o.epochs = 6;
    o.eval_every = 4;
    let mut observer = RecordingObserver::default();
    let (_, s) = fit_with(&o, &mut observer);
    assert_eq!(
        (s.reason, s.epochs, observer.epochs.len()),
        (StopReason::Epochs, 6, 6)
    );
    // Errors are measured every eval_every epochs and at the end.
    let measured: Vec<u64> = observer
        .epochs
        .iter()
        .filter(|e| !e.loss.is_nan())
        .map(|e| e.epoch)
        .collect();
    assert_eq!(measured, [4, 6]);
    assert_eq!(
        observer.events.last(),
        Some(&Event::Stopped(StopReason::Epochs))
    );

    let mut observer = RecordingObserver {
        stop_after: Some(2),
        ..RecordingObserver::default()
    };
    assert_eq!(fit_with(&o, &mut observer).1.reason, StopReason::Cancelled);
    assert_eq!(observer.epochs.len(), 2);

    o.eval_every = 1;
    o.epochs = 100_000;
    o.tolerance = 0.01;
    assert_eq!(
        fit_with(&o, &mut RecordingObserver::default()).1.reason,
        StopReason::Tolerance
    );

    o.tolerance = 0.0;
    o.time_limit = 1e-9;
    let (_, s) = fit_with(&o, &mut RecordingObserver::default());
    assert_eq!((s.reason, s.epochs), (StopReason::TimeLimit, 0));

    // An overfitting model: the validation error rises, and the best model is returned.
    o.time_limit = 0.0;
    o.rank = vec![12];
    o.eta = Some(0.05);
    o.patience = 3;
    let mut observer = RecordingObserver::default();
    let (_, s) = fit_with(&o, &mut observer);
    assert_eq!(s.reason, StopReason::Patience);
    let best = observer
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
fn diverging_fit_rolls_back_and_lowers_the_learning_rate() {
    let data = small_data();
    let problem = Problem::builder(data.train.view()).build(&()).unwrap();
    let mut o = paper_options(&[4]);
    o.epochs = 20;
    o.eval_every = 3;
    o.eta = Some(2.0);
    let mut observer = RecordingObserver::default();
    let (model, s) = fit(&problem, &o, &FitInput::default(), &mut observer, &()).unwrap();
    let back = observer
        .events
        .iter()
        .filter(|e| matches!(e, Event::RolledBack { .. }))
        .count();
    assert!(back > 0, "{:?}", observer.events);
    assert!(
        s.train_rmse.is_finite() && s.train_rmse < 2.0 * standard_deviation(&data.train),
        "{}",
        s.train_rmse
    );
    let epochs: Vec<u64> = model.history().iter().map(|e| e.epoch).collect();
    assert_eq!(
        epochs,
        (1..=20).collect::<Vec<u64>>(),
        "the history has each epoch once"
    );
    o.eta = Some(1e6);
    let error = fit(&problem, &o, &FitInput::default(), &mut (), &())
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("diverges") && error.contains("smaller eta"),
        "{error}"
    );
}
