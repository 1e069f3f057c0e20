//! Dense matrices in `f64` with a row per row of a mode or per column of M, and few columns.
//!
//! They are stored by rows, without padding, and processed in groups of rows that depend on the size alone. Sums over groups
//! are added in their order, so results are independent of the thread count.

use std::ops::Range;
use std::slice;

use super::workers::Workers;
use crate::kernels::{DENSE_LANES, Part, add_cross_products, add_row_products};
use s3cmtf::error::Result;
use s3cmtf::internals::FactorMatrix;
use s3cmtf_kernel::linalg::{cholesky, qr};
use s3cmtf_kernel::try_alloc::{try_with_capacity, try_zeroed};

type Array = [f64; DENSE_LANES];

/// What error messages call the elements.
const ELEMENTS: &str = "row elements";

/// Number of rows that a thread takes at a time.
const ROWS_PER_TASK: usize = 1024;

/// Least pivot of columns of length 1 at which a Cholesky factorization makes them orthonormal to rounding.
const MIN_PIVOT: f64 = 0.5;

/// Least pivot from which on another factorization makes the result orthonormal. Below it, columns are linearly dependent.
const MIN_INDEPENDENT_PIVOT: f64 = 1e-5;

/// Returns the transpose of some rows of `width` elements, padded.
pub(super) fn padded_transpose(
    rows: &[f64],
    width: usize,
    range: Range<usize>,
) -> Result<Vec<Array>> {
    let arrays = range.len().div_ceil(DENSE_LANES);
    let mut padded: Vec<Array> = try_zeroed(width * arrays, ELEMENTS)?;
    let to = padded.as_flattened_mut();
    let rows = rows[range.start * width..range.end * width].chunks_exact(width);
    for (i, row) in rows.enumerate() {
        for (k, x) in row.iter().enumerate() {
            to[k * arrays * DENSE_LANES + i] = *x;
        }
    }
    Ok(padded)
}

/// Replaces the content of `padded` by rows of `width` elements, padded.
fn pad_rows(rows: &[f64], width: usize, padded: &mut Vec<Array>) {
    let arrays = width.div_ceil(DENSE_LANES);
    padded.clear();
    padded.resize(rows.len() / width * arrays, [0.0; DENSE_LANES]);
    let to = padded.chunks_exact_mut(arrays);
    for (to, row) in to.zip(rows.chunks_exact(width)) {
        to.as_flattened_mut()[..width].copy_from_slice(row);
    }
}

/// Copies rows without their padding.
pub(super) fn copy_without_padding(padded: &[Array], width: usize, rows: &mut [f64]) {
    let from = padded.chunks_exact(width.div_ceil(DENSE_LANES));
    for (row, from) in rows.chunks_exact_mut(width).zip(from) {
        row.copy_from_slice(&from.as_flattened()[..width]);
    }
}

/// Returns the columns of a matrix that is given by rows of `width` elements.
pub(super) fn to_columns(rows: &[f64], width: usize) -> Result<Vec<Vec<f64>>> {
    let column = |k: usize| {
        let mut column = try_with_capacity(rows.len() / width, ELEMENTS)?;
        column.extend(rows.iter().skip(k).step_by(width));
        Ok(column)
    };
    (0..width).map(column).collect()
}

/// Returns the rows of a matrix that is given by its columns.
pub(super) fn to_rows(columns: &[Vec<f64>]) -> Result<Vec<f64>> {
    let (count, width) = (columns.first().map_or(0, Vec::len), columns.len());
    let mut rows: Vec<f64> = try_zeroed(count * width, ELEMENTS)?;
    for (k, column) in columns.iter().enumerate() {
        let elements = rows.iter_mut().skip(k).step_by(width);
        elements.zip(column).for_each(|(to, &x)| *to = x);
    }
    Ok(rows)
}

/// Returns the first `count` rows of a factor without padding.
pub(super) fn factor_rows(
    factor: &FactorMatrix,
    count: usize,
    workers: Workers<'_>,
) -> Result<Vec<f64>> {
    let rank = factor.rank();
    let mut rows: Vec<f64> = try_zeroed(count * rank, ELEMENTS)?;
    workers.for_row_groups(
        &mut rows,
        rank,
        ROWS_PER_TASK,
        |first, rows, (): &mut ()| {
            for (i, to) in rows.chunks_exact_mut(rank).enumerate() {
                let row = factor.row(first + i).iter();
                to.iter_mut()
                    .zip(row)
                    .for_each(|(to, &x)| *to = f64::from(x));
            }
        },
    )?;
    Ok(rows)
}

