//! Hyperparameter search.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use super::arg::{
    SizedStruct, c_message, given, hand_over, object, optional_path, optional_struct_in, place,
    struct_out, text, text_out,
};
use super::cancel::CancelHandle;
use super::coo_handle::{CooHandle, MatchedSource, Source};
use super::error_handle::ErrorHandle;
use super::guard::{guard, release};
use super::host::{Call, Flag, guard_with_callback};
use super::options::OptionsHandle;
use super::problem::{Parts, ProblemHandle};
use super::status::{Failure, Outcome, S3CMTF_BAD_STATE};
use crate::error::Error;
use crate::options::Options;
use crate::parallel::lock_ignoring_poison;
use crate::solver::tune::{Space, Trial, TuneObserver, TuneOptions, TuneProgress, tune as search};
use crate::solver::{Control, StopReason};

/// The result of a trial.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TrialFigures {
    /// sizeof(s3cmtf_trial). In a callback: the size of the struct of the library.
    pub size: u64,
    /// The number of the trial; 0 is the fit with the given options.
    pub number: u64,
    /// The number of rungs at which it was evaluated.
    pub rungs: u64,
    /// The number of epochs (or Gibbs sweeps) at the last of them, or at the one with the lowest RMSE if the first epochs of a
    /// fit are a shorter fit: then the options of the trial have that number.
    pub epochs: u64,
    /// RMSE on the validation entries there; NaN if it failed.
    pub valid_rmse: f64,
    /// Seconds of computation.
    pub seconds: f64,
    /// In a callback, the number of trials evaluated at this rung so far; otherwise 0.
    pub done: u64,
    /// In a callback, the number of trials of this rung; otherwise 0.
    pub total: u64,
    /// In a callback, the lowest RMSE at this rung so far; otherwise NaN.
    pub best_rmse: f64,
    /// Why the trial failed, or NULL. Valid until the callback returns or, outside a callback, as long as the search.
    pub error: *const c_char,
}

// SAFETY: laid out as C does, the size first.
unsafe impl SizedStruct for TrialFigures {}

// The layout is part of the ABI: fields are added at the end, and none moves.
#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(TrialFigures, number) == 8);
    assert!(offset_of!(TrialFigures, valid_rmse) == 32);
    assert!(offset_of!(TrialFigures, best_rmse) == 64);
    assert!(offset_of!(TrialFigures, error) == 72);
    assert!(size_of::<TrialFigures>() == 80);
};

/// Called by s3cmtf_tune_run() on the calling thread, after every fit of a trial. A result other than 0 ends the search
/// with the trials evaluated so far. The callback must not throw or longjmp. It may call the library, also with the error handle of
/// s3cmtf_tune_run(); of its own search it may call s3cmtf_tune_free(), and other functions return S3CMTF_BAD_STATE.
pub type TrialCallback =
    Option<unsafe extern "C" fn(trial: *const TrialFigures, user: *mut c_void) -> i32>;

/// A hyperparameter search.
pub struct TuneHandle {
    tune: Arc<Tune>,
}

/// What the handle of a search refers to. A search that runs keeps it alive and does not use the handle meanwhile, because the
/// callback may free that.
struct Tune {
    setup: Mutex<Setup>,
    is_running: AtomicBool,
    /// Whether the handle was freed.
    is_freed: AtomicBool,
    /// The trials, best first, and why they failed.
    found: OnceLock<Vec<(Trial, Option<CString>)>>,
}

/// What the host sets before the search runs.
#[derive(Clone)]
struct Setup {
    parts: Parts,
    options: Options,
    trials: usize,
    rungs: usize,
    fit_threads: usize,
    fraction: f64,
    valid: Option<Arc<Source>>,
    space: Space,
    checkpoint: Option<PathBuf>,
    resume: Option<PathBuf>,
    cancel: Option<Arc<AtomicBool>>,
    callback: Option<Call<TrialFigures>>,
}

