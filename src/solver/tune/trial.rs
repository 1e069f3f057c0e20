//! What a search takes, what it tells, and what it ends with.

use std::path::{Path, PathBuf};

use super::super::observer::{Control, StopReason};
use super::space::Space;
use crate::error::Result;
use crate::format::{CooView, atomic};
use crate::options::{OPTION_TABLE, Options};

/// What the file of options leaves to each fit: it says nothing about the model.
const LEFT_OUT: [&str; 4] = ["threads", "pin", "kernel", "time_limit"];

/// Everything a search takes besides the problem and the options to start from.
pub struct TuneOptions<'a> {
    /// How many trials there are, the plain fit among them.
    pub trials: usize,
    /// How often they are compared; the last time all epochs are run.
    pub rungs: usize,
    /// The part of the entries that is held out to compare on, unless there are entries for that.
    pub fraction: f64,
    /// Entries to compare on; then none are held out.
    pub valid: Option<CooView<'a>>,
    /// What trials are drawn from.
    pub space: Space,
    /// The threads of one fit. `threads` of the options is the number of all.
    pub fit_threads: usize,
    /// Where the state is kept.
    pub checkpoint: Option<PathBuf>,
    /// A state to go on from, with the same data and settings; only the number of threads may differ.
    pub resume: Option<PathBuf>,
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

/// One set of options and what it gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Its number, from 0; that is the plain fit.
    pub number: usize,
    /// Its options, all settled.
    pub options: Options,
    /// How many rungs it was measured at.
    pub rungs: usize,
    /// The epochs of the last of them (of `gibbs`: sweeps).
    pub epochs: u64,
    /// The validation error there; NaN if there is none.
    pub valid_rmse: f64,
    /// Why it failed, if it did.
    pub failed: Option<String>,
    /// Seconds spent on it.
    pub seconds: f64,
}

impl Trial {
    /// Its options as lines `name=value`, but for those that say nothing about the model (`threads`).
    pub fn to_text(&self) -> String {
        let kept = OPTION_TABLE.iter().filter(|o| !LEFT_OUT.contains(&o.name));
        kept.map(|o| {
            format!(
                "{}={}\n",
                o.name,
                self.options.get(o.name).unwrap_or_default()
            )
        })
        .collect()
    }
}

/// Writes the options of a trial into a file of options, complete or not at all.
pub fn save(trial: &Trial, path: impl AsRef<Path>) -> Result<()> {
    let text = trial.to_text();
    atomic::write(path.as_ref(), |w| w.write_all(text.as_bytes()))
}

/// What a search ended with.
#[derive(Debug, Clone)]
pub struct TuneResult {
    /// All trials, the best first: those that came further before those that did not.
    pub trials: Vec<Trial>,
    /// Why it ended: `Epochs` if all was done.
    pub reason: StopReason,
    /// All seconds.
    pub seconds: f64,
}

impl TuneResult {
    /// The best trial.
    pub fn best(&self) -> &Trial {
        &self.trials[0]
    }
}

/// How far a search is.
#[derive(Debug)]
pub struct TuneProgress<'a> {
    /// The trial that was measured last.
    pub trial: &'a Trial,
    /// The rung it was measured at, from 1, and how many there are.
    pub rung: usize,
    /// How many there are.
    pub rungs: usize,
    /// Trials measured at this rung.
    pub done: usize,
    /// Trials to be measured at this rung.
    pub total: usize,
    /// The lowest error at this rung so far; NaN before there is one.
    pub best: f64,
}

/// Watches a search, on the thread that called it. `()` watches nothing.
pub trait TuneObserver {
    /// After every fit.
    fn trial(&mut self, progress: &TuneProgress<'_>) -> Control {
        let _ = progress;
        Control::Continue
    }
}

impl TuneObserver for () {}
