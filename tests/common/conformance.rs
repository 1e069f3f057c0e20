//! What every algorithm must do, whether it is one of the library or of another crate.

use std::cell::Cell;

use s3cmtf::Monitor;
use s3cmtf::format::OpenMode;
use s3cmtf::model::{Model, load_with, save};
use s3cmtf::options::{Algorithm, ExternalAlgorithm, Options};
use s3cmtf::problem::Problem;
use s3cmtf::solver::{FitInput, fit};

use super::Scratch;
use super::planted::{StopAfter, model_bits, small_data};

/// An algorithm, and what it promises.
pub struct Conformance {
    pub algorithm: Algorithm,
    /// Algorithms of other crates, which saved models may name.
    pub known: &'static [&'static ExternalAlgorithm],
    /// Options of its fits: `name=value`, separated by spaces.
    pub options: &'static str,
    /// Whether results are independent of the thread count.
    pub is_reproducible: bool,
}

/// Cancels at one of the polls.
struct CancelAt {
    polls: Cell<usize>,
    last: usize,
}

impl Monitor for CancelAt {
    fn cancelled(&self) -> bool {
        self.polls.set(self.polls.get() + 1);
        self.polls.get() > self.last
    }
}

fn assert_finite(model: &Model, what: &str) {
    let factors = model.modes().iter().map(|m| m.factor.as_slice());
    let mut parameters = factors.chain([model.core()]).flatten();
    assert!(parameters.all(|x| x.is_finite()), "{what}");
}

impl Conformance {
    fn options(&self, threads: u64) -> Options {
        let mut options = Options::default().with_algorithms(self.known);
        options.algorithm = self.algorithm;
        for pair in self.options.split_whitespace() {
            let (name, value) = pair.split_once('=').unwrap();
            options.set(name, value).unwrap();
        }
        options.threads = threads;
        options
    }

    /// Fits planted data in every way.
    pub fn check(&self) {
        let name = self.algorithm.name();
        let data = small_data();
        let problem = Problem::builder(data.train.view()).build(&()).unwrap();
        let (one, all) = (self.options(1), FitInput::default());
        let (model, summary) = fit(&problem, &one, &all, &mut (), &()).unwrap();
        assert!(summary.train_rmse.is_finite(), "{name}");
        assert_finite(&model, name);
        let bits = |model: &Model| model_bits(model, &data.test.view());
        let expected = bits(&model);
        for threads in [2, 3].into_iter().filter(|_| self.is_reproducible) {
            let (other, _) = fit(&problem, &self.options(threads), &all, &mut (), &()).unwrap();
            assert!(bits(&other) == expected, "{name}: {threads} threads");
        }
        // A saved model is the same.
        let dir = Scratch::new(&format!("conformance-{name}"));
        let path = dir.join("m.s3m");
        save(&model, &path).unwrap();
        let loaded = load_with(&path, OpenMode::Mapped, self.known).unwrap();
        assert!(bits(&loaded) == expected, "{name}: saved");
        assert!(loaded.options() == model.options(), "{name}");
        // A fit that is resumed from a checkpoint is one without interruption.
        let path = dir.join("c.s3m");
        let first = FitInput {
            checkpoint: Some(path.clone()),
            ..FitInput::default()
        };
        let (stopped, _) = fit(&problem, &one, &first, &mut StopAfter(2), &()).unwrap();
        let saved = load_with(&path, OpenMode::Mapped, self.known).unwrap();
        assert_eq!(saved.history().len(), stopped.history().len(), "{name}");
        let rest = FitInput {
            resume: Some(path),
            ..FitInput::default()
        };
        let (resumed, summary) = fit(&problem, &one, &rest, &mut (), &()).unwrap();
        assert_eq!(summary.epochs, model.history().len() as u64, "{name}");
        assert!(bits(&resumed) == expected, "{name}: resumed");
        // A cancellation at any poll leaves a model.
        for last in [0, 1, 10, 100, 300, 1000] {
            let monitor = CancelAt {
                polls: Cell::new(0),
                last,
            };
            let (cancelled, _) = fit(&problem, &one, &all, &mut (), &monitor).unwrap();
            assert_finite(&cancelled, &format!("{name}: cancelled at poll {last}"));
        }
    }
}
