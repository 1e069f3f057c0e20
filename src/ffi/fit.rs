//! Fits: configuration, running on the calling thread or in the background, results.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::arg::{given, hand_over, optional_path, path, text};
use super::arrays::Entries;
use super::cancel::CancelHandle;
use super::coo::{copy_entries, open_file};
use super::coo_handle::CooHandle;
use super::error_handle::ErrorHandle;
use super::guard::{guard, release};
use super::host::Call;
use super::model::ModelHandle;
use super::options::{OptionsHandle, parsed};
use super::problem::{Parts, ProblemHandle};
use super::progress::{
    Progress, ProgressCallback, S3CMTF_FIT_ENDED, S3CMTF_FIT_READY, S3CMTF_FIT_RUNNING,
};
use super::run::{Job, Shared, run};
use super::status::{Failure, Outcome, S3CMTF_BAD_STATE, S3CMTF_SYSTEM};
use crate::format::{self, OpenMode};
use crate::options::Options;
use crate::parallel::{THREAD_NAME, with_signals_blocked};
use crate::solver::Control;

/// One fit.
pub struct FitHandle {
    job: Job,
    callback: Option<Call<Progress>>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Fits a model to the tensor `entries` in one call. `options` are NAME=VALUE pairs as in s3cmtf_options_parse(), such as
/// "rank=10 epochs=20", or NULL for the defaults.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_fit_entries(
    entries: *const Entries,
    options: *const c_char,
    model: Option<&mut MaybeUninit<*mut ModelHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let out = given(model, "model")?;
        // SAFETY: a text and a struct of the caller with what it points to, for this call.
        let (options, tensor) = unsafe { (options_text(options)?, copy_entries(entries)?) };
        FitHandle::new(Parts::new(&tensor), options).run(out)
    })
}

/// Fits a model to the tensor in a binary COO or text file in one call. `options` as for s3cmtf_fit_entries().
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_fit_file(
    path: *const c_char,
    options: *const c_char,
    model: Option<&mut MaybeUninit<*mut ModelHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let out = given(model, "model")?;
        // SAFETY: texts of the caller, for this call.
        let (options, tensor) = unsafe {
            let path = self::path(path, "path")?;
            (
                options_text(options)?,
                open_file(path, OpenMode::Mapped, format::open, None, None)?,
            )
        };
        FitHandle::new(Parts::new(&tensor), options).run(out)
    })
}

/// # Safety
/// As [`text`].
unsafe fn options_text(options: *const c_char) -> Outcome<Options> {
    if options.is_null() {
        return Ok(Options::default());
    }
    // SAFETY: the caller's promise.
    parsed(Options::default(), unsafe { text(options, "options") }?)
}

/// Creates a fit. Problem and options are copied (entries are shared) and may be freed or changed. `options` may be NULL
/// for the defaults.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_fit_new(
    problem: Option<&ProblemHandle>,
    options: Option<&OptionsHandle>,
    fit: Option<&mut MaybeUninit<*mut FitHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (problem, out) = (given(problem, "problem")?, given(fit, "fit")?);
        let options = options.map_or_else(Options::default, |o| o.options.clone());
        hand_over(out, FitHandle::new(problem.parts.clone(), options));
        Ok(())
    })
}

/// Sets the entries on which the test RMSE is measured after every epoch; they do not influence the fit. NULL removes them.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_fit_set_test(
    fit: Option<&mut FitHandle>,
    test: Option<&CooHandle>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    change(fit, error, |fit| {
        fit.job.test = test.map(|c| c.source.clone());
        Ok(())
    })
}

/// Sets the validation entries, which select the best epoch and, with the option "patience", stop the fit. NULL
/// removes them.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_fit_set_valid(
    fit: Option<&mut FitHandle>,
    valid: Option<&CooHandle>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    change(fit, error, |fit| {
        fit.job.valid = valid.map(|c| c.source.clone());
        Ok(())
    })
}

/// Sets a model to start from; rows that it does not contain are initialized. NULL removes it.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_fit_set_init(
    fit: Option<&mut FitHandle>,
    model: Option<&ModelHandle>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    change(fit, error, |fit| {
        fit.job.init = model.map(|m| m.model.clone());
        Ok(())
    })
}

/// Sets the checkpoint file, which is written every "checkpoint_every" epochs (an option) and replaced atomically. NULL
/// removes it.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_fit_set_checkpoint(
    fit: Option<&mut FitHandle>,
    path: *const c_char,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    change(fit, error, |fit| {
        // SAFETY: a text of the caller, for this call.
        fit.job.checkpoint = unsafe { optional_path(path) }?;
        Ok(())
    })
}

/// Sets a checkpoint to resume from. Data and options must be those of the interrupted fit; only "epochs", "samples",
/// "threads", "pin", "kernel", "time_limit" and "checkpoint_every" may differ. A checkpoint is a model file:
/// s3cmtf_model_load() and s3cmtf_model_get_options() tell its options. NULL removes it.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_fit_set_resume(
    fit: Option<&mut FitHandle>,
    path: *const c_char,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    change(fit, error, |fit| {
        // SAFETY: a text of the caller, for this call.
        fit.job.resume = unsafe { optional_path(path) }?;
        Ok(())
    })
}

/// Sets a token that ends the fit from any thread. Before the end of the first epoch the fit then fails with
/// S3CMTF_CANCELLED; later it succeeds with the model of the last completed epoch and S3CMTF_STOP_CANCELLED. NULL
/// removes it.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_fit_set_cancel(
    fit: Option<&mut FitHandle>,
    cancel: Option<&CancelHandle>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    change(fit, error, |fit| {
        fit.job.cancel = cancel.map(|c| c.flag.clone());
        Ok(())
    })
}

