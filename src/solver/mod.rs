//! Fitting models to problems.

mod bias_update;
mod biases;
mod cp_to_tucker;
mod data;
mod entries;
mod entry_layout;
mod fit;
mod fold_in;
mod full_matrices;
mod gibbs_init;
#[cfg(test)]
mod gradients;
mod gram;
mod hyperparameters;
mod initialization;
mod input;
mod loss;
mod observer;
mod reparametrization;
mod resume;
mod rowwise;
mod sgd;
mod standardization;
mod stepped;
pub mod tune;

pub use biases::{BiasOptions, fit_biases};
pub use fit::fit;
pub use fold_in::{FoldIn, FoldMatrix, FoldSummary, fold_in};
pub use input::{FitInput, FitSummary};
pub use observer::{Control, Event, Observer, StopReason};

pub(crate) use hyperparameters::likely_rank;
