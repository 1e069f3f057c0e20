//! The entry point of a fit: checks the input, resolves options and starting values, and runs the driver.

use super::algorithm_factory::{check_memory, check_support};
use super::coupling_selection::select_couplings;
use super::driver::{Clock, Fit, FitMonitor, FitState};
use super::holdout_split::HoldoutSplit;
use super::hyperparameters::resolve_options;
use super::input::{FitInput, FitSummary};
use super::observer::{Event, Observer, Selection};
use super::outliers::describe_outlier;
use super::resume::{Progress, resumed_options};
use super::support_check::check_start;
use super::unprepared::unprepared_model;
use super::value_scale::{check_magnitudes, unit_selections};
use crate::error::{Error, Result};
use crate::format::check_target;
use crate::model::{FitRecord, Model, load_checkpoint};
use crate::options::{Algorithm, Options};
use crate::problem::{MatrixKind, Problem};
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
    let state = FitState {
        checkpoint: input.resume.as_deref().map(load_checkpoint).transpose()?,
        ..FitState::default()
    };
    let options = match &state.checkpoint {
        Some((saved_model, saved)) => {
            Progress::from_checkpoint(saved, input)?;
            let options = resumed_options(options, saved_model.options())?;
            // Those of the checkpoint were not checked before.
            check(problem, &options, input)?;
            options
        }
        None => options.clone(),
    };
    let monitor = FitMonitor::new(monitor, clock, options.time_limit);
    match fit_with_monitor(problem, &options, input, state, observer, &monitor) {
        Err(Error::Cancelled) => unprepared_model(problem, &options, input, observer, &monitor),
        result => result,
    }
}

fn fit_with_monitor(
    problem: &Problem<'_>,
    options: &Options,
    input: &FitInput<'_>,
    mut state: FitState,
    observer: &mut dyn Observer,
    monitor: &FitMonitor<'_>,
) -> Result<(Model, FitSummary)> {
    let initialization = trace::span(SpanKind::Initialization);
    let mut options = options.clone();
    warn_of_unused_options(&options, &mut state.record, observer);
    let (mut kinds, mut selected_matrices) = (problem.matrix_kinds(), Vec::new());
    match &state.checkpoint {
        Some((saved, _)) => {
            let saved = problem.matrices().iter().zip(&saved.matrices);
            for (kind, (matrix, saved)) in kinds.iter_mut().zip(saved) {
                if matrix.may_be_full {
                    *kind = saved.kind;
                }
            }
        }
        None => {
            report_data(problem, &options, &mut state.record, observer);
            if options.is_zero_filled() {
                report_zero_filled(problem, &mut state.record, observer);
            }
            if let Some(selected) = select_couplings(problem, &options, input, monitor)? {
                selected.report(problem, &mut state.record, observer);
                selected_matrices = selected.numbers().collect();
                (options.lambda_m, kinds) = (selected.lambda_m, selected.kinds);
            }
        }
    }
    let weights = problem.matrix_weights(&options);
    for (m, matrix) in problem.matrices().iter().enumerate() {
        let is_observed = kinds[m] == MatrixKind::Observed && !options.is_zero_filled();
        let is_given = is_observed && weights[m] > 0.0 && !selected_matrices.contains(&m);
        let name = matrix.entries.name();
        match matrix.refused_full_size {
            Some(size) if is_observed => {
                warn_of_large_matrix(name, size, &mut state.record, observer);
            }
            _ if matrix.is_constant && is_given && matrix.entries.len() > 1 => {
                warn_of_constant_matrix(name, &mut state.record, observer);
            }
            _ => {}
        }
    }
    check_memory(problem, &kinds, &options, input.init)?;
    let changed = problem.with_matrices(&kinds, &options, monitor)?;
    let problem = changed.as_ref().unwrap_or(problem);
    if state.checkpoint.is_none() {
        options = resolve(problem, &options, input, &mut state, observer, monitor)?;
    }
    state.holdout = HoldoutSplit::for_validation(&options);
    let mut fit = Fit::new(problem, &options, input, state, observer, monitor)?;
    drop(initialization);
    let reason = fit.run(observer)?;
    fit.save_last_checkpoint(observer)?;
    fit.finish(problem, reason, observer)
}

