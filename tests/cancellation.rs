//! The work between two polls for a cancellation is bounded, and a fit can be cancelled at any poll.

use std::cell::Cell;

use s3cmtf::discover::{ClusterOptions, ConceptOptions, cluster_rows, describe_concepts};
use s3cmtf::format::{CooView, OpenMode, Values};
use s3cmtf::model::{self, Model};
use s3cmtf::options::{Algorithm, Initialization, ModelKind, Options};
use s3cmtf::predict::{PredictOptions, predict_entries};
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::progress::Monitor;
use s3cmtf::solver::tune::{TuneOptions, tune};
use s3cmtf::solver::{FitInput, StopReason, fit};
use s3cmtf_kernel::progress::operations::{largest_between_polls, start_counting};
use s3cmtf_kernel::progress::operations_per_poll;
use s3cmtf_kernel::random::RandomStream;

/// Random entries of a tensor.
struct Entries {
    sizes: Vec<u64>,
    columns: Vec<Vec<u32>>,
    values: Vec<f64>,
}

impl Entries {
    fn random(order: usize, size: u64, count: usize) -> Entries {
        let mut s = RandomStream::new(&[order as u64, size]);
        let column = |s: &mut RandomStream| (0..count).map(|_| s.below(size) as u32).collect();
        Entries {
            sizes: vec![size; order],
            columns: (0..order).map(|_| column(&mut s)).collect(),
            values: (0..count).map(|_| 3.0 + s.standard_normal()).collect(),
        }
    }

