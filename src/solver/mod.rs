//! Fitting models to problems.
//!
//! In: a [`Problem`](crate::problem::Problem), [`Options`](crate::options::Options) and a [`FitInput`]. Out: a
//! [`Model`](crate::model::Model) and a [`FitSummary`].
//!
//! Open `fit.rs` first. It resolves the options (`hyperparameters`) and the starting values (`gibbs_init`), then runs the
//! `driver`: one loop over epochs for every algorithm. `algorithm` and `algorithm_definition` are the interface that an
//! algorithm implements in its own folder, `algorithm_factory` names the definitions of all and chooses one. They work on `data`, a copy
//! of the entries after `standardization`. `tune` searches for options with many fits; `fold_in` adds rows to a fitted model.

mod algorithm;
mod algorithm_definition;
mod algorithm_factory;
mod bias_entries;
mod bias_update;
mod biases;
mod chunked_sum;
mod cmtf_opt;
mod core_eta_scale;
mod core_products;
mod coupling_selection;
mod cp_to_tucker;
mod data;
mod default_rank;
mod driver;
mod entries;
mod entry_layout;
mod evaluation_entries;
mod fit;
mod fit_sizes;
mod fold_in;
mod full_matrix;
mod full_matrix_update;
mod gibbs_init;
#[cfg(test)]
mod gradient_tests;
mod gram;
mod holdout_split;
mod hyperparameters;
mod initial_sample;
mod initialization;
mod input;
mod loss;
#[cfg(test)]
mod loss_tests;
mod memory_check;
mod observer;
mod outliers;
mod plan_report;
mod planner;
mod reparametrization;
mod resume;
mod row_computation;
mod row_penalty;
mod row_sample;
mod rowwise;
mod sals;
mod sgd;
mod standardization;
mod stream_ids;
mod support_check;
mod tucker_als;
pub mod tune;
mod unprepared;
mod value_scale;

pub use algorithm_factory::{flops_per_entry, further_bytes};
pub use biases::{BiasOptions, fit_biases};
pub use fit::{fit, plan, train};
pub use fit_sizes::{FitSizes, MatrixSize, ModeSize};
pub use fold_in::{FoldIn, FoldMatrix, FoldSummary, fold_in};
pub use initial_sample::MAX_SAMPLE_ENTRIES;
pub use input::{FitInput, FitSummary};
pub use observer::{Control, Event, Observer, StopReason};
