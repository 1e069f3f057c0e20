//! The Normal-Wishart hyperprior of the rows of a mode.
//!
//! The rows u_1, ..., u_n of a mode (with their biases as a last element) are independent samples of N(mu, Lambda^-1).
//! Mean and precision have a Normal-Wishart distribution, which is conjugate:
//!
//! ```text
//! Lambda ~ Wishart(W0, nu0),   mu | Lambda ~ N(mu0, (beta0 Lambda)^-1)
//! given the rows, with their mean m and S = sum (u_i - m)(u_i - m)^T:
//!   beta   = beta0 + n
//!   mu*    = (beta0 mu0 + n m) / beta
//!   nu     = nu0 + n
//!   W^-1   = W0^-1 + S + (beta0 n / beta) (m - mu0)(m - mu0)^T
//! ```
//!
//! This is the hierarchical prior of Bayesian probabilistic matrix factorization (Salakhutdinov and Mnih, ICML 2008),
//! which Xiong et al. (SDM 2010) extend to tensors.

use super::gaussian_prior::GaussianPrior;
use crate::linalg::{cholesky, dot, regularized_cholesky, solve_lower, solve_lower_transposed};
use crate::random::RandomStream;
use crate::solver::gram::RowMoments;

/// The parameters of the hyperprior of a mode's rows. W0^-1 is a multiple of the identity.
#[derive(Debug, Clone, Copy)]
pub(super) struct NormalWishart {
    /// Every element of mu0 but that of the bias, which is 0.
    pub mean: f64,
    /// beta0: how many rows the prior mean counts as.
    pub mean_strength: f64,
    /// Prior variance of an element of a row: W0^-1 = nu0 times this.
    pub variance: f64,
    /// nu0 less the number of elements of a row.
    pub extra_degrees_of_freedom: f64,
}

/// The Normal-Wishart distribution of mean and precision given the rows.
struct Posterior {
    /// mu*.
    mean: Vec<f64>,
    beta: f64,
    /// W^-1: the lower triangle, row-major.
    inverse_scale: Vec<f64>,
    /// nu.
    degrees_of_freedom: f64,
}

impl NormalWishart {
    /// Computes the posterior given the moments of the rows. With `has_biases` the last element of a row is its
    /// bias, whose prior mean is 0.
    fn posterior(&self, rows: &RowMoments, has_biases: bool) -> Posterior {
        let size = rows.sum.len();
        let n = rows.count;
        let prior_mean = |i: usize| {
            if has_biases && i + 1 == size {
                0.0
            } else {
                self.mean
            }
        };
        let mean: Vec<f64> = rows.sum.iter().map(|x| x / n.max(1.0)).collect();
        let beta = self.mean_strength + n;
        let degrees_of_freedom = size as f64 + self.extra_degrees_of_freedom;
        let mut inverse_scale = vec![0.0; size * size];
        let shrinkage = self.mean_strength * n / beta;
        for i in 0..size {
            for j in 0..=i {
                inverse_scale[i * size + j] = rows.outer_products[i * size + j]
                    - n * mean[i] * mean[j]
                    + shrinkage * (mean[i] - prior_mean(i)) * (mean[j] - prior_mean(j));
            }
            inverse_scale[i * size + i] += self.variance * degrees_of_freedom;
        }
        Posterior {
            mean: (0..size)
                .map(|i| (self.mean_strength * prior_mean(i) + n * mean[i]) / beta)
                .collect(),
            beta,
            inverse_scale,
            degrees_of_freedom: degrees_of_freedom + n,
        }
    }

    /// Returns the posterior expectations of mean and precision, nu W and mu*.
    pub(super) fn expectation(&self, rows: &RowMoments, has_biases: bool) -> GaussianPrior {
        let posterior = self.posterior(rows, has_biases);
        let size = posterior.mean.len();
        let c = posterior.inverse_scale_factor();
        let mut precision = vec![0.0; size * size];
        for (j, column) in precision.chunks_exact_mut(size).enumerate() {
            column[j] = posterior.degrees_of_freedom;
            solve_lower(size, &c, column);
            solve_lower_transposed(size, &c, column);
        }
        GaussianPrior::new(&posterior.mean, &precision)
    }

