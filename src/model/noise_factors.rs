//! Factors of the noise variance: noise may differ between the rows of a mode and between small and large predictions.

/// Factors of the variance of the noise. The default is the same noise everywhere.
#[derive(Clone, Default, PartialEq, Debug)]
pub(crate) struct NoiseFactors {
    /// Standardized predictions in ascending order, with their factors. Between them factors are interpolated.
    pub levels: Vec<(f32, f32)>,
    /// For each mode, the factors of its rows; empty if the noise is the same everywhere.
    pub rows: Vec<Vec<f32>>,
}

impl NoiseFactors {
    /// Returns the factor of a standardized prediction.
    pub(crate) fn of_level(&self, prediction: f32) -> f64 {
        let (Some(first), Some(last)) = (self.levels.first(), self.levels.last()) else {
            return 1.0;
        };
        let next = self
            .levels
            .partition_point(|(level, _)| *level <= prediction);
        let [a, b] = match next {
            0 => [first, first],
            next if next == self.levels.len() => [last, last],
            next => [&self.levels[next - 1], &self.levels[next]],
        };
        let width = f64::from(b.0 - a.0);
        let position = match width > 0.0 {
            true => f64::from(prediction - a.0) / width,
            false => 0.0,
        };
        f64::from(a.1) + position * f64::from(b.1 - a.1)
    }

    /// Returns the factor of a row of mode `n`, given its compact index; 1 if the model does not contain the row.
    pub(crate) fn of_row(&self, n: usize, row: u32) -> f64 {
        let factor = self.rows.get(n).and_then(|mode| mode.get(row as usize));
        f64::from(factor.copied().unwrap_or(1.0))
    }

    /// Returns the product of the factors of the given rows, one compact index per mode.
    pub(crate) fn of_rows(&self, rows: impl Iterator<Item = u32>) -> f64 {
        rows.enumerate()
            .map(|(n, row)| self.of_row(n, row))
            .product()
    }

    /// Returns whether all factors are finite and positive.
    pub(crate) fn is_finite(&self) -> bool {
        let is_factor = |f: &f32| f.is_finite() && *f > 0.0;
        self.rows.iter().flatten().all(is_factor)
            && self
                .levels
                .iter()
                .all(|(level, f)| level.is_finite() && is_factor(f))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_interpolated_and_multiplied() {
        let factors = NoiseFactors {
            levels: vec![(-1.0, 0.5), (1.0, 1.5), (1.0, 2.0)],
            rows: vec![vec![2.0, 3.0], vec![0.5]],
        };
        assert_eq!(
            [-7.0, -1.0, 0.0, 1.0, 2.0].map(|x| factors.of_level(x)),
            [0.5, 0.5, 1.0, 2.0, 2.0]
        );
        assert_eq!(factors.of_rows([1, 0].into_iter()), 1.5);
        assert_eq!(factors.of_rows([2, 0].into_iter()), 0.5);
        assert_eq!(NoiseFactors::default().of_level(0.3), 1.0);
        assert!(factors.is_finite());
    }
}
