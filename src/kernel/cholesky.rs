//! Cholesky solution of small symmetric positive definite systems in `f32` with SIMD.
//!
//! A = R^T R with R upper triangular, computed in panels of rows so that all loops run along rows. With standard
//! normal z, x = A^-1 b + R^-1 z is a sample of the normal distribution with precision A and mean A^-1 b.
#![allow(unsafe_code)]

use crate::simd::Level;
use crate::simd::{F32x16, dispatched};
use crate::simd::{LANES, padded_len};

/// Standard normal noise z that turns a solution into a posterior sample.
pub(crate) enum Noise<'a> {
    /// No sample: the solution is the mean A^-1 b.
    None,
    /// The solution becomes the sample A^-1 b + R^-1 z.
    Sample(&'a [f32]),
    /// The solution is the mean; z becomes the sample.
    MeanAndSample(&'a mut [f32]),
}

/// Solves A x = b in place by Cholesky factorization.
///
/// Only the upper triangle of A is read; its rows are padded like factor rows, and R overwrites it. Returns
/// false if A is not positive definite to `f32` precision or the solution is not finite; `a`, `b` and
/// the noise then hold no meaningful values.
///
/// # Panics
/// If a length is not that of the padded `size`, or the machine does not have the level.
pub(crate) fn cholesky_solve(
    level: Level,
    size: usize,
    a: &mut [f32],
    b: &mut [f32],
    noise: Noise<'_>,
) -> bool {
    let width = padded_len(size);
    assert!(level.is_available());
    assert_eq!((a.len(), b.len()), (size * width, width));
    assert!(match &noise {
        Noise::None => true,
        Noise::Sample(z) => z.len() == width,
        Noise::MeanAndSample(z) => z.len() == width,
    });
    // SAFETY: the lengths were checked, the level is available.
    unsafe { solve(level, size, a.as_mut_ptr(), b, noise) }
}

dispatched! {
    unsafe fn solve(size: usize, a: *mut f32, b: &mut [f32], noise: Noise<'_>) -> bool = any_solve;
}

#[inline(always)]
unsafe fn any_solve<V: F32x16>(size: usize, a: *mut f32, b: &mut [f32], noise: Noise<'_>) -> bool {
    // SAFETY: the caller's obligations.
    unsafe {
        if !factorize::<V>(size, a) {
            return false;
        }
        solve_transposed::<V>(size, a, b);
        let sample_is_finite = match noise {
            Noise::None => true,
            Noise::Sample(noise) => {
                b.iter_mut().zip(noise).for_each(|(y, z)| *y += z);
                true
            }
            Noise::MeanAndSample(noise) => {
                noise.iter_mut().zip(&*b).for_each(|(z, y)| *z += y);
                solve_upper::<V>(size, a, noise)
            }
        };
        sample_is_finite && solve_upper::<V>(size, a, b)
    }
}

/// Smallest accepted ratio of a pivot to the diagonal element of A that it came from; below, the pivot is
/// rounding error.
const MIN_PIVOT_RATIO: f32 = 1e-5;

/// Replaces the upper triangle of A by R, with the reciprocals of R's diagonal on the diagonal. Returns
/// false if A is not positive definite.
#[inline(always)]
unsafe fn factorize<V: F32x16>(size: usize, a: *mut f32) -> bool {
    let mut first = 0;
    while first < size {
        // SAFETY: the caller's obligations. Panels of 8 come first, then those of 4, so the rows of a panel have the same
        // first vector.
        let (rows, is_positive) = unsafe {
            if V::VECTOR_REGISTERS >= 32 && first + 8 <= size {
                (8, factorize_panel::<V, 8>(size, a, first))
            } else if first + 4 <= size {
                (4, factorize_panel::<V, 4>(size, a, first))
            } else {
                (1, factorize_panel::<V, 1>(size, a, first))
            }
        };
        if !is_positive {
            return false;
        }
        first += rows;
    }
    true
}

/// Computes `N` rows of R from all rows before them. The sums over these rows stay in registers.
#[inline(always)]
unsafe fn factorize_panel<V: F32x16, const N: usize>(
    size: usize,
    a: *mut f32,
    first: usize,
) -> bool {
    let width = padded_len(size);
    // SAFETY: the caller's obligations; the panel ends within the matrix.
    unsafe {
        let panel = a.add(first * width);
        let mut min_pivots = [0.0f32; N];
        for (i, min) in min_pivots.iter_mut().enumerate() {
            *min = MIN_PIVOT_RATIO * *panel.add(i * width + first + i);
        }
        for at in (first / LANES * LANES..width).step_by(LANES) {
            let mut sums = [V::zero(); N];
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum = V::load(panel.add(i * width + at));
            }
            for m in 0..first {
                let row = a.add(m * width);
                let x = V::load(row.add(at));
                for (i, sum) in sums.iter_mut().enumerate() {
                    *sum = V::splat(-*row.add(first + i)).mul_add(x, *sum);
                }
            }
            for (i, sum) in sums.iter().enumerate() {
                sum.store(panel.add(i * width + at));
            }
        }
        for (k, &min_pivot) in min_pivots.iter().enumerate() {
            let row = panel.add(k * width);
            let diagonal = row.add(first + k);
            let pivot = *diagonal;
            if pivot.is_nan() || pivot <= min_pivot || pivot.is_infinite() {
                return false;
            }
            let inverse = 1.0 / pivot.sqrt();
            let scale = V::splat(inverse);
            for at in (first / LANES * LANES..width).step_by(LANES) {
                (V::load(row.add(at)) * scale).store(row.add(at));
            }
            // The triangular solves need only the reciprocal of the diagonal.
            *diagonal = inverse;
            for i in k + 1..N {
                let by = V::splat(-*row.add(first + i));
                let target = panel.add(i * width);
                for at in (first / LANES * LANES..width).step_by(LANES) {
                    by.mul_add(V::load(row.add(at)), V::load(target.add(at)))
                        .store(target.add(at));
                }
            }
        }
    }
    true
}

/// Solves R^T y = b in place.
///
/// The vector of R that holds the diagonal has arbitrary values left of it. They spoil elements of b before
/// k, which are no longer needed, so y is kept in a buffer until its vector is complete.
#[inline(always)]
unsafe fn solve_transposed<V: F32x16>(size: usize, r: *const f32, b: &mut [f32]) {
    let width = padded_len(size);
    let b = b.as_mut_ptr();
    // SAFETY: the caller's obligations.
    unsafe {
        for first in (0..size).step_by(LANES) {
            let mut y = [0.0f32; LANES];
            for k in first..size.min(first + LANES) {
                let row = r.add(k * width);
                let x = *b.add(k) * *row.add(k);
                y[k - first] = x;
                let by = V::splat(-x);
                for at in (first..width).step_by(LANES) {
                    by.mul_add(V::load(row.add(at)), V::load(b.add(at)))
                        .store(b.add(at));
                }
            }
            V::load(y.as_ptr()).store(b.add(first));
        }
    }
}

/// Solves R x = y in place and returns whether x is finite.
///
/// Works on sixteen elements at a time from the end: subtracts the contribution of later elements, then
/// substitutes within a transposed sixteen by sixteen block, whose columns are vectors.
#[inline(always)]
unsafe fn solve_upper<V: F32x16>(size: usize, r: *const f32, y: &mut [f32]) -> bool {
    let width = padded_len(size);
    let y = y.as_mut_ptr();
    // SAFETY: the caller's obligations.
    unsafe {
        for first in (0..size).step_by(LANES).rev() {
            let count = LANES.min(size - first);
            let mut later = [0.0f32; LANES];
            let mut block = [V::zero(); LANES];
            for i in 0..count {
                let row = r.add((first + i) * width);
                block[i] = V::load(row.add(first));
                let mut sum = V::zero();
                for at in (first + LANES..width).step_by(LANES) {
                    sum = V::load(row.add(at)).mul_add(V::load(y.add(at)), sum);
                }
                later[i] = sum.sum();
            }
            let columns = V::transpose(block);
            let mut rest = V::load(y.add(first)) - V::load(later.as_ptr());
            let mut now = [0.0f32; LANES];
            let mut solution = [0.0f32; LANES];
            for k in (0..count).rev() {
                rest.store(now.as_mut_ptr());
                let x = now[k] * *r.add((first + k) * width + first + k);
                solution[k] = x;
                rest = V::splat(-x).mul_add(columns[k], rest);
            }
            V::load(solution.as_ptr()).store(y.add(first));
        }
        (0..size).all(|k| (*y.add(k)).is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    /// Returns a well-conditioned matrix in the layout of `cholesky_solve`, and the same in full in `f64`.
    fn matrix(size: usize) -> (Vec<f32>, Vec<f64>) {
        let mut s = RandomStream::new(&[size as u64]);
        let x: Vec<f64> = (0..size * (size + 3))
            .map(|_| s.standard_normal())
            .collect();
        let width = padded_len(size);
        let (mut a, mut full) = (vec![f32::MAX.sqrt(); size * width], vec![0.0; size * size]);
        for i in 0..size {
            a[i * width..(i + 1) * width].fill(0.25);
            a[i * width + size..(i + 1) * width].fill(0.0);
            for j in 0..size {
                let dot: f64 = (0..size + 3)
                    .map(|k| x[k * size + i] * x[k * size + j])
                    .sum();
                let value = (dot + if i == j { size as f64 } else { 0.0 }) as f32;
                full[i * size + j] = f64::from(value);
                if j >= i {
                    a[i * width + j] = value;
                }
            }
        }
        (a, full)
    }

    #[test]
    fn solves_at_every_level_and_size() {
        for level in Level::available() {
            let sizes = (1..=20).chain([31, 32, 33, 47, 64, 65, 72]);
            // Under Miri, sizes of one and two vectors.
            let sizes = sizes.filter(|size| !cfg!(miri) || [1, 9, 17].contains(size));
            for size in sizes {
                let (mut a, full) = matrix(size);
                let right: Vec<f64> = (0..size).map(|i| 1.0 + i as f64).collect();
                let mut b = vec![0.0f32; padded_len(size)];
                b.iter_mut().zip(&right).for_each(|(b, &r)| *b = r as f32);
                assert!(cholesky_solve(level, size, &mut a, &mut b, Noise::None));
                for i in 0..size {
                    let got: f64 = (0..size)
                        .map(|j| full[i * size + j] * f64::from(b[j]))
                        .sum();
                    assert!(
                        (got - right[i]).abs() < 1e-3 * right[size - 1],
                        "{size} {i} {got}"
                    );
                }
                assert!(b[size..].iter().all(|&x| x == 0.0));
            }
        }
    }

    #[test]
    fn samples_have_the_inverse_as_covariance() {
        for level in Level::available() {
            let size = 18;
            let (a, full) = matrix(size);
            // The squared norm of R^-1 z in the metric A equals that of z.
            let mut z: Vec<f32> = (0..size).map(|i| (i as f32 - 7.0) / 5.0).collect();
            let length: f64 = z.iter().map(|&z| f64::from(z) * f64::from(z)).sum();
            z.resize(padded_len(size), 0.0);
            let mut b = vec![0.0f32; padded_len(size)];
            let mut added = b.clone();
            assert!(cholesky_solve(
                level,
                size,
                &mut a.clone(),
                &mut added,
                Noise::Sample(&z)
            ));
            assert!(cholesky_solve(
                level,
                size,
                &mut a.clone(),
                &mut b,
                Noise::MeanAndSample(&mut z)
            ));
            assert!(b.iter().all(|&b| b == 0.0) && added == z);
            let x = z;
            let form: f64 = (0..size * size)
                .map(|k| full[k] * f64::from(x[k / size]) * f64::from(x[k % size]))
                .sum();
            assert!((form - length).abs() < 1e-3 * length, "{form} {length}");
        }
    }

    #[test]
    fn rejects_matrices_that_are_not_positive_definite() {
        for level in Level::available() {
            for size in [2, 17, 40] {
                let width = padded_len(size);
                let mut zero = vec![0.0f32; size * width];
                let mut b = vec![1.0f32; width];
                assert!(!cholesky_solve(level, size, &mut zero, &mut b, Noise::None));
                // A matrix of ones has rank 1.
                let mut ones = vec![1.0f32; size * width];
                assert!(!cholesky_solve(level, size, &mut ones, &mut b, Noise::None));
                let mut bad = vec![f32::NAN; size * width];
                assert!(!cholesky_solve(level, size, &mut bad, &mut b, Noise::None));
            }
        }
    }
}
