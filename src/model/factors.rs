//! The parameters of one mode and of one coupled matrix.

use std::sync::Arc;

use super::factor_matrix::FactorMatrix;
use crate::format::RowMap;
use crate::problem::MatrixKind;

/// The parameters of one mode.
pub struct ModelMode {
    /// Rows that occur in the training data.
    pub rows: Arc<RowMap>,
    /// Number of tensor entries of each row.
    pub counts: Arc<Vec<u64>>,
    /// Sum of the entry weights of each row, divided by the mean weight if that is below 1/256 or above 256; empty if entries have
    /// no weights.
    pub weights: Vec<f64>,
    /// One factor row per row of the mode, followed by the mean row: their mean weighted by entries. The mean row
    /// predicts for rows without training data.
    pub factor: FactorMatrix,
    /// Bias of each row, followed by the mean bias for rows without training data. Empty if the model has no biases.
    pub biases: Vec<f32>,
    /// Prior of a row, which folding in new rows needs.
    #[doc(hidden)]
    pub prior: RowPrior,
}

/// The prior of a row of one mode, and the regression of its bias on its factor row.
#[derive(Debug, Clone, Default)]
pub struct RowPrior {
    /// M of the penalty `u M u^T - 2 u . linear` of a row u, up to a factor. Row-major without padding; empty if M is
    /// the identity.
    pub metric: Vec<f32>,
    /// Linear term of the penalty, one value per rank; empty if it is 0.
    pub linear: Vec<f32>,
    /// Predicts the bias of a row without tensor entries from the factor row that its matrices determine: one
    /// coefficient per rank, then the intercept. Empty if there is no such regression.
    pub cold_bias: Vec<f32>,
}

impl RowPrior {
    /// Returns whether every value is finite.
    pub(super) fn is_finite(&self) -> bool {
        [&self.metric, &self.linear, &self.cold_bias]
            .into_iter()
            .flatten()
            .all(|x| x.is_finite())
    }
}

impl ModelMode {
    /// Returns the sum of the weights of the tensor entries of `row`: their number if entries have no weights.
    #[inline]
    pub(crate) fn row_weight(&self, row: usize) -> f64 {
        let count = || self.counts[row] as f64;
        self.weights.get(row).copied().unwrap_or_else(count)
    }

    /// Returns the sum of the weights of all rows.
    pub(crate) fn total_weight(&self) -> f64 {
        if self.weights.is_empty() {
            self.counts.iter().sum::<u64>() as f64
        } else {
            (0..self.counts.len()).map(|i| self.row_weight(i)).sum()
        }
    }

    /// Returns the mean of `biases`, one per row, weighted by the entries of the rows; 0 without entries.
    pub(crate) fn mean_bias(&self, biases: &[f32]) -> f32 {
        let total = self.total_weight();
        let biases = biases.iter().enumerate();
        let sum: f64 = biases
            .map(|(i, &b)| f64::from(b) * self.row_weight(i))
            .sum();
        (sum / if total > 0.0 { total } else { 1.0 }) as f32
    }
}

/// The parameters of one coupled matrix: V of the paper, one row per column of the matrix.
pub struct ModelMatrix {
    /// Mode the matrix is coupled to, counted from 0.
    pub mode: usize,
    /// Weight of the matrix in the objective: lambda_m of the paper.
    pub weight: f64,
    /// Penalty on V, if it differs from lambda_reg.
    pub penalty: Option<f64>,
    /// How the matrix enters the model. A graph has no V.
    pub kind: MatrixKind,
    /// Columns that occur.
    pub columns: Arc<RowMap>,
    /// One factor row per column that occurs.
    pub factor: FactorMatrix,
    /// Offset of each column, added to predictions. Empty if there are none.
    pub offsets: Vec<f32>,
    /// Factor of squared errors of the original values in the objective, without `weight`. `None` in a
    /// model that was not fitted.
    pub(crate) precision: Option<f64>,
    /// What the weights of the entries were divided by.
    pub(crate) weight_unit: f64,
}
