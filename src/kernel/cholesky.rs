//! Small systems of equations with a symmetric positive definite matrix: A = R^T R, R upper
//! triangular, row by row, so that everything runs along lines.
#![allow(unsafe_code)]

use crate::simd::Level;
use crate::simd::{F32x16, dispatched};
use crate::simd::{LANES, padded_len};

/// What becomes of the noise in a solution.
pub(crate) enum Noise<'a> {
    /// There is none.
    None,
    /// The solution becomes a draw with precision A, if this is standard normal.
    Added(&'a [f32]),
    /// This becomes such a draw, beside the solution.
    Beside(&'a mut [f32]),
}

/// Solves A x = b in place. Of A, rows padded like those of factors, only the upper triangle counts;
/// it becomes R. With noise, R^-1 times it is added. False if A is not positive definite as far as `f32`
/// can tell; A, b and what is beside are then of no use.
///
/// # Panics
/// If a length is not that of the padded `size`.
pub(crate) fn solve(
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
        Noise::Added(z) => z.len() == width,
        Noise::Beside(z) => z.len() == width,
    });
    // SAFETY: the lengths were checked, the level is available.
    unsafe { solved(level, size, a.as_mut_ptr(), b, noise) }
}

dispatched! {
    unsafe fn solved(size: usize, a: *mut f32, b: &mut [f32], noise: Noise<'_>) -> bool = any_solved;
}

#[inline(always)]
unsafe fn any_solved<L: F32x16>(size: usize, a: *mut f32, b: &mut [f32], noise: Noise<'_>) -> bool {
    // SAFETY: the caller's promises.
    unsafe {
        if !cholesky::<L>(size, a) {
            return false;
        }
        forward::<L>(size, a, b);
        let beside = match noise {
            Noise::None => true,
            Noise::Added(noise) => {
                b.iter_mut().zip(noise).for_each(|(y, z)| *y += z);
                true
            }
            Noise::Beside(noise) => {
                noise.iter_mut().zip(&*b).for_each(|(z, y)| *z += y);
                back::<L>(size, a, noise)
            }
        };
        beside && back::<L>(size, a, b)
    }
}

/// A pivot this much smaller than the diagonal it began as is rounding and nothing else.
const LEAST: f32 = 1e-5;

#[inline(always)]
unsafe fn cholesky<L: F32x16>(size: usize, a: *mut f32) -> bool {
    let width = padded_len(size);
    let lines = width / LANES;
    // SAFETY: the caller's promises.
    unsafe {
        let mut least = [0.0f32; LANES];
        for k in 0..size {
            // The pivots of sixteen rows ahead, before anything is taken off them.
            if k % LANES == 0 {
                for (t, slot) in least.iter_mut().enumerate().take(size - k) {
                    let i = k + t;
                    let taken: f32 = (0..k).map(|m| *a.add(m * width + i)).map(|x| x * x).sum();
                    *slot = LEAST * (*a.add(i * width + i) + taken);
                }
            }
            let row = a.add(k * width);
            let pivot = *row.add(k);
            if pivot.is_nan() || pivot <= least[k % LANES] || pivot.is_infinite() {
                return false;
            }
            let inverse = 1.0 / pivot.sqrt();
            let scale = L::splat(inverse);
            for line in k / LANES..lines {
                let at = row.add(line * LANES);
                (L::load(at) * scale).store(at);
            }
            // All that is needed of the diagonal from here on.
            *row.add(k) = inverse;
            for i in k + 1..size {
                let by = L::splat(-*row.add(i));
                let target = a.add(i * width);
                for line in i / LANES..lines {
                    let at = target.add(line * LANES);
                    by.mul_add(L::load(row.add(line * LANES)), L::load(at))
                        .store(at);
                }
            }
        }
    }
    true
}

/// R^T y = b in place. A line of R holds rubbish up to the diagonal; what it does to b up to k is of no
/// use any more, so y is kept aside until the line is done.
#[inline(always)]
unsafe fn forward<L: F32x16>(size: usize, r: *const f32, b: &mut [f32]) {
    let width = padded_len(size);
    let b = b.as_mut_ptr();
    // SAFETY: the caller's promises.
    unsafe {
        for first in (0..size).step_by(LANES) {
            let mut y = [0.0f32; LANES];
            for k in first..size.min(first + LANES) {
                let row = r.add(k * width);
                let x = *b.add(k) * *row.add(k);
                y[k - first] = x;
                let by = L::splat(-x);
                for at in (first..width).step_by(LANES) {
                    by.mul_add(L::load(row.add(at)), L::load(b.add(at)))
                        .store(b.add(at));
                }
            }
            L::load(y.as_ptr()).store(b.add(first));
        }
    }
}

/// R x = y in place, sixteen numbers at a time from the end: what those behind them take off, and then
/// one after the other along the columns of a square.
#[inline(always)]
unsafe fn back<L: F32x16>(size: usize, r: *const f32, y: &mut [f32]) -> bool {
    let width = padded_len(size);
    let y = y.as_mut_ptr();
    // SAFETY: the caller's promises.
    unsafe {
        for first in (0..size).step_by(LANES).rev() {
            let count = LANES.min(size - first);
            let mut taken = [0.0f32; LANES];
            let mut square = [L::zero(); LANES];
            for i in 0..count {
                let row = r.add((first + i) * width);
                square[i] = L::load(row.add(first));
                let mut sum = L::zero();
                for at in (first + LANES..width).step_by(LANES) {
                    sum = L::load(row.add(at)).mul_add(L::load(y.add(at)), sum);
                }
                taken[i] = sum.sum();
            }
            let columns = L::transposed(square);
            let mut left = L::load(y.add(first)) - L::load(taken.as_ptr());
            let mut now = [0.0f32; LANES];
            let mut found = [0.0f32; LANES];
            for k in (0..count).rev() {
                left.store(now.as_mut_ptr());
                let x = now[k] * *r.add((first + k) * width + first + k);
                found[k] = x;
                left = L::splat(-x).mul_add(columns[k], left);
            }
            L::load(found.as_ptr()).store(y.add(first));
        }
        (0..size).all(|k| (*y.add(k)).is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    /// A well-conditioned matrix as `solve` takes it, and the same in full and `f64`.
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
    fn the_solution_solves_at_every_level_and_size() {
        for level in Level::available() {
            for size in (1..=20).chain([31, 32, 33, 47, 64, 65, 72]) {
                let (mut a, full) = matrix(size);
                let right: Vec<f64> = (0..size).map(|i| 1.0 + i as f64).collect();
                let mut b = vec![0.0f32; padded_len(size)];
                b.iter_mut().zip(&right).for_each(|(b, &r)| *b = r as f32);
                assert!(solve(level, size, &mut a, &mut b, Noise::None));
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
    fn noise_has_the_inverse_as_its_covariance() {
        for level in Level::available() {
            let size = 18;
            let (a, full) = matrix(size);
            // The squared length of R^-1 z in the norm of A is that of z.
            let mut z: Vec<f32> = (0..size).map(|i| (i as f32 - 7.0) / 5.0).collect();
            let length: f64 = z.iter().map(|&z| f64::from(z) * f64::from(z)).sum();
            z.resize(padded_len(size), 0.0);
            let mut b = vec![0.0f32; padded_len(size)];
            let mut added = b.clone();
            assert!(solve(
                level,
                size,
                &mut a.clone(),
                &mut added,
                Noise::Added(&z)
            ));
            assert!(solve(
                level,
                size,
                &mut a.clone(),
                &mut b,
                Noise::Beside(&mut z)
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
    fn what_is_not_positive_definite_is_refused() {
        for level in Level::available() {
            for size in [2, 17, 40] {
                let width = padded_len(size);
                let mut zero = vec![0.0f32; size * width];
                let mut b = vec![1.0f32; width];
                assert!(!solve(level, size, &mut zero, &mut b, Noise::None));
                // All ones has rank 1.
                let mut ones = vec![1.0f32; size * width];
                assert!(!solve(level, size, &mut ones, &mut b, Noise::None));
                let mut bad = vec![f32::NAN; size * width];
                assert!(!solve(level, size, &mut bad, &mut b, Noise::None));
            }
        }
    }
}
