//! The driver: one fit with resolved options, for any algorithm.
//!
//! In: a problem, options without open choices, and a [`FitState`] (checkpoint, starting model, standardization, held-out
//! entries). Out: the model and a summary, or a paused fit that can go on later.
//!
//! Open `fit.rs` first: it prepares the data, the starting values and the algorithm. `epochs.rs` is the loop over epochs.
//! `fit_monitor.rs` decides when the fit is cancelled or out of time, `divergence.rs` beyond which limits the fit is rolled
//! back. `measure.rs` measures the errors, and keeps biases and scales consistent. `checkpoints.rs` and `checkpoint_restore.rs` save and restore a fit; `finalize.rs` selects
//! and completes the model that is returned.
//!
//! The driver never resolves options. Its callers do: `solver::planner`, `gibbs_init` and `tune`.

mod checkpoint_restore;
mod checkpoints;
mod divergence;
mod epochs;
mod finalize;
mod fit;
mod fit_monitor;
mod fit_state;
mod measure;

pub(super) use fit::Fit;
pub(super) use fit_monitor::{FitMonitor, Phase};
pub(super) use fit_state::{Clock, FitState, thread_pool};
