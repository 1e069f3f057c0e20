//! The update of a factor: the leading left singular vectors of M.

use super::dense::{copy_without_padding, factor_rows, orthonormalize_columns, padded_transpose};
use super::leading_eigenvectors::{
    Accuracy, is_small, leading_eigenvectors, leading_of_small_matrix,
};
use super::unfolding::Unfolding;
use super::workers::Workers;
use crate::kernels::{DENSE_LANES, row_inner_products};
use s3cmtf::error::Result;
use s3cmtf::internals::FactorMatrix;
use s3cmtf_kernel::try_alloc::try_zeroed;

type Array = [f64; DENSE_LANES];

/// M^T M is formed if M has at most this many columns for each singular vector, and at most [`MAX_GRAM_SIZE`]: products with
/// it then take less time than products with M.
const GRAM_RATIO: usize = 64;

/// Largest size of M^T M.
const MAX_GRAM_SIZE: usize = 1024;

/// Singular values below this multiple of the largest are rounding errors.
const MIN_SINGULAR_VALUE: f64 = 1e-12;

/// The symmetric matrix from whose eigenvectors the left singular vectors of M are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Eigenproblem {
    /// M M^T, which is small and formed.
    SmallRows,
    /// M^T M, which is formed.
    Gram,
    /// M^T M, known through products.
    Columns,
    /// M M^T, known through products.
    Rows,
}

impl Eigenproblem {
    /// Chooses the smaller matrix for an M of this size and `rank` singular vectors.
    pub(super) fn choose(rows: usize, columns: usize, rank: usize) -> Eigenproblem {
        if columns > rows {
            match is_small(rows, rank) {
                true => Eigenproblem::SmallRows,
                false => Eigenproblem::Rows,
            }
        } else if columns <= (GRAM_RATIO * rank).min(MAX_GRAM_SIZE) || is_small(columns, rank) {
            Eigenproblem::Gram
        } else {
            Eigenproblem::Columns
        }
    }
}

/// Accuracy of the singular vectors. The next epoch goes on from them, so that a converged fit has more.
const ACCURACY: Accuracy = Accuracy {
    residual: 1e-6,
    growth: 1e-10,
};

/// Returns the leading left singular vectors of M, one row per row of the mode. Iterations start from `current`, the factor
/// so far.
pub(super) fn leading_left_vectors(
    m: &Unfolding<'_>,
    current: &FactorMatrix,
    seed: u64,
    workers: Workers<'_>,
) -> Result<Vec<f64>> {
    let (rows, columns, rank) = (m.row_count(), m.column_count(), current.rank());
    let problem = Eigenproblem::choose(rows, columns, rank);
    let left = match problem {
        Eigenproblem::SmallRows => {
            let leading = leading_of_small_matrix(&m.row_gram()?, rows, rank, workers)?;
            Some(leading.vectors)
        }
        Eigenproblem::Rows => {
            let start = || factor_rows(current, rows, workers);
            let product = |x: &[f64], width: usize| m.times(&m.transposed_times(x, width)?, width);
            let leading =
                leading_eigenvectors(rows, rank, start, product, ACCURACY, seed, workers)?;
            Some(leading.vectors)
        }
        Eigenproblem::Gram | Eigenproblem::Columns => None,
    };
    if let Some(mut left) = left {
        orthonormalize_columns(&mut left, rank, seed, workers)?;
        return Ok(left);
    }
    let start = || m.transposed_times(&factor_rows(current, rows, workers)?, rank);
    let leading = if problem == Eigenproblem::Gram {
        let gram = m.gram()?;
        if is_small(columns, rank) {
            let mut matrix: Vec<f64> = try_zeroed(columns * columns, "column elements")?;
            copy_without_padding(&gram, columns, &mut matrix);
            leading_of_small_matrix(&matrix, columns, rank, workers)?
        } else {
            let product = |x: &[f64], width: usize| dense_product(&gram, x, width, workers);
            leading_eigenvectors(columns, rank, start, product, ACCURACY, seed, workers)?
        }
    } else {
        let product = |x: &[f64], width: usize| m.transposed_times(&m.times(x, width)?, width);
        leading_eigenvectors(columns, rank, start, product, ACCURACY, seed, workers)?
    };
    let largest = leading.values.first().map_or(0.0, |t| t.max(0.0).sqrt());
    let scale = |value: &f64| {
        let singular_value = value.max(0.0).sqrt();
        match singular_value > MIN_SINGULAR_VALUE * largest {
            true => singular_value.recip(),
            false => 0.0,
        }
    };
    let scales: Vec<f64> = leading.values.iter().map(scale).collect();
    // There are fewer right vectors than columns of the factor if M has fewer columns.
    let mut right: Vec<f64> = try_zeroed(columns * rank, "column elements")?;
    let from = leading.vectors.chunks_exact(scales.len());
    for (to, from) in right.chunks_exact_mut(rank).zip(from) {
        for ((to, x), scale) in to.iter_mut().zip(from).zip(&scales) {
            *to = x * scale;
        }
    }
    let mut left = m.times(&right, rank)?;
    orthonormalize_columns(&mut left, rank, seed, workers)?;
    Ok(left)
}

/// Returns the products of a symmetric matrix with padded rows and `width` vectors, both by rows.
fn dense_product(
    matrix: &[Array],
    x: &[f64],
    width: usize,
    workers: Workers<'_>,
) -> Result<Vec<f64>> {
    const OPERATIONS_PER_TASK: usize = 1 << 17;
    let size = x.len() / width;
    let arrays = size.div_ceil(DENSE_LANES);
    let padded = padded_transpose(x, width, 0..size)?;
    let rows_per_task = (OPERATIONS_PER_TASK / (size * width)).max(1);
    let parts: Vec<&[Array]> = matrix.chunks(rows_per_task * arrays).collect();
    let Workers { pool, level } = workers;
    let products = pool.map(
        parts.len(),
        || (),
        |(), p| {
            let mut products = vec![0.0; parts[p].len() / arrays * width];
            row_inner_products(level, parts[p], &padded, width, &mut products);
            products
        },
    )?;
    Ok(products.concat())
}
