//! Tells values on a bounded scale, such as ratings, from values without limits.
//!
//! The range of a sample is the range of the scale only if values pile up at its ends. Predictions of unbounded values must not be
//! clipped to the range of the training values: those of the largest values would be biased.

use std::collections::HashSet;

/// Largest number of distinct values of a discrete scale: ratings in steps of a percent have 101.
const MAX_DISTINCT: usize = 101;

/// Entries that each distinct value of a discrete scale has on average, at least. Measurements rarely repeat.
const MIN_REPETITIONS: u64 = 10;

/// Entries at each end of a continuous bounded scale, at least. The ends of unbounded values, even rounded ones, are in the tails
/// of their distribution and occur once or twice.
const MIN_ENTRIES_AT_END: u64 = 5;

/// Entries per entry at an end of a continuous bounded scale, at most.
const MAX_ENTRIES_PER_END: u64 = 1000;

/// Number of recent values that are known to be in the set, a power of two.
const RECENT: usize = 256;

/// Counts of the values seen so far.
pub(super) struct ScaleDetector {
    count: u64,
    /// The bits of distinct values, at most one more than [`MAX_DISTINCT`].
    distinct: HashSet<u64>,
    /// Some of these by their hash, because a search in the set is slow. Empty places have the bits of a NaN.
    recent: [u64; RECENT],
    min: End,
    max: End,
}

impl Default for ScaleDetector {
    fn default() -> Self {
        ScaleDetector {
            count: 0,
            distinct: HashSet::new(),
            recent: [u64::MAX; RECENT],
            min: End::default(),
            max: End::default(),
        }
    }
}

/// The extreme value so far, and how often it occurs.
#[derive(Default)]
struct End {
    value: f64,
    count: u64,
}

impl End {
    #[inline]
    fn add(&mut self, value: f64, is_beyond: bool) {
        if is_beyond || self.count == 0 {
            *self = End { value, count: 1 };
        } else if value == self.value {
            self.count += 1;
        }
    }
}

impl ScaleDetector {
    /// Adds a finite value.
    #[inline]
    pub(super) fn add(&mut self, value: f64) {
        self.count += 1;
        self.min.add(value, value < self.min.value);
        self.max.add(value, value > self.max.value);
        // Adding 0 makes the negative zero positive.
        let bits = (value + 0.0).to_bits();
        let place = bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - RECENT.trailing_zeros());
        let recent = &mut self.recent[place as usize];
        if *recent != bits && self.distinct.len() <= MAX_DISTINCT {
            self.distinct.insert(bits);
            *recent = bits;
        }
    }

    /// Returns whether the values are few and each occurs often, or whether many are equal to the smallest and to the largest one.
    pub(super) fn is_bounded(&self) -> bool {
        let distinct = self.distinct.len();
        let is_discrete =
            distinct <= MAX_DISTINCT && self.count >= MIN_REPETITIONS * distinct as u64;
        let is_end = |end: &End| {
            end.count >= MIN_ENTRIES_AT_END && end.count >= self.count / MAX_ENTRIES_PER_END
        };
        is_discrete || (is_end(&self.min) && is_end(&self.max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    fn is_bounded(values: impl Iterator<Item = f64>) -> bool {
        let mut scale = ScaleDetector::default();
        values.for_each(|x| scale.add(x));
        scale.is_bounded()
    }

    #[test]
    fn ratings_and_censored_values_are_bounded_and_measurements_are_not() {
        let mut s = RandomStream::new(&[2]);
        let normals: Vec<f64> = (0..100_000).map(|_| s.standard_normal()).collect();
        let all = || normals.iter().copied();
        // Stars, and ratings in steps of a percent.
        assert!(is_bounded(all().map(|x| (3.0 + x).round().clamp(1.0, 5.0))));
        assert!(is_bounded(
            all().map(|x| (50.0 + 20.0 * x).round().clamp(0.0, 100.0))
        ));
        // Ones and zeros.
        assert!(is_bounded(all().map(|x| f64::from(x > 0.0))));
        // A slider between 0 and 1.
        assert!(is_bounded(all().map(|x| (0.5 + 0.2 * x).clamp(0.0, 1.0))));
        // Measurements, also rounded ones, and amounts with many zeros.
        assert!(!is_bounded(all()));
        assert!(!is_bounded(all().map(|x| (100.0 * x).round() / 100.0)));
        assert!(!is_bounded(all().map(|x| x.max(0.0))));
        // Too few to tell.
        assert!(!is_bounded(all().take(50)));
        assert!(!is_bounded([1.0, 5.0].into_iter()));
    }
}
