//! The rungs of a search: which trials are fitted how far, and which continue.

use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::state::{SearchState, TrialOutcome, fingerprint};
use super::trial::{Trial, TuneObserver, TuneOptions, TuneProgress};
use super::trial_run::{PausedFit, TrialJob, TrialRunner};
use super::trial_sampler::TrialSampler;
use crate::error::{Error, Result};
use crate::options::{Algorithm, LearningRateSchedule, Options};
use crate::parallel::{StopFlag, available_threads, run_ordered};
use crate::problem::Problem;
use crate::progress::{Monitor, check_cancelled, report_progress};
use crate::solver::algorithm_factory::kernel_level;
use crate::solver::observer::Control;
use crate::solver::standardization::Standardization;
use crate::sort::stable_sort_by;

/// One trial in so many continues to the next rung.
const REDUCTION_FACTOR: usize = 3;

/// Fraction of all epochs at the last rung but one. Each rung before has half the epochs of the next.
const EPOCH_FRACTION_BEFORE_LAST: f64 = 0.4;

/// Memory limit of the models of paused trials. Those with the largest errors are discarded first.
const MAX_PAUSED_BYTES: usize = 1 << 30;

/// Maximum number of attempts to sample a trial that differs from those before.
const MAX_ATTEMPTS: u64 = 100;

/// Time between two writes of the state file.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);

/// A search in progress.
pub(super) struct Search<'a> {
    search_options: &'a TuneOptions<'a>,
    pub(super) trials: Vec<Trial>,
    runner: TrialRunner<'a>,
    state: SearchState,
    last_write: Instant,
    /// Why the last state could not be written.
    pub(super) state_error: Option<String>,
    /// Whether the observer was warned of such an error.
    has_warned: bool,
    /// Number of trials that run in parallel.
    parallel_trials: usize,
    /// Trials that can be continued, with their numbers.
    paused: Vec<(usize, PausedFit)>,
}

