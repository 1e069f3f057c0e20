//! Solutions of a row's normal equations where the SIMD Cholesky factorization does not apply: in `f64` for nearly
//! singular equations, and over non-negative rows.

use crate::kernel::Noise;
use crate::linalg::{CoordinateDescent, regularized_cholesky, solve_lower, solve_lower_transposed};
use crate::simd::padded_len;

/// Solves A x = b in place in `f64`, with the diagonal of A increased until it is positive definite. Noise makes a
/// sample of the solution. Reads the upper triangle of `a`, rows padded; elements that are not finite count as 0.
pub(super) fn solve_regularized(size: usize, a: &[f32], b: &mut [f32], noise: Noise<'_>) {
    let width = padded_len(size);
    let mut lower = vec![0.0; size * size];
    for i in 0..size {
        for j in i..size {
            lower[j * size + i] = f64::from(a[i * width + j]);
        }
    }
    let l = regularized_cholesky(size, &lower);
    let finite = |x: f64| if (x as f32).is_finite() { x } else { 0.0 };
    let mut y: Vec<f64> = b[..size].iter().map(|&b| finite(f64::from(b))).collect();
    solve_lower(size, &l, &mut y);
    let finish = |mut y: Vec<f64>, to: &mut [f32]| {
        solve_lower_transposed(size, &l, &mut y);
        to.iter_mut()
            .zip(y)
            .for_each(|(t, y)| *t = finite(y) as f32);
    };
    let with_noise = |z: &[f32]| y.iter().zip(z).map(|(y, &z)| y + f64::from(z)).collect();
    match noise {
        Noise::None => {}
        Noise::Sample(z) => return finish(with_noise(z), b),
        Noise::MeanAndSample(z) => finish(with_noise(z), z),
    }
    finish(y, b);
}

/// Minimizes 1/2 x^T A x - b^T x over x >= 0 by coordinate descent from `start`; the result replaces `b`. Reads the
/// upper triangle of `a`, rows padded.
pub(super) fn solve_nonneg(size: usize, a: &[f32], b: &mut [f32], start: &[f32], passes: usize) {
    let width = padded_len(size);
    let element = |i: usize, j: usize| f64::from(a[i.min(j) * width + i.max(j)]);
    let symmetric: Vec<f64> = (0..size * size)
        .map(|k| element(k / size, k % size))
        .collect();
    let rhs: Vec<f64> = b[..size].iter().map(|&b| f64::from(b)).collect();
    let mut x: Vec<f64> = start.iter().map(|&x| f64::from(x)).collect();
    let problem = CoordinateDescent {
        nonneg: true,
        l1: 0.0,
        prior: &[],
        passes,
    };
    problem.minimize(&symmetric, &rhs, &mut x);
    b.iter_mut().zip(x).for_each(|(b, x)| *b = x as f32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn singular_equations_have_a_finite_solution() {
        let width = padded_len(3);
        let (mut x, mut z) = ([0.0; 3], [1.0; 3]);
        let zero = vec![0.0; 3 * width];
        solve_regularized(3, &zero, &mut x, Noise::MeanAndSample(&mut z));
        assert!(x == [0.0; 3] && z.iter().all(|z| z.is_finite()));
        x = [1.0; 3];
        solve_regularized(3, &vec![1.0; 3 * width], &mut x, Noise::None);
        assert!((x.iter().sum::<f32>() - 1.0).abs() < 1e-3, "{x:?}");
    }
}
