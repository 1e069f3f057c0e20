//! Options found by trying: random search with successive halving.
//!
//! Trials are drawn from a space around what a plain fit would choose, which is the first of them. A trial is
//! one fit with all its epochs (of `gibbs`: sweeps) ahead of it, so that its steps are those of the fit that
//! its options are for. At every rung the trials that are left go on to some epoch, where they are measured
//! on entries that are held out; the best third goes on to the next rung, the last having all epochs. The
//! first epochs of a long fit predict its end as well as a short fit of as many epochs does, which would have
//! to be begun anew (docs/accuracy.md has the measurement).
//!
//! Trials run side by side, each on one thread. What they give depends on nothing but their options: a
//! trial that goes on from where it paused and one that is begun anew, because its model was let go or the
//! search was interrupted, come to the same bit. So neither the number of threads nor an interruption
//! changes the outcome.

mod space;
mod state;
mod trial;

pub use space::Space;
pub use trial::{Trial, TuneObserver, TuneOptions, TuneProgress, TuneResult, save};

use std::cell::Cell;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use space::Draws;
use state::{Given, State, fingerprint};

use super::algorithm_factory::kernel_level;
use super::driver::{Fit, FitState};
use super::gibbs_init::{GibbsStart, chain_rank};
use super::holdout_split::HoldoutSplit;
use super::hyperparameters::resolve_options;
use super::input::FitInput;
use super::observer::{Control, Observer, StopReason};
use super::sgd_init::{SgdStart, sgd_start};
use super::standardization::Standardization;
use crate::error::{Error, Result};
use crate::model::{Checkpoint, EpochMetrics, Model, check_target};
use crate::options::{Algorithm, Initialization, ModelKind, Options};
use crate::parallel::{StopFlag, available_threads, run_ordered};
use crate::problem::Problem;
use crate::progress::{Monitor, report_progress};
use crate::sort::stable_sort_by;

/// One in so many goes on to the next rung.
const FEWER: usize = 3;

/// The share of all epochs at the last rung but one; before, each has half of the next.
const BEFORE_LAST: f64 = 0.4;

/// Models of paused trials take no more memory than this; those with the largest errors are let go first.
const PAUSED_BYTES: usize = 1 << 30;

/// A trial that was drawn before is drawn again up to so often.
const REDRAWS: u64 = 100;

/// How often the state is written.
const WRITE_EVERY: Duration = Duration::from_secs(1);

/// Searches for better options than `options`, which are where the search begins: what they leave open is
/// settled as [`fit`](super::fit) does. Cancelling (by either watcher) and `time_limit` end it with what it
/// has, if any trial was measured.
pub fn tune(
    problem: &Problem<'_>,
    options: &Options,
    how: &TuneOptions<'_>,
    observer: &mut dyn TuneObserver,
    monitor: &dyn Monitor,
) -> Result<TuneResult> {
    let started = Instant::now();
    check(problem, options, how)?;
    let limited = Limited {
        monitor,
        end: (options.time_limit > 0.0)
            .then(|| started.checked_add(Duration::try_from_secs_f64(options.time_limit).ok()?))
            .flatten(),
        stopped: Cell::new(false),
    };
    let nothing_yet = |e: Error| match e {
        Error::Cancelled if limited.too_late() => Error::argument(format!(
            "time_limit = {}: the time was up before a trial was measured; give it more",
            options.time_limit
        )),
        e => e,
    };
    let resolved = resolve_options(problem, options, None, None, &limited).map_err(nothing_yet)?;
    let (base, standardization) = (resolved.options, resolved.standardization);
    let mut search = Search::new(problem, options, &base, standardization, how)?;
    let outcome = search.run(observer, &limited);
    search.save()?;
    let reason = match outcome {
        Ok(()) => StopReason::Epochs,
        Err(Error::Cancelled) if limited.too_late() => StopReason::TimeLimit,
        Err(Error::Cancelled) => StopReason::Cancelled,
        Err(e) => return Err(e),
    };
    let mut trials = search.trials;
    stable_sort_by(&mut trials, &|a, b| {
        let key = |t: &Trial| (t.failed.is_some(), std::cmp::Reverse(t.rungs));
        key(a)
            .cmp(&key(b))
            .then(a.valid_rmse.total_cmp(&b.valid_rmse))
            .then(a.number.cmp(&b.number))
    });
    if let Some(why) = trials.first().and_then(|t| t.failed.clone()) {
        return Err(Error::argument(format!(
            "every trial failed; one of them: {why}"
        )));
    }
    if trials.first().is_none_or(|t| t.rungs == 0) {
        return Err(nothing_yet(Error::Cancelled));
    }
    Ok(TuneResult {
        trials,
        reason,
        seconds: started.elapsed().as_secs_f64(),
    })
}

