//! The leading eigenvectors of a symmetric positive semidefinite matrix, which is small or known through products only.
//!
//! Block Krylov iteration with Rayleigh-Ritz restarts: from an orthonormal block X, orthonormal bases of [X, A X, A^2 X, ...]
//! are built, and X becomes the leading Ritz vectors in that space. The sum of the Ritz values never decreases (up to
//! rounding).

use std::slice;

use super::dense::{
    add_products, cross_products, orthonormalize_columns, orthonormalize_independent_columns,
    to_columns, to_rows,
};
use super::workers::Workers;
use s3cmtf::error::Result;
use s3cmtf_kernel::linalg::{extend_orthonormal, symmetric_eigen};
use s3cmtf_kernel::try_alloc::try_zeroed;

/// Number of products with the matrix per restart, at least and at most. The more there are, the fewer are needed in all.
const MIN_DEGREE: usize = 2;
const MAX_DEGREE: usize = 8;

/// Largest dimension of the space in which Ritz vectors are computed, and most bytes of its basis, unless the smallest degree
/// needs more.
const MAX_DIMENSION: usize = 64;
const MAX_BASIS_BYTES: usize = 1 << 30;

/// Most restarts. The Ritz vectors at that point are still better than those of the start.
const MAX_RESTARTS: usize = 100;

/// Length of a residual, relative to the largest Ritz value, that rounding leaves.
const ROUNDING: f64 = 1e-14;

/// A column is linearly dependent if orthogonalization leaves at most this fraction of its length.
const DEPENDENT_COLUMN: f64 = 1e-10;

/// A matrix of at most this many times the number of vectors, or of this size, is formed and diagonalized.
const SMALL_RATIO: usize = MIN_DEGREE + 2;
const SMALL_SIZE: usize = 24;

/// When vectors are accepted: if either is reached.
#[derive(Debug, Clone, Copy)]
pub(super) struct Accuracy {
    /// Length of each residual A x - t x, relative to its Ritz value t.
    pub residual: f64,
    /// Growth of the sum of the Ritz values in a restart, relative to it.
    pub growth: f64,
}

/// Leading eigenvalues, largest first, and their orthonormal eigenvectors.
pub(super) struct LeadingEigenvectors {
    pub values: Vec<f64>,
    /// One row of as many elements as there are values per row of the matrix.
    pub vectors: Vec<f64>,
}

/// Returns the number of blocks of `count` vectors that are kept at a time.
pub(super) fn block_count(size: usize, count: usize) -> usize {
    // The basis, two blocks of products, and the block that replaces the basis.
    degree(size, count) + 4
}

/// Returns the number of products per restart. The eigenproblem in the space takes a time of its cubed dimension, which should
/// not exceed that of the products.
fn degree(size: usize, count: usize) -> usize {
    let elements = size.saturating_mul(count);
    let dimension = MAX_DIMENSION.min((elements / 8).isqrt());
    let blocks = (dimension / count).min(MAX_BASIS_BYTES / elements.saturating_mul(8).max(1));
    blocks.saturating_sub(1).clamp(MIN_DEGREE, MAX_DEGREE)
}

/// Returns whether a matrix is so small that it is formed and diagonalized.
pub(super) fn is_small(size: usize, count: usize) -> bool {
    size <= (SMALL_RATIO * count).max(SMALL_SIZE)
}

