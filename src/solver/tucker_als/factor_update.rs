//! The update of a factor: the leading left singular vectors of M.

use super::dense::{factor_rows, orthonormalize_columns, to_columns, to_rows};
use super::unfolding::Unfolding;
use crate::error::Result;
use crate::kernel::{DENSE_LANES, row_inner_products};
use crate::linalg::leading_eigenvectors;
use crate::model::FactorMatrix;
use crate::parallel::ThreadPool;

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
            Eigenproblem::Rows
        } else if columns <= (GRAM_RATIO * rank).min(MAX_GRAM_SIZE) {
            Eigenproblem::Gram
        } else {
            Eigenproblem::Columns
        }
    }
}

/// Returns the leading left singular vectors of M, one row per row of the mode. Iterations start from `current`, the factor
/// so far.
pub(super) fn leading_left_vectors(
    m: &Unfolding<'_>,
    current: &FactorMatrix,
    seed: u64,
    pool: &ThreadPool<'_>,
) -> Result<Vec<f64>> {
    let (rows, columns, rank) = (m.row_count(), m.column_count(), current.rank());
    let monitor = pool.monitor();
    let problem = Eigenproblem::choose(rows, columns, rank);
    if problem == Eigenproblem::Rows {
        let start = || to_columns(&factor_rows(current, rows)?, rank);
        let product = |x: &[Vec<f64>]| {
            let t = m.transposed_times(&to_rows(x, x.len())?, x.len())?;
            to_columns(&m.times(&t)?, x.len())
        };
        let leading = leading_eigenvectors(rows, rank, start, product, seed, monitor)?;
        let mut left = to_rows(&leading.vectors, rank)?;
        orthonormalize_columns(&mut left, rank, seed, pool)?;
        return Ok(left);
    }
    let start = || m.transposed_times(&factor_rows(current, rows)?, rank);
    let gram = match problem {
        Eigenproblem::Gram => Some(m.gram()?),
        _ => None,
    };
    let product = |x: &[Vec<f64>]| match &gram {
        Some(gram) => dense_product(gram, x, pool),
        None => m.transposed_times(&m.times(x)?, x.len()),
    };
    let leading = leading_eigenvectors(columns, rank, start, product, seed, monitor)?;
    let mut right = leading.vectors;
    let largest = leading.values.first().map_or(0.0, |t| t.max(0.0).sqrt());
    for (vector, value) in right.iter_mut().zip(leading.values) {
        let singular_value = value.max(0.0).sqrt();
        let scale = match singular_value > MIN_SINGULAR_VALUE * largest {
            true => singular_value.recip(),
            false => 0.0,
        };
        vector.iter_mut().for_each(|x| *x *= scale);
    }
    right.resize_with(rank, || vec![0.0; columns]);
    let mut left = m.times(&right)?;
    orthonormalize_columns(&mut left, rank, seed, pool)?;
    Ok(left)
}

/// Returns the products of a symmetric matrix with padded rows and some vectors.
fn dense_product(matrix: &[Array], x: &[Vec<f64>], pool: &ThreadPool<'_>) -> Result<Vec<Vec<f64>>> {
    const OPERATIONS_PER_TASK: usize = 1 << 17;
    let (size, count) = (x[0].len(), x.len());
    let arrays = size.div_ceil(DENSE_LANES);
    let padded = super::dense::padded_rows(x, 0..size)?;
    let rows_per_task = (OPERATIONS_PER_TASK / (size * count)).max(1);
    let parts: Vec<&[Array]> = matrix.chunks(rows_per_task * arrays).collect();
    let products = pool.map(
        parts.len(),
        || (),
        |(), p| {
            let mut products = vec![0.0; parts[p].len() / arrays * count];
            row_inner_products(parts[p], &padded, count, &mut products);
            products
        },
    )?;
    to_columns(&products.concat(), count)
}
