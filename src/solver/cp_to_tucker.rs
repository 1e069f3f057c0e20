//! A CP model as a Tucker model of other ranks: the best bases of its modes (which span what the leading
//! singular vectors of the tensor do that it stands for), from matrices as small as its rank. Where ranks suffice, rows
//! are only turned, and penalties on their squares stay what they are.

use super::gram::row_moments;
use crate::error::Result;
use crate::linalg::{regularized_cholesky, solve_lower, solve_lower_transposed, symmetric_eigen};
use crate::model::{FactorMatrix, Model};
use crate::parallel::ThreadPool;

/// Fills `to`, a model of zeros with a full core for the same rows, with what comes closest to `from`.
/// Columns beyond the rank of `from` stay 0.
pub(super) fn compress(from: &Model, to: &mut Model, pool: &ThreadPool) -> Result<()> {
    let rank = from.shape.ranks[0];
    let strengths: Vec<f64> = from.core[..rank].iter().map(|&g| f64::from(g)).collect();
    let grams = from
        .modes
        .iter()
        .map(|m| Ok(row_moments(&m.factor, m.rows.len(), &[], pool)?.gram()))
        .collect::<Result<Vec<Vec<f64>>>>()?;
    let mut shares = Vec::new();
    for (n, mode) in to.modes.iter_mut().enumerate() {
        // What the other modes make of two columns.
        let weights: Vec<f64> = (0..rank * rank)
            .map(|k| {
                let others = grams.iter().enumerate().filter(|(m, _)| *m != n);
                let both = strengths[k / rank] * strengths[k % rank];
                others.fold(both, |product, (_, g)| product * g[k])
            })
            .collect();
        let basis = Basis::new(rank, mode.factor.rank(), &grams[n], &weights);
        basis.turn_rows(&from.modes[n].factor, &mut mode.factor)?;
        let matrices = from.matrices.iter().zip(&mut to.matrices);
        for (old, new) in matrices.filter(|(m, _)| m.mode == n && !m.kind.is_graph()) {
            basis.turn_columns(&old.factor, &mut new.factor)?;
        }
        shares.push(basis.shares);
    }
    let mut core = Vec::with_capacity(to.shape.ranks.iter().product());
    multiply(&strengths, &shares, &mut core);
    to.core.copy_from_slice(&to.shape.padded_core(&core));
    to.update_mean_rows()
}

/// Adds to a core what columns of these strengths add up to, mode after mode.
fn multiply(strengths: &[f64], shares: &[Vec<f64>], core: &mut Vec<f32>) {
    let rank = strengths.len();
    let Some((first, others)) = shares.split_first() else {
        core.push(strengths.iter().sum::<f64>() as f32);
        return;
    };
    let mut products = vec![0.0; rank];
    for row in first.chunks_exact(rank) {
        let each = products.iter_mut().zip(strengths).zip(row);
        each.for_each(|((p, g), w)| *p = g * w);
        multiply(&products, others, core);
    }
}

/// A basis of what the columns of a factor span, or of the most of it.
struct Basis {
    rank: usize,
    size: usize,
    /// A row of the factor times this is the row in the basis: `rank` by `size`.
    into: Vec<f64>,
    /// The columns of the factor in the basis: `size` by `rank`.
    shares: Vec<f64>,
}

impl Basis {
    /// For `columns` columns, of a factor with this Gram matrix, where two of its columns count by `weights`.
    fn new(rank: usize, columns: usize, gram: &[f64], weights: &[f64]) -> Basis {
        let l = regularized_cholesky(rank, gram);
        // L^T W L, whose largest eigenvectors are sought.
        let product = |a: &dyn Fn(usize, usize) -> f64, b: &dyn Fn(usize, usize) -> f64| {
            let at = |k: usize| (0..rank).map(|j| a(k / rank, j) * b(j, k % rank)).sum();
            (0..rank * rank).map(at).collect::<Vec<f64>>()
        };
        let half = product(&|i, j| weights[i * rank + j], &|i, j| l[i * rank + j]);
        let whole = product(&|i, j| l[j * rank + i], &|i, j| half[i * rank + j]);
        let vectors = symmetric_eigen(rank, &whole).vectors;
        let size = columns.min(rank);
        // The columns of the factor in an orthonormal basis: V^T L^T.
        let mut shares = vec![0.0; size * rank];
        for (share, vector) in shares
            .chunks_exact_mut(rank)
            .zip(vectors.chunks_exact(rank))
        {
            for (j, x) in share.iter_mut().enumerate() {
                *x = (0..rank).map(|i| l[j * rank + i] * vector[i]).sum();
            }
        }
        // And in one of which these are orthonormal, so that rows keep their length as far as they can.
        let products: Vec<f64> = (0..size * size)
            .map(|k| {
                let row = |i: usize| &shares[i * rank..][..rank];
                let each = row(k / size).iter().zip(row(k % size));
                each.map(|(x, y)| x * y).sum()
            })
            .collect();
        let c = regularized_cholesky(size, &products);
        let mut column = vec![0.0; size];
        for j in 0..rank {
            (0..size).for_each(|k| column[k] = shares[k * rank + j]);
            solve_lower(size, &c, &mut column);
            (0..size).for_each(|k| shares[k * rank + j] = column[k]);
        }
        let mut into = vec![0.0; rank * size];
        for (k, vector) in vectors.chunks_exact(rank).take(size).enumerate() {
            let mut turned = vector.to_vec();
            solve_lower_transposed(rank, &l, &mut turned);
            for (row, x) in into.chunks_exact_mut(size).zip(turned) {
                (0..=k).for_each(|m| row[m] += x * c[k * size + m]);
            }
        }
        shares.resize(columns * rank, 0.0);
        Basis {
            rank,
            size,
            into,
            shares,
        }
    }

