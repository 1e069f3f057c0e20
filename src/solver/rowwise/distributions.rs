//! Gamma and chi-square random numbers.

use crate::random::RandomStream;

/// Samples the gamma distribution with this shape and rate 1, by the rejection method of Marsaglia and Tsang ("A
/// simple method for generating gamma variables", 2000).
pub(super) fn sample_gamma(s: &mut RandomStream, shape: f64) -> f64 {
    if shape < 1.0 {
        let u = (1.0 - s.uniform()).powf(1.0 / shape);
        return sample_gamma(s, shape + 1.0) * u;
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let z = s.standard_normal();
        let v = (1.0 + c * z).powi(3);
        if v > 0.0 && (1.0 - s.uniform()).ln() < 0.5 * z * z + d - d * v + d * v.ln() {
            return d * v;
        }
    }
}

/// Samples the chi-square distribution.
pub(super) fn sample_chi_square(s: &mut RandomStream, degrees_of_freedom: f64) -> f64 {
    2.0 * sample_gamma(s, 0.5 * degrees_of_freedom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gamma_samples_have_the_right_mean_and_variance() {
        for shape in [0.3, 1.0, 2.5, 40.0] {
            let mut s = RandomStream::new(&[3]);
            let samples: Vec<f64> = (0..100_000).map(|_| sample_gamma(&mut s, shape)).collect();
            let mean = samples.iter().sum::<f64>() / samples.len() as f64;
            let squares = samples.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
            let variance = squares / samples.len() as f64;
            assert!((mean / shape - 1.0).abs() < 0.03, "{shape} {mean}");
            assert!((variance / shape - 1.0).abs() < 0.06, "{shape} {variance}");
        }
    }
}
