//! Eigenvalues and eigenvectors of symmetric matrices by cyclic Jacobi rotations.

use crate::error::Result;
use crate::progress::{Monitor, StepPolls};
use crate::sort::stable_sort_by;

/// Operations of a rotation per element of a row. A column is strided, so that each of its elements counts for several.
const OPERATIONS_PER_ELEMENT: usize = 32;

/// Eigenvalues and orthonormal eigenvectors of a symmetric matrix.
#[derive(Debug, Clone)]
pub struct Eigen {
    /// The eigenvalues, largest first.
    pub values: Vec<f64>,
    /// The eigenvector of each eigenvalue, one after the other.
    pub vectors: Vec<f64>,
}

/// When [`jacobi`] stops.
#[derive(Debug, Clone, Copy)]
pub struct JacobiTolerance {
    /// Converged when the sum of squares of the off-diagonal elements is at most this fraction of the sum of
    /// squares of the matrix.
    pub off_diagonal: f64,
    /// An element whose square is below this fraction of the sum of squares is not rotated away.
    pub negligible: f64,
    /// Maximum number of sweeps over all pairs of rows.
    pub sweeps: usize,
}

impl JacobiTolerance {
    /// Full `f64` precision. No matrix needs that many sweeps.
    const EXACT: JacobiTolerance = JacobiTolerance {
        off_diagonal: 1e-28,
        negligible: 0.0,
        sweeps: 60,
    };
}

/// Returns eigenvalues and eigenvectors to full precision, the largest eigenvalue first. Elements that are
/// not finite count as 0.
pub fn symmetric_eigen(size: usize, a: &[f64], monitor: &dyn Monitor) -> Result<Eigen> {
    let finite: Vec<f64> = a
        .iter()
        .map(|x| if x.is_finite() { *x } else { 0.0 })
        .collect();
    let Eigen { values, vectors } = jacobi(size, finite, JacobiTolerance::EXACT, monitor)?;
    let mut order: Vec<usize> = (0..size).collect();
    stable_sort_by(&mut order, &|&i, &j| values[j].total_cmp(&values[i]));
    let sorted = order.iter().flat_map(|&i| &vectors[i * size..][..size]);
    Ok(Eigen {
        vectors: sorted.copied().collect(),
        values: order.iter().map(|&i| values[i]).collect(),
    })
}

/// Returns eigenvalues, in the order of the diagonal, and eigenvectors to the given tolerance. Elements must
/// be finite.
///
/// Each rotation of rows and columns p and q makes the element (p, q) zero: Golub and Van Loan, Matrix
/// Computations, section 8.5.
pub fn jacobi(
    size: usize,
    mut a: Vec<f64>,
    tolerance: JacobiTolerance,
    monitor: &dyn Monitor,
) -> Result<Eigen> {
    let mut vectors = vec![0.0; size * size];
    (0..size).for_each(|i| vectors[i * size + i] = 1.0);
    let total: f64 = a.iter().map(|x| x * x).sum();
    let mut polls = StepPolls::new(monitor, OPERATIONS_PER_ELEMENT * size);
    for _ in 0..tolerance.sweeps {
        let off_diagonal: f64 = (0..size * size)
            .filter(|k| k / size != k % size)
            .map(|k| a[k] * a[k])
            .sum();
        if off_diagonal <= tolerance.off_diagonal * total {
            break;
        }
        for p in 0..size {
            for q in p + 1..size {
                let x = a[p * size + q];
                if x == 0.0 || x * x < tolerance.negligible * total {
                    continue;
                }
                polls.step()?;
                let theta = (a[q * size + q] - a[p * size + p]) / (2.0 * x);
                let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
                let c = 1.0 / (t * t + 1.0).sqrt();
                let s = t * c;
                for k in 0..size {
                    let (x, y) = (a[k * size + p], a[k * size + q]);
                    (a[k * size + p], a[k * size + q]) = (c * x - s * y, s * x + c * y);
                }
                for k in 0..size {
                    let (x, y) = (a[p * size + k], a[q * size + k]);
                    (a[p * size + k], a[q * size + k]) = (c * x - s * y, s * x + c * y);
                    let (x, y) = (vectors[p * size + k], vectors[q * size + k]);
                    (vectors[p * size + k], vectors[q * size + k]) = (c * x - s * y, s * x + c * y);
                }
            }
        }
    }
    Ok(Eigen {
        values: (0..size).map(|i| a[i * size + i]).collect(),
        vectors,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    #[test]
    fn eigenvectors_are_orthonormal_and_reproduce_the_matrix() {
        let a = [4.0, 2.0, 0.6, 2.0, 5.0, 1.5, 0.6, 1.5, 3.8];
        for a in [a.to_vec(), vec![1.0; 9], vec![0.0; 9]] {
            let Eigen { values, vectors } = symmetric_eigen(3, &a, &()).unwrap();
            assert!(values.windows(2).all(|w| w[0] >= w[1]), "{values:?}");
            for i in 0..3 {
                for j in 0..3 {
                    let product = |k: usize| vectors[k * 3 + i] * vectors[k * 3 + j];
                    let element: f64 = (0..3).map(|k| values[k] * product(k)).sum();
                    assert!((element - a[i * 3 + j]).abs() < 1e-12);
                    let product = |k: usize| vectors[i * 3 + k] * vectors[j * 3 + k];
                    let dot: f64 = (0..3).map(product).sum();
                    assert!((dot - f64::from(u8::from(i == j))).abs() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn a_low_tolerance_gives_approximate_eigenvectors() {
        let tolerance = JacobiTolerance {
            off_diagonal: 2e-10,
            negligible: 1e-16,
            sweeps: 12,
        };
        for n in [1, 2, 5, 12] {
            let mut s = RandomStream::new(&[n as u64]);
            let b: Vec<f64> = (0..n * n).map(|_| s.standard_normal()).collect();
            let a: Vec<f64> = (0..n * n)
                .map(|k| (0..n).map(|t| b[k / n * n + t] * b[k % n * n + t]).sum())
                .collect();
            let Eigen { values, vectors } = jacobi(n, a.clone(), tolerance, &()).unwrap();
            for i in 0..n {
                for j in 0..n {
                    let dot: f64 = (0..n)
                        .map(|t| vectors[i * n + t] * vectors[j * n + t])
                        .sum();
                    assert!((dot - f64::from(u8::from(i == j))).abs() < 1e-9);
                    let av: f64 = (0..n).map(|t| a[j * n + t] * vectors[i * n + t]).sum();
                    let scale = values[i].abs() + 1.0;
                    assert!((av - values[i] * vectors[i * n + j]).abs() < 1e-4 * scale);
                }
            }
        }
    }
}
