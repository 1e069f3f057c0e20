//! Measures the curvature of the loss on a sample of entries.
//!
//! The curvature of a row of a mode is the second moment of the partial derivatives of the prediction by the row. That of
//! a column of a matrix is the second moment of the rows. That of the core is the second moment of the outer products of
//! rows, approximated by the product of the second moments of the modes.

use super::config::Parameters;
use super::curvature_basis::{CURVATURE_SAFETY_FACTOR, CurvatureBasis};
use super::entry_sample::{SampledEntry, sample_entries};
use super::replica_divergence::SampleKernel;
use crate::error::Result;
use crate::kernel::{CoreKind, CoreLayout, CoreShape};
use crate::linalg::{Eigen, JacobiTolerance, jacobi};
use crate::progress::StopFlag;
use crate::simd::Level;
use crate::solver::data::{Data, MatrixData};

/// Number of sampled entries, and of sampled rows for the columns of a matrix.
const SAMPLE_SIZE: usize = 256;

/// Number of chunks of the sample. Their sums are added in a fixed order, whichever thread computes them.
pub(super) const SAMPLE_CHUNKS: usize = 16;

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

/// The sampled entries and matrix rows. They are divided into chunks, which different threads can measure.
pub(super) struct CurvatureSample {
    entries: Vec<SampledEntry>,
    /// The shape of the core with its modes in `mode_order`.
    shape: CoreShape,
    /// The modes in the order of the core's layout during an epoch: the fiber mode first.
    mode_order: Vec<usize>,
}

/// Second moments of a part of the sample, from which the curvature follows.
#[derive(Default)]
pub(super) struct CurvatureMoments {
    rows: Vec<SecondMoments>,
    columns: Vec<SecondMoments>,
    core: Vec<SecondMoments>,
}

impl CurvatureSample {
    /// Samples the entries of `data`. `layout` is that of the tensor, `shape` the shape of the model.
    pub(super) fn new(data: &Data, layout: &CoreLayout, shape: &CoreShape) -> CurvatureSample {
        CurvatureSample {
            entries: sample_entries(data.tensor.blocks(), shape.order(), SAMPLE_SIZE),
            shape: layout.permuted_shape(shape),
            mode_order: layout.mode_order(),
        }
    }

    /// Returns a kernel for sampled entries.
    pub(super) fn kernel(&self, level: Level) -> Result<SampleKernel> {
        SampleKernel::new(&self.shape, level)
    }

    /// Returns the moments of one of [`SAMPLE_CHUNKS`] chunks, with the current parameters. The result is incomplete if `stop`
    /// is requested.
    pub(super) fn moments(
        &self,
        chunk: usize,
        data: &Data,
        parameters: &Parameters<'_>,
        kernel: &mut SampleKernel,
        stop: &StopFlag,
    ) -> CurvatureMoments {
        let part = |len: usize| chunk * len / SAMPLE_CHUNKS..(chunk + 1) * len / SAMPLE_CHUNKS;
        let factors: Vec<_> = parameters.factors.iter().map(|f| f.borrow_all()).collect();
        let row = |n: usize, row: usize| {
            let stride = parameters.factors[n].stride();
            &factors[n].rows()[row * stride..][..stride]
        };
        let core = parameters.core.borrow_all();
        let shape = &self.shape;
        let rank_of_mode = |n: usize| {
            let position = self.mode_order.iter().position(|&m| m == n);
            shape.ranks()[position.expect("every mode is in the order")]
        };
        let of_modes: Vec<SecondMoments> = (0..shape.order())
            .map(|n| SecondMoments::new(rank_of_mode(n)))
            .collect();
        let mut moments = CurvatureMoments {
            core: match shape.kind() {
                CoreKind::Full => of_modes.clone(),
                CoreKind::Diagonal => vec![SecondMoments::new(shape.ranks()[0])],
            },
            rows: of_modes,
            columns: Vec::new(),
        };
        for entry in &self.entries[part(self.entries.len())] {
            if stop.requested() {
                break;
            }
            let weight = entry.weight;
            let (rows, partials) = kernel.gradients(core.rows(), |k| {
                let n = self.mode_order[k];
                row(n, entry.rows[n] as usize)
            });
            for (k, &n) in self.mode_order.iter().enumerate() {
                moments.rows[n].add(&partials[shape.row(k)], weight);
            }
            match shape.kind() {
                CoreKind::Full => {
                    for (k, &n) in self.mode_order.iter().enumerate() {
                        // The product of the moments contains the weight once.
                        let weight = if n == 0 { weight } else { 1.0 };
                        moments.core[n].add(&rows[shape.row(k)], weight);
                    }
                }
                CoreKind::Diagonal => {
                    let product =
                        |j: usize| (0..shape.order()).map(|k| rows[shape.row(k)][j]).product();
                    let product: Vec<f32> = (0..shape.ranks()[0]).map(product).collect();
                    moments.core[0].add(&product, weight);
                }
            }
        }
        moments.columns = data
            .matrices
            .iter()
            .map(|m| {
                // The mean row behind the factor's rows is no parameter.
                let row_count = parameters.factors[m.mode].partition().row_count();
                let n = row_count.min(SAMPLE_SIZE);
                let mut moments = SecondMoments::new(m.rank);
                for k in part(n) {
                    moments.add(row(m.mode, k * row_count / n), 1.0);
                }
                moments
            })
            .collect();
        moments
    }
}

