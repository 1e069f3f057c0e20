//! Models: what a fit produces and a prediction needs.

mod biases;

pub use biases::BiasModel;

/// Anything that predicts the value of a cell.
pub trait Predict {
    /// The prediction at `index` (one index per mode, counted from 0, any value).
    fn predict(&self, index: &[u32]) -> f64;
}
