//! Fitted models: their parameters in memory and on disk.
//!
//! Enters: the shapes of a [`Problem`](crate::problem::Problem) and the [`Options`](crate::options::Options) of a fit,
//! or the path of a model file. Leaves: a [`Model`] that solvers update and that `predict` and `discover` read.
//!
//! Open `factor_model` first: [`Model`] holds the core, one [`ModelMode`] per mode and one [`ModelMatrix`] per coupled
//! matrix (`factors`), whose rows lie in a [`FactorMatrix`]. `allocate` makes a model of zeros for a problem, `snapshot`
//! copies and restores the parameters. [`PosteriorSamples`] are what `gibbs` predicts from; [`FitRecord`] says how the
//! fit went. `validation` says which numbers a model can have. `model_file`, `samples_file` and `checkpoint` read and write all of this as named sections (`section_file`).

mod allocate;
mod checkpoint;
mod factor_matrix;
mod factor_model;
mod factors;
mod fit_record;
mod mean_rows;
mod model_file;
mod noise_factors;
mod posterior_samples;
mod predictor;
mod quantized_rows;
mod samples_file;
mod section_file;
mod snapshot;
mod validation;

pub use factor_matrix::FactorMatrix;
pub use factor_model::{AVERAGE_ROW, Model};
pub use factors::{ModelMatrix, ModelMode};
pub use fit_record::{EpochMetrics, FitEvent, FitOutcome, FitRecord};
#[doc(hidden)]
pub use model_file::load_with;
pub use model_file::{is_model, load, save};
pub use posterior_samples::ProbitLink;
pub use posterior_samples::{PosteriorSample, PosteriorSamples};
pub use predictor::BiasModel;
pub use predictor::Predict;
pub use quantized_rows::QuantizedRows;

pub(crate) use allocate::check_ranks;
pub(crate) use checkpoint::{Checkpoint, load_checkpoint, save_checkpoint};
pub(crate) use factor_model::check_order;
#[doc(hidden)]
pub use factors::RowPrior;
pub(crate) use noise_factors::NoiseFactors;
pub(crate) use posterior_samples::UnseenRows;
pub(crate) use snapshot::ParameterSnapshot;
pub(crate) use validation::MAX_EPOCH;
