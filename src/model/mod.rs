//! Models: what a fit produces and a prediction needs.

mod biases;
mod container;
mod factors;
mod file;
mod record;
mod rows;
mod samples;

pub use biases::BiasModel;
pub use factors::{EpochMetrics, Model, ModelMatrix, ModelMode};
pub use file::{check_target, is_model, load, save};
pub use record::{FitEvent, FitOutcome, FitRecord};
pub use rows::FactorMatrix;
pub use samples::{PosteriorSample, PosteriorSamples, QuantizedRows};

pub(crate) use factors::{ParameterSnapshot, RowPrior};
pub(crate) use file::{Checkpoint, load_checkpoint, save_with};

use crate::error::Result;

/// Anything that predicts the values of cells.
pub trait Predict: Sync {
    /// What predicts on one thread, with the buffers that needs: a function of an index (one number
    /// per mode, counted from 0, any value).
    fn predictor(&self) -> Result<impl FnMut(&[u32]) -> f64>;
}