    /// Columns of `to` beyond the basis stay 0.
    fn turn_rows(&self, from: &FactorMatrix, to: &mut FactorMatrix) -> Result<()> {
        let stride = to.stride();
        let rows = to.as_mut_slice()?.chunks_exact_mut(stride);
        for (i, row) in rows.enumerate() {
            for (k, x) in row[..self.size].iter_mut().enumerate() {
                let each = from.row(i).iter().enumerate();
                let products = each.map(|(j, &u)| f64::from(u) * self.into[j * self.size + k]);
                *x = products.sum::<f64>() as f32;
            }
        }
        Ok(())
    }

    fn turn_columns(&self, from: &FactorMatrix, to: &mut FactorMatrix) -> Result<()> {
        let stride = to.stride();
        let rows = to.as_mut_slice()?.chunks_exact_mut(stride);
        for (i, row) in rows.enumerate() {
            for (x, shares) in row.iter_mut().zip(self.shares.chunks_exact(self.rank)) {
                let each = from.row(i).iter().zip(shares);
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

    /// The value of a cell, from factors and dense core alone.
    fn value(model: &Model, cell: &[usize]) -> f64 {
        let ranks = &model.shape.ranks;
        let core = model.shape.dense_core(&model.core);
        let each = core.iter().enumerate().map(|(k, &g)| {
            let (mut rest, mut product) = (k, f64::from(g));
            for n in (0..cell.len()).rev() {
                product *= f64::from(model.modes[n].factor.row(cell[n])[rest % ranks[n]]);
                rest /= ranks[n];
            }
            product
        });
        each.sum()
    }

    #[test]
    fn a_full_core_says_the_same_where_its_ranks_suffice() {
        let dims = [7u64, 6, 5];
        let cells: Vec<u32> = (0..7 * 6 * 5u32)
            .flat_map(|k| [k / 30, k / 5 % 6, k % 5])
            .collect();
        let by_mode = |n: usize| -> Vec<u32> { cells.iter().skip(n).step_by(3).copied().collect() };
        let (modes, ones) = ([0, 1, 2].map(by_mode), vec![1.0f32; cells.len() / 3]);
        let columns: Vec<&[u32]> = modes.iter().map(Vec::as_slice).collect();
        let tensor = CooView::new("t", &dims, &columns, Values::F32(&ones)).unwrap();
        let side: [&[u32]; 2] = [&[0, 1, 2, 3, 4, 5], &[0, 1, 2, 0, 1, 2]];
        let side = CooView::new("m", &[6, 3], &side, Values::F32(&ones[..6])).unwrap();
        let builder = Problem::builder(tensor).matrix(1, side, None, MatrixKind::Observed);
        let problem = builder.build(&()).unwrap();
        let made = |model: ModelKind, rank: &[usize]| {
            let mut o = Options::default();
            (o.model, o.rank) = (model, rank.to_vec());
            Model::zeros(&problem, &o).unwrap().0
        };
        let mut from = made(ModelKind::Cp, &[4]);
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
        // The fourth column is the third once more, so that three are enough.
        for mode in &mut from.modes {
            let all = mode.factor.as_mut_slice().unwrap().chunks_exact_mut(8);
            all.for_each(|row| row[3] = row[2]);
        }
        from.core[..4].copy_from_slice(&[1.0, -0.5, 2.0, 0.25]);
        let pool = ThreadPool::new(2, false, 0);
        for ranks in [[4usize, 4, 4], [3, 4, 3], [5, 6, 5], [3, 3, 3]] {
            let mut to = made(ModelKind::Tucker, &ranks);
            compress(&from, &mut to, &pool).unwrap();
            for cell in cells.chunks_exact(3) {
                let cell: Vec<usize> = cell.iter().map(|&i| i as usize).collect();
                let (a, b) = (value(&from, &cell), value(&to, &cell));
                assert!((a - b).abs() < 1e-4, "{ranks:?} {cell:?}: {a} {b}");
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
        // Where they do not, it is less off than what it leaves out is large.
        let mut to = made(ModelKind::Tucker, &[2, 2, 2]);
        compress(&from, &mut to, &pool).unwrap();
        let (mut off, mut all) = (0.0, 0.0);
        for cell in cells.chunks_exact(3) {
            let cell: Vec<usize> = cell.iter().map(|&i| i as usize).collect();
            let (a, b) = (value(&from, &cell), value(&to, &cell));
            off += (a - b).powi(2);
            all += a * a;
        }
        assert!(off > 0.0 && off < 0.2 * all, "{off} of {all}");
    }
}
