//! Sizes of the differences of rows to their prior mean, compiled for every instruction set.
#![allow(unsafe_code)]

use crate::simd::{F32x16, LANES, Level, dispatched};

/// Number of partial sums of a row, which are independent of one another.
const SUMS: usize = 8;

/// Writes the sum of the squares of the differences of each row to `prior_mean` to `sizes`; with `l1` the sum of their
/// absolute values.
///
/// # Panics
/// If the level is not available or a length is wrong.
pub fn row_sizes(level: Level, rows: &[f32], prior_mean: &[f32], l1: bool, sizes: &mut [f64]) {
    assert!(level.is_available() && !prior_mean.is_empty());
    assert_eq!(rows.len(), sizes.len() * prior_mean.len());
    // SAFETY: the level is available.
    unsafe { sizes_of_rows(level, rows, prior_mean, l1, sizes) }
}

dispatched! {
    /// Writes the sizes of all rows.
    unsafe fn sizes_of_rows(rows: &[f32], prior_mean: &[f32], l1: bool, sizes: &mut [f64]) = sizes_of_rows_body;
}

// Plain loops, which the compiler vectorizes for the instruction set that is enabled where this function is inlined.
#[inline(always)]
unsafe fn sizes_of_rows_body<V: F32x16>(
    rows: &[f32],
    prior_mean: &[f32],
    l1: bool,
    sizes: &mut [f64],
) {
    match (prior_mean.len() == LANES, l1) {
        (true, false) => write_sizes::<LANES, false>(rows, prior_mean, sizes),
        (true, true) => write_sizes::<LANES, true>(rows, prior_mean, sizes),
        (false, false) => write_sizes::<0, false>(rows, prior_mean, sizes),
        (false, true) => write_sizes::<0, true>(rows, prior_mean, sizes),
    }
}

/// Writes the sizes of rows of `LEN` floats, any number if it is 0.
#[inline(always)]
fn write_sizes<const LEN: usize, const L1: bool>(
    rows: &[f32],
    prior_mean: &[f32],
    sizes: &mut [f64],
) {
    let len = if LEN > 0 { LEN } else { prior_mean.len() };
    let prior_mean = &prior_mean[..len];
    for (row, size) in rows.chunks_exact(len).zip(sizes) {
        let mut sums = [0.0; SUMS];
        let whole = len - len % SUMS;
        for start in (0..whole).step_by(SUMS) {
            let (a, b) = (&row[start..start + SUMS], &prior_mean[start..start + SUMS]);
            for k in 0..SUMS {
                sums[k] += element_size::<L1>(a[k] - b[k]);
            }
        }
        for k in whole..len {
            sums[0] += element_size::<L1>(row[k] - prior_mean[k]);
        }
        // Sums in order, without the call of an iterator.
        let mut total = sums[0];
        for sum in &sums[1..] {
            total += sum;
        }
        *size = total;
    }
}

#[inline(always)]
fn element_size<const L1: bool>(difference: f32) -> f64 {
    let x = f64::from(difference);
    if L1 { x.abs() } else { x * x }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_the_same_at_every_level() {
        for len in [1, 7, 8, 16, 17, 48] {
            let prior_mean: Vec<f32> = (0..len).map(|k| 0.25 * k as f32).collect();
            let rows: Vec<f32> = (0..5 * len).map(|k| (k as f32 * 0.7).sin()).collect();
            for l1 in [false, true] {
                let expected = rows.chunks_exact(len).map(|row| {
                    let each = row.iter().zip(&prior_mean).map(|(a, b)| f64::from(a - b));
                    each.map(|x| if l1 { x.abs() } else { x * x }).sum::<f64>()
                });
                let expected: Vec<f64> = expected.collect();
                let mut scalar = [0.0; 5];
                row_sizes(Level::Scalar, &rows, &prior_mean, l1, &mut scalar);
                for (size, expected) in scalar.iter().zip(expected) {
                    assert!((size - expected).abs() <= 1e-12 * expected, "{len}");
                }
                for level in Level::available() {
                    let mut sizes = [0.0; 5];
                    row_sizes(level, &rows, &prior_mean, l1, &mut sizes);
                    assert_eq!(sizes, scalar, "{level:?}, {len}");
                }
            }
        }
    }
}