fn check(problem: &Problem<'_>, options: &Options, how: &TuneOptions<'_>) -> Result<()> {
    options.validate()?;
    let bad = |what: String| Err(Error::argument(what));
    if !(1..=1_000_000).contains(&how.trials) {
        return bad(format!("trials = {}: it must be 1 to 1000000", how.trials));
    }
    if !(1..=20).contains(&how.rungs) {
        return bad(format!("rungs = {}: it must be 1 to 20", how.rungs));
    }
    if !(1..=4096).contains(&how.fit_threads) {
        return bad(format!(
            "fit_threads = {}: it must be 1 to 4096",
            how.fit_threads
        ));
    }
    if !(how.fraction > 0.0 && how.fraction < 1.0) {
        return bad(format!(
            "fraction = {}: the part that is held out must be above 0 and below 1, such as 0.1",
            how.fraction
        ));
    }
    match &how.valid {
        Some(valid) if valid.is_empty() => {
            return bad(format!(
                "{}: without entries it cannot compare anything",
                valid.name()
            ));
        }
        None if problem.count() < 2 => {
            return bad(format!(
                "{}: has {} entries, of which none can be held out",
                problem.tensor().name(),
                problem.count()
            ));
        }
        _ => {}
    }
    if problem.count() == 0 {
        return bad(format!(
            "{}: without entries there is nothing to fit",
            problem.tensor().name()
        ));
    }
    if let Some(path) = how.checkpoint.as_ref().or(how.resume.as_ref()) {
        check_target(path)?;
    }
    Ok(())
}

/// A fit that can go on.
type Paused = (Model, Checkpoint);

/// A search under way.
struct Search<'a> {
    problem: &'a Problem<'a>,
    how: &'a TuneOptions<'a>,
    base: &'a Options,
    standardization: Option<Standardization>,
    holdout: Option<HoldoutSplit>,
    trials: Vec<Trial>,
    state: State,
    jobs: usize,
    saved: Instant,
    /// Trials that may go on from where they are.
    paused: Vec<(usize, Paused)>,
    /// What trials start from, by the rank that was drawn with.
    starts: Vec<(usize, GibbsStart)>,
}

