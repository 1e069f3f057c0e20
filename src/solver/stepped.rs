//! Where `gibbs` starts with `start = sgd`: where a few epochs of SGD come to.

use std::sync::Arc;

use super::data::Held;
use super::fit::{Clock, Fit, Known};
use super::hyperparameters::steps;
use super::input::FitInput;
use super::observer::{Event, StopReason};
use crate::error::{Error, Result};
use crate::model::Model;
use crate::options::{Algorithm, Initialization, LearningRateSchedule, Options, Penalty};
use crate::problem::Problem;
use crate::progress::Monitor;

/// Epochs of SGD.
const EPOCHS: u64 = 10;

/// A model to start a fit with `options` from, of entries that are not `held`; or what there is to say where SGD
/// diverges. `None` if all values are the same: nothing to step by.
pub(super) fn stepped(
    problem: &Problem<'_>,
    options: &Options,
    held: Option<Held>,
    clock: Option<Clock>,
    monitor: &dyn Monitor,
) -> Result<Option<std::result::Result<Arc<Model>, Event>>> {
    // What plays no part in `gibbs` plays none here.
    let defaults = Options::default();
    let mut o = Options {
        algorithm: Algorithm::Blocked,
        penalty: Penalty::L2,
        start: Initialization::Identity,
        start_modes: Vec::new(),
        epochs: EPOCHS,
        eval_every: EPOCHS,
        schedule: LearningRateSchedule::Square,
        mean: true,
        mode_steps: Vec::new(),
        attempts: defaults.attempts,
        orthogonal: false,
        ..options.clone()
    };
    (o.eta, o.lambda_reg, o.core_step) = (None, None, None);
    (o.tolerance, o.patience, o.valid_fraction) = (0.0, 0, 0.0);
    let Some(centre) = steps(problem, &mut o, monitor)? else {
        return Ok(None);
    };
    let known = Known {
        centre: Some(centre),
        held,
        clock,
        ..Known::default()
    };
    let input = FitInput::default();
    let mut fit = Fit::new(problem, &o, &input, known, &mut (), monitor)?;
    let ran = fit.run(&mut (), monitor);
    if monitor.cancelled() {
        return Err(Error::Cancelled);
    }
    let model = ran.and_then(|_| fit.finish(StopReason::Epochs, &mut ()));
    let mut model = match model {
        Ok((model, _)) => model,
        Err(Error::Argument(why)) => {
            let what = format!("SGD gives no start, draws begin as with start = identity: {why}");
            return Ok(Some(Err(Event::Warning(what))));
        }
        Err(e) => return Err(e),
    };
    // They stand for what is left beside the means of their matrices. Draws find them from the rows.
    for matrix in &mut model.matrices {
        matrix.factor.as_mut_slice()?.fill(0.0);
    }
    Ok(Some(Ok(Arc::new(model))))
}
