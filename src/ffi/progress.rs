//! What a fit tells while it runs.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_void};
use std::ptr;

use super::arg::{Sized64, struct_out};
use super::library::{S3CMTF_KERNEL_UNKNOWN, kernel_number};
use super::status::Outcome;
use crate::model::EpochMetrics;
use crate::solver::{FitSummary, StopReason};

/// The fit has not begun.
pub const S3CMTF_FIT_READY: i32 = 0;
/// The fit runs.
pub const S3CMTF_FIT_RUNNING: i32 = 1;
/// The fit has ended, well or not.
pub const S3CMTF_FIT_ENDED: i32 = 2;

/// A callback is called because an epoch is done.
pub const S3CMTF_EVENT_EPOCH: i32 = 1;
/// It is called because a rank was lowered to the rows its mode has.
pub const S3CMTF_EVENT_RANK_LOWERED: i32 = 2;
/// It is called because the loss exploded, and the fit went back to an earlier epoch with half the step size.
pub const S3CMTF_EVENT_ROLLED_BACK: i32 = 3;
/// It is called because a checkpoint was written.
pub const S3CMTF_EVENT_CHECKPOINT: i32 = 4;
/// With "valid_fraction": the best epoch is known, and all entries are fitted to from here on.
pub const S3CMTF_EVENT_REFIT: i32 = 5;
/// It is called because the data is not likely to be what was meant; the message says why. Later versions may
/// have further reasons to call.
pub const S3CMTF_EVENT_WARNING: i32 = 6;

/// The fit has not ended.
pub const S3CMTF_STOP_NONE: i32 = 0;
/// All epochs were run.
pub const S3CMTF_STOP_EPOCHS: i32 = 1;
/// The training loss hardly changed any more.
pub const S3CMTF_STOP_TOLERANCE: i32 = 2;
/// The validation error got no better.
pub const S3CMTF_STOP_PATIENCE: i32 = 3;
/// The time was up. If that was before an epoch was finished, the model has its starting values.
pub const S3CMTF_STOP_TIME_LIMIT: i32 = 4;
/// A callback or a token said so, after at least one epoch: there is a model.
pub const S3CMTF_STOP_CANCELLED: i32 = 5;

/// The figures of a fit. It grows at its end in later versions, which is what `size` is for: set it to
/// sizeof before handing the struct to a function, and a field beyond it is never touched; in a callback,
/// use only fields within it. Figures that were not measured are NaN.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Progress {
    /// The bytes of this struct that mean something.
    pub size: u64,
    /// S3CMTF_FIT_READY, S3CMTF_FIT_RUNNING or S3CMTF_FIT_ENDED.
    pub state: i32,
    /// In a callback, what it is called for: S3CMTF_EVENT_EPOCH and so on. Otherwise 0.
    pub event: i32,
    /// Why the fit ended: S3CMTF_STOP_EPOCHS and so on. S3CMTF_STOP_NONE before, and if it failed.
    pub stop_reason: i32,
    /// The kernel in use, S3CMTF_KERNEL_...; S3CMTF_KERNEL_UNKNOWN until the fit has ended well.
    pub kernel: i32,
    /// The number of threads in use; 0 until the fit has ended well.
    pub threads: u64,
    /// Epochs done. When the fit has ended: the epoch of the model it returns.
    pub epoch: u64,
    /// The most epochs there will be.
    pub epochs: u64,
    /// How often the fit went back.
    pub rollbacks: u64,
    /// The step size of the last epoch.
    pub eta: f64,
    /// The training loss after the last epoch.
    pub loss: f64,
    /// The error on the training entries. When the fit has ended, this and the next two are those of the
    /// model it returns.
    pub train_rmse: f64,
    /// The error on the test entries.
    pub test_rmse: f64,
    /// The error on the validation entries.
    pub valid_rmse: f64,
    /// Seconds the last epoch took; when the fit has ended, all of them.
    pub update_seconds: f64,
    /// Seconds spent measuring errors, in the same way.
    pub eval_seconds: f64,
    /// Tensor and matrix entries per second of the last epoch.
    pub entries_per_second: f64,
    /// In a callback, words for an event that is not an epoch; otherwise NULL. It lives until the callback
    /// returns.
    pub message: *const c_char,
}

/// Called on the thread that called s3cmtf_fit_run(), after every epoch and when something else is worth
/// knowing. Returning anything but 0 ends the fit, with the model of the last epoch; before there is one, with
/// S3CMTF_CANCELLED. It must not throw, longjmp out, or use the fit it is called from; other calls of the
/// library are fine. `progress` lives until it returns, `user` is what it was set with.
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
unsafe impl Sized64 for Progress {}

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
            StopReason::Tolerance => S3CMTF_STOP_TOLERANCE,
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

    /// Writes as much of it as the caller's struct has room for, and says how much.
    ///
    /// # Safety
    /// As [`struct_out`].
    pub(super) unsafe fn write_to(&self, to: *mut Progress) -> Outcome {
        // SAFETY: the caller's promise.
        unsafe { struct_out(self, to, "progress") }
    }
}
