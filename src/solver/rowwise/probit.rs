//! The probit likelihood of two-valued tensors, by data augmentation (Albert and Chib, "Bayesian analysis of binary and
//! polychotomous response data", 1993).
//!
//! Every entry has a latent value z = x + noise, where x is the model's value and the noise is normal. The entry has the high
//! value if z is above a threshold, and the low value otherwise. Given z, the rows have the same conditional distributions as with
//! real values; given the rows, z is normal around x, truncated at the threshold. A sweep samples the latent values before each
//! block of rows.
//!
//! The data do not determine the scale and the origin of x. They are chosen so that the expected scaled value, as a function of x,
//! equals x at the mean and has slope 1 there. So x is close to the scaled value that a Gaussian model predicts, and both
//! likelihoods share priors and starting values.

use super::truncated_normal::quantile_above;
use super::value_scaling::ValueScaling;
use crate::error::Result;
use crate::model::ProbitLink;
use crate::normal_distribution::{normal_density, normal_quantile, tabulated_normal_cdf};
use crate::random::unit_interval;
use crate::solver::entries::EntryList;
use crate::value_range::ValueRange;

/// The fraction of the high value is taken to be at least this, and at most 1 less this.
const MIN_FRACTION: f64 = 1e-6;

/// The probit likelihood in scaled units. Entries store their latent value, which implies their label.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Probit {
    /// Latent values above it belong to the high value.
    threshold: f32,
    /// Standard deviation of the latent noise.
    deviation: f64,
    /// The scaled low and high value.
    values: [f32; 2],
}

impl Probit {
    /// Returns the likelihood of entries with exactly two values; `None` for others.
    pub(super) fn of(entries: &EntryList, scaling: ValueScaling) -> Result<Option<Probit>> {
        let Some([low, high]) = two_values(entries.original_values()) else {
            return Ok(None);
        };
        let (mut high_weight, mut total) = (0.0, 0.0);
        for (i, &x) in entries.original_values().iter().enumerate() {
            let weight = f64::from(entries.weight(i));
            total += weight;
            high_weight += if x == high { weight } else { 0.0 };
        }
        let fraction = (high_weight / total).clamp(MIN_FRACTION, 1.0 - MIN_FRACTION);
        let center = normal_quantile(fraction);
        let scaled = scaling.scaled(&[low, high])?;
        let values = [scaled[0], scaled[1]];
        let deviation = f64::from(values[1] - values[0]) * normal_density(center);
        Ok(Some(Probit {
            threshold: (-center * deviation) as f32,
            deviation,
            values,
        }))
    }

    /// Returns the likelihood of a model that was fitted with this link, in the units of its posterior samples.
    pub(in crate::solver) fn from_link(link: &ProbitLink, mean: f64, scale: f64) -> Probit {
        let scaled = |x: f64| ((x - mean) / scale) as f32;
        Probit {
            threshold: scaled(link.threshold),
            deviation: link.deviation / scale,
            values: [scaled(link.low), scaled(link.high)],
        }
    }

    /// The scaled low and high value.
    pub(super) fn values(&self) -> [f32; 2] {
        self.values
    }

    /// Variance of the latent noise.
    pub(in crate::solver) fn variance(&self) -> f64 {
        self.deviation * self.deviation
    }

    /// Variance of the scaled values, given the fraction of the high one alone.
    pub(super) fn value_variance(&self) -> f64 {
        let [low, high] = self.values.map(f64::from);
        let fraction = tabulated_normal_cdf(-f64::from(self.threshold) / self.deviation);
        fraction * (1.0 - fraction) * (high - low).powi(2)
    }

    /// Returns the scaled value of an entry, given its latent value.
    pub(super) fn label(&self, latent: f32) -> f32 {
        self.values[usize::from(latent > self.threshold)]
    }

    /// Returns the expected scaled value of an entry whose model value is normal with this mean and variance.
    pub(super) fn expected_value(&self, mean: f64, variance: f64) -> f64 {
        let [low, high] = self.values.map(f64::from);
        low + (high - low) * tabulated_normal_cdf(self.score(mean, variance))
    }

    /// Returns the derivative of [`Self::expected_value`] by the mean.
    pub(super) fn slope(&self, mean: f64, variance: f64) -> f64 {
        let [low, high] = self.values.map(f64::from);
        let deviation = (self.variance() + variance).sqrt();
        (high - low) * normal_density(self.score(mean, variance)) / deviation
    }

    fn score(&self, mean: f64, variance: f64) -> f64 {
        (mean - f64::from(self.threshold)) / (self.variance() + variance).sqrt()
    }

    /// Samples the latent value of an entry with this model value, on the same side of the threshold as `latent`. The hash
    /// `random` is its randomness.
    #[inline]
    pub(super) fn sample(&self, x: f64, latent: f32, random: u64) -> f32 {
        let bound = (f64::from(self.threshold) - x) / self.deviation;
        if bound.is_nan() {
            return latent;
        }
        let uniform = 1.0 - unit_interval(random);
        if latent > self.threshold {
            let z = (x + self.deviation * quantile_above(bound, uniform)) as f32;
            z.max(self.threshold.next_up())
        } else {
            let z = (x - self.deviation * quantile_above(-bound, uniform)) as f32;
            z.min(self.threshold)
        }
    }

    /// Returns the link in units of the data, where scaled values are multiples of `scale` around `mean` and `range` has the
    /// two values.
    pub(super) fn link(&self, mean: f64, scale: f64, range: ValueRange) -> ProbitLink {
        ProbitLink {
            low: range.min,
            high: range.max,
            threshold: mean + scale * f64::from(self.threshold),
            deviation: scale * self.deviation,
        }
    }
}

/// Returns the low and the high value if there are exactly two values.
fn two_values(values: &[f32]) -> Option<[f32; 2]> {
    let first = *values.first()?;
    let second = *values.iter().find(|x| **x != first)?;
    let is_two = values.iter().all(|&x| x == first || x == second);
    is_two.then(|| [first.min(second), first.max(second)])
}
