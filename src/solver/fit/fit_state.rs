//! What a fit begins with.

use std::sync::Arc;
use std::time::Instant;

use super::super::data::Held;
use super::super::input::FitInput;
use super::super::resume::Progress;
use super::super::standardization::Centre;
use crate::error::{Error, Result};
use crate::model::{Checkpoint, FitRecord, Model, ParameterSnapshot};
use crate::options::{Algorithm, Options};
use crate::parallel::{ThreadPool, available_threads, varying_first_cpu};

/// What is known before a fit begins.
#[derive(Default)]
pub(in crate::solver) struct Known {
    /// The checkpoint it goes on from.
    pub resumed: Option<(Model, Checkpoint)>,
    /// Where it starts, unless it is told otherwise.
    pub start: Option<Arc<Model>>,
    /// What is taken out of the values.
    pub centre: Option<Centre>,
    /// Entries that are not fitted to but validate.
    pub held: Option<Held>,
    /// After a fit with some entries held out: where one to all of them begins, and what the best model
    /// was.
    pub refit: Option<(Progress, ParameterSnapshot)>,
    /// What has happened so far.
    pub record: FitRecord,
    /// How long that took.
    pub clock: Option<Clock>,
}

/// What takes how long.
#[derive(Clone, Copy)]
pub(in crate::solver) struct Clock {
    pub started: Instant,
    pub update_seconds: f64,
    pub eval_seconds: f64,
}

impl Clock {
    pub(super) fn start() -> Clock {
        Clock {
            started: Instant::now(),
            update_seconds: 0.0,
            eval_seconds: 0.0,
        }
    }
}

/// The threads of a fit.
pub(in crate::solver) fn thread_pool(options: &Options) -> ThreadPool {
    let threads = match options.threads {
        0 => available_threads(),
        n => n as usize,
    };
    ThreadPool::new(threads, options.pin, varying_first_cpu())
}

/// What decides which epoch is best must be there, once.
pub(super) fn check_validation(options: &Options, input: &FitInput<'_>) -> Result<()> {
    let fraction = options.valid_fraction;
    let bad = |what: &str| Err(Error::argument(what));
    if fraction >= 1.0 {
        return bad("valid_fraction is 1, which leaves nothing to fit to; it must be below 1");
    }
    if fraction > 0.0 && input.valid.is_some() {
        return bad(
            "validation entries are given, and valid_fraction holds out others; leave out one of both",
        );
    }
    if fraction > 0.0 && options.algorithm == Algorithm::Gibbs {
        return bad(
            "gibbs averages all its samples and has no best epoch to find with valid_fraction; give a \
             validation file to end it by patience",
        );
    }
    if options.patience > 0 && input.valid.is_none() && fraction == 0.0 {
        return bad(
            "patience needs validation entries to decide by; give a validation file, or valid_fraction",
        );
    }
    match input.valid.as_ref().filter(|v| v.is_empty()) {
        Some(valid) => Err(Error::argument(format!(
            "{}: without entries it cannot validate anything",
            valid.name()
        ))),
        None => Ok(()),
    }
}