/// Resolves options and starting values of a new fit. Returns the options; the rest goes into `state`.
fn resolve(
    problem: &Problem<'_>,
    options: &Options,
    input: &FitInput<'_>,
    state: &mut FitState,
    observer: &mut dyn Observer,
    monitor: &FitMonitor<'_>,
) -> Result<Options> {
    let mut resolved = resolve_options(problem, options, input.init, monitor)?;
    for selection in std::mem::take(&mut resolved.selections) {
        selection.report(&mut state.record, 0, observer);
    }
    state.start = resolved.take_start_model(problem, monitor)?;
    state.standardization = resolved.standardization;
    // Not before: `tune` may search the options that decide these.
    resolved.options.make_effective();
    Ok(resolved.options)
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

/// Warns of options that were given although the algorithm does not use them.
fn warn_of_unused_options(options: &Options, record: &mut FitRecord, observer: &mut dyn Observer) {
    let unused = options.unused();
    if !unused.is_empty() {
        let (algorithm, names) = (options.algorithm.name(), unused.join(", "));
        let event = Event::Warning(format!("not used by {algorithm}: {names}"));
        event.record(record, 0);
        observer.event(&event);
    }
}

/// Reports the units of weights and values that are not 1, and warns of a value or a weight beside which all others hardly count.
fn report_data(
    problem: &Problem<'_>,
    options: &Options,
    record: &mut FitRecord,
    observer: &mut dyn Observer,
) {
    for selection in unit_selections(problem, options) {
        selection.report(record, 0, observer);
    }
    let tensor = [(problem.tensor(), problem.outlier())].into_iter();
    let matrices = problem.matrices().iter();
    for (entries, outlier) in tensor.chain(matrices.map(|m| (&m.entries, m.outlier()))) {
        let outlier = outlier.map(|outlier| describe_outlier(entries.name(), &outlier));
        let concentration = entries.weights.is_concentrated.then(|| {
            format!(
                "{}: few entries have nearly all of the weight, so that the others hardly count; limit the largest weights",
                entries.name()
            )
        });
        for text in outlier.into_iter().chain(concentration) {
            let event = Event::Warning(text);
            event.record(record, 0);
            observer.event(&event);
        }
    }
}

/// Adds to the record that cells of observed matrices without an entry are taken as 0.
fn report_zero_filled(problem: &Problem<'_>, record: &mut FitRecord, observer: &mut dyn Observer) {
    let matrices = problem.matrices().iter();
    for matrix in matrices.filter(|m| m.kind == MatrixKind::Observed) {
        let what = format!("matrix {}", matrix.entries.name());
        let text = "full (cells without an entry are 0)".to_string();
        Selection::new(&what, text).report(record, 0, observer);
    }
}

/// Warns of an observed matrix whose entries all have the same value.
/// Says why a fit does not try zeros in the unlisted cells of a matrix of equal values.
fn warn_of_large_matrix(
    name: &str,
    size: u64,
    record: &mut FitRecord,
    observer: &mut dyn Observer,
) {
    let event = Event::Warning(format!(
        "{name}: all its entries have the same value, and cells that it does not list are taken as unknown: with zeros there \
         the model would have {size} rows and columns, far more than there are entries; state smaller sizes, or couple it as \
         full, or sampled with a number of zeros for each entry"
    ));
    event.record(record, 0);
    observer.event(&event);
}

fn warn_of_constant_matrix(name: &str, record: &mut FitRecord, observer: &mut dyn Observer) {
    let event = Event::Warning(format!(
        "{name}: all its entries have the same value, so that it carries no information; if unlisted \
         cells are 0, couple it as full, or sampled with a number of zeros for each entry"
    ));
    event.record(record, 0);
    observer.event(&event);
}
