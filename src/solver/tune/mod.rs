//! Hyperparameter search: random search with successive halving.
//!
//! Trials are sets of options, sampled from a space around the options that a plain fit would choose, which are the first
//! trial. A trial is a fit with the learning-rate schedule of its full length. At every rung the remaining trials continue
//! to a certain epoch (for `gibbs`: sweep) and are measured on held-out entries. The best third continues to the next
//! rung; the last rung has all epochs (Jamieson and Talwalkar, "Non-stochastic best arm identification and hyperparameter
//! optimization", AISTATS 2016). The first epochs of a long fit predict its result as well as a short fit of as many
//! epochs does, which could not be continued (docs/notes/accuracy.md has the measurement).
//! If the first epochs of a fit are a shorter fit, its lowest error at a rung counts, and its result has that number of epochs.
//!
//! Trials run in parallel, by default on one thread each. A trial that continues from where it paused and one that starts
//! over, because its model was discarded or the search was interrupted, return the same bits. So neither the number of
//! threads nor an interruption changes the result.
//!
//! In go a problem, options and [`TuneOptions`]; out comes a [`TuneResult`]. Open `search` first: it runs the rungs. `space`
//! and `trial_sampler` define the trials, `trial_run` fits one, `state` is the file that a killed search resumes from,
//! `stop` ends a search.

mod search;
mod space;
mod state;
mod trial;
mod trial_run;
mod trial_sampler;

pub use space::Space;
pub use trial::{Trial, TuneObserver, TuneOptions, TuneProgress, TuneResult, save};

use std::time::Instant;

use search::Search;
use search::SearchMonitor;

use super::algorithm_factory::{check_memory, check_support};
use super::driver::{Clock, FitMonitor};
use super::fit::check_matrix_weights;
use super::hyperparameters::{resolve_by_sizes, resolve_options};
use super::observer::StopReason;
use crate::error::{Error, Result};
use crate::format::{check_target, for_each_valid_batch};
use crate::options::{OPTION_TABLE, OptionInfo, Options};
use crate::problem::Problem;
use crate::progress::Monitor;
use crate::sort::stable_sort_by;

/// Searches for better options than `options`, of which the unset ones are chosen as [`fit`](super::fit) chooses them.
/// If observer or monitor cancel, or `time_limit` is reached, the result has the trials measured so far. The best of none is the
/// plain fit, with the options that are known by then.
pub fn tune(
    problem: &Problem<'_>,
    options: &Options,
    search_options: &TuneOptions<'_>,
    observer: &mut dyn TuneObserver,
    monitor: &dyn Monitor,
) -> Result<TuneResult> {
    let started = Instant::now();
    let options = &with_fixed_model(options, &search_options.space)?;
    check(problem, options, search_options)?;
    let search_monitor = SearchMonitor::new(monitor, started, options.time_limit);
    let stop_reason = || match search_monitor.reached_time_limit() {
        true => StopReason::TimeLimit,
        false => StopReason::Cancelled,
    };
    let monitor = FitMonitor::new(&search_monitor, Clock::start(), 0.0);
    check_memory(problem, &problem.matrix_kinds(), options, None)?;
    let unmeasured = |problem: &Problem<'_>| TuneResult {
        trials: vec![Trial::new(0, resolve_by_sizes(problem, options, None))],
        reason: stop_reason(),
        state_error: None,
        seconds: started.elapsed().as_secs_f64(),
    };
    if let Some(valid) = &search_options.valid {
        // Otherwise every trial would fail.
        match for_each_valid_batch(valid, &monitor, "checking entries", &mut |_, _| Ok(())) {
            Err(Error::Cancelled) => return Ok(unmeasured(problem)),
            checked => checked?,
        }
    }
    let reduced = match problem.with_matrices(&problem.matrix_kinds(), options, &monitor) {
        Err(Error::Cancelled) => return Ok(unmeasured(problem)),
        reduced => reduced?,
    };
    let problem = reduced.as_ref().unwrap_or(problem);
    let resolved = match resolve_options(problem, options, None, &monitor) {
        Err(Error::Cancelled) => return Ok(unmeasured(problem)),
        resolved => resolved?,
    };
    let (mut base, standardization) = (resolved.options, resolved.standardization);
    if base.lambda_m.is_empty() && !problem.matrices().is_empty() {
        // The search finds the weights.
        base.lambda_m = vec![1.0];
    }
    let search = Search::new(
        problem,
        options,
        &base,
        standardization,
        search_options,
        &search_monitor,
    );
    let mut search = match search {
        Err(Error::Cancelled) => return Ok(unmeasured(problem)),
        search => search?,
    };
    let outcome = search.run(observer, &search_monitor);
    search.write_state(observer);
    let reason = match outcome {
        Ok(()) => StopReason::Epochs,
        Err(Error::Cancelled) => stop_reason(),
        Err(e) => return Err(e),
    };
    let state_error = search.state_error.take();
    let mut trials = search.into_trials();
    stable_sort_by(&mut trials, &|a, b| {
        let key = |t: &Trial| (t.error.is_some(), std::cmp::Reverse(t.rungs));
        key(a)
            .cmp(&key(b))
            .then(a.valid_rmse.total_cmp(&b.valid_rmse))
            .then(a.number.cmp(&b.number))
    });
    // Without a measured trial the first is the plain fit, unless that failed.
    let is_measured = trials.first().is_some_and(|t| t.rungs > 0);
    let failed = trials.iter().filter(|_| !is_measured);
    if let Some(why) = failed.filter_map(|t| t.error.as_ref()).next_back() {
        return Err(Error::argument(format!(
            "every trial failed; one of them: {why}"
        )));
    }
    Ok(TuneResult {
        trials,
        reason,
        state_error,
        seconds: started.elapsed().as_secs_f64(),
    })
}

/// Returns the options with the kind of model that the ranges fix, for an algorithm that fits only one kind. A preset may name
/// another one.
fn with_fixed_model(options: &Options, space: &Space) -> Result<Options> {
    let mut options = options.clone();
    if let (Some(_), Some(model)) = (options.algorithm.only_model(), space.fixed("model")) {
        options.set("model", model)?;
    }
    Ok(options)
}

/// Refuses options that no search can run with.
fn check(problem: &Problem<'_>, options: &Options, search_options: &TuneOptions<'_>) -> Result<()> {
    options.validate()?;
    search_options.check()?;
    check_matrix_weights(problem, options)?;
    check_support(problem, options)?;
    let refuse = |why: String| Err(Error::argument(why));
    let algorithm = options.algorithm;
    let is_unused =
        |o: &&OptionInfo| !o.is_used_by(algorithm) && search_options.space.varies(o.name);
    if let Some(option) = OPTION_TABLE.iter().find(is_unused) {
        let (name, algorithm) = (option.name, algorithm.name());
        return refuse(format!(
            "{name} has a range, but {algorithm} does not use {name}: trials would differ in nothing; leave the range out"
        ));
    }
    match &search_options.valid {
        Some(valid) if valid.is_empty() => {
            return refuse(format!(
                "{}: without entries it cannot compare trials",
                valid.name()
            ));
        }
        None if problem.count() < 2 => {
            return refuse(format!(
                "{}: has {} entries, of which none can be held out",
                problem.tensor().name(),
                problem.count()
            ));
        }
        _ => {}
    }
    if problem.count() == 0 {
        return refuse(format!(
            "{}: without entries there is nothing to fit",
            problem.tensor().name()
        ));
    }
    if let Some(path) = search_options.state_path() {
        check_target(path)?;
    }
    Ok(())
}
