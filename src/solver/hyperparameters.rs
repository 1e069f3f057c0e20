//! Options that are left to the library, settled by the data: by its sizes, and by the noise that some sweeps
//! of `gibbs` find, which also are where fits start.

use super::fit::{Clock, Fit, Known, thread_pool};
use super::gibbs_init::Drawn;
use super::input::FitInput;
use super::observer::{Control, Observer};
use super::standardization::Centre;
use crate::error::{Error, Result};
use crate::model::{EpochMetrics, Model};

use crate::kernel::CoreKind;
use crate::options::{Algorithm, Initialization, ModelKind, Options, PenaltyScaling};
use crate::problem::Problem;
use crate::progress::Monitor;
use crate::sort::stable_sort_by_key;

/// The first step for values of deviation 1.
const ETA: f64 = 0.04;

/// The step of a full core that starts as an identity or was drawn.
pub(super) const CORE_STEP: f64 = 0.02;

/// The penalty for values of deviation 1 that are all noise.
const PENALTY: f64 = 2.6;

/// Ranks: for data with at least so many entries per row of its two largest modes.
const RANKS: [(f64, usize); 3] = [(8.0, 64), (2.0, 32), (0.0, 16)];

/// What was left to the library, chosen.
pub(super) struct Settled {
    pub options: Options,
    /// What is taken out of the values, if that had to be found.
    pub centre: Option<Centre>,
    /// What was drawn, if that is where it starts.
    pub drawn: Option<Drawn>,
}

/// All options, with those that were left to the library chosen.
pub(super) fn settle(
    problem: &Problem<'_>,
    options: &Options,
    init: Option<&Model>,
    clock: Option<Clock>,
    monitor: &dyn Monitor,
) -> Result<Settled> {
    let mut o = options.clone();
    let without = |options| Settled {
        options,
        centre: None,
        drawn: None,
    };
    if o.algorithm == Algorithm::Gibbs {
        return Ok(without(settled_gibbs(problem, o, init)));
    }
    if o.start == Initialization::Auto {
        o.start = if o.nonneg {
            Initialization::Paper
        } else {
            Initialization::Gibbs
        };
    }
    if o.nonneg && o.start == Initialization::Gibbs {
        return Err(Error::argument(
            "start = drawn: what is drawn is negative, too; with nonneg it must be paper, normal or identity",
        ));
    }
    if let Some(init) = init.filter(|_| o.rank.is_empty()) {
        o.rank = init.shape().ranks.clone();
        o.model = match init.shape().kind {
            CoreKind::Full => ModelKind::Tucker,
            CoreKind::Diagonal => ModelKind::Cp,
        };
    }
    if o.model == ModelKind::Auto {
        o.model = match o.rank.is_empty() {
            true => ModelKind::Cp,
            false => ModelKind::Tucker,
        };
    }
    if o.rank.is_empty() {
        o.rank = vec![rank(problem, o.model)];
    }
    if o.start == Initialization::Sgd {
        return Err(Error::argument(
            "start = sgd: that is for gibbs; other algorithms start as auto, drawn, identity, paper or normal",
        ));
    }
    if !o.start.defines_prior_mean() {
        o.eta.get_or_insert(0.001);
        o.lambda_reg.get_or_insert(0.1);
        o.core_step.get_or_insert(1.0);
        return Ok(without(o));
    }
    let centre = centred(problem, &mut o, monitor)?;
    let deviation = centre.deviation * centre.scale;
    if centre.constant && options.start == Initialization::Auto {
        o.start = Initialization::Identity;
    }
    let starts = o.start == Initialization::Gibbs && init.is_none();
    let open = (o.eta.is_none() || o.lambda_reg.is_none()) && !centre.constant;
    // What is drawn has either sign, and says little about numbers that do not.
    let drawn = match (starts || open) && !o.nonneg {
        true => Some(Drawn::new(problem, &o, o.valid_fraction, clock, monitor)?),
        false => None,
    };
    let mut noise = centre.left;
    if let Some(drawn) = &drawn {
        if options.start == Initialization::Auto && drawn.cancels(deviation) {
            o.start = Initialization::Identity;
        }
        noise = drawn.share_of_noise(&centre, deviation.powi(2));
    }
    paced(problem, &mut o, &centre, noise);
    Ok(Settled {
        centre: Some(centre),
        drawn: drawn.filter(|_| starts && o.start == Initialization::Gibbs),
        options: o,
    })
}

/// Settles what does not need steps nor penalties for a start where rows have a prior; returns what is taken out of the
/// values.
fn centred(problem: &Problem<'_>, o: &mut Options, monitor: &dyn Monitor) -> Result<Centre> {
    o.core_step.get_or_insert(match o.model {
        ModelKind::Cp => 0.0,
        _ => CORE_STEP,
    });
    if o.start_modes.is_empty() {
        o.start_modes = largest(problem);
    }
    check_modes(problem, o)?;
    let centre = Centre::new(problem, o, &thread_pool(o), monitor)?;
    if o.lambda_bias.is_empty() {
        o.lambda_bias.clone_from(&centre.damping);
    }
    Ok(centre)
}

/// Settles step and penalty for values of which such a share is `noise`.
fn paced(problem: &Problem<'_>, o: &mut Options, centre: &Centre, noise: f64) {
    let heavy = Heavy::new(problem, o);
    o.lambda_reg
        .get_or_insert(PENALTY * noise * centre.deviation * heavy.penalty);
    o.eta.get_or_insert(ETA / centre.deviation / heavy.mean);
}

