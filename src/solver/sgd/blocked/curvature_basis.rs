//! Merging deltas of replicas according to the curvature of the loss.
//!
//! The blocks of a stratum start from the same parameters, and each changes its own replicas. What would have become of the
//! parameters if the blocks had been processed one after the other? Along a direction in which the loss has curvature c (the
//! mean squared derivative of the prediction along this direction, times the weight of the entries), n updates with learning
//! rate eta leave exp(-eta c n) of an earlier delta. So the delta d_j of block j counts with the weight exp(-eta c N_j), where
//! N_j is the number of entries of the blocks after it. Along flat directions all deltas are added; along steep ones the
//! delta of the last block alone remains.
//!
//! These weights keep the progress of sequential SGD, and also its noise
//! ([`DeltaWeights::Sequential`](super::row_merge::DeltaWeights)). The noise matters: it is what makes a fit leave the plateau
//! around a symmetric start. Where it does not, as for the core, and at the end of an epoch, where it is part of the error,
//! all blocks have the mean of these weights. For blocks of m entries and n entries in total the mean is
//! (1 - exp(-eta c n)) / (1 - exp(-eta c m)) divided by the number of blocks: the progress of n sequential updates, divided by
//! the summed progress of the blocks ([`merge_factor`]).
//!
//! The weights assume a fixed curvature. It is measured at the start of a segment and multiplied by a safety factor
//! ([`CURVATURE_SAFETY_FACTOR`]): the weight of the last block is 1 in any case, so too high a curvature cannot make a merge
//! overshoot, too low a curvature can.

// One index runs over several arrays.
#![allow(clippy::needless_range_loop)]

use crate::kernel::{RowProducts, exp_minus};
use crate::simd::{Level, padded_len};

/// Factor by which the measured curvature is increased. If the curvature is underestimated, added deltas overshoot;
/// if it is overestimated, the next merge makes up for the smaller step.
pub(super) const CURVATURE_SAFETY_FACTOR: f32 = 4.0;

/// Orthonormal directions in parameter space with the curvature of the loss along each.
#[derive(Debug, Clone)]
pub(super) struct CurvatureBasis {
    pub rank: usize,
    /// One direction of `rank` floats after the other; empty if the directions are the coordinate axes.
    pub directions: Vec<f32>,
    pub curvature: Vec<f32>,
    /// `None` if the directions are the coordinate axes.
    pub rotation: Option<Rotation>,
}

/// Rotations of padded rows.
#[derive(Debug, Clone)]
pub(super) struct Rotation {
    /// From coordinates to components along the directions.
    pub to_basis: RowProducts,
    pub from_basis: RowProducts,
}

/// Numbers of entries behind a sum of deltas.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryCounts {
    /// Entries of all replicas together.
    pub total: f32,
    /// Entries of one replica.
    pub per_replica: f32,
}

/// Buffers of a merge.
#[derive(Default)]
pub(super) struct MergeScratch {
    factors: Vec<f32>,
    components: Vec<f32>,
}

/// The direction of the highest curvature.
pub(super) struct SteepestDirection {
    /// Unit vector, padded like a row.
    pub direction: Vec<f32>,
    /// Its fraction of the sum of all curvatures; 0 if the directions are the coordinate axes.
    pub fraction: f64,
}

/// Returns the factor of the sum of deltas along a direction.
#[inline]
pub(super) fn merge_factor(curvature: f32, eta: f32, entries: EntryCounts) -> f32 {
    let h = CURVATURE_SAFETY_FACTOR * eta * curvature;
    relative_progress(h * entries.total) / relative_progress(h * entries.per_replica)
}

/// Returns (1 - exp(-x)) / x: the distance closed, relative to continuing with the initial speed.
#[inline]
fn relative_progress(x: f32) -> f32 {
    if x < 0.01 {
        1.0 - 0.5 * x
    } else {
        (1.0 - exp_minus(x)) / x
    }
}

impl CurvatureBasis {
    /// Creates a basis from one direction after the other, or none for the coordinate axes, and the curvature along each.
    pub(super) fn new(level: Level, directions: Vec<f32>, curvature: Vec<f32>) -> CurvatureBasis {
        let n = curvature.len();
        let rotation = (!directions.is_empty()).then(|| Rotation {
            to_basis: RowProducts::new(level, n, &directions),
            from_basis: RowProducts::new(level, n, &transposed(&directions, n)),
        });
        CurvatureBasis {
            rank: n,
            directions,
            curvature,
            rotation,
        }
    }

