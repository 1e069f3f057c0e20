//! Conversion of a CP model into a Tucker model of other ranks, by truncated HOSVD.
//!
//! The bases are the leading left singular vectors of the unfoldings of the tensor that the CP model represents. They
//! follow from matrices of the size of the CP rank: with factor U of mode n and its Gram matrix U^T U = L L^T, the left Gram
//! matrix of the unfolding is U W U^T. W is the outer product of the diagonal core with itself times, elementwise, the Gram
//! matrices of all other modes. The leading eigenvectors are U L^-T v for the leading eigenvectors v of L^T W L. Where the
//! ranks suffice, rows are only rotated, so L2 penalties keep their values.

use super::gram::row_moments;
use crate::error::{Error, Result};
use crate::linalg::{regularized_cholesky, solve_lower, solve_lower_transposed, symmetric_eigen};
use crate::model::{FactorMatrix, Model};
use crate::parallel::ThreadPool;
use crate::progress::{Monitor, StepPolls, check_cancelled, count_operations, steps_per_poll};
use crate::try_alloc::{CORE_ENTRIES, try_with_capacity};

/// Fills `to`, a model of zeros with a full core and the same rows, with the truncated HOSVD of the CP model `from`. Factor
/// columns beyond the rank of `from` stay 0.
pub(super) fn compress(from: &Model, to: &mut Model, pool: &ThreadPool<'_>) -> Result<()> {
    let rank = from.shape.ranks()[0];
    let diagonal: Vec<f64> = from.core[..rank].iter().map(|&g| f64::from(g)).collect();
    let grams = from
        .modes
        .iter()
        .map(|m| Ok(row_moments(&m.factor, m.rows.len(), &[], pool)?.gram()))
        .collect::<Result<Vec<Vec<f64>>>>()?;
    let mut coordinates = Vec::new();
    for (n, mode) in to.modes.iter_mut().enumerate() {
        // W of the unfolding.
        let weights: Vec<f64> = (0..rank * rank)
            .map(|k| {
                let others = grams.iter().enumerate().filter(|(m, _)| *m != n);
                let both = diagonal[k / rank] * diagonal[k % rank];
                others.fold(both, |product, (_, g)| product * g[k])
            })
            .collect();
        let monitor = pool.monitor();
        let basis = Basis::new(rank, mode.factor.rank(), &grams[n], &weights, monitor)?;
        basis.transform_rows(&from.modes[n].factor, &mut mode.factor, monitor)?;
        let matrices = from.matrices.iter().zip(&mut to.matrices);
        for (old, new) in matrices.filter(|(m, _)| m.mode == n && !m.kind.is_graph()) {
            basis.transform_columns(&old.factor, &mut new.factor, monitor)?;
        }
        coordinates.push(basis.coordinates);
    }
    let mut core = try_with_capacity(to.shape.ranks().iter().product(), CORE_ENTRIES)?;
    append_core(&diagonal, &coordinates, &mut core, pool)?;
    to.core.copy_from_slice(&to.shape.padded_core(&core)?);
    to.update_mean_rows()
}

/// Appends the elements sum_r d_r a_1[j1, r] ... a_N[jN, r] of a full core in row-major order, where d is `diagonal` and a_n
/// the coordinates of the CP columns in the basis of mode n. Recurses over the modes.
fn append_core(
    diagonal: &[f64],
    coordinates: &[Vec<f64>],
    core: &mut Vec<f32>,
    pool: &ThreadPool<'_>,
) -> Result<()> {
    let rank = diagonal.len();
    let Some((first, others)) = coordinates.split_first() else {
        core.push(diagonal.iter().sum::<f64>() as f32);
        count_operations(rank);
        if core.len().is_multiple_of(steps_per_poll(2 * rank)) {
            pool.check_cancelled()?;
        }
        return Ok(());
    };
    let mut products = vec![0.0; rank];
    for row in first.chunks_exact(rank) {
        let each = products.iter_mut().zip(diagonal).zip(row);
        each.for_each(|((p, g), w)| *p = g * w);
        append_core(&products, others, core, pool)?;
    }
    Ok(())
}

/// Basis of the leading subspace of a mode.
struct Basis {
    /// CP rank.
    rank: usize,
    /// Dimension of the subspace.
    size: usize,
    /// Transformation of a row of the CP factor into the basis: `rank` by `size`.
    transformation: Vec<f64>,
    /// Coordinates of the columns of the CP factor in the basis: `size` by `rank`, then zeros.
    coordinates: Vec<f64>,
}

