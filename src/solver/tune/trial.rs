//! The options of a search, its trials, and its result.

use std::path::{Path, PathBuf};

use super::super::observer::{Control, StopReason};
use super::space::Space;
use crate::error::{Error, Result};
use crate::format::{CooView, write_atomically};
use crate::options::{OptionInfo, OptionRole, Options};
use crate::parallel::MAX_THREADS;

/// The options of a search besides those of its fits.
pub struct TuneOptions<'a> {
    /// Number of trials, the plain fit included, up to 10,000.
    pub trials: usize,
    /// Number of times that trials are compared, up to 20; the last time after all epochs.
    pub rungs: usize,
    /// Fraction of the entries that is held out to compare trials on, if there are no validation entries.
    pub fraction: f64,
    /// Validation entries to compare trials on.
    pub valid: Option<CooView<'a>>,
    /// The ranges that options are sampled from.
    pub space: Space,
    /// Number of threads of one fit. `threads` of the fit's options is the number of all threads.
    pub fit_threads: usize,
    /// The state file to write; by default that of `resume`.
    pub checkpoint: Option<PathBuf>,
    /// A state file to resume from, of a search with the same data and settings; the number of threads may differ.
    pub resume: Option<PathBuf>,
}

/// The largest number of trials, whose options are all sampled before the first fit.
const MAX_TRIALS: usize = 10_000;

/// The largest number of rungs. Each has about twice the epochs of the one before.
const MAX_RUNGS: usize = 20;

impl TuneOptions<'_> {
    /// Checks the numbers, which decide how much a search computes.
    pub(crate) fn check(&self) -> Result<()> {
        Error::check_range("trials", self.trials, 1..=MAX_TRIALS)?;
        Error::check_range("rungs", self.rungs, 1..=MAX_RUNGS)?;
        Error::check_range("fit_threads", self.fit_threads, 1..=MAX_THREADS)?;
        let fraction = self.fraction;
        if !(fraction > 0.0 && fraction < 1.0) {
            return Err(Error::argument(format!(
                "fraction = {fraction}: the fraction of held-out entries must be above 0 and below 1, such as 0.1"
            )));
        }
        Ok(())
    }

    /// The file that the state is written to.
    pub(super) fn state_path(&self) -> Option<&Path> {
        self.checkpoint.as_deref().or(self.resume.as_deref())
    }
}

impl Default for TuneOptions<'_> {
    fn default() -> Self {
        TuneOptions {
            trials: 200,
            rungs: 3,
            fraction: 0.1,
            valid: None,
            space: Space::default(),
            fit_threads: 1,
            checkpoint: None,
            resume: None,
        }
    }
}

/// One set of options and its outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Its number, counted from 0, which is the plain fit.
    pub number: usize,
    /// Its options, all resolved.
    pub options: Options,
    /// Number of rungs at which it was measured.
    pub rungs: usize,
    /// The epoch (for `gibbs`: sweep) of the last of these rungs, or of the one with the lowest error if the first epochs of a
    /// fit are a shorter fit.
    pub epochs: u64,
    /// The validation RMSE there; NaN if there is none.
    pub valid_rmse: f64,
    /// Why it failed, if it did.
    pub error: Option<String>,
    /// Time of its fits, in seconds.
    pub seconds: f64,
}

impl Trial {
    /// Returns a trial that was not measured yet.
    pub(super) fn new(number: usize, options: Options) -> Trial {
        Trial {
            number,
            options,
            rungs: 0,
            epochs: 0,
            valid_rmse: f64::NAN,
            error: None,
            seconds: 0.0,
        }
    }

    /// Its options as lines `name=value`, without those that do not affect the model, such as `threads`.
    pub fn to_text(&self) -> String {
        let is_saved = |o: &OptionInfo| !o.has_role(OptionRole::NotSaved);
        let saved = self.options.all_options().into_iter().filter(is_saved);
        saved
            .map(|o| {
                format!(
                    "{}={}\n",
                    o.name,
                    self.options.get(o.name).unwrap_or_default()
                )
            })
            .collect()
    }
}

/// Writes the options of a trial to a file of options, atomically.
pub fn save(trial: &Trial, path: impl AsRef<Path>) -> Result<()> {
    let text = trial.to_text();
    write_atomically(path.as_ref(), |w| w.write_all(text.as_bytes()))
}

/// The result of a search.
#[derive(Debug, Clone)]
pub struct TuneResult {
    /// All trials, the best first: by the last rung they reached, then by validation RMSE.
    pub trials: Vec<Trial>,
    /// Why the search ended: `Epochs` if it is complete.
    pub reason: StopReason,
    /// Why the last state could not be written, if it could not.
    pub state_error: Option<String>,
    /// Duration of the search.
    pub seconds: f64,
}

impl TuneResult {
    /// The best trial. If the search was cancelled before a trial was measured, it is the plain fit, with no rungs.
    pub fn best(&self) -> &Trial {
        &self.trials[0]
    }
}

/// The progress of a search.
#[derive(Debug)]
pub struct TuneProgress<'a> {
    /// The trial that was measured last.
    pub trial: &'a Trial,
    /// The rung at which it was measured, counted from 1.
    pub rung: usize,
    /// Number of rungs.
    pub rungs: usize,
    /// Trials measured at this rung.
    pub done: usize,
    /// Trials to be measured at this rung.
    pub total: usize,
    /// The lowest validation RMSE at this rung so far; NaN before there is one.
    pub best: f64,
}

/// Receives the progress of a search, on the thread that called it. `()` ignores it.
pub trait TuneObserver {
    /// Called after every fit; the return value stops the search or lets it continue.
    fn trial(&mut self, progress: &TuneProgress<'_>) -> Control {
        let _ = progress;
        Control::Continue
    }

    /// Called when the state cannot be written, the first time. The search goes on.
    fn warning(&mut self, text: &str) {
        let _ = text;
    }
}

impl TuneObserver for () {}
