//! What a fit takes and what it ends with.

use std::path::PathBuf;

use super::observer::StopReason;
use crate::format::CooView;
use crate::model::Model;
use crate::simd::Level;

/// Everything a fit takes besides the problem and the options.
#[derive(Default)]
pub struct FitInput<'a> {
    /// Entries to measure the test error on; they decide nothing.
    pub test: Option<CooView<'a>>,
    /// Entries that decide, with `patience`, when to stop and which model is best.
    pub valid: Option<CooView<'a>>,
    /// A model to start from; rows it lacks start anew.
    pub init: Option<&'a Model>,
    /// Where checkpoints go.
    pub checkpoint: Option<PathBuf>,
    /// A checkpoint to go on from, with the same data and the same options: only `epochs`, `threads`,
    /// `pin`, `time_limit` and the intervals of checkpoints may differ.
    pub resume: Option<PathBuf>,
}

/// What a fit ended with. Errors are those of the returned model; NaN if not measured.
#[derive(Debug, Clone, Copy)]
pub struct FitSummary {
    /// Why it ended.
    pub reason: StopReason,
    /// Epochs run.
    pub epochs: u64,
    /// The epoch of the returned model.
    pub best_epoch: u64,
    /// Error on the training entries.
    pub train_rmse: f64,
    /// Error on the test entries.
    pub test_rmse: f64,
    /// Error on the validation entries.
    pub valid_rmse: f64,
    /// Whether predictions were clipped to the range of the training values.
    pub clipped: bool,
    /// The number of threads.
    pub threads: usize,
    /// The instruction set of the kernels.
    pub kernel: Level,
    /// Seconds spent updating.
    pub update_seconds: f64,
    /// Seconds spent measuring errors.
    pub eval_seconds: f64,
    /// All seconds.
    pub seconds: f64,
}
