//! The updates around an epoch of SGD that do not go through the entries: full matrices and the shrinkage of the core.

use crate::error::Result;
use crate::kernel::Regularizer;
use crate::model::Model;
use crate::options::{Options, Penalty};
use crate::solver::algorithm::FitContext;
use crate::solver::full_matrix_update;

/// Penalty per entry on the difference between a full core and its prior mean, for values of standard deviation 1.
/// Without it a full core overfits at once.
const CORE_PENALTY: f64 = 0.1;

/// Runs `epoch` between the two half updates of full matrices, then shrinks the core. After a diverged epoch nothing more
/// is done.
pub(super) fn run_with_outer_updates(
    model: &mut Model,
    context: &FitContext<'_>,
    eta: f64,
    epoch: impl FnOnce(&mut Model) -> Result<f64>,
) -> Result<f64> {
    let FitContext {
        options,
        data,
        pool,
        ..
    } = context;
    let rule = regularizer(options);
    if data.has_full_matrices() {
        full_matrix_update::before_epoch(model, data, eta, rule, pool)?;
    }
    let squared_error = epoch(model)?;
    if squared_error.is_finite() {
        shrink_core(model, context, eta);
        if data.has_full_matrices() {
            full_matrix_update::after_epoch(model, data, eta, rule, pool)?;
        }
    }
    Ok(squared_error)
}

/// Shrinks a full core towards its prior mean by what all entries of an epoch amount to. The change is so small that once per
/// epoch is often enough.
fn shrink_core(model: &mut Model, context: &FitContext<'_>, eta: f64) {
    let data = &context.data;
    let eta = eta * data.core_eta_scale;
    let entries = data.tensor_weight;
    let shrinkage = CORE_PENALTY * context.standardization.deviation.powi(2) * eta * entries;
    let keep = (1.0 / (1.0 + shrinkage)) as f32;
    for (g, prior) in model.core.iter_mut().zip(&model.core_prior_mean) {
        *g = prior + keep * (*g - prior);
    }
}

/// Returns the kernels' form of the penalty options.
pub(super) fn regularizer(options: &Options) -> Regularizer {
    Regularizer {
        l1: options.penalty == Penalty::L1,
        nonneg: options.nonneg,
    }
}
