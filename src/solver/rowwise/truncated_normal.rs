//! Samples of truncated normal distributions.

use crate::normal_distribution::{normal_quantile, tabulated_normal_cdf};

/// Lower bound from which on the tail is approximated.
const FAR_TAIL: f64 = 30.0;

/// Returns the value of the standard normal distribution above `bound` whose upper tail is `uniform` of that of `bound`: a sample if
/// `uniform` is one of the uniform distribution on (0, 1]. The bound must not be NaN.
///
/// Far in the tail the density is taken to be proportional to z exp(-z^2 / 2), whose quantiles have a closed form. The
/// relative error of the mean distance to the bound is about 1 / bound^2.
#[inline]
pub(super) fn quantile_above(bound: f64, uniform: f64) -> f64 {
    let z = if bound < FAR_TAIL {
        // The upper tail of z is the lower tail of -z.
        -normal_quantile((uniform * tabulated_normal_cdf(-bound)).min(MAX_PROBABILITY))
    } else {
        // sqrt(bound^2 + d) without overflow.
        let d = -2.0 * uniform.ln();
        bound + d / (bound + bound.hypot(d.sqrt()))
    };
    z.max(bound)
}

/// Largest probability below 1.
const MAX_PROBABILITY: f64 = 1.0 - f64::EPSILON / 2.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal_distribution::normal_density;
    use crate::random::RandomStream;

    #[test]
    fn samples_have_the_moments_of_the_truncated_distribution() {
        for bound in [-40.0, -3.0, -0.5, 0.0, 0.7, 2.0, 6.0, 29.9] {
            let mut s = RandomStream::new(&[4]);
            let count = 40_000;
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..count {
                let z = quantile_above(bound, 1.0 - s.uniform());
                assert!(z >= bound);
                sum += z - bound;
                squares += (z - bound).powi(2);
            }
            let mean = sum / f64::from(count);
            let variance = squares / f64::from(count) - mean * mean;
            // The inverse Mills ratio is the mean.
            let mills = normal_density(bound) / tabulated_normal_cdf(-bound);
            let expected = match bound < 20.0 {
                true => 1.0 + bound * mills - mills * mills,
                // Without cancellation.
                false => (1.0 - 6.0 / (bound * bound)) / (bound * bound),
            };
            assert!(
                ((mean + bound - mills) / (mills - bound)).abs() < 0.03,
                "{bound}: {mean}"
            );
            assert!(
                (variance / expected - 1.0).abs() < 0.06,
                "{bound}: {variance} {expected}"
            );
        }
    }

    #[test]
    fn samples_far_in_the_tail_stay_there() {
        for bound in [38.0, 1e3, 1e8, 1e200] {
            let mut s = RandomStream::new(&[9]);
            let mean = (0..1000)
                .map(|_| quantile_above(bound, 1.0 - s.uniform()) - bound)
                .sum::<f64>()
                / 1e3;
            // The tail is nearly exponential with this rate.
            assert!(mean >= 0.0 && mean <= 1.2 / bound, "{bound}: {mean}");
        }
    }
}
