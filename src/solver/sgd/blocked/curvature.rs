//! Measures the curvature of the loss at the start of an epoch, on a sample of entries.
//!
//! The curvature of a row of a mode is the second moment of the partial derivatives of the prediction by the row. That of
//! a column of a matrix is the second moment of the rows. That of the core is the second moment of the outer products of
//! rows, approximated by the product of the second moments of the modes.

use super::curvature_basis::{CURVATURE_SAFETY_FACTOR, CurvatureBasis};
use super::entry_sample::sample_entries;
use crate::error::Result;
use crate::kernel::{CoreKind, Method, TensorKernel};
use crate::linalg::{Eigen, JacobiTolerance, jacobi};
use crate::model::Model;
use crate::parallel::ThreadPool;
use crate::simd::Level;
use crate::solver::data::Data;

/// Number of sampled entries, and of sampled rows for the columns of a matrix.
const SAMPLE_SIZE: usize = 256;

/// Largest rank for which eigenvectors are computed. Beyond, the directions are the coordinate axes.
const MAX_EIGEN_RANK: usize = 64;

/// The same limit for a hyper-diagonal core. Its columns are nearly uncorrelated, so the coordinate axes are nearly
/// eigenvectors.
const MAX_EIGEN_RANK_DIAGONAL: usize = 24;

/// Accuracy of the eigenvectors: second moments of a sample deserve no more.
const EIGEN_TOLERANCE: JacobiTolerance = JacobiTolerance {
    off_diagonal: 2e-10,
    negligible: 1e-16,
    sweeps: 12,
};

/// The curvature of the loss by all replicated parameters.
pub(super) struct Curvature {
    /// For each mode, that of its rows.
    pub rows: Vec<CurvatureBasis>,
    /// For each matrix, that of its columns, times its weight.
    pub columns: Vec<CurvatureBasis>,
    /// For each mode, its factor in the curvature of a full core; one basis for a hyper-diagonal core.
    pub core: Vec<CurvatureBasis>,
}

impl Curvature {
    pub(super) fn measure(
        model: &Model,
        data: &Data,
        level: Level,
        pool: &ThreadPool<'_>,
    ) -> Result<Curvature> {
        let shape = &model.shape;
        let order = shape.order();
        let mut kernel = TensorKernel::new(shape, Method::Shared(level))?;
        let mut rows = vec![0.0; shape.rows_len()];
        let mut partials = rows.clone();
        let mut row_moments: Vec<SecondMoments> = shape
            .ranks()
            .iter()
            .map(|&j| SecondMoments::new(j))
            .collect();
        let mut core_moments = match shape.kind() {
            CoreKind::Full => row_moments.clone(),
            CoreKind::Diagonal => vec![SecondMoments::new(shape.ranks()[0])],
        };
        for entry in sample_entries(data.tensor.blocks(), order, SAMPLE_SIZE) {
            pool.check_cancelled()?;
            let weight = entry.weight;
            for (n, &row) in entry.rows.iter().enumerate() {
                let row = model.modes[n].factor.padded_row(row as usize);
                rows[shape.row(n)].copy_from_slice(row);
            }
            kernel.gradients(&model.core, &rows, &mut partials);
            for (n, m) in row_moments.iter_mut().enumerate() {
                m.add(&partials[shape.row(n)], weight);
            }
            match shape.kind() {
                CoreKind::Full => {
                    // The product of the moments contains the weight once.
                    for (n, m) in core_moments.iter_mut().enumerate() {
                        m.add(&rows[shape.row(n)], if n == 0 { weight } else { 1.0 });
                    }
                }
                CoreKind::Diagonal => {
                    let j = shape.ranks()[0];
                    let product: Vec<f32> = (0..j)
                        .map(|k| (0..order).map(|n| rows[shape.row(n)][k]).product())
                        .collect();
                    core_moments[0].add(&product, weight);
                }
            }
        }
        let columns = data.matrices.iter().map(|m| {
            // The mean row behind the factor's rows is no parameter.
            let mode = &model.modes[m.mode];
            let row_count = mode.rows.len();
            let n = row_count.min(SAMPLE_SIZE);
            let mut moments = SecondMoments::new(m.rank);
            for k in 0..n {
                pool.check_cancelled()?;
                moments.add(mode.factor.row(k * row_count / n), 1.0);
            }
            let with_eigenvectors =
                shape.kind() == CoreKind::Full || m.rank <= MAX_EIGEN_RANK_DIAGONAL;
            let weight = f64::from(m.weight) * m.mean_weight;
            moments.basis(level, weight, with_eigenvectors, pool)
        });
        let with_eigenvectors =
            shape.kind() == CoreKind::Full || shape.ranks()[0] <= MAX_EIGEN_RANK_DIAGONAL;
        let bases = |moments: &[SecondMoments]| -> Result<Vec<CurvatureBasis>> {
            let basis = |m: &SecondMoments| m.basis(level, 1.0, with_eigenvectors, pool);
            moments.iter().map(basis).collect()
        };
        Ok(Curvature {
            columns: columns.collect::<Result<_>>()?,
            rows: bases(&row_moments)?,
            core: bases(&core_moments)?,
        })
    }
}

/// Weighted sum of outer products x x^T.
#[derive(Clone)]
struct SecondMoments {
    rank: usize,
    sums: Vec<f64>,
    /// Number of vectors.
    count: f64,
}

impl SecondMoments {
    fn new(rank: usize) -> SecondMoments {
        SecondMoments {
            rank,
            sums: vec![0.0; rank * rank],
            count: 0.0,
        }
    }

    fn add(&mut self, x: &[f32], weight: f32) {
        let (x, weight) = (&x[..self.rank], f64::from(weight));
        for (row, &a) in self.sums.chunks_exact_mut(self.rank).zip(x) {
            row.iter_mut()
                .zip(x)
                .for_each(|(s, &b)| *s += weight * (f64::from(a) * f64::from(b)));
        }
        self.count += 1.0;
    }

    /// Returns the eigenvectors of the mean with their eigenvalues, both times `weight`, or the coordinate axes with upper
    /// bounds of the curvature.
    fn basis(
        &self,
        level: Level,
        weight: f64,
        with_eigenvectors: bool,
        pool: &ThreadPool<'_>,
    ) -> Result<CurvatureBasis> {
        let scale = weight / self.count.max(1.0);
        let finite = self.sums.iter().all(|x| x.is_finite());
        if self.rank > MAX_EIGEN_RANK || !with_eigenvectors || !finite {
            // Gershgorin: no eigenvalue exceeds the largest absolute row sum. Off-diagonal moments of a sample are
            // mostly noise, and the safety factor is applied later anyway, so the row sums are divided by it.
            let bound = |(i, row): (usize, &[f64])| {
                let safety = f64::from(CURVATURE_SAFETY_FACTOR);
                let sum = row.iter().map(|x| x.abs()).sum::<f64>() / safety;
                (sum.max(row[i]) * scale) as f32
            };
            let rows = self.sums.chunks_exact(self.rank).enumerate();
            let curvature = rows.map(bound).collect();
            return Ok(CurvatureBasis::new(level, Vec::new(), curvature));
        }
        let Eigen { values, vectors } = jacobi(
            self.rank,
            self.sums.clone(),
            EIGEN_TOLERANCE,
            pool.monitor(),
        )?;
        let curvature = values.iter().map(|v| (v.max(0.0) * scale) as f32);
        Ok(CurvatureBasis::new(
            level,
            vectors.iter().map(|&x| x as f32).collect(),
            curvature.collect(),
        ))
    }
}
