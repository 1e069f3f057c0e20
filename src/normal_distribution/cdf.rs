//! The distribution function of the standard normal distribution.

use std::f64::consts::{PI, TAU};

/// The absolute value from which on tails are computed by a continued fraction instead of a series.
const TAIL: f64 = 4.0;

/// Returns the density of the standard normal distribution.
pub(crate) fn normal_density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / TAU.sqrt()
}

/// Returns the probability of a value below `z`, with a relative error below 1e-11 also in the lower tail.
pub(crate) fn normal_cdf(z: f64) -> f64 {
    if z < -TAIL {
        lower_tail(z)
    } else if z > TAIL {
        1.0 - lower_tail(-z)
    } else {
        0.5 + normal_density(z) * central_series(z)
    }
}

/// Returns the probability of a value between `a` and `b`, without cancellation in the upper tail.
pub(crate) fn normal_probability(a: f64, b: f64) -> f64 {
    let p = if a > 0.0 {
        normal_cdf(-a) - normal_cdf(-b)
    } else {
        normal_cdf(b) - normal_cdf(a)
    };
    p.max(0.0)
}

/// Returns the continuous ranked probability score of a standard normal forecast if `z` occurs.
pub(crate) fn normal_crps(z: f64) -> f64 {
    z * (2.0 * normal_cdf(z) - 1.0) + 2.0 * normal_density(z) - 1.0 / PI.sqrt()
}

/// Returns z + z^3 / 3 + z^5 / (3 * 5) + ...: the distribution function less 1/2, divided by the density.
fn central_series(z: f64) -> f64 {
    let (mut sum, mut term, mut divisor) = (z, z, 1.0);
    while term.abs() > f64::EPSILON * sum.abs() {
        divisor += 2.0;
        term *= z * z / divisor;
        sum += term;
    }
    sum
}

/// Returns the distribution function at `z` below -[`TAIL`], from the continued fraction of Mills' ratio.
fn lower_tail(z: f64) -> f64 {
    let x = -z;
    let fraction = (1..=60).rev().fold(x, |rest, k| x + f64::from(k) / rest);
    normal_density(z) / fraction
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal_distribution::normal_quantile;

    #[test]
    fn probabilities_match_known_values() {
        for (z, p) in [
            (0.0, 0.5),
            (1.0, 0.841344746068543),
            (-1.959963984540054, 0.025),
            (-4.5, 3.39767312473006e-6),
            (-10.0, 7.61985302416053e-24),
            (4.5, 1.0 - 3.39767312473006e-6),
            (f64::NEG_INFINITY, 0.0),
            (f64::INFINITY, 1.0),
        ] {
            let found = normal_cdf(z);
            assert!((found - p).abs() <= 1e-11 * p, "{z}: {found} {p}");
        }
        let upper = normal_probability(9.0, f64::INFINITY);
        assert!((upper / normal_cdf(-9.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_distribution_function_is_the_inverse_of_the_quantile() {
        for k in 1..200 {
            let p = f64::from(k) / 200.0;
            assert!((normal_cdf(normal_quantile(p)) - p).abs() < 1e-8, "{p}");
        }
    }

    #[test]
    fn the_crps_is_the_integral_of_the_squared_difference_of_distribution_functions() {
        for z in [-2.0, 0.0, 0.7, 3.5] {
            let step = 1e-3;
            let integral: f64 = (-12_000..12_000)
                .map(|k| {
                    let t = (f64::from(k) + 0.5) * step;
                    let observed = if t > z { 1.0 } else { 0.0 };
                    (normal_cdf(t) - observed).powi(2) * step
                })
                .sum();
            assert!((normal_crps(z) - integral).abs() < 1e-3, "{z}");
        }
    }
}
