//! The trait of everything that predicts tensor values.

use std::sync::Arc;

use crate::error::Result;
use crate::format::RowMap;

/// A model that predicts the value at any position of the tensor.
pub trait Predict: Sync {
    /// Returns a function from an index (one `u32` per mode, counted from 0, of any value) to the predicted value.
    /// The function owns the buffers it needs; each thread makes its own.
    fn predictor(&self) -> Result<impl FnMut(&[u32]) -> f64>;

    /// Returns the order of the tensors that it predicts; `None` if it predicts tensors of any order.
    fn predicted_order(&self) -> Option<usize> {
        None
    }

    /// Returns about how many multiply-adds a prediction takes. It decides how often loops over predictions poll for a
    /// cancellation.
    fn operations_per_prediction(&self) -> usize {
        1
    }
}

/// Predicts `mean + sum over modes n of b(n)[i_n]`.
pub struct BiasModel {
    mean: f64,
    modes: Vec<(Arc<RowMap>, Vec<f64>)>,
}

impl BiasModel {
    /// Makes a model from the mean and, for each mode, its rows and one bias per compact row.
    ///
    /// # Panics
    /// If the number of biases of a mode differs from its number of rows.
    pub fn new(mean: f64, modes: Vec<(Arc<RowMap>, Vec<f64>)>) -> Self {
        assert!(
            modes
                .iter()
                .all(|(rows, biases)| rows.len() == biases.len())
        );
        BiasModel { mean, modes }
    }

    /// Returns the mean.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Returns the biases of mode `n`, by compact row.
    pub fn biases(&self, n: usize) -> &[f64] {
        &self.modes[n].1
    }
}

impl Predict for BiasModel {
    /// The mean alone predicts tensors of any order.
    fn predicted_order(&self) -> Option<usize> {
        (!self.modes.is_empty()).then_some(self.modes.len())
    }

    /// Rows without training entries have bias 0.
    fn predictor(&self) -> Result<impl FnMut(&[u32]) -> f64> {
        let bias = |((rows, biases), &i): (&(Arc<RowMap>, Vec<f64>), &u32)| {
            rows.compact(i).map_or(0.0, |row| biases[row as usize])
        };
        Ok(move |index: &[u32]| self.mean + self.modes.iter().zip(index).map(bias).sum::<f64>())
    }
}
