//! Runs of entries that differ in their last row only: what the core of the exact solvers is found with.
//!
//! # Safety
//! The kernel trusts its pointers; [`fiber_sums`] checks every length, and [`Lists`] checked every row.
#![allow(unsafe_code)]

use std::ops::Range;

use super::entry::dot;
use super::mode_csr::Lists;
use crate::simd::LANES;
use crate::simd::Level;
use crate::simd::{F32x16, dispatched};

/// What the last row of each entry is taken times.
#[derive(Clone, Copy)]
pub(crate) enum Share<'a> {
    /// A number for each entry.
    Given(&'a [f32]),
    /// The value at the entry, which is the product of its row with these numbers, times its weight.
    Value(&'a [f32]),
}

/// Adds the last rows of some entries, each times its share, to `sum`. `rows` are all rows of the last mode of `lists`, each as
/// long as `sum`.
///
/// # Panics
/// If this machine does not have the level, there are no such entries, or the lengths are not whole lines and those of each
/// other.
pub(crate) fn along(
    level: Level,
    (lists, entries): (&Lists, Range<usize>),
    rows: &[f32],
    share: Share<'_>,
    sum: &mut [f32],
) {
    let lines = sum.len() / LANES;
    let limits = lists.limits();
    let needed = limits[limits.len() - 1].checked_mul(sum.len());
    assert!(level.is_available() && lines > 0 && sum.len().is_multiple_of(LANES));
    assert!(needed.is_some_and(|n| n <= rows.len()));
    let (count, width) = (entries.len(), limits.len() + 1);
    let words = lists.words(entries.clone());
    let (line, numbers) = match share {
        Share::Given(numbers) => (&[][..], numbers),
        Share::Value(line) => (line, lists.weights(entries)),
    };
    assert!(numbers.len() == count || (numbers.is_empty() && !line.is_empty()));
    assert!(line.is_empty() || line.len() == sum.len());
    if count == 0 {
        return;
    }
    let or_null = |a: &[f32]| match a.is_empty() {
        true => std::ptr::null(),
        false => a.as_ptr(),
    };
    // SAFETY: the lengths were checked here, and so was the level; rows were checked against the limits when the lists
    // were made. The last row of an entry is the last word but one of the `width` that it has.
    unsafe {
        sum_along(
            level,
            words.as_ptr().add(width - 2),
            width,
            count,
            rows.as_ptr(),
            lines,
            or_null(line),
            or_null(numbers),
            sum.as_mut_ptr(),
        )
    }
}

dispatched! {
    /// `sum += e u` over `count` entries whose row numbers are `width` apart, with e the number of the entry, or 1, times the
    /// product of `line` and u, or 1.
    unsafe fn sum_along(words: *const u32, width: usize, count: usize, rows: *const f32, lines: usize, line: *const f32, numbers: *const f32, sum: *mut f32) = any_along;
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn any_along<L: F32x16>(
    words: *const u32,
    width: usize,
    count: usize,
    rows: *const f32,
    lines: usize,
    line: *const f32,
    numbers: *const f32,
    sum: *mut f32,
) {
    // SAFETY: within what the caller promised.
    unsafe {
        if lines == 1 {
            return one_line::<L>(words, width, count, rows, line, numbers, sum);
        }
        for i in 0..count {
            let u = rows.add(*words.add(i * width) as usize * lines * LANES);
            let mut e = 1.0;
            if !numbers.is_null() {
                e = *numbers.add(i);
            }
            if !line.is_null() {
                e *= dot::<L>(line, u, lines);
            }
            let e = L::splat(e);
            for k in 0..lines {
                let at = sum.add(k * LANES);
                let so_far = L::load(at);
                e.mul_add(L::load(u.add(k * LANES)), so_far).store(at);
            }
        }
    }
}

/// The same for rows of one line, with the sum in a register.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn one_line<L: F32x16>(
    words: *const u32,
    width: usize,
    count: usize,
    rows: *const f32,
    line: *const f32,
    numbers: *const f32,
    sum: *mut f32,
) {
    // SAFETY: within what the caller promised.
    unsafe {
        let mut all = L::load(sum);
        let times = match line.is_null() {
            true => L::zero(),
            false => L::load(line),
        };
        for i in 0..count {
            let u = L::load(rows.add(*words.add(i * width) as usize * LANES));
            let mut e = 1.0;
            if !numbers.is_null() {
                e = *numbers.add(i);
            }
            if !line.is_null() {
                e *= (u * times).sum();
            }
            all = L::splat(e).mul_add(u, all);
        }
        all.store(sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    #[test]
    fn rows_are_added_up_at_every_level() {
        let mut s = RandomStream::new(&[7]);
        let limits = [2, 3, 5];
        let places: Vec<u32> = (0..30).flat_map(|i| [i / 15, i / 5 % 3, i % 5]).collect();
        let mut number = || s.below(2001) as f32 / 1000.0 - 1.0;
        let values: Vec<f32> = (0..30).map(|_| number()).collect();
        let weights: Vec<f32> = (0..30).map(|_| number().abs()).collect();
        for (lines, weights) in [(1, &weights[..]), (3, &weights), (1, &[])] {
            let lists = Lists::new(0, &limits, &places, (&values, weights)).unwrap();
            let len = lines * LANES;
            let rows: Vec<f32> = (0..5 * len).map(|_| number()).collect();
            let line: Vec<f32> = (0..len).map(|_| number()).collect();
            let before: Vec<f32> = (0..len).map(|_| number()).collect();
            let given: Vec<f32> = (0..9).map(|_| number()).collect();
            for share in [Share::Given(&given), Share::Value(&line)] {
                let mut expected: Vec<f64> = before.iter().map(|&b| f64::from(b)).collect();
                for (i, entry) in (3..12).enumerate() {
                    let last = *lists.entry(entry).last().unwrap() as usize;
                    let u = &rows[last * len..][..len];
                    let e = match share {
                        Share::Given(given) => f64::from(given[i]),
                        Share::Value(line) => {
                            let terms = line.iter().zip(u);
                            let value: f64 =
                                terms.map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
                            f64::from(lists.weight(entry)) * value
                        }
                    };
                    for (x, &u) in expected.iter_mut().zip(u) {
                        *x += e * f64::from(u);
                    }
                }
                for level in Level::available() {
                    let mut sum = before.clone();
                    along(level, (&lists, 3..12), &rows, share, &mut sum);
                    for (&a, b) in sum.iter().zip(&expected) {
                        assert!((f64::from(a) - b).abs() < 2e-5, "{} {a} {b}", level.name());
                    }
                }
            }
        }
    }
}
