//! The link between the value of a posterior sample and the probability of the high one of two values.

use crate::normal_distribution::tabulated_normal_cdf;

/// The probit link. An entry whose sample has the value x has the high value with probability
/// Phi((x - threshold) / deviation), where Phi is the distribution function of the standard normal distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProbitLink {
    /// The low value of the data.
    pub low: f64,
    /// The high value of the data.
    pub high: f64,
    /// The value of a sample at which both are equally likely.
    pub threshold: f64,
    /// Standard deviation of the latent noise.
    pub deviation: f64,
}

impl ProbitLink {
    /// Returns the probability of the high value if the value x is normal with this mean and variance: the mean of the
    /// probabilities.
    pub fn probability(&self, mean: f64, variance: f64) -> f64 {
        tabulated_normal_cdf(self.score(mean, variance))
    }

    /// Returns a score that grows with the probability: its normal quantile.
    pub(crate) fn score(&self, mean: f64, variance: f64) -> f64 {
        (mean - self.threshold) / (self.deviation * self.deviation + variance).sqrt()
    }

    /// Returns the expected value of the data, given the probability of the high value.
    pub fn expected_value(&self, probability: f64) -> f64 {
        // Exactly the high value at probability 1.
        (1.0 - probability) * self.low + probability * self.high
    }

    /// Returns whether all numbers are finite and the deviation is positive.
    pub(super) fn is_valid(&self) -> bool {
        let numbers = [self.low, self.high, self.threshold, self.deviation];
        numbers.iter().all(|x| x.is_finite()) && self.deviation > 0.0 && self.low < self.high
    }
}
