//! Resolution of the options that are left to the library, from the sizes of the data and from the noise level that a
//! short Gibbs chain estimates. That chain also gives the starting values.

use std::sync::Arc;

use super::algorithm_factory;
use super::core_eta_scale;
use super::default_rank::{default_gibbs_rank, default_rank, entries_per_row, take_shape};
use super::driver::{FitMonitor, thread_pool};
use super::gibbs_init::GibbsStart;
use super::standardization::Standardization;
use crate::error::{Error, Result};
use crate::fit_plan::{Choice, StartPlan};
use crate::model::Model;
use crate::options::{
    Algorithm, Initialization, LikelihoodChoice, ModelKind, Options, PenaltyScaling,
};
use crate::problem::Problem;
use crate::progress::Monitor;

/// First learning rate for values of standard deviation 1.
const ETA: f64 = 0.04;

/// Penalty for values of standard deviation 1 that are all noise. No selection is recorded (docs/notes/selection.md).
const PENALTY: f64 = 2.6;

/// Learning rate and penalty of the paper, for starts without prior means.
const PAPER_ETA: f64 = 0.001;
const PAPER_PENALTY: f64 = 0.1;

/// Options without open choices, and the intermediate results that the fit can reuse.
pub(super) struct ResolvedOptions {
    pub options: Options,
    /// Standardization of the data, if it was needed.
    pub standardization: Option<Standardization>,
    /// Posterior sample that the fit starts from, if it starts from one.
    pub start: Option<GibbsStart>,
    /// What was selected by the data.
    pub selections: Vec<Choice>,
}

impl ResolvedOptions {
    /// Returns what the first epoch starts from. `init` is the model that the fit starts from, if one is given.
    pub(super) fn start_plan(&self, init: Option<&Model>) -> StartPlan {
        match (init, &self.start) {
            (Some(init), _) => StartPlan::Model {
                checksum: init.checksum(),
            },
            (None, Some(start)) => start.plan(),
            (None, None) => StartPlan::Option,
        }
    }

    /// Returns the model that the fit starts from, once, if it starts from a posterior sample.
    pub(super) fn take_start_model(
        &mut self,
        problem: &Problem<'_>,
        monitor: &dyn Monitor,
    ) -> Result<Option<Arc<Model>>> {
        let start = self.start.take();
        let model = start.map(|s| s.initial_model(problem, &self.options, monitor));
        model.transpose()
    }
}

