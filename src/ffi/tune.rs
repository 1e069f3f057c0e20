//! Searches for options.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::arg::{
    Sized64, c_text, given, hand_over, optional_path, place, struct_out, text, text_out,
};
use super::cancel::CancelHandle;
use super::coo_handle::{CooHandle, Source};
use super::error_handle::ErrorHandle;
use super::guard::{guard, release};
use super::host::{Call, Flag, ran};
use super::options::OptionsHandle;
use super::problem::{Parts, ProblemHandle};
use super::status::{Failure, Outcome, S3CMTF_BAD_STATE};
use crate::options::Options;
use crate::solver::Control;
use crate::solver::tune::{Space, Trial, TuneObserver, TuneOptions, TuneProgress, tune as search};

/// What a trial gave. It grows at its end in later versions, which is what `size` is for: set it to sizeof
/// before handing the struct to a function, and a field beyond it is never touched; in a callback, use only
/// fields within it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TrialFigures {
    /// The bytes of this struct that mean something.
    pub size: u64,
    /// The number of the trial, from 0; that is the fit that is not tuned.
    pub number: u64,
    /// How many rungs it was measured at.
    pub rungs: u64,
    /// The epochs at the last of them ("gibbs": sweeps).
    pub epochs: u64,
    /// The error there, on the entries that trials are compared on; NaN if there is none.
    pub valid_rmse: f64,
    /// Seconds spent on it.
    pub seconds: f64,
    /// In a callback, the trials measured at this rung, and those to be measured; otherwise 0.
    pub done: u64,
    /// See `done`.
    pub total: u64,
    /// In a callback, the lowest error at this rung so far; otherwise NaN.
    pub best_rmse: f64,
    /// Why the trial failed; NULL if it did not. It lives until the callback returns, or as long as the
    /// search.
    pub failed: *const c_char,
}

// SAFETY: laid out as C does, the size first.
unsafe impl Sized64 for TrialFigures {}

// The layout is part of the ABI: fields are added at the end, and none moves.
#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(TrialFigures, number) == 8);
    assert!(offset_of!(TrialFigures, valid_rmse) == 32);
    assert!(offset_of!(TrialFigures, best_rmse) == 64);
    assert!(offset_of!(TrialFigures, failed) == 72);
    assert!(size_of::<TrialFigures>() == 80);
};

/// Called on the thread that called s3cmtf_tune_run(), after every fit of a trial. Returning anything but 0
/// ends the search with what it has. It must not throw, longjmp out, or use the search it is called from;
/// other calls of the library are fine. `trial` lives until it returns, `user` is what it was set with.
pub type TrialCallback =
    Option<unsafe extern "C" fn(trial: *const TrialFigures, user: *mut c_void) -> i32>;

/// A search for better options than a fit chooses by itself: random search with successive halving. Trials
/// are drawn around what the fit would choose, which is the first of them; they are fitted side by side, each
/// on one thread, for some of their epochs, and compared on entries that are held out; the best third goes
/// on. The outcome does not depend on the number of threads. A search runs once.
pub struct TuneHandle {
    parts: Parts,
    options: Options,
    trials: u64,
    rungs: u64,
    fit_threads: u64,
    fraction: f64,
    valid: Option<Arc<Source>>,
    space: Space,
    checkpoint: Option<PathBuf>,
    resume: Option<PathBuf>,
    cancel: Option<Arc<AtomicBool>>,
    callback: Option<Call<TrialFigures>>,
    /// The trials, best first, and why they failed.
    found: Option<Vec<(Trial, Option<CString>)>>,
}

/// Prepares a search, to be freed with s3cmtf_tune_free(). Problem and options are copied (the entries
/// shared) and may be freed or changed. The options are where the search begins and what all trials have in
/// common: "threads" is the number for all, "time_limit" and "seed" are those of the search. NULL for the
/// defaults.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_tune_new(
    problem: Option<&ProblemHandle>,
    options: Option<&OptionsHandle>,
    tune: Option<&mut MaybeUninit<*mut TuneHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (problem, out) = (given(problem, "problem")?, given(tune, "tune")?);
        let how = TuneOptions::default();
        hand_over(
            out,
            TuneHandle {
                parts: problem.parts.clone(),
                options: options.map_or_else(Options::default, |o| o.options.clone()),
                trials: how.trials as u64,
                rungs: how.rungs as u64,
                fit_threads: how.fit_threads as u64,
                fraction: how.fraction,
                valid: None,
                space: Space::default(),
                checkpoint: None,
                resume: None,
                cancel: None,
                callback: None,
                found: None,
            },
        );
        Ok(())
    })
}

