//! Fits: set up, run here or in the background, and asked for what they gave.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::arg::{given, hand_over, optional_path};
use super::cancel::CancelHandle;
use super::coo_handle::CooHandle;
use super::error_handle::ErrorHandle;
use super::guard::{guard, release};
use super::host::Call;
use super::model::ModelHandle;
use super::options::OptionsHandle;
use super::problem::ProblemHandle;
use super::progress::{
    Progress, ProgressCallback, S3CMTF_FIT_ENDED, S3CMTF_FIT_READY, S3CMTF_FIT_RUNNING,
};
use super::run::{Job, Shared, run};
use super::status::{Failure, Outcome, S3CMTF_BAD_STATE, S3CMTF_SYSTEM};
use crate::options::Options;
use crate::parallel::{THREAD_NAME, with_signals_blocked};
use crate::solver::Control;

/// One fit: what it is to do, and once it has begun, how far it is. It runs once, in one of two ways.
/// s3cmtf_fit_run() runs it on the calling thread (which starts the threads the options ask for) and
/// returns the model. s3cmtf_fit_start() lets it run in the background: poll it with
/// s3cmtf_fit_get_progress() or wait with s3cmtf_fit_wait(), then take the model with s3cmtf_fit_take().
pub struct FitHandle {
    job: Job,
    callback: Option<Call<Progress>>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Prepares a fit of a problem, to be freed with s3cmtf_fit_free(). Problem and options are copied (the
/// entries shared) and may be freed or changed; `options` may be NULL for the defaults.
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
        hand_over(
            out,
            FitHandle {
                shared: Arc::new(Shared::new(&options)),
                job: Job {
                    parts: problem.parts.clone(),
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
            },
        );
        Ok(())
    })
}

/// Sets the entries whose error is measured as it goes; they decide nothing. NULL for none. The object is
/// shared and may be freed before the fit.
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

/// Sets the entries that decide, with the option "patience", when to stop and which model is best. NULL for
/// none. The object is shared and may be freed before the fit.
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

/// Sets a model to start from; rows it lacks start anew. NULL for none. The model is shared and may be freed
/// before the fit.
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

/// Sets where checkpoints go, after as many epochs or seconds as the options "checkpoint_every" and
/// "checkpoint_seconds" say. The file is replaced as a whole each time. NULL for none.
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

/// Sets a checkpoint to go on from, with the same data and the same options; only "epochs", "threads",
/// "pin", "kernel", "time_limit" and the intervals of checkpoints may differ. The options of a checkpoint
/// are those of the model that s3cmtf_model_load() finds in it (s3cmtf_model_get_options()). NULL for none.
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

/// Sets a token that ends the fit from any thread. Until the first epoch is finished the fit then fails with
/// S3CMTF_CANCELLED; later it ends well, with the model of the last epoch that was finished and the stop
/// reason S3CMTF_STOP_CANCELLED. A fit that goes on from a checkpoint has the epochs of the checkpoint behind
/// it as soon as its preparations are done. NULL for none. The token may be freed before the fit.
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

/// Sets what s3cmtf_fit_run() calls as it goes. NULL for nothing. `user` is handed to the callback as it is.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_fit_set_callback(
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

/// Runs the fit on the calling thread and writes the model it gives, to be freed with s3cmtf_model_free().
/// Until it returns, no other function may be given the fit: s3cmtf_fit_get_progress() and
/// s3cmtf_fit_cancel() are for fits in the background. A token (s3cmtf_fit_set_cancel()) ends it from another
/// thread.
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
        fit.shared.begin();
        let mut call = fit
            .callback
            .map(|c| move |progress: &Progress| c.call(progress) == Control::Stop);
        let call = call
            .as_mut()
            .map(|c| c as &mut dyn FnMut(&Progress) -> bool);
        run(&fit.job, &fit.shared, call);
        fit.take(out)
    })
}

/// Starts the fit in the background and returns at once. A fit with a callback is refused
/// (S3CMTF_BAD_STATE): nobody would be there to be called.
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
                "a fit in the background is polled, it calls nobody; take the callback away",
            ));
        }
        let (job, shared) = (fit.job.clone(), fit.shared.clone());
        // Before the thread is there: it may have ended when this one goes on.
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

/// Writes how far the fit is: set `progress->size` before. May run concurrently with a fit in the
/// background, not with s3cmtf_fit_run().
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

/// Waits up to `seconds` (below 0: for ever) for a fit in the background to end and writes whether it still
/// runs: 1 or 0. A fit that was not started does not run. May run concurrently, with itself too.
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

/// Asks a fit in the background to end, as a token would. May run concurrently, but not with
/// s3cmtf_fit_run(). NULL does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_fit_cancel(fit: Option<&FitHandle>) {
    if let Some(fit) = fit {
        fit.shared.cancel();
    }
}

/// Writes the model of a fit in the background that has ended, to be freed with s3cmtf_model_free(), or
/// returns the status it failed with. S3CMTF_BAD_STATE while it runs, and when the model was taken before.
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

/// Frees a fit. One that runs in the background is cancelled and waited for. NULL is fine.
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
    fn require(&self, state: i32) -> Outcome {
        let now = self.shared.progress().state;
        if now == state {
            return Ok(());
        }
        let message = match now {
            S3CMTF_FIT_READY => "the fit has not begun",
            S3CMTF_FIT_RUNNING => "the fit runs; wait for its end",
            _ => "the fit has ended; it runs once, make another",
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
                "what the fit gave was taken before",
            ))
        })?;
        hand_over(out, ModelHandle::new(model));
        Ok(())
    }
}

/// Changes a fit that has not begun.
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