    fn with_view<T>(&self, test: impl FnOnce(&CooView<'_>) -> T) -> T {
        let columns: Vec<&[u32]> = self.columns.iter().map(Vec::as_slice).collect();
        test(&CooView::new("t", &self.sizes, &columns, Values::F64(&self.values)).unwrap())
    }

    fn with_problem<T>(&self, test: impl FnOnce(&Problem<'_>) -> T) -> T {
        self.with_view(|view| test(&Problem::builder(view.clone()).build(&()).unwrap()))
    }
}

/// Returns the model with a full core, if the algorithm has one.
fn largest_model(algorithm: Algorithm) -> ModelKind {
    algorithm.only_model().unwrap_or(ModelKind::Tucker)
}

fn options(algorithm: Algorithm, model: ModelKind, rank: usize) -> Options {
    let mut options = Options::default();
    options.algorithm = algorithm;
    options.model = model;
    options.rank = vec![rank];
    (options.epochs, options.burn_in, options.samples) = (1, 1, 1);
    // Random values have nothing to fit, so that larger steps diverge.
    options.eta = Some(1e-4);
    options.threads = 2;
    options
}

/// Asserts that `body` polls often enough, and returns its result.
fn polling<T>(what: &str, body: impl FnOnce() -> T) -> T {
    start_counting();
    let (result, operations) = largest_between_polls(body);
    let limit = 4 * operations_per_poll() as u64;
    assert!(
        operations <= limit,
        "{what}: {operations} operations between two polls, more than {limit}"
    );
    result
}

/// A pass over these entries takes more operations than may lie between two polls, for a core of rank [`CORE_RANK`].
fn entries_of_a_large_core() -> Entries {
    Entries::random(6, 12, 1000)
}

const CORE_RANK: usize = 4;

#[test]
fn fits_of_a_large_core_poll_often() {
    entries_of_a_large_core().with_problem(|problem| {
        for &algorithm in Algorithm::ALL {
            let options = options(algorithm, largest_model(algorithm), CORE_RANK);
            let what = format!("{algorithm:?}");
            polling(&what, || {
                fit(problem, &options, &FitInput::default(), &mut (), &()).unwrap()
            });
        }
    });
}

/// Returns a model of the entries.
fn fitted(entries: &Entries, options: &Options) -> Model {
    entries.with_problem(|problem| {
        let input = FitInput::default();
        fit(problem, options, &input, &mut (), &()).unwrap().0
    })
}

#[test]
fn predictions_of_a_large_core_poll_often() {
    let entries = entries_of_a_large_core();
    let mut options = options(Algorithm::Opt, ModelKind::Tucker, CORE_RANK);
    options.start = Initialization::Normal;
    let model = fitted(&entries, &options);
    for threads in [1, 2] {
        let options = PredictOptions {
            clip: true,
            threads,
        };
        entries.with_view(|view| {
            polling("predict", || {
                predict_entries(&model, view, &options, &(), |_, _| Ok(())).unwrap()
            })
        });
    }
}

#[test]
fn tuning_with_a_large_core_polls_often() {
    entries_of_a_large_core().with_problem(|problem| {
        let mut options = options(Algorithm::Blocked, ModelKind::Tucker, CORE_RANK);
        options.start = Initialization::Normal;
        let search = TuneOptions {
            trials: 1,
            rungs: 1,
            ..TuneOptions::default()
        };
        polling("tune", || {
            tune(problem, &options, &search, &mut (), &()).unwrap()
        });
    });
}

#[test]
fn clusters_and_concepts_of_a_high_rank_poll_often() {
    let entries = Entries::random(2, 200, 4000);
    let mut options = options(Algorithm::Opt, ModelKind::Cp, 192);
    options.start = Initialization::Normal;
    let model = fitted(&entries, &options);
    let clusters = ClusterOptions {
        k: Some(2),
        ..ClusterOptions::new(0)
    };
    polling("clusters", || {
        cluster_rows(&model, &clusters, &[], &()).unwrap()
    });
    polling("concepts", || {
        describe_concepts(&model, &ConceptOptions::new(0), &()).unwrap()
    });
}

/// Cancels at one of its polls and all later ones.
struct CancelAt {
    polls: Cell<u64>,
    at: u64,
}

impl Monitor for CancelAt {
    fn cancelled(&self) -> bool {
        self.polls.set(self.polls.get() + 1);
        self.polls.get() > self.at
    }
}

/// Returns the distance to the next poll to cancel at: 1 in the long form, and for the first polls.
fn next_step(at: u64) -> u64 {
    let is_long = std::env::var_os("S3CMTF_LONG_TESTS").is_some_and(|v| v == "1");
    if is_long { 1 } else { 1 + (at / 10).min(16) }
}

/// Cancels a fit at each poll in turn, or at some of them in the short form. Checks that the result is always a usable model, and
/// returns the number of polls.
fn cancel_at_all_polls(problem: &Problem<'_>, options: &Options, input: &FitInput<'_>) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.s3m");
    let first_epoch = input.resume.as_deref().map_or(0, |resumed| {
        let model = model::load(resumed, OpenMode::Private).unwrap();
        model.history().last().unwrap().epoch
    });
    let (mut at, mut is_complete, mut without_epochs) = (0, false, 0);
    while !is_complete {
        let monitor = CancelAt {
            polls: Cell::new(0),
            at,
        };
        let what = format!("{:?}, cancelled at poll {at}", options.algorithm);
        let fitted = fit(problem, options, input, &mut (), &monitor);
        let (model, summary) = fitted.unwrap_or_else(|e| panic!("{what}: {e}"));
        assert!(model.is_finite(), "{what}");
        is_complete = summary.reason != StopReason::Cancelled;
        assert!(summary.epochs >= first_epoch, "{what}");
        assert_eq!(model.history().is_empty(), summary.epochs == 0, "{what}");
        assert_eq!(
            summary.is_without_epochs(),
            !is_complete && summary.epochs == 0
        );
        without_epochs += u64::from(summary.epochs == 0);
        if let Some(samples) = model.samples() {
            assert!(samples.iter().all(|s| s.noise_deviation > 0.0));
            assert!(!samples.is_empty());
        }
        model::save(&model, &path).unwrap();
        let loaded = model::load(&path, OpenMode::Private).unwrap();
        let predictions = PredictOptions {
            clip: false,
            threads: 1,
        };
        let view = problem.tensor().view();
        predict_entries(&loaded, view, &predictions, &(), |_, values| {
            assert!(values.iter().all(|x| x.is_finite()), "{what}");
            Ok(())
        })
        .unwrap();
        at += next_step(at);
    }
    assert!(without_epochs > 0 || first_epoch > 0);
    at
}

#[test]
fn a_fit_can_be_cancelled_at_any_poll() {
    let entries = Entries::random(3, 20, 600);
    entries.with_problem(|problem| {
        for &algorithm in Algorithm::ALL {
            let options = short_options(algorithm);
            let polls = cancel_at_all_polls(problem, &options, &FitInput::default());
            assert!(polls > 60, "{algorithm:?}: only {polls} polls");
        }
    });
}

#[test]
fn a_fit_with_open_choices_can_be_cancelled_at_any_poll() {
    let entries = Entries::random(3, 20, 600);
    // Equal values at different positions, so that both its weight and its kind are open.
    let positions = (0..400).filter(|i| (i / 20 + i % 20) % 2 == 0);
    let (rows, columns) = positions.map(|i| (i / 20, i % 20)).unzip();
    let matrix = Entries {
        sizes: vec![20; 2],
        columns: vec![rows, columns],
        values: vec![1.0; 200],
    };
    let (entries, matrix) = (&entries, &matrix);
    entries.with_view(|tensor| {
        matrix.with_view(|matrix| {
            let builder = Problem::builder(tensor.clone());
            let builder = builder.matrix(0, matrix.clone(), None, MatrixKind::Auto);
            let problem = builder.build(&()).unwrap();
            for algorithm in [Algorithm::Blocked, Algorithm::Gibbs] {
                let options = short_options(algorithm);
                let mut alone = options.clone();
                alone.lambda_m = vec![1.0];
                let polls = cancel_at_all_polls(&problem, &options, &FitInput::default());
                let polls_alone = cancel_at_all_polls(&problem, &alone, &FitInput::default());
                assert!(polls > polls_alone, "{algorithm:?}: nothing was compared");
            }
        })
    });
}

#[test]
fn a_fit_from_a_model_or_a_checkpoint_can_be_cancelled_at_any_poll() {
    let entries = Entries::random(3, 20, 600);
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = folder.path().join("c.s3m");
    entries.with_problem(|problem| {
        for algorithm in [Algorithm::Blocked, Algorithm::Als, Algorithm::Gibbs] {
            let mut options = short_options(algorithm);
            let input = FitInput {
                checkpoint: Some(checkpoint.clone()),
                ..FitInput::default()
            };
            let (model, _) = fit(problem, &options, &input, &mut (), &()).unwrap();
            let input = FitInput {
                init: Some(&model),
                ..FitInput::default()
            };
            cancel_at_all_polls(problem, &options, &input);
            let input = FitInput {
                resume: Some(checkpoint.clone()),
                ..FitInput::default()
            };
            options.epochs += 2;
            cancel_at_all_polls(problem, &options, &input);
        }
    });
}

#[test]
fn a_search_can_be_cancelled_at_any_poll() {
    let entries = Entries::random(3, 20, 600);
    entries.with_problem(|problem| {
        let options = short_options(Algorithm::Blocked);
        let search = TuneOptions {
            trials: 3,
            rungs: 2,
            ..TuneOptions::default()
        };
        let (mut at, mut measured) = (0, Vec::new());
        loop {
            let monitor = CancelAt {
                polls: Cell::new(0),
                at,
            };
            let found = tune(problem, &options, &search, &mut (), &monitor).unwrap();
            let best = found.best();
            assert!(best.rungs > 0 || best.number == 0);
            assert!(!best.options.rank.is_empty());
            measured.push(best.rungs > 0);
            if found.reason != StopReason::Cancelled {
                break;
            }
            at += next_step(at);
        }
        assert!(measured.contains(&false) && measured.contains(&true));
    });
}

/// Returns the options of a fit of a few milliseconds.
fn short_options(algorithm: Algorithm) -> Options {
    let mut options = options(algorithm, largest_model(algorithm), 3);
    (options.epochs, options.samples, options.threads) = (3, 2, 1);
    options.valid_fraction = match algorithm {
        Algorithm::Gibbs => 0.0,
        _ => 0.2,
    };
    options
}
