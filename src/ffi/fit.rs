//! Fits: configuration, running on the calling thread or in the background, results.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::arg::{given, hand_over, object, optional_path, path, text, text_out};
use super::arrays::Entries;
use super::cancel::CancelHandle;
use super::coo::{copy_entries, open_file};
use super::coo_handle::CooHandle;
use super::error_handle::ErrorHandle;
use super::guard::{guard, release};
use super::host::{Call, guard_with_callback};
use super::model::ModelHandle;
use super::options::{OptionsHandle, parsed};
use super::problem::{Parts, ProblemHandle};
use super::progress::{Progress, ProgressCallback, S3CMTF_FIT_ENDED, S3CMTF_FIT_READY};
use super::run::{Job, Shared, make_plan, run};
use super::status::{Failure, Outcome, S3CMTF_BAD_STATE, S3CMTF_SYSTEM};
use crate::fit_plan::FitPlan;
use crate::format::{self, OpenMode};
use crate::options::Options;
use crate::parallel::{THREAD_NAME, lock_ignoring_poison, with_signals_blocked};
use crate::solver::Control;

/// One fit.
pub struct FitHandle {
    fit: Arc<Fit>,
}

/// What the handle of a fit refers to. A call that waits, or that calls the host, keeps it alive and does not use the handle
/// meanwhile, because the host may free that.
struct Fit {
    setup: Mutex<Setup>,
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the host sets before the fit starts.
#[derive(Clone)]
struct Setup {
    job: Job,
    callback: Option<Call<Progress>>,
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
        Fit::new(Parts::new(&tensor), options).run(out)
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
        Fit::new(Parts::new(&tensor), options).run(out)
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
        let fit = Arc::new(Fit::new(problem.parts.clone(), options));
        hand_over(out, FitHandle { fit });
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
    change(fit, error, |setup| {
        setup.job.test = test.map(|c| c.source.clone());
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
    change(fit, error, |setup| {
        setup.job.valid = valid.map(|c| c.source.clone());
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
    change(fit, error, |setup| {
        setup.job.init = model.cloned();
        Ok(())
    })
}

/// Sets the checkpoint file, which is written every "checkpoint_every" epochs (an option) and replaced atomically. A checkpoint
/// that cannot be written does not end the fit: the first is a warning (S3CMTF_EVENT_WARNING, and in the record of the model). NULL
/// removes it.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_fit_set_checkpoint(
    fit: Option<&mut FitHandle>,
    path: *const c_char,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    change(fit, error, |setup| {
        // SAFETY: a text of the caller, for this call.
        setup.job.checkpoint = unsafe { optional_path(path) }?;
        Ok(())
    })
}

/// Sets a checkpoint to resume from. Data and options must be those of the interrupted fit; only "epochs", "samples",
/// "threads", "pin", "kernel", "time_limit" and "checkpoint_every" may differ. A checkpoint is a model file:
/// s3cmtf_model_load() and s3cmtf_model_get_options() tell its options. The file is only read, unless it is also set as the checkpoint to
/// write. NULL removes it.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_fit_set_resume(
    fit: Option<&mut FitHandle>,
    path: *const c_char,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    change(fit, error, |setup| {
        // SAFETY: a text of the caller, for this call.
        setup.job.resume = unsafe { optional_path(path) }?;
        Ok(())
    })
}

/// Sets the plan that the fit follows: the JSON of s3cmtf_fit_plan() or s3cmtf_model_get_plan(). The fit chooses nothing,
/// and its model has the same parameters, bit by bit, as that of the fit whose plan it is. Data and options must be those of
/// the plan; options that have their defaults are taken from it. NULL removes it.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_fit_set_plan(
    fit: Option<&mut FitHandle>,
    json: *const c_char,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    change(fit, error, |setup| {
        setup.job.plan = match json.is_null() {
            true => None,
            // SAFETY: a text of the caller, for this call.
            false => Some(FitPlan::from_json(unsafe { text(json, "json") }?)?),
        };
        Ok(())
    })
}

/// Writes what the fit would do, and why, as JSON, without fitting anything: every option resolved, the matrices, and for
/// each choice its evidence (docs/reference/json.md). The first call takes as long as the preparations of the fit; the fit
/// then follows this plan, as after s3cmtf_fit_set_plan(), and later calls write it at once. S3CMTF_BAD_STATE once the fit has
/// started. `text`, `capacity` and `needed` as in s3cmtf_options_get().
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_fit_plan(
    fit: Option<&mut FitHandle>,
    text: *mut c_char,
    capacity: u64,
    needed: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let fit = &given(fit, "fit")?.fit;
        fit.shared.require(S3CMTF_FIT_READY)?;
        let job = lock_ignoring_poison(&fit.setup).job.clone();
        let plan = match job.plan.clone() {
            Some(plan) => plan,
            None => make_plan(&job, &fit.shared)?,
        };
        let json = plan.to_json();
        lock_ignoring_poison(&fit.setup).job.plan = Some(plan);
        // SAFETY: a buffer of the caller, for this call.
        unsafe { text_out(&json, text, capacity, needed, "text") }
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
    change(fit, error, |setup| {
        setup.job.cancel = cancel.map(|c| c.flag.clone());
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
    change(fit, error, |setup| {
        setup.callback = Call::new(callback, user);
        Ok(())
    })
}

/// Runs the fit and returns the model. Until then no other function may be called with this fit, except in its callback; a
/// token (s3cmtf_fit_set_cancel()) ends it from another thread.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_fit_run(
    fit: *mut FitHandle,
    model: Option<&mut MaybeUninit<*mut ModelHandle>>,
    error: *mut ErrorHandle,
) -> i32 {
    // SAFETY: an error handle of the caller, which is not freed in the callback.
    unsafe {
        guard_with_callback(error, || {
            // SAFETY: an object of the caller; the callback may free it, so only what it refers to is used.
            let fit = given(object(fit), "fit")?.fit.clone();
            fit.run(given(model, "model")?)
        })
    }
}

/// Starts the fit on a background thread and returns immediately. A fit with a callback is S3CMTF_BAD_STATE.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_fit_start(
    fit: Option<&mut FitHandle>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || given(fit, "fit")?.fit.start())
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
        unsafe { fit.fit.shared.progress().write_to(progress) }
    })
}

