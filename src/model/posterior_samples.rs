//! Posterior samples of a model fitted by `gibbs`. Predictions are averaged over them.

use std::sync::Arc;

use super::noise_factors::NoiseFactors;
use super::quantized_rows::QuantizedRows;
use crate::normal_distribution::tabulated_normal_cdf;

/// One posterior sample, in standardized values.
#[derive(Clone)]
pub struct PosteriorSample {
    /// Standard deviation of an observed value around the prediction of this sample.
    pub noise_deviation: f64,
    /// The core in the layout of the model's; empty if the model's own core applies.
    pub core: Vec<f32>,
    /// For each mode its sampled rows, followed by their mean weighted by entries. With biases a row has its bias behind
    /// the `rank` factor values.
    pub modes: Vec<QuantizedRows>,
    /// For [`PosteriorSamples::conditional_mode`], the means of the conditional distributions of its rows. Predictions
    /// from them have the same expectation and less variance (Rao-Blackwell).
    pub conditional_means: QuantizedRows,
    /// For each matrix the sampled rows of V; none for a graph.
    pub(crate) columns: Vec<QuantizedRows>,
    /// Factor of the squared errors of each matrix in the log-likelihood.
    pub(crate) weights: Vec<f64>,
    /// For each mode the regression of the bias of a row without tensor entries on its factor row: one coefficient per
    /// rank, the intercept and the residual standard deviation. Empty without matrices.
    pub(crate) cold_bias: Vec<Vec<f32>>,
    /// For each mode the distribution of rows without any entry, around the mean row.
    pub(crate) unseen_rows: Vec<UnseenRows>,
}

/// All posterior samples of a model.
#[derive(Clone)]
pub struct PosteriorSamples {
    /// Mean of the training values, added to predictions.
    pub(crate) mean: f64,
    /// Factor from standardized to original values.
    pub(crate) scale: f64,
    /// Whether rows end with their bias.
    pub(crate) has_biases: bool,
    /// Mode whose conditional means are kept.
    pub(crate) conditional_mode: usize,
    /// The samples. Shared, because a checkpoint may be written while the chain goes on.
    pub(crate) samples: Vec<Arc<PosteriorSample>>,
    /// Variance of the noise that drove the chain, as a multiple of that of the samples' noise.
    pub(crate) noise_ratio: f64,
    /// How the noise differs between rows and levels.
    pub(crate) noise_factors: NoiseFactors,
    /// The link to two values; `None` if samples predict values themselves.
    pub(crate) link: Option<ProbitLink>,
    /// Biases of the current state of the chain, which a resumed fit needs.
    pub(crate) biases: Vec<Vec<f32>>,
}

impl PosteriorSamples {
    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Returns whether there are no samples yet.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Iterates over the samples in the order they were drawn.
    pub fn iter(&self) -> impl Iterator<Item = &PosteriorSample> {
        self.samples.iter().map(|s| &**s)
    }

    /// Returns the mean of the training values, which is added to predictions.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Returns the factor from standardized values, which samples are in, to original ones.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// Returns whether rows end with their bias.
    pub fn has_biases(&self) -> bool {
        self.has_biases
    }

    /// Returns the mode whose conditional means are kept.
    pub fn conditional_mode(&self) -> usize {
        self.conditional_mode
    }

    /// Returns the link to two values if the likelihood is probit. The value of a sample is then not that of the data.
    pub fn link(&self) -> Option<ProbitLink> {
        self.link
    }

    /// Returns the factor of the noise variance of entries with this prediction.
    pub(crate) fn level_noise_factor(&self, prediction: f64) -> f64 {
        let standardized = (prediction - self.mean) / self.scale;
        self.noise_factors.of_level(standardized as f32)
    }

    /// Returns a standardized bias in the scale of the original values.
    pub(super) fn unscale(&self, bias: f32) -> f32 {
        (f64::from(bias) * self.scale) as f32
    }

    /// Returns whether every value is finite, also in the scale of the original values.
    pub(super) fn is_finite(&self) -> bool {
        self.mean.is_finite()
            && self.scale.is_finite()
            && self.noise_ratio.is_finite()
            && self.link.is_none_or(|link| link.is_valid())
            && self
                .biases
                .iter()
                .flatten()
                .all(|&b| self.unscale(b).is_finite())
            && self.noise_factors.is_finite()
            && self.iter().all(|s| {
                let mut rows = s
                    .modes
                    .iter()
                    .chain([&s.conditional_means])
                    .chain(&s.columns);
                s.noise_deviation.is_finite()
                    && s.core.iter().all(|g| g.is_finite())
                    && rows.all(QuantizedRows::is_finite)
                    && s.weights.iter().all(|w| w.is_finite())
                    && s.cold_bias.iter().flatten().all(|x| x.is_finite())
                    && s.unseen_rows.iter().all(UnseenRows::is_finite)
            })
    }
}

/// The covariance Lambda^-1 of the rows of a mode in a posterior sample, as a factor F with Lambda^-1 = F F^T. With biases the
/// last element of a row is its bias.
#[derive(Clone)]
pub(crate) struct UnseenRows {
    size: usize,
    /// The columns of the upper triangle of F: column k has k + 1 elements.
    columns: Vec<f32>,
}

impl UnseenRows {
    /// Creates the distribution of rows of `size` elements from the columns of F; `None` if there are more or fewer.
    pub(crate) fn new(size: usize, columns: Vec<f32>) -> Option<UnseenRows> {
        let expected = UnseenRows::columns_len(size);
        (columns.len() == expected).then_some(UnseenRows { size, columns })
    }

    /// Returns the number of elements of all columns together.
    pub(crate) fn columns_len(size: usize) -> usize {
        size * (size + 1) / 2
    }

    /// Returns the columns of F, one after the other.
    pub(crate) fn as_slice(&self) -> &[f32] {
        &self.columns
    }

    pub(super) fn is_finite(&self) -> bool {
        self.columns.iter().all(|x| x.is_finite())
    }

    /// Iterates over the columns of F, without the zeros at their ends. With a standard normal z, F z is the deviation of a row
    /// from the mean row.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &[f32]> {
        (0..self.size).map(|k| &self.columns[UnseenRows::columns_len(k)..][..k + 1])
    }

    /// Returns the variance of g . u over rows u. The last element of `gradient` is that of the bias if rows have one.
    pub(crate) fn variance_along(&self, gradient: &[f64]) -> f64 {
        let along = |column: &[f32]| -> f64 {
            let products = column.iter().zip(gradient);
            products.map(|(&x, g)| f64::from(x) * g).sum()
        };
        self.columns().map(|column| along(column).powi(2)).sum()
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variance_along_a_gradient_is_that_of_the_covariance() {
        // F = [[2, 1], [0, 3]], so the covariance is [[5, 3], [3, 9]].
        let rows = UnseenRows::new(2, vec![2.0, 1.0, 3.0]).unwrap();
        assert_eq!(rows.variance_along(&[1.0, 0.0]), 5.0);
        assert_eq!(rows.variance_along(&[0.0, 1.0]), 9.0);
        assert_eq!(
            rows.variance_along(&[2.0, -1.0]),
            4.0 * 5.0 - 4.0 * 3.0 + 9.0
        );
        assert!(UnseenRows::new(2, vec![1.0; 4]).is_none());
    }
}
