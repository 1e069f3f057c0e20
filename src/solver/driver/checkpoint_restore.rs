//! Restoring a fit from a checkpoint.

use crate::error::Result;
use crate::model::{Checkpoint, Model, ParameterSnapshot};
use crate::solver::input::FitInput;
use crate::solver::resume::{Progress, check_shape};
use crate::solver::standardization::{Standardization, ValueUnits};

/// Restores `model` from a checkpoint, in standardized units. Returns its progress and the best parameters.
pub(super) fn restore_checkpoint(
    model: &mut Model,
    saved_model: Model,
    saved: Checkpoint,
    standardization: &Standardization,
    input: &FitInput<'_>,
) -> Result<(Progress, Option<ParameterSnapshot>)> {
    check_shape(model, &saved_model, input)?;
    let progress = Progress::from_checkpoint(&saved, saved_model.options(), input)?;
    let mut parameters = saved_model.snapshot()?;
    standardization.convert_parameters(&mut parameters, ValueUnits::Standardized)?;
    model.restore(&parameters)?;
    model.history = saved_model.history.clone();
    model.record = saved_model.record.clone();
    model.samples = saved_model.samples;
    model.core_prior_mean = saved_model.core_prior_mean;
    for (mode, old) in model.modes.iter_mut().zip(saved_model.modes) {
        mode.prior.linear = old.prior.linear;
    }
    let mut best = saved.best;
    if let Some(best) = &mut best {
        standardization.convert_parameters(best, ValueUnits::Standardized)?;
    }
    Ok((progress, best))
}
