//! How far copies have moved towards where one after the other would have gone.
//!
//! Blocks of a step start from the same numbers, and each moves its own copies. One after the other,
//! they would have moved further: along a direction in which the loss has the curvature c (the mean
//! squared derivative of the model by a number in that direction, times the weights of entries), n steps of size eta close about
//! 1 - exp(-eta c n) of the distance to the best place. So along a direction in which a block
//! already gets there, the moves of blocks must be averaged, and along one in which it hardly gets
//! anywhere, added up. Averaging everything would slow down what is slow already, adding up
//! everything would overshoot where curvature is high. The sum of moves is multiplied with what n
//! entries close over what n / m blocks of m entries close each.
//!
//! Curvature is measured at the start of an epoch on a sample of entries: for a row of a mode the
//! second moments of the slopes, for the columns of a matrix those of the rows, for the core those of
//! the products of rows, taken as the product of the modes' moments.

use crate::kernel::{EntryBlock, Method, TensorKernel};

use crate::linalg::{Eigen, JacobiTolerance, jacobi};
use crate::model::Model;
use crate::simd::Level;

use crate::kernel::CoreKind;

use crate::random::splitmix64;
use crate::simd::padded_len;

use crate::solver::data::Data;
use crate::solver::stream_ids;

/// Entries that are looked at.
const SAMPLE: usize = 256;

/// Ranks up to which the directions of a mode are found; beyond, they are the coordinates.
const LARGEST_RANK: usize = 64;

/// The same where the coordinates are nearly such directions already: without a full core, columns have
/// little in common.
const LARGEST_TURNED: usize = 24;

/// Curvature is taken for this much higher than the sample has it: where it really is, moves that are
/// added up overshoot, while moves that fall short are made up for in the next step.
const SAFETY: f32 = 4.0;

/// Accuracy of the eigenvectors: what is measured on a sample needs no more.
const EIGEN_TOLERANCE: JacobiTolerance = JacobiTolerance {
    off_diagonal: 2e-10,
    negligible: 1e-16,
    sweeps: 12,
};

/// Directions, each with its curvature: orthonormal rows.
#[derive(Debug, Clone)]
pub(super) struct Basis {
    pub rank: usize,
    /// One direction after the other, of `rank` numbers each; empty if they are the coordinates.
    pub directions: Vec<f32>,
    pub curvature: Vec<f32>,
}

/// What was measured.
pub(super) struct Curvature {
    /// For each mode, of the slopes of its rows.
    pub slopes: Vec<Basis>,
    /// For each matrix, of its columns, times its weight.
    pub columns: Vec<Basis>,
    /// For each mode, of its rows; for CP one, of their products.
    pub core: Vec<Basis>,
}

impl Curvature {
    pub(super) fn measure(model: &Model, data: &Data, level: Level) -> Curvature {
        let shape = &model.shape;
        let order = shape.order();
        let mut kernel = TensorKernel::new(shape, Method::Shared(level));
        let mut rows = vec![0.0; shape.rows_len()];
        let mut slopes = rows.clone();
        let mut moments: Vec<Moments> = shape.ranks.iter().map(|&j| Moments::new(j)).collect();
        let mut cores = match shape.kind {
            CoreKind::Full => moments.clone(),
            CoreKind::Diagonal => vec![Moments::new(shape.ranks[0])],
        };
        for (entry, weight) in sample(data.tensor.blocks(), order, SAMPLE) {
            for (n, &row) in entry.iter().enumerate() {
                let row = model.modes[n].factor.padded_row(row as usize);
                rows[shape.row(n)].copy_from_slice(row);
            }
            kernel.slopes(&model.core, &rows, &mut slopes);
            for (n, m) in moments.iter_mut().enumerate() {
                m.add(&slopes[shape.row(n)], weight);
            }
            match shape.kind {
                CoreKind::Full => {
                    // Their product has the weight once.
                    for (n, m) in cores.iter_mut().enumerate() {
                        m.add(&rows[shape.row(n)], if n == 0 { weight } else { 1.0 });
                    }
                }
                CoreKind::Diagonal => {
                    let j = shape.ranks[0];
                    let product: Vec<f32> = (0..j)
                        .map(|k| (0..order).map(|n| rows[shape.row(n)][k]).product())
                        .collect();
                    cores[0].add(&product, weight);
                }
            }
        }
        let columns = data.matrices.iter().map(|m| {
            // Without the mean row behind them, which is no parameter.
            let (rows, all) = (&model.modes[m.mode].factor, model.modes[m.mode].rows.len());
            let n = all.min(SAMPLE);
            let mut moments = Moments::new(m.rank);
            for k in 0..n {
                moments.add(rows.row(k * all / n), 1.0);
            }
            let turned = shape.kind == CoreKind::Full || m.rank <= LARGEST_TURNED;
            moments.basis(f64::from(m.weight) * m.mean_weight, turned)
        });
        let turned = shape.kind == CoreKind::Full || shape.ranks[0] <= LARGEST_TURNED;
        Curvature {
            columns: columns.collect(),
            slopes: moments.iter().map(|m| m.basis(1.0, turned)).collect(),
            core: cores.iter().map(|m| m.basis(1.0, turned)).collect(),
        }
    }
}

