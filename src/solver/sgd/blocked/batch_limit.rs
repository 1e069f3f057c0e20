//! The longest batches that do not overshoot.
//!
//! A batch updates the row of the fiber mode and the core once, where single entries would update them many times. Its
//! update closes eta times the summed curvature of its entries of the distance to the minimum, which must stay below 1.

use super::curvature::Curvature;
use super::curvature_basis::CurvatureBasis;
use crate::kernel::MAX_BATCH_LEN;

/// Largest product of learning rate and summed curvature of a batch.
const MAX_ETA_CURVATURE: f64 = 0.7;

/// The longest stable batches of a matrix.
pub(super) struct MatrixBatchLimit {
    /// Number of entries.
    pub max_len: usize,
    /// Direction of the columns along which updates are damped.
    pub steepest: Vec<f32>,
    /// Curvature along that direction.
    pub steepness: f32,
}

/// Returns the longest stable batch, given the product of learning rate and curvature of one entry.
pub(super) fn max_stable_batch_len(eta_curvature: f64) -> usize {
    let longest = MAX_ETA_CURVATURE / eta_curvature.max(1e-9);
    // A NaN belongs to a diverged fit, which the driver detects; the cast makes it 0.
    (longest as usize).clamp(1, MAX_BATCH_LEN)
}

/// Returns the longest stable batches of each matrix. Its batches share a column, whose partial derivatives are the rows.
pub(super) fn matrix_batch_limits(curvature: &Curvature, eta: f64) -> Vec<MatrixBatchLimit> {
    let limit = |basis: &CurvatureBasis| {
        let steepest = basis.steepest();
        let total = f64::from(basis.curvature.iter().sum::<f32>());
        MatrixBatchLimit {
            max_len: max_stable_batch_len(eta * total * (1.0 - steepest.fraction)),
            steepest: steepest.direction,
            steepness: (total * steepest.fraction) as f32,
        }
    };
    curvature.columns.iter().map(limit).collect()
}
