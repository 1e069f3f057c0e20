//! Options that are left to the library, settled by the data: sizes first, then short fits of a small
//! model with some entries held out, which find the noise and the modes that belong together.

use super::centre::Centre;
use super::data::Held;
use super::fit::{Fit, Known};
use super::input::FitInput;
use super::observer::{Control, Observer};
use super::start;
use crate::error::{Error, Result};
use crate::model::{CoreKind, Epoch, Model};
use crate::monitor::Monitor;
use crate::options::{Algorithm, ModelKind, Options, PenaltyPer, Schedule, Start};
use crate::problem::Problem;

/// The first step for values of deviation 1.
const ETA: f64 = 0.04;

/// It is up to so many times that where noise is a smaller share of the variance than this.
const FASTEST: f64 = 2.5;
const NOISY: f64 = 0.5;

/// The step of a full core that starts as an identity.
pub(super) const CORE_STEP: f64 = 0.02;

/// The penalty for values of deviation 1 that are all noise.
const PENALTY: f64 = 2.2;

/// Ranks: for data with at least so many entries per row of its two largest modes.
const RANKS: [(f64, usize); 3] = [(8.0, 64), (2.0, 32), (0.0, 16)];

/// Of the small model.
const TRIAL_RANK: usize = 16;
const TRIAL_EPOCHS: u64 = 4;
const NOISE_EPOCHS: u64 = 10;

/// What is held out of it, and how many entries it is fitted to at most.
const HELD: f64 = 0.1;
const TRIAL_ENTRIES: f64 = 2e6;

/// Data with fewer entries is not tried.
const FEW: u64 = 200;

/// Another pair has at most this share of the squared error.
const CLEARLY: f64 = 0.98;

/// Pairs are looked for among so many of the largest modes.
const PAIRS_AMONG: usize = 4;

/// All options, with those that were left to the library chosen; and what is taken out of the values, if
/// that had to be found.
pub(super) fn settle(
    problem: &Problem<'_>,
    options: &Options,
    init: Option<&Model>,
    monitor: &dyn Monitor,
) -> Result<(Options, Option<Centre>)> {
    let mut o = options.clone();
    if o.algorithm == Algorithm::Gibbs {
        return Ok((settled_gibbs(problem, o, init), None));
    }
    if o.start == Start::Auto {
        o.start = if o.nonneg {
            Start::Paper
        } else {
            Start::Identity
        };
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
    if o.start != Start::Identity {
        o.eta.get_or_insert(0.001);
        o.lambda_reg.get_or_insert(0.1);
        o.core_step.get_or_insert(1.0);
        return Ok((o, None));
    }
    o.core_step.get_or_insert(match o.model {
        ModelKind::Cp => 0.0,
        _ => CORE_STEP,
    });
    check_modes(problem, &o)?;
    let centre = Centre::new(problem, &o, monitor)?;
    let heavy = Heavy::new(problem, &o);
    if problem.order() == 2 {
        o.start_modes = vec![1, 2];
    }
    let turned = init.is_some_and(|m| !start::is_centred(m));
    if turned && o.start_modes.is_empty() {
        // Nothing is near 1 in a model that was turned.
        o.start_modes = vec![1, 2];
    }
    if problem.count() < FEW {
        // Nothing could be held out and tell anything.
        if o.start_modes.is_empty() {
            o.start_modes = pairs(problem).swap_remove(0);
        }
        o.lambda_reg
            .get_or_insert(PENALTY * centre.left * centre.deviation * heavy.penalty);
    }
    let mut noise = centre.left;
    if o.start_modes.is_empty() || o.lambda_reg.is_none() {
        noise = trials(problem, &mut o, &centre, heavy, monitor)?;
        o.lambda_reg
            .get_or_insert(PENALTY * noise * centre.deviation * heavy.penalty);
    }
    // The less noise, the larger the steps that do not carry it into the model.
    let faster = (NOISY / noise.max(1e-6)).sqrt().clamp(1.0, FASTEST);
    o.eta
        .get_or_insert(ETA * faster / centre.deviation / heavy.mean);
    Ok((o, Some(centre)))
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
        let mean = problem.weight() / problem.count() as f64;
        let penalty = match o.penalty_per {
            PenaltyPer::Row => mean,
            PenaltyPer::Root => mean.sqrt(),
            PenaltyPer::Entry => 1.0,
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
            ModelKind::Cp => {
                // Sixteen more for every six times the entries; averaging forgives what is too much.
                let lines = ((1.0 + per_row(problem)).log2() / 2.5).round();
                16 * lines.clamp(1.0, 6.0) as usize
            }
            _ => rank(problem, o.model),
        }];
    }
    if o.start == Start::Auto {
        o.start = Start::Identity;
    }
    o.eta.get_or_insert(0.0);
    o.lambda_reg.get_or_insert(0.0);
    o.core_step.get_or_insert(1.0);
    if o.start_modes.is_empty() {
        o.start_modes = vec![1, 2];
    }
    o
}