/// Waits until a fit in the background ends, for at most `seconds` (negative: without limit). Writes 1 to `running` if it is
/// still running and 0 if it has ended. Several threads may wait at the same time. A fit that s3cmtf_fit_run() runs is
/// S3CMTF_BAD_STATE.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_fit_wait(
    fit: *const FitHandle,
    seconds: f64,
    running: Option<&mut MaybeUninit<i32>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        // SAFETY: an object of the caller; another thread may free it meanwhile, so only what it refers to is used.
        let shared = given(unsafe { object(fit) }, "fit")?.fit.shared.clone();
        let out = given(running, "running")?;
        if seconds.is_nan() {
            return Err(Failure::argument("seconds is not a number"));
        }
        let time = (seconds >= 0.0)
            .then(|| Duration::try_from_secs_f64(seconds).ok())
            .flatten();
        out.write(i32::from(shared.wait(time)?));
        Ok(())
    })
}

/// Requests the end of a fit in the background, as a cancel token does. May be called concurrently. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_fit_cancel(fit: Option<&FitHandle>) {
    if let Some(handle) = fit {
        handle.fit.shared.cancel();
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
        let (handle, out) = (given(fit, "fit")?, given(model, "model")?);
        handle.fit.shared.require(S3CMTF_FIT_ENDED)?;
        handle.fit.take(out)
    })
}

/// Frees a fit. One that is running in the background is cancelled first, and threads that wait for it in s3cmtf_fit_wait()
/// return. Called in the callback of the fit, it ends the fit as a result other than 0 does, the callback is not called again,
/// and s3cmtf_fit_run() frees the fit before it returns. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_fit_free(fit: Option<Box<FitHandle>>) {
    release(|| {
        if let Some(handle) = fit {
            handle.fit.shared.release();
            handle.fit.join();
        }
    });
}

impl Fit {
    fn new(parts: Parts, options: Options) -> Fit {
        Fit {
            shared: Arc::new(Shared::new(&options)),
            setup: Mutex::new(Setup {
                job: Job {
                    parts,
                    options,
                    test: None,
                    valid: None,
                    init: None,
                    checkpoint: None,
                    resume: None,
                    plan: None,
                    cancel: None,
                },
                callback: None,
            }),
            thread: Mutex::new(None),
        }
    }

    fn run(&self, out: &mut MaybeUninit<*mut ModelHandle>) -> Outcome {
        self.shared.begin(false)?;
        // A copy: the callback may call functions that lock the original.
        let Setup { job, callback } = lock_ignoring_poison(&self.setup).clone();
        let mut call =
            callback.map(|c| move |progress: &Progress| c.call(progress) == Control::Stop);
        let call = call
            .as_mut()
            .map(|c| c as &mut dyn FnMut(&Progress) -> bool);
        run(&job, &self.shared, call);
        self.take(out)
    }

    fn start(&self) -> Outcome {
        self.shared.require(S3CMTF_FIT_READY)?;
        let Setup { job, callback } = lock_ignoring_poison(&self.setup).clone();
        if callback.is_some() {
            return Err(Failure::new(
                S3CMTF_BAD_STATE,
                "a fit in the background does not call a callback; remove it and poll s3cmtf_fit_get_progress()",
            ));
        }
        // Before the thread exists, because it may end before this one continues.
        self.shared.begin(true)?;
        let shared = self.shared.clone();
        let thread = thread::Builder::new().name(THREAD_NAME.into());
        let started = with_signals_blocked(|| thread.spawn(move || run(&job, &shared, None)));
        let started = started.map_err(|e| {
            self.shared.unbegin();
            Failure::new(S3CMTF_SYSTEM, format!("cannot start a thread: {e}"))
        })?;
        *lock_ignoring_poison(&self.thread) = Some(started);
        Ok(())
    }

    fn join(&self) {
        let thread = lock_ignoring_poison(&self.thread).take();
        if let Some(thread) = thread {
            // It catches its own panics.
            let _ = thread.join();
        }
    }

    fn take(&self, out: &mut MaybeUninit<*mut ModelHandle>) -> Outcome {
        self.join();
        let model = self.shared.take().unwrap_or_else(|| {
            Err(Failure::new(
                S3CMTF_BAD_STATE,
                "the result of the fit was taken before",
            ))
        })?;
        hand_over(out, model);
        Ok(())
    }
}

/// Changes a fit that has not started.
fn change(
    fit: Option<&mut FitHandle>,
    error: Option<&mut ErrorHandle>,
    set: impl FnOnce(&mut Setup) -> Outcome,
) -> i32 {
    guard(error, || {
        let fit = &given(fit, "fit")?.fit;
        fit.shared.require(S3CMTF_FIT_READY)?;
        set(&mut lock_ignoring_poison(&fit.setup))
    })
}
