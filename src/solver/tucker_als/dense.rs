//! Dense matrices in `f64`: by columns for eigenvectors, by rows for factors, with padded rows for products.

use std::ops::Range;
use std::sync::Mutex;

use crate::error::Result;
use crate::kernel::DENSE_LANES;
use crate::linalg::{cholesky, qr};
use crate::model::FactorMatrix;
use crate::parallel::{ThreadPool, lock_ignoring_poison};
use crate::try_alloc::{try_with_capacity, try_zeroed};

type Array = [f64; DENSE_LANES];

/// Number of rows that a thread takes at a time.
const ROWS_PER_TASK: usize = 4096;

/// Least pivot of columns of length 1 at which a Cholesky factorization makes them orthonormal to rounding.
const MIN_PIVOT: f64 = 0.5;

/// Returns the transposes of some rows of a matrix that is given by its columns, padded.
pub(super) fn padded_rows(columns: &[Vec<f64>], rows: Range<usize>) -> Result<Vec<Array>> {
    let arrays = rows.len().div_ceil(DENSE_LANES);
    let mut padded: Vec<Array> = try_zeroed(columns.len() * arrays, "row elements")?;
    for (to, column) in padded.chunks_exact_mut(arrays.max(1)).zip(columns) {
        to.as_flattened_mut()[..rows.len()].copy_from_slice(&column[rows.clone()]);
    }
    Ok(padded)
}

/// Returns `count` rows of `len` elements without their padding.
pub(super) fn from_padded(padded: &[Array], count: usize, len: usize) -> Result<Vec<Vec<f64>>> {
    let rows = padded.chunks_exact(len.div_ceil(DENSE_LANES)).take(count);
    let copy = |row: &[Array]| {
        let mut copy = try_with_capacity(len, "row elements")?;
        copy.extend_from_slice(&row.as_flattened()[..len]);
        Ok(copy)
    };
    rows.map(copy).collect()
}

/// Returns the columns of a matrix that is given by rows of `width` elements.
pub(super) fn to_columns(rows: &[f64], width: usize) -> Result<Vec<Vec<f64>>> {
    let column = |k: usize| {
        let mut column = try_with_capacity(rows.len() / width, "row elements")?;
        column.extend(rows.iter().skip(k).step_by(width));
        Ok(column)
    };
    (0..width).map(column).collect()
}

/// Returns the rows of a matrix with `width` columns, of which the last may not be given and are 0.
pub(super) fn to_rows(columns: &[Vec<f64>], width: usize) -> Result<Vec<f64>> {
    let count = columns.first().map_or(0, Vec::len);
    let mut rows: Vec<f64> = try_zeroed(count * width, "row elements")?;
    for (k, column) in columns.iter().enumerate() {
        let elements = rows.iter_mut().skip(k).step_by(width);
        elements.zip(column).for_each(|(to, &x)| *to = x);
    }
    Ok(rows)
}

/// Returns the first `count` rows of a factor without padding.
pub(super) fn factor_rows(factor: &FactorMatrix, count: usize) -> Result<Vec<f64>> {
    let mut rows = try_with_capacity(count * factor.rank(), "row elements")?;
    for i in 0..count {
        rows.extend(factor.row(i).iter().map(|&x| f64::from(x)));
    }
    Ok(rows)
}

/// Makes the columns of a matrix of rows of `width` elements orthonormal, without changing the space that the first of them
/// span. Columns that depend linearly on those before are replaced by random ones. `seed` identifies their streams.
pub(super) fn orthonormalize_columns(
    rows: &mut Vec<f64>,
    width: usize,
    seed: u64,
    pool: &ThreadPool<'_>,
) -> Result<()> {
    let gram = column_gram(rows, width, pool)?;
    let length = |j: usize| gram[j * width + j].sqrt();
    let is_regular = (0..width).all(|j| length(j) > 0.0 && length(j).is_finite());
    let normalized = (0..width * width)
        .map(|k| gram[k] / (length(k / width) * length(k % width)))
        .collect::<Vec<f64>>();
    let lower = is_regular.then(|| cholesky(width, &normalized)).flatten();
    let is_pivot = |lower: &Vec<f64>| (0..width).all(|j| lower[j * width + j] >= MIN_PIVOT);
    let Some(lower) = lower.filter(is_pivot) else {
        let mut columns = to_columns(rows, width)?;
        qr(&mut columns, seed, pool.monitor())?;
        *rows = to_rows(&columns, width)?;
        return Ok(());
    };
    let tasks = rows.chunks_mut(ROWS_PER_TASK * width).map(Mutex::new);
    let tasks: Vec<Mutex<&mut [f64]>> = tasks.collect();
    let run_task = |(): &mut (), t: usize| {
        for row in lock_ignoring_poison(&tasks[t]).chunks_exact_mut(width) {
            for j in 0..width {
                let known = row[..j].iter().zip(&lower[j * width..]);
                let sum: f64 = known.map(|(x, l)| x * l).sum();
                row[j] = (row[j] / length(j) - sum) / lower[j * width + j];
            }
        }
    };
    pool.map(tasks.len(), || (), run_task)?;
    Ok(())
}

/// Returns the inner products of the columns of a matrix of rows of `width` elements.
fn column_gram(rows: &[f64], width: usize, pool: &ThreadPool<'_>) -> Result<Vec<f64>> {
    let parts: Vec<&[f64]> = rows.chunks(ROWS_PER_TASK * width).collect();
    let sums = pool.map(
        parts.len(),
        || (),
        |(), p| {
            let mut sum = vec![0.0; width * width];
            for row in parts[p].chunks_exact(width) {
                for (to, &x) in sum.chunks_exact_mut(width).zip(row) {
                    to.iter_mut().zip(row).for_each(|(to, y)| *to += x * y);
                }
            }
            sum
        },
    )?;
    let mut total = vec![0.0; width * width];
    for sum in sums {
        total.iter_mut().zip(sum).for_each(|(to, x)| *to += x);
    }
    Ok(total)
}