impl Basis {
    /// Computes a basis of up to `columns` vectors for a factor with this Gram matrix; `weights` is W.
    fn new(
        rank: usize,
        columns: usize,
        gram: &[f64],
        weights: &[f64],
        monitor: &dyn Monitor,
    ) -> Result<Basis> {
        let l = regularized_cholesky(rank, gram);
        // L^T W L.
        let product = |a: &dyn Fn(usize, usize) -> f64, b: &dyn Fn(usize, usize) -> f64| {
            let mut product = Vec::with_capacity(rank * rank);
            for i in 0..rank {
                check_cancelled(monitor)?;
                count_operations(rank * rank);
                let at = |k: usize| (0..rank).map(|j| a(i, j) * b(j, k)).sum::<f64>();
                product.extend((0..rank).map(at));
            }
            Ok::<_, Error>(product)
        };
        let half = product(&|i, j| weights[i * rank + j], &|i, j| l[i * rank + j])?;
        let whole = product(&|i, j| l[j * rank + i], &|i, j| half[i * rank + j])?;
        let vectors = symmetric_eigen(rank, &whole, monitor)?.vectors;
        let size = columns.min(rank);
        // Coordinates of the columns in the orthonormal basis: V^T L^T.
        let mut coordinates = vec![0.0; size * rank];
        for (row, vector) in coordinates
            .chunks_exact_mut(rank)
            .zip(vectors.chunks_exact(rank))
        {
            check_cancelled(monitor)?;
            for (j, x) in row.iter_mut().enumerate() {
                *x = (0..rank).map(|i| l[j * rank + i] * vector[i]).sum();
            }
        }
        // A second basis makes the rows of the coordinates orthonormal, so that factor rows keep their norm as far as
        // possible.
        let mut products = Vec::with_capacity(size * size);
        for i in 0..size {
            check_cancelled(monitor)?;
            let row = |i: usize| &coordinates[i * rank..][..rank];
            let product = |j: usize| {
                let each = row(i).iter().zip(row(j));
                each.map(|(x, y)| x * y).sum::<f64>()
            };
            products.extend((0..size).map(product));
        }
        let c = regularized_cholesky(size, &products);
        let mut column = vec![0.0; size];
        for j in 0..rank {
            check_cancelled(monitor)?;
            (0..size).for_each(|k| column[k] = coordinates[k * rank + j]);
            solve_lower(size, &c, &mut column);
            (0..size).for_each(|k| coordinates[k * rank + j] = column[k]);
        }
        let mut transformation = vec![0.0; rank * size];
        for (k, vector) in vectors.chunks_exact(rank).take(size).enumerate() {
            check_cancelled(monitor)?;
            let mut solved = vector.to_vec();
            solve_lower_transposed(rank, &l, &mut solved);
            for (row, x) in transformation.chunks_exact_mut(size).zip(solved) {
                (0..=k).for_each(|m| row[m] += x * c[k * size + m]);
            }
        }
        coordinates.resize(columns * rank, 0.0);
        Ok(Basis {
            rank,
            size,
            transformation,
            coordinates,
        })
    }

    /// Transforms the rows of a CP factor into the basis. Columns of `to` beyond its size stay 0.
    fn transform_rows(
        &self,
        from: &FactorMatrix,
        to: &mut FactorMatrix,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let stride = to.stride();
        let rows = to.as_mut_slice()?.chunks_exact_mut(stride);
        let mut polls = StepPolls::new(monitor, self.rank * self.size);
        for (i, row) in rows.enumerate() {
            polls.step()?;
            for (k, x) in row[..self.size].iter_mut().enumerate() {
                let each = from.row(i).iter().enumerate();
                let products =
                    each.map(|(j, &u)| f64::from(u) * self.transformation[j * self.size + k]);
                *x = products.sum::<f64>() as f32;
            }
        }
        Ok(())
    }