impl Curvature {
    /// Returns the curvature that follows from the moments of all chunks of a sample.
    pub(super) fn new<'a>(
        sample: &CurvatureSample,
        chunks: impl Iterator<Item = &'a CurvatureMoments> + Clone,
        data: &Data,
        level: Level,
    ) -> Result<Curvature> {
        let kind = sample.shape.kind();
        let sum = |of: &dyn Fn(&CurvatureMoments) -> &SecondMoments| {
            let mut sum: Option<SecondMoments> = None;
            for chunk in chunks.clone() {
                match &mut sum {
                    Some(sum) => sum.add_moments(of(chunk)),
                    None => sum = Some(of(chunk).clone()),
                }
            }
            sum.expect("a sample has chunks")
        };
        let basis = |moments: SecondMoments, weight: f64| {
            let with_eigenvectors =
                kind == CoreKind::Full || moments.rank <= MAX_EIGEN_RANK_DIAGONAL;
            moments.basis(level, weight, with_eigenvectors)
        };
        let order = sample.shape.order();
        let core_bases = match kind {
            CoreKind::Full => order,
            CoreKind::Diagonal => 1,
        };
        let weight = |m: &MatrixData| f64::from(m.weight) * m.mean_weight;
        let columns = data.matrices.iter().enumerate();
        let columns = columns.map(|(m, matrix)| basis(sum(&|c| &c.columns[m]), weight(matrix)));
        Ok(Curvature {
            columns: columns.collect::<Result<_>>()?,
            rows: (0..order)
                .map(|n| basis(sum(&|c| &c.rows[n]), 1.0))
                .collect::<Result<_>>()?,
            core: (0..core_bases)
                .map(|n| basis(sum(&|c| &c.core[n]), 1.0))
                .collect::<Result<_>>()?,
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

    fn add_moments(&mut self, other: &SecondMoments) {
        self.sums
            .iter_mut()
            .zip(&other.sums)
            .for_each(|(s, x)| *s += x);
        self.count += other.count;
    }

    /// Returns the eigenvectors of the mean with their eigenvalues, both times `weight`, or the coordinate axes with upper
    /// bounds of the curvature.
    fn basis(&self, level: Level, weight: f64, with_eigenvectors: bool) -> Result<CurvatureBasis> {
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
        let Eigen { values, vectors } = jacobi(self.rank, self.sums.clone(), EIGEN_TOLERANCE, &())?;
        let curvature = values.iter().map(|v| (v.max(0.0) * scale) as f32);
        Ok(CurvatureBasis::new(
            level,
            vectors.iter().map(|&x| x as f32).collect(),
            curvature.collect(),
        ))
    }
}