/// Entries per row decide what can be learnt about a row.
pub(super) fn rank(problem: &Problem<'_>, model: ModelKind) -> usize {
    if model != ModelKind::Cp {
        return 10;
    }
    let per_row = per_row(problem);
    let enough = |(least, _): &&(f64, usize)| per_row >= *least;
    RANKS.iter().find(enough).map_or(1, |&(_, rank)| rank)
}

/// Entries per row of the two largest modes.
fn per_row(problem: &Problem<'_>) -> f64 {
    let mut rows: Vec<usize> = problem.modes().iter().map(|m| m.rows().len()).collect();
    rows.sort_unstable();
    let largest: usize = rows.iter().rev().take(2).sum();
    problem.count() as f64 / largest.max(1) as f64
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

/// Settles which two modes start around 0, and finds the share of the variance that is noise.
fn trials(
    problem: &Problem<'_>,
    o: &mut Options,
    centre: &Centre,
    heavy: Heavy,
    monitor: &dyn Monitor,
) -> Result<f64> {
    let mut trial = o.clone();
    trial.algorithm = Algorithm::Blocked;
    trial.schedule = Schedule::Square;
    (trial.model, trial.rank) = (ModelKind::Cp, vec![TRIAL_RANK]);
    trial.core_step = Some(0.0);
    trial.eta = Some(ETA / centre.deviation / heavy.mean);
    (trial.patience, trial.time_limit, trial.tolerance) = (0, 0.0, 0.0);
    trial.valid_fraction = 0.0;
    let n = problem.count() as f64;
    let used = (TRIAL_ENTRIES / n).min(1.0 - HELD);
    let held = Held::new(HELD.min(used), used, o.seed);
    let run = |modes: &[usize], noise: f64, epochs: u64| -> Result<f64> {
        let mut t = trial.clone();
        t.start_modes = modes.to_vec();
        (t.epochs, t.eval_every) = (epochs, epochs);
        // Rows have so many fewer entries than they count.
        let fewer = (1.0 / used).sqrt();
        t.lambda_reg = Some(PENALTY * noise * centre.deviation * fewer * heavy.penalty);
        let known = Known {
            centre: Some(centre.clone()),
            held: Some(held),
            ..Known::default()
        };
        let (error, _) = error_at(problem, &t, &FitInput::default(), known, epochs, monitor)?;
        let deviation = centre.deviation * centre.scale;
        let share = (error / deviation).powi(2);
        // Nothing was held out, or nothing is known about it.
        Ok(if share.is_finite() {
            share
        } else {
            centre.left
        })
    };
    let before = 0.8 * centre.left;
    if o.start_modes.is_empty() {
        let mut best = f64::INFINITY;
        for pair in pairs(problem) {
            let error = run(&pair, before, TRIAL_EPOCHS)?;
            // The largest modes come first, and give way to what is clearly better only.
            if error < CLEARLY * best {
                best = error;
                o.start_modes = pair;
            }
        }
    }
    if o.lambda_reg.is_some() {
        return Ok(before);
    }
    let first = run(&o.start_modes, before, NOISE_EPOCHS)?;
    // Once more with what was found, if that is much less than was thought.
    match first < 0.5 * before {
        true => run(&o.start_modes, first, NOISE_EPOCHS),
        false => Ok(first.min(centre.left.max(before))),
    }
}

/// All pairs of the largest modes, counted from 1; that of the two largest comes first.
fn pairs(problem: &Problem<'_>) -> Vec<Vec<usize>> {
    let mut modes: Vec<usize> = (0..problem.order()).collect();
    modes.sort_by_key(|&n| std::cmp::Reverse(problem.modes()[n].rows().len()));
    modes.truncate(PAIRS_AMONG);
    let pair = |(i, &b): (usize, &usize)| {
        let larger = modes[..i].to_vec();
        larger
            .into_iter()
            .map(move |a| vec![a.min(b) + 1, a.max(b) + 1])
    };
    modes.iter().enumerate().flat_map(pair).collect()
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
    fn epoch(&mut self, figures: &Epoch) -> Control {
        match figures.epoch >= self.0 {
            true => Control::Stop,
            false => Control::Continue,
        }
    }
}