/// Returns the `count` leading eigenvectors of a matrix A of size `size`, which is not small. `start` returns the vectors
/// to start from, `product` multiplies a number of vectors by A; both by rows. `seed` identifies the random streams that
/// replace linearly dependent vectors.
pub(super) fn leading_eigenvectors(
    size: usize,
    count: usize,
    start: impl FnOnce() -> Result<Vec<f64>>,
    product: impl Fn(&[f64], usize) -> Result<Vec<f64>>,
    accuracy: Accuracy,
    seed: u64,
    workers: Workers<'_>,
) -> Result<LeadingEigenvectors> {
    debug_assert!(!is_small(size, count));
    let degree = degree(size, count);
    let dimension = (degree + 1) * count;
    let mut first = start()?;
    orthonormalize_columns(&mut first, count, seed, workers)?;
    let mut basis = vec![first];
    // Ritz values of the first block, from the first restart on.
    let mut values: Vec<f64> = Vec::new();
    for restart in 0.. {
        let mut projected = vec![0.0; dimension * dimension];
        for j in 0..=degree {
            let mut image = product(&basis[j], count)?;
            let coefficients = cross_products(&basis, &image, count, workers)?;
            for (i, row) in coefficients.chunks_exact(count).enumerate() {
                for (k, &x) in row.iter().enumerate() {
                    projected[i * dimension + j * count + k] = x;
                    projected[(j * count + k) * dimension + i] = x;
                }
            }
            if j == degree {
                break;
            }
            add_products(&basis, &coefficients, -1.0, count, &mut image, workers)?;
            let residuals = column_lengths(&image, count, workers)?;
            if j == 0 && restart > 0 {
                let is_small = |(value, residual): (&f64, &f64)| {
                    *residual <= accuracy.residual * value + ROUNDING * values[0]
                };
                if restart == MAX_RESTARTS || values.iter().zip(&residuals).all(is_small) {
                    return Ok(LeadingEigenvectors {
                        values,
                        vectors: basis.swap_remove(0),
                    });
                }
            }
            // A second orthogonalization removes rounding errors.
            let left = cross_products(&basis, &image, count, workers)?;
            add_products(&basis, &left, -1.0, count, &mut image, workers)?;
            let length = |k: usize| {
                let components = coefficients.iter().skip(k).step_by(count);
                let squares: f64 = components.map(|c| c * c).sum();
                (squares + residuals[k] * residuals[k]).sqrt()
            };
            let lengths: Vec<f64> = (0..count).map(length).collect();
            extend_basis(&mut basis, image, &lengths, seed, workers)?;
        }
        let eigen = symmetric_eigen(dimension, &projected, workers.pool.monitor())?;
        let coefficients: Vec<f64> = (0..dimension * count)
            .map(|k| eigen.vectors[k % count * dimension + k / count])
            .collect();
        let mut rotated: Vec<f64> = try_zeroed(size * count, "row elements")?;
        add_products(&basis, &coefficients, 1.0, count, &mut rotated, workers)?;
        basis = vec![rotated];
        let sum_before: f64 = values.iter().sum();
        values = eigen.values[..count].to_vec();
        let sum: f64 = values.iter().sum();
        if restart > 0 && (sum - sum_before).max(0.0) < accuracy.growth * sum {
            return Ok(LeadingEigenvectors {
                values,
                vectors: basis.swap_remove(0),
            });
        }
    }
    unreachable!("the loop returns after the last restart")
}

/// Returns the lengths of the columns of a block.
fn column_lengths(block: &Vec<f64>, count: usize, workers: Workers<'_>) -> Result<Vec<f64>> {
    let squares = cross_products(slice::from_ref(block), block, count, workers)?;
    Ok((0..count).map(|k| squares[k * count + k].sqrt()).collect())
}

/// Adds a block from which its components along a basis were subtracted, with orthonormal columns. `lengths` are those of its
/// columns before.
fn extend_basis(
    basis: &mut Vec<Vec<f64>>,
    mut block: Vec<f64>,
    lengths: &[f64],
    seed: u64,
    workers: Workers<'_>,
) -> Result<()> {
    let count = lengths.len();
    let left = column_lengths(&block, count, workers)?;
    // The residuals of the other columns are rounding errors.
    let is_left: Vec<bool> = (left.iter().zip(lengths))
        .map(|(left, length)| *left > DEPENDENT_COLUMN * length)
        .collect();
    if is_left.contains(&false) || !orthonormalize_independent_columns(&mut block, count, workers)?
    {
        // The space is exhausted: random vectors must be orthogonal to the basis as well.
        let first = basis.len() * count;
        let mut columns: Vec<Vec<f64>> = Vec::new();
        for block in basis.iter().chain([&block]) {
            columns.extend(to_columns(block, count)?);
        }
        for (column, is_left) in columns[first..].iter_mut().zip(is_left) {
            if !is_left {
                column.fill(0.0);
            }
        }
        extend_orthonormal(&mut columns, first, seed, workers.pool.monitor())?;
        block = to_rows(&columns[first..])?;
    }
    basis.push(block);
    Ok(())
}

