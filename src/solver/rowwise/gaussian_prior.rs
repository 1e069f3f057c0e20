//! The normal prior of a row in information form.

use crate::linalg::{cholesky, regularized_cholesky, solve_lower_transposed};
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

    /// Returns the columns of the upper triangular F with Lambda^-1 = F F^T, one after the other and without zeros.
    pub(super) fn covariance_factor(&self) -> Vec<f32> {
        let (size, width) = (self.size, padded_len(self.size));
        let rows = self.precision.chunks_exact(width);
        let precision: Vec<f64> = rows
            .flat_map(|row| row[..size].iter().map(|&p| f64::from(p)))
            .collect();
        let l =
            cholesky(size, &precision).unwrap_or_else(|| regularized_cholesky(size, &precision));
        let mut factor = Vec::new();
        for k in 0..size {
            let mut column = vec![0.0; size];
            column[k] = 1.0;
            solve_lower_transposed(size, &l, &mut column);
            factor.extend(column[..=k].iter().map(|&x| x as f32));
        }
        factor
    }

    /// Sets the precision of the last element, a row's bias.
    pub(super) fn set_bias_precision(&mut self, precision: f64) {
        let last = self.size - 1;
        self.precision[last * padded_len(self.size) + last] = precision as f32;
    }
}
