//! Starting values from a short Gibbs chain.
//!
//! The chain finds structure that no slice of the tensor shows, estimates the noise level, from which penalties follow, and
//! gives the distribution of rows that penalties shrink towards. In: the problem and the options of the fit that is to
//! start. Out: a [`GibbsStart`].

use std::sync::Arc;

use super::algorithm::Purpose;
use super::cp_to_tucker::compress;
use super::default_rank::default_rank;
use super::driver::{Fit, FitMonitor, FitState, Phase, thread_pool};
use super::holdout_split::HoldoutSplit;
use super::initial_sample::{MAX_SAMPLE_ENTRIES, needed_entries, sample_size};
use super::input::FitInput;
use super::observer::{Control, Observer, StopReason};
use super::reparametrization::column_norms;
use super::row_sample::{RowSample, RowSampling, largest_mode, with_all_rows};
use super::standardization::Standardization;
use crate::error::{Error, Result};
use crate::fit_plan::{Choice, StartPlan};
use crate::model::{EpochMetrics, Model};
use crate::options::{Algorithm, Initialization, ModelKind, Options, Penalty};
use crate::problem::Problem;
use crate::progress::Monitor;

/// Fewest and largest number of sweeps.
const MIN_SWEEPS: usize = 8;
const MAX_SWEEPS: u64 = 60;

/// The chain has burned in when [`BURN_IN_WINDOW`] sweeps lower the squared error by less than 4%.
const BURN_IN_WINDOW: usize = 4;
const BURN_IN_RATIO: f64 = 0.96;

/// Largest rank of the chain. The time of a sweep grows with its square, and this rank finds nearly all structure.
const MAX_RANK: usize = 32;

/// Size of the sample of the chain: entries per row of all modes together. With fewer it finds components that fit noise.
/// Where that is more than [`MAX_SAMPLE_ENTRIES`], the chain takes part of the rows of the largest mode, with all their entries
/// (docs/notes/performance.md, "Initialization").
const ENTRIES_PER_ROW: f64 = 96.0;

/// Entries of a sample of rows.
const ROW_SAMPLE_ENTRIES: f64 = 2.5e6;

/// Fraction of the entries that is held out from the chain, of which as large a fraction of its sample measures its error.
/// Data that would hold out fewer than [`MIN_HOLDOUT_ENTRIES`] holds out none.
const HOLDOUT_FRACTION: f64 = 0.05;
const MIN_HOLDOUT_ENTRIES: f64 = 200.0;

/// Ratio of the held-out squared error of one sample to that of the biases alone at which the sample begins to count as
/// noise, and at which it counts as nothing else. Chosen on planted data and on parts of training sets (docs/notes/accuracy.md).
const NOISE_RATIO_START: f64 = 0.95;
const NOISE_RATIO_END: f64 = 1.05;

/// Size of a component, as a multiple of the standard deviation of the values, above which others must cancel it.
const MAX_COMPONENT_SIZE: f64 = 3.0;

/// The last sample of a short chain.
#[derive(Clone)]
pub(super) struct GibbsStart {
    /// A CP model.
    model: Arc<Model>,
    /// Mean squared error on the chain's entries: an estimate of the noise variance.
    noise_variance: f64,
    /// Mean squared error of the last sample on held-out entries, if there are enough.
    held_out_error: Option<f64>,
    /// Size of its largest component.
    largest_component: f64,
    /// Number of sweeps of the chain.
    sweeps: u64,
}

