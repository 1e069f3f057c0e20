//! The time that is left, divided among measurements.

use std::time::{Duration, Instant};

/// Minimum time of a measurement, in seconds. Smaller budgets are exceeded.
const MIN_SECONDS: f64 = 0.5;

/// A time by which some measurements should be done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    end: Instant,
}

impl Budget {
    /// Returns a budget from now on.
    pub fn of_seconds(seconds: f64) -> Budget {
        let seconds = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        Budget {
            end: Instant::now() + seconds,
        }
    }

    /// Returns the seconds that are left.
    pub fn left(&self) -> f64 {
        self.end
            .saturating_duration_since(Instant::now())
            .as_secs_f64()
    }

    /// Returns a part of what is left.
    pub fn part(&self, fraction: f64) -> Budget {
        Budget::of_seconds(self.left() * fraction)
    }

    /// Returns the seconds for the next of `count` measurements.
    pub fn seconds_for_one_of(&self, count: usize) -> f64 {
        (self.left() / count.max(1) as f64).max(MIN_SECONDS)
    }
}

/// Rounds a number of entries down to 1, 2 or 5 times a power of ten.
pub(super) fn round_down(count: f64) -> u64 {
    let power = 10f64.powf(count.max(1.0).log10().floor());
    let digit = [5.0, 2.0, 1.0].into_iter().find(|d| d * power <= count);
    (digit.unwrap_or(1.0) * power) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_rounded_down() {
        for (count, rounded) in [
            (0.0, 1),
            (1.9, 1),
            (4999.0, 2000),
            (1e6, 1_000_000),
            (7e7, 50_000_000),
        ] {
            assert_eq!(round_down(count), rounded);
        }
    }

    #[test]
    fn time_is_shared_equally() {
        let budget = Budget::of_seconds(100.0);
        assert!((budget.seconds_for_one_of(4) - 25.0).abs() < 1.0);
        assert!((budget.part(0.1).left() - 10.0).abs() < 1.0);
        assert_eq!(Budget::of_seconds(f64::NAN).left(), 0.0);
        assert_eq!(Budget::of_seconds(0.0).seconds_for_one_of(9), MIN_SECONDS);
    }
}
