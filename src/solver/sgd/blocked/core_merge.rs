//! Merging the copies of the core. Its directions are products of one direction per mode, and their
//! curvature the product of theirs.

use super::curvature::{Basis, highest, share};
use crate::kernel::ModeProducts;

use crate::kernel::{CoreKind, CoreShape};
use crate::simd::Level;

/// Cores up to which all directions are told apart; beyond, one and the rest.
const LARGEST: usize = 8192;

/// How the sum of moves of a core becomes what they come to, in an epoch.
pub(super) enum CoreMerge {
    /// All directions are known: to them, and back.
    Turned {
        there: ModeProducts,
        back: ModeProducts,
        curvature: Vec<f32>,
    },
    /// The direction of the highest curvature, and the highest of all others for the rest.
    Steepest {
        direction: Vec<f32>,
        first: f32,
        second: f32,
    },
    /// A hyper-diagonal core is a row.
    Row(Basis),
}

impl CoreMerge {
    /// For a core with its modes in the order of `shape`, `bases` being those of all modes in that
    /// order, or the one of a hyper-diagonal core.
    pub(super) fn new(level: Level, shape: &CoreShape, bases: &[&Basis]) -> CoreMerge {
        if shape.kind == CoreKind::Diagonal {
            return CoreMerge::Row(bases[0].clone());
        }
        let product = |at: &dyn Fn(&Basis, usize) -> f32| -> Vec<f32> {
            let dense: Vec<f32> = bases.iter().fold(vec![1.0], |all, b| {
                let one = (0..b.rank).map(|i| at(b, i)).collect::<Vec<f32>>();
                all.iter()
                    .flat_map(|&x| one.iter().map(move |&y| x * y))
                    .collect()
            });
            shape.padded_core(&dense)
        };
        let known = bases.iter().all(|b| !b.directions.is_empty());
        if known && shape.ranks.iter().product::<usize>() <= LARGEST {
            let transposed: Vec<Vec<f32>> = bases
                .iter()
                .map(|b| {
                    let n = b.rank;
                    (0..n * n)
                        .map(|k| b.directions[k % n * n + k / n])
                        .collect()
                })
                .collect();
            let there: Vec<&[f32]> = bases.iter().map(|b| b.directions.as_slice()).collect();
            let back: Vec<&[f32]> = transposed.iter().map(Vec::as_slice).collect();
            return CoreMerge::Turned {
                there: ModeProducts::new(level, shape, &there),
                back: ModeProducts::new(level, shape, &back),
                curvature: product(&|b, i| b.curvature[i]),
            };
        }
        let top: Vec<usize> = bases.iter().map(|b| highest(&b.curvature, None)).collect();
        let highest_of = bases.iter().zip(&top).map(|(b, &i)| b.curvature[i]);
        let first: f32 = highest_of.product();
        let without = |(b, &i): (&&Basis, &usize)| {
            let next = b.curvature[highest(&b.curvature, Some(i))];
            first / b.curvature[i].max(f32::MIN_POSITIVE) * next
        };
        let second = bases
            .iter()
            .zip(&top)
            .filter(|(b, _)| b.rank > 1)
            .map(without)
            .fold(0.0, f32::max);
        if !known {
            return CoreMerge::Steepest {
                direction: vec![0.0; shape.core_len()],
                first,
                second: first,
            };
        }
        let direction = product(&|b, i| b.directions[highest(&b.curvature, None) * b.rank + i]);
        CoreMerge::Steepest {
            direction,
            first,
            second,
        }
    }

    /// What moves are multiplied with in every direction, for `all` entries in all and `one` in one
    /// block. The same for all steps of a sweep.
    pub(super) fn shares(&self, eta: f32, penalty: f32, (all, one): (f32, f32)) -> Vec<f32> {
        let of = |curvature: &f32| share(*curvature + penalty, eta, all, one);
        match self {
            CoreMerge::Turned { curvature, .. } => curvature.iter().map(of).collect(),
            CoreMerge::Steepest { first, second, .. } => vec![of(first), of(second)],
            CoreMerge::Row(basis) => basis.curvature.iter().map(of).collect(),
        }
    }

    /// Turns the sum of moves into what they come to.
    pub(super) fn apply(&self, moves: &mut Vec<f32>, work: &mut Vec<f32>, shares: &[f32]) {
        match self {
            CoreMerge::Turned { there, back, .. } => {
                there.apply(moves, work);
                moves.iter_mut().zip(shares).for_each(|(m, s)| *m *= s);
                back.apply(moves, work);
            }
            CoreMerge::Steepest { direction, .. } => {
                let along: f32 = moves.iter().zip(direction).map(|(m, d)| m * d).sum();
                let more = (shares[0] - shares[1]) * along;
                let each = moves.iter_mut().zip(direction);
                each.for_each(|(m, d)| *m = shares[1] * *m + more * d);
            }
            CoreMerge::Row(basis) => basis.apply_shares(moves, shares),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A turned basis: a rotation in the first two coordinates, if there are two.
    fn basis(rank: usize, curvature: f32) -> Basis {
        let mut directions = vec![0.0; rank * rank];
        (0..rank).for_each(|i| directions[i * rank + i] = 1.0);
        if rank > 1 {
            (directions[0], directions[1]) = (0.6, 0.8);
            (directions[rank], directions[rank + 1]) = (-0.8, 0.6);
        }
        let mut all = vec![0.0; rank];
        all[0] = curvature;
        Basis {
            rank,
            directions,
            curvature: all,
        }
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
            let merge = CoreMerge::new(Level::best(), &shape, &[&a, &b, &c]);
            let mut moves = shape.padded_core(&dense);
            let shares = merge.shares(0.1, 0.0, (10.0, 1.0));
            merge.apply(&mut moves, &mut Vec::new(), &shares);
            let moves = shape.dense_core(&moves);
            let along = |m: &[f32]| -> f32 {
                let at = |k: usize| {
                    m[k] * a.directions[k / 12] * b.directions[k / 4 % 3] * c.directions[k % 4]
                };
                (0..24).map(at).sum()
            };
            let size = |m: &[f32]| m.iter().map(|x| x * x).sum::<f32>() - along(m).powi(2);
            let expected = if curvature > 0.0 { 0.1 } else { 1.0 };
            assert!((along(&moves) / along(&dense) - expected).abs() < 1e-3);
            assert!((size(&moves) / size(&dense) - 1.0).abs() < 1e-3);
        }
    }

    #[test]
    fn a_large_core_knows_its_steepest_direction() {
        let shape = CoreShape::new(CoreKind::Full, &[30, 30, 30]);
        let b = basis(30, 1e5);
        let merge = CoreMerge::new(Level::best(), &shape, &[&b, &b, &b]);
        assert!(matches!(merge, CoreMerge::Steepest { .. }));
        let shares = merge.shares(0.1, 0.0, (10.0, 1.0));
        let CoreMerge::Steepest { direction, .. } = &merge else {
            unreachable!()
        };
        let mut moves: Vec<f32> = direction.iter().map(|d| 10.0 * d).collect();
        let mut other = shape.padded_core(&vec![0.0; 27_000]);
        other[5 * 32 + 7] = 1.0;
        moves.iter_mut().zip(&other).for_each(|(m, o)| *m += o);
        merge.apply(&mut moves, &mut Vec::new(), &shares);
        let along: f32 = moves.iter().zip(direction).map(|(m, d)| m * d).sum();
        assert!((along - 1.0).abs() < 1e-2 && (moves[5 * 32 + 7] - 1.0).abs() < 1e-2);
    }
}
