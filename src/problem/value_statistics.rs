//! Validates the values of a tensor or matrix and computes their weighted moments.

use super::scale_detector::ScaleDetector;
use crate::error::Result;
use crate::format::CooView;
use crate::progress::{Monitor, report_progress};
use crate::value_range::ValueRange;

/// Entries per partial sum, and between two progress reports.
const CHUNK: usize = 1 << 16;

/// Weighted statistics of the values of a tensor or matrix. All are 0 without entries.
#[derive(Clone, Copy)]
pub(super) struct ValueStatistics {
    /// Number of entries of positive weight.
    pub count: u64,
    /// Sum of the weights.
    pub total_weight: f64,
    pub mean: f64,
    pub root_mean_square: f64,
    pub standard_deviation: f64,
    /// The smallest and the largest value.
    pub range: ValueRange,
    /// Whether the values have a bounded scale ([`ScaleDetector`]).
    pub is_bounded: bool,
}

impl ValueStatistics {
    /// Reads all values and weights. Each must be finite, also as `f32`, which solvers compute in; weights must not be
    /// negative.
    pub(super) fn compute(view: &CooView<'_>, monitor: &dyn Monitor) -> Result<ValueStatistics> {
        let values = view.values();
        let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
        let mut count = 0;
        let mut scale = ScaleDetector::default();
        let mut total = Moments::default();
        // The variance is computed from differences to one of the values: that of values far from 0 would be lost in
        // the rounding of their squares.
        let pivot = if values.is_empty() {
            0.0
        } else {
            values.get(0)
        };
        let mut start = 0;
        while start < values.len() {
            report_progress(
                monitor,
                "checking values",
                start as u64,
                values.len() as u64,
            )?;
            let end = (start + CHUNK).min(values.len());
            let mut chunk = Moments::default();
            for i in start..end {
                let value = values.get(i);
                if !(value as f32).is_finite() {
                    return Err(view.not_finite(i, "value (as a 32-bit number)", value));
                }
                let weight = view.weight(i)?.unwrap_or(1.0) as f32;
                if weight > 0.0 {
                    min = min.min(value);
                    max = max.max(value);
                    count += 1;
                    scale.add(value);
                }
                chunk.add(f64::from(weight), value, value - pivot);
            }
            total.merge(&chunk);
            start = end;
        }
        if count == 0 {
            (min, max) = (0.0, 0.0);
        }
        let n = if count == 0 { 1.0 } else { total.weight };
        let variance = total.difference_squares / n - (total.differences / n).powi(2);
        Ok(ValueStatistics {
            count,
            total_weight: total.weight,
            mean: total.values / n,
            root_mean_square: (total.squares / n).sqrt(),
            standard_deviation: variance.max(0.0).sqrt(),
            range: ValueRange { min, max },
            is_bounded: scale.is_bounded(),
        })
    }
}

/// Weighted sums over entries.
#[derive(Default)]
struct Moments {
    weight: f64,
    values: f64,
    squares: f64,
    /// Sum of differences to the pivot, and of their squares.
    differences: f64,
    difference_squares: f64,
}

impl Moments {
    #[inline]
    fn add(&mut self, weight: f64, value: f64, difference: f64) {
        self.weight += weight;
        self.values += weight * value;
        self.squares += weight * (value * value);
        self.differences += weight * difference;
        self.difference_squares += weight * (difference * difference);
    }

    fn merge(&mut self, other: &Moments) {
        self.weight += other.weight;
        self.values += other.values;
        self.squares += other.squares;
        self.differences += other.differences;
        self.difference_squares += other.difference_squares;
    }
}
