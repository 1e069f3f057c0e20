//! Ridge regression of row biases on factor rows, for rows without tensor entries.

use crate::linalg::{dot, regularized_cholesky, solve_lower, solve_lower_transposed};

/// The coefficients are shrunk to 0 as if by so many further rows of average norm.
const RIDGE_ROWS: f64 = 30.0;

/// A row to learn from.
#[derive(Clone, Copy)]
pub(super) struct Observation<'a> {
    pub row: &'a [f32],
    pub bias: f32,
    pub weight: f64,
}

/// bias = coefficients . row + intercept, with normal errors.
#[derive(Clone)]
pub(super) struct BiasRegression {
    pub coefficients: Vec<f64>,
    pub intercept: f64,
    /// Standard deviation of the errors.
    pub deviation: f64,
}

impl BiasRegression {
    /// Fits the regression by weighted least squares on centered rows of `rank` elements. Without observations
    /// everything is 0.
    pub(super) fn fit<'a>(
        rank: usize,
        observations: impl Iterator<Item = Observation<'a>> + Clone,
    ) -> BiasRegression {
        let (mut total_weight, mut count, mut mean_bias) = (0.0, 0.0, 0.0);
        let mut mean_row = vec![0.0f64; rank];
        for Observation { row, bias, weight } in observations.clone() {
            total_weight += weight;
            count += 1.0;
            mean_bias += weight * f64::from(bias);
            mean_row
                .iter_mut()
                .zip(row)
                .for_each(|(m, &z)| *m += weight * f64::from(z));
        }
        let normalization = if total_weight > 0.0 {
            1.0 / total_weight
        } else {
            0.0
        };
        mean_bias *= normalization;
        mean_row.iter_mut().for_each(|m| *m *= normalization);
        let mut covariance = vec![0.0f64; rank * rank];
        let mut coefficients = vec![0.0f64; rank];
        let mut centered = vec![0.0f64; rank];
        for Observation { row, bias, weight } in observations.clone() {
            centered
                .iter_mut()
                .zip(row)
                .zip(&mean_row)
                .for_each(|((c, &z), m)| *c = f64::from(z) - m);
            for i in 0..rank {
                let x = weight * centered[i];
                coefficients[i] += x * (f64::from(bias) - mean_bias);
                covariance[i * rank..=i * rank + i]
                    .iter_mut()
                    .zip(&centered)
                    .for_each(|(s, c)| *s += x * c);
            }
        }
        let trace: f64 = (0..rank).map(|i| covariance[i * rank + i]).sum();
        let ridge = RIDGE_ROWS / f64::max(count, 1.0) * trace / rank as f64;
        if ridge > 0.0 {
            (0..rank).for_each(|i| covariance[i * rank + i] += ridge);
            let l = regularized_cholesky(rank, &covariance);
            solve_lower(rank, &l, &mut coefficients);
            solve_lower_transposed(rank, &l, &mut coefficients);
        } else {
            coefficients.fill(0.0);
        }
        let mut regression = BiasRegression {
            intercept: mean_bias - dot(&coefficients, &mean_row),
            coefficients,
            deviation: 0.0,
        };
        let squares = observations.map(|Observation { row, bias, weight }| {
            weight * (f64::from(bias) - regression.bias(row)).powi(2)
        });
        regression.deviation = (squares.sum::<f64>() * normalization).sqrt();
        regression
    }

    /// Predicts the bias of a row.
    pub(super) fn bias(&self, row: &[f32]) -> f64 {
        let terms = self.coefficients.iter().zip(row);
        self.intercept + terms.map(|(a, &z)| a * f64::from(z)).sum::<f64>()
    }

    /// Multiplies predicted biases by a constant.
    pub(super) fn scale(&mut self, scale: f64) {
        self.coefficients.iter_mut().for_each(|a| *a *= scale);
        self.intercept *= scale;
    }

    /// Returns coefficients, intercept and deviation one after the other, as models store them.
    pub(super) fn to_stored(&self) -> Vec<f32> {
        let all = self
            .coefficients
            .iter()
            .chain([&self.intercept, &self.deviation]);
        all.map(|&x| x as f32).collect()
    }
}

/// Predicts the bias of a row from a stored regression, with or without its deviation.
pub(super) fn stored_bias(stored: &[f32], row: &[f32]) -> f64 {
    let terms = stored.iter().zip(row);
    f64::from(stored[row.len()])
        + terms
            .map(|(&a, &z)| f64::from(a) * f64::from(z))
            .sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    #[test]
    fn recovers_a_linear_bias() {
        let mut s = RandomStream::new(&[1]);
        let rows: Vec<[f32; 3]> = (0..4000)
            .map(|_| [0; 3].map(|_| s.standard_normal() as f32))
            .collect();
        let bias = |r: &[f32; 3]| 0.5 + 2.0 * r[0] - r[2];
        // Every second row has weight 0 and a wrong bias.
        let observations = rows.iter().enumerate().map(|(i, r)| {
            let is_used = i % 2 == 0;
            Observation {
                row: r,
                bias: if is_used { bias(r) } else { 100.0 },
                weight: if is_used { 1.0 + (i % 7) as f64 } else { 0.0 },
            }
        });
        let regression = BiasRegression::fit(3, observations);
        let stored = regression.to_stored();
        for row in &rows {
            let is_close = |x: f64| (x - f64::from(bias(row))).abs() < 0.15;
            assert!(is_close(regression.bias(row)) && is_close(stored_bias(&stored, row)));
        }
        assert!(regression.deviation < 0.1);
        let empty = BiasRegression::fit(3, [].into_iter());
        assert_eq!(empty.to_stored(), [0.0; 5]);
    }
}