impl<'a> Search<'a> {
    fn new(
        problem: &'a Problem<'a>,
        given: &Options,
        base: &'a Options,
        standardization: Option<Standardization>,
        how: &'a TuneOptions<'a>,
    ) -> Result<Search<'a>> {
        let draws = Draws::new(problem, &how.space, given, base)?;
        let mut seen = HashSet::new();
        let mut trials: Vec<Trial> = Vec::new();
        for number in 0..how.trials {
            let mut options = match number {
                0 => draws.first()?,
                n => draws.draw(n as u64, 0)?,
            };
            let mut attempt = 1;
            while !seen.insert(options.to_text()) && attempt <= REDRAWS {
                options = draws.draw(number as u64, attempt)?;
                attempt += 1;
            }
            if attempt > REDRAWS {
                // The space has no more.
                break;
            }
            trials.push(Trial {
                number,
                options,
                rungs: 0,
                epochs: 0,
                valid_rmse: f64::NAN,
                failed: None,
                seconds: 0.0,
            });
        }
        let weights = problem.matrix_weights(base)?;
        let kernel = kernel_level(base)?;
        let mut settings = format!(
            "{} {} {} {} {}\n",
            how.space.describe(),
            how.rungs,
            how.fraction.to_bits(),
            how.valid.is_some(),
            kernel.name(),
        );
        trials.iter().for_each(|t| settings += &t.to_text());
        let mut state = State {
            data: fingerprint(problem, &weights, how.valid.as_ref()),
            settings: u64::from(crc32fast::hash(settings.as_bytes())),
            given: Default::default(),
        };
        if let Some(path) = &how.resume {
            state.load(path)?;
        }
        let threads = match base.threads {
            0 => available_threads(),
            n => n as usize,
        };
        Ok(Search {
            problem,
            how,
            base,
            standardization,
            holdout: match how.valid {
                Some(_) => None,
                None => Some(HoldoutSplit::new(
                    how.fraction,
                    1.0 - how.fraction,
                    base.seed,
                )),
            },
            trials,
            state,
            jobs: (threads / how.fit_threads).max(1),
            saved: Instant::now(),
            paused: Vec::new(),
            starts: Vec::new(),
        })
    }

    fn run(&mut self, observer: &mut dyn TuneObserver, limited: &Limited<'_>) -> Result<()> {
        let mut alive: Vec<usize> = (0..self.trials.len()).collect();
        for rung in 0..self.how.rungs {
            self.measure(rung, &alive, observer, limited)?;
            // What may be cut short begins with the most promising.
            alive.retain(|&t| self.trials[t].failed.is_none());
            stable_sort_by(&mut alive, &|&a, &b| {
                let error = |t: usize| self.trials[t].valid_rmse;
                error(a).total_cmp(&error(b)).then(a.cmp(&b))
            });
            let kept = alive.len().div_ceil(FEWER);
            // The plain fit stays: what is better must be better to the end.
            let mut place = 0;
            alive.retain(|&t| {
                place += 1;
                place <= kept || t == 0
            });
        }
        Ok(())
    }

    /// Fits and measures some trials at a rung, those that are not known yet.
    fn measure(
        &mut self,
        rung: usize,
        alive: &[usize],
        observer: &mut dyn TuneObserver,
        limited: &Limited<'_>,
    ) -> Result<()> {
        let known = |t: &usize| self.state.given.contains_key(&(rung, *t));
        let (old, new): (Vec<usize>, Vec<usize>) = alive.iter().partition(|t| known(t));
        let mut best = f64::NAN;
        for t in old.iter().copied() {
            self.take_over(rung, t);
            best = best.min(self.trials[t].valid_rmse);
        }
        let jobs: Vec<Job> = new.iter().map(|&t| self.job(rung, t)).collect();
        self.draw(&jobs, limited)?;
        let (problem, how, holdout, side_by_side) =
            (self.problem, self.how, self.holdout, self.jobs);
        let (base, standardization) = (self.base.clone(), self.standardization.clone());
        let starts = self.starts.clone();
        let make = |i: u64, stop: &StopFlag| {
            let began = Instant::now();
            let Job {
                options: o,
                until,
                paused,
            } = &jobs[i as usize];
            let paused = paused.lock().unwrap_or_else(|e| e.into_inner()).take();
            // What is taken out is the same unless options say otherwise; biases move anyway.
            let same = (o.mean, o.biases, o.nonneg) == (base.mean, base.biases, base.nonneg);
            let input = FitInput {
                valid: how.valid.clone(),
                ..FitInput::default()
            };
            let measured = || {
                let rank = chain_rank(problem, o);
                let start = match starts.iter().find(|(of, _)| *of == rank) {
                    Some((_, start)) if o.start == Initialization::Gibbs && paused.is_none() => {
                        Some(start.initial_model(problem, o)?)
                    }
                    _ if o.start == Initialization::Sgd && paused.is_none() => {
                        match sgd_start(problem, o, holdout, None, &Stopped(stop))? {
                            SgdStart::Model(model) => Some(model),
                            SgdStart::Constant | SgdStart::Diverged(_) => None,
                        }
                    }
                    _ => None,
                };
                let state = FitState {
                    start,
                    standardization: standardization.clone().filter(|_| same),
                    holdout,
                    checkpoint: paused,
                    ..FitState::default()
                };
                let fit = fit_until(problem, o, &input, state, *until, &Stopped(stop))?;
                Ok((fit.validation_error()?, fit.into_checkpoint()?))
            };
            let measured = measured();
            (measured, began.elapsed().as_secs_f64())
        };
        let (done, total) = (old.len(), alive.len());
        let phase = format!("rung {} of {}", rung + 1, how.rungs);
        let take = |i: u64, (measured, seconds): (Result<(f64, Paused)>, f64)| {
            let t = new[i as usize];
            let error = match measured {
                Err(Error::Cancelled) => return Err(Error::Cancelled),
                Err(e) => Err(e.to_string()),
                Ok((x, paused)) if x.is_finite() => {
                    self.paused.push((t, paused));
                    Ok(x)
                }
                Ok(_) => Err("no entry could be measured".into()),
            };
            self.state.given.insert((rung, t), Given { error, seconds });
            self.take_over(rung, t);
            self.let_go(rung, alive.len());
            self.save_now_and_then()?;
            best = best.min(self.trials[t].valid_rmse);
            let done = done + i as usize + 1;
            let control = observer.trial(&TuneProgress {
                trial: &self.trials[t],
                rung: rung + 1,
                rungs: how.rungs,
                done,
                total,
                best,
            });
            if control == Control::Stop {
                limited.stopped.set(true);
            }
            report_progress(limited, &phase, done as u64, total as u64)
        };
        run_ordered(new.len() as u64, side_by_side, limited, make, take)
    }

    /// Draws what these trials start from, once for all of the same rank.
    fn draw(&mut self, jobs: &[Job], limited: &Limited<'_>) -> Result<()> {
        for Job {
            options, paused, ..
        } in jobs
        {
            let fresh = paused.lock().unwrap_or_else(|e| e.into_inner()).is_none();
            let rank = chain_rank(self.problem, options);
            let known = self.starts.iter().any(|(of, _)| *of == rank);
            if !fresh || options.start != Initialization::Gibbs || known {
                continue;
            }
            // The same whichever trial comes first.
            let o = Options {
                model: ModelKind::Cp,
                rank: vec![rank],
                ..self.base.clone()
            };
            let held_out = if self.holdout.is_some() {
                self.how.fraction
            } else {
                0.0
            };
            let start = GibbsStart::sample(self.problem, &o, held_out, None, limited)?;
            self.starts.push((rank, start));
        }
        Ok(())
    }

    /// Notes at the trial what it gave.
    fn take_over(&mut self, rung: usize, t: usize) {
        let epochs = self.until(rung, t);
        let trial = &mut self.trials[t];
        if let Some(given) = self.state.given.get(&(rung, t)) {
            trial.seconds += given.seconds;
            trial.epochs = epochs;
            match &given.error {
                Ok(error) => (trial.valid_rmse, trial.rungs) = (*error, rung + 1),
                Err(why) => (trial.valid_rmse, trial.failed) = (f64::NAN, Some(why.clone())),
            }
        }
    }

    /// The epochs of a trial until its first rung.
    fn unit(&self, t: usize) -> u64 {
        let all = last_epoch(&self.trials[t].options);
        let share = match self.how.rungs {
            1 => 1.0,
            rungs => BEFORE_LAST / 2f64.powi(rungs as i32 - 2),
        };
        ((all as f64 * share).round() as u64).max(1)
    }

    /// The epochs of a trial until a rung.
    fn until(&self, rung: usize, t: usize) -> u64 {
        let all = last_epoch(&self.trials[t].options);
        match rung + 1 == self.how.rungs {
            true => all,
            false => (self.unit(t) << rung).min(all),
        }
    }

    /// What is to be done for a trial at a rung.
    fn job(&mut self, rung: usize, t: usize) -> Job {
        let mut options = self.trials[t].options.clone();
        // So often that every rung is measured, and as often by a fit that goes on and one that does not.
        options.eval_every = self.unit(t);
        (options.patience, options.tolerance, options.time_limit) = (0, 0.0, 0.0);
        // Trials are compared on entries of their own.
        options.valid_fraction = 0.0;
        // Threads of several fits are not pinned to one core.
        (options.threads, options.pin) = (self.how.fit_threads as u64, false);
        Job {
            options,
            until: self.until(rung, t),
            paused: Mutex::new(self.take_paused(t)),
        }
    }

    /// Removes and returns the state of trial `t`, if it is paused.
    fn take_paused(&mut self, t: usize) -> Option<Paused> {
        let at = self.paused.iter().position(|(trial, _)| *trial == t)?;
        Some(self.paused.swap_remove(at).1)
    }

    /// Lets models go that will not go on, or that there is no room for.
    fn let_go(&mut self, rung: usize, alive: usize) {
        let last = rung + 1 == self.how.rungs;
        let most = if last { 0 } else { alive.div_ceil(FEWER) };
        let size = |(model, _): &Paused| model.memory_bytes();
        let mut bytes: usize = self.paused.iter().map(|(_, paused)| size(paused)).sum();
        while self.paused.len() > most || bytes > PAUSED_BYTES {
            let error = |t: &usize| self.trials[*t].valid_rmse;
            let worst = self.paused.iter().map(|(t, _)| *t).max_by(|a, b| {
                let order = error(a).total_cmp(&error(b));
                order.then(a.cmp(b))
            });
            match worst.and_then(|t| self.take_paused(t)) {
                Some(paused) => bytes -= size(&paused),
                None => return,
            }
        }
    }

    fn path(&self) -> Option<&PathBuf> {
        self.how.checkpoint.as_ref().or(self.how.resume.as_ref())
    }

    fn save(&mut self) -> Result<()> {
        self.saved = Instant::now();
        match self.path() {
            Some(path) => self.state.save(path),
            None => Ok(()),
        }
    }

    fn save_now_and_then(&mut self) -> Result<()> {
        match self.saved.elapsed() >= WRITE_EVERY {
            true => self.save(),
            false => Ok(()),
        }
    }
}