/// Sets how many trials there are (200 if nothing is said), the fit that is not tuned among them.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_tune_set_trials(
    tune: Option<&mut TuneHandle>,
    trials: u64,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    change(tune, error, |tune| {
        tune.trials = within(trials, 1_000_000, "trials")?;
        Ok(())
    })
}

/// Sets how often trials are compared (3 if nothing is said); the last time they have all their epochs.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_tune_set_rungs(
    tune: Option<&mut TuneHandle>,
    rungs: u64,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    change(tune, error, |tune| {
        tune.rungs = within(rungs, 20, "rungs")?;
        Ok(())
    })
}

/// Sets the threads of one fit (1 if nothing is said): as many fits run side by side as go into the option
/// "threads".
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_tune_set_fit_threads(
    tune: Option<&mut TuneHandle>,
    threads: u64,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    change(tune, error, |tune| {
        tune.fit_threads = within(threads, 4096, "threads")?;
        Ok(())
    })
}

/// Sets the part of the entries that is held out to compare trials on, above 0 and below 1 (0.1 if nothing is
/// said).
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_tune_set_fraction(
    tune: Option<&mut TuneHandle>,
    fraction: f64,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    change(tune, error, |tune| {
        if !(fraction > 0.0 && fraction < 1.0) {
            return Err(Failure::argument(format!(
                "fraction is {fraction}; it must be above 0 and below 1"
            )));
        }
        tune.fraction = fraction;
        Ok(())
    })
}

/// Sets entries to compare trials on; then none are held out. NULL for none. The object is shared and may be
/// freed before the search.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_tune_set_valid(
    tune: Option<&mut TuneHandle>,
    valid: Option<&CooHandle>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    change(tune, error, |tune| {
        tune.valid = valid.map(|c| c.source.clone());
        Ok(())
    })
}

/// Sets what an option is drawn from: values separated by commas ("8,16,32") or an interval ("0.005..0.1").
/// Rank, model, step, penalties, the step of the core and the weights of matrices without one of their own
/// are drawn in any case, around what the fit would choose.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_tune_set_range(
    tune: Option<&mut TuneHandle>,
    name: *const c_char,
    range: *const c_char,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    change(tune, error, |tune| {
        // SAFETY: texts of the caller, for this call.
        let (name, range) = unsafe { (text(name, "name")?, text(range, "range")?) };
        Ok(tune.space.set(name, range)?)
    })
}

/// Sets where the state of the search is kept, replaced as a whole now and then. NULL for nowhere.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_tune_set_checkpoint(
    tune: Option<&mut TuneHandle>,
    path: *const c_char,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    change(tune, error, |tune| {
        // SAFETY: a text of the caller, for this call.
        tune.checkpoint = unsafe { optional_path(path) }?;
        Ok(())
    })
}

/// Sets a state to go on from, with the same data and settings; only "threads" and "time_limit" may differ.
/// NULL for none.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_tune_set_resume(
    tune: Option<&mut TuneHandle>,
    path: *const c_char,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    change(tune, error, |tune| {
        // SAFETY: a text of the caller, for this call.
        tune.resume = unsafe { optional_path(path) }?;
        Ok(())
    })
}

/// Sets a token that ends the search from any thread, with what it has; before a trial was measured, with
/// S3CMTF_CANCELLED. NULL for none. The token may be freed before the search.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_tune_set_cancel(
    tune: Option<&mut TuneHandle>,
    cancel: Option<&CancelHandle>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    change(tune, error, |tune| {
        tune.cancel = cancel.map(|c| c.flag.clone());
        Ok(())
    })
}

/// Sets what s3cmtf_tune_run() calls as it goes. NULL for nothing. `user` is handed to the callback as it is.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_tune_set_callback(
    tune: Option<&mut TuneHandle>,
    callback: TrialCallback,
    user: *mut c_void,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    change(tune, error, |tune| {
        tune.callback = Call::new(callback, user);
        Ok(())
    })
}

