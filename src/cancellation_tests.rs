//! The work between two polls for a cancellation is bounded, and a fit can be cancelled at any poll.

use std::cell::Cell;

use crate::discover::{ClusterOptions, ConceptOptions, cluster_rows, describe_concepts};
use crate::error::Error;
use crate::format::{CooView, Values};
use crate::model::Model;
use crate::options::{Algorithm, Initialization, ModelKind, Options};
use crate::predict::{PredictOptions, predict_entries};
use crate::problem::Problem;
use crate::progress::operations::largest_between_polls;
use crate::progress::{Monitor, OPERATIONS_PER_POLL};
use crate::random::RandomStream;
use crate::solver::tune::{TuneOptions, tune};
use crate::solver::{FitInput, StopReason, fit};

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
    Options {
        algorithm,
        model,
        rank: vec![rank],
        epochs: 1,
        burn_in: 1,
        samples: 1,
        // Random values have nothing to fit, so that larger steps diverge.
        eta: Some(1e-4),
        threads: 2,
        ..Options::default()
    }
}

/// Asserts that `body` polls often enough, and returns its result.
fn polling<T>(what: &str, body: impl FnOnce() -> T) -> T {
    let (result, operations) = largest_between_polls(body);
    let limit = 4 * OPERATIONS_PER_POLL as u64;
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

#[test]
fn a_fit_can_be_cancelled_at_any_poll() {
    let entries = Entries::random(3, 20, 600);
    entries.with_problem(|problem| {
        for &algorithm in Algorithm::ALL {
            let mut options = options(algorithm, largest_model(algorithm), 3);
            options.subset_size = 2;
            (options.epochs, options.samples, options.threads) = (3, 2, 1);
            options.valid_fraction = match algorithm {
                Algorithm::Gibbs => 0.0,
                _ => 0.2,
            };
            let (mut at, mut is_complete) = (0, false);
            while !is_complete {
                let monitor = CancelAt {
                    polls: Cell::new(0),
                    at,
                };
                match fit(problem, &options, &FitInput::default(), &mut (), &monitor) {
                    Err(Error::Cancelled) => {}
                    Err(e) => panic!("{algorithm:?}, cancelled at poll {at}: {e}"),
                    Ok((model, summary)) => {
                        assert!(model.is_finite());
                        is_complete = summary.reason != StopReason::Cancelled;
                        assert!(is_complete || summary.epochs < 3 * options.epochs);
                        if let Some(samples) = model.samples() {
                            assert!(samples.iter().all(|s| s.noise_deviation > 0.0));
                            assert!(!samples.is_empty());
                        }
                    }
                }
                // All of the first polls, then one in ten percent more.
                at += 1 + at / 10;
            }
            assert!(at > 60, "{algorithm:?}: only {at} polls");
        }
    });
}
