//! Search for options (`tune`).

use std::fs;

use crate::common::planted::{PlantedData, parameter_bits, small_data};
use crate::common::{Scratch, open_real_file, real_data_folder};
use s3cmtf::format::CooFile;
use s3cmtf::options::{Algorithm, ModelKind, Options};
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::solver::tune::{Space, TuneObserver, TuneOptions, TuneProgress, TuneResult, tune};
use s3cmtf::solver::{Control, FitInput, StopReason, fit};
use s3cmtf::{Monitor, Result};

/// Builds the problem with all matrices on mode 0.
fn problem(data: &PlantedData) -> Problem<'_> {
    let mut builder = Problem::builder(data.train.view());
    for matrix in &data.matrices {
        builder = builder.matrix(0, matrix.view(), None::<f64>, MatrixKind::Observed);
    }
    builder.build(&()).unwrap()
}

/// Returns options whose hyperparameters are fixed, so that no fit searches for them.
fn base_options(algorithm: Algorithm) -> Options {
    let mut o = Options::default();
    o.algorithm = algorithm;
    o.model = ModelKind::Cp;
    o.rank = vec![4];
    o.lambda_reg = Some(0.5);
    o.epochs = 10;
    (o.burn_in, o.samples) = (2, 8);
    o.threads = 2;
    o
}

fn nine_trials() -> TuneOptions<'static> {
    TuneOptions {
        trials: 9,
        ..TuneOptions::default()
    }
}

/// Returns the results of all trials, without times.
fn table(result: &TuneResult) -> Vec<(usize, usize, u64, u64, String)> {
    let row = |t: &s3cmtf::solver::tune::Trial| {
        (
            t.number,
            t.rungs,
            t.epochs,
            t.valid_rmse.to_bits(),
            t.to_text(),
        )
    };
    result.trials.iter().map(row).collect()
}

fn search(data: &PlantedData, base: &Options, settings: &TuneOptions<'_>) -> Result<TuneResult> {
    tune(&problem(data), base, settings, &mut (), &())
}

#[test]
fn search_is_independent_of_thread_count() {
    let data = small_data();
    let mut tables = Vec::new();
    for threads in [1, 2, 3, 7] {
        let mut o = base_options(Algorithm::Blocked);
        o.threads = threads;
        let result = search(&data, &o, &nine_trials()).unwrap();
        assert_eq!(result.reason, StopReason::Epochs);
        tables.push(table(&result));
    }
    assert!(tables.iter().all(|t| *t == tables[0]));
    // Trial 0 has the base options and reaches the last rung.
    let plain = tables[0].iter().find(|t| t.0 == 0).unwrap();
    assert_eq!((plain.1, plain.2), (3, 10));
    assert!(plain.4.contains("rank=4\n") && plain.4.contains("lambda_reg=0.5\n"));
    let reached = |rung: usize| tables[0].iter().filter(|t| t.1 >= rung).count();
    assert_eq!(reached(1), 9);
    // After each rung the best third, rounded up, and trial 0 continue.
    assert!((3..=4).contains(&reached(2)) && (1..=3).contains(&reached(3)));
    assert!(
        tables[0][0].3 <= plain.3,
        "the bits of positive floats are ordered like their values"
    );
    // The result is independent of the threads per fit.
    let settings = TuneOptions {
        fit_threads: 2,
        ..nine_trials()
    };
    let again = search(&data, &base_options(Algorithm::Blocked), &settings).unwrap();
    assert_eq!(table(&again), tables[0]);
    let mut other = base_options(Algorithm::Blocked);
    other.seed = 1;
    assert_ne!(
        table(&search(&data, &other, &nine_trials()).unwrap()),
        tables[0]
    );
}

/// Stops after this number of trials.
struct StopAfterTrials(usize);

impl TuneObserver for StopAfterTrials {
    fn trial(&mut self, _: &TuneProgress<'_>) -> Control {
        self.0 -= 1;
        match self.0 {
            0 => Control::Stop,
            _ => Control::Continue,
        }
    }
}