/// A trial on its way to a rung.
struct Job {
    options: Options,
    until: u64,
    /// Where it goes on, unless it begins anew.
    paused: Mutex<Option<Paused>>,
}

fn last_epoch(o: &Options) -> u64 {
    match o.algorithm {
        Algorithm::Gibbs => o.burn_in.saturating_add(o.samples.saturating_mul(o.thin)),
        _ => o.epochs,
    }
}

/// Runs a fit until after epoch `epoch`.
fn fit_until<'a>(
    problem: &Problem<'_>,
    options: &Options,
    input: &'a FitInput<'a>,
    state: FitState,
    epoch: u64,
    monitor: &dyn Monitor,
) -> Result<Fit<'a>> {
    let mut until = StopAfter(epoch);
    let mut fit = Fit::new(problem, options, input, state, &mut until, monitor)?;
    fit.run(&mut until, monitor)?;
    if monitor.cancelled() {
        return Err(Error::Cancelled);
    }
    Ok(fit)
}

/// Stops a fit after an epoch.
struct StopAfter(u64);

impl Observer for StopAfter {
    fn epoch(&mut self, metrics: &EpochMetrics) -> Control {
        if metrics.epoch >= self.0 {
            Control::Stop
        } else {
            Control::Continue
        }
    }
}

/// What ends a search besides its watcher.
struct Limited<'a> {
    monitor: &'a dyn Monitor,
    end: Option<Instant>,
    stopped: Cell<bool>,
}

impl Limited<'_> {
    fn out_of_time(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// Whether nothing but the time ended the search.
    fn too_late(&self) -> bool {
        self.out_of_time() && !self.stopped.get() && !self.monitor.cancelled()
    }
}

impl Monitor for Limited<'_> {
    fn progress(&self, phase: &str, done: u64, total: u64) {
        self.monitor.progress(phase, done, total);
    }

    fn cancelled(&self) -> bool {
        self.stopped.get() || self.monitor.cancelled() || self.out_of_time()
    }
}

/// Ends a fit of a trial with all others.
struct Stopped<'a>(&'a StopFlag);

impl Monitor for Stopped<'_> {
    fn cancelled(&self) -> bool {
        self.0.requested()
    }
}