/// The rows of some entries, spread over all cells, and their weights.
pub(super) fn sample(cells: &[EntryBlock], order: usize, count: usize) -> Vec<(Vec<u32>, f32)> {
    let filled: Vec<&EntryBlock> = cells.iter().filter(|c| c.len() > 0).collect();
    (0..count.min(filled.len() * count))
        .map(|k| {
            let cell = filled[k * filled.len() / count];
            let hash = splitmix64((stream_ids::ENTRY_SAMPLE << 32) ^ k as u64);
            let mut rows = vec![0; order];
            let entry = (hash % cell.len() as u64) as usize;
            cell.rows_of_entry(entry, &mut rows);
            (rows, cell.weight(entry))
        })
        .collect()
}

/// Second moments of some vectors, by weight.
#[derive(Clone)]
struct Moments {
    rank: usize,
    sums: Vec<f64>,
    count: f64,
    size: f64,
}

impl Moments {
    fn new(rank: usize) -> Moments {
        Moments {
            rank,
            sums: vec![0.0; rank * rank],
            count: 0.0,
            size: 0.0,
        }
    }

    fn add(&mut self, x: &[f32], weight: f32) {
        let (x, weight) = (&x[..self.rank], f64::from(weight));
        let size = x.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>();
        for (row, &a) in self.sums.chunks_exact_mut(self.rank).zip(x) {
            row.iter_mut()
                .zip(x)
                .for_each(|(s, &b)| *s += weight * (f64::from(a) * f64::from(b)));
        }
        self.count += 1.0;
        self.size += weight * size;
    }

    /// With `turned`, directions are found; else they are the coordinates.
    fn basis(&self, weight: f64, turned: bool) -> Basis {
        let scale = weight / self.count.max(1.0);
        let fine = self.sums.iter().all(|x| x.is_finite());
        if self.rank > LARGEST_RANK || !turned || !fine {
            // No direction is steeper than what a row of the moments adds up to; most of that is
            // chance, and taken for more it is anyway.
            let bound = |(i, row): (usize, &[f64])| {
                let sum = row.iter().map(|x| x.abs()).sum::<f64>() / f64::from(SAFETY);
                (sum.max(row[i]) * scale) as f32
            };
            let rows = self.sums.chunks_exact(self.rank).enumerate();
            return Basis {
                rank: self.rank,
                directions: Vec::new(),
                curvature: rows.map(bound).collect(),
            };
        }
        let Eigen { values, vectors } = jacobi(self.rank, self.sums.clone(), EIGEN_TOLERANCE);
        Basis {
            rank: self.rank,
            directions: vectors.iter().map(|&x| x as f32).collect(),
            curvature: values.iter().map(|v| (v.max(0.0) * scale) as f32).collect(),
        }
    }
}