    /// Samples mean and precision from the posterior.
    ///
    /// With W^-1 = C C^T and the Bartlett factor A (lower triangular, chi distributed on the diagonal, standard normal
    /// below), B = C^-T A gives the Wishart sample B B^T.
    pub(super) fn sample(
        &self,
        rows: &RowMoments,
        has_biases: bool,
        s: &mut RandomStream,
    ) -> GaussianPrior {
        let posterior = self.posterior(rows, has_biases);
        let size = posterior.mean.len();
        let c = posterior.inverse_scale_factor();
        let mut b = vec![0.0; size * size];
        let mut column = vec![0.0; size];
        for j in 0..size {
            column.fill(0.0);
            column[j] = sample_chi_square(s, posterior.degrees_of_freedom - j as f64).sqrt();
            column[j + 1..]
                .iter_mut()
                .for_each(|x| *x = s.standard_normal());
            solve_lower_transposed(size, &c, &mut column);
            (0..size).for_each(|i| b[i * size + j] = column[i]);
        }
        let mut precision = vec![0.0; size * size];
        for i in 0..size {
            for j in 0..=i {
                let element = dot(&b[i * size..(i + 1) * size], &b[j * size..(j + 1) * size]);
                precision[i * size + j] = element;
                precision[j * size + i] = element;
            }
        }
        let l =
            cholesky(size, &precision).unwrap_or_else(|| regularized_cholesky(size, &precision));
        let mut noise: Vec<f64> = (0..size)
            .map(|_| s.standard_normal() / posterior.beta.sqrt())
            .collect();
        solve_lower_transposed(size, &l, &mut noise);
        let mean: Vec<f64> = posterior
            .mean
            .iter()
            .zip(noise)
            .map(|(m, z)| m + z)
            .collect();
        GaussianPrior::new(&mean, &precision)
    }
}

impl Posterior {
    /// The Cholesky factor C of W^-1.
    fn inverse_scale_factor(&self) -> Vec<f64> {
        let (size, a) = (self.mean.len(), &self.inverse_scale);
        cholesky(size, a).unwrap_or_else(|| regularized_cholesky(size, a))
    }
}

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
    use crate::simd::padded_len;

    #[test]
    fn with_many_rows_a_sample_is_close_to_their_mean_and_covariance() {
        // Two elements, standard deviations 2 and 0.5, correlation 0.6, means 3 and -1.
        let mut s = RandomStream::new(&[4]);
        let size = 2;
        let mut rows = RowMoments {
            count: 0.0,
            sum: vec![0.0; 2],
            outer_products: vec![0.0; 4],
        };
        for _ in 0..50_000 {
            let (a, b) = (s.standard_normal(), s.standard_normal());
            let x = [3.0 + 2.0 * a, -1.0 + 0.5 * (0.6 * a + 0.8 * b)];
            rows.count += 1.0;
            for i in 0..size {
                rows.sum[i] += x[i];
                (0..=i).for_each(|j| rows.outer_products[i * size + j] += x[i] * x[j]);
            }
        }
        let hyperprior = NormalWishart {
            mean: 0.0,
            mean_strength: 1.0,
            variance: 1.0,
            extra_degrees_of_freedom: 1.0,
        };
        let prior = hyperprior.sample(&rows, false, &mut s);
        let p = |i: usize, j: usize| f64::from(prior.precision[i * padded_len(2) + j]);
        let det = p(0, 0) * p(1, 1) - p(0, 1) * p(0, 1);
        let covariance = [p(1, 1) / det, -p(0, 1) / det, p(0, 0) / det];
        for (got, expected) in covariance.iter().zip([4.0, 0.6, 0.25]) {
            assert!((got / expected - 1.0).abs() < 0.05, "{covariance:?}");
        }
        let r = |i: usize| f64::from(prior.precision_times_mean[i]);
        let mean = [
            (p(1, 1) * r(0) - p(0, 1) * r(1)) / det,
            (p(0, 0) * r(1) - p(0, 1) * r(0)) / det,
        ];
        assert!(
            (mean[0] - 3.0).abs() < 0.05 && (mean[1] + 1.0).abs() < 0.02,
            "{mean:?}"
        );
    }
}

#[cfg(test)]
mod distributions_tests {
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