/// Resolves all options. `init` is the model that the fit starts from, if one is given.
pub(super) fn resolve_options(
    problem: &Problem<'_>,
    options: &Options,
    init: Option<&Model>,
    monitor: &FitMonitor<'_>,
) -> Result<ResolvedOptions> {
    let mut o = with_clipping(problem, options);
    if o.likelihood == LikelihoodChoice::Probit && o.algorithm != Algorithm::Gibbs {
        return Err(Error::argument(format!(
            "likelihood = probit: {} minimizes squared errors; only the algorithm gibbs has likelihoods",
            o.get("algorithm").unwrap_or_default()
        )));
    }
    let without_start = |resolved: Options| ResolvedOptions {
        selections: shape_selections(problem, options, &resolved, init),
        options: resolved,
        standardization: None,
        start: None,
    };
    if is_resolved_by_sizes(&o) {
        return Ok(without_start(resolve_by_sizes(problem, options, init)));
    }
    if o.start == Initialization::Auto {
        o.start = if o.nonneg {
            Initialization::Paper
        } else if o.is_zero_filled() {
            // Drawn starting values fit the observed entries alone.
            Initialization::Normal
        } else {
            Initialization::Gibbs
        };
    }
    if o.nonneg && o.start == Initialization::Gibbs {
        return Err(Error::argument(
            "start = drawn: posterior samples have negative elements; with nonneg it must be paper, normal or identity",
        ));
    }
    resolve_shape(problem, &mut o, init);
    if !o.start.defines_prior_mean() {
        o.eta.get_or_insert(PAPER_ETA);
        o.lambda_reg.get_or_insert(PAPER_PENALTY);
        o.core_step.get_or_insert(1.0);
        return Ok(without_start(o));
    }
    let standardization = standardize(problem, &mut o, monitor)?;
    let deviation = standardization.deviation * standardization.scale;
    if standardization.is_constant && options.start == Initialization::Auto {
        o.start = Initialization::Identity;
    }
    let starts_from_samples = o.start == Initialization::Gibbs && init.is_none();
    let needs_noise = (o.eta.is_none() || o.lambda_reg.is_none()) && !standardization.is_constant;
    // Posterior samples have either sign and say little about a non-negative model.
    let start = if (starts_from_samples || needs_noise) && !o.nonneg {
        let held_out = o.valid_fraction;
        Some(GibbsStart::sample(problem, &o, held_out, None, monitor)?)
    } else {
        None
    };
    let mut selections = shape_selections(problem, options, &o, init);
    let mut noise_fraction = standardization.residual_fraction;
    if let Some(start) = &start {
        if options.lambda_reg.is_none() {
            selections.push(start.noise_choice(&standardization, deviation.powi(2)));
        }
        if options.start == Initialization::Auto && start.has_cancelling_components(deviation) {
            o.start = Initialization::Identity;
        }
        noise_fraction = start.noise_fraction(&standardization, deviation.powi(2));
    }
    resolve_eta_and_penalty(problem, &mut o, &standardization, noise_fraction);
    Ok(ResolvedOptions {
        standardization: Some(standardization),
        start: start.filter(|_| starts_from_samples && o.start == Initialization::Gibbs),
        selections,
        options: o,
    })
}

/// Returns whether all options are resolved from the sizes of the data.
fn is_resolved_by_sizes(o: &Options) -> bool {
    o.algorithm == Algorithm::Gibbs || o.algorithm.properties().has_orthonormal_factors
}

/// Resolves the options that depend on the sizes of the data alone, among them the shape of the model. Reads no entry.
pub(super) fn resolve_by_sizes(
    problem: &Problem<'_>,
    options: &Options,
    init: Option<&Model>,
) -> Options {
    let mut o = with_clipping(problem, options);
    if o.algorithm == Algorithm::Gibbs {
        return resolve_gibbs(problem, o, init);
    }
    if o.algorithm.properties().has_orthonormal_factors {
        return resolve_orthonormal(problem, o, init);
    }
    resolve_shape(problem, &mut o, init);
    o
}

fn with_clipping(problem: &Problem<'_>, options: &Options) -> Options {
    let mut o = options.clone();
    // 0 is outside the range of most bounded scales.
    o.clip
        .get_or_insert(problem.is_bounded() && !o.is_zero_filled());
    o
}

/// Resolves the options of a start with prior means that depend neither on learning rate nor penalty, except for a
/// `core_step` that depends on the starting values. Returns the standardization.
fn standardize(
    problem: &Problem<'_>,
    o: &mut Options,
    monitor: &dyn Monitor,
) -> Result<Standardization> {
    o.core_step = o
        .core_step
        .or_else(|| core_eta_scale::without_starting_values(o.model, problem.order()));
    let standardization = Standardization::new(problem, o, &thread_pool(o, monitor))?;
    if o.lambda_bias.is_empty() {
        o.lambda_bias.clone_from(&standardization.bias_damping);
    }
    Ok(standardization)
}

/// Resolves learning rate and penalty for values of which this fraction of the variance is noise.
fn resolve_eta_and_penalty(
    problem: &Problem<'_>,
    o: &mut Options,
    standardization: &Standardization,
    noise_fraction: f64,
) {
    let weights = WeightScale::new(problem, o);
    let deviation = standardization.deviation;
    o.lambda_reg
        .get_or_insert(PENALTY * noise_fraction * deviation * weights.penalty);
    let eta = ETA / deviation / weights.mean;
    // The deviation of denormal values has an infinite inverse.
    o.eta.get_or_insert(eta.min(f64::MAX));
}

