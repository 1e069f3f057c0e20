//! The life of a fit: start, epochs, errors, stopping, going back when it diverges, checkpoints.

mod baseline;
mod checkpoints;
mod finalize;
mod fit_state;
mod measure;
mod schedule;

use std::time::Instant;

use baseline::rescale;
use fit_state::check_validation;
pub(super) use fit_state::{Clock, Known, thread_pool};
use schedule::out_of_time;

use super::data::{self, Data, Entries, Held, How, Penalties, held_out};
use super::gibbs_init::Drawn;
use super::hyperparameters::settle;
use super::initialization;
use super::input::{FitInput, FitSummary};
use super::observer::{Control, Event, Observer, StopReason};
use super::resume::{
    PATIENCE, Progress, TOLERANCE, is_refit, other_data, resumed_options, same_shape,
};
use super::rowwise::{Begin, Solver};
use super::sgd::blocked::{Blocked, Pace, Plan};
use super::sgd::hogwild::LockFree;
use super::standardization::Centre;
use super::stepped::stepped;
use crate::error::{Error, Result};
use crate::format::CooView;
use crate::model::{EpochMetrics, Model, ParameterSnapshot, check_target, load_checkpoint};
use crate::options::{Algorithm, Initialization, Options};
use crate::parallel::ThreadPool;
use crate::problem::{MatrixKind, Problem};
use crate::progress::Monitor;
use crate::simd::Level;

/// A sum of squares met on the way that is this many times the first loss is an explosion.
pub(super) const EXPLOSION: f64 = 4.0;

/// A loss this many times the lowest so far is one too: a step size that suits does not do that. So are squared errors
/// on tensor entries, beside full matrices, that are as many times those before the epoch.
pub(super) const SETBACK: f64 = 1.5;

/// The same for the first epoch of a fit that finds its start itself: there is nothing to lose there, and a step that loses
/// anything at all is too large.
const FIRST_SETBACK: f64 = 1.05;

/// Fits a model to `problem`.
///
/// `monitor` sees the preparations and can cancel them with an error; later its cancellation ends the
/// fit, in the middle of an epoch if need be, with the model of the epoch before. `observer` sees
/// epochs and events and can end the fit after an epoch with the model as it is.
pub fn fit(
    problem: &Problem<'_>,
    options: &Options,
    input: &FitInput<'_>,
    observer: &mut dyn Observer,
    monitor: &dyn Monitor,
) -> Result<(Model, FitSummary)> {
    options.validate()?;
    if problem.count() == 0 {
        let what = match problem.tensor().is_empty() {
            true => "without entries there is nothing to fit",
            false => "all weights are 0; there is nothing to fit",
        };
        let name = problem.tensor().name();
        return Err(Error::argument(format!("{name}: {what}")));
    }
    check_validation(options, input)?;
    if input.init.is_some() && input.resume.is_some() {
        return Err(Error::argument(
            "a resumed fit has its own start; leave out the model to start from",
        ));
    }
    if let Some(path) = &input.checkpoint {
        check_target(path)?;
    }
    let mut known = Known {
        resumed: input.resume.as_deref().map(load_checkpoint).transpose()?,
        // What is tried before takes time, too.
        clock: Some(Clock::start()),
        ..Known::default()
    };
    for matrix in problem.matrices() {
        if matrix.is_constant && matrix.kind == MatrixKind::Observed && matrix.entries.len() > 1 {
            let event = Event::Warning(format!(
                "{}: all its entries have the same value, so that it teaches nothing; if what is not listed \
                 is 0, couple it as full, or sampled with a number of zeros for each entry",
                matrix.entries.name()
            ));
            event.record(&mut known.record, 0);
            observer.event(&event);
        }
    }
    let options = match &known.resumed {
        Some((saved, rest)) => {
            Progress::of(rest, input)?;
            resumed_options(options, saved.options())?
        }
        None => {
            let settled = settle(problem, options, input.init, known.clock, monitor)?;
            known.centre = settled.centre;
            let o = settled.options;
            known.start = match settled.drawn {
                Some(drawn) => Some(drawn.start(problem, &o)?),
                None if o.start == Initialization::Sgd && input.init.is_none() => {
                    let found = stepped(problem, &o, None, known.clock, monitor)?.transpose();
                    found.unwrap_or_else(|event| {
                        event.record(&mut known.record, 0);
                        observer.event(&event);
                        None
                    })
                }
                None => None,
            };
            o
        }
    };
    let fraction = options.valid_fraction;
    // A checkpoint may be from the time after.
    let holds = fraction > 0.0
        && known
            .resumed
            .as_ref()
            .is_none_or(|(_, s)| !is_refit(&s.state));
    known.held = holds.then(|| Held::new(fraction, 1.0 - fraction, options.seed));
    let centre = known.centre.clone().filter(|_| holds);
    let mut fit = Fit::new(problem, &options, input, known, observer, monitor)?;
    let mut reason = fit.run(observer, monitor)?;
    fit.last_checkpoint(observer)?;
    let ended = !matches!(reason, StopReason::TimeLimit | StopReason::Cancelled);
    if holds && options.refit && ended && fit.progress.epoch > 0 {
        let fit_epochs = fit.progress.epoch;
        let mut known = Known {
            centre,
            ..fit.into_refit()?
        };
        if options.start == Initialization::Gibbs && input.init.is_none() {
            // From what was held out before, too.
            let drawn = Drawn::new(problem, &options, 0.0, known.clock, monitor)?;
            known.start = Some(drawn.start(problem, &options)?);
        }
        let epochs = known.refit.as_ref().map_or(0, |(p, _)| p.refit);
        let event = Event::Refit { epochs };
        event.record(&mut known.record, fit_epochs);
        observer.event(&event);
        // What there is to say about ranks was said before.
        fit = Fit::new(problem, &options, input, known, &mut (), monitor)?;
        reason = match fit.run(observer, monitor)? {
            // Why the number of epochs is what it is.
            StopReason::Epochs => reason,
            other => other,
        };
        fit.last_checkpoint(observer)?;
    }
    fit.finish(reason, observer)
}

