//! The entry points of a fit: checks the input, lets the planner prepare the fit, and runs the driver.

use super::algorithm_factory::{check_memory, check_support};
use super::driver::{Clock, Fit, FitMonitor, FitState};
use super::holdout_split::HoldoutSplit;
use super::input::{FitInput, FitSummary};
use super::observer::Observer;
use super::plan_report::warn_of_unused_options;
use super::planner::{self, Prepared};
use super::resume::{Progress, resumed_options};
use super::support_check::check_start;
use super::unprepared::unprepared_model;
use super::value_scale::check_magnitudes;
use crate::error::{Error, Result};
use crate::fit_plan::FitPlan;
use crate::format::check_target;
use crate::model::{Checkpoint, Model, load_checkpoint};
use crate::options::{Algorithm, Options};
use crate::problem::Problem;
use crate::progress::Monitor;
use crate::trace::{self, SpanKind};

/// Fewest training entries that `valid_fraction` may leave. The initialization holds out a twentieth of them, and standard
/// deviations need two of the others.
const MIN_TRAINING_ENTRIES: u64 = 3;

/// Fits a model to `problem`.
///
/// `monitor` sees the preparations and can cancel the fit at any time, in the middle of an epoch if need be. The result is the model
/// of the last complete epoch. Before the first epoch it is that of the starting values, or, if the cancellation also cuts these
/// short, the model to start from or else one that predicts the mean of the values: a comparison of matrices or of noise models
/// that is cancelled decides nothing. `observer` sees epochs and events and can end the fit after an epoch with the model as it is.
///
/// The option `time_limit` counts from the call. Once it has passed, the fit ends like a cancelled one, but preparations may
/// last half a second longer.
pub fn fit(
    problem: &Problem<'_>,
    options: &Options,
    input: &FitInput<'_>,
    observer: &mut dyn Observer,
    monitor: &dyn Monitor,
) -> Result<(Model, FitSummary)> {
    // The time of the preparations counts.
    let clock = Clock::start();
    check(problem, options, input)?;
    let Some(path) = &input.resume else {
        let monitor = FitMonitor::new(monitor, clock, options.time_limit);
        let prepared = {
            let _span = trace::span(SpanKind::Initialization);
            planner::make_plan(problem, options, input, observer, &monitor)
        };
        return train_or_stop(problem, prepared, options, input, observer, &monitor);
    };
    let (saved_model, saved) = load_checkpoint(path, options.external_algorithms)?;
    Progress::from_checkpoint(&saved, saved_model.options(), input)?;
    let options = resumed_options(options, saved_model.options())?;
    // Those of the checkpoint were not checked before.
    check(problem, &options, input)?;
    let monitor = FitMonitor::new(monitor, clock, options.time_limit);
    let saved = (saved_model, saved);
    let prepared = {
        let _span = trace::span(SpanKind::Initialization);
        resume(problem, &options, input, saved, observer, &monitor)
    };
    train_or_stop(problem, prepared, &options, input, observer, &monitor)
}

/// Makes the plan of a fit without training. `problem`, `options` and `input` are those of [`fit`]; it takes as long as the
/// preparations of the fit, and `observer` sees the same events.
pub fn plan(
    problem: &Problem<'_>,
    options: &Options,
    input: &FitInput<'_>,
    observer: &mut dyn Observer,
    monitor: &dyn Monitor,
) -> Result<FitPlan> {
    let clock = Clock::start();
    refuse_resumed(input)?;
    check(problem, options, input)?;
    let monitor = FitMonitor::new(monitor, clock, options.time_limit);
    let mut prepared = planner::make_plan(problem, options, input, observer, &monitor)?;
    let plan = prepared.fit.model.plan.take();
    plan.ok_or_else(|| Error::argument("the fit has no plan"))
}

/// Fits a model as a plan says. It has the same parameters, bit by bit, as that of the fit whose plan it is, where that is
/// reproducible (not with `opt` and `naive` on several threads).
///
/// `options` give the threads and the other options of the machine; others must be those of the plan or the defaults.
/// Sampled zeros are those of the problem, which has to be built with the seed of the plan.
pub fn train(
    problem: &Problem<'_>,
    plan: &FitPlan,
    options: &Options,
    input: &FitInput<'_>,
    observer: &mut dyn Observer,
    monitor: &dyn Monitor,
) -> Result<(Model, FitSummary)> {
    let clock = Clock::start();
    refuse_resumed(input)?;
    let planned = planner::planned_options(plan, options)?;
    check(problem, &planned, input)?;
    let monitor = FitMonitor::new(monitor, clock, planned.time_limit);
    let prepared = {
        let _span = trace::span(SpanKind::Initialization);
        planner::follow_plan(problem, plan, options, input, observer, &monitor)
    };
    train_or_stop(problem, prepared, &planned, input, observer, &monitor)
}

fn refuse_resumed(input: &FitInput<'_>) -> Result<()> {
    match input.resume {
        Some(_) => Err(Error::argument(
            "a resumed fit has its plan in the checkpoint; leave out one of both",
        )),
        None => Ok(()),
    }
}