impl<'a> Search<'a> {
    /// Samples all trials and loads the state of an earlier search. `base` are the resolved options of the plain fit
    /// that `given` asks for.
    pub(super) fn new(
        problem: &'a Problem<'a>,
        given: &Options,
        base: &'a Options,
        standardization: Option<Standardization>,
        search_options: &'a TuneOptions<'a>,
        monitor: &dyn Monitor,
    ) -> Result<Search<'a>> {
        let sampler = TrialSampler::new(problem, &search_options.space, given, base);
        let trials = sample_trials(&sampler, search_options.trials, monitor)?;
        let mut settings = format!(
            "{} {} {} {} {}\n",
            search_options.space.describe(),
            search_options.rungs,
            search_options.fraction.to_bits(),
            search_options.valid.is_some(),
            kernel_level(base)?.name(),
        );
        trials.iter().for_each(|t| settings += &t.to_text());
        let weights = problem.matrix_weights(base);
        let mut state = SearchState {
            data: fingerprint(problem, &weights, search_options.valid.as_ref()),
            settings: u64::from(crc32fast::hash(settings.as_bytes())),
            outcomes: BTreeMap::new(),
        };
        if let Some(path) = &search_options.resume {
            state.load(path)?;
        }
        let threads = match base.threads {
            0 => available_threads(),
            n => n as usize,
        };
        Ok(Search {
            search_options,
            trials,
            runner: TrialRunner::new(problem, search_options, base, standardization),
            state,
            last_write: Instant::now(),
            state_error: None,
            has_warned: false,
            parallel_trials: (threads / search_options.fit_threads).max(1),
            paused: Vec::new(),
        })
    }

    /// Runs all rungs.
    pub(super) fn run(
        &mut self,
        observer: &mut dyn TuneObserver,
        monitor: &SearchMonitor<'_>,
    ) -> Result<()> {
        let mut remaining: Vec<usize> = (0..self.trials.len()).collect();
        for rung in 0..self.search_options.rungs {
            self.run_rung(rung, &remaining, observer, monitor)?;
            remaining.retain(|&t| self.trials[t].error.is_none());
            // The best first: an interrupted rung has then measured the most promising trials.
            stable_sort_by(&mut remaining, &|&a, &b| {
                let rmse = |t: usize| self.trials[t].valid_rmse;
                rmse(a).total_cmp(&rmse(b)).then(a.cmp(&b))
            });
            let kept = remaining.len().div_ceil(REDUCTION_FACTOR);
            // The plain fit always continues, to be compared with at the end.
            let mut position = 0;
            remaining.retain(|&t| {
                position += 1;
                position <= kept || t == 0
            });
        }
        Ok(())
    }

    /// Fits and measures trials at a rung, those without an outcome in the state.
    fn run_rung(
        &mut self,
        rung: usize,
        remaining: &[usize],
        observer: &mut dyn TuneObserver,
        monitor: &SearchMonitor<'_>,
    ) -> Result<()> {
        let has_outcome = |t: &usize| self.state.outcomes.contains_key(&(rung, *t));
        let (old, new): (Vec<usize>, Vec<usize>) = remaining.iter().partition(|t| has_outcome(t));
        let mut best = f64::NAN;
        for t in old.iter().copied() {
            self.record_outcome(rung, t);
            best = best.min(self.trials[t].valid_rmse);
        }
        let jobs: Vec<TrialJob> = new.iter().map(|&t| self.job(rung, t)).collect();
        self.runner.prepare(&jobs, monitor)?;
        let runner = self.runner.clone();
        let fit = |i: u64, stop: &StopFlag| {
            let started = Instant::now();
            let result = runner.run(&jobs[i as usize], stop);
            (result, started.elapsed().as_secs_f64())
        };
        let (measured_before, total) = (old.len(), remaining.len());
        let rungs = self.search_options.rungs;
        let phase = format!("rung {} of {rungs}", rung + 1);
        let parallel_trials = self.parallel_trials;
        let take_result = |i: u64, (result, seconds): (Result<(f64, PausedFit)>, f64)| {
            let t = new[i as usize];
            let rmse = match result {
                Err(Error::Cancelled) => return Err(Error::Cancelled),
                Err(e) => Err(e.to_string()),
                Ok((rmse, paused)) if rmse.is_finite() => {
                    self.paused.push((t, paused));
                    Ok(rmse)
                }
                Ok(_) => Err("no entry could be measured".into()),
            };
            let outcome = TrialOutcome { rmse, seconds };
            self.state.outcomes.insert((rung, t), outcome);
            self.record_outcome(rung, t);
            self.discard_models(rung, total);
            self.write_regularly(observer);
            best = best.min(self.trials[t].valid_rmse);
            let done = measured_before + i as usize + 1;
            let control = observer.trial(&TuneProgress {
                trial: &self.trials[t],
                rung: rung + 1,
                rungs,
                done,
                total,
                best,
            });
            if control == Control::Stop {
                monitor.stop();
            }
            report_progress(monitor, &phase, done as u64, total as u64)
        };
        run_ordered(new.len() as u64, parallel_trials, monitor, fit, take_result)
    }

    /// Copies a trial's outcome at a rung from the state to the trial.
    fn record_outcome(&mut self, rung: usize, t: usize) {
        let epochs = self.rung_epoch(rung, t);
        let trial = &mut self.trials[t];
        if let Some(outcome) = self.state.outcomes.get(&(rung, t)) {
            trial.seconds += outcome.seconds;
            match &outcome.rmse {
                Ok(rmse) => {
                    trial.rungs = rung + 1;
                    // Overfitting is not held against a fit that can stop before it.
                    if trial.valid_rmse.is_nan()
                        || *rmse < trial.valid_rmse
                        || !can_stop_early(&trial.options)
                    {
                        (trial.valid_rmse, trial.epochs) = (*rmse, epochs);
                    }
                }
                Err(why) => (trial.valid_rmse, trial.error) = (f64::NAN, Some(why.clone())),
            }
        }
    }

    /// Returns the trials. Those with a lower error at an earlier rung than at the last one have its number of epochs as theirs.
    pub(super) fn into_trials(self) -> Vec<Trial> {
        let stops_early =
            |t: &Trial| t.rungs > 0 && t.epochs < self.rung_epoch(t.rungs - 1, t.number);
        let early: Vec<bool> = self.trials.iter().map(stops_early).collect();
        let mut trials = self.trials;
        for (trial, is_early) in trials.iter_mut().zip(early) {
            if is_early {
                trial.options.epochs = trial.epochs;
            }
        }
        trials
    }

    /// The epoch of a trial's first rung.
    fn first_rung_epoch(&self, t: usize) -> u64 {
        let all = last_epoch(&self.trials[t].options);
        let fraction = match self.search_options.rungs {
            1 => 1.0,
            rungs => EPOCH_FRACTION_BEFORE_LAST / 2f64.powi(rungs as i32 - 2),
        };
        ((all as f64 * fraction).round() as u64).max(1)
    }

    /// The epoch at which a trial is measured at a rung.
    fn rung_epoch(&self, rung: usize, t: usize) -> u64 {
        let all = last_epoch(&self.trials[t].options);
        if rung + 1 == self.search_options.rungs {
            all
        } else {
            (self.first_rung_epoch(t) << rung).min(all)
        }
    }

    /// The job that takes a trial to a rung.
    fn job(&mut self, rung: usize, t: usize) -> TrialJob {
        let mut options = self.trials[t].options.clone();
        // Every rung is measured, and a trial that starts over is measured as often as one that continues.
        options.eval_every = self.first_rung_epoch(t);
        (options.patience, options.tolerance, options.time_limit) = (0, 0.0, 0.0);
        // The search holds out entries of its own.
        options.valid_fraction = 0.0;
        // Pinned threads of several fits would share cores.
        options.threads = self.search_options.fit_threads as u64;
        options.pin = false;
        TrialJob {
            options,
            epoch: self.rung_epoch(rung, t),
            paused: Mutex::new(self.take_paused(t)),
        }
    }

    /// Removes and returns the fit of trial `t`, if it is paused.
    fn take_paused(&mut self, t: usize) -> Option<PausedFit> {
        let position = self.paused.iter().position(|(trial, _)| *trial == t)?;
        Some(self.paused.swap_remove(position).1)
    }

    /// Discards the models of paused trials that will not continue, or that exceed the memory limit.
    fn discard_models(&mut self, rung: usize, remaining: usize) {
        let is_last = rung + 1 == self.search_options.rungs;
        let limit = if is_last {
            0
        } else {
            remaining.div_ceil(REDUCTION_FACTOR)
        };
        let size = |(model, _): &PausedFit| model.memory_bytes();
        let mut bytes: usize = self.paused.iter().map(|(_, paused)| size(paused)).sum();
        while self.paused.len() > limit || bytes > MAX_PAUSED_BYTES {
            let rmse = |t: &usize| self.trials[*t].valid_rmse;
            let worst = self.paused.iter().map(|(t, _)| *t).max_by(|a, b| {
                let order = rmse(a).total_cmp(&rmse(b));
                order.then(a.cmp(b))
            });
            match worst.and_then(|t| self.take_paused(t)) {
                Some(paused) => bytes -= size(&paused),
                None => return,
            }
        }
    }

    /// Writes the state file, if there is one. A failure is a warning, the first time: the result does not depend on the file.
    pub(super) fn write_state(&mut self, observer: &mut dyn TuneObserver) {
        self.last_write = Instant::now();
        let Some(path) = self.search_options.state_path() else {
            return;
        };
        let error = self.state.save(path).err().map(|e| e.to_string());
        if let (Some(error), false) = (&error, self.has_warned) {
            self.has_warned = true;
            observer.warning(&format!(
                "the state of the search could not be written, and the search goes on without it: {error}"
            ));
        }
        self.state_error = error;
    }

    fn write_regularly(&mut self, observer: &mut dyn TuneObserver) {
        if self.last_write.elapsed() >= WRITE_INTERVAL {
            self.write_state(observer);
        }
    }
}

