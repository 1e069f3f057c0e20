//! What a fit does: every choice is made here, before training, and stated in a [`FitPlan`].
//!
//! [`make_plan`] decides how matrices are coupled, resolves the options, prepares the fit and completes its start. What was
//! computed on the way is the start of the fit and is not computed twice. [`follow_plan`] prepares the same fit from a plan
//! alone and chooses nothing.

use super::algorithm_factory::{check_memory, flops_per_entry, further_bytes};
use super::coupling_selection::select_couplings;
use super::driver::{Fit, FitMonitor, FitState, thread_pool};
use super::fit_sizes::FitSizes;
use super::gibbs_init::GibbsStart;
use super::holdout_split::HoldoutSplit;
use super::hyperparameters::resolve_options;
use super::input::FitInput;
use super::observer::Observer;
use super::plan_report::{
    report_data, report_zero_filled, warn_of_matrices, warn_of_unused_options,
};
use super::standardization::Standardization;
use crate::error::{Error, Result};
use crate::fit_plan::{Choice, DataIdentity, Estimate, FitPlan, MatrixPlan, StartPlan, ValuesPlan};
use crate::model::FitRecord;
use crate::options::{Algorithm, OptionRole, Options};
use crate::problem::{MatrixKind, Problem};

/// A fit before its first epoch, and the problem that it fits if that is not the caller's.
pub(super) struct Prepared<'a, 'p> {
    pub fit: Fit<'a>,
    pub changed: Option<Problem<'p>>,
}

/// Makes the plan of a fit of `options` and prepares the fit. The plan is that of the model of the fit.
pub(super) fn make_plan<'a, 'p>(
    problem: &Problem<'p>,
    options: &Options,
    input: &'a FitInput<'a>,
    observer: &mut dyn Observer,
    monitor: &'a FitMonitor<'a>,
) -> Result<Prepared<'a, 'p>> {
    let (mut options, mut record) = (options.clone(), FitRecord::default());
    warn_of_unused_options(&options, &mut record, observer);
    report_data(problem, &options, &mut record, observer);
    if options.is_zero_filled() {
        report_zero_filled(problem, &mut record, observer);
    }
    let mut choices: Vec<Choice> = Vec::new();
    let (mut kinds, mut compared) = (problem.matrix_kinds(), Vec::new());
    if let Some(selected) = select_couplings(problem, &options, input, monitor)? {
        for choice in selected.choices() {
            choice.report(&mut record, 0, observer);
            choices.push(choice.clone());
        }
        compared = selected.numbers().collect();
        (options.lambda_m, kinds) = (selected.lambda_m, selected.kinds);
    }
    warn_of_matrices(problem, &options, &kinds, &compared, &mut record, observer);
    check_memory(problem, &kinds, &options, input.init)?;
    let data = DataIdentity::of(problem, input.valid.as_ref(), monitor)?;
    let changed = problem.with_matrices(&kinds, &options, monitor)?;
    let matrices = matrix_plans(problem, &kinds, &options);
    let problem = changed.as_ref().unwrap_or(problem);
    let mut resolved = resolve_options(problem, &options, input.init, monitor)?;
    for choice in std::mem::take(&mut resolved.selections) {
        choice.report(&mut record, 0, observer);
        choices.push(choice);
    }
    let start = resolved.start_plan(input.init);
    let state = FitState {
        start: resolved.take_start_model(problem, monitor)?,
        standardization: resolved.standardization,
        holdout: HoldoutSplit::for_validation(&resolved.options),
        record,
        ..FitState::default()
    };
    // Not before: `tune` may search the options that decide these.
    resolved.options.make_effective();
    let mut fit = Fit::new(problem, &resolved.options, input, state, observer, monitor)?;
    let (noise, chosen) = fit.prepare(None)?;
    for choice in chosen {
        choice.report(&mut fit.model.record, 0, observer);
        choices.push(choice);
    }
    let standardization = &fit.context.standardization;
    let plan = FitPlan {
        data,
        ranks: fit.model.shape.ranks().to_vec(),
        matrices,
        values: ValuesPlan {
            mean: standardization.mean,
            scale: standardization.scale,
            bias_damping: standardization.bias_damping.clone(),
            estimates_damping: options.lambda_bias.is_empty(),
        },
        noise,
        start,
        estimate: estimate(problem, &fit.context.options, input),
        choices,
        options: FitPlan::portable_options(&fit.context.options),
    };
    fit.model.plan = Some(plan);
    Ok(Prepared { fit, changed })
}

