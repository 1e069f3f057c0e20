//! The matrix M = [W, sqrt(lambda_m) Y_m] of a mode and products with it.
//!
//! W has a row per row of the mode and a column per combination of columns of the other factors. The matrices Y_m are sparse.
//! Rows are processed in groups that depend on the data alone, and sums over groups are added in their order, so results are
//! independent of the thread count.

use std::ops::Range;
use std::sync::Mutex;

use super::dense::padded_transpose;
use super::mode_entries::{TuckerMode, ZeroFilledMatrix, add_sparse_row};
use super::unfolded_rows::{Array, UnfoldedRows};
use super::workers::Workers;
use crate::kernels::{DENSE_LANES, Part, add_cross_products, row_inner_products};
use s3cmtf::error::Result;
use s3cmtf::internals::Model;
use s3cmtf_kernel::parallel::lock_ignoring_poison;
use s3cmtf_kernel::trace::{self, SpanKind};
use s3cmtf_kernel::try_alloc::try_zeroed;

/// Most bytes of the partial sums of all groups, unless there is only one.
pub(super) const MAX_SUM_BYTES: usize = 1 << 27;

/// Most groups of rows.
pub(super) const MAX_GROUPS: usize = 64;

/// Number of rows of W that are multiplied with all others at a time if W is not stored.
pub(super) const ROWS_OF_GRAM: usize = 8;

/// M for the current factors of the other modes.
pub(super) struct Unfolding<'a> {
    w: UnfoldedRows<'a>,
    workers: Workers<'a>,
}