    /// Transforms the columns of a coupled matrix so that their products with the transformed rows stay the same.
    fn transform_columns(
        &self,
        from: &FactorMatrix,
        to: &mut FactorMatrix,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let stride = to.stride();
        let rows = to.as_mut_slice()?.chunks_exact_mut(stride);
        let mut polls = StepPolls::new(monitor, self.coordinates.len());
        for (i, row) in rows.enumerate() {
            polls.step()?;
            for (x, weights) in row.iter_mut().zip(self.coordinates.chunks_exact(self.rank)) {
                let each = from.row(i).iter().zip(weights);
                *x = each.map(|(&v, w)| f64::from(v) * w).sum::<f64>() as f32;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{CooView, Values};
    use crate::options::{ModelKind, Options};
    use crate::problem::{MatrixKind, Problem};
    use crate::random::RandomStream;

    /// Computes the value at a position, from factors and dense core alone.
    fn value(model: &Model, position: &[usize]) -> f64 {
        let ranks = &model.shape.ranks();
        let core = model.shape.dense_core(&model.core).unwrap();
        let each = core.iter().enumerate().map(|(k, &g)| {
            let (mut rest, mut product) = (k, f64::from(g));
            for n in (0..position.len()).rev() {
                product *= f64::from(model.modes[n].factor.row(position[n])[rest % ranks[n]]);
                rest /= ranks[n];
            }
            product
        });
        each.sum()
    }

    #[test]
    fn a_full_core_of_sufficient_rank_predicts_the_same() {
        let dims = [7u64, 6, 5];
        let positions: Vec<u32> = (0..7 * 6 * 5u32)
            .flat_map(|k| [k / 30, k / 5 % 6, k % 5])
            .collect();
        let by_mode =
            |n: usize| -> Vec<u32> { positions.iter().skip(n).step_by(3).copied().collect() };
        let (modes, ones) = ([0, 1, 2].map(by_mode), vec![1.0f32; positions.len() / 3]);
        let columns: Vec<&[u32]> = modes.iter().map(Vec::as_slice).collect();
        let tensor = CooView::new("t", &dims, &columns, Values::F32(&ones)).unwrap();
        let side: [&[u32]; 2] = [&[0, 1, 2, 3, 4, 5], &[0, 1, 2, 0, 1, 2]];
        let side = CooView::new("m", &[6, 3], &side, Values::F32(&ones[..6])).unwrap();
        let builder = Problem::builder(tensor).matrix(1, side, None, MatrixKind::Observed);
        let problem = builder.build(&()).unwrap();
        let zeros = |model: ModelKind, rank: &[usize]| {
            let mut o = Options::default();
            (o.model, o.rank) = (model, rank.to_vec());
            Model::zeros(&problem, &o).unwrap().0
        };
        let mut from = zeros(ModelKind::Cp, &[4]);
        let mut s = RandomStream::new(&[7]);
        for mode in &mut from.modes {
            let all = mode.factor.as_mut_slice().unwrap().chunks_exact_mut(8);
            all.for_each(|row| {
                row[..4]
                    .iter_mut()
                    .for_each(|x| *x = s.standard_normal() as f32)
            });
        }
        let v = from.matrices[0].factor.as_mut_slice().unwrap();
        v.chunks_exact_mut(8).for_each(|row| {
            row[..4]
                .iter_mut()
                .for_each(|x| *x = s.standard_normal() as f32)
        });
        // The fourth column repeats the third, so rank 3 is sufficient.
        for mode in &mut from.modes {
            let all = mode.factor.as_mut_slice().unwrap().chunks_exact_mut(8);
            all.for_each(|row| row[3] = row[2]);
        }
        from.core[..4].copy_from_slice(&[1.0, -0.5, 2.0, 0.25]);
        let pool = ThreadPool::new(2, false, 0);
        for ranks in [[4usize, 4, 4], [3, 4, 3], [5, 6, 5], [3, 3, 3]] {
            let mut to = zeros(ModelKind::Tucker, &ranks);
            compress(&from, &mut to, &pool).unwrap();
            for position in positions.chunks_exact(3) {
                let position: Vec<usize> = position.iter().map(|&i| i as usize).collect();
                let (a, b) = (value(&from, &position), value(&to, &position));
                assert!((a - b).abs() < 1e-4, "{ranks:?} {position:?}: {a} {b}");
            }
            for i in 0..6 {
                for k in 0..3 {
                    let y = |m: &Model| -> f32 {
                        let row = m.modes[1].factor.row(i).iter();
                        row.zip(m.matrices[0].factor.row(k))
                            .map(|(u, v)| u * v)
                            .sum()
                    };
                    assert!((y(&from) - y(&to)).abs() < 1e-4, "{ranks:?}");
                }
            }
        }
        // With insufficient ranks the error is a small fraction of the tensor.
        let mut to = zeros(ModelKind::Tucker, &[2, 2, 2]);
        compress(&from, &mut to, &pool).unwrap();
        let (mut squared_error, mut squared_norm) = (0.0, 0.0);
        for position in positions.chunks_exact(3) {
            let position: Vec<usize> = position.iter().map(|&i| i as usize).collect();
            let (a, b) = (value(&from, &position), value(&to, &position));
            squared_error += (a - b).powi(2);
            squared_norm += a * a;
        }
        assert!(
            squared_error > 0.0 && squared_error < 0.2 * squared_norm,
            "{squared_error} of {squared_norm}"
        );
    }
}
