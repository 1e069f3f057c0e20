//! The variance of a prediction due to rows that occur in no entry.
//!
//! In a posterior sample such a row is normal around the mean row of its mode, with covariance F F^T ([`UnseenRows`]). The
//! prediction is linear in the row of each mode, so its variance splits into independent terms. With d_n the partial derivatives
//! by the row of mode n, and f_k the columns of F:
//!
//! ```text
//! variance = sum over unseen modes n of |F_n^T d_n|^2
//!          + sum over pairs n < m and columns k of |F_m^T d_m|^2, where d_m has f_k in place of the row of mode n
//! ```
//!
//! Terms of three or more unseen rows are left out: products of three deviations, with the cost of a power of the rank.

use crate::kernel::TensorKernel;
use crate::model::UnseenRows;

/// Buffers for the variance due to unseen rows, for one thread.
#[derive(Default)]
pub(super) struct UnseenVariance {
    gradients: Vec<f32>,
    gradient: Vec<f64>,
    mean_row: Vec<f32>,
}

impl UnseenVariance {
    /// Returns the variance at the position with these padded rows, where those of `modes` are mean rows. `bias_scale` is the
    /// partial derivative of the prediction by a bias, if rows have biases. The rows are the same afterwards.
    pub(super) fn compute(
        &mut self,
        kernel: &mut TensorKernel,
        core: &[f32],
        rows: &mut [f32],
        modes: &[usize],
        unseen_rows: &[UnseenRows],
        bias_scale: Option<f64>,
    ) -> f64 {
        self.gradients.resize(rows.len(), 0.0);
        kernel.gradients(core, rows, &mut self.gradients);
        let mut variance = 0.0;
        for &n in modes {
            variance += self.variance_along(kernel, n, &unseen_rows[n], bias_scale);
        }
        for (i, &n) in modes.iter().enumerate() {
            let others = &modes[i + 1..];
            if others.is_empty() {
                break;
            }
            let range = kernel.shape().row(n);
            self.mean_row.clear();
            self.mean_row.extend_from_slice(&rows[range.clone()]);
            let rank = kernel.shape().ranks()[n];
            for column in unseen_rows[n].columns() {
                // Without the bias, which does not interact with other rows.
                let column = &column[..column.len().min(rank)];
                let row = &mut rows[range.clone()];
                row.fill(0.0);
                row[..column.len()].copy_from_slice(column);
                kernel.gradients(core, rows, &mut self.gradients);
                for &m in others {
                    let bias_gradient = bias_scale.map(|_| 0.0);
                    variance += self.variance_along(kernel, m, &unseen_rows[m], bias_gradient);
                }
            }
            rows[range].copy_from_slice(&self.mean_row);
        }
        variance
    }

    /// Returns |F^T d|^2 for the current gradient d of mode `n`, with that of the bias behind it.
    fn variance_along(
        &mut self,
        kernel: &TensorKernel,
        n: usize,
        unseen: &UnseenRows,
        bias_gradient: Option<f64>,
    ) -> f64 {
        let (start, rank) = (kernel.shape().row(n).start, kernel.shape().ranks()[n]);
        let gradient = &self.gradients[start..start + rank];
        self.gradient.clear();
        self.gradient.extend(gradient.iter().map(|&d| f64::from(d)));
        self.gradient.extend(bias_gradient);
        unseen.variance_along(&self.gradient)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{CoreKind, CoreShape, Method};
    use crate::random::RandomStream;
    use crate::simd::Level;

    /// The exact variance of a prediction with two unseen rows, against many random rows.
    #[test]
    fn the_variance_is_that_of_random_rows() {
        for kind in [CoreKind::Full, CoreKind::Diagonal] {
            let shape = CoreShape::new(kind, &[3, 3, 3]);
            let mut kernel = TensorKernel::new(&shape, Method::Shared(Level::best())).unwrap();
            let mut s = RandomStream::new(&[8]);
            let mut numbers =
                |len: usize| -> Vec<f32> { (0..len).map(|_| s.standard_normal() as f32).collect() };
            let core = match kind {
                CoreKind::Full => shape.padded_core(&numbers(27)).unwrap(),
                CoreKind::Diagonal => {
                    let mut core = numbers(3);
                    core.resize(shape.core_len(), 0.0);
                    core
                }
            };
            let mut rows = vec![0.0; shape.rows_len()];
            for n in 0..3 {
                let start = shape.row(n).start;
                rows[start..start + 3].copy_from_slice(&numbers(3));
            }
            let unseen: Vec<UnseenRows> = (0..3)
                .map(|_| UnseenRows::new(4, numbers(10)).unwrap())
                .collect();
            let scale = 1.5;
            let before = rows.clone();
            let modes = [0, 2];
            let found = UnseenVariance::default().compute(
                &mut kernel,
                &core,
                &mut rows,
                &modes,
                &unseen,
                Some(scale),
            );
            assert_eq!(rows, before);
            let (mut sum, mut squares) = (0.0, 0.0);
            let count = 200_000;
            for _ in 0..count {
                let mut biases = 0.0;
                rows.copy_from_slice(&before);
                for n in modes {
                    let start = shape.row(n).start;
                    for column in unseen[n].columns() {
                        let z = s.standard_normal();
                        for (j, &x) in column.iter().enumerate() {
                            let moved = f64::from(x) * z;
                            match j {
                                3 => biases += moved,
                                _ => rows[start + j] += moved as f32,
                            }
                        }
                    }
                }
                let value = scale * biases + f64::from(kernel.value(&core, &rows));
                sum += value;
                squares += value * value;
            }
            let mean = sum / f64::from(count);
            let expected = squares / f64::from(count) - mean * mean;
            assert!(
                (found / expected - 1.0).abs() < 0.05,
                "{kind:?}: {found} {expected}"
            );
        }
    }
}
