//! Popularity of rows: the Zipf-Mandelbrot law, p(rank r) proportional to 1 / (r + shift)^exponent.
//!
//! Plain Zipf (shift 0) makes the first rows far too popular: the most rated film of MovieLens has 0.35% of all ratings,
//! not 10%. The shift flattens the head of the distribution and keeps its tail.

use crate::error::{Error, Result};

/// A Zipf-Mandelbrot distribution over the rows of a mode.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ZipfMandelbrot {
    /// The exponent: 0 is uniform, 1 is Zipf's law.
    pub exponent: f64,
    /// The shift, which flattens the head of the distribution.
    pub shift: f64,
}

impl ZipfMandelbrot {
    /// The uniform distribution.
    pub const UNIFORM: ZipfMandelbrot = ZipfMandelbrot {
        exponent: 0.0,
        shift: 0.0,
    };

    pub(super) fn validate(self) -> Result<()> {
        let is_within = |x: f64, bound: f64| (0.0..=bound).contains(&x);
        if is_within(self.exponent, 10.0) && is_within(self.shift, 1e12) {
            return Ok(());
        }
        Err(Error::argument(format!(
            "skew {}:{}; the exponent is 0 to 10 and the shift 0 to 1e12",
            self.exponent, self.shift
        )))
    }

    /// Returns the rank, counted from 0, at quantile `u` (0 to 1) among `n` rows. It increases with `u`.
    ///
    /// It is the inverse distribution function of the law with a continuous rank.
    pub(super) fn rank_at_quantile(self, u: f64, n: u64) -> u64 {
        let (a, b) = (1.0 + self.shift, n as f64 + 1.0 + self.shift);
        let s = self.exponent;
        let x = if s == 0.0 {
            a + u * (b - a)
        } else if (s - 1.0).abs() < 1e-9 {
            a * ((b / a).ln() * u).exp()
        } else {
            let e = 1.0 - s;
            let (low, high) = (a.powf(e), b.powf(e));
            (low + u * (high - low)).powf(1.0 / e)
        };
        // Rounding may exceed either end by one.
        ((x - a).max(0.0) as u64).min(n - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_frequencies_follow_the_law() {
        for (exponent, shift) in [(0.0, 0.0), (0.5, 0.0), (1.0, 50.0), (1.7, 3.0)] {
            let law = ZipfMandelbrot { exponent, shift };
            let n = 1000;
            let quantiles = 1_000_000;
            let mut counts = vec![0u64; n as usize];
            let mut last = 0;
            for i in 0..quantiles {
                let rank = law.rank_at_quantile((f64::from(i) + 0.5) / f64::from(quantiles), n);
                assert!(rank >= last);
                last = rank;
                counts[rank as usize] += 1;
            }
            let weight = |r: f64| (r + shift).powf(-exponent);
            let total: f64 = (1..=n).map(|r| weight(r as f64 + 0.5)).sum();
            for r in [0usize, 9, 99, 999] {
                let expected = weight(r as f64 + 1.5) / total * f64::from(quantiles);
                let ratio = counts[r] as f64 / expected;
                assert!((0.85..1.2).contains(&ratio), "{law:?} rank {r}: {ratio}");
            }
        }
    }

    #[test]
    fn exponents_out_of_range_are_rejected() {
        for exponent in [-1.0, f64::NAN] {
            let law = ZipfMandelbrot {
                exponent,
                shift: 0.0,
            };
            assert!(law.validate().is_err());
        }
    }
}
