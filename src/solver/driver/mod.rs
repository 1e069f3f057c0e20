//! The driver: one fit with resolved options, for any algorithm.
//!
//! In: a problem, options without open choices, and a [`FitState`] (checkpoint, starting model, standardisation, held-out
//! entries). Out: the model and a summary, or a paused fit that can go on later.
//!
//! Open `fit.rs` first: it prepares the data, the starting values and the algorithm. `epochs.rs` runs the epochs.
//! `divergence.rs` decides when the loss has exploded, `measure.rs` computes errors, `schedule.rs` the learning rate and the
//! number of epochs, `baseline.rs` keeps biases and scales consistent, `checkpoints.rs` saves and loads, and `finalize.rs`
//! chooses and completes the model that is returned. The driver never resolves options: the callers above it do
//! (`solver::fit`, `gibbs_init`, `sgd_init`, `tune`).

mod baseline;
mod checkpoints;
mod divergence;
mod epochs;
mod finalize;
mod fit;
mod fit_state;
mod measure;
mod schedule;

pub(super) use fit::Fit;
pub(super) use fit_state::{Clock, FitState, thread_pool};