impl GibbsStart {
    /// Runs a chain for fits with `options`, of as many sweeps as planned or until it has burned in. `held_out` is the
    /// fraction of the entries that those fits hold out for validation; the chain does not see them either.
    pub(super) fn sample(
        problem: &Problem<'_>,
        options: &Options,
        held_out: f64,
        planned_sweeps: Option<u64>,
        monitor: &FitMonitor<'_>,
    ) -> Result<GibbsStart> {
        let mut o = options.clone();
        (o.algorithm, o.penalty) = (Algorithm::Gibbs, Penalty::L2);
        (o.model, o.rank) = (ModelKind::Cp, vec![chain_rank(problem, options)]);
        o.start = Initialization::Identity;
        (o.eta, o.lambda_reg, o.core_step) = (Some(0.0), Some(0.0), Some(1.0));
        (o.burn_in, o.samples) = (MAX_SWEEPS, 1);
        (o.eval_every, o.tolerance, o.patience, o.valid_fraction) = (1, 0.0, 0, 0.0);
        if let Some(sampling) = row_sampling(problem, held_out, o.seed) {
            let sample = RowSample::read(problem, sampling, &thread_pool(&o, monitor))?;
            let part = sample.problem(problem, 1.0, &o, monitor)?;
            let split = HoldoutSplit::new(HOLDOUT_FRACTION, 1.0 - HOLDOUT_FRACTION, o.seed);
            let mut start = run_chain(&part, &o, Some(split), planned_sweeps, monitor)?;
            start.model = Arc::new(with_all_rows(problem, &start.model)?);
            return Ok(start);
        }
        let count = problem.count() as f64;
        let held_out = if count * HOLDOUT_FRACTION < MIN_HOLDOUT_ENTRIES {
            held_out
        } else {
            held_out.max(HOLDOUT_FRACTION)
        };
        let size = sample_size(problem, ENTRIES_PER_ROW);
        let measured = held_out.min(HOLDOUT_FRACTION * size / count);
        let used = (size / count).min(1.0 - held_out);
        let split =
            (used < 1.0).then(|| HoldoutSplit::new(held_out, used, o.seed).measuring(measured));
        let is_measured = count * measured >= MIN_HOLDOUT_ENTRIES;
        let mut start = run_chain(problem, &o, split, planned_sweeps, monitor)?;
        start.held_out_error = start.held_out_error.filter(|_| is_measured);
        Ok(start)
    }

    /// Returns the fraction of the values' `variance` that is noise. Where the chain predicts held-out entries no better
    /// than the biases, the whole error of the biases on entries that they were not fitted to counts as noise.
    pub(super) fn noise_fraction(&self, standardization: &Standardization, variance: f64) -> f64 {
        let fraction = self.noise_variance / variance;
        if !fraction.is_finite() {
            return 1.0;
        }
        let ratio = self.held_out_error.map_or(0.0, |e| {
            e / variance / standardization.loo_residual_fraction
        });
        let doubt = (ratio - NOISE_RATIO_START) / (NOISE_RATIO_END - NOISE_RATIO_START);
        let doubt = if doubt > 0.0 { doubt.min(1.0) } else { 0.0 };
        let fraction = fraction.min(1.0);
        fraction + doubt * (standardization.loo_residual_fraction - fraction).max(0.0)
    }

    /// Describes the noise of values of this `variance`, and the evidence for it.
    pub(super) fn noise_choice(&self, standardization: &Standardization, variance: f64) -> Choice {
        let fraction = self.noise_fraction(standardization, variance);
        let percent = 100.0 * fraction;
        let rmse = (standardization.loo_residual_fraction * variance).sqrt();
        let evidence = match self.held_out_error {
            Some(error) => format!(
                "held-out RMSE of a Gibbs sample {:.4}, of biases {rmse:.4}",
                error.sqrt()
            ),
            None => "residuals of a Gibbs chain".into(),
        };
        let numbers = [
            ("noise fraction", fraction),
            ("residual variance of the chain", self.noise_variance),
            (
                "held-out RMSE of the chain",
                self.held_out_error.map_or(f64::NAN, f64::sqrt),
            ),
            ("held-out RMSE of biases", rmse),
        ];
        let answer = format!("{percent:.0}% of the variance ({evidence})");
        Choice::new("noise", answer, &numbers)
    }

    /// Returns the number of sweeps and of components of the chain.
    pub(super) fn plan(&self) -> StartPlan {
        StartPlan::Chain {
            sweeps: self.sweeps,
            rank: self.model.shape().ranks()[0],
        }
    }

    /// Returns whether components far larger than values of this `deviation` cancel each other, as they do where few entries
    /// are observed without noise. No learning rate suits such rows.
    pub(super) fn has_cancelling_components(&self, deviation: f64) -> bool {
        self.largest_component > MAX_COMPONENT_SIZE * deviation
    }

    /// Returns the model that a fit with `options` starts from: the sample itself, or its compression to a full core.
    pub(super) fn initial_model(
        &self,
        problem: &Problem<'_>,
        options: &Options,
        monitor: &dyn Monitor,
    ) -> Result<Arc<Model>> {
        if options.model == ModelKind::Cp {
            return Ok(self.model.clone());
        }
        let (mut model, _) = Model::zeros(problem, options)?;
        compress(&self.model, &mut model, &thread_pool(options, monitor))?;
        Ok(Arc::new(model))
    }
}

