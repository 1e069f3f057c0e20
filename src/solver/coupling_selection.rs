//! Choice of how matrices are coupled: which of them a fit uses, and whether cells that a matrix of equal entries does not list
//! are zeros. Held-out entries of the tensor decide.
//!
//! In: a problem with matrices whose weight or kind is open, and the options of the fit. Out: weights of 1 or 0, and kinds. A
//! matrix that is unrelated to the tensor takes up components that the tensor needs. Weights between 0 and 1 are not tried: on real
//! and planted data, errors were lowest near 1 or near 0 (docs/notes/accuracy.md, "Weights of matrices").

use super::driver::{Fit, FitMonitor, FitState, Phase, thread_pool};
use super::holdout_split::HoldoutSplit;
use super::hyperparameters::resolve_options;
use super::input::FitInput;
use super::row_sample::{RowSample, RowSampling, largest_mode};
use crate::error::{Error, Result};
use crate::fit_plan::Choice;
use crate::options::{Algorithm, Options};
use crate::problem::{MatrixKind, Problem};

/// Fraction of the entries that is held out.
const HOLDOUT_FRACTION: f64 = 0.1;

/// At least this many entries are held out if they are at most [`MAX_HOLDOUT_FRACTION`] of all.
const MIN_HOLDOUT_ENTRIES: f64 = 1000.0;
const MAX_HOLDOUT_FRACTION: f64 = 0.25;

/// Relative decrease of the held-out RMSE that is needed, times the root of the number of held-out entries: a standard error
/// if fits with and without matrices differ in their predictions by a tenth of the noise's standard deviation.
const MIN_GAIN: f64 = 0.1;

/// Smaller data has too few entries to select by.
const MIN_ENTRIES: u64 = 400;

/// Larger data is compared on part of the rows of its largest mode, with about this many entries.
const MAX_ENTRIES: f64 = 500_000.0;

/// How the matrices of a problem are coupled.
pub(super) struct Couplings {
    /// The option of this name. Empty, or one weight for each matrix.
    pub lambda_m: Vec<f64>,
    /// One for each matrix.
    pub kinds: Vec<MatrixKind>,
    /// The number of each matrix that was compared, and what was chosen.
    choices: Vec<(usize, Choice)>,
}

impl Couplings {
    /// Returns the numbers of the matrices that were compared.
    pub(super) fn numbers(&self) -> impl Iterator<Item = usize> {
        self.choices.iter().map(|(m, _)| *m)
    }

    /// Returns what was chosen.
    pub(super) fn choices(&self) -> impl Iterator<Item = &Choice> {
        self.choices.iter().map(|(_, choice)| choice)
    }
}

/// Selects the couplings. Returns `None` if nothing is open, or if there is too little data or time to compare.
///
/// Where cells without an entry are 0, held-out entries are no measure of the fit, so nothing is selected.
///
/// `gibbs` samples the noise of each matrix, which limits the influence of unrelated ones, so all its weights are 1. Only kinds
/// are selected for it, by fits of `blocked`.
pub(super) fn select_couplings(
    problem: &Problem<'_>,
    options: &Options,
    input: &FitInput<'_>,
    monitor: &FitMonitor<'_>,
) -> Result<Option<Couplings>> {
    if options.is_zero_filled() {
        return Ok(None);
    }
    let is_gibbs = options.algorithm == Algorithm::Gibbs;
    let matrices = problem.matrices().iter().enumerate();
    let open = matrices.filter(|(_, m)| {
        m.weight.is_none() && !m.entries.is_empty() && (m.may_be_full || !is_gibbs)
    });
    let open: Vec<usize> = open.map(|(m, _)| m).collect();
    let has_weights = !options.lambda_m.is_empty();
    let is_timed_or_empty = options.time_limit > 0.0 || options.epochs == 0;
    if open.is_empty() || has_weights || is_timed_or_empty || problem.count() < MIN_ENTRIES {
        return Ok(None);
    }
    let row_fraction = MAX_ENTRIES / problem.count() as f64;
    let selected = if row_fraction >= 1.0 {
        Comparison::new(problem, &open, options, input, 1.0, monitor).select()?
    } else {
        let sampling = RowSampling {
            row_fraction,
            split: HoldoutSplit::new(0.0, 1.0, options.seed),
            seed: options.seed,
        };
        let sample = RowSample::read(problem, sampling, &thread_pool(options, monitor))?;
        let part = sample.problem(problem, row_fraction, options, monitor)?;
        Comparison::new(&part, &open, options, input, row_fraction, monitor).select()?
    };
    let mut couplings = Couplings {
        lambda_m: Vec::new(),
        kinds: problem.matrix_kinds(),
        choices: Vec::new(),
    };
    if !is_gibbs {
        couplings.lambda_m = vec![1.0; problem.matrices().len()];
    }
    for evidence in selected.evidence {
        let m = evidence.matrix;
        let is_used = selected.used.contains(&m);
        let matrix = &problem.matrices()[m];
        if is_used && matrix.may_be_full {
            couplings.kinds[m] = MatrixKind::Full;
        }
        if !is_used && !is_gibbs {
            couplings.lambda_m[m] = 0.0;
        }
        let choice = match (is_used, matrix.may_be_full) {
            (true, false) => "used",
            (true, true) => "used, unlisted cells are zeros",
            (false, _) if is_gibbs => "used, unlisted cells are unknown",
            (false, _) => "not used",
        };
        let noun = match matrix.kind.is_graph() {
            true => "graph",
            false => "matrix",
        };
        let question = format!("{noun} {}", matrix.entries.name());
        let choice = Choice::new(
            &question,
            format!("{choice} ({})", evidence.text),
            &evidence.numbers,
        );
        couplings.choices.push((m, choice));
    }
    Ok(Some(couplings))
}

