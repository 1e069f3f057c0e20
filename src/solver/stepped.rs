//! Where `als` and `gibbs` start with `start = sgd`: where a few epochs of SGD come to.

use std::sync::Arc;

use super::fit::{Clock, Fit, Known};
use super::input::FitInput;
use super::observer::StopReason;
use super::settle::steps;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::monitor::Monitor;
use crate::options::{Algorithm, Options, Penalty, Schedule, Start};
use crate::problem::Problem;

/// Epochs of SGD.
const EPOCHS: u64 = 10;

/// A model to start a fit with `options` from; `None` if there is nothing to step by: all values are the same, or SGD
/// fails on them.
pub(super) fn stepped(
    problem: &Problem<'_>,
    options: &Options,
    clock: Option<Clock>,
    monitor: &dyn Monitor,
) -> Result<Option<Arc<Model>>> {
    let mut o = Options {
        algorithm: Algorithm::Blocked,
        penalty: Penalty::L2,
        start: Start::Identity,
        start_modes: Vec::new(),
        epochs: EPOCHS,
        eval_every: EPOCHS,
        schedule: Schedule::Square,
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
        clock,
        ..Known::default()
    };
    let input = FitInput::default();
    let mut fit = Fit::new(problem, &o, &input, known, &mut (), monitor)?;
    let ran = fit.run(&mut (), monitor);
    if monitor.cancelled() {
        return Err(Error::Cancelled);
    }
    if ran.is_err() {
        return Ok(None);
    }
    let (mut model, _) = fit.finish(StopReason::Epochs, &mut ())?;
    // They stand for what is left beside the means of their matrices. Draws find them from the rows.
    for matrix in &mut model.matrices {
        matrix.factor.as_mut_slice()?.fill(0.0);
    }
    Ok(Some(Arc::new(model)))
}