/// Runs the epochs of a prepared fit. Preparations that were cut short give a model of what there is.
fn train_or_stop<'p>(
    problem: &Problem<'p>,
    prepared: Result<Prepared<'_, 'p>>,
    options: &Options,
    input: &FitInput<'_>,
    observer: &mut dyn Observer,
    monitor: &FitMonitor<'_>,
) -> Result<(Model, FitSummary)> {
    let trained = prepared.and_then(|prepared| {
        let Prepared { mut fit, changed } = prepared;
        let reason = fit.run(observer)?;
        fit.save_last_checkpoint(observer)?;
        fit.finish(changed.as_ref().unwrap_or(problem), reason, observer)
    });
    match trained {
        Err(Error::Cancelled) => unprepared_model(problem, options, input, observer, monitor),
        result => result,
    }
}

/// Prepares a fit from its checkpoint.
fn resume<'a, 'p>(
    problem: &Problem<'p>,
    options: &Options,
    input: &'a FitInput<'a>,
    (saved_model, saved): (Model, Checkpoint),
    observer: &mut dyn Observer,
    monitor: &'a FitMonitor<'a>,
) -> Result<Prepared<'a, 'p>> {
    let mut kinds = problem.matrix_kinds();
    let matrices = problem.matrices().iter().zip(&saved_model.matrices);
    for (kind, (matrix, saved)) in kinds.iter_mut().zip(matrices) {
        if matrix.may_be_full {
            *kind = saved.kind;
        }
    }
    check_memory(problem, &kinds, options, input.init)?;
    let changed = problem.with_matrices(&kinds, options, monitor)?;
    let mut plan = saved_model.plan.clone();
    let mut state = FitState {
        checkpoint: Some((saved_model, saved)),
        holdout: HoldoutSplit::for_validation(options),
        ..FitState::default()
    };
    warn_of_unused_options(options, &mut state.record, observer);
    let fitted = changed.as_ref().unwrap_or(problem);
    let mut fit = Fit::new(fitted, options, input, state, observer, monitor)?;
    // The number of epochs may have changed.
    if let Some(plan) = &mut plan {
        plan.options = FitPlan::portable_options(&fit.context.options);
    }
    fit.model.plan = plan;
    Ok(Prepared { fit, changed })
}

/// Returns an error for options and inputs that contradict each other or leave nothing to fit.
fn check(problem: &Problem<'_>, options: &Options, input: &FitInput<'_>) -> Result<()> {
    options.validate()?;
    if problem.count() == 0 {
        let what = if problem.tensor().is_empty() {
            "without entries there is nothing to fit"
        } else {
            "all weights are 0; there is nothing to fit"
        };
        let name = problem.tensor().name();
        return Err(Error::argument(format!("{name}: {what}")));
    }
    check_magnitudes(problem)?;
    check_matrix_weights(problem, options)?;
    if let Some(init) = input.init {
        check_start(options, init)?;
    }
    check_support(problem, options)?;
    check_validation(options, input)?;
    check_split(problem, options)?;
    if input.init.is_some() && input.resume.is_some() {
        return Err(Error::argument(
            "a resumed fit has its own start; leave out the model to start from",
        ));
    }
    match &input.checkpoint {
        Some(path) => check_target(path),
        None => Ok(()),
    }
}

/// Checks that there is one weight for all matrices, or one for each.
pub(super) fn check_matrix_weights(problem: &Problem<'_>, options: &Options) -> Result<()> {
    let (given, matrices) = (options.lambda_m.len(), problem.matrices().len());
    if given > 1 && given != matrices {
        return Err(Error::argument(format!(
            "lambda_m has {given} numbers; the number of matrices and graphs is {matrices}, and it must have one for each, or \
             one for all"
        )));
    }
    Ok(())
}

/// Checks that there is exactly one source of validation entries where the options need one.
fn check_validation(options: &Options, input: &FitInput<'_>) -> Result<()> {
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

/// Returns an error if `valid_fraction` leaves no entry to train on, or none to validate with.
fn check_split(problem: &Problem<'_>, options: &Options) -> Result<()> {
    let Some(split) = HoldoutSplit::for_validation(options) else {
        return Ok(());
    };
    let tensor = problem.tensor();
    let (mut training, mut held_out) = (0u64, 0u64);
    for i in 0..tensor.len() {
        if tensor.view().weight(i)? != Some(0.0) {
            training += u64::from(split.is_training(i));
            held_out += u64::from(split.is_held_out(i));
        }
        if training >= MIN_TRAINING_ENTRIES && held_out > 0 {
            return Ok(());
        }
    }
    let fraction = options.valid_fraction;
    let count = problem.count();
    let name = tensor.name();
    Err(Error::argument(if held_out == 0 {
        format!(
            "{name}: valid_fraction {fraction} of {count} entries holds out none to validate with; give a larger fraction"
        )
    } else {
        format!(
            "{name}: valid_fraction {fraction} of {count} entries leaves {training} to train on, too few to fit to; give a \
             smaller fraction"
        )
    }))
}
