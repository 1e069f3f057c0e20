//! Validates the values of a tensor or matrix and computes their weighted moments.

use super::entry_source::EntrySource;
use super::scale_detector::ScaleDetector;
use crate::error::{Error, Result};
use crate::progress::{Monitor, report_progress};
use crate::value_range::ValueRange;

/// Entries per partial sum, and between two progress reports.
const CHUNK: usize = 1 << 16;

/// Smallest distance of an outlier from all other values, as a multiple of their range.
const MIN_OUTLIER_DISTANCE: f64 = 100.0;

/// Fewest entries beside which a value can be an outlier.
const MIN_OUTLIER_COUNT: u64 = 20;

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
    pub outlier: Option<Outlier>,
}

/// A single value that is far from all others and has most of the variance.
#[derive(Clone, Copy)]
pub(crate) struct Outlier {
    /// Its entry, counted from 0.
    pub entry: usize,
    pub value: f64,
    /// The range of all other values.
    pub others: ValueRange,
}

impl ValueStatistics {
    /// Validates and reads all entries. Values must be finite also as `f32`, which solvers compute in.
    pub(super) fn compute(
        entries: &EntrySource<'_>,
        monitor: &dyn Monitor,
    ) -> Result<ValueStatistics> {
        let view = entries.view();
        let values = view.values();
        let mut extremes = Extremes::default();
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
            view.validate(start..end)?;
            let mut chunk = Moments::default();
            for i in start..end {
                let value = values.get(i);
                if !(value as f32).is_finite() {
                    return Err(view.not_finite(i, "value (as a 32-bit number)", value));
                }
                let weight = entries.weights.get(i);
                if weight > 0.0 {
                    extremes.add(i, value);
                    count += 1;
                    scale.add(value);
                }
                chunk.add(f64::from(weight), value, value - pivot);
            }
            total.merge(&chunk);
            start = end;
        }
        let range = match count {
            0 => ValueRange { min: 0.0, max: 0.0 },
            _ => extremes.range(),
        };
        if !((range.max - range.min) as f32).is_finite() {
            let ValueRange { min, max } = range;
            return Err(Error::entry(
                view.name(),
                extremes.largest_entry as u64,
                format!(
                    "has the value {max:e}, and its difference to the smallest, {min:e}, exceeds the range of 32-bit numbers; \
                     scale the values down, for example to a standard deviation near 1"
                ),
            ));
        }
        let n = if count == 0 { 1.0 } else { total.weight };
        let variance = total.difference_squares / n - (total.differences / n).powi(2);
        let mut statistics = ValueStatistics {
            count,
            total_weight: total.weight,
            mean: total.values / n,
            root_mean_square: (total.squares / n).sqrt(),
            standard_deviation: variance.max(0.0).sqrt(),
            range,
            is_bounded: scale.is_bounded(),
            outlier: None,
        };
        statistics.outlier = extremes.outlier().filter(|outlier| {
            let weight = f64::from(entries.weights.get(outlier.entry));
            let square = weight * (outlier.value - statistics.mean).powi(2);
            count >= MIN_OUTLIER_COUNT
                && !statistics.is_bounded
                && square > 0.5 * statistics.standard_deviation.powi(2) * total.weight
        });
        Ok(statistics)
    }
}

/// The two smallest and the two largest values so far, with the entries of the first ones.
struct Extremes {
    smallest: [f64; 2],
    largest: [f64; 2],
    smallest_entry: usize,
    largest_entry: usize,
}

impl Default for Extremes {
    fn default() -> Self {
        Extremes {
            smallest: [f64::INFINITY; 2],
            largest: [f64::NEG_INFINITY; 2],
            smallest_entry: 0,
            largest_entry: 0,
        }
    }
}

impl Extremes {
    #[inline]
    fn add(&mut self, entry: usize, value: f64) {
        if value < self.smallest[1] {
            if value < self.smallest[0] {
                self.smallest = [value, self.smallest[0]];
                self.smallest_entry = entry;
            } else {
                self.smallest[1] = value;
            }
        }
        if value > self.largest[1] {
            if value > self.largest[0] {
                self.largest = [value, self.largest[0]];
                self.largest_entry = entry;
            } else {
                self.largest[1] = value;
            }
        }
    }

    fn range(&self) -> ValueRange {
        ValueRange {
            min: self.smallest[0],
            max: self.largest[0],
        }
    }

    /// Returns the value at one end that is far from all others. There must be three values.
    fn outlier(&self) -> Option<Outlier> {
        let ([min, second], [max, before]) = (self.smallest, self.largest);
        let is_far = |gap: f64, others: f64| gap > MIN_OUTLIER_DISTANCE * others;
        let outlier = |entry: usize, value: f64, [min, max]: [f64; 2]| Outlier {
            entry,
            value,
            others: ValueRange { min, max },
        };
        if is_far(max - before, before - min) {
            Some(outlier(self.largest_entry, max, [min, before]))
        } else if is_far(second - min, max - second) {
            Some(outlier(self.smallest_entry, min, [second, max]))
        } else {
            None
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{CooView, Values};

    fn outlier(values: &[f64], weights: Option<&[f64]>) -> Option<(usize, f64)> {
        let column: Vec<u32> = (0..values.len() as u32).collect();
        let dims = [values.len() as u64; 2];
        let view = CooView::new("t", &dims, &[&column, &column], Values::F64(values)).unwrap();
        let view = match weights {
            Some(weights) => view.with_weights(Values::F64(weights)).unwrap(),
            None => view,
        };
        let entries = EntrySource::new(view, &()).unwrap();
        let found = ValueStatistics::compute(&entries, &()).unwrap().outlier;
        found.map(|o| (o.entry, o.value))
    }

    #[test]
    fn a_single_value_far_from_all_others_is_an_outlier() {
        let mut values: Vec<f64> = (0..300).map(|k| f64::from(k % 97)).collect();
        assert_eq!(outlier(&values, None), None);
        for far in [1e6, -1e6, 1e30] {
            values[7] = far;
            assert_eq!(outlier(&values, None), Some((7, far)));
        }
        // With a small weight it does not matter.
        let mut weights = vec![1.0; 300];
        weights[7] = 1e-60;
        assert_eq!(outlier(&values, Some(&weights)), None);
        // Two are not a single one.
        values[8] = 1e30;
        assert_eq!(outlier(&values, None), None);
        // A single 1 among zeros is one of two values, and few values have no outliers.
        assert_eq!(outlier(&[&[0.0; 99][..], &[1.0]].concat(), None), None);
        assert_eq!(outlier(&[1.0, 2.0, 3.5, 1e9], None), None);
    }
}