/// Rounds to the precision of a model, so that results that depend on a factor are those of the stored one.
pub(super) fn round_to_f32(rows: &mut [f64], width: usize, workers: Workers<'_>) -> Result<()> {
    workers.for_row_groups(rows, width, ROWS_PER_TASK, |_, rows, (): &mut ()| {
        rows.iter_mut().for_each(|x| *x = f64::from(*x as f32));
    })
}

/// Writes rows into a factor.
pub(super) fn store_rows(
    rows: &[f64],
    factor: &mut FactorMatrix,
    workers: Workers<'_>,
) -> Result<()> {
    let (rank, stride) = (factor.rank(), factor.stride());
    let to = &mut factor.as_mut_slice()?[..rows.len() / rank * stride];
    workers.for_row_groups(to, stride, ROWS_PER_TASK, |first, to, (): &mut ()| {
        let rows = rows[first * rank..].chunks_exact(rank);
        for (to, row) in to.chunks_exact_mut(stride).zip(rows) {
            to.iter_mut().zip(row).for_each(|(to, &x)| *to = x as f32);
        }
    })
}

/// Returns B^T Z, one row of `width` elements for each column of B. B has `width` columns per block.
pub(super) fn cross_products(
    blocks: &[Vec<f64>],
    z: &[f64],
    width: usize,
    workers: Workers<'_>,
) -> Result<Vec<f64>> {
    let of_block = width * width.div_ceil(DENSE_LANES);
    let tasks: Vec<&[f64]> = z.chunks(ROWS_PER_TASK * width).collect();
    let run_task = |padded: &mut Vec<Array>, t: usize| {
        pad_rows(tasks[t], width, padded);
        let mut sums: Vec<Array> = try_zeroed(blocks.len() * of_block, ELEMENTS)?;
        for (block, sums) in blocks.iter().zip(sums.chunks_exact_mut(of_block)) {
            let rows = &block[t * ROWS_PER_TASK * width..][..tasks[t].len()];
            add_cross_products(workers.level, rows, [width, width], padded, Part::All, sums);
        }
        Ok(sums)
    };
    let sums = workers
        .pool
        .try_map(tasks.len(), || Ok(Vec::new()), run_task)?;
    let mut sums = sums.into_iter();
    let mut products = vec![0.0; blocks.len() * width * width];
    if let Some(mut total) = sums.next() {
        for part in sums {
            let pairs = total.as_flattened_mut().iter_mut();
            pairs.zip(part.as_flattened()).for_each(|(to, x)| *to += x);
        }
        copy_without_padding(&total, width, &mut products);
    }
    Ok(products)
}

/// Adds `scale` B C to `to`. B has `width` columns per block, and C a row of `width` elements for each of them.
pub(super) fn add_products(
    blocks: &[Vec<f64>],
    coefficients: &[f64],
    scale: f64,
    width: usize,
    to: &mut [f64],
    workers: Workers<'_>,
) -> Result<()> {
    let of_block = width * width.div_ceil(DENSE_LANES);
    let scaled: Vec<f64> = coefficients.iter().map(|c| scale * c).collect();
    let mut matrix = Vec::new();
    pad_rows(&scaled, width, &mut matrix);
    workers.for_row_groups(
        to,
        width,
        ROWS_PER_TASK,
        |first, to, padded: &mut Vec<Array>| {
            pad_rows(to, width, padded);
            for (block, matrix) in blocks.iter().zip(matrix.chunks_exact(of_block)) {
                let rows = &block[first * width..][..to.len()];
                add_row_products(workers.level, rows, width, matrix, padded);
            }
            copy_without_padding(padded, width, to);
        },
    )
}

