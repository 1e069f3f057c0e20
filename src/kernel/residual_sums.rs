//! Weighted sums of squared residuals, compiled for every instruction set.
#![allow(unsafe_code)]

use crate::simd::{F32x16, dispatched};
use crate::value_range::ValueRange;

/// Number of partial sums, which are independent of one another.
const SUMS: usize = 8;

/// Entries and their predictions.
pub(super) struct ResidualSums<'a> {
    /// Records of `width` words: rows, the bits of the value and, if weighted, of the weight.
    pub records: &'a [u32],
    pub width: usize,
    pub weighted: bool,
    /// One prediction per record.
    pub values: &'a [f32],
    pub clip: ValueRange,
}

dispatched! {
    /// Returns the weighted sums of squared residuals: of predictions as they are, and of clipped predictions.
    pub(super) unsafe fn residual_sums(residuals: &ResidualSums<'_>) -> [f64; 2] = residual_sums_body;
}

// Plain loops, which the compiler vectorizes for the instruction set that is enabled where this function is inlined.
#[inline(always)]
unsafe fn residual_sums_body<V: F32x16>(residuals: &ResidualSums<'_>) -> [f64; 2] {
    let clips = residuals.clip != ValueRange::UNBOUNDED;
    match (residuals.weighted, residuals.width, clips) {
        (false, 2, false) => sums::<2, false, false>(residuals),
        (false, 3, false) => sums::<3, false, false>(residuals),
        (false, 3, true) => sums::<3, false, true>(residuals),
        (false, 4, false) => sums::<4, false, false>(residuals),
        (false, 4, true) => sums::<4, false, true>(residuals),
        (false, ..) => sums::<0, false, true>(residuals),
        (true, ..) => sums::<0, true, true>(residuals),
    }
}

/// Computes the sums with constants for the words of a record, any if `WIDTH` is 0, and for weights and clipping.
#[inline(always)]
fn sums<const WIDTH: usize, const WEIGHTED: bool, const CLIPS: bool>(
    residuals: &ResidualSums<'_>,
) -> [f64; 2] {
    let width = if WIDTH > 0 { WIDTH } else { residuals.width };
    let clip = residuals.clip;
    let (mut plain, mut clipped) = ([0.0; SUMS], [0.0; SUMS]);
    let records = residuals.records.chunks_exact(SUMS * width);
    let values = residuals.values.chunks_exact(SUMS);
    let last_records = records.remainder();
    let last_values = values.remainder();
    // With a constant number of entries the compiler vectorizes the inner loop.
    for (records, values) in records.zip(values) {
        for k in 0..SUMS {
            let record = &records[k * width..(k + 1) * width];
            let squares = squares::<WEIGHTED, CLIPS>(record, values[k], clip);
            plain[k] += squares[0];
            clipped[k] += squares[1];
        }
    }
    for (k, &value) in last_values.iter().enumerate() {
        let record = &last_records[k * width..(k + 1) * width];
        let squares = squares::<WEIGHTED, CLIPS>(record, value, clip);
        plain[k] += squares[0];
        clipped[k] += squares[1];
    }
    let plain = plain.iter().sum();
    [plain, if CLIPS { clipped.iter().sum() } else { plain }]
}

/// Returns the weighted squared residuals of one entry. The second one is 0 without `CLIPS`.
#[inline(always)]
fn squares<const WEIGHTED: bool, const CLIPS: bool>(
    record: &[u32],
    value: f32,
    clip: ValueRange,
) -> [f64; 2] {
    let value_at = record.len() - 1 - usize::from(WEIGHTED);
    let (x, value) = (
        f64::from(f32::from_bits(record[value_at])),
        f64::from(value),
    );
    let weight = if WEIGHTED {
        f64::from(f32::from_bits(record[value_at + 1]))
    } else {
        1.0
    };
    let residual = x - value;
    let clipped = if CLIPS { x - clip.clip(value) } else { 0.0 };
    [weight * (residual * residual), weight * (clipped * clipped)]
}
