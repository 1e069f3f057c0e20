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
use crate::try_alloc::try_collect;

/// Number of rows that a thread takes at a time.
const ROWS_PER_TASK: usize = 128;

/// A matrix of which every position counts.
pub struct FullMatrix {
    /// Observed entries by row; values are differences to the unobserved value of the column.
    pub by_row: Arc<ModeCsr>,
    /// The same entries by column.
    pub by_column: Arc<ModeCsr>,
    /// Value of the unobserved positions of each column.
    pub unobserved_values: Vec<f32>,
}

/// Contribution of full matrices to a row of their mode.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FullMatrixRow {
    /// Part of the row's penalty that its full matrices carry: 0 if it has tensor entries.
    pub penalty: f32,
    /// Whether the row has no other entries. SGD then solves for it in closed form, as for a column.
    pub is_exclusive: bool,
}

impl FullMatrix {
    /// Indexes the observed entries of a matrix with `rows` rows.
    pub fn new(
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

    /// Indexes an observed matrix as a full one if it has one entry without weight at every position. The smallest value of
    /// a column then takes the place of the unobserved one, so that entries with that value need not be listed.
    pub(super) fn of_complete(
        [rows, columns]: [usize; 2],
        entries: &EntryList,
        monitor: &dyn Monitor,
    ) -> Result<Option<FullMatrix>> {
        let positions = rows.checked_mul(columns);
        if entries.is_weighted() || entries.len() == 0 || positions != Some(entries.len()) {
            return Ok(None);
        }
        let mut is_listed: Vec<bool> =
            try_collect(entries.len(), std::iter::repeat(false), "entries")?;
        let mut smallest: Vec<f32> =
            try_collect(columns, std::iter::repeat(f32::INFINITY), "columns")?;
        let each = || entries.rows.chunks_exact(2).zip(&entries.values);
        for (position, &value) in each() {
            let (row, column) = (position[0] as usize, position[1] as usize);
            if std::mem::replace(&mut is_listed[row * columns + column], true) {
                return Ok(None);
            }
            smallest[column] = smallest[column].min(value);
        }
        let differences = || {
            let difference = |(position, value): (&'_ [u32], &f32)| {
                let difference = value - smallest[position[1] as usize];
                ([position[0], position[1]], difference)
            };
            each().map(difference).filter(|(_, value)| *value != 0.0)
        };
        let count = differences().count();
        let listed = EntryList {
            order: 2,
            rows: try_collect(2 * count, differences().flat_map(|(p, _)| p), "indices")?,
            values: try_collect(count, differences().map(|(_, value)| value), "entries")?,
            weights: Vec::new(),
            values_with_biases: Vec::new(),
        };
        FullMatrix::new(rows, &listed, smallest, monitor).map(Some)
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
    pub fn sum_of_squares(&self) -> f64 {
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
    pub fn unobserved_column_sum(&self, columns: &FactorMatrix) -> Vec<f64> {
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
    pub fn squared_error(
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

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(positions: &[[u32; 2]], values: &[f32]) -> EntryList {
        EntryList {
            order: 2,
            rows: positions.concat(),
            values: values.to_vec(),
            weights: Vec::new(),
            values_with_biases: Vec::new(),
        }
    }

    #[test]
    fn a_complete_matrix_lists_differences_to_the_smallest_value_of_a_column() {
        let positions = [[0, 0], [1, 0], [0, 1], [1, 1]];
        let complete = entries(&positions, &[0.0, 3.0, -1.0, -1.0]);
        let full = FullMatrix::of_complete([2, 2], &complete, &());
        let full = full.unwrap().expect("every position has an entry");
        assert_eq!(full.unobserved_values, [0.0, -1.0]);
        assert_eq!((full.by_row.len(), full.by_row.value(0)), (1, 3.0));
        assert_eq!(full.by_row.row_entries(1), 0..1);
        assert_eq!(full.sum_of_squares(), 11.0);
    }

    #[test]
    fn a_matrix_with_missing_or_repeated_positions_is_not_complete() {
        let missing = entries(&[[0, 0], [1, 0], [0, 1]], &[1.0; 3]);
        let repeated = entries(&[[0, 0], [1, 0], [0, 1], [0, 1]], &[1.0; 4]);
        for entries in [missing, repeated] {
            assert!(
                FullMatrix::of_complete([2, 2], &entries, &())
                    .unwrap()
                    .is_none()
            );
        }
    }
}