/// Settles all of a fit that takes what biases leave for noise; `None` if all values are the same.
pub(super) fn steps(
    problem: &Problem<'_>,
    o: &mut Options,
    monitor: &dyn Monitor,
) -> Result<Option<Centre>> {
    let centre = centred(problem, o, monitor)?;
    if centre.constant {
        return Ok(None);
    }
    paced(problem, o, &centre, centre.left);
    Ok(Some(centre))
}

/// What entries weigh by and large: what is left to the library does not depend on the scale of weights.
#[derive(Clone, Copy)]
struct Heavy {
    /// The mean weight, by which steps are smaller.
    mean: f64,
    /// What penalties are multiplied with, beyond what they grow with weights anyway.
    penalty: f64,
}

impl Heavy {
    fn new(problem: &Problem<'_>, o: &Options) -> Heavy {
        let mean = problem.total_weight() / problem.count() as f64;
        let penalty = match o.penalty_per {
            PenaltyScaling::Constant => mean,
            PenaltyScaling::SqrtCount => mean.sqrt(),
            PenaltyScaling::Count => 1.0,
        };
        Heavy { mean, penalty }
    }
}

/// `gibbs` learns its penalties; it has no steps.
fn settled_gibbs(problem: &Problem<'_>, mut o: Options, init: Option<&Model>) -> Options {
    if let Some(init) = init.filter(|_| o.rank.is_empty()) {
        o.rank = init.shape().ranks.clone();
        o.model = match init.shape().kind {
            CoreKind::Full => ModelKind::Tucker,
            CoreKind::Diagonal => ModelKind::Cp,
        };
    }
    if o.model == ModelKind::Auto {
        o.model = ModelKind::Cp;
    }
    if o.rank.is_empty() {
        o.rank = vec![match o.model {
            ModelKind::Cp => rank_drawn(per_row(problem)),
            _ => rank(problem, o.model),
        }];
    }
    if o.start == Initialization::Auto {
        o.start = Initialization::Identity;
    }
    o.eta.get_or_insert(0.0);
    o.lambda_reg.get_or_insert(0.0);
    o.core_step.get_or_insert(1.0);
    if o.start_modes.is_empty() {
        o.start_modes = largest(problem);
    }
    o
}

/// Entries per row decide what can be learnt about a row.
pub(super) fn rank(problem: &Problem<'_>, model: ModelKind) -> usize {
    if model != ModelKind::Cp {
        return 10;
    }
    rank_stepped(per_row(problem))
}

fn rank_stepped(per_row: f64) -> usize {
    let enough = |(least, _): &&(f64, usize)| per_row >= *least;
    RANKS.iter().find(enough).map_or(1, |&(_, rank)| rank)
}

/// Sixteen more for every six times the entries; averaging forgives what is too much.
fn rank_drawn(per_row: f64) -> usize {
    let lines = ((1.0 + per_row).log2() / 2.5).round();
    16 * lines.clamp(1.0, 6.0) as usize
}

/// About the rank that a CP model of so many entries, with so many rows in each mode, will have if it is left to the
/// library.
pub(crate) fn likely_rank(entries: u64, rows: &[u64], algorithm: Algorithm) -> usize {
    let per_row = per_rows(entries, rows.iter().copied());
    match algorithm {
        Algorithm::Gibbs => rank_drawn(per_row),
        _ => rank_stepped(per_row),
    }
}

/// Entries per row of the two largest modes.
fn per_row(problem: &Problem<'_>) -> f64 {
    let rows = problem.modes().iter().map(|m| m.rows().len() as u64);
    per_rows(problem.count(), rows)
}

fn per_rows(entries: u64, rows: impl Iterator<Item = u64>) -> f64 {
    let mut rows: Vec<u64> = rows.collect();
    rows.sort_unstable();
    let largest: u64 = rows.iter().rev().take(2).sum();
    entries as f64 / largest.max(1) as f64
}

fn check_modes(problem: &Problem<'_>, o: &Options) -> Result<()> {
    let order = problem.order();
    let good = match o.start_modes[..] {
        [] => true,
        [a, b] => a != b && a <= order && b <= order,
        _ => false,
    };
    if good {
        return Ok(());
    }
    Err(Error::argument(format!(
        "start_modes = {}: it must be two different modes from 1 to {order}",
        o.get("start_modes").unwrap_or_default()
    )))
}

/// The two largest modes, counted from 1.
fn largest(problem: &Problem<'_>) -> Vec<usize> {
    let mut modes: Vec<usize> = (0..problem.order()).collect();
    stable_sort_by_key(&mut modes, &|&n| {
        std::cmp::Reverse(problem.modes()[n].rows().len())
    });
    let mut two: Vec<usize> = modes.iter().take(2).map(|n| n + 1).collect();
    two.sort_unstable();
    two
}

/// The validation error after `epoch` epochs of a fit that is run for nothing else, and the fit; its options
/// are settled.
pub(super) fn error_at<'a>(
    problem: &Problem<'_>,
    options: &Options,
    input: &'a FitInput<'a>,
    known: Known,
    epoch: u64,
    monitor: &dyn Monitor,
) -> Result<(f64, Fit<'a>)> {
    let mut until = Until(epoch);
    let mut fit = Fit::new(problem, options, input, known, &mut until, monitor)?;
    fit.run(&mut until, monitor)?;
    if monitor.cancelled() {
        return Err(Error::Cancelled);
    }
    Ok((fit.valid_error()?, fit))
}

/// Ends a fit after an epoch.
struct Until(u64);

impl Observer for Until {
    fn epoch(&mut self, figures: &EpochMetrics) -> Control {
        match figures.epoch >= self.0 {
            true => Control::Stop,
            false => Control::Continue,
        }
    }
}