/// Samples up to `count` distinct trials, the plain fit first. A small space has fewer.
fn sample_trials(
    sampler: &TrialSampler<'_>,
    count: usize,
    monitor: &dyn Monitor,
) -> Result<Vec<Trial>> {
    let mut seen = HashSet::new();
    let mut trials: Vec<Trial> = Vec::new();
    for number in 0..count {
        check_cancelled(monitor)?;
        let mut options = match number {
            0 => sampler.first()?,
            n => sampler.sample(n as u64, 0)?,
        };
        let mut attempt = 1;
        while !seen.insert(options.to_text()) && attempt <= MAX_ATTEMPTS {
            options = sampler.sample(number as u64, attempt)?;
            attempt += 1;
        }
        if attempt > MAX_ATTEMPTS {
            break;
        }
        trials.push(Trial::new(number, options));
    }
    Ok(trials)
}

/// Returns whether the first epochs of a fit with these options are a fit with fewer epochs. Other learning-rate schedules depend on
/// the last epoch, and posterior samples are averaged.
fn can_stop_early(options: &Options) -> bool {
    let algorithm = options.algorithm.properties();
    let has_own_schedule =
        algorithm.has_learning_rate && options.schedule != LearningRateSchedule::Inverse;
    algorithm.has_single_model && !has_own_schedule
}

/// The last epoch of a fit with these options, or its last sweep.
fn last_epoch(options: &Options) -> u64 {
    match options.algorithm {
        Algorithm::Gibbs => options.burn_in.saturating_add(options.samples),
        _ => options.epochs,
    }
}

/// The caller's monitor, which also cancels when the time limit is reached or the observer stops the search.
pub(super) struct SearchMonitor<'a> {
    monitor: &'a dyn Monitor,
    deadline: Option<Instant>,
    is_stopped: Cell<bool>,
}

impl<'a> SearchMonitor<'a> {
    /// `time_limit` is in seconds; 0 for none.
    pub(super) fn new(
        monitor: &'a dyn Monitor,
        started: Instant,
        time_limit: f64,
    ) -> SearchMonitor<'a> {
        let limit = Duration::try_from_secs_f64(time_limit).ok();
        let limit = limit.filter(|_| time_limit > 0.0);
        SearchMonitor {
            monitor,
            deadline: limit.and_then(|limit| started.checked_add(limit)),
            is_stopped: Cell::new(false),
        }
    }

    /// Stops the search.
    pub(super) fn stop(&self) {
        self.is_stopped.set(true);
    }

    fn is_past_deadline(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Returns whether the time limit alone ended the search.
    pub(super) fn reached_time_limit(&self) -> bool {
        self.is_past_deadline() && !self.is_stopped.get() && !self.monitor.cancelled()
    }
}

impl Monitor for SearchMonitor<'_> {
    fn progress(&self, phase: &str, done: u64, total: u64) {
        self.monitor.progress(phase, done, total);
    }

    fn cancelled(&self) -> bool {
        self.is_stopped.get() || self.monitor.cancelled() || self.is_past_deadline()
    }
}
