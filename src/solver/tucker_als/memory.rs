//! The memory of an update, estimated from the sizes of the fit before anything is allocated.

use super::factor_update::Eigenproblem;
use super::leading_eigenvectors::block_count;
use super::unfolded_rows::{block_rows, stored_bytes};
use super::unfolding::{MAX_GROUPS, MAX_SUM_BYTES};
use crate::kernel::DENSE_LANES;
use crate::options::Options;
use crate::parallel::available_threads;
use crate::solver::fit_sizes::{FitSizes, ModeSize};

/// Returns the bytes that the update of mode `n` needs besides the model and the entries.
pub(super) fn update_bytes(sizes: &FitSizes, n: usize, options: &Options) -> f64 {
    let ModeSize { rows, rank } = sizes.modes[n];
    let others = sizes.modes.iter().enumerate().filter(|(m, _)| *m != n);
    let of_w: f64 = others.map(|(_, mode)| mode.rank as f64).product();
    let columns = of_w + sizes.matrix_columns(n) as f64;
    let threads = match options.threads {
        0 => available_threads(),
        threads => threads as usize,
    };
    let (rank, rows_f64) = (rank as f64, rows as f64);
    // The columns of a core whose size is allowed fit.
    let width = of_w.min(1e15) as usize;
    let (row, all_columns) = (rows as usize, columns.min(1e15) as usize);
    let w = match stored_bytes(row, width) {
        Some(bytes) => bytes as f64,
        None => {
            let arrays = width.div_ceil(DENSE_LANES);
            (threads * block_rows(arrays)) as f64 * 8.0 * of_w
        }
    };
    // The factor and the one that iterations start from.
    let factor = 2.0 * 8.0 * rows_f64 * rank;
    let blocks = |size: usize| 8.0 * rank * block_count(size, rank as usize) as f64 * size as f64;
    let sums = |bytes: f64| bytes.max((MAX_GROUPS as f64 * bytes).min(MAX_SUM_BYTES as f64));
    let product = 8.0 * rank * columns + sums(8.0 * rank * of_w);
    let eigenproblem = match Eigenproblem::choose(row, all_columns, rank as usize) {
        Eigenproblem::Gram => blocks(all_columns) + sums(8.0 * columns * columns),
        Eigenproblem::Columns => blocks(all_columns) + product + 8.0 * rows_f64 * rank,
        Eigenproblem::Rows => blocks(row) + product + 8.0 * rows_f64 * rank,
    };
    w + factor + eigenproblem
}
