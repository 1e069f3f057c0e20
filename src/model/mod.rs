//! Models: what a fit produces and a prediction needs.

mod biases;
mod container;
mod factors;
mod file;
mod rows;
mod shape;

pub use biases::BiasModel;
pub use factors::{Epoch, Model, ModelMatrix, ModelMode};
pub use file::{check_target, is_model, load, save};
pub use rows::Rows;
pub use shape::{CoreKind, CoreShape, STRIDE, padded};

pub(crate) use factors::Parameters;
pub(crate) use file::{Saved, load_saved, save_with};

/// Anything that predicts the value of a cell.
pub trait Predict {
    /// The prediction at `index` (one index per mode, counted from 0, any value).
    fn predict(&mut self, index: &[u32]) -> f64;
}