/// A fit whose options are all settled.
pub(super) struct Fit<'a> {
    options: Options,
    input: &'a FitInput<'a>,
    centre: Centre,
    data: Data,
    test: Option<Entries>,
    valid: Option<Entries>,
    model: Model,
    /// The parameters after the last epoch known to be good.
    good: ParameterSnapshot,
    /// The parameters before the present epoch.
    before: ParameterSnapshot,
    /// Those with the lowest validation error.
    best: Option<ParameterSnapshot>,
    progress: Progress,
    pool: ThreadPool,
    /// How `blocked` cuts the problem.
    plan: Option<Plan>,
    /// What `als` and `gibbs` work with.
    exact: Option<Solver>,
    level: Level,
    clock: Clock,
    /// The epoch of the last checkpoint, and when it was written.
    saved_epoch: u64,
    saved_at: Instant,
}

impl<'a> Fit<'a> {
    pub(super) fn new(
        problem: &Problem<'_>,
        options: &Options,
        input: &'a FitInput<'a>,
        known: Known,
        observer: &mut dyn Observer,
        monitor: &dyn Monitor,
    ) -> Result<Fit<'a>> {
        let clock = known.clock.unwrap_or_else(Clock::start);
        let goes_on = known.resumed.is_some();
        let Known {
            resumed,
            start: drawn,
            centre,
            held,
            refit,
            record,
            ..
        } = known;
        let mut options = options.clone();
        let level = match options.algorithm {
            // The paper's way, one number at a time.
            Algorithm::Naive => Level::Scalar,
            _ => Level::choose(options.kernel.level())?,
        };
        let pool = thread_pool(&options);
        let mut centre = match centre {
            Some(centre) => centre,
            None if options.algorithm == Algorithm::Gibbs => {
                Centre::before_draws(problem, &options, &pool, monitor)?
            }
            None => Centre::new(problem, &options, &pool, monitor)?,
        };
        if options.lambda_bias.is_empty() {
            options.lambda_bias.clone_from(&centre.damping);
        }
        let (mut model, lowered) = Model::zeros(problem, &options)?;
        let plan = (options.algorithm == Algorithm::Blocked)
            .then(|| Plan::new(problem, &model.shape, options.seed));
        centre.describe(&mut model)?;
        let weights = problem.matrix_weights(&options)?;
        let how = How {
            seed: options.seed,
            weights: &weights,
            mode_steps: &problem.mode_steps(&options)?,
            penalties: Penalties {
                lambda: options.lambda_reg.unwrap_or(0.0),
                per: options.penalty_per,
            },
            centre: &centre,
            held,
        };
        let mut data = Data::new(problem, &model.shape, how, plan.as_ref(), &pool, monitor)?;
        data.core_step = options.core_step.unwrap_or(1.0);
        let init = input.init.or(drawn.as_deref());
        model.record = record;
        for event in lowered.into_iter().map(Event::RankLowered) {
            // A fit to all entries lowers the same again.
            if refit.is_none() {
                event.record(&mut model.record, 0);
            }
            observer.event(&event);
        }
        initialization::fill(&mut model, problem, &data, &options, &pool)?;
        let (mut progress, mut best) = match refit {
            Some((progress, best)) => (progress, Some(best)),
            None => (Progress::new(), None),
        };
        if let Some((saved, rest)) = resumed {
            same_shape(&model, &saved, input)?;
            progress = Progress::of(&rest, input)?;
            let mut parameters = saved.snapshot()?;
            rescale(&centre, &mut parameters, false)?;
            model.restore(&parameters)?;
            model.history = saved.history.clone();
            model.record = saved.record.clone();
            model.samples = saved.samples;
            model.core_prior_mean = saved.core_prior_mean;
            for (mode, old) in model.modes.iter_mut().zip(saved.modes) {
                mode.prior.linear = old.prior.linear;
            }
            best = rest.best;
            best.iter_mut()
                .try_for_each(|b| rescale(&centre, b, false))?;
        } else {
            if let Some(init) = init {
                let fewer = input.init.is_none();
                initialization::from_model(&mut model, init, &centre, (options.nonneg, fewer))?;
            }
            initialization::pull(
                &mut model,
                &options,
                init.is_none_or(initialization::is_centred),
            );
        }
        for (mode, prior) in model.modes.iter().zip(&mut data.priors) {
            prior[..mode.prior.linear.len()].copy_from_slice(&mode.prior.linear);
        }
        let read = |view: &Option<CooView<'_>>| {
            view.as_ref()
                .map(|v| held_out(v, &model, &centre, &pool, monitor))
                .transpose()
        };
        let valid = match held {
            Some(held) => Some(data::held(problem, &model, &centre, held, &pool, monitor)?),
            None => read(&input.valid)?,
        };
        if let (Some(given), Some(0)) = (&input.valid, valid.as_ref().map(Entries::len)) {
            return Err(Error::argument(format!(
                "{}: all weights are 0; it cannot validate anything",
                given.name()
            )));
        }
        let mut crc = crc32fast::Hasher::new();
        valid.iter().for_each(|v| v.mark(&mut crc));
        let fingerprint = (u64::from(data.fingerprint()) << 32) | u64::from(crc.finalize());
        if goes_on && progress.data != fingerprint {
            return Err(other_data(input));
        }
        progress.data = fingerprint;
        let mut test = read(&input.test)?;
        let mut valid = valid;
        centre.take_biases(&model);
        for entries in test.iter_mut().chain(&mut valid).chain([&mut data.tensor]) {
            entries.take_out(&centre.biases, &pool)?;
        }
        let exact = match options.algorithm.is_rowwise() {
            true => {
                let begin = match (goes_on, init) {
                    (true, _) => Begin::Resumed,
                    (false, Some(init)) => Begin::From(init),
                    (false, None) => Begin::Anew,
                };
                let held = [test.as_ref(), valid.as_ref()];
                let how = (begin, level);
                Some(Solver::new(&mut model, &data, &options, how, held, &pool)?)
            }
            false => None,
        };
        let mut fit = Fit {
            exact,
            test,
            valid,
            centre,
            good: model.snapshot()?,
            before: model.snapshot()?,
            saved_epoch: progress.epoch,
            pool,
            plan,
            level,
            options,
            input,
            data,
            model,
            best,
            progress,
            clock,
            saved_at: Instant::now(),
        };
        if fit.options.start == Initialization::Gibbs && !goes_on {
            // Biases were found without the rows.
            fit.refit_biases()?;
            fit.good.update(&fit.model)?;
        }
        Ok(fit)
    }

    pub(super) fn run(
        &mut self,
        observer: &mut dyn Observer,
        monitor: &dyn Monitor,
    ) -> Result<StopReason> {
        if self.progress.first_loss.is_nan() {
            // What the starting values give: the yardstick for an explosion.
            let began = Instant::now();
            let (_, loss) = self.training_error(None)?;
            self.clock.eval_seconds += began.elapsed().as_secs_f64();
            self.progress.first_loss = loss.max(self.little_loss());
            self.progress.lowest_loss = loss;
            self.progress.last_loss = loss;
            if !loss.is_finite() {
                return Err(
                    self.diverged("the starting values already give a loss that is not finite")
                );
            }
        }
        if let Some(reason) = self.ended() {
            return Ok(reason);
        }
        let mut begins = self.watched_squares(None)?;
        while self.progress.epoch < self.last_epoch(self.progress.epoch) {
            if out_of_time(&self.options, self.clock.started) {
                return Ok(StopReason::TimeLimit);
            }
            let number = self.progress.epoch + 1;
            let eta = self.eta_of(number);
            self.before.update(&self.model)?;
            let began = Instant::now();
            let most = self.most_squares(begins);
            if self.exact.is_none() {
                self.full_matrices(eta, false)?;
            }
            let name = [number, self.progress.attempts];
            let (options, started) = (&self.options, self.clock.started);
            let mut cancelled = || monitor.cancelled() || out_of_time(options, started);
            let (model, pool) = (&mut self.model, &self.pool);
            let squares = match (&self.plan, &mut self.exact) {
                (_, Some(exact)) => {
                    exact.sweep(model, &self.centre.biases, number, pool, &mut cancelled)?
                }
                (Some(plan), None) => {
                    let blocked = Blocked {
                        data: &self.data,
                        plan,
                        options,
                        level: self.level,
                    };
                    let pace = Pace {
                        sweeps: self.progress.sweeps as usize,
                        error: self.progress.sweep_error,
                    };
                    let done = blocked.epoch(model, eta, pace, &name, pool, &mut cancelled)?;
                    done.map(|(squares, pace)| {
                        self.progress.sweeps = pace.sweeps as u64;
                        self.progress.sweep_error = pace.error;
                        squares
                    })
                }
                (None, None) => LockFree::new(&self.data, options, self.level).epoch(
                    model,
                    eta,
                    &name,
                    pool,
                    &mut cancelled,
                )?,
            };
            let mut known = None;
            if squares.is_some_and(f64::is_finite) {
                if self.exact.is_none() {
                    self.pull_core(eta);
                    self.full_matrices(eta, true)?;
                }
                known = self.refit_biases()?;
            }
            let Some(squares) = squares else {
                // An epoch that was not finished leaves no trace.
                self.model.restore(&self.before)?;
                return Ok(if monitor.cancelled() {
                    StopReason::Cancelled
                } else {
                    StopReason::TimeLimit
                });
            };
            let update_seconds = began.elapsed().as_secs_f64();
            self.clock.update_seconds += update_seconds;
            let mut figures = EpochMetrics {
                epoch: number,
                eta,
                loss: f64::NAN,
                train_rmse: f64::NAN,
                test_rmse: f64::NAN,
                valid_rmse: f64::NAN,
                update_seconds,
                eval_seconds: 0.0,
                entries_per_second: self.data.total() as f64 / update_seconds.max(1e-9),
            };
            let checkpoint = self.checkpoint_due(number);
            let evaluate = number.is_multiple_of(self.options.eval_every)
                || number >= self.last_epoch(number)
                || checkpoint;
            let ends = self.watched_squares(known)?;
            let fine = |squares: f64| squares.is_finite() && squares <= most;
            let mut exploded = !fine(squares) || !ends.is_none_or(fine);
            if evaluate && !exploded {
                self.evaluate(&mut figures, known)?;
                let lowest = self.progress.lowest_loss.max(self.little_loss());
                let setback = match number == 1 && self.input.init.is_none() {
                    true => FIRST_SETBACK,
                    false => SETBACK,
                };
                exploded = !figures.loss.is_finite()
                    || (self.exact.is_none() && figures.loss > setback * lowest)
                    || !self.model.is_finite();
            }
            if exploded {
                self.roll_back(observer)?;
                begins = self.watched_squares(None)?;
                continue;
            }
            begins = ends;
            self.progress.epoch = number;
            self.model.history.push(figures);
            let control = observer.epoch(&figures);
            let reason = self.after_epoch(&figures, evaluate, checkpoint, observer)?;
            if control == Control::Stop {
                return Ok(StopReason::Cancelled);
            }
            if let Some(reason) = reason {
                return Ok(reason);
            }
        }
        Ok(StopReason::Epochs)
    }

    /// Updates what is known to be good and best, writes the checkpoint, and decides whether to stop.
    fn after_epoch(
        &mut self,
        figures: &EpochMetrics,
        evaluated: bool,
        checkpoint: bool,
        observer: &mut dyn Observer,
    ) -> Result<Option<StopReason>> {
        if !evaluated {
            return Ok(None);
        }
        self.good.update(&self.model)?;
        let reason = self.decide(figures)?;
        if checkpoint {
            self.save_checkpoint(observer)?;
        }
        Ok(reason)
    }

    /// What the figures of an evaluated epoch mean for stopping and for the best model. Epochs that
    /// were measured only because they are the last or have a checkpoint decide nothing: a fit that
    /// is resumed must go the way of one that never stopped.
    fn decide(&mut self, figures: &EpochMetrics) -> Result<Option<StopReason>> {
        if !figures.epoch.is_multiple_of(self.options.eval_every) {
            return Ok(None);
        }
        let draws = self.draws();
        let progress = &mut self.progress;
        let change = (progress.last_loss - figures.loss).abs()
            / progress.last_loss.abs().max(f64::MIN_POSITIVE);
        progress.last_loss = figures.loss;
        progress.lowest_loss = progress.lowest_loss.min(figures.loss);
        let mut reason = None;
        // How long all entries are fitted to was found before.
        let found = progress.refit > 0;
        if !found && self.options.tolerance > 0.0 && change < self.options.tolerance {
            reason = Some(StopReason::Tolerance);
        }
        if self.valid.is_some() {
            if figures.valid_rmse < progress.best_valid {
                progress.best_valid = figures.valid_rmse;
                progress.best_epoch = figures.epoch;
                progress.since_best = 0;
                match &mut self.best {
                    // The mean of all samples is better than any one draw.
                    _ if draws => {}
                    Some(best) => best.update(&self.model)?,
                    None => self.best = Some(self.model.snapshot()?),
                }
            } else {
                progress.since_best += 1;
                if self.options.patience > 0 && progress.since_best >= self.options.patience {
                    reason = Some(StopReason::Patience);
                }
            }
        }
        self.progress.ended = match reason {
            Some(StopReason::Tolerance) => TOLERANCE,
            Some(StopReason::Patience) => PATIENCE,
            _ => 0,
        };
        Ok(reason)
    }

    /// Whether this is `gibbs`.
    fn draws(&self) -> bool {
        self.exact.as_ref().is_some_and(Solver::draws)
    }

    /// Back to the last good epoch with half the step size.
    fn roll_back(&mut self, observer: &mut dyn Observer) -> Result<()> {
        if self.progress.attempts >= self.options.attempts {
            return Err(self.diverged("the loss exploded"));
        }
        self.progress.attempts += 1;
        self.progress.eta_scale *= 0.5;
        self.restore_good()?;
        self.model
            .history
            .retain(|e| e.epoch <= self.progress.epoch);
        // Epochs that were not evaluated since the last good one are run again.
        let good = self
            .model
            .history
            .iter()
            .rposition(|e| e.loss.is_finite())
            .map_or(0, |k| k + 1);
        self.model.history.truncate(good);
        self.progress.epoch = good as u64;
        let event = Event::RolledBack {
            epoch: self.progress.epoch,
            eta: self.eta_of(self.progress.epoch + 1),
        };
        event.record(&mut self.model.record, self.progress.epoch);
        observer.event(&event);
        Ok(())
    }
}
