//! The leading eigenvectors of a symmetric positive semidefinite matrix that is known through products only.
//!
//! Block Krylov iteration with Rayleigh-Ritz restarts: from an orthonormal block X, orthonormal bases of [X, B X, B^2 X] are
//! built, and X becomes the leading Ritz vectors in that space. The sum of the Ritz values never decreases (up to rounding).

use super::gram_schmidt::extend_orthonormal;
use super::symmetric_eigen::symmetric_eigen;
use super::vector::{add_scaled, dot, norm};
use crate::error::Result;
use crate::progress::{Monitor, StepPolls};

/// Number of products with the matrix per restart.
const PRODUCTS: usize = 2;

/// Most restarts. The Ritz vectors at that point are still better than those of the start.
const MAX_RESTARTS: usize = 100;

/// Length of a residual B x - t x, relative to the Ritz value t, at which x is accepted.
const TOLERANCE: f64 = 1e-9;

/// The same, relative to the largest Ritz value: what rounding leaves.
const ROUNDING: f64 = 1e-14;

/// A matrix of at most this many times the number of vectors, or of this size, is formed and diagonalized.
const SMALL_RATIO: usize = PRODUCTS + 2;
const SMALL_SIZE: usize = 24;

/// Leading eigenvalues, largest first, and their orthonormal eigenvectors.
pub(crate) struct LeadingEigenvectors {
    pub values: Vec<f64>,
    pub vectors: Vec<Vec<f64>>,
}

/// Returns the `count` leading eigenvectors of a matrix of size `size`, or all if there are fewer. `start` returns the vectors
/// to start from, `product` multiplies vectors by the matrix. `seed` identifies the random streams that replace linearly
/// dependent vectors.
pub(crate) fn leading_eigenvectors(
    size: usize,
    count: usize,
    start: impl FnOnce() -> Result<Vec<Vec<f64>>>,
    product: impl Fn(&[Vec<f64>]) -> Result<Vec<Vec<f64>>>,
    seed: u64,
    monitor: &dyn Monitor,
) -> Result<LeadingEigenvectors> {
    if size <= (SMALL_RATIO * count).max(SMALL_SIZE) {
        let unit = |i: usize| (0..size).map(|k| f64::from(u8::from(i == k))).collect();
        let matrix = product(&(0..size).map(unit).collect::<Vec<_>>())?.concat();
        let eigen = symmetric_eigen(size, &matrix, monitor)?;
        let vectors = eigen.vectors.chunks_exact(size.max(1));
        return Ok(LeadingEigenvectors {
            values: eigen.values[..count.min(size)].to_vec(),
            vectors: vectors.take(count).map(<[f64]>::to_vec).collect(),
        });
    }
    let mut basis = start()?;
    extend_orthonormal(&mut basis, 0, seed, monitor)?;
    let mut images = product(&basis)?;
    for restart in 0.. {
        let values = rotate_to_ritz_vectors(count, &mut basis, &mut images, monitor)?;
        let limit = |value: f64| TOLERANCE * value + ROUNDING * values[0];
        let is_accepted = (0..count).all(|k| {
            let mut residual = images[k].clone();
            add_scaled(&mut residual, -values[k], &basis[k]);
            norm(&residual) <= limit(values[k])
        });
        if is_accepted || restart == MAX_RESTARTS {
            return Ok(LeadingEigenvectors {
                values,
                vectors: basis,
            });
        }
        for _ in 0..PRODUCTS {
            let first = basis.len();
            basis.extend_from_slice(&images[first - count..]);
            extend_orthonormal(&mut basis, first, seed, monitor)?;
            images.extend(product(&basis[first..])?);
        }
    }
    unreachable!("the loop returns after the last restart")
}

/// Replaces an orthonormal basis and its products with the matrix by the `count` leading Ritz vectors and theirs. Returns the
/// Ritz values.
fn rotate_to_ritz_vectors(
    count: usize,
    basis: &mut Vec<Vec<f64>>,
    images: &mut Vec<Vec<f64>>,
    monitor: &dyn Monitor,
) -> Result<Vec<f64>> {
    let size = basis.len();
    let mut polls = StepPolls::new(monitor, 2 * size * basis[0].len());
    let mut projected = vec![0.0; size * size];
    for i in 0..size {
        polls.step()?;
        for j in i..size {
            // Both are equal but for rounding.
            let x = 0.5 * (dot(&basis[i], &images[j]) + dot(&basis[j], &images[i]));
            (projected[i * size + j], projected[j * size + i]) = (x, x);
        }
    }
    let eigen = symmetric_eigen(size, &projected, monitor)?;
    for columns in [basis, images] {
        let mut rotated = Vec::with_capacity(count);
        for coefficients in eigen.vectors.chunks_exact(size).take(count) {
            polls.step()?;
            let mut sum = vec![0.0; columns[0].len()];
            for (&c, column) in coefficients.iter().zip(&*columns) {
                add_scaled(&mut sum, c, column);
            }
            rotated.push(sum);
        }
        *columns = rotated;
    }
    Ok(eigen.values[..count].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    fn random_columns(count: usize, rows: usize, seed: u64) -> Vec<Vec<f64>> {
        let mut s = RandomStream::new(&[seed]);
        let column = |s: &mut RandomStream| (0..rows).map(|_| s.standard_normal()).collect();
        (0..count).map(|_| column(&mut s)).collect()
    }

    #[test]
    fn leading_eigenvectors_are_those_of_the_whole_matrix() {
        for (size, terms, count) in [
            (60, 60, 3),
            (90, 5, 7),
            (30, 30, 30),
            (5, 5, 9),
            (80, 80, 1),
        ] {
            let factors = random_columns(terms, size, 1);
            let product = |x: &[Vec<f64>]| -> Result<Vec<Vec<f64>>> {
                let image = |x: &Vec<f64>| {
                    let mut sum = vec![0.0; size];
                    for (k, f) in factors.iter().enumerate() {
                        add_scaled(&mut sum, dot(f, x) * 0.9f64.powi(k as i32), f);
                    }
                    sum
                };
                Ok(x.iter().map(image).collect())
            };
            let unit = |i: usize| (0..size).map(|k| f64::from(u8::from(i == k))).collect();
            let matrix = product(&(0..size).map(unit).collect::<Vec<_>>()).unwrap();
            let expected = symmetric_eigen(size, &matrix.concat(), &()).unwrap();
            let start = || Ok(random_columns(count, size, 2));
            let found = leading_eigenvectors(size, count, start, product, 3, &()).unwrap();
            assert_eq!(found.values.len(), count.min(size));
            let images = product(&found.vectors).unwrap();
            for (k, x) in found.vectors.iter().enumerate() {
                let scale = expected.values[0];
                assert!((found.values[k] - expected.values[k]).abs() < 1e-12 * scale);
                let mut residual = images[k].clone();
                add_scaled(&mut residual, -found.values[k], x);
                assert!(
                    norm(&residual) < 1e-8 * scale,
                    "{size}: {}",
                    norm(&residual)
                );
                for (l, y) in found.vectors.iter().enumerate() {
                    assert!((dot(x, y) - f64::from(u8::from(k == l))).abs() < 1e-12);
                }
            }
        }
    }
}
