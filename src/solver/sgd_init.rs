//! Starting values of `gibbs` with `start = sgd`: the result of a few epochs of SGD.

use std::sync::Arc;

use super::driver::{Clock, Fit, FitState};
use super::holdout_split::HoldoutSplit;
use super::hyperparameters::resolve_identity_start;
use super::input::FitInput;
use super::observer::{Event, StopReason};
use crate::error::{Error, Result};
use crate::model::Model;
use crate::options::{Algorithm, Initialization, LearningRateSchedule, Options, Penalty};
use crate::problem::Problem;
use crate::progress::Monitor;

/// Number of epochs of SGD.
const EPOCHS: u64 = 10;

/// Starting values found by SGD.
pub(super) enum SgdStart {
    Model(Arc<Model>),
    /// All values are equal, so there is nothing to learn.
    Constant,
    /// SGD diverged; the event contains the reason.
    Diverged(Event),
}

/// Runs SGD on all entries that `holdout` does not hold out and returns the model that a fit with `options` starts from.
pub(super) fn sgd_start(
    problem: &Problem<'_>,
    options: &Options,
    holdout: Option<HoldoutSplit>,
    clock: Option<Clock>,
    monitor: &dyn Monitor,
) -> Result<SgdStart> {
    // Options that `gibbs` ignores have their defaults here.
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
    let Some(standardization) = resolve_identity_start(problem, &mut o, monitor)? else {
        return Ok(SgdStart::Constant);
    };
    let state = FitState {
        standardization: Some(standardization),
        holdout,
        clock,
        ..FitState::default()
    };
    let input = FitInput::default();
    let mut fit = Fit::new(problem, &o, &input, state, &mut (), monitor)?;
    let ran = fit.run(&mut (), monitor);
    if monitor.cancelled() {
        return Err(Error::Cancelled);
    }
    let model = ran.and_then(|_| fit.finish(StopReason::Epochs, &mut ()));
    let mut model = match model {
        Ok((model, _)) => model,
        Err(Error::Argument(why)) => {
            let text = format!("SGD diverged, the chain starts as with start = identity: {why}");
            return Ok(SgdStart::Diverged(Event::Warning(text)));
        }
        Err(e) => return Err(e),
    };
    // The columns of SGD belong to matrices without their offsets; the chain solves for its own from the rows.
    for matrix in &mut model.matrices {
        matrix.factor.as_mut_slice()?.fill(0.0);
    }
    Ok(SgdStart::Model(Arc::new(model)))
}
