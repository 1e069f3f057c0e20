//! The progress of a fit.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_void};
use std::ptr;

use super::arg::{SizedStruct, struct_out};
use super::library::{S3CMTF_KERNEL_UNKNOWN, kernel_number};
use super::status::Outcome;
use crate::model::EpochMetrics;
use crate::solver::{FitSummary, StopReason};

/// The fit has not started.
pub const S3CMTF_FIT_READY: i32 = 0;
/// The fit is running.
pub const S3CMTF_FIT_RUNNING: i32 = 1;
/// The fit has ended, successfully or not.
pub const S3CMTF_FIT_ENDED: i32 = 2;

/// An epoch ended.
pub const S3CMTF_EVENT_EPOCH: i32 = 1;
/// A rank was lowered to the number of rows of its mode.
pub const S3CMTF_EVENT_RANK_LOWERED: i32 = 2;
/// The loss diverged; the fit continues from an earlier epoch with half the learning rate.
pub const S3CMTF_EVENT_ROLLED_BACK: i32 = 3;
/// A checkpoint was written.
pub const S3CMTF_EVENT_CHECKPOINT: i32 = 4;
/// A warning about data, options or a checkpoint. Later versions may have further events.
pub const S3CMTF_EVENT_WARNING: i32 = 5;
/// The fit selected something that the options left open, by evidence that the message states.
pub const S3CMTF_EVENT_SELECTED: i32 = 6;

/// The fit has not ended.
pub const S3CMTF_STOP_NONE: i32 = 0;
/// All epochs ended.
pub const S3CMTF_STOP_EPOCHS: i32 = 1;
/// The training loss converged (option "tolerance"), or the algorithm cannot lower it any further.
pub const S3CMTF_STOP_TOLERANCE: i32 = 2;
/// The validation error stopped improving (option "patience").
pub const S3CMTF_STOP_PATIENCE: i32 = 3;
/// The option "time_limit" was reached. Before the end of the first epoch the model has its initial values, or predicts the mean if
/// these were not complete half a second after the limit.
pub const S3CMTF_STOP_TIME_LIMIT: i32 = 4;
/// A callback or a cancel token ended the fit after at least one epoch.
pub const S3CMTF_STOP_CANCELLED: i32 = 5;

/// The state of a fit. Quantities that were not measured are NaN.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Progress {
    /// sizeof(s3cmtf_progress). In a callback: the size of the struct of the library.
    pub size: u64,
    /// S3CMTF_FIT_READY, S3CMTF_FIT_RUNNING or S3CMTF_FIT_ENDED.
    pub state: i32,
    /// In a callback S3CMTF_EVENT_..., otherwise 0.
    pub event: i32,
    /// S3CMTF_STOP_...; S3CMTF_STOP_NONE before the end, and if the fit failed.
    pub stop_reason: i32,
    /// S3CMTF_KERNEL_...; S3CMTF_KERNEL_UNKNOWN before the successful end.
    pub kernel: i32,
    /// The number of threads; 0 before the successful end.
    pub threads: u64,
    /// The number of epochs completed; after the end, the epoch of the returned model.
    pub epoch: u64,
    /// The maximum number of epochs.
    pub epochs: u64,
    /// The number of rollbacks after divergence.
    pub rollbacks: u64,
    /// The learning rate of the last epoch; NaN if the algorithm has none.
    pub eta: f64,
    /// The training loss after the last epoch.
    pub loss: f64,
    /// RMSE on the training entries. After the end this and the next two are those of the returned model.
    pub train_rmse: f64,
    /// RMSE on the test entries.
    pub test_rmse: f64,
    /// RMSE on the validation entries.
    pub valid_rmse: f64,
    /// Seconds of updates in the last epoch; after the end, in all epochs.
    pub update_seconds: f64,
    /// Seconds of evaluation, likewise.
    pub eval_seconds: f64,
    /// Tensor and matrix entries per second of the last epoch.
    pub entries_per_second: f64,
    /// In a callback for another event than an epoch, its description, valid until the callback returns; otherwise NULL.
    pub message: *const c_char,
}

