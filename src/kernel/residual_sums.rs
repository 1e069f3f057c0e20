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

// Everything is inlined into the function of an instruction set; the vector type is not needed.
#[inline(always)]
unsafe fn residual_sums_body<V: F32x16>(residuals: &ResidualSums<'_>) -> [f64; 2] {
    let clips = residuals.clip != ValueRange::UNBOUNDED;
    match (residuals.weighted, residuals.width, clips) {
        (false, 2, false) => sums::<2, false, false>(residuals),
        (false, 3, false) => sums::<3, false, false>(residuals),
        (false, 3, true) => sums::<3, false, true>(residuals),
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
    let value_at = width - 1 - usize::from(WEIGHTED);
    let (mut plain, mut clipped) = ([0.0; SUMS], [0.0; SUMS]);
    let records = residuals.records.chunks(SUMS * width);
    for (records, values) in records.zip(residuals.values.chunks(SUMS)) {
        // Without a constant number of entries the loop below is not vectorized.
        let count = values.len();
        let (mut x, mut y, mut weights) = ([0.0f32; SUMS], [0.0f32; SUMS], [1.0f32; SUMS]);
        for k in 0..count {
            x[k] = f32::from_bits(records[k * width + value_at]);
            y[k] = values[k];
            if WEIGHTED {
                weights[k] = f32::from_bits(records[k * width + value_at + 1]);
            }
        }
        for k in 0..SUMS {
            let (x, y, weight) = (f64::from(x[k]), f64::from(y[k]), f64::from(weights[k]));
            let residual = x - y;
            plain[k] += weight * (residual * residual);
            if CLIPS && k < count {
                let residual = x - residuals.clip.clip(y);
                clipped[k] += weight * (residual * residual);
            }
        }
    }
    let plain = plain.iter().sum();
    [plain, if CLIPS { clipped.iter().sum() } else { plain }]
}