#[test]
fn resumed_search_equals_uninterrupted_search() {
    let data = small_data();
    let dir = Scratch::new("tune-resume");
    let whole = problem(&data);
    for algorithm in [
        Algorithm::Blocked,
        Algorithm::Als,
        Algorithm::Gibbs,
        Algorithm::Opt,
    ] {
        let o = base_options(algorithm);
        let expected = table(&tune(&whole, &o, &nine_trials(), &mut (), &()).unwrap());
        // Stopped in the first rung, between rungs, and in the last. Trials that continue are fitted again.
        for stop in [1, 9, 11, 12] {
            let state = dir.join("state");
            let mut settings = nine_trials();
            settings.checkpoint = Some(state.clone());
            let stopped = tune(&whole, &o, &settings, &mut StopAfterTrials(stop), &()).unwrap();
            assert_eq!(stopped.reason, StopReason::Cancelled);
            assert!(stopped.best().rungs >= 1 && table(&stopped) != expected);
            let mut settings = nine_trials();
            settings.resume = Some(state.clone());
            let mut threads = o.clone();
            threads.threads = 1;
            let after = tune(&whole, &threads, &settings, &mut (), &()).unwrap();
            assert_eq!(table(&after), expected, "{algorithm:?} after {stop}");
            // The checkpoint of a finished search has all results.
            let finished = tune(&whole, &o, &settings, &mut StopAfterTrials(1), &()).unwrap();
            assert_eq!(
                (table(&finished), finished.reason),
                (expected.clone(), StopReason::Epochs)
            );
        }
    }
}

#[test]
fn checkpoint_of_another_search_is_rejected() {
    let data = small_data();
    let dir = Scratch::new("tune-state");
    let state = dir.join("state");
    let mut settings = nine_trials();
    settings.trials = 2;
    settings.checkpoint = Some(state.clone());
    let o = base_options(Algorithm::Blocked);
    search(&data, &o, &settings).unwrap();
    let assert_rejected =
        |data: &Problem<'_>, o: &Options, settings: &TuneOptions<'_>, words: &str| {
            let error = tune(data, o, settings, &mut (), &())
                .unwrap_err()
                .to_string();
            assert!(error.contains(words) && error.contains("state"), "{error}");
        };
    let resume = || TuneOptions {
        trials: 2,
        resume: Some(state.clone()),
        ..TuneOptions::default()
    };
    search(&data, &o, &resume()).unwrap();
    let whole = problem(&data);
    let tensor = Problem::builder(data.train.view()).build(&()).unwrap();
    assert_rejected(&tensor, &o, &resume(), "other data");
    let test = TuneOptions {
        valid: Some(data.test.view()),
        ..resume()
    };
    assert_rejected(&whole, &o, &test, "other data");
    let more = TuneOptions {
        trials: 3,
        ..resume()
    };
    assert_rejected(&whole, &o, &more, "other settings");
    let mut epochs = o.clone();
    epochs.epochs = 11;
    assert_rejected(&whole, &epochs, &resume(), "other settings");
    let text = fs::read_to_string(&state).unwrap();
    fs::write(&state, &text[..text.len() - 3]).unwrap();
    assert_rejected(&whole, &o, &resume(), "damaged");
    fs::write(&state, "something else").unwrap();
    assert_rejected(&whole, &o, &resume(), "not the state file of a search");
    fs::remove_file(&state).unwrap();
    assert_rejected(&whole, &o, &resume(), "no such file");
}

#[test]
fn invalid_ranges_and_fractions_are_rejected() {
    let mut space = Space::default();
    for (name, range, words) in [
        ("rnak", "1,2", "there is no option"),
        ("rank", "", "a value is missing"),
        ("rank", "4,,8", "a value is missing"),
        ("rank", "0,4", "must be"),
        ("rank", "auto", "trials need values"),
        ("rank", "8..4", "the interval is empty"),
        ("eta", "0.1..", "must be"),
        ("eta", "-1..1", "must be"),
        ("eta", "0.1..inf", "must be"),
        ("model", "cp..tucker", "must be"),
        ("threads", "1,2", "same for all trials"),
        ("seed", "1,2", "same for all trials"),
    ] {
        let error = space.set(name, range).unwrap_err().to_string();
        assert!(error.contains(words), "{name} = {range}: {error}");
    }
    assert_eq!(space, Space::default());
    let data = small_data();
    for fraction in [0.0, 1.0, -0.1, f64::NAN] {
        let settings = TuneOptions {
            fraction,
            ..nine_trials()
        };
        let error = search(&data, &base_options(Algorithm::Blocked), &settings).unwrap_err();
        assert!(error.to_string().contains("above 0 and below 1"), "{error}");
    }
    for (trials, rungs) in [(0, 3), (5, 0), (5, 99)] {
        let settings = TuneOptions {
            trials,
            rungs,
            ..TuneOptions::default()
        };
        assert!(search(&data, &base_options(Algorithm::Blocked), &settings).is_err());
    }
}