/// Called by s3cmtf_fit_run() on the calling thread, after every epoch and at other events. A result other than 0 ends the
/// fit with the model of the last epoch, or with S3CMTF_CANCELLED if there is none. The callback must not throw or longjmp. It
/// may call the library, also with the error handle of s3cmtf_fit_run(); of its own fit it may call s3cmtf_fit_get_progress(),
/// s3cmtf_fit_cancel() and s3cmtf_fit_free(), and other functions return S3CMTF_BAD_STATE. `progress` is valid until it returns.
pub type ProgressCallback =
    Option<unsafe extern "C" fn(progress: *const Progress, user: *mut c_void) -> i32>;

// The layout is part of the ABI: fields are added at the end, and none moves.
#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(Progress, size) == 0);
    assert!(offset_of!(Progress, state) == 8);
    assert!(offset_of!(Progress, event) == 12);
    assert!(offset_of!(Progress, stop_reason) == 16);
    assert!(offset_of!(Progress, kernel) == 20);
    assert!(offset_of!(Progress, threads) == 24);
    assert!(offset_of!(Progress, epoch) == 32);
    assert!(offset_of!(Progress, epochs) == 40);
    assert!(offset_of!(Progress, rollbacks) == 48);
    assert!(offset_of!(Progress, eta) == 56);
    assert!(offset_of!(Progress, loss) == 64);
    assert!(offset_of!(Progress, train_rmse) == 72);
    assert!(offset_of!(Progress, test_rmse) == 80);
    assert!(offset_of!(Progress, valid_rmse) == 88);
    assert!(offset_of!(Progress, update_seconds) == 96);
    assert!(offset_of!(Progress, eval_seconds) == 104);
    assert!(offset_of!(Progress, entries_per_second) == 112);
    assert!(offset_of!(Progress, message) == 120);
    assert!(size_of::<Progress>() == 128);
};

// SAFETY: laid out as C does, the size first.
unsafe impl SizedStruct for Progress {}

// SAFETY: the only pointer is NULL but for the time of a callback, which nobody shares.
unsafe impl Send for Progress {}

impl Progress {
    pub(super) fn new(epochs: u64) -> Progress {
        Progress {
            size: size_of::<Progress>() as u64,
            state: S3CMTF_FIT_READY,
            event: 0,
            stop_reason: S3CMTF_STOP_NONE,
            kernel: S3CMTF_KERNEL_UNKNOWN,
            threads: 0,
            epoch: 0,
            epochs,
            rollbacks: 0,
            eta: f64::NAN,
            loss: f64::NAN,
            train_rmse: f64::NAN,
            test_rmse: f64::NAN,
            valid_rmse: f64::NAN,
            update_seconds: 0.0,
            eval_seconds: 0.0,
            entries_per_second: f64::NAN,
            message: ptr::null(),
        }
    }

    pub(super) fn set_epoch(&mut self, e: &EpochMetrics) {
        self.epoch = e.epoch;
        self.eta = e.eta;
        self.loss = e.loss;
        self.train_rmse = e.train_rmse;
        self.test_rmse = e.test_rmse;
        self.valid_rmse = e.valid_rmse;
        self.update_seconds = e.update_seconds;
        self.eval_seconds = e.eval_seconds;
        self.entries_per_second = e.entries_per_second;
    }

    pub(super) fn set_summary(&mut self, s: &FitSummary) {
        self.stop_reason = match s.reason {
            StopReason::Epochs => S3CMTF_STOP_EPOCHS,
            StopReason::Tolerance | StopReason::Converged => S3CMTF_STOP_TOLERANCE,
            StopReason::Patience => S3CMTF_STOP_PATIENCE,
            StopReason::TimeLimit => S3CMTF_STOP_TIME_LIMIT,
            StopReason::Cancelled => S3CMTF_STOP_CANCELLED,
        };
        self.epoch = s.best_epoch;
        self.kernel = kernel_number(s.kernel);
        self.threads = s.threads as u64;
        self.train_rmse = s.train_rmse;
        self.test_rmse = s.test_rmse;
        self.valid_rmse = s.valid_rmse;
        self.update_seconds = s.update_seconds;
        self.eval_seconds = s.eval_seconds;
    }

    /// Writes as much of it as the caller's struct has room for.
    ///
    /// # Safety
    /// As [`struct_out`].
    pub(super) unsafe fn write_to(&self, to: *mut Progress) -> Outcome {
        // SAFETY: the caller's promise.
        unsafe { struct_out(self, to, "progress") }
    }
}