/// Runs a chain with `options` until it has burned in, on the training entries of `split`, or on all entries. Its held-out
/// entries measure the error.
fn run_chain(
    problem: &Problem<'_>,
    options: &Options,
    split: Option<HoldoutSplit>,
    planned_sweeps: Option<u64>,
    monitor: &FitMonitor<'_>,
) -> Result<GibbsStart> {
    let state = FitState {
        zero_mean_modes: Some([0, 1]),
        holdout: split,
        purpose: Purpose::StartingValues,
        ..FitState::default()
    };
    let input = FitInput::default();
    let mut burn_in = BurnIn {
        planned_sweeps,
        squared_errors: Vec::new(),
    };
    let mut fit = Fit::new(problem, options, &input, state, &mut (), monitor)?;
    fit.run(&mut burn_in)?;
    if monitor.is_cancelled_by_caller() {
        return Err(Error::Cancelled);
    }
    let held_out_error = match split {
        Some(_) => Some(fit.validation_error()?.powi(2)),
        None => None,
    };
    let (mut model, summary) = fit.finish(problem, StopReason::Epochs, &mut ())?;
    model.samples = None;
    monitor.enter(Phase::Preparation);
    let errors = &burn_in.squared_errors;
    let last = &errors[errors.len().saturating_sub(BURN_IN_WINDOW)..];
    Ok(GibbsStart {
        noise_variance: if last.is_empty() {
            summary.train_rmse.powi(2)
        } else {
            last.iter().sum::<f64>() / last.len() as f64
        },
        held_out_error,
        largest_component: largest_component(&model),
        sweeps: errors.len() as u64,
        model: Arc::new(model),
    })
}

/// Returns the size of the largest component of a CP model: its weight times the root mean squares of its columns.
fn largest_component(model: &Model) -> f64 {
    let mut sizes: Vec<f64> = model.core[..model.shape.ranks()[0]]
        .iter()
        .map(|g| f64::from(g.abs()))
        .collect();
    for (n, mode) in model.modes.iter().enumerate() {
        let rows = (mode.rows.len() as f64).sqrt().max(1.0);
        let norms = column_norms(model, n);
        let each = sizes.iter_mut().zip(norms);
        each.for_each(|(size, norm)| *size *= norm / rows);
    }
    sizes.into_iter().fold(0.0, f64::max)
}

/// Returns which rows of the largest mode the chain is run on, or `None` if it is run on a random sample of all entries. Rows
/// are sampled if [`MAX_SAMPLE_ENTRIES`] random entries would be fewer than [`ENTRIES_PER_ROW`] per row, but the rows of the
/// largest mode have at least that many on average. A fraction `held_out` of the entries is kept from the chain.
fn row_sampling(problem: &Problem<'_>, held_out: f64, seed: u64) -> Option<RowSampling> {
    let (count, max) = (problem.count() as f64, MAX_SAMPLE_ENTRIES as f64);
    let rows = problem.modes()[largest_mode(problem)].rows().len() as f64;
    let is_better =
        needed_entries(problem, ENTRIES_PER_ROW) > max && count >= ENTRIES_PER_ROW * rows;
    (count > max && is_better).then(|| RowSampling {
        row_fraction: ROW_SAMPLE_ENTRIES / count,
        split: HoldoutSplit::new(held_out, 1.0 - held_out, seed),
        seed,
    })
}

/// Returns the rank of the chain for a fit with `options`. Further components of a CP model start at random; a full core is
/// compressed from all components.
pub(super) fn chain_rank(problem: &Problem<'_>, options: &Options) -> usize {
    let rank = options.rank.iter().copied().max().unwrap_or(1);
    match options.model {
        ModelKind::Cp => rank.min(MAX_RANK),
        _ => rank.max(default_rank(problem, ModelKind::Cp).min(MAX_RANK)),
    }
}

/// Stops a chain that has burned in, or has run the planned sweeps.
struct BurnIn {
    planned_sweeps: Option<u64>,
    /// Mean squared training error after each sweep.
    squared_errors: Vec<f64>,
}

impl Observer for BurnIn {
    fn epoch(&mut self, metrics: &EpochMetrics) -> Control {
        let error = metrics.train_rmse.powi(2);
        self.squared_errors.push(error);
        let sweeps = self.squared_errors.len();
        let ends = match self.planned_sweeps {
            Some(planned) => sweeps as u64 >= planned,
            None => {
                sweeps >= MIN_SWEEPS
                    && error > BURN_IN_RATIO * self.squared_errors[sweeps - 1 - BURN_IN_WINDOW]
            }
        };
        if ends {
            Control::Stop
        } else {
            Control::Continue
        }
    }
}