#[test]
fn trials_stay_in_range_and_small_spaces_are_exhausted() {
    let data = small_data();
    let mut settings = nine_trials();
    for (name, range) in [
        ("rank", "2,3"),
        ("eta", "0.02..0.03"),
        ("lambda_reg", "0.25"),
        ("lambda_m", "0.5,2"),
        ("epochs", "4..6"),
    ] {
        settings.space.set(name, range).unwrap();
    }
    let result = search(&data, &base_options(Algorithm::Blocked), &settings).unwrap();
    for t in &result.trials {
        let o = &t.options;
        assert!(o.rank == [2] || o.rank == [3], "{:?}", o.rank);
        assert!((0.02..=0.03).contains(&o.eta.unwrap()) && o.lambda_reg == Some(0.25));
        assert!((4..=6).contains(&o.epochs) && [[0.5], [2.0]].iter().any(|w| o.lambda_m == w));
    }
    // Trial 0 is as close to the base options as the ranges allow.
    let first = &result
        .trials
        .iter()
        .find(|t| t.number == 0)
        .unwrap()
        .options;
    assert_eq!((&first.rank[..], first.epochs), (&[3][..], 6));
    let mut settings = nine_trials();
    for name in ["eta", "lambda_reg", "lambda_bias", "lambda_m"] {
        settings.space.set(name, "0.02").unwrap();
    }
    settings.space.set("rank", "2,3,4").unwrap();
    let result = search(&data, &base_options(Algorithm::Blocked), &settings).unwrap();
    assert_eq!(result.trials.len(), 3);
}

#[test]
fn failed_trial_does_not_affect_the_others() {
    let data = small_data();
    let mut settings = nine_trials();
    settings.space.set("eta", "0.02,1e6").unwrap();
    let mut o = base_options(Algorithm::Blocked);
    o.eta = Some(0.02);
    let result = search(&data, &o, &settings).unwrap();
    let failed: Vec<_> = result.trials.iter().filter(|t| t.error.is_some()).collect();
    assert!(!failed.is_empty() && failed.len() < 9);
    for t in &failed {
        assert_eq!(t.options.eta, Some(1e6));
        assert!(t.error.as_ref().unwrap().contains("diverges"));
    }
    let good = 9 - failed.len();
    assert!(
        result.trials[..good]
            .iter()
            .all(|t| t.error.is_none() && t.valid_rmse.is_finite())
    );
    settings.space.set("eta", "1e6").unwrap();
    let error = search(&data, &o, &settings).unwrap_err().to_string();
    assert!(
        error.contains("every trial failed") && error.contains("diverges"),
        "{error}"
    );
}

#[test]
fn cancelled_search_returns_completed_trials_or_the_default_options() {
    struct AlreadyCancelled;
    impl Monitor for AlreadyCancelled {
        fn cancelled(&self) -> bool {
            true
        }
    }
    let data = small_data();
    let whole = problem(&data);
    let o = base_options(Algorithm::Blocked);
    let mut short = o.clone();
    short.time_limit = 1e-9;
    for (options, monitor, reason) in [
        (&o, &AlreadyCancelled as &dyn Monitor, StopReason::Cancelled),
        (&short, &(), StopReason::TimeLimit),
    ] {
        let stopped = tune(&whole, options, &nine_trials(), &mut (), monitor).unwrap();
        let best = stopped.best();
        assert_eq!((stopped.reason, best.number, best.rungs), (reason, 0, 0));
        assert_eq!(best.options.rank, o.rank);
    }
    let stopped = tune(&whole, &o, &nine_trials(), &mut StopAfterTrials(3), &()).unwrap();
    assert!(stopped.trials.iter().filter(|t| t.rungs > 0).count() >= 3);
}

