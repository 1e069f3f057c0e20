//! Input and summary of a fit.

use std::path::PathBuf;

use super::observer::StopReason;
use crate::format::CooView;
use crate::model::{FitOutcome, Model};
use crate::simd::Level;
use crate::trace::{self, SpanKind};

/// Optional input of a fit besides the problem and the options.
#[derive(Default)]
pub struct FitInput<'a> {
    /// Entries to measure the test error on. They do not influence the fit.
    pub test: Option<CooView<'a>>,
    /// Entries that select the best model and, with `patience`, when to stop.
    pub valid: Option<CooView<'a>>,
    /// Model to start from. Rows that it lacks have random starting values.
    pub init: Option<&'a Model>,
    /// File for checkpoints.
    pub checkpoint: Option<PathBuf>,
    /// Checkpoint to resume from. Data and options must be the same; only `epochs`, `samples`, `threads`, `pin`,
    /// `kernel`, `time_limit` and the intervals of checkpoints may differ.
    pub resume: Option<PathBuf>,
    /// Seconds that reading the input took, for the record of the model; 0 if unknown.
    pub read_seconds: f64,
}

/// Summary of a finished fit. Errors are RMSEs of the returned model; NaN if not measured.
#[derive(Debug, Clone, Copy)]
pub struct FitSummary {
    /// Reason why it stopped.
    pub reason: StopReason,
    /// Number of epochs run.
    pub epochs: u64,
    /// Epoch of the returned model.
    pub best_epoch: u64,
    /// Error on the training entries.
    pub train_rmse: f64,
    /// Error on the test entries.
    pub test_rmse: f64,
    /// Error on the validation entries.
    pub valid_rmse: f64,
    /// Whether predictions were clipped to the range of the training values.
    pub clipped: bool,
    /// Number of threads.
    pub threads: usize,
    /// Instruction set of the kernels.
    pub kernel: Level,
    /// Number of checkpoints that could not be written.
    pub failed_checkpoints: u64,
    /// Whether the last checkpoint could not be written: the file is of an earlier epoch, or missing.
    pub lacks_last_checkpoint: bool,
    /// Seconds from the start to the first epoch: initialization and the copy of the entries.
    pub init_seconds: f64,
    /// Seconds spent updating.
    pub update_seconds: f64,
    /// Seconds spent measuring errors.
    pub eval_seconds: f64,
    /// Seconds from start to end.
    pub seconds: f64,
}

impl FitSummary {
    /// Returns whether the fit was stopped before the end of its first epoch. Its model has the starting values or less: enough to
    /// look at, but not to replace another model.
    pub fn is_without_epochs(&self) -> bool {
        self.epochs == 0 && matches!(self.reason, StopReason::Cancelled | StopReason::TimeLimit)
    }

    /// Returns the part that the record of the model keeps.
    pub(super) fn outcome(&self, read_seconds: f64) -> FitOutcome {
        FitOutcome {
            reason: self.reason.name().into(),
            epochs: self.epochs,
            best_epoch: self.best_epoch,
            train_rmse: self.train_rmse,
            test_rmse: self.test_rmse,
            valid_rmse: self.valid_rmse,
            clipped: self.clipped,
            threads: self.threads as u64,
            kernel: self.kernel.name().into(),
            update_seconds: self.update_seconds,
            eval_seconds: self.eval_seconds,
            seconds: self.seconds,
            read_seconds,
            init_seconds: self.init_seconds,
            thread_shares: thread_shares(),
        }
    }
}

/// Returns what threads did during the epochs, as fractions of their time, if the fit is traced.
fn thread_shares() -> Vec<(String, f64)> {
    let times = trace::thread_seconds(SpanKind::Epoch).unwrap_or_default();
    let total: f64 = times.iter().map(|(_, seconds)| seconds).sum();
    let shares = times.into_iter();
    shares
        .map(|(kind, seconds)| (kind.name().into(), seconds / total))
        .collect()
}
