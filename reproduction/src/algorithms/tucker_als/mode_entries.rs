//! The entries of a mode: those of the tensor by row, and the matrices that are coupled to it.

use std::sync::Arc;

use super::workers::Workers;
use s3cmtf::error::Result;
use s3cmtf::internals::FullMatrix;
use s3cmtf::internals::RowTasks;
use s3cmtf_kernel::kernel::ModeCsr;
use s3cmtf_kernel::linalg::add_scaled;
use s3cmtf_kernel::progress::count_operations;
use s3cmtf_kernel::try_alloc::try_zeroed;

/// Most sums over columns of a matrix whose products of rows exist at a time.
pub(super) const MAX_GRAM_SUMS: usize = 64;

/// The entries of a mode.
pub(super) struct TuckerMode {
    pub csr: ModeCsr,
    pub tasks: RowTasks,
    pub matrices: Vec<ZeroFilledMatrix>,
}

impl TuckerMode {
    /// Writes the row of all matrices, scaled, into zeros.
    pub(super) fn copy_matrix_rows(&self, row: usize, mut to: &mut [f64]) {
        for matrix in &self.matrices {
            let by_row = &matrix.entries.by_row;
            let (own, rest) = to.split_at_mut(matrix.column_count());
            for e in by_row.row_entries(row) {
                own[by_row.other_rows(e)[0] as usize] = matrix.scale * f64::from(by_row.value(e));
            }
            to = rest;
        }
    }

    /// Returns whether the tensor or a matrix has an entry in a row.
    pub(super) fn has_entries(&self, row: usize) -> bool {
        let mut matrices = self.matrices.iter();
        !self.csr.row_entries(row).is_empty()
            || matrices.any(|m| !m.entries.by_row.row_entries(row).is_empty())
    }
}

/// A coupled matrix; unlisted cells are 0.
pub(super) struct ZeroFilledMatrix {
    /// Its number among the matrices of the model.
    pub number: usize,
    /// The root of lambda_m.
    pub scale: f64,
    pub entries: Arc<FullMatrix>,
}

impl ZeroFilledMatrix {
    pub(super) fn column_count(&self) -> usize {
        self.entries.by_column.row_count()
    }

    /// Writes `scale` Y^T Z, one row of `width` elements per column of Y; Z has one such row per row of Y. Rows of `to` have
    /// `stride` elements, of which those after the first `width` stay as they are.
    pub(super) fn write_transposed_product<T: Send>(
        &self,
        (z, width): (&[f64], usize),
        scale: f64,
        workers: Workers<'_>,
        (to, stride): (&mut [T], usize),
        convert: impl Fn(f64) -> T + Sync,
    ) -> Result<()> {
        const COLUMNS_PER_TASK: usize = 256;
        let columns = &self.entries.by_column;
        let to = &mut to[..columns.row_count() * stride];
        workers.for_row_groups(
            to,
            stride,
            COLUMNS_PER_TASK,
            |first, to, row: &mut Vec<f64>| {
                for (k, to) in to.chunks_exact_mut(stride).enumerate() {
                    row.clear();
                    row.resize(width, 0.0);
                    add_sparse_row(columns, first + k, scale, z, row);
                    to.iter_mut()
                        .zip(&*row)
                        .for_each(|(to, &x)| *to = convert(x));
                }
            },
        )
    }

    /// Adds lambda Y Y^T, row-major, for a matrix of few rows.
    pub(super) fn add_row_gram(&self, gram: &mut [f64], workers: Workers<'_>) -> Result<()> {
        const COLUMNS_PER_TASK: usize = 1 << 14;
        let (columns, rows) = (&self.entries.by_column, self.entries.by_row.row_count());
        let square = self.scale * self.scale;
        let (count, stop) = (columns.row_count(), workers.pool.stop());
        let step = COLUMNS_PER_TASK.max(count.div_ceil(MAX_GRAM_SUMS));
        let sums = workers.pool.try_map(
            count.div_ceil(step),
            || Ok((vec![0.0; rows], Vec::new())),
            |(column, listed): &mut (Vec<f64>, Vec<usize>), t| {
                let mut sums: Vec<f64> = try_zeroed(rows * rows, "row elements")?;
                for c in t * step..((t + 1) * step).min(count) {
                    if stop.requested() {
                        break;
                    }
                    // A cell may have several entries, whose values add up.
                    listed.clear();
                    for e in columns.row_entries(c) {
                        let row = columns.other_rows(e)[0] as usize;
                        column[row] += f64::from(columns.value(e));
                        listed.push(row);
                    }
                    listed.sort_unstable();
                    listed.dedup();
                    count_operations(listed.len() * listed.len());
                    for &i in &*listed {
                        for &j in &*listed {
                            sums[i * rows + j] += column[i] * column[j];
                        }
                    }
                    listed.iter().for_each(|&i| column[i] = 0.0);
                }
                Ok(sums)
            },
        )?;
        for sums in sums {
            add_scaled(gram, square, &sums);
        }
        Ok(())
    }
}

/// Adds `scale` times the sum over the entries of a row of a sparse matrix of the value times the row of `z` that belongs to
/// its column.
pub(super) fn add_sparse_row(csr: &ModeCsr, row: usize, scale: f64, z: &[f64], to: &mut [f64]) {
    let width = to.len();
    for e in csr.row_entries(row) {
        let value = scale * f64::from(csr.value(e));
        let from = &z[csr.other_rows(e)[0] as usize * width..][..width];
        to.iter_mut().zip(from).for_each(|(to, x)| *to += value * x);
    }
}