    /// Returns direction `k`.
    pub(super) fn direction(&self, k: usize) -> Vec<f32> {
        match self.directions.is_empty() {
            true => (0..self.rank)
                .map(|j| f32::from(u8::from(j == k)))
                .collect(),
            false => self.directions[k * self.rank..][..self.rank].to_vec(),
        }
    }

    /// Returns the curvature along a unit vector.
    pub(super) fn along(&self, vector: &[f32]) -> f64 {
        let term = |(k, &c): (usize, &f32)| {
            let component = if self.directions.is_empty() {
                vector[k]
            } else {
                let direction = &self.directions[k * self.rank..][..self.rank];
                direction.iter().zip(vector).map(|(a, b)| a * b).sum()
            };
            f64::from(c * component * component)
        };
        self.curvature.iter().enumerate().map(term).sum()
    }

    /// Returns the direction of the highest curvature.
    pub(super) fn steepest(&self) -> SteepestDirection {
        let mut direction = vec![0.0; padded_len(self.rank)];
        if self.directions.is_empty() {
            return SteepestDirection {
                direction,
                fraction: 0.0,
            };
        }
        let top = argmax(&self.curvature, None);
        direction[..self.rank].copy_from_slice(&self.directions[top * self.rank..][..self.rank]);
        let total: f32 = self.curvature.iter().sum();
        let fraction = f64::from(self.curvature[top] / total.max(f32::MIN_POSITIVE));
        SteepestDirection {
            direction,
            fraction: if fraction.is_finite() { fraction } else { 0.0 },
        }
    }

    /// Replaces the sum of deltas of a row by the merged delta. The penalty adds its curvature to all directions.
    pub(super) fn merge_row(
        &self,
        delta: &mut [f32],
        eta: f32,
        penalty: f32,
        entries: EntryCounts,
        scratch: &mut MergeScratch,
    ) {
        scratch.factors.resize(self.curvature.len(), 0.0);
        for (j, &c) in self.curvature.iter().enumerate() {
            scratch.factors[j] = merge_factor(c + penalty, eta, entries);
        }
        self.scale(delta, &scratch.factors, &mut scratch.components);
    }

    /// Multiplies the component of a padded row `delta` along each direction by its factor. `components` is scratch memory.
    pub(super) fn scale(&self, delta: &mut [f32], factors: &[f32], components: &mut Vec<f32>) {
        let scale = |components: &mut [f32]| {
            let (components, factors) = (&mut components[..self.rank], &factors[..self.rank]);
            for j in 0..components.len() {
                components[j] *= factors[j];
            }
        };
        match &self.rotation {
            None => scale(delta),
            Some(rotation) => {
                components.resize(delta.len(), 0.0);
                rotation.to_basis.apply(delta, components);
                scale(components);
                rotation.from_basis.apply(components, delta);
            }
        }
    }
}

/// Returns a square matrix of `n` rows, transposed.
pub(super) fn transposed(matrix: &[f32], n: usize) -> Vec<f32> {
    (0..n * n).map(|k| matrix[k % n * n + k / n]).collect()
}

/// Returns the index of the largest value, other than index `excluded`.
pub(super) fn argmax(values: &[f32], excluded: Option<usize>) -> usize {
    (0..values.len())
        .filter(|&i| Some(i) != excluded)
        .max_by(|&a, &b| values[a].total_cmp(&values[b]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::LANES;

    #[test]
    fn deltas_are_averaged_where_curvature_is_high_and_added_where_it_is_low() {
        let directions = vec![0.6, 0.8, -0.8, 0.6];
        let basis = CurvatureBasis::new(Level::best(), directions, vec![1e6, 1e-9]);
        // Four blocks of 100 entries; the sum of deltas is 4 along each direction.
        let mut delta = [0.0; LANES];
        (delta[0], delta[1]) = (4.0 * (0.6 - 0.8), 4.0 * (0.8 + 0.6));
        let entries = EntryCounts {
            total: 400.0,
            per_replica: 100.0,
        };
        basis.merge_row(
            &mut delta,
            0.001,
            0.0,
            entries,
            &mut MergeScratch::default(),
        );
        let (high, low) = (
            0.6 * delta[0] + 0.8 * delta[1],
            -0.8 * delta[0] + 0.6 * delta[1],
        );
        assert!(
            (high - 1.0).abs() < 1e-3 && (low - 4.0).abs() < 1e-3,
            "{high} {low}"
        );
    }
}
