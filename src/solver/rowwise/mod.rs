//! `als` and `gibbs`: row-wise updates of all parameters, each from all its entries, given everything else.
//!
//! `als` replaces a row by the solution of its least-squares problem (as P-Tucker does), `gibbs` by a sample of its
//! conditional distribution; predictions are then averaged over the samples. Rows of a mode are conditionally
//! independent, so they are updated in parallel, and the result is independent of the thread count.
//!
//! In go the data, options and a model; every call of [`RowwiseSolver::sweep`] updates the model, and `gibbs` adds
//! posterior samples to it. Open `sweep` first: it goes through modes, matrix columns and core.
//!
//! - `definition`, `algorithm`, `solver`, `setup`, `posterior_samples`: the interface to the driver.
//! - `problem`, `state`: the inputs of a sweep, and its state besides the model.
//! - `row_update`: the conditional distribution of a row; `data_term`, `row_tasks`, `row_solve`, `graph`: its parts.
//! - `core_update`, `core_sums`, `core_layout`: the full core.
//! - `hyperpriors`, `normal_wishart`, `gaussian_prior`, `default_priors`: priors of rows and noise.
//! - `initialization`, `spectral`, `component_restart`: where the chain starts.
//! - `cold_start`, `bias_regression`: rows without tensor entries; `new_rows`: rows that are folded into a fitted model.
//! - `noise_model`, `noise_selection`: the noise of the tensor, and its choice; `noise_pilot`, `prediction_window`,
//!   `bias_baseline`: the held-out training entries that it is chosen by.
//! - `probit`, `latent_values`, `likelihood_selection`, `truncated_normal`: the likelihood of two-valued tensors, and its choice.
//! - `holdout`, `value_scaling`: errors on test and validation entries.

mod algorithm;
mod bias_baseline;
mod bias_regression;
mod cold_start;
mod component_restart;
mod core_layout;
mod core_sums;
mod core_update;
mod data_term;
mod default_priors;
mod definition;
mod gaussian_prior;
mod graph;
mod holdout;
mod hyperpriors;
mod initialization;
mod latent_values;
mod likelihood_selection;
mod new_rows;
mod noise_factors;
mod noise_model;
mod noise_pilot;
mod noise_selection;
mod normal_wishart;
mod posterior_samples;
mod prediction_window;
mod probit;
mod problem;
mod row_solve;
mod row_tasks;
mod row_update;
mod setup;
mod solver;
mod spectral;
mod state;
mod stream_ids;
mod sweep;
mod truncated_normal;
mod update;
mod value_scaling;

pub(super) use cold_start::{ColdStartSettings, cold_start_weight, solve_cold_start_rows};
pub(super) use definition::{Als, Gibbs};
pub use new_rows::{FixedMatrix, FixedModel, NewRowEntries, NewRows};
pub(super) use new_rows::{FoldInStream, ModeRows, RowPenalties};
pub(super) use posterior_samples::restore_quantized;
pub(super) use probit::Probit;
pub use problem::group_by_modes;
pub use row_tasks::{RowTask, RowTasks};
pub use setup::absorb_diagonal_core;