/// Returns the `count` leading eigenvectors of a small matrix, row-major, or all if there are fewer.
pub(super) fn leading_of_small_matrix(
    matrix: &[f64],
    size: usize,
    count: usize,
    workers: Workers<'_>,
) -> Result<LeadingEigenvectors> {
    let count = count.min(size);
    let eigen = symmetric_eigen(size, matrix, workers.pool.monitor())?;
    let element = |k: usize| eigen.vectors[k % count * size + k / count];
    Ok(LeadingEigenvectors {
        values: eigen.values[..count].to_vec(),
        vectors: (0..size * count).map(element).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use s3cmtf_kernel::linalg::{add_scaled, dot};
    use s3cmtf_kernel::parallel::ThreadPool;
    use s3cmtf_kernel::random::RandomStream;
    use s3cmtf_kernel::simd::Level;

    const EXACT: Accuracy = Accuracy {
        residual: 1e-9,
        growth: 0.0,
    };

    fn random_columns(count: usize, rows: usize, seed: u64) -> Vec<Vec<f64>> {
        let mut s = RandomStream::new(&[seed]);
        let column = |s: &mut RandomStream| (0..rows).map(|_| s.standard_normal()).collect();
        (0..count).map(|_| column(&mut s)).collect()
    }

    #[test]
    fn leading_eigenvectors_are_those_of_the_whole_matrix() {
        let workers = Workers {
            pool: &ThreadPool::new(2, false, 0),
            level: Level::best(),
        };
        for (size, terms, count) in [
            (60, 60, 3),
            (90, 5, 7),
            (30, 30, 30),
            (5, 5, 9),
            (80, 80, 1),
            (2500, 40, 6),
        ] {
            let factors = random_columns(terms, size, 1);
            let image = |x: &Vec<f64>| {
                let mut sum = vec![0.0; size];
                for (k, f) in factors.iter().enumerate() {
                    add_scaled(&mut sum, dot(f, x) * 0.9f64.powi(k as i32), f);
                }
                sum
            };
            let product = |x: &[f64], width: usize| {
                let columns = to_columns(x, width)?;
                to_rows(&columns.iter().map(image).collect::<Vec<_>>())
            };
            let start = || to_rows(&random_columns(count, size, 2));
            let found = match is_small(size, count) {
                true => {
                    let unit = |k: usize| f64::from(u8::from(k / size == k % size));
                    let units: Vec<f64> = (0..size * size).map(unit).collect();
                    let matrix = product(&units, size).unwrap();
                    leading_of_small_matrix(&matrix, size, count, workers)
                }
                false => leading_eigenvectors(size, count, start, product, EXACT, 3, workers),
            };
            let found = found.unwrap();
            let width = count.min(size);
            assert_eq!(found.values.len(), width);
            // Those of the terms have the same eigenvalues.
            let scaled = |k: usize| 0.9f64.powi(k as i32).sqrt();
            let small: Vec<f64> = (0..terms * terms)
                .map(|k| (k / terms, k % terms))
                .map(|(i, j)| scaled(i) * scaled(j) * dot(&factors[i], &factors[j]))
                .collect();
            let expected = symmetric_eigen(terms, &small, &()).unwrap().values;
            let scale = expected[0];
            let vectors = to_columns(&found.vectors, width).unwrap();
            for (k, x) in vectors.iter().enumerate() {
                let value = expected.get(k).copied().unwrap_or(0.0);
                let error = (found.values[k] - value).abs();
                assert!(error < 1e-12 * scale, "{size}: {k}: {error} of {scale}");
                let mut residual = image(x);
                add_scaled(&mut residual, -found.values[k], x);
                let length = dot(&residual, &residual).sqrt();
                assert!(length < 1e-8 * scale, "{size}: {length}");
                for (l, y) in vectors.iter().enumerate() {
                    assert!((dot(x, y) - f64::from(u8::from(k == l))).abs() < 1e-12);
                }
            }
        }
    }
}