/// Makes the columns of a matrix of rows of `width` elements orthonormal, without changing the space that the first of them
/// span. Columns that depend linearly on those before are replaced by random ones. `seed` identifies their streams.
pub(super) fn orthonormalize_columns(
    rows: &mut Vec<f64>,
    width: usize,
    seed: u64,
    workers: Workers<'_>,
) -> Result<()> {
    if !orthonormalize_independent_columns(rows, width, workers)? {
        let mut columns = to_columns(rows, width)?;
        qr(&mut columns, seed, workers.pool.monitor())?;
        *rows = to_rows(&columns)?;
    }
    Ok(())
}

/// Makes columns orthonormal as [`orthonormalize_columns`] does, if they are linearly independent, and returns whether they
/// are. Otherwise the columns span the same space as before.
///
/// Repeated Cholesky QR: the first factorization leaves errors of the squared condition number, which the second removes
/// (Yamamoto, Nakatsukasa, Yanagisawa and Fukaya, "Roundoff error analysis of the CholeskyQR2 algorithm", 2015).
pub(super) fn orthonormalize_independent_columns(
    rows: &mut Vec<f64>,
    width: usize,
    workers: Workers<'_>,
) -> Result<bool> {
    loop {
        let gram = cross_products(slice::from_ref(rows), rows, width, workers)?;
        let lengths: Vec<f64> = (0..width).map(|j| gram[j * width + j].sqrt()).collect();
        if !lengths.iter().all(|l| *l > 0.0 && l.is_finite()) {
            return Ok(false);
        }
        let normalized: Vec<f64> = (0..width * width)
            .map(|k| gram[k] / (lengths[k / width] * lengths[k % width]))
            .collect();
        let Some(lower) = cholesky(width, &normalized) else {
            return Ok(false);
        };
        let pivot = (0..width).map(|j| lower[j * width + j]);
        let pivot = pivot.fold(f64::INFINITY, f64::min);
        if pivot < MIN_INDEPENDENT_PIVOT {
            return Ok(false);
        }
        divide_by_triangle(rows, width, &lower, &lengths, workers)?;
        if pivot >= MIN_PIVOT {
            return Ok(true);
        }
    }
}

/// Replaces Z by Z D^-1 L^-T, where D has the lengths of the columns.
fn divide_by_triangle(
    rows: &mut [f64],
    width: usize,
    lower: &[f64],
    lengths: &[f64],
    workers: Workers<'_>,
) -> Result<()> {
    workers.for_row_groups(rows, width, ROWS_PER_TASK, |_, rows, (): &mut ()| {
        for row in rows.chunks_exact_mut(width) {
            for j in 0..width {
                let known = row[..j].iter().zip(&lower[j * width..]);
                let sum: f64 = known.map(|(x, l)| x * l).sum();
                row[j] = (row[j] / lengths[j] - sum) / lower[j * width + j];
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use s3cmtf_kernel::parallel::ThreadPool;
    use s3cmtf_kernel::random::RandomStream;
    use s3cmtf_kernel::simd::Level;

    #[test]
    fn nearly_dependent_columns_become_orthonormal() {
        let (count, width) = (3000, 5);
        let mut s = RandomStream::new(&[7]);
        let base: Vec<f64> = (0..count).map(|_| s.standard_normal()).collect();
        let workers = Workers {
            pool: &ThreadPool::new(2, false, 0),
            level: Level::best(),
        };
        for (noise, is_independent) in [(1.0, true), (1e-4, true), (0.0, false)] {
            let row = |x: &f64| {
                let other: Vec<f64> = (1..width)
                    .map(|_| x + noise * s.standard_normal())
                    .collect();
                [vec![*x], other].concat()
            };
            let mut rows: Vec<f64> = base.iter().flat_map(row).collect();
            let first = rows.clone();
            let found = orthonormalize_independent_columns(&mut rows, width, workers).unwrap();
            assert_eq!(found, is_independent, "{noise}");
            orthonormalize_columns(&mut rows, width, 3, workers).unwrap();
            let gram = cross_products(slice::from_ref(&rows), &rows, width, workers).unwrap();
            for (k, x) in gram.iter().enumerate() {
                let expected = f64::from(u8::from(k / width == k % width));
                assert!((x - expected).abs() < 1e-13, "{noise}: {x}");
            }
            // The first column keeps its direction.
            let direction = first[width] / first[0];
            assert!((rows[width] / rows[0] - direction).abs() < 1e-9 * direction.abs());
        }
    }
}
