//! Cholesky solution of small symmetric positive definite systems in `f32` with SIMD.
//!
//! A = R^T R with R upper triangular, computed in panels of rows so that all loops run along rows. With standard
//! normal z, x = A^-1 b + R^-1 z is a sample of the normal distribution with precision A and mean A^-1 b.
#![allow(unsafe_code)]

use crate::simd::Level;
use crate::simd::{F32x16, dispatched};
use crate::simd::{LANES, padded_len};

/// Standard normal noise z that turns a solution into a posterior sample.
pub enum Noise<'a> {
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
pub fn cholesky_solve(
    level: Level,
    size: usize,
    a: &mut [f32],
    b: &mut [f32],
    noise: Noise<'_>,
) -> bool {
    check_lengths(size, a, b, &noise);
    assert!(level.is_available());
    // SAFETY: the lengths were checked, the level is available.
    unsafe { solve_one(level, size, a.as_mut_ptr(), b, noise) }
}

/// Solves two systems of the same size as [`cholesky_solve`] does, with the same results, at the same time: the pivots of
/// one system follow from each other, so a second one fills the time that the first one waits. Returns false if
/// [`cholesky_solve`] would for one of them; nothing then holds a meaningful value.
///
/// # Panics
/// If a length is not that of the padded `size`, the two noises are of different kinds, or the machine does not have the
/// level.
pub fn cholesky_solve_pair(
    level: Level,
    size: usize,
    systems: [&mut [f32]; 2],
    rhs: [&mut [f32]; 2],
    noise: [Noise<'_>; 2],
) -> bool {
    for i in 0..2 {
        check_lengths(size, systems[i], rhs[i], &noise[i]);
    }
    assert_eq!(
        std::mem::discriminant(&noise[0]),
        std::mem::discriminant(&noise[1])
    );
    assert!(level.is_available());
    assert!(level.is_available());
    let systems = systems.map(<[f32]>::as_mut_ptr);
    // SAFETY: the lengths were checked, the level is available.
    unsafe { solve_pair(level, size, systems, rhs, noise) }
}

/// Checks the lengths of a system against its size.
fn check_lengths(size: usize, a: &[f32], b: &[f32], noise: &Noise<'_>) {
    let width = padded_len(size);
    assert_eq!((a.len(), b.len()), (size * width, width));
    assert!(match noise {
        Noise::None => true,
        Noise::Sample(z) => z.len() == width,
        Noise::MeanAndSample(z) => z.len() == width,
    });
}

dispatched! {
    unsafe fn solve_one(size: usize, a: *mut f32, b: &mut [f32], noise: Noise<'_>) -> bool = any_solve_one;
}

dispatched! {
    unsafe fn solve_pair(size: usize, a: [*mut f32; 2], b: [&mut [f32]; 2], noise: [Noise<'_>; 2]) -> bool = any_solve_pair;
}

#[inline(always)]
unsafe fn any_solve_one<V: F32x16>(
    size: usize,
    a: *mut f32,
    b: &mut [f32],
    noise: Noise<'_>,
) -> bool {
    // SAFETY: the caller's obligations.
    unsafe { solve::<V, 1>(size, [a], [b], [noise]) }
}

#[inline(always)]
unsafe fn any_solve_pair<V: F32x16>(
    size: usize,
    a: [*mut f32; 2],
    b: [&mut [f32]; 2],
    noise: [Noise<'_>; 2],
) -> bool {
    // SAFETY: the caller's obligations.
    unsafe { solve::<V, 2>(size, a, b, noise) }
}

#[inline(always)]
unsafe fn solve<V: F32x16, const M: usize>(
    size: usize,
    a: [*mut f32; M],
    mut b: [&mut [f32]; M],
    noise: [Noise<'_>; M],
) -> bool {
    // SAFETY: the caller's obligations.
    unsafe {
        if !factorize::<V, M>(size, a) {
            return false;
        }
        solve_transposed::<V, M>(size, a, b.each_mut().map(|b| b.as_mut_ptr()));
        let mut samples = [std::ptr::null_mut(); M];
        for (s, noise) in noise.into_iter().enumerate() {
            match noise {
                Noise::None => {}
                Noise::Sample(noise) => b[s].iter_mut().zip(noise).for_each(|(y, z)| *y += z),
                Noise::MeanAndSample(noise) => {
                    noise.iter_mut().zip(&*b[s]).for_each(|(z, y)| *z += y);
                    samples[s] = noise.as_mut_ptr();
                }
            }
        }
        // All systems have noise of the same kind.
        if samples.iter().all(|sample| !sample.is_null()) && !solve_upper::<V, M>(size, a, samples)
        {
            return false;
        }
        solve_upper::<V, M>(size, a, b.map(|b| b.as_mut_ptr()))
    }
}

/// Smallest accepted ratio of a pivot to the diagonal element of A that it came from; below, the pivot is
/// rounding error.
const MIN_PIVOT_RATIO: f32 = 1e-5;

/// Replaces the upper triangle of each A by R, with the reciprocals of R's diagonal on the diagonal. Returns
/// false if one is not positive definite.
#[inline(always)]
unsafe fn factorize<V: F32x16, const M: usize>(size: usize, a: [*mut f32; M]) -> bool {
    let mut first = 0;
    while first < size {
        // SAFETY: the caller's obligations. Panels of 8 come first, then those of 4, so the rows of a panel have the same
        // first vector.
        let (rows, is_positive) = unsafe {
            if V::VECTOR_REGISTERS >= 32 && first + 8 <= size {
                (8, factorize_panel::<V, 8, M>(size, a, first))
            } else if first + 4 <= size {
                (4, factorize_panel::<V, 4, M>(size, a, first))
            } else {
                (1, factorize_panel::<V, 1, M>(size, a, first))
            }
        };
        if !is_positive {
            return false;
        }
        first += rows;
    }
    true
}

/// Repeats `body` for the rows `k` of a panel of up to 8. Unlike in a loop, `k` is a constant, so that arrays of vectors stay
/// in registers.
macro_rules! for_rows_of_panel {
    ($rows:ident, $k:ident, $body:block) => {
        for_rows_of_panel!(@each $rows, $k, $body, 0 1 2 3 4 5 6 7)
    };
    (@each $rows:ident, $k:ident, $body:block, $($number:literal)*) => {
        $(
            if $number < $rows {
                let $k: usize = $number;
                $body
            }
        )*
    };
}

/// Computes `N` rows of each R from all rows before them. Sums stay in registers.
#[inline(always)]
unsafe fn factorize_panel<V: F32x16, const N: usize, const M: usize>(
    size: usize,
    a: [*mut f32; M],
    first: usize,
) -> bool {
    let width = padded_len(size);
    let first_vector = first / LANES * LANES;
    // SAFETY: the caller's obligations; the panel ends within the matrix.
    unsafe {
        let panels = a.map(|a| a.add(first * width));
        let mut min_pivots = [[0.0f32; M]; N];
        for i in 0..N {
            for s in 0..M {
                min_pivots[i][s] = MIN_PIVOT_RATIO * *panels[s].add(i * width + first + i);
            }
        }
        // The vectors with the diagonal determine the factors of all others.
        let mut sums = panel_sums::<V, N, M>(a, first, first_vector, width);
        for_rows_of_panel!(N, k, {
            let mut inverses = [0.0f32; M];
            for s in 0..M {
                let row = panels[s].add(k * width);
                sums[s][k].store(row.add(first_vector));
                let pivot = *row.add(first + k);
                if pivot.is_nan() || pivot <= min_pivots[k][s] || pivot.is_infinite() {
                    return false;
                }
                inverses[s] = 1.0 / pivot.sqrt();
            }
            for s in 0..M {
                let row = panels[s].add(k * width);
                let scaled = sums[s][k] * V::splat(inverses[s]);
                scaled.store(row.add(first_vector));
                for i in k + 1..N {
                    sums[s][i] = V::splat(-*row.add(first + i)).mul_add(scaled, sums[s][i]);
                }
                // The triangular solves need only the reciprocal of the diagonal.
                *row.add(first + k) = inverses[s];
            }
        });
        for at in (first_vector + LANES..width).step_by(LANES) {
            let mut sums = panel_sums::<V, N, M>(a, first, at, width);
            for_rows_of_panel!(N, k, {
                for s in 0..M {
                    let row = panels[s].add(k * width);
                    let scaled = sums[s][k] * V::splat(*row.add(first + k));
                    scaled.store(row.add(at));
                    for i in k + 1..N {
                        sums[s][i] = V::splat(-*row.add(first + i)).mul_add(scaled, sums[s][i]);
                    }
                }
            });
        }
    }
    true
}

/// Returns the vectors at column `at` of the `N` rows from `first`, less the contributions of the rows of R before them.
#[inline(always)]
unsafe fn panel_sums<V: F32x16, const N: usize, const M: usize>(
    a: [*mut f32; M],
    first: usize,
    at: usize,
    width: usize,
) -> [[V; N]; M] {
    let mut sums = [[V::zero(); N]; M];
    // SAFETY: the caller's obligations.
    unsafe {
        for s in 0..M {
            for i in 0..N {
                sums[s][i] = V::load(a[s].add((first + i) * width + at));
            }
        }
        for m in 0..first {
            for s in 0..M {
                let row = a[s].add(m * width);
                let x = V::load(row.add(at));
                for i in 0..N {
                    sums[s][i] = V::splat(-*row.add(first + i)).mul_add(x, sums[s][i]);
                }
            }
        }
    }
    sums
}

/// Solves R^T y = b in place, sixteen elements at a time.
///
/// The vector of R that holds the diagonal has arbitrary values left of it. They spoil elements before k, which are no
/// longer needed, so y is kept in a buffer.
#[inline(always)]
unsafe fn solve_transposed<V: F32x16, const M: usize>(
    size: usize,
    r: [*mut f32; M],
    b: [*mut f32; M],
) {
    let width = padded_len(size);
    // SAFETY: the caller's obligations.
    unsafe {
        for first in (0..size).step_by(LANES) {
            let count = LANES.min(size - first);
            let mut rest = [V::zero(); M];
            for s in 0..M {
                rest[s] = V::load(b[s].add(first));
            }
            let mut now = [[0.0f32; LANES]; M];
            let mut y = [[0.0f32; LANES]; M];
            for k in 0..count {
                for s in 0..M {
                    let row = r[s].add((first + k) * width + first);
                    rest[s].store(now[s].as_mut_ptr());
                    let x = now[s][k] * *row.add(k);
                    y[s][k] = x;
                    rest[s] = V::splat(-x).mul_add(V::load(row), rest[s]);
                }
            }
            for s in 0..M {
                V::load(y[s].as_ptr()).store(b[s].add(first));
            }
            for at in (first + LANES..width).step_by(LANES) {
                for s in 0..M {
                    let mut sum = V::load(b[s].add(at));
                    for k in 0..count {
                        let row = r[s].add((first + k) * width);
                        sum = V::splat(-y[s][k]).mul_add(V::load(row.add(at)), sum);
                    }
                    sum.store(b[s].add(at));
                }
            }
        }
    }
}

/// Solves R x = y in place and returns whether x is finite.
///
/// Works on sixteen elements at a time from the end: subtracts the contribution of later elements, then
/// substitutes within a transposed sixteen by sixteen block, whose columns are vectors.
#[inline(always)]
unsafe fn solve_upper<V: F32x16, const M: usize>(
    size: usize,
    r: [*mut f32; M],
    y: [*mut f32; M],
) -> bool {
    let width = padded_len(size);
    // SAFETY: the caller's obligations.
    unsafe {
        for first in (0..size).step_by(LANES).rev() {
            let count = LANES.min(size - first);
            let mut columns = [[V::zero(); LANES]; M];
            let mut rest = [V::zero(); M];
            for s in 0..M {
                let mut later = [0.0f32; LANES];
                let mut block = [V::zero(); LANES];
                for i in 0..count {
                    let row = r[s].add((first + i) * width);
                    block[i] = V::load(row.add(first));
                    let mut sum = V::zero();
                    for at in (first + LANES..width).step_by(LANES) {
                        sum = V::load(row.add(at)).mul_add(V::load(y[s].add(at)), sum);
                    }
                    later[i] = sum.sum();
                }
                columns[s] = V::transpose(block);
                rest[s] = V::load(y[s].add(first)) - V::load(later.as_ptr());
            }
            let mut now = [[0.0f32; LANES]; M];
            let mut solution = [[0.0f32; LANES]; M];
            for k in (0..count).rev() {
                for s in 0..M {
                    rest[s].store(now[s].as_mut_ptr());
                    let x = now[s][k] * *r[s].add((first + k) * width + first + k);
                    solution[s][k] = x;
                    rest[s] = V::splat(-x).mul_add(columns[s][k], rest[s]);
                }
            }
            for s in 0..M {
                V::load(solution[s].as_ptr()).store(y[s].add(first));
            }
        }
        y.iter().all(|y| (0..size).all(|k| (*y.add(k)).is_finite()))
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
    fn a_pair_of_systems_has_the_solutions_of_each() {
        for level in Level::available() {
            for size in [1, 4, 11, 33, 40] {
                let width = padded_len(size);
                let (a, _) = matrix(size);
                let scaled: Vec<f32> = a.iter().map(|a| 2.0 * a).collect();
                let b: Vec<f32> = (0..width).map(|i| i as f32 - 3.0).collect();
                let z: Vec<f32> = (0..width).map(|i| (i as f32 - 7.0) / 5.0).collect();
                let one = |a: &[f32]| {
                    let (mut a, mut b, mut z) = (a.to_vec(), b.clone(), z.clone());
                    let noise = Noise::MeanAndSample(&mut z);
                    assert!(cholesky_solve(level, size, &mut a, &mut b, noise));
                    (b, z)
                };
                let (mut a1, mut b1, mut z1) = (a.clone(), b.clone(), z.clone());
                let (mut a2, mut b2, mut z2) = (scaled.clone(), b.clone(), z.clone());
                let noise = [Noise::MeanAndSample(&mut z1), Noise::MeanAndSample(&mut z2)];
                let (systems, rhs) = ([&mut a1[..], &mut a2], [&mut b1[..], &mut b2]);
                assert!(cholesky_solve_pair(level, size, systems, rhs, noise));
                assert_eq!([(b1, z1), (b2, z2)], [one(&a), one(&scaled)]);
                let (mut a1, mut a2) = (a.clone(), vec![0.0f32; size * width]);
                let (mut b1, mut b2) = (b.clone(), b.clone());
                let (systems, rhs) = ([&mut a1[..], &mut a2], [&mut b1[..], &mut b2]);
                let noise = [Noise::None, Noise::None];
                assert!(!cholesky_solve_pair(level, size, systems, rhs, noise));
            }
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
