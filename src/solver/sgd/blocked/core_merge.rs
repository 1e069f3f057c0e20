//! Merging the replicas of the core.
//!
//! The curvature of a full core is a Kronecker product of one matrix per mode. Its eigenvectors are the outer products of
//! the modes' eigenvectors, its eigenvalues the products of theirs.

use super::curvature_basis::{CurvatureBasis, EntryCounts, argmax, merge_factor, transposed};
use crate::error::Result;
use crate::kernel::{CoreKind, CoreShape, ModeProducts};
use crate::simd::Level;
use crate::try_alloc::{CORE_ENTRIES, try_collect, try_zeroed};

/// Largest number of core entries for which all directions are distinguished. Beyond, only the steepest direction and
/// the rest are.
const MAX_ROTATED_ENTRIES: usize = 8192;

/// How the sum of the replicas' core deltas becomes the merged delta, in one epoch.
pub(super) enum CoreMerge {
    /// Full core with all directions: rotate to the eigenbasis, scale, rotate back.
    Rotated {
        to_basis: ModeProducts,
        from_basis: ModeProducts,
        /// Curvature along each direction, in the layout of the core.
        curvature: Vec<f32>,
    },
    /// Full core with the direction of the highest curvature, and the second highest curvature for all others.
    Steepest {
        direction: Vec<f32>,
        highest: f32,
        second: f32,
    },
    /// Hyper-diagonal core, which is a single row.
    Diagonal(CurvatureBasis),
}

impl CoreMerge {
    /// Prepares the merge of a core of shape `shape`. `bases` has one basis per mode in the order of `shape`, or one
    /// basis for a hyper-diagonal core.
    pub(super) fn new(
        level: Level,
        shape: &CoreShape,
        bases: &[&CurvatureBasis],
    ) -> Result<CoreMerge> {
        if shape.kind() == CoreKind::Diagonal {
            return Ok(CoreMerge::Diagonal(bases[0].clone()));
        }
        // The outer product of one vector per mode.
        let outer_product = |component: &dyn Fn(&CurvatureBasis, usize) -> f32| {
            let mut dense: Vec<f32> = vec![1.0];
            for b in bases {
                let vector = (0..b.rank).map(|i| component(b, i)).collect::<Vec<f32>>();
                let products = dense.iter();
                let products = products.flat_map(|&x| vector.iter().map(move |&y| x * y));
                dense = try_collect(dense.len() * b.rank, products, CORE_ENTRIES)?;
            }
            shape.padded_core(&dense)
        };
        let has_eigenvectors = bases.iter().all(|b| !b.directions.is_empty());
        if has_eigenvectors && shape.ranks().iter().product::<usize>() <= MAX_ROTATED_ENTRIES {
            let transposed: Vec<Vec<f32>> = bases
                .iter()
                .map(|b| transposed(&b.directions, b.rank))
                .collect();
            let rotations: Vec<&[f32]> = bases.iter().map(|b| b.directions.as_slice()).collect();
            let inverses: Vec<&[f32]> = transposed.iter().map(Vec::as_slice).collect();
            return Ok(CoreMerge::Rotated {
                to_basis: ModeProducts::new(level, shape, &rotations),
                from_basis: ModeProducts::new(level, shape, &inverses),
                curvature: outer_product(&|b, i| b.curvature[i])?,
            });
        }
        let top: Vec<usize> = bases.iter().map(|b| argmax(&b.curvature, None)).collect();
        let top_curvatures = bases.iter().zip(&top).map(|(b, &i)| b.curvature[i]);
        let highest: f32 = top_curvatures.product();
        // The next smaller eigenvalue replaces the factor of one mode.
        let runner_up = |(b, &i): (&&CurvatureBasis, &usize)| {
            let next = b.curvature[argmax(&b.curvature, Some(i))];
            highest / b.curvature[i].max(f32::MIN_POSITIVE) * next
        };
        let second = bases
            .iter()
            .zip(&top)
            .filter(|(b, _)| b.rank > 1)
            .map(runner_up)
            .fold(0.0, f32::max);
        if !has_eigenvectors {
            return Ok(CoreMerge::Steepest {
                direction: try_zeroed(shape.core_len(), CORE_ENTRIES)?,
                highest,
                second: highest,
            });
        }
        let direction =
            outer_product(&|b, i| b.directions[argmax(&b.curvature, None) * b.rank + i])?;
        Ok(CoreMerge::Steepest {
            direction,
            highest,
            second,
        })
    }

