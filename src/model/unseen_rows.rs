//! The distribution of the rows of a mode that occur in no entry.

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
