//! Orthonormal columns by modified Gram-Schmidt, each column orthogonalized twice.
//!
//! The second pass removes the components that rounding leaves behind in the first (Giraud, Langou and
//! Rozložník, "The loss of orthogonality in the Gram-Schmidt orthogonalization process", 2005).

use super::vector::{add_scaled, dot, norm, scale_to_norm};
use crate::error::Result;
use crate::progress::{Monitor, StepPolls};
use crate::random::RandomStream;

/// A column whose norm falls below this fraction of its original norm is linearly dependent on those before.
const DEPENDENT_COLUMN: f64 = 1e-12;

/// A random column whose orthogonal part is shorter than this is replaced by another.
const MIN_RANDOM_NORM: f64 = 1e-6;

/// Subtracts from `column` its components along `basis`, one after the other, and adds the components to
/// `coefficients`.
fn subtract_components(
    column: &mut [f64],
    basis: &[Vec<f64>],
    coefficients: &mut [f64],
    monitor: &dyn Monitor,
) -> Result<()> {
    let mut polls = StepPolls::new(monitor, 2 * column.len());
    for (total, direction) in coefficients.iter_mut().zip(basis) {
        polls.step()?;
        let component = dot(column, direction);
        *total += component;
        add_scaled(column, -component, direction);
    }
    Ok(())
}

/// Makes columns orthonormal in place. A column that is exactly dependent on those before becomes zero.
pub fn orthonormalize(columns: &mut [Vec<f64>], monitor: &dyn Monitor) -> Result<()> {
    let mut unused = vec![0.0; columns.len()];
    for k in 0..columns.len() {
        let (basis, rest) = columns.split_at_mut(k);
        for _ in 0..2 {
            subtract_components(&mut rest[0], basis, &mut unused, monitor)?;
            scale_to_norm(&mut rest[0], 1.0);
        }
    }
    Ok(())
}

/// Replaces the columns of A by those of Q and returns R, row-major, with A = Q R.
///
/// A column that depends linearly on those before is replaced by a random orthonormal one, with a zero on
/// R's diagonal. `seed` identifies the random streams.
pub fn qr(columns: &mut [Vec<f64>], seed: u64, monitor: &dyn Monitor) -> Result<Vec<f64>> {
    let rank = columns.len();
    let mut r = vec![0.0; rank * rank];
    let mut coefficients = vec![0.0; rank];
    for j in 0..rank {
        coefficients.fill(0.0);
        r[j * rank + j] = orthonormalize_column(columns, j, seed, &mut coefficients, monitor)?;
        for (k, component) in coefficients[..j].iter().enumerate() {
            r[k * rank + j] = *component;
        }
    }
    Ok(r)
}

/// Makes the columns from number `first` on orthonormal to those before, which are orthonormal, and to each other, as [`qr`]
/// does.
pub fn extend_orthonormal(
    columns: &mut [Vec<f64>],
    first: usize,
    seed: u64,
    monitor: &dyn Monitor,
) -> Result<()> {
    let mut unused = vec![0.0; columns.len()];
    for j in first..columns.len() {
        orthonormalize_column(columns, j, seed, &mut unused, monitor)?;
    }
    Ok(())
}

/// Makes column `j` orthonormal to those before and adds its components along them to `coefficients`. Returns the length
/// that remained; 0 if the column was replaced by a random one.
fn orthonormalize_column(
    columns: &mut [Vec<f64>],
    j: usize,
    seed: u64,
    coefficients: &mut [f64],
    monitor: &dyn Monitor,
) -> Result<f64> {
    let (basis, rest) = columns.split_at_mut(j);
    let column = &mut rest[0];
    let original_norm = norm(column);
    subtract_components(column, basis, coefficients, monitor)?;
    subtract_components(column, basis, coefficients, monitor)?;
    let mut length = norm(column);
    let is_dependent = length <= DEPENDENT_COLUMN * original_norm || length == 0.0;
    if is_dependent {
        let mut s = RandomStream::new(&[seed, j as u64]);
        let mut unused = vec![0.0; j];
        length = 0.0;
        while length <= MIN_RANDOM_NORM {
            column.iter_mut().for_each(|x| *x = s.standard_normal());
            subtract_components(column, basis, &mut unused, monitor)?;
            subtract_components(column, basis, &mut unused, monitor)?;
            length = norm(column);
        }
    }
    column.iter_mut().for_each(|x| *x /= length);
    Ok(if is_dependent { 0.0 } else { length })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random_columns(count: usize, rows: usize) -> Vec<Vec<f64>> {
        let mut s = RandomStream::new(&[11]);
        let column = |s: &mut RandomStream| (0..rows).map(|_| s.standard_normal()).collect();
        (0..count).map(|_| column(&mut s)).collect()
    }

    fn assert_orthonormal(columns: &[Vec<f64>]) {
        for (i, a) in columns.iter().enumerate() {
            for (j, b) in columns.iter().enumerate() {
                assert!((dot(a, b) - f64::from(u8::from(i == j))).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn orthonormalize_makes_columns_orthonormal() {
        let mut columns = random_columns(5, 20);
        orthonormalize(&mut columns, &()).unwrap();
        assert_orthonormal(&columns);
    }

    #[test]
    fn q_times_r_is_the_matrix_also_with_dependent_columns() {
        let mut a = random_columns(4, 9);
        a[2] = a[0].iter().zip(&a[1]).map(|(x, y)| x - 2.0 * y).collect();
        let mut q = a.clone();
        let r = qr(&mut q, 3, &()).unwrap();
        assert_orthonormal(&q);
        for j in 0..4 {
            for i in 0..9 {
                let x: f64 = (0..4).map(|k| q[k][i] * r[k * 4 + j]).sum();
                assert!((x - a[j][i]).abs() < 1e-12);
            }
        }
        assert_eq!(r[2 * 4 + 2], 0.0);
    }
}