/// Prepares the fit that a plan describes. `options` are those of the machine, and others as far as they agree with the plan.
pub(super) fn follow_plan<'a, 'p>(
    problem: &Problem<'p>,
    plan: &FitPlan,
    options: &Options,
    input: &'a FitInput<'a>,
    observer: &mut dyn Observer,
    monitor: &'a FitMonitor<'a>,
) -> Result<Prepared<'a, 'p>> {
    let mut options = planned_options(plan, options)?;
    check_matrices(problem, plan)?;
    let data = DataIdentity::of(problem, input.valid.as_ref(), monitor)?;
    data.check_plan(&plan.data)?;
    check_start(plan, input)?;
    let mut record = FitRecord::default();
    report_data(problem, &options, &mut record, observer);
    let kinds: Vec<MatrixKind> = plan.matrices.iter().map(|m| m.kind).collect();
    // Matrices without a weight of their own were compared.
    let matrices = problem.matrices().iter().enumerate();
    let compared = matrices.filter(|(_, m)| m.weight.is_none());
    let compared: Vec<usize> = compared.map(|(m, _)| m).collect();
    warn_of_matrices(problem, &options, &kinds, &compared, &mut record, observer);
    if problem.matrices().iter().any(|m| m.weight.is_none()) {
        options.lambda_m = plan.matrices.iter().map(|m| m.weight).collect();
    }
    check_memory(problem, &kinds, &options, input.init)?;
    let changed = problem.with_matrices(&kinds, &options, monitor)?;
    let problem = changed.as_ref().unwrap_or(problem);
    let standardization = {
        let mut estimated = options.clone();
        if plan.values.estimates_damping {
            estimated.lambda_bias.clear();
        }
        Standardization::new(problem, &estimated, &thread_pool(&options, monitor))?
    };
    let start = match plan.start {
        StartPlan::Chain { sweeps, .. } => {
            let held_out = options.valid_fraction;
            let chain = GibbsStart::sample(problem, &options, held_out, Some(sweeps), monitor)?;
            Some(chain.initial_model(problem, &options, monitor)?)
        }
        StartPlan::Option | StartPlan::Model { .. } => None,
    };
    for choice in &plan.choices {
        choice.report(&mut record, 0, observer);
    }
    let state = FitState {
        start,
        standardization: Some(standardization),
        holdout: HoldoutSplit::for_validation(&options),
        record,
        ..FitState::default()
    };
    let mut fit = Fit::new(problem, &options, input, state, observer, monitor)?;
    fit.prepare(plan.noise.as_ref())?;
    fit.model.plan = Some(plan.clone());
    Ok(Prepared { fit, changed })
}

/// Returns the options of a plan with those of the machine in `given`. Another value that `given` sets must be the planned one.
pub(super) fn planned_options(plan: &FitPlan, given: &Options) -> Result<Options> {
    let (mut options, defaults) = (plan.options.clone(), Options::default());
    for option in plan.options.all_options() {
        let [value, planned, default] = [given, &plan.options, &defaults]
            .map(|o| o.get(option.name).unwrap_or(option.default.into()));
        if option.has_role(OptionRole::NotSaved) {
            options.set(option.name, &value)?;
        } else if value != planned && (given.given.contains(&option.name) || value != default) {
            return Err(Error::argument(format!(
                "{} is {value} here and {planned} in the plan; a plan fixes it (make another one with --dry-run to change it)",
                option.name
            )));
        }
    }
    options.given.clear();
    options.validate()?;
    Ok(options)
}