/// The size of a search and the entries on which trials are compared.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TuneRequest {
    /// sizeof(s3cmtf_tune_request).
    pub size: u64,
    /// The number of trials, including the fit with the given options, at most 10,000; 0 means 200.
    pub trials: u64,
    /// The number of rungs of successive halving, at most 20; 0 means 3. At the last rung trials have all their epochs.
    pub rungs: u64,
    /// The number of threads of each fit; 0 means 1. The option "threads" is the number of all threads together.
    pub fit_threads: u64,
    /// The fraction of the entries that is held out for validation; 0 means 0.1.
    pub valid_fraction: f64,
    /// Validation entries, or NULL to hold out `valid_fraction` of the tensor. Shared; may be freed.
    pub valid: *const CooHandle,
}

// The layout is part of the ABI: fields are added at the end, and none moves.
#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(TuneRequest, trials) == 8);
    assert!(offset_of!(TuneRequest, rungs) == 16);
    assert!(offset_of!(TuneRequest, fit_threads) == 24);
    assert!(offset_of!(TuneRequest, valid_fraction) == 32);
    assert!(offset_of!(TuneRequest, valid) == 40);
    assert!(size_of::<TuneRequest>() == 48);
};

// SAFETY: `repr(C)`, the size first, numbers and pointers only.
unsafe impl SizedStruct for TuneRequest {}

/// Creates a search. Problem and options are copied (entries are shared) and may be freed or changed. All trials have
/// `options` in common, but for the options that are sampled; "time_limit" and "seed" are those of the search. `options`
/// and `request` may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_tune_new(
    problem: Option<&ProblemHandle>,
    options: Option<&OptionsHandle>,
    request: *const TuneRequest,
    tune: Option<&mut MaybeUninit<*mut TuneHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (problem, out) = (given(problem, "problem")?, given(tune, "tune")?);
        // SAFETY: a struct of the caller and the object it points to, for this call.
        let (request, valid) = unsafe {
            let request = optional_struct_in(request, "request")?;
            (request, object(request.valid))
        };
        let how = TuneOptions::default();
        let fraction = request.valid_fraction;
        if !(0.0..1.0).contains(&fraction) {
            return Err(Failure::argument(format!(
                "request->valid_fraction is {fraction}; it must be above 0 and below 1, or 0 for the default"
            )));
        }
        let setup = Setup {
            parts: problem.parts.clone(),
            options: options.map_or_else(Options::default, |o| o.options.clone()),
            trials: or_default(request.trials, how.trials),
            rungs: or_default(request.rungs, how.rungs),
            fit_threads: or_default(request.fit_threads, how.fit_threads),
            fraction: if fraction == 0.0 {
                how.fraction
            } else {
                fraction
            },
            valid: valid.map(|c| c.source.clone()),
            space: Space::default(),
            checkpoint: None,
            resume: None,
            cancel: None,
            callback: None,
        };
        setup.search_options().check()?;
        let tune = Arc::new(Tune {
            setup: Mutex::new(setup),
            is_running: AtomicBool::new(false),
            is_freed: AtomicBool::new(false),
            found: OnceLock::new(),
        });
        hand_over(out, TuneHandle { tune });
        Ok(())
    })
}

/// Sets the values from which an option is sampled: a list ("8,16,32") or an interval ("0.005..0.1"). Rank, model, learning
/// rates, penalties and weights of matrices are always sampled, by default around what a fit would choose.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_tune_set_range(
    tune: Option<&mut TuneHandle>,
    name: *const c_char,
    range: *const c_char,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    change(tune, error, |setup| {
        // SAFETY: texts of the caller, for this call.
        let (name, range) = unsafe { (text(name, "name")?, text(range, "range")?) };
        Ok(setup.space.set(name, range)?)
    })
}

/// Sets the file in which the state of the search is saved and replaced atomically. A state that cannot be saved does not end the
/// search: its result does not depend on the file. NULL removes it.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_tune_set_checkpoint(
    tune: Option<&mut TuneHandle>,
    path: *const c_char,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    change(tune, error, |setup| {
        // SAFETY: a text of the caller, for this call.
        setup.checkpoint = unsafe { optional_path(path) }?;
        Ok(())
    })
}

/// Sets a saved state to resume from. Data and settings must be the same; only "threads" and "time_limit" may differ. Without
/// s3cmtf_tune_set_checkpoint() the file is also saved again. NULL removes it.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_tune_set_resume(
    tune: Option<&mut TuneHandle>,
    path: *const c_char,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    change(tune, error, |setup| {
        // SAFETY: a text of the caller, for this call.
        setup.resume = unsafe { optional_path(path) }?;
        Ok(())
    })
}

