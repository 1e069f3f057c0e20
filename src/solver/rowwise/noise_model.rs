//! How the noise of the tensor follows from the residuals in a sweep of `gibbs`.

use crate::solver::algorithm_state::{NamedFields, StateField};

/// The relation between the residuals of the training entries and the noise.
///
/// Residuals of training entries are smaller than errors on other entries, the more so the more parameters there are per
/// entry. Noise as small as the residuals would let the chain fit noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct NoiseModel {
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

impl NamedFields for NoiseModel {
    fn fields(&mut self) -> Vec<(&'static str, StateField<'_>)> {
        vec![
            ("noise_ratio", StateField::Real(&mut self.variance_ratio)),
            ("interval_ratio", StateField::Real(&mut self.interval_ratio)),
            ("biases_only", StateField::Flag(&mut self.has_biases_only)),
        ]
    }

    fn invalid_field(&self) -> Option<&'static str> {
        let is_positive = |x: f64| x.is_finite() && x > 0.0;
        match (
            is_positive(self.variance_ratio),
            is_positive(self.interval_ratio),
        ) {
            (false, _) => Some("noise_ratio"),
            (true, false) => Some("interval_ratio"),
            (true, true) => None,
        }
    }
}