/// Checks that the matrices of the problem are those of the plan: what the problem leaves open, the plan says.
fn check_matrices(problem: &Problem<'_>, plan: &FitPlan) -> Result<()> {
    let matrices = problem.matrices();
    let differ = |m: usize, what: &str, here: String, there: String| {
        Error::argument(format!(
            "matrix {}: {what} is {here} here and {there} in the plan",
            m + 1
        ))
    };
    let number = |x: Option<f64>| x.map_or("that of the fit".into(), |x| x.to_string());
    if matrices.len() != plan.matrices.len() {
        let (here, there) = (matrices.len(), plan.matrices.len());
        return Err(Error::argument(format!(
            "the plan is for {there} matrices and graphs; there are {here}"
        )));
    }
    for (m, (matrix, planned)) in matrices.iter().zip(&plan.matrices).enumerate() {
        if matrix.mode != planned.mode {
            let modes = [matrix.mode, planned.mode].map(|mode| (mode + 1).to_string());
            let [here, there] = modes;
            return Err(differ(m, "its mode", here, there));
        }
        let is_open = matrix.may_be_full && planned.kind == MatrixKind::Full;
        if matrix.kind != planned.kind && !is_open {
            let (here, there) = (matrix.kind.to_string(), planned.kind.to_string());
            return Err(differ(m, "its kind", here, there));
        }
        if matrix.weight.is_some_and(|weight| weight != planned.weight) {
            let (here, there) = (number(matrix.weight), planned.weight.to_string());
            return Err(differ(m, "its weight", here, there));
        }
        if matrix.penalty != planned.penalty {
            let (here, there) = (number(matrix.penalty), number(planned.penalty));
            return Err(differ(m, "its penalty", here, there));
        }
    }
    if plan.ranks.len() != problem.order() {
        let (here, there) = (problem.order(), plan.ranks.len());
        return Err(Error::argument(format!(
            "the plan is for {there} modes; the tensor has {here}"
        )));
    }
    Ok(())
}

/// Checks that a model to start from is given if, and only if, the plan starts from it.
fn check_start(plan: &FitPlan, input: &FitInput<'_>) -> Result<()> {
    let wrong = |what: &str| Err(Error::argument(what));
    match (&plan.start, input.init) {
        (StartPlan::Model { checksum }, Some(init)) if init.checksum() != *checksum => {
            wrong("the plan starts from another model than the given one")
        }
        (StartPlan::Model { .. }, None) => wrong("the plan starts from a model; give it (init)"),
        (StartPlan::Option | StartPlan::Chain { .. }, Some(_)) => {
            wrong("the plan does not start from a model; leave out the one to start from")
        }
        _ => Ok(()),
    }
}

fn matrix_plans(problem: &Problem<'_>, kinds: &[MatrixKind], options: &Options) -> Vec<MatrixPlan> {
    let matrices = problem.matrices().iter().zip(kinds);
    let matrices = matrices.zip(problem.matrix_weights(options));
    let plans = matrices.map(|((matrix, &kind), weight)| MatrixPlan {
        mode: matrix.mode,
        kind,
        weight,
        penalty: matrix.penalty,
    });
    plans.collect()
}

/// Estimates what a fit of `options`, which are resolved, needs.
fn estimate(problem: &Problem<'_>, options: &Options, input: &FitInput<'_>) -> Estimate {
    let sizes = FitSizes::of_problem(problem, &problem.matrix_kinds(), options, input.init);
    let ranks: Vec<usize> = sizes.modes.iter().map(|mode| mode.rank).collect();
    let epochs = match options.algorithm {
        Algorithm::Gibbs => options.burn_in + options.samples,
        _ => options.epochs,
    };
    let matrices: u64 = sizes.matrices.iter().map(|m| m.entries).sum();
    let entry_updates = (sizes.entries + matrices) as f64 * epochs as f64;
    Estimate {
        bytes: sizes.common_bytes() + further_bytes(options, &sizes),
        entry_updates,
        operations: entry_updates * flops_per_entry(options, &ranks),
    }
}