#[test]
fn lambda_m_is_the_weight_of_matrices_without_one() {
    let data = small_data();
    let fitted = |own: [Option<f64>; 2], o: &Options| {
        let mut builder = Problem::builder(data.train.view());
        for (matrix, weight) in data.matrices.iter().zip(own) {
            builder = builder.matrix(0, matrix.view(), weight, MatrixKind::Observed);
        }
        let problem = builder.build(&()).unwrap();
        fit(&problem, o, &FitInput::default(), &mut (), &())
            .map(|(model, _)| parameter_bits(&model))
    };
    for algorithm in [Algorithm::Blocked, Algorithm::Als, Algorithm::Gibbs] {
        let mut o = base_options(algorithm);
        o.epochs = 2;
        let expected = fitted([Some(3.0), Some(0.25)], &o).unwrap();
        o.lambda_m = vec![3.0];
        assert_eq!(fitted([None, Some(0.25)], &o).unwrap(), expected);
        assert_ne!(fitted([None, None], &o).unwrap(), expected);
    }
}

#[test]
fn fits_that_overfit_are_stopped_earlier() {
    let data = small_data();
    let settings = TuneOptions {
        trials: 1,
        ..TuneOptions::default()
    };
    // Without penalties, more columns than planted fit the noise.
    let mut base = base_options(Algorithm::Als);
    (base.rank, base.lambda_reg) = (vec![16], Some(0.0));
    base.epochs = 50;
    let result = search(&data, &base, &settings).unwrap();
    let best = result.best();
    assert_eq!(best.rungs, 3);
    assert!(best.epochs < base.epochs, "{}", best.epochs);
    assert_eq!(best.options.epochs, best.epochs);
    // A learning rate that falls to 0 in the last epoch makes the first epochs of a fit no shorter fit.
    let base = base_options(Algorithm::Blocked);
    let result = search(&data, &base, &settings).unwrap();
    assert_eq!(result.best().epochs, base.epochs);
}

#[test]
fn search_improves_on_poor_options_on_test_entries() {
    let data = small_data();
    let whole = problem(&data);
    // The planted rank is 4. The base has rank 1, a learning rate far too small and a strong penalty.
    let mut poor = base_options(Algorithm::Blocked);
    (poor.rank, poor.eta, poor.lambda_reg) = (vec![1], Some(0.002), Some(4.0));
    poor.epochs = 20;
    let mut settings = TuneOptions {
        trials: 30,
        ..TuneOptions::default()
    };
    settings.space.set("rank", "1,2,4,8").unwrap();
    settings.space.set("eta", "0.002..0.2").unwrap();
    settings.space.set("lambda_reg", "0.01..4").unwrap();
    let result = tune(&whole, &poor, &settings, &mut (), &()).unwrap();
    let input = FitInput {
        test: Some(data.test.view()),
        ..FitInput::default()
    };
    let test = |o: &Options| fit(&whole, o, &input, &mut (), &()).unwrap().1.test_rmse;
    let (before, after) = (test(&poor), test(&result.best().options));
    assert!(result.best().options.rank[0] >= 2);
    assert!(
        after < 0.8 * before,
        "{after} against {before}; {} at best",
        data.floor_rmse
    );
}

#[test]
#[cfg_attr(debug_assertions, ignore = "slow without optimization")]
fn search_on_real_ratings_is_no_worse_than_the_default_fit() {
    let Some(folder) = real_data_folder("ml100k") else {
        return;
    };
    let open = |name: &str| -> CooFile { open_real_file(&folder, name) };
    let (train, test) = (open("tensor.train.tns"), open("tensor.test.tns"));
    let (genres, users) = (open("movie_genre.tns"), open("user_attr.tns"));
    let problem = Problem::builder(train.view())
        .matrix(1, genres.view(), None::<f64>, MatrixKind::Observed)
        .matrix(0, users.view(), None::<f64>, MatrixKind::Observed)
        .build(&())
        .unwrap();
    let mut o = Options::default();
    o.threads = 2;
    let settings = TuneOptions {
        trials: 24,
        ..TuneOptions::default()
    };
    let result = tune(&problem, &o, &settings, &mut (), &()).unwrap();
    let plain = result.trials.iter().find(|t| t.number == 0).unwrap();
    assert!(result.best().valid_rmse <= plain.valid_rmse);
    let input = FitInput {
        test: Some(test.view()),
        ..FitInput::default()
    };
    let error = |o: &Options| fit(&problem, o, &input, &mut (), &()).unwrap().1.test_rmse;
    let (before, after) = (error(&o), error(&result.best().options));
    println!("ml100k: default {before:.4}, tuned {after:.4}");
    assert!(after < 1.003 * before, "{after} against {before}");
}