/// Sets a token that ends the search from any thread with the trials evaluated so far, or with S3CMTF_CANCELLED if there are
/// none. NULL removes it.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_tune_set_cancel(
    tune: Option<&mut TuneHandle>,
    cancel: Option<&CancelHandle>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    change(tune, error, |setup| {
        setup.cancel = cancel.map(|c| c.flag.clone());
        Ok(())
    })
}

/// Sets the callback of s3cmtf_tune_run(), to which `user` is passed. NULL removes it.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_tune_set_callback(
    tune: Option<&mut TuneHandle>,
    callback: TrialCallback,
    user: *mut c_void,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    change(tune, error, |setup| {
        setup.callback = Call::new(callback, user);
        Ok(())
    })
}

/// Runs the search. After a failure it may be changed and run again. Until its end no other function may be called with this
/// search, except in its callback.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_tune_run(tune: *mut TuneHandle, error: *mut ErrorHandle) -> i32 {
    // SAFETY: an error handle of the caller, which is not freed in the callback.
    unsafe {
        guard_with_callback(error, || {
            // SAFETY: an object of the caller; the callback may free it, so only what it refers to is used.
            let tune = given(object(tune), "tune")?.tune.clone();
            tune.run()
        })
    }
}

/// Writes the number of trials of a search that has ended.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_tune_get_count(
    tune: Option<&TuneHandle>,
    count: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (handle, out) = (given(tune, "tune")?, given(count, "count")?);
        out.write(handle.tune.found()?.len() as u64);
        Ok(())
    })
}

/// Writes the result of the trial at position `place` of the ranking; 0 is the best.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_tune_get_trial(
    tune: Option<&TuneHandle>,
    place: u64,
    trial: *mut TrialFigures,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (found, error) = given(tune, "tune")?.tune.at(place)?;
        // SAFETY: a struct of the caller, for this call.
        unsafe { struct_out(&TrialFigures::new(found, error.as_ref()), trial, "trial") }
    })
}

/// Returns the options of the trial at position `place` of the ranking, without "auto". "threads", "pin", "kernel" and
/// "time_limit" are those of the search.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_tune_get_options(
    tune: Option<&TuneHandle>,
    place: u64,
    options: Option<&mut MaybeUninit<*mut OptionsHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (handle, out) = (given(tune, "tune")?, given(options, "options")?);
        let options = handle.tune.at(place)?.0.options.clone();
        hand_over(out, OptionsHandle { options });
        Ok(())
    })
}

/// Writes the options of the trial at position `place` of the ranking as lines NAME=VALUE, the format of `fit --config` of
/// the command-line program. `text`, `capacity` and `needed` as in s3cmtf_options_get().
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_tune_get_text(
    tune: Option<&TuneHandle>,
    place: u64,
    text: *mut c_char,
    capacity: u64,
    needed: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let lines = given(tune, "tune")?.tune.at(place)?.0.to_text();
        // SAFETY: a buffer of the caller, for this call.
        unsafe { text_out(&lines, text, capacity, needed, "text") }
    })
}

/// Frees a search. Called in its own callback, it ends the search as a result other than 0 does, the callback is not called
/// again, and s3cmtf_tune_run() frees the search before it returns. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_tune_free(tune: Option<Box<TuneHandle>>) {
    release(|| {
        if let Some(handle) = tune {
            handle.tune.is_freed.store(true, Ordering::Relaxed);
        }
    });
}

impl Setup {
    /// Returns what the search is made with, apart from the problem and the options of fits.
    fn search_options(&self) -> TuneOptions<'_> {
        TuneOptions {
            trials: self.trials,
            rungs: self.rungs,
            fraction: self.fraction,
            valid: self.valid.as_ref().map(|s| s.view()),
            space: self.space.clone(),
            fit_threads: self.fit_threads,
            checkpoint: self.checkpoint.clone(),
            resume: self.resume.clone(),
        }
    }
}

impl Tune {
    fn run(&self) -> Outcome {
        self.require_ready()?;
        if self.is_running.swap(true, Ordering::Relaxed) {
            return Err(is_running());
        }
        let result = self.search();
        self.is_running.store(false, Ordering::Relaxed);
        let words = |t: Trial| {
            let error = t.error.as_deref().map(c_message);
            (t, error)
        };
        let _ = self.found.set(result?.into_iter().map(words).collect());
        Ok(())
    }

