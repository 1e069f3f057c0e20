//! Weighted sums of factor rows along fibers: runs of entries that differ in their last row only.
//!
//! The least-squares problem of a full core is made of such sums.
//!
//! # Safety
//! The kernel trusts its pointers; [`add_fiber`] checks every length, and [`ModeCsr::new`] every row.
#![allow(unsafe_code)]

use std::ops::Range;

use crate::entries::by_row::ModeCsr;
use crate::per_entry::gradient::dot;
use crate::simd::LANES;
use crate::simd::Level;
use crate::simd::{F32x16, dispatched};

/// The coefficient e of each entry in the sum of e u.
#[derive(Clone, Copy)]
pub enum Coefficients<'a> {
    /// One coefficient per entry.
    Given(&'a [f32]),
    /// The entry's weight times c . u, with c the core contracted with the rows that the fiber shares: the
    /// model's value at the entry.
    ModelValue(&'a [f32]),
}

/// Adds e u over `entries` to `sum`, where u is an entry's row of the last of the other modes of `csr`.
///
/// `rows` holds all rows of that mode, each as long as `sum`.
///
/// # Panics
/// If the machine does not have the level, the entries do not exist, or lengths are not multiples of
/// [`LANES`] or do not match.
pub fn add_fiber(
    level: Level,
    csr: &ModeCsr,
    entries: Range<usize>,
    rows: &[f32],
    coefficients: Coefficients<'_>,
    sum: &mut [f32],
) {
    let lines = sum.len() / LANES;
    let row_counts = csr.other_row_counts();
    let needed = row_counts[row_counts.len() - 1].checked_mul(sum.len());
    assert!(level.is_available() && lines > 0 && sum.len().is_multiple_of(LANES));
    assert!(needed.is_some_and(|n| n <= rows.len()));
    let (count, width) = (entries.len(), row_counts.len() + 1);
    let records = csr.records(entries.clone());
    let (contracted, scales) = match coefficients {
        Coefficients::Given(scales) => (&[][..], scales),
        Coefficients::ModelValue(contracted) => (contracted, csr.weights(entries)),
    };
    assert!(scales.len() == count || (scales.is_empty() && !contracted.is_empty()));
    assert!(contracted.is_empty() || contracted.len() == sum.len());
    if count == 0 {
        return;
    }
    let or_null = |a: &[f32]| {
        if a.is_empty() {
            std::ptr::null()
        } else {
            a.as_ptr()
        }
    };
    // SAFETY: lengths and level are checked above, row indices by `ModeCsr::new`. The last row of an entry
    // is the last but one of the `width` words of its record.
    unsafe {
        fiber_sum(
            level,
            records.as_ptr().add(width - 2),
            width,
            count,
            rows.as_ptr(),
            lines,
            or_null(contracted),
            or_null(scales),
            sum.as_mut_ptr(),
        )
    }
}

dispatched! {
    /// `sum += e u` over `count` entries whose row indices are `width` words apart. e is the entry's scale
    /// times `contracted . u`; a null pointer stands for factors of 1.
    unsafe fn fiber_sum(indices: *const u32, width: usize, count: usize, rows: *const f32, lines: usize, contracted: *const f32, scales: *const f32, sum: *mut f32) = any_fiber_sum;
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn any_fiber_sum<V: F32x16>(
    indices: *const u32,
    width: usize,
    count: usize,
    rows: *const f32,
    lines: usize,
    contracted: *const f32,
    scales: *const f32,
    sum: *mut f32,
) {
    // SAFETY: the caller's obligations.
    unsafe {
        if lines == 1 {
            return fiber_sum_one_vector::<V>(indices, width, count, rows, contracted, scales, sum);
        }
        for i in 0..count {
            let u = rows.add(*indices.add(i * width) as usize * lines * LANES);
            let mut e = 1.0;
            if !scales.is_null() {
                e = *scales.add(i);
            }
            if !contracted.is_null() {
                e *= dot::<V>(contracted, u, lines);
            }
            let e = V::splat(e);
            for k in 0..lines {
                let at = sum.add(k * LANES);
                let so_far = V::load(at);
                e.mul_add(V::load(u.add(k * LANES)), so_far).store(at);
            }
        }
    }
}

/// The same for rows of one vector, with the sum in a register.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn fiber_sum_one_vector<V: F32x16>(
    indices: *const u32,
    width: usize,
    count: usize,
    rows: *const f32,
    contracted: *const f32,
    scales: *const f32,
    sum: *mut f32,
) {
    // SAFETY: the caller's obligations.
    unsafe {
        let mut total = V::load(sum);
        let contracted_vector = if contracted.is_null() {
            V::zero()
        } else {
            V::load(contracted)
        };
        for i in 0..count {
            let u = V::load(rows.add(*indices.add(i * width) as usize * LANES));
            let mut e = 1.0;
            if !scales.is_null() {
                e = *scales.add(i);
            }
            if !contracted.is_null() {
                e *= (u * contracted_vector).sum();
            }
            total = V::splat(e).mul_add(u, total);
        }
        total.store(sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::by_row::CooSlices;
    use crate::random::RandomStream;

    #[test]
    fn sums_match_at_every_level() {
        let mut s = RandomStream::new(&[7]);
        let row_counts = [2, 3, 5];
        let indices: Vec<u32> = (0..30).flat_map(|i| [i / 15, i / 5 % 3, i % 5]).collect();
        let mut uniform = || s.below(2001) as f32 / 1000.0 - 1.0;
        let values: Vec<f32> = (0..30).map(|_| uniform()).collect();
        let weights: Vec<f32> = (0..30).map(|_| uniform().abs()).collect();
        for (lines, weights) in [(1, &weights[..]), (3, &weights), (1, &[])] {
            let entries = CooSlices {
                row_counts: &row_counts,
                rows: &indices,
                values: &values,
                weights,
            };
            let csr = ModeCsr::new(0, entries, &()).unwrap();
            let len = lines * LANES;
            let rows: Vec<f32> = (0..5 * len).map(|_| uniform()).collect();
            let contracted: Vec<f32> = (0..len).map(|_| uniform()).collect();
            let before: Vec<f32> = (0..len).map(|_| uniform()).collect();
            let given: Vec<f32> = (0..9).map(|_| uniform()).collect();
            for coefficients in [
                Coefficients::Given(&given),
                Coefficients::ModelValue(&contracted),
            ] {
                let mut expected: Vec<f64> = before.iter().map(|&b| f64::from(b)).collect();
                for (i, entry) in (3..12).enumerate() {
                    let last = *csr.other_rows(entry).last().unwrap() as usize;
                    let u = &rows[last * len..][..len];
                    let e = match coefficients {
                        Coefficients::Given(given) => f64::from(given[i]),
                        Coefficients::ModelValue(contracted) => {
                            let terms = contracted.iter().zip(u);
                            let value: f64 =
                                terms.map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
                            f64::from(csr.weight(entry)) * value
                        }
                    };
                    for (x, &u) in expected.iter_mut().zip(u) {
                        *x += e * f64::from(u);
                    }
                }
                for level in Level::available() {
                    let mut sum = before.clone();
                    add_fiber(level, &csr, 3..12, &rows, coefficients, &mut sum);
                    for (&a, b) in sum.iter().zip(&expected) {
                        assert!((f64::from(a) - b).abs() < 2e-5, "{} {a} {b}", level.name());
                    }
                }
            }
        }
    }
}
