//! The entries of a mode: those of the tensor by row, and the matrices that are coupled to it.

use std::sync::{Arc, Mutex};

use crate::error::Result;
use crate::kernel::ModeCsr;
use crate::parallel::{ThreadPool, lock_ignoring_poison};
use crate::solver::full_matrix::FullMatrix;
use crate::solver::rowwise::RowTasks;
use crate::try_alloc::try_zeroed;

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

    /// Returns `scale` Y^T Z, one row of `width` elements per column of Y; Z has one such row per row of Y.
    pub(super) fn transposed_times(
        &self,
        z: &[f64],
        width: usize,
        scale: f64,
        pool: &ThreadPool<'_>,
    ) -> Result<Vec<f64>> {
        const COLUMNS_PER_TASK: usize = 256;
        let columns = &self.entries.by_column;
        let mut out: Vec<f64> = try_zeroed(columns.row_count() * width, "column elements")?;
        let tasks = out.chunks_mut(COLUMNS_PER_TASK * width).map(Mutex::new);
        let tasks: Vec<Mutex<&mut [f64]>> = tasks.collect();
        pool.map(
            tasks.len(),
            || (),
            |(), t| {
                let mut rows = lock_ignoring_poison(&tasks[t]);
                for (k, to) in rows.chunks_exact_mut(width).enumerate() {
                    add_sparse_row(columns, t * COLUMNS_PER_TASK + k, scale, z, to);
                }
            },
        )?;
        drop(tasks);
        Ok(out)
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
