//! The normal prior of a row in information form.

use crate::simd::padded_len;

/// The normal distribution N(mu, Lambda^-1) of a row before its entries are seen, in information form, as it is
/// added to the row's normal equations.
pub(super) struct GaussianPrior {
    /// Number of elements of a row, its bias included.
    pub size: usize,
    /// The precision Lambda: symmetric, rows padded.
    pub precision: Vec<f32>,
    /// Lambda mu.
    pub precision_times_mean: Vec<f32>,
}

impl GaussianPrior {
    /// Mean 0 and the same precision for all elements; precision 0 is no prior at all.
    pub(super) fn isotropic(size: usize, precision: f64) -> GaussianPrior {
        let width = padded_len(size);
        let mut diagonal = vec![0.0; size * width];
        (0..size).for_each(|i| diagonal[i * width + i] = precision as f32);
        GaussianPrior {
            size,
            precision: diagonal,
            precision_times_mean: vec![0.0; size],
        }
    }

    /// This mean and this precision, row-major.
    pub(super) fn new(mean: &[f64], precision: &[f64]) -> GaussianPrior {
        let size = mean.len();
        let width = padded_len(size);
        let mut prior = GaussianPrior::isotropic(size, 0.0);
        for (i, row) in precision.chunks_exact(size).enumerate() {
            prior.precision_times_mean[i] =
                row.iter().zip(mean).map(|(p, m)| p * m).sum::<f64>() as f32;
            prior.precision[i * width..][..size]
                .iter_mut()
                .zip(row)
                .for_each(|(s, &p)| *s = p as f32);
        }
        prior
    }

    /// Sets the precision of the last element, a row's bias.
    pub(super) fn set_bias_precision(&mut self, precision: f64) {
        let last = self.size - 1;
        self.precision[last * padded_len(self.size) + last] = precision as f32;
    }
}