/// Matrices that a fit should use.
struct Selected {
    used: Vec<usize>,
    /// For each open matrix.
    evidence: Vec<Evidence>,
}

/// The held-out errors that decided about a matrix.
struct Evidence {
    /// Its number.
    matrix: usize,
    text: String,
    numbers: [(&'static str, f64); 3],
}

/// Fits that differ in which matrices they use.
struct Comparison<'a> {
    problem: &'a Problem<'a>,
    /// Numbers of the matrices to select from.
    open: &'a [usize],
    options: Options,
    input: FitInput<'a>,
    /// A fit with matrices has to be better than this multiple of the error without.
    max_ratio: f64,
    /// Weight of a used matrix of each mode. Rows of other modes than the largest have fewer entries in a sample of rows, and
    /// their matrices count as much less.
    used_weights: Vec<f64>,
    monitor: &'a FitMonitor<'a>,
}

impl<'a> Comparison<'a> {
    fn new(
        problem: &'a Problem<'a>,
        open: &'a [usize],
        options: &Options,
        input: &FitInput<'a>,
        row_fraction: f64,
        monitor: &'a FitMonitor<'a>,
    ) -> Comparison<'a> {
        let mut options = options.clone();
        if options.algorithm == Algorithm::Gibbs {
            options.algorithm = Algorithm::Blocked;
        }
        (options.patience, options.eval_every) = (0, options.epochs.max(1));
        if input.valid.is_none() && options.valid_fraction == 0.0 {
            let least = MIN_HOLDOUT_ENTRIES / problem.count() as f64;
            options.valid_fraction = least.clamp(HOLDOUT_FRACTION, MAX_HOLDOUT_FRACTION);
        }
        let held_out = match &input.valid {
            Some(valid) => valid.len() as f64,
            None => options.valid_fraction * problem.count() as f64,
        };
        let mut used_weights = vec![row_fraction; problem.order()];
        used_weights[largest_mode(problem)] = 1.0;
        Comparison {
            problem,
            open,
            options,
            input: FitInput {
                valid: input.valid.clone(),
                init: input.init,
                ..FitInput::default()
            },
            max_ratio: 1.0 - MIN_GAIN / held_out.max(1.0).sqrt(),
            used_weights,
            monitor,
        }
    }

    /// Selects all open matrices if they are better than none, and otherwise those that are better than none, each without
    /// the others.
    fn select(&self) -> Result<Selected> {
        let open = self.open;
        let none = self.held_out_error(&[])?;
        let all = self.held_out_error(open)?;
        let text = |used: &[usize], error: f64| {
            let which = match used.len() {
                1 => "with it",
                _ => "with all",
            };
            format!("held-out RMSE {error:.4} {which}, {none:.4} without")
        };
        let numbers = |error: f64| {
            [
                ("held-out RMSE with", error),
                ("held-out RMSE without", none),
                ("largest ratio at which it is used", self.max_ratio),
            ]
        };
        let evidence_of = |used: &[usize], matrix: usize, error: f64| Evidence {
            matrix,
            text: text(used, error),
            numbers: numbers(error),
        };
        let limit = self.max_ratio * none;
        if all <= limit || open.len() == 1 {
            return Ok(Selected {
                used: if all <= limit {
                    open.to_vec()
                } else {
                    Vec::new()
                },
                evidence: open.iter().map(|&m| evidence_of(open, m, all)).collect(),
            });
        }
        let (mut better, mut best) = (Vec::new(), (limit, None));
        let mut evidence = Vec::new();
        for &m in open {
            let error = self.held_out_error(&[m])?;
            if error <= limit {
                better.push(m);
            }
            if error <= best.0 {
                best = (error, Some(m));
            }
            evidence.push(evidence_of(&[m], m, error));
        }
        let is_joint = better.len() > 1 && self.held_out_error(&better)? <= best.0;
        let used = match is_joint {
            true => better,
            false => best.1.into_iter().collect(),
        };
        Ok(Selected { used, evidence })
    }

    /// Fits with these of the open matrices and with all others. Returns the RMSE on the held-out entries.
    fn held_out_error(&self, used: &[usize]) -> Result<f64> {
        let matrices = self.problem.matrices();
        let mut options = self.options.clone();
        let weight = |m: usize| match self.open.contains(&m) && !used.contains(&m) {
            true => 0.0,
            false => self.used_weights[matrices[m].mode],
        };
        options.lambda_m = (0..matrices.len()).map(weight).collect();
        let mut kinds = self.problem.matrix_kinds();
        for &m in used.iter().filter(|&&m| matrices[m].may_be_full) {
            kinds[m] = MatrixKind::Full;
        }
        let changed = self.problem.with_matrices(&kinds, &options, self.monitor)?;
        let problem = changed.as_ref().unwrap_or(self.problem);
        let mut resolved = resolve_options(problem, &options, self.input.init, self.monitor)?;
        let state = FitState {
            start: resolved.take_start_model(problem, self.monitor)?,
            standardization: resolved.standardization,
            holdout: HoldoutSplit::for_validation(&resolved.options),
            ..FitState::default()
        };
        let options = resolved.options;
        let mut fit = Fit::new(problem, &options, &self.input, state, &mut (), self.monitor)?;
        fit.run(&mut ())?;
        if self.monitor.is_cancelled_by_caller() {
            return Err(Error::Cancelled);
        }
        let error = fit.validation_error()?;
        self.monitor.enter(Phase::Preparation);
        Ok(if error.is_finite() {
            error
        } else {
            f64::INFINITY
        })
    }
}
