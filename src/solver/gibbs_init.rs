//! Where a fit starts that nothing else is said about: a few sweeps of `gibbs`, which find structure that
//! no slice of the tensor shows, how much noise there is, and what rows are like on the whole.

use std::sync::Arc;

use super::cp_to_tucker::compress;
use super::data::Held;
use super::fit::{Clock, Fit, Known, thread_pool};
use super::hyperparameters::rank;
use super::input::FitInput;
use super::observer::{Control, Observer, StopReason};
use super::reparametrization::column_norms;
use super::standardization::Centre;
use crate::error::{Error, Result};
use crate::model::{EpochMetrics, Model};
use crate::options::{Algorithm, Initialization, ModelKind, Options, Penalty};
use crate::problem::Problem;
use crate::progress::Monitor;

/// Sweeps, at least and at most.
const LEAST: usize = 8;
const MOST: u64 = 60;

/// Draws have come to rest when so many sweeps bring the squared error to no less than this share.
const STRETCH: usize = 4;
const AT_REST: f64 = 0.96;

/// Columns that are drawn. Sweeps take time with their square, and this many find nearly all there is.
const RANK: usize = 32;

/// Of larger data a part of the entries is drawn from.
const ENTRIES: f64 = 5e6;

/// The share of entries that is kept from draws to see what they are worth, and the fewest that tell.
const KEPT: f64 = 0.05;
const FEW: f64 = 200.0;

/// One draw whose squared error on them is about as large as that of biases begins to be doubted, and with somewhat more
/// it is taken for noise. Chosen on planted data and on parts kept from training entries (docs/accuracy.md).
const EQUAL: f64 = 0.95;
const WORSE: f64 = 1.05;

/// A column that alone makes values so many times as large as they are is cancelled by others.
const LARGE: f64 = 3.0;

/// What some sweeps came to.
#[derive(Clone)]
pub(super) struct Drawn {
    /// A CP model.
    model: Arc<Model>,
    /// The squared error per entry: what the model takes for noise.
    noise: f64,
    /// The squared error of the last draw on entries that it was not drawn from, if there are enough.
    error: Option<f64>,
}

impl Drawn {
    /// Draws for fits with `options`, from all entries but those that are `held`.
    pub(super) fn new(
        problem: &Problem<'_>,
        options: &Options,
        held: f64,
        clock: Option<Clock>,
        monitor: &dyn Monitor,
    ) -> Result<Drawn> {
        let mut o = options.clone();
        (o.algorithm, o.penalty) = (Algorithm::Gibbs, Penalty::L2);
        (o.model, o.rank) = (ModelKind::Cp, vec![drawn_rank(problem, options)]);
        (o.start, o.start_modes) = (Initialization::Identity, vec![1, 2]);
        (o.eta, o.lambda_reg, o.core_step) = (Some(0.0), Some(0.0), Some(1.0));
        (o.burn_in, o.samples, o.thin) = (MOST, 1, 1);
        (o.eval_every, o.tolerance, o.patience, o.valid_fraction) = (1, 0.0, 0, 0.0);
        let count = problem.count() as f64;
        let kept = match count * KEPT < FEW {
            true => held,
            false => held.max(KEPT),
        };
        let used = (ENTRIES / count).min(1.0 - kept);
        let known = Known {
            held: (used < 1.0).then(|| Held::new(kept, used, o.seed)),
            clock,
            ..Known::default()
        };
        let (input, mut rest) = (FitInput::default(), Rest::default());
        let mut fit = Fit::new(problem, &o, &input, known, &mut (), monitor)?;
        fit.run(&mut rest, monitor)?;
        if monitor.cancelled() {
            return Err(Error::Cancelled);
        }
        let error = match count * kept < FEW {
            true => None,
            false => Some(fit.valid_error()?.powi(2)),
        };
        let (model, summary) = fit.finish(StopReason::Epochs, &mut ())?;
        let last = &rest.squares[rest.squares.len().saturating_sub(STRETCH)..];
        Ok(Drawn {
            model: Arc::new(model),
            noise: match last.is_empty() {
                true => summary.train_rmse.powi(2),
                false => last.iter().sum::<f64>() / last.len() as f64,
            },
            error,
        })
    }

    /// The share of their variance that is noise, of values that have a `variance` and of which biases leave the shares that
    /// `centre` knows: as draws say, unless they do no better on other entries than biases.
    pub(super) fn share_of_noise(&self, centre: &Centre, variance: f64) -> f64 {
        let share = self.noise / variance;
        if !share.is_finite() {
            return 1.0;
        }
        let ratio = self
            .error
            .map_or(0.0, |e| e / variance / centre.left_of_others);
        let doubt = (ratio - EQUAL) / (WORSE - EQUAL);
        let doubt = if doubt > 0.0 { doubt.min(1.0) } else { 0.0 };
        let share = share.min(1.0);
        share + doubt * (centre.left - share).max(0.0)
    }

    /// Whether columns far larger than values of this `deviation` cancel each other, as they do where too few cells
    /// are known without noise: no step suits rows like that.
    pub(super) fn cancels(&self, deviation: f64) -> bool {
        let model = &self.model;
        let mut sizes: Vec<f64> = model.core[..model.shape.ranks[0]]
            .iter()
            .map(|g| f64::from(g.abs()))
            .collect();
        for (n, mode) in model.modes.iter().enumerate() {
            let rows = (mode.rows.len() as f64).sqrt().max(1.0);
            let norms = column_norms(model, n);
            let each = sizes.iter_mut().zip(norms);
            each.for_each(|(size, norm)| *size *= norm / rows);
        }
        let largest = sizes.into_iter().fold(0.0, f64::max);
        largest > LARGE * deviation
    }

    /// Where a fit with `options` starts.
    pub(super) fn start(&self, problem: &Problem<'_>, options: &Options) -> Result<Arc<Model>> {
        if options.model == ModelKind::Cp {
            return Ok(self.model.clone());
        }
        let (mut model, _) = Model::zeros(problem, options)?;
        compress(&self.model, &mut model, &thread_pool(options))?;
        Ok(Arc::new(model))
    }
}

/// The rank that is drawn with for a fit with `options`: columns of a CP model beyond start anew, and a full core
/// is cut out of what all columns say.
pub(super) fn drawn_rank(problem: &Problem<'_>, options: &Options) -> usize {
    let most = options.rank.iter().copied().max().unwrap_or(1);
    match options.model {
        ModelKind::Cp => most.min(RANK),
        _ => most.max(rank(problem, ModelKind::Cp).min(RANK)),
    }
}

/// Ends draws that have come to rest.
#[derive(Default)]
struct Rest {
    /// Errors per entry after each sweep.
    squares: Vec<f64>,
}

impl Observer for Rest {
    fn epoch(&mut self, figures: &EpochMetrics) -> Control {
        let now = figures.train_rmse.powi(2);
        self.squares.push(now);
        let sweeps = self.squares.len();
        match sweeps >= LEAST && now > AT_REST * self.squares[sweeps - 1 - STRETCH] {
            true => Control::Stop,
            false => Control::Continue,
        }
    }
}