impl<'a> Unfolding<'a> {
    /// Prepares products for the factors of `model`. Computes W if it is small.
    pub(super) fn new(
        mode: &'a TuckerMode,
        model: &'a Model,
        workers: Workers<'a>,
    ) -> Result<Unfolding<'a>> {
        let w = UnfoldedRows::new(mode, model, workers)?;
        Ok(Unfolding { w, workers })
    }

    pub(super) fn row_count(&self) -> usize {
        self.w.mode.csr.row_count()
    }

    /// Returns the number of columns of M.
    pub(super) fn column_count(&self) -> usize {
        let matrices = self.w.mode.matrices.iter();
        self.w.width + matrices.map(ZeroFilledMatrix::column_count).sum::<usize>()
    }

    /// Returns the other modes. The columns of W are ordered by their columns; those of the last vary fastest.
    pub(super) fn other_modes(&self) -> &[usize] {
        self.w.mode.csr.other_modes()
    }

    /// Returns M T, one row of `width` elements for each row of the mode. T has such a row for each column of M.
    pub(super) fn times(&self, t: &[f64], width: usize) -> Result<Vec<f64>> {
        let matrices = &self.w.mode.matrices;
        let of_w = padded_transpose(t, width, 0..self.w.width)?;
        let mut of_matrices = Vec::new();
        let mut rest = &t[self.w.width * width..];
        for matrix in matrices {
            let (rows, after) = rest.split_at(matrix.column_count() * width);
            of_matrices.push(rows);
            rest = after;
        }
        let mut out: Vec<f64> = try_zeroed(self.row_count() * width, "row elements")?;
        self.write_products(&of_w, width, &mut out, |first, out| {
            for (matrix, t) in matrices.iter().zip(&of_matrices) {
                for (i, to) in out.chunks_exact_mut(width).enumerate() {
                    add_sparse_row(&matrix.entries.by_row, first + i, matrix.scale, t, to);
                }
            }
        })?;
        Ok(out)
    }

    /// Writes the inner products of each row of W with the `width` rows of `others`, padded, to `out`, and calls `finish` with
    /// the number of the first row and the products of groups of rows. Leaves those of rows without entries at 0.
    fn write_products(
        &self,
        others: &[Array],
        width: usize,
        out: &mut [f64],
        finish: impl Fn(usize, &mut [f64]) + Sync,
    ) -> Result<()> {
        let _span = trace::span(SpanKind::Rows);
        let (w, Workers { pool, level }) = (&self.w, self.workers);
        let groups = w.row_groups(MAX_GROUPS);
        let mut rest = out;
        let split = |group: &Range<usize>| {
            let slot;
            (slot, rest) = std::mem::take(&mut rest).split_at_mut(group.len() * width);
            Mutex::new(slot)
        };
        let slots: Vec<Mutex<&mut [f64]>> = groups.iter().map(split).collect();
        pool.try_map(
            groups.len(),
            || w.scratch(),
            |scratch, g| {
                let mut out = lock_ignoring_poison(&slots[g]);
                let first = groups[g].start;
                let visit = |rows: &[usize], block: &[Array], products: &mut Vec<f64>| {
                    products.clear();
                    products.resize(rows.len() * width, 0.0);
                    row_inner_products(level, block, others, width, products);
                    for (&row, product) in rows.iter().zip(products.chunks_exact(width)) {
                        out[(row - first) * width..][..width].copy_from_slice(product);
                    }
                };
                w.for_blocks(groups[g].clone(), scratch, visit)?;
                finish(first, &mut out);
                Ok(())
            },
        )?;
        Ok(())
    }

    /// Returns M^T Z, one row of `width` elements for each column of M. Z has such a row for each row of the mode.
    pub(super) fn transposed_times(&self, z: &[f64], width: usize) -> Result<Vec<f64>> {
        const COLUMNS_PER_TASK: usize = 512;
        let of_w = self.w_transposed_times(z, width)?;
        let (of_w, stride) = (of_w.as_flattened(), self.w.arrays() * DENSE_LANES);
        let mut out: Vec<f64> = try_zeroed(self.column_count() * width, "column elements")?;
        let (to, mut rest) = out.split_at_mut(self.w.width * width);
        let workers = self.workers;
        workers.for_row_groups(to, width, COLUMNS_PER_TASK, |first, to, (): &mut ()| {
            let count = to.len() / width;
            for k in 0..width {
                let from = &of_w[k * stride + first..][..count];
                let to = to.iter_mut().skip(k).step_by(width);
                to.zip(from).for_each(|(to, x)| *to = *x);
            }
        })?;
        for matrix in &self.w.mode.matrices {
            let to;
            (to, rest) = rest.split_at_mut(matrix.column_count() * width);
            let to = (to, width);
            matrix.write_transposed_product((z, width), matrix.scale, workers, to, |x| x)?;
        }
        Ok(out)
    }

    /// Returns M M^T, row-major, for a mode of few rows.
    pub(super) fn row_gram(&self) -> Result<Vec<f64>> {
        let (rows, arrays) = (self.row_count(), self.w.arrays());
        let mut gram: Vec<f64> = try_zeroed(rows * rows, "row elements")?;
        match &self.w.stored {
            Some(all) => self.write_products(all, rows, &mut gram, |_, _| ())?,
            None => {
                // Some rows of W at a time, which are their products with unit vectors.
                let count = ROWS_OF_GRAM.min(rows).max(1);
                let mut products: Vec<f64> = try_zeroed(rows * count, "row elements")?;
                for first in (0..rows).step_by(count) {
                    let count = count.min(rows - first);
                    let unit = |k: usize| f64::from(u8::from(k / count == first + k % count));
                    let units: Vec<f64> = (0..rows * count).map(unit).collect();
                    let some = self.w_transposed_times(&units, count)?;
                    let products = &mut products[..rows * count];
                    products.fill(0.0);
                    self.write_products(&some[..count * arrays], count, products, |_, _| ())?;
                    let to = gram.chunks_exact_mut(rows);
                    for (to, product) in to.zip(products.chunks_exact(count)) {
                        to[first..][..count].copy_from_slice(product);
                    }
                }
            }
        }
        for matrix in &self.w.mode.matrices {
            matrix.add_row_gram(&mut gram, self.workers)?;
        }
        Ok(gram)
    }

    /// Returns Z^T W, with padded rows.
    pub(super) fn w_transposed_times(&self, z: &[f64], width: usize) -> Result<Vec<Array>> {
        let level = self.workers.level;
        self.sum_over_rows(width * self.w.arrays(), |rows, block, left, sums| {
            left.clear();
            let row = |&i: &usize| &z[i * width..][..width];
            left.extend(rows.iter().flat_map(row));
            add_cross_products(level, left, [width, width], block, Part::All, sums);
        })
    }

    /// Returns M^T M, with padded rows.
    pub(super) fn gram(&self) -> Result<Vec<Array>> {
        let (w, size, level) = (&self.w, self.column_count(), self.workers.level);
        let (arrays, of_w) = (size.div_ceil(DENSE_LANES), w.arrays());
        let stride = arrays * DENSE_LANES;
        let mut gram = self.sum_over_rows(size * arrays, |rows, block, dense, sums| {
            if w.mode.matrices.is_empty() {
                let left = block.as_flattened();
                add_cross_products(
                    level,
                    left,
                    [stride, size],
                    block,
                    Part::UpperTriangle,
                    sums,
                );
                return;
            }
            dense.clear();
            dense.resize(rows.len() * stride, 0.0);
            for (i, to) in dense.chunks_exact_mut(stride).enumerate() {
                let row = block[i * of_w..][..of_w].as_flattened();
                to[..w.width].copy_from_slice(&row[..w.width]);
                w.mode.copy_matrix_rows(rows[i], &mut to[w.width..]);
            }
            let right = dense.as_chunks().0;
            add_cross_products(
                level,
                dense,
                [stride, size],
                right,
                Part::UpperTriangle,
                sums,
            );
        })?;
        let all = gram.as_flattened_mut();
        for i in 0..size {
            for j in 0..i {
                all[i * stride + j] = all[j * stride + i];
            }
        }
        Ok(gram)
    }

    /// Adds up `arrays` sums over blocks of rows of W. `add` receives the numbers of the rows, their elements, a buffer, and
    /// the sums to add to.
    fn sum_over_rows(
        &self,
        arrays: usize,
        add: impl Fn(&[usize], &[Array], &mut Vec<f64>, &mut [Array]) + Sync,
    ) -> Result<Vec<Array>> {
        let _span = trace::span(SpanKind::Rows);
        let w = &self.w;
        let bytes = arrays * size_of::<Array>();
        let groups = w.row_groups((MAX_SUM_BYTES / bytes.max(1)).clamp(1, MAX_GROUPS));
        let sums = self.workers.pool.try_map(
            groups.len(),
            || w.scratch(),
            |scratch, g| {
                let mut sums: Vec<Array> = try_zeroed(arrays, "row elements")?;
                w.for_blocks(groups[g].clone(), scratch, |rows, block, buffer| {
                    add(rows, block, buffer, &mut sums);
                })?;
                Ok(sums)
            },
        )?;
        let mut sums = sums.into_iter();
        let mut total = match sums.next() {
            Some(first) => first,
            None => try_zeroed(arrays, "row elements")?,
        };
        for part in sums {
            let pairs = total.as_flattened_mut().iter_mut();
            pairs.zip(part.as_flattened()).for_each(|(to, x)| *to += x);
        }
        Ok(total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use s3cmtf::format::{CooView, Values};
    use s3cmtf::internals::RowTasks;
    use s3cmtf::options::{ModelKind, Options};
    use s3cmtf::problem::Problem;
    use s3cmtf_kernel::kernel::{CooSlices, ModeCsr};
    use s3cmtf_kernel::parallel::ThreadPool;
    use s3cmtf_kernel::random::RandomStream;
    use s3cmtf_kernel::simd::Level;

    #[test]
    fn products_are_the_same_whether_w_is_stored_or_not() {
        let dims = [500, 12, 7];
        let mut s = RandomStream::new(&[3]);
        let count = 9000;
        // Most entries are in one row, and some rows have none.
        let mut index = |n: usize| match n {
            0 if s.uniform() < 0.6 => 5,
            _ => s.below(dims[n] as u64) as u32,
        };
        let columns: Vec<Vec<u32>> = (0..3)
            .map(|n| (0..count).map(|_| index(n)).collect())
            .collect();
        let values: Vec<f32> = (0..count).map(|_| s.standard_normal() as f32).collect();
        let slices: Vec<&[u32]> = columns.iter().map(Vec::as_slice).collect();
        let sizes = dims.map(|d| d as u64);
        let view = CooView::new("x", &sizes, &slices, Values::F32(&values)).unwrap();
        let problem = Problem::builder(view).build(&()).unwrap();
        let mut options = Options::default();
        (options.model, options.rank) = (ModelKind::Tucker, vec![3, 4, 5]);
        let (mut model, _) = Model::zeros(&problem, &options).unwrap();
        for mode in &mut model.modes {
            let (rank, stride) = (mode.factor.rank(), mode.factor.stride());
            let rows = mode.factor.as_mut_slice().unwrap().chunks_exact_mut(stride);
            rows.for_each(|row| {
                let elements = row[..rank].iter_mut();
                elements.for_each(|x| *x = s.standard_normal() as f32);
            });
        }
        let maps = problem.row_maps();
        let rows: Vec<u32> = (0..count)
            .flat_map(|e| (0..3).map(move |n| (n, e)))
            .map(|(n, e)| maps[n].compact(columns[n][e]).unwrap())
            .collect();
        let row_counts: Vec<usize> = model.modes.iter().map(|m| m.rows.len()).collect();
        let entries = CooSlices {
            row_counts: &row_counts,
            rows: &rows,
            values: &values,
            weights: &[],
        };
        let workers = Workers {
            pool: &ThreadPool::new(2, false, 0),
            level: Level::best(),
        };
        for n in 0..3 {
            let csr = ModeCsr::new(n, entries, &()).unwrap();
            let mode = TuckerMode {
                tasks: RowTasks::all(&[&csr]).unwrap(),
                csr,
                matrices: Vec::new(),
            };
            let stored = Unfolding::new(&mode, &model, workers).unwrap();
            let mut computed = Unfolding::new(&mode, &model, workers).unwrap();
            computed.w.stored = None;
            let assert_close = |a: &[f64], b: &[f64]| {
                assert_eq!(a.len(), b.len());
                assert!(a.iter().any(|x| *x != 0.0));
                for (a, b) in a.iter().zip(b) {
                    assert!((a - b).abs() < 1e-11 * (1.0 + a.abs()), "{a} {b}");
                }
            };
            let [a, b] = [&stored, &computed].map(|m| m.gram().unwrap());
            assert_close(a.as_flattened(), b.as_flattened());
            let [a, b] = [&stored, &computed].map(|m| m.row_gram().unwrap());
            assert_close(&a, &b);
            let elements = 2 * stored.column_count();
            let t: Vec<f64> = (0..elements).map(|_| s.standard_normal()).collect();
            let [z, other] = [&stored, &computed].map(|m| m.times(&t, 2).unwrap());
            assert_close(&z, &other);
            let [a, b] = [&stored, &computed].map(|m| m.transposed_times(&z, 2).unwrap());
            assert_close(&a, &b);
        }
    }
}
