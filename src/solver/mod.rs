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
mod algorithm_state;
mod bias_entries;
mod bias_update;
mod biases;
mod chunked_sum;
mod core_eta_scale;
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
mod row_penalty;
mod row_sample;
mod rowwise;
mod sgd;
mod standardization;
mod stream_ids;
mod support_check;
pub mod tune;
mod unprepared;
mod value_scale;

#[doc(hidden)]
pub mod internals {
    pub use super::algorithm::{
        Algorithm, EpochRequest, FitContext, InitialState, Origin, Purpose, TrainingError,
        canonical_form, default_training_error,
    };
    pub use super::algorithm_definition::{AlgorithmDefinition, AlgorithmPlan, ModelSize};
    pub use super::algorithm_state::{AlgorithmState, NamedFields, StateField};
    pub use super::chunked_sum::{CHUNK, sum_chunks};
    pub use super::data::{Data, DataConfig, MatrixData};
    pub use super::entry_layout::EntryLayout;
    pub use super::fit_sizes::{FitSizes, ModeSize};
    pub use super::full_matrix::FullMatrix;
    pub use super::gram::row_moments;
    pub use super::loss::SquaredErrors;
    pub use super::row_penalty::RowPenalty;
    pub use super::rowwise::{
        FixedMatrix, FixedModel, NewRowEntries, NewRows, RowTask, RowTasks, absorb_diagonal_core,
        group_by_modes,
    };
    pub use super::standardization::Standardization;
    pub use crate::fit_plan::Choice;

    pub mod initialization {
        pub use super::super::initialization::{fill, two_largest_modes};
    }

    pub mod loss {
        pub use super::super::loss::objective;
    }
}

pub use algorithm_factory::{flops_per_entry, further_bytes};
pub use biases::{BiasOptions, fit_biases};
pub use fit::{fit, plan, train};
pub use fit_sizes::{FitSizes, MatrixSize, ModeSize};
pub use fold_in::{FoldIn, FoldMatrix, FoldSummary, fold_in};
pub use initial_sample::MAX_SAMPLE_ENTRIES;
pub use input::{FitInput, FitSummary};
pub use observer::{Control, Event, Observer, StopReason};