/// Sets the callback of s3cmtf_fit_run(), to which `user` is passed. NULL removes it.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_fit_set_callback(
    fit: Option<&mut FitHandle>,
    callback: ProgressCallback,
    user: *mut c_void,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    change(fit, error, |fit| {
        fit.callback = Call::new(callback, user);
        Ok(())
    })
}

/// Runs the fit and returns the model. Until then no other function may be called with this fit; a token
/// (s3cmtf_fit_set_cancel()) ends it from another thread.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_fit_run(
    fit: Option<&mut FitHandle>,
    model: Option<&mut MaybeUninit<*mut ModelHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (fit, out) = (given(fit, "fit")?, given(model, "model")?);
        fit.require(S3CMTF_FIT_READY)?;
        fit.run(out)
    })
}

/// Starts the fit on a background thread and returns immediately. A fit with a callback is S3CMTF_BAD_STATE.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_fit_start(
    fit: Option<&mut FitHandle>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    change(fit, error, |fit| {
        if fit.callback.is_some() {
            return Err(Failure::new(
                S3CMTF_BAD_STATE,
                "a fit in the background does not call a callback; remove it and poll s3cmtf_fit_get_progress()",
            ));
        }
        let (job, shared) = (fit.job.clone(), fit.shared.clone());
        // Before the thread exists, because it may end before this one continues.
        fit.shared.begin();
        let thread = thread::Builder::new().name(THREAD_NAME.into());
        let started = with_signals_blocked(|| thread.spawn(move || run(&job, &shared, None)));
        fit.thread = Some(started.map_err(|e| {
            fit.shared.unbegin();
            Failure::new(S3CMTF_SYSTEM, format!("cannot start a thread: {e}"))
        })?);
        Ok(())
    })
}

/// Writes the state of the fit. May be called while the fit runs in the background.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_fit_get_progress(
    fit: Option<&FitHandle>,
    progress: *mut Progress,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let fit = given(fit, "fit")?;
        // SAFETY: a struct of the caller, for this call.
        unsafe { fit.shared.progress().write_to(progress) }
    })
}

/// Waits until a fit in the background ends, for at most `seconds` (negative: without limit). Writes 1 to `running` if it is
/// still running and 0 if it has ended. Several threads may wait at the same time.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_fit_wait(
    fit: Option<&FitHandle>,
    seconds: f64,
    running: Option<&mut MaybeUninit<i32>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (fit, out) = (given(fit, "fit")?, given(running, "running")?);
        if seconds.is_nan() {
            return Err(Failure::argument("seconds is not a number"));
        }
        let time = (seconds >= 0.0)
            .then(|| Duration::try_from_secs_f64(seconds).ok())
            .flatten();
        out.write(i32::from(fit.shared.wait(time)));
        Ok(())
    })
}

/// Requests the end of a fit in the background, as a cancel token does. May be called concurrently. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_fit_cancel(fit: Option<&FitHandle>) {
    if let Some(fit) = fit {
        fit.shared.cancel();
    }
}

/// Returns the model of a fit that ended in the background, or the status with which it failed. S3CMTF_BAD_STATE while it
/// runs and after the model was taken.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_fit_take(
    fit: Option<&mut FitHandle>,
    model: Option<&mut MaybeUninit<*mut ModelHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (fit, out) = (given(fit, "fit")?, given(model, "model")?);
        fit.require(S3CMTF_FIT_ENDED)?;
        fit.take(out)
    })
}

/// Frees a fit. One that is running in the background is cancelled first. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_fit_free(fit: Option<Box<FitHandle>>) {
    release(|| {
        if let Some(mut fit) = fit {
            fit.shared.cancel();
            fit.join();
        }
    });
}

impl FitHandle {
    fn new(parts: Parts, options: Options) -> FitHandle {
        FitHandle {
            shared: Arc::new(Shared::new(&options)),
            job: Job {
                parts,
                options,
                test: None,
                valid: None,
                init: None,
                checkpoint: None,
                resume: None,
                cancel: None,
            },
            callback: None,
            thread: None,
        }
    }

    fn run(&mut self, out: &mut MaybeUninit<*mut ModelHandle>) -> Outcome {
        self.shared.begin();
        let mut call = self
            .callback
            .map(|c| move |progress: &Progress| c.call(progress) == Control::Stop);
        let call = call
            .as_mut()
            .map(|c| c as &mut dyn FnMut(&Progress) -> bool);
        run(&self.job, &self.shared, call);
        self.take(out)
    }

    fn require(&self, state: i32) -> Outcome {
        let now = self.shared.progress().state;
        if now == state {
            return Ok(());
        }
        let message = match now {
            S3CMTF_FIT_READY => "the fit has not started",
            S3CMTF_FIT_RUNNING => "the fit is running; wait for its end",
            _ => "the fit has ended; a fit runs once, create another",
        };
        Err(Failure::new(S3CMTF_BAD_STATE, message))
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // It catches its own panics.
            let _ = thread.join();
        }
    }

    fn take(&mut self, out: &mut MaybeUninit<*mut ModelHandle>) -> Outcome {
        self.join();
        let model = self.shared.take().unwrap_or_else(|| {
            Err(Failure::new(
                S3CMTF_BAD_STATE,
                "the result of the fit was taken before",
            ))
        })?;
        hand_over(out, ModelHandle::new(model));
        Ok(())
    }
}

/// Changes a fit that has not started.
fn change(
    fit: Option<&mut FitHandle>,
    error: Option<&mut ErrorHandle>,
    set: impl FnOnce(&mut FitHandle) -> Outcome,
) -> i32 {
    guard(error, || {
        let fit = given(fit, "fit")?;
        fit.require(S3CMTF_FIT_READY)?;
        set(fit)
    })
}