/// Corrections that make the chosen options independent of the scale of the entries' weights.
#[derive(Clone, Copy)]
struct WeightScale {
    /// Mean weight, which divides the learning rate.
    mean: f64,
    /// Factor of the penalty beyond its own growth with the weights.
    penalty: f64,
}

impl WeightScale {
    fn new(problem: &Problem<'_>, o: &Options) -> WeightScale {
        let mean = problem.total_weight() / problem.count() as f64;
        let penalty = match o.penalty_per {
            PenaltyScaling::Constant => mean,
            PenaltyScaling::SqrtCount => mean.sqrt(),
            PenaltyScaling::Count => 1.0,
        };
        WeightScale { mean, penalty }
    }
}

/// Resolves the options of `gibbs`, which samples its penalties and has no learning rate.
fn resolve_gibbs(problem: &Problem<'_>, mut o: Options, init: Option<&Model>) -> Options {
    take_shape(&mut o, init);
    if o.model == ModelKind::Auto {
        o.model = ModelKind::Cp;
    }
    if o.rank.is_empty() {
        o.rank = vec![default_gibbs_rank(problem, o.model)];
    }
    // The options `start`, `eta` and `lambda_reg` have no effect.
    o.start = Initialization::Identity;
    (o.eta, o.lambda_reg) = (Some(0.0), Some(0.0));
    o.core_step.get_or_insert(1.0);
    o
}

/// Resolves the options of a fit of orthonormal factors, which has neither learning rate nor penalty. The options `start`,
/// `eta` and `lambda_reg` have no effect.
fn resolve_orthonormal(problem: &Problem<'_>, mut o: Options, init: Option<&Model>) -> Options {
    resolve_shape(problem, &mut o, init);
    o.start = Initialization::Normal;
    (o.eta, o.lambda_reg) = (Some(0.0), Some(0.0));
    o.core_step.get_or_insert(1.0);
    o
}

/// Resolves model and rank of a fit by anything but `gibbs`.
fn resolve_shape(problem: &Problem<'_>, o: &mut Options, init: Option<&Model>) {
    take_shape(o, init);
    if o.model == ModelKind::Auto {
        o.model = match o.algorithm.only_model() {
            Some(model) => model,
            None if o.rank.is_empty() => ModelKind::Cp,
            None => ModelKind::Tucker,
        };
    }
    if o.rank.is_empty() {
        o.rank = vec![default_rank(problem, o.model)];
    }
}

/// Describes model and rank, where `options` leave them open, and what the algorithm makes of its own options.
fn shape_selections(
    problem: &Problem<'_>,
    options: &Options,
    resolved: &Options,
    init: Option<&Model>,
) -> Vec<Choice> {
    let mut selections = algorithm_factory::selections(options);
    if options.is_zero_filled() && (options.mean || options.biases) {
        let text = "none (cells without an entry are 0)".into();
        selections.push(Choice::new("mean and biases", text, &[]));
    }
    if init.is_some() {
        return selections;
    }
    if options.model == ModelKind::Auto {
        let kind = resolved.model.name();
        let why = match resolved.model {
            _ if options.algorithm.only_model().is_some() => "the model of the algorithm",
            ModelKind::Cp => "the default without ranks",
            _ => "ranks are given",
        };
        selections.push(Choice::new("model", format!("{kind} ({why})"), &[]));
    }
    if let ([], [rank]) = (&options.rank[..], &resolved.rank[..]) {
        let text = match resolved.model {
            ModelKind::Cp => {
                let per_row = entries_per_row(problem);
                format!("{rank} ({per_row:.1} entries per row of the two largest modes)")
            }
            _ => format!("{rank} (the default of tucker)"),
        };
        let evidence = [
            ("rank", *rank as f64),
            ("entries per row", entries_per_row(problem)),
        ];
        selections.push(Choice::new("rank", text, &evidence));
    }
    selections
}
