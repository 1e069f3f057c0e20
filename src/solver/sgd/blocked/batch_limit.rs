//! The longest batches that neither overshoot nor average the noise of their entries.
//!
//! A batch updates the row of the fiber mode and the core once, where single entries would update them many times. Its
//! update closes eta times the summed curvature of its entries of the distance to the minimum, which must stay below 1.
//! Along the steepest direction it is damped instead, so that it closes as much as the updates of single entries. With x
//! the product of eta, curvature and entries, a damped update has (2 / x) (1 - exp(-x)) / (1 + exp(-x)) of the variance
//! of single updates, and fits need this variance to leave plateaus.

use std::sync::atomic::{AtomicU32, Ordering};

use super::curvature::Curvature;
use super::curvature_basis::CurvatureBasis;
use crate::kernel::MAX_BATCH_LEN;

/// Largest product of learning rate and summed curvature of a batch.
const MAX_ETA_CURVATURE: f64 = 0.7;

/// The same along the steepest direction, where updates are damped: a batch keeps 98% of the variance of single entries.
const MAX_ETA_STEEPNESS: f64 = 0.5;

/// The longest stable batches of a tensor block, as last measured in this epoch.
#[derive(Default)]
pub(super) struct TensorBatchLimit {
    /// Number of entries at which runs are cut into batches in this epoch: the first measured limit; 0 before.
    batch_len: AtomicU32,
    /// Number of entries of the longest stable batch.
    max_len: AtomicU32,
    /// Curvature along the steepest direction of the fiber mode's rows, along which updates are damped.
    steepness: AtomicU32,
}

impl TensorBatchLimit {
    pub(super) fn set(&self, max_len: usize, steepness: f32) {
        if self.batch_len() == 0 {
            self.batch_len.store(max_len as u32, Ordering::Relaxed);
        }
        self.max_len.store(max_len as u32, Ordering::Relaxed);
        self.steepness.store(steepness.to_bits(), Ordering::Relaxed);
    }

    pub(super) fn batch_len(&self) -> usize {
        self.batch_len.load(Ordering::Relaxed) as usize
    }

    pub(super) fn max_len(&self) -> usize {
        self.max_len.load(Ordering::Relaxed) as usize
    }

    pub(super) fn steepness(&self) -> f32 {
        f32::from_bits(self.steepness.load(Ordering::Relaxed))
    }
}

/// The longest stable batches of a matrix.
pub(super) struct MatrixBatchLimit {
    /// Number of entries.
    pub max_len: usize,
    /// Direction of the columns along which updates are damped.
    pub steepest: Vec<f32>,
    /// Curvature along that direction.
    pub steepness: f32,
}

/// Returns the number of entries of the longest batch, given the products of learning rate and curvature of one entry:
/// `eta_steepness` along the steepest direction, `eta_curvature` summed over all others.
pub(super) fn max_batch_len(eta_curvature: f64, eta_steepness: f64) -> usize {
    let longest = f64::min(
        MAX_ETA_CURVATURE / eta_curvature.max(1e-9),
        MAX_ETA_STEEPNESS / eta_steepness.max(1e-9),
    );
    // A NaN belongs to a diverged fit, which the driver detects; the cast makes it 0.
    (longest as usize).clamp(1, MAX_BATCH_LEN)
}

/// Returns the longest stable batches of each matrix. Its batches share a column, whose partial derivatives are the rows.
pub(super) fn matrix_batch_limits(curvature: &Curvature, eta: f64) -> Vec<MatrixBatchLimit> {
    let limit = |basis: &CurvatureBasis| {
        let steepest = basis.steepest();
        let total = f64::from(basis.curvature.iter().sum::<f32>());
        let steepness = total * steepest.fraction;
        MatrixBatchLimit {
            max_len: max_batch_len(eta * (total - steepness), eta * steepness),
            steepest: steepest.direction,
            steepness: steepness as f32,
        }
    };
    curvature.columns.iter().map(limit).collect()
}