/// Runs the search on the calling thread. A search that fails may be changed and run again.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_tune_run(
    tune: Option<&mut TuneHandle>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    change(tune, error, |handle| {
        let monitor = Flag(handle.cancel.as_ref());
        let problem = handle.parts.builder(handle.options.seed).build(&monitor)?;
        let how = TuneOptions {
            trials: handle.trials as usize,
            rungs: handle.rungs as usize,
            fraction: handle.fraction,
            valid: handle.valid.as_ref().map(|s| s.view()),
            space: handle.space.clone(),
            fit_threads: handle.fit_threads as usize,
            checkpoint: handle.checkpoint.clone(),
            resume: handle.resume.clone(),
        };
        let result = search(
            &problem,
            &handle.options,
            &how,
            &mut Watch(handle.callback),
            &monitor,
        )?;
        let words = |t: Trial| {
            let failed = t.failed.as_deref().map(c_text);
            (t, failed)
        };
        handle.found = Some(result.trials.into_iter().map(words).collect());
        Ok(())
    })
}

/// Writes the number of trials of a search that has run.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_tune_get_count(
    tune: Option<&TuneHandle>,
    count: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (tune, out) = (given(tune, "tune")?, given(count, "count")?);
        out.write(tune.found()?.len() as u64);
        Ok(())
    })
}

/// Writes what a trial gave: set `trial->size` before. `place` 0 is the best.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_tune_get_trial(
    tune: Option<&TuneHandle>,
    place: u64,
    trial: *mut TrialFigures,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (found, failed) = given(tune, "tune")?.at(place)?;
        // SAFETY: a struct of the caller, for this call.
        unsafe { struct_out(&TrialFigures::new(found, failed.as_ref()), trial, "trial") }
    })
}

/// Makes options of a trial, all settled, to be freed with s3cmtf_options_free(). `place` 0 is the best.
/// "threads", "pin", "kernel" and "time_limit" are those the search was given.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_tune_get_options(
    tune: Option<&TuneHandle>,
    place: u64,
    options: Option<&mut MaybeUninit<*mut OptionsHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (tune, out) = (given(tune, "tune")?, given(options, "options")?);
        let options = tune.at(place)?.0.options.clone();
        hand_over(out, OptionsHandle { options });
        Ok(())
    })
}

/// Writes the options of a trial as lines name=value, as the program's `fit --config` takes them, with a NUL
/// at the end. `needed` gets the bytes of all that; with `text` NULL and `capacity` 0 nothing else is
/// written. `needed` may be NULL.
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
        let lines = given(tune, "tune")?.at(place)?.0.to_text();
        // SAFETY: a buffer of the caller, for this call.
        unsafe { text_out(&lines, text, capacity, needed, "text") }
    })
}

/// Frees a search. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_tune_free(tune: Option<Box<TuneHandle>>) {
    release(|| drop(tune));
}

impl TuneHandle {
    fn found(&self) -> Outcome<&[(Trial, Option<CString>)]> {
        ran(self.found.as_ref(), "the search")
    }

    fn at(&self, at: u64) -> Outcome<&(Trial, Option<CString>)> {
        let found = self.found()?;
        Ok(&found[place(at, found.len(), "place")?])
    }
}

impl TrialFigures {
    fn new(trial: &Trial, failed: Option<&CString>) -> TrialFigures {
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
            failed: failed.map_or(ptr::null(), |f| f.as_ptr()),
        }
    }
}

/// Calls the host.
struct Watch(Option<Call<TrialFigures>>);

impl TuneObserver for Watch {
    fn trial(&mut self, progress: &TuneProgress<'_>) -> Control {
        let Some(call) = self.0 else {
            return Control::Continue;
        };
        let failed = progress.trial.failed.as_deref().map(c_text);
        let mut figures = TrialFigures::new(progress.trial, failed.as_ref());
        (figures.done, figures.total) = (progress.done as u64, progress.total as u64);
        figures.best_rmse = progress.best;
        call.call(&figures)
    }
}

/// Changes a search that has not run.
fn change(
    tune: Option<&mut TuneHandle>,
    error: Option<&mut ErrorHandle>,
    set: impl FnOnce(&mut TuneHandle) -> Outcome,
) -> i32 {
    guard(error, || {
        let tune = given(tune, "tune")?;
        if tune.found.is_some() {
            return Err(Failure::new(
                S3CMTF_BAD_STATE,
                "the search has run; make another",
            ));
        }
        set(tune)
    })
}

fn within(number: u64, most: u64, what: &str) -> Outcome<u64> {
    if (1..=most).contains(&number) {
        Ok(number)
    } else {
        Err(Failure::argument(format!(
            "{what} is {number}; it must be 1 to {most}"
        )))
    }
}
