//! The trait of everything that predicts tensor values.

use crate::error::Result;

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