    /// Returns the merge factor of each direction; they are the same for all strata of a pass.
    pub(super) fn factors(&self, eta: f32, penalty: f32, entries: EntryCounts) -> Vec<f32> {
        let factor = |curvature: &f32| merge_factor(*curvature + penalty, eta, entries);
        match self {
            CoreMerge::Rotated { curvature, .. } => curvature.iter().map(factor).collect(),
            CoreMerge::Steepest {
                highest, second, ..
            } => vec![factor(highest), factor(second)],
            CoreMerge::Diagonal(basis) => basis.curvature.iter().map(factor).collect(),
        }
    }

    /// Replaces the sum of deltas by the merged delta.
    pub(super) fn merge(&self, delta: &mut Vec<f32>, scratch: &mut Vec<f32>, factors: &[f32]) {
        match self {
            CoreMerge::Rotated {
                to_basis,
                from_basis,
                ..
            } => {
                to_basis.apply(delta, scratch);
                delta.iter_mut().zip(factors).for_each(|(d, f)| *d *= f);
                from_basis.apply(delta, scratch);
            }
            CoreMerge::Steepest { direction, .. } => {
                let along: f32 = delta.iter().zip(direction).map(|(m, d)| m * d).sum();
                let correction = (factors[0] - factors[1]) * along;
                let floats = delta.iter_mut().zip(direction);
                floats.for_each(|(m, d)| *m = factors[1] * *m + correction * d);
            }
            CoreMerge::Diagonal(basis) => basis.scale(delta, factors, scratch),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRIES: EntryCounts = EntryCounts {
        total: 10.0,
        per_replica: 1.0,
    };

    /// A basis that is rotated in the first two coordinates, with curvature along the first direction only.
    fn basis(rank: usize, curvature: f32) -> CurvatureBasis {
        let mut directions = vec![0.0; rank * rank];
        (0..rank).for_each(|i| directions[i * rank + i] = 1.0);
        if rank > 1 {
            (directions[0], directions[1]) = (0.6, 0.8);
            (directions[rank], directions[rank + 1]) = (-0.8, 0.6);
        }
        let mut all = vec![0.0; rank];
        all[0] = curvature;
        CurvatureBasis::new(Level::best(), directions, all)
    }

    #[test]
    fn only_the_steep_direction_is_averaged() {
        let shape = CoreShape::new(CoreKind::Full, &[2, 3, 4]);
        let dense: Vec<f32> = (0..24).map(|x| (x as f32).sin()).collect();
        for curvature in [0.0, 1e5] {
            let (a, b, c) = (
                basis(2, curvature),
                basis(3, curvature),
                basis(4, curvature),
            );
            let merge = CoreMerge::new(Level::best(), &shape, &[&a, &b, &c]).unwrap();
            let mut delta = shape.padded_core(&dense).unwrap();
            let factors = merge.factors(0.1, 0.0, ENTRIES);
            merge.merge(&mut delta, &mut Vec::new(), &factors);
            let delta = shape.dense_core(&delta).unwrap();
            let along = |m: &[f32]| -> f32 {
                let term = |k: usize| {
                    m[k] * a.directions[k / 12] * b.directions[k / 4 % 3] * c.directions[k % 4]
                };
                (0..24).map(term).sum()
            };
            let squared_rest = |m: &[f32]| m.iter().map(|x| x * x).sum::<f32>() - along(m).powi(2);
            let expected = if curvature > 0.0 { 0.1 } else { 1.0 };
            assert!((along(&delta) / along(&dense) - expected).abs() < 1e-3);
            assert!((squared_rest(&delta) / squared_rest(&dense) - 1.0).abs() < 1e-3);
        }
    }

    #[test]
    fn a_large_core_distinguishes_its_steepest_direction() {
        let shape = CoreShape::new(CoreKind::Full, &[30, 30, 30]);
        let b = basis(30, 1e5);
        let merge = CoreMerge::new(Level::best(), &shape, &[&b, &b, &b]).unwrap();
        assert!(matches!(merge, CoreMerge::Steepest { .. }));
        let factors = merge.factors(0.1, 0.0, ENTRIES);
        let CoreMerge::Steepest { direction, .. } = &merge else {
            unreachable!()
        };
        let mut delta: Vec<f32> = direction.iter().map(|d| 10.0 * d).collect();
        let mut other = shape.padded_core(&vec![0.0; 27_000]).unwrap();
        other[5 * 32 + 7] = 1.0;
        delta.iter_mut().zip(&other).for_each(|(m, o)| *m += o);
        merge.merge(&mut delta, &mut Vec::new(), &factors);
        let along: f32 = delta.iter().zip(direction).map(|(m, d)| m * d).sum();
        assert!((along - 1.0).abs() < 1e-2 && (delta[5 * 32 + 7] - 1.0).abs() < 1e-2);
    }
}
