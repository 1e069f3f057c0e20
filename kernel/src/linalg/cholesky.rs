//! Cholesky factorization A = L L^T of symmetric positive definite matrices.

use super::vector::dot;
use crate::error::Result;
use crate::progress::{Monitor, StepPolls, count_operations};

/// Initial relative increase of the diagonal in [`regularized_cholesky`]; each retry multiplies it by ten.
const INITIAL_REGULARIZATION: f64 = 1e-6;

/// Returns the lower triangular L with L L^T = A, or `None` if A is not positive definite. Reads only the
/// lower triangle of A.
pub fn cholesky(size: usize, a: &[f64]) -> Option<Vec<f64>> {
    let mut l = vec![0.0; size * size];
    cholesky_into(size, a, &mut l).then_some(l)
}

/// Writes the lower triangle of L with L L^T = A to `l` and leaves the rest as it is. Returns false, with any numbers in
/// `l`, if A is not positive definite. Reads only the lower triangle of A.
pub fn cholesky_into(size: usize, a: &[f64], l: &mut [f64]) -> bool {
    count_operations(size * size * size / 6);
    for i in 0..size {
        for j in 0..=i {
            let subtracted = dot(&l[i * size..i * size + j], &l[j * size..j * size + j]);
            let rest = a[i * size + j] - subtracted;
            if i != j {
                l[i * size + j] = rest / l[j * size + j];
            } else if rest > 1e-14 * a[i * size + i] && rest.is_finite() {
                l[i * size + i] = rest.sqrt();
            } else {
                return false;
            }
        }
    }
    true
}

/// Returns the Cholesky factor of a matrix that should be positive definite but is only known to `f32`
/// precision. Increases the diagonal by the smallest power-of-ten fraction that makes it so. Elements that
/// are not finite count as 0.
pub fn regularized_cholesky(size: usize, a: &[f64]) -> Vec<f64> {
    let mut regularized: Vec<f64> = a
        .iter()
        .map(|x| if x.is_finite() { *x } else { 0.0 })
        .collect();
    let largest = (0..size)
        .map(|i| regularized[i * size + i].abs())
        .fold(0.0, f64::max);
    let smallest = if largest > 0.0 { 1e-9 * largest } else { 1.0 };
    let diagonal: Vec<f64> = (0..size)
        .map(|i| regularized[i * size + i].abs().max(smallest))
        .collect();
    let mut increase = INITIAL_REGULARIZATION;
    loop {
        (0..size).for_each(|i| regularized[i * size + i] = diagonal[i] * (1.0 + increase));
        if let Some(l) = cholesky(size, &regularized) {
            return l;
        }
        increase *= 10.0;
    }
}

/// Solves L x = b in place by forward substitution.
pub fn solve_lower(size: usize, l: &[f64], b: &mut [f64]) {
    for i in 0..size {
        let subtracted = dot(&l[i * size..i * size + i], &b[..i]);
        b[i] = (b[i] - subtracted) / l[i * size + i];
    }
}

/// Solves L^T x = b in place by back substitution.
pub fn solve_lower_transposed(size: usize, l: &[f64], b: &mut [f64]) {
    for i in (0..size).rev() {
        let subtracted: f64 = (i + 1..size).map(|k| l[k * size + i] * b[k]).sum();
        b[i] = (b[i] - subtracted) / l[i * size + i];
    }
}

/// Returns the inverse of a symmetric positive definite matrix, regularized if it is singular.
pub fn inverse(size: usize, a: &[f64], monitor: &dyn Monitor) -> Result<Vec<f64>> {
    let l = cholesky(size, a).unwrap_or_else(|| regularized_cholesky(size, a));
    let mut inverse = vec![0.0; size * size];
    let mut polls = StepPolls::new(monitor, 2 * size * size);
    for (i, row) in inverse.chunks_exact_mut(size).enumerate() {
        polls.step()?;
        row[i] = 1.0;
        solve_lower(size, &l, row);
        solve_lower_transposed(size, &l, row);
    }
    Ok(inverse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_solutions_and_inverses_satisfy_their_equations() {
        let a = [4.0, 2.0, 0.6, 2.0, 5.0, 1.5, 0.6, 1.5, 3.8];
        let l = cholesky(3, &a).unwrap();
        for i in 0..3 {
            for j in 0..3 {
                let x: f64 = (0..3).map(|k| l[i * 3 + k] * l[j * 3 + k]).sum();
                assert!((x - a[i * 3 + j]).abs() < 1e-12);
            }
        }
        let inverse = inverse(3, &a, &()).unwrap();
        for i in 0..3 {
            for j in 0..3 {
                let x: f64 = (0..3).map(|k| a[i * 3 + k] * inverse[k * 3 + j]).sum();
                assert!((x - f64::from(u8::from(i == j))).abs() < 1e-12);
            }
        }
        let mut b = [1.0, -2.0, 3.0];
        solve_lower(3, &l, &mut b);
        solve_lower_transposed(3, &l, &mut b);
        for i in 0..3 {
            let x: f64 = (0..3).map(|j| a[i * 3 + j] * b[j]).sum();
            assert!((x - [1.0, -2.0, 3.0][i]).abs() < 1e-12);
        }
    }

    #[test]
    fn singular_matrices_are_regularized() {
        for a in [vec![0.0; 9], vec![1.0; 9], vec![f64::NAN; 9]] {
            assert!(cholesky(3, &a).is_none());
            let l = regularized_cholesky(3, &a);
            assert!(l.iter().all(|x| x.is_finite()));
            assert!((0..3).all(|i| l[i * 3 + i] > 0.0));
        }
    }
}