    fn search(&self) -> Outcome<Vec<Trial>> {
        // A copy: the callback may call functions that lock the original.
        let setup = lock_ignoring_poison(&self.setup).clone();
        let monitor = Flag(setup.cancel.as_ref());
        let parts = setup.parts.matched()?;
        let valid = parts.entries(setup.valid.as_ref())?;
        let problem = parts.builder(&setup.options).build(&monitor)?;
        let how = TuneOptions {
            valid: valid.as_ref().map(MatchedSource::view),
            ..setup.search_options()
        };
        let mut watch = Watch {
            call: setup.callback,
            is_freed: &self.is_freed,
        };
        let result = search(&problem, &setup.options, &how, &mut watch, &monitor)?;
        if result.best().rungs == 0 {
            return Err(match result.reason {
                StopReason::TimeLimit => Error::argument(format!(
                    "time_limit = {}: the time was up before a trial was measured; increase it",
                    setup.options.time_limit
                )),
                _ => Error::Cancelled,
            }
            .into());
        }
        Ok(result.trials)
    }

    /// Fails unless the search can be changed and run.
    fn require_ready(&self) -> Outcome {
        if self.is_running.load(Ordering::Relaxed) {
            return Err(is_running());
        }
        match self.found.get() {
            None => Ok(()),
            Some(_) => Err(Failure::new(
                S3CMTF_BAD_STATE,
                "the search has ended; a search runs once, create another",
            )),
        }
    }

    fn found(&self) -> Outcome<&[(Trial, Option<CString>)]> {
        let missing = || match self.is_running.load(Ordering::Relaxed) {
            true => is_running(),
            false => Failure::new(S3CMTF_BAD_STATE, "the search has not run"),
        };
        Ok(self.found.get().ok_or_else(missing)?)
    }

    fn at(&self, at: u64) -> Outcome<&(Trial, Option<CString>)> {
        let found = self.found()?;
        Ok(&found[place(at, found.len(), "place")?])
    }
}

fn is_running() -> Failure {
    Failure::new(
        S3CMTF_BAD_STATE,
        "the search is running; its results are there when s3cmtf_tune_run() has returned",
    )
}

impl TrialFigures {
    fn new(trial: &Trial, error: Option<&CString>) -> TrialFigures {
        TrialFigures {
            size: size_of::<TrialFigures>() as u64,
            number: trial.number as u64,
            rungs: trial.rungs as u64,
            epochs: trial.epochs,
            valid_rmse: trial.valid_rmse,
            seconds: trial.seconds,
            done: 0,
            total: 0,
            best_rmse: f64::NAN,
            error: error.map_or(ptr::null(), |e| e.as_ptr()),
        }
    }
}

/// Calls the host.
struct Watch<'a> {
    call: Option<Call<TrialFigures>>,
    is_freed: &'a AtomicBool,
}

impl TuneObserver for Watch<'_> {
    fn trial(&mut self, progress: &TuneProgress<'_>) -> Control {
        let is_freed = || self.is_freed.load(Ordering::Relaxed);
        if is_freed() {
            return Control::Stop;
        }
        let Some(call) = self.call else {
            return Control::Continue;
        };
        let error = progress.trial.error.as_deref().map(c_message);
        let mut figures = TrialFigures::new(progress.trial, error.as_ref());
        (figures.done, figures.total) = (progress.done as u64, progress.total as u64);
        figures.best_rmse = progress.best;
        match call.call(&figures) {
            Control::Continue if !is_freed() => Control::Continue,
            _ => Control::Stop,
        }
    }
}

/// Changes a search that has not run.
fn change(
    tune: Option<&mut TuneHandle>,
    error: Option<&mut ErrorHandle>,
    set: impl FnOnce(&mut Setup) -> Outcome,
) -> i32 {
    guard(error, || {
        let tune = &given(tune, "tune")?.tune;
        tune.require_ready()?;
        set(&mut lock_ignoring_poison(&tune.setup))
    })
}

/// A number of a request; 0 means the default.
fn or_default(number: u64, default: usize) -> usize {
    match number {
        0 => default,
        n => usize::try_from(n).unwrap_or(usize::MAX),
    }
}
