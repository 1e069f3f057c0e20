//! How the noise of the tensor follows from the residuals in a sweep of `gibbs`.

/// The relation between the residuals of the training entries and the noise.
///
/// Residuals of training entries are smaller than errors on other entries, the more so the more parameters there are per
/// entry. Noise as small as the residuals would let the chain fit noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::solver) struct NoiseModel {
    /// Variance of the noise that drives the sampler, as a multiple of that of the residuals.
    pub variance_ratio: f64,
    /// Variance of a value given a posterior sample, for predictive intervals, as a multiple of that of the residuals.
    pub interval_ratio: f64,
    /// Whether factors stay at their prior means, so that biases alone predict.
    pub has_biases_only: bool,
}

impl NoiseModel {
    /// Describes the noise, given the evidence for it.
    pub(super) fn describe(self, evidence: &str) -> String {
        if self.has_biases_only {
            return format!("too large for factors, biases alone predict ({evidence})");
        }
        let ratio = self.variance_ratio;
        format!("variance {ratio:.2} times that of the residuals ({evidence})")
    }
}

impl Default for NoiseModel {
    /// Returns noise with the variance of the residuals.
    fn default() -> NoiseModel {
        NoiseModel {
            variance_ratio: 1.0,
            interval_ratio: 1.0,
            has_biases_only: false,
        }
    }
}