/// What the sum of moves is multiplied with along a direction: `all` entries in all, `one` in one
/// block.
#[inline]
pub(super) fn share(curvature: f32, eta: f32, all: f32, one: f32) -> f32 {
    let h = SAFETY * eta * curvature;
    closed(h * all) / closed(h * one)
}

/// (1 - exp(-x)) / x: how much of the way is closed, compared with going on at the first speed.
#[inline]
fn closed(x: f32) -> f32 {
    // exp(-x) = 2^-(whole + rest), the rest in [0, 1) by its series; exact enough, and in vectors.
    let y = (x * std::f32::consts::LOG2_E).min(100.0);
    let whole = y as u32 as f32;
    let rest = (whole - y) * std::f32::consts::LN_2;
    let power = f32::from_bits((127 - whole as u32) << 23);
    let series =
        1.0 + rest * (1.0 + rest * (0.5 + rest * (1.0 / 6.0 + rest * (1.0 / 24.0 + rest / 120.0))));
    if x < 0.01 {
        1.0 - 0.5 * x
    } else {
        (1.0 - power * series) / x
    }
}

impl Basis {
    /// The direction of the highest curvature, padded like a row, and its share of all curvature. Without
    /// directions the share is 0.
    pub(super) fn steepest(&self) -> (Vec<f32>, f64) {
        let mut direction = vec![0.0; padded_len(self.rank)];
        if self.directions.is_empty() {
            return (direction, 0.0);
        }
        let top = highest(&self.curvature, None);
        direction[..self.rank].copy_from_slice(&self.directions[top * self.rank..][..self.rank]);
        let all: f32 = self.curvature.iter().sum();
        let share = f64::from(self.curvature[top] / all.max(f32::MIN_POSITIVE));
        (direction, if share.is_finite() { share } else { 0.0 })
    }

    /// Turns the sum of moves of a row into what they come to, with `all` entries and those of `one`
    /// block. The penalty curves all directions.
    pub(super) fn apply(&self, moves: &mut [f32], eta: f32, penalty: f32, (all, one): (f32, f32)) {
        let curvature = self.curvature.iter().map(|c| c + penalty);
        let shares = curvature.map(|c| share(c, eta, all, one));
        self.apply_shares(moves, &shares.collect::<Vec<f32>>());
    }

    /// The same with what moves are multiplied with along each direction.
    pub(super) fn apply_shares(&self, moves: &mut [f32], shares: &[f32]) {
        let n = self.rank;
        let moves = &mut moves[..n];
        if self.directions.is_empty() {
            moves.iter_mut().zip(shares).for_each(|(m, s)| *m *= s);
            return;
        }
        let old = moves.to_vec();
        moves.fill(0.0);
        for (direction, &share) in self.directions.chunks_exact(n).zip(shares) {
            let along: f32 = direction.iter().zip(&old).map(|(d, m)| d * m).sum();
            let c = along * share;
            moves
                .iter_mut()
                .zip(direction)
                .for_each(|(m, d)| *m += c * d);
        }
    }
}

pub(super) fn highest(values: &[f32], without: Option<usize>) -> usize {
    (0..values.len())
        .filter(|&i| Some(i) != without)
        .max_by(|&a, &b| values[a].total_cmp(&values[b]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_are_averaged_where_curvature_is_high_and_added_where_it_is_low() {
        let basis = Basis {
            rank: 2,
            directions: vec![0.6, 0.8, -0.8, 0.6],
            curvature: vec![1e6, 1e-9],
        };
        // Four blocks of 100 entries; the sum of moves is 4 along each direction.
        let mut moves = vec![4.0 * (0.6 - 0.8), 4.0 * (0.8 + 0.6)];
        basis.apply(&mut moves, 0.001, 0.0, (400.0, 100.0));
        let (high, low) = (
            0.6 * moves[0] + 0.8 * moves[1],
            -0.8 * moves[0] + 0.6 * moves[1],
        );
        assert!(
            (high - 1.0).abs() < 1e-3 && (low - 4.0).abs() < 1e-3,
            "{high} {low}"
        );
    }
}
