//! The range of the training values, which predictions are clipped to.

/// A closed interval of values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ValueRange {
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
}

impl ValueRange {
    /// All values.
    pub const UNBOUNDED: ValueRange = ValueRange {
        min: f64::NEG_INFINITY,
        max: f64::INFINITY,
    };

    /// Returns the value of the range nearest to `value`. Unlike [`f64::clamp`], it returns `min` for NaN and never panics.
    #[inline(always)]
    pub fn clip(self, value: f64) -> f64 {
        value.max(self.min).min(self.max)
    }
}
