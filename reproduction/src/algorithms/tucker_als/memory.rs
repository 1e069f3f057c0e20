//! The memory of an update, estimated from the sizes of the fit before anything is allocated.

use super::factor_update::Eigenproblem;
use super::leading_eigenvectors::block_count;
use super::mode_entries::MAX_GRAM_SUMS;
use super::unfolded_rows::{block_rows, stored_bytes};
use super::unfolding::{MAX_GROUPS, MAX_SUM_BYTES, ROWS_OF_GRAM};
use crate::kernels::DENSE_LANES;
use s3cmtf::internals::FitSizes;
use s3cmtf::options::Options;
use s3cmtf_kernel::parallel::available_threads;

/// Largest number of elements that sizes are limited to: memory for that many does not exist.
const MAX_ELEMENTS: f64 = 1e15;

/// The sizes of the matrices of an update, in elements.
struct UpdateSizes {
    rows: f64,
    rank: f64,
    /// Columns of M.
    columns: f64,
    /// Columns of W with padding.
    padded_of_w: f64,
}

/// Returns the bytes that the update of mode `n` needs besides the model and the entries.
pub(super) fn update_bytes(sizes: &FitSizes, n: usize, options: &Options) -> f64 {
    let others = sizes.modes.iter().enumerate().filter(|(m, _)| *m != n);
    let of_w: f64 = others.map(|(_, mode)| mode.rank as f64).product();
    let threads = match options.threads {
        0 => available_threads(),
        threads => threads as usize,
    };
    let arrays = as_size(of_w).div_ceil(DENSE_LANES);
    let update = UpdateSizes {
        rows: sizes.modes[n].rows as f64,
        rank: sizes.modes[n].rank as f64,
        columns: of_w + sizes.matrix_columns(n) as f64,
        padded_of_w: (arrays * DENSE_LANES) as f64,
    };
    let w = match stored_bytes(as_size(update.rows), as_size(of_w)) {
        Some(bytes) => bytes as f64 / 8.0 + part_count(sizes.entries, sizes.modes[n].rows) * of_w,
        None => (threads * block_rows(arrays)) as f64 * update.padded_of_w,
    };
    // The sums of the entries of a row, of each thread.
    let scratch = 2.0 * threads as f64 * update.padded_of_w;
    // The factor, and the one that iterations start from or the copy that orthonormalization works on.
    let factor = 2.0 * update.block(update.rows);
    8.0 * (w + scratch + factor + update.eigenvectors().max(update.core()))
}

/// Returns most parts of rows whose sums exist at a time: `RowTasks` sums the entries of long rows in parts.
fn part_count(entries: u64, rows: u64) -> f64 {
    let parts = (entries >> 15).max(256).min(entries >> 11);
    parts.min(rows.saturating_mul(64)) as f64
}

fn as_size(elements: f64) -> usize {
    elements.min(MAX_ELEMENTS) as usize
}

/// Returns the elements of the sums of `len` elements over groups of rows.
fn sums(len: f64, rows: f64) -> f64 {
    let groups = (MAX_GROUPS as f64).min(rows);
    len.max((groups * len).min(MAX_SUM_BYTES as f64 / 8.0))
}

impl UpdateSizes {
    /// A block of vectors of `size` elements, and the inner products of its groups of rows.
    fn block(&self, size: f64) -> f64 {
        size * self.rank * (1.0 + self.rank / 1024.0)
    }

    /// The blocks of an iteration.
    fn blocks(&self, size: f64) -> f64 {
        block_count(as_size(size), self.rank as usize) as f64 * self.block(size)
    }

    /// M^T Z.
    fn transposed_product(&self) -> f64 {
        let of_w = self.rank * self.padded_of_w;
        sums(of_w, self.rows).max(of_w + self.rank * self.columns)
    }

    /// M T without the result, for a T that exists.
    fn product(&self) -> f64 {
        self.rank * self.padded_of_w
    }

    /// The core, from the sums of the products with the factor.
    fn core(&self) -> f64 {
        let projected = self.rank * self.padded_of_w;
        sums(projected, self.rows) + projected
    }

    /// What the singular vectors need besides W and the factor.
    fn eigenvectors(&self) -> f64 {
        let (rows, columns) = (self.rows, self.columns);
        // Singular values divide the vectors, which M is multiplied by.
        let right = 2.0 * self.rank * columns + self.product();
        match Eigenproblem::choose(as_size(rows), as_size(columns), self.rank as usize) {
            Eigenproblem::SmallRows => {
                let unit_products = sums(ROWS_OF_GRAM as f64 * self.padded_of_w, rows);
                // The matrix, and what diagonalizes it.
                5.0 * rows * rows + unit_products.max(MAX_GRAM_SUMS as f64 * rows * rows)
            }
            Eigenproblem::Gram => {
                let gram = sums(columns * (columns + DENSE_LANES as f64), rows);
                gram + (self.blocks(columns) + 4.0 * columns * self.rank).max(right)
            }
            Eigenproblem::Columns => {
                let start = self.transposed_product();
                start
                    .max(self.blocks(columns) + self.transposed_product())
                    .max(right)
            }
            Eigenproblem::Rows => {
                let products = self.rank * columns + self.product();
                self.blocks(rows) + products.max(self.transposed_product())
            }
        }
    }
}
