//! The gradient of one term of the objective, the squared errors of the tensor or of a matrix, by the rows of one block.

use std::ops::Range;

use super::grouped_entries::GroupedEntries;
use crate::algorithms::row_computation::{RowComputation, compute_rows};
use crate::kernels::add_symmetric_product;
use s3cmtf::error::Result;
use s3cmtf_kernel::kernel::{BiasedRow, Partials, PartialsScratch};
use s3cmtf_kernel::parallel::ThreadPool;
use s3cmtf_kernel::progress::{StopFlag, count_operations};
use s3cmtf_kernel::simd::padded_len;
use s3cmtf_kernel::try_alloc::try_zeroed;

/// The penalties of the rows of a block.
pub(super) struct RowPenalties {
    /// One per row.
    pub strengths: Vec<f32>,
    /// The row that the penalty shrinks to, padded.
    pub target: Vec<f32>,
}

/// The part of a term that all cells of a row have, observed or not: u^T A u / 2 - s b . u.
pub(super) struct AllCells<'a> {
    /// A, row-major without padding.
    pub gram: Vec<f64>,
    /// b; empty for 0.
    pub linear: Vec<f64>,
    /// s of each row; `None` for 1.
    pub scales: Option<&'a [f32]>,
}

/// A pass over the entries of a term, grouped by the rows of a block.
pub(super) struct RowPass<'a> {
    pub entries: &'a GroupedEntries,
    pub partials: Partials<'a>,
    /// The rows of the block, padded.
    pub rows: &'a [f32],
    /// One per row; empty if there are none.
    pub biases: &'a [f32],
    /// Factor of the squared errors.
    pub weight: f64,
    /// If every cell counts. The values of entries are then differences to the other cells of their row.
    pub all_cells: Option<AllCells<'a>>,
    /// Where the pass is the first one over its block: it adds the penalties and overwrites the gradient.
    pub penalties: Option<&'a RowPenalties>,
}

/// Sums over a block.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PassSums {
    /// Twice the penalties.
    pub penalties: f64,
    /// The squared errors of the entries, or if every cell counts the sum of their values times those of the model.
    pub entries: f64,
}

/// Buffers of one thread.
pub(super) struct RowScratch {
    partials: PartialsScratch,
    /// The gradient of a row.
    gradient: Vec<f64>,
}

impl RowPass<'_> {
    /// Adds the gradient of the term to `gradient`, whose rows are not padded.
    pub(super) fn run(&self, gradient: &mut [f32], pool: &ThreadPool<'_>) -> Result<PassSums> {
        let GroupedEntries { csr, tasks } = self.entries;
        let mut total = PassSums::default();
        for sums in compute_rows(self, csr, tasks, gradient, self.partials.rank, pool)? {
            total.penalties += sums.penalties;
            total.entries += sums.entries;
        }
        Ok(total)
    }

    fn row(&self, row: usize) -> &[f32] {
        let width = padded_len(self.partials.rank);
        &self.rows[row * width..(row + 1) * width]
    }
}

impl RowComputation for RowPass<'_> {
    type Element = f32;
    type Scratch = RowScratch;
    type Total = PassSums;

    fn scratch(&self) -> Result<RowScratch> {
        let width = padded_len(self.partials.rank);
        Ok(RowScratch {
            partials: PartialsScratch::default(),
            gradient: try_zeroed(width, "row elements")?,
        })
    }

    /// The sum of w e d, padded, and that of the squared errors.
    fn sum_count(&self) -> usize {
        padded_len(self.partials.rank) + 1
    }

    fn add_entries(
        &self,
        row: usize,
        entries: Range<usize>,
        sums: &mut [f64],
        scratch: &mut RowScratch,
        stop: &StopFlag,
    ) -> Result<()> {
        let (csr, partials) = (&self.entries.csr, &mut scratch.partials);
        let (squares, sums) = sums.split_last_mut().expect("there is at least one sum");
        if self.all_cells.is_some() {
            return self
                .partials
                .add_value_products(csr, entries, partials, sums, stop);
        }
        let biased_row = BiasedRow {
            row: self.row(row),
            bias: self.biases.get(row).copied().unwrap_or(0.0),
        };
        *squares += self
            .partials
            .add_residual_products(csr, entries, biased_row, partials, sums, stop)?;
        Ok(())
    }

    /// Writes the gradient by a row and adds the row's part of the objective.
    fn finish_row(
        &self,
        row: usize,
        sums: &mut [f64],
        scratch: &mut RowScratch,
        to: &mut [f32],
        total: &mut PassSums,
    ) {
        let gradient = &mut scratch.gradient;
        let (squares, sums) = sums.split_last().expect("there is at least one sum");
        let (rank, u) = (self.partials.rank, self.row(row));
        let elements = gradient.iter_mut().zip(sums);
        elements.for_each(|(g, sum)| *g = -self.weight * sum);
        total.entries += match &self.all_cells {
            None => *squares,
            Some(all_cells) => {
                all_cells.add_gradient(row, &u[..rank], self.weight, gradient);
                let products = sums.iter().zip(u).map(|(sum, &u)| sum * f64::from(u));
                products.sum::<f64>()
            }
        };
        match self.penalties {
            Some(RowPenalties { strengths, target }) => {
                let strength = f64::from(strengths[row]);
                let mut square = 0.0;
                for j in 0..rank {
                    let distance = f64::from(u[j]) - f64::from(target[j]);
                    gradient[j] += strength * distance;
                    square += distance * distance;
                }
                total.penalties += strength * square;
            }
            None => {
                let elements = gradient.iter_mut().zip(&*to);
                elements.for_each(|(g, &old)| *g += f64::from(old));
            }
        }
        let elements = to.iter_mut().zip(&*gradient);
        elements.for_each(|(to, &g)| *to = g as f32);
    }
}

impl AllCells<'_> {
    /// Adds `weight` times (A u - s b) to the gradient by a row.
    fn add_gradient(&self, row: usize, u: &[f32], weight: f64, gradient: &mut [f64]) {
        count_operations(self.gram.len());
        let gradient = &mut gradient[..u.len()];
        add_symmetric_product(gradient, weight, &self.gram, u);
        let scale = self.scales.map_or(1.0, |s| f64::from(s[row]));
        for (g, b) in gradient.iter_mut().zip(&self.linear) {
            *g -= weight * scale * b;
        }
    }
}
