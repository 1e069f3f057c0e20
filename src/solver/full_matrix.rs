//! A coupled matrix of which every position counts, although few entries are observed.
//!
//! Let b_k be the value of an unobserved position in column k (0, or 0 minus the offset of the column), and l
//! the difference between an observed entry and b_k. Sums over all I x K positions then follow from the observed
//! entries and the Gram matrices of rows and columns:
//!
//! ```text
//! sum (b_k + l - u_i . v_k)^2 = I |b|^2 - 2 (sum u) . (sum b_k v_k) + <U^T U, V^T V>
//!                             + sum over observed entries of l^2 + 2 l (b_k - u_i . v_k)
//! row i:     (V^T V) u = sum b_k v_k + sum over observed entries of l v_k
//! column k:  (U^T U) v = b_k sum u   + sum over observed entries of l u_i
//! ```
//!
//! Nothing of size I x K is ever stored. `als` and `gibbs` add these sums to the normal equations of their
//! rows; SGD uses them in [`full_matrix_update`](super::full_matrix_update).

use std::sync::Arc;

use super::entries::EntryList;
use super::gram::row_moments;
use crate::error::Result;
use crate::kernel::{CooSlices, ModeCsr};
use crate::linalg::dot;
use crate::model::FactorMatrix;
use crate::parallel::ThreadPool;
use crate::progress::Monitor;

/// Number of rows that a thread takes at a time.
const ROWS_PER_TASK: usize = 128;

/// A matrix of which every position counts.
pub(super) struct FullMatrix {
    /// Observed entries by row; values are differences to the unobserved value of the column.
    pub by_row: Arc<ModeCsr>,
    /// The same entries by column.
    pub by_column: Arc<ModeCsr>,
    /// Value of the unobserved positions of each column.
    pub unobserved_values: Vec<f32>,
}

/// Contribution of full matrices to a row of their mode.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FullMatrixRow {
    /// Part of the row's penalty that its full matrices carry: 0 if it has tensor entries.
    pub penalty: f32,
    /// Whether the row has no other entries. SGD then solves for it in closed form, as for a column.
    pub is_exclusive: bool,
}

impl FullMatrix {
    /// Indexes the observed entries of a matrix with `rows` rows.
    pub(super) fn new(
        rows: usize,
        entries: &EntryList,
        unobserved_values: Vec<f32>,
        monitor: &dyn Monitor,
    ) -> Result<FullMatrix> {
        let limits = [rows, unobserved_values.len()];
        let entries = CooSlices {
            row_counts: &limits,
            rows: &entries.rows,
            values: &entries.values,
            weights: &[],
        };
        let csr = |mode| ModeCsr::new(mode, entries, monitor);
        Ok(FullMatrix {
            by_row: Arc::new(csr(0)?),
            by_column: Arc::new(csr(1)?),
            unobserved_values,
        })
    }

    /// Returns the number of positions, rows times columns.
    pub(super) fn position_count(&self) -> f64 {
        self.by_row.row_count() as f64 * self.unobserved_values.len() as f64
    }

    /// Returns the largest absolute value of a position.
    pub(super) fn max_abs_value(&self) -> f32 {
        let observed = (0..self.by_row.len()).map(|e| {
            let column = self.by_row.other_rows(e)[0];
            self.unobserved_values[column as usize] + self.by_row.value(e)
        });
        let all = self.unobserved_values.iter().copied().chain(observed);
        all.fold(0.0, |most: f32, x| most.max(x.abs()))
    }

    /// Returns the sum of the squared values of all positions.
    pub(super) fn sum_of_squares(&self) -> f64 {
        let square = |x: f32| f64::from(x) * f64::from(x);
        let rows = self.by_row.row_count() as f64;
        let squares = self.unobserved_values.iter().map(|&b| square(b));
        let unobserved = rows * squares.sum::<f64>();
        let observed = (0..self.by_row.len()).map(|e| {
            let base = self.unobserved_values[self.by_row.other_rows(e)[0] as usize];
            let value = self.by_row.value(e);
            square(value) + 2.0 * f64::from(base) * f64::from(value)
        });
        unobserved + observed.sum::<f64>()
    }

    /// Returns sum_k b_k v_k: the factor rows of the columns, weighted by their unobserved values.
    pub(super) fn unobserved_column_sum(&self, columns: &FactorMatrix) -> Vec<f64> {
        let mut sum = vec![0.0; columns.rank()];
        let nonzero = self.unobserved_values.iter().enumerate();
        for (k, &b) in nonzero.filter(|(_, b)| **b != 0.0) {
            let row = columns.row(k).iter();
            sum.iter_mut()
                .zip(row)
                .for_each(|(s, &v)| *s += f64::from(b) * f64::from(v));
        }
        sum
    }

    /// Returns the sum of squared errors over all positions.
    pub(super) fn squared_error(
        &self,
        rows: &FactorMatrix,
        columns: &FactorMatrix,
        pool: &ThreadPool<'_>,
    ) -> Result<f64> {
        let count = self.by_row.row_count();
        let u = row_moments(rows, count, &[], pool)?;
        let v = row_moments(columns, columns.len(), &[], pool)?;
        let gram_product: f64 = u.gram().iter().zip(v.gram()).map(|(a, b)| a * b).sum();
        let unobserved = dot(&self.unobserved_column_sum(columns), &u.sum);
        let observed = pool.map(
            count.div_ceil(ROWS_PER_TASK),
            || (),
            |(), p| {
                let mut sum = 0.0;
                for i in p * ROWS_PER_TASK..((p + 1) * ROWS_PER_TASK).min(count) {
                    for e in self.by_row.row_entries(i) {
                        let k = self.by_row.other_rows(e)[0] as usize;
                        let pairs = rows.row(i).iter().zip(columns.row(k));
                        let uv: f64 = pairs.map(|(&u, &v)| f64::from(u) * f64::from(v)).sum();
                        sum -= 2.0 * f64::from(self.by_row.value(e)) * uv;
                    }
                }
                sum
            },
        )?;
        let observed: f64 = observed.iter().sum();
        // Rounding can make the error of a perfect fit negative.
        Ok((self.sum_of_squares() - 2.0 * unobserved + gram_product + observed).max(0.0))
    }
}
