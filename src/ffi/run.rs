//! One fit as it runs, on the caller's thread or on one of its own.

use std::ffi::CString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use super::arg::c_text;
use super::coo_handle::Source;
use super::guard::caught;
use super::problem::Parts;
use super::progress::{
    Progress, S3CMTF_EVENT_CHECKPOINT, S3CMTF_EVENT_EPOCH, S3CMTF_EVENT_RANK_LOWERED,
    S3CMTF_EVENT_ROLLED_BACK, S3CMTF_EVENT_SELECTED, S3CMTF_EVENT_WARNING, S3CMTF_FIT_ENDED,
    S3CMTF_FIT_READY, S3CMTF_FIT_RUNNING,
};
use super::status::Outcome;
use crate::error::Error;
use crate::model::{EpochMetrics, Model};
use crate::options::Options;
use crate::progress::Monitor;
use crate::solver::{Control, Event, FitInput, Observer, StopReason, fit};

/// Everything a fit needs; owns or shares all of it.
#[derive(Clone)]
pub(super) struct Job {
    pub parts: Parts,
    pub options: Options,
    pub test: Option<Arc<Source>>,
    pub valid: Option<Arc<Source>>,
    pub init: Option<Arc<Model>>,
    pub checkpoint: Option<PathBuf>,
    pub resume: Option<PathBuf>,
    pub cancel: Option<Arc<AtomicBool>>,
}

/// What the fit and those who watch it have in common.
pub(super) struct Shared {
    state: Mutex<State>,
    ended: Condvar,
    cancel: AtomicBool,
}

struct State {
    progress: Progress,
    /// What the fit gave, until somebody takes it.
    outcome: Option<Outcome<Model>>,
}

impl Shared {
    pub fn new(options: &Options) -> Shared {
        Shared {
            state: Mutex::new(State {
                progress: Progress::new(options.epochs),
                outcome: None,
            }),
            ended: Condvar::new(),
            cancel: AtomicBool::new(false),
        }
    }

    pub fn progress(&self) -> Progress {
        self.lock().progress
    }

    pub fn cancel(&self) {
        self.cancel.store(true, Ordering::Relaxed);
    }

    /// What the fit gave, once.
    pub fn take(&self) -> Option<Outcome<Model>> {
        self.lock().outcome.take()
    }

    /// Waits until the fit has ended or the time (`None`: for ever) is up; whether it still runs.
    pub fn wait(&self, time: Option<Duration>) -> bool {
        let running = |s: &mut State| s.progress.state == S3CMTF_FIT_RUNNING;
        let state = self.lock();
        match time {
            None => {
                drop(self.ended.wait_while(state, running));
                false
            }
            Some(time) => self
                .ended
                .wait_timeout_while(state, time, running)
                .is_ok_and(|(mut s, _)| running(&mut s)),
        }
    }

    pub fn begin(&self) {
        self.lock().progress.state = S3CMTF_FIT_RUNNING;
    }

    /// A fit that could not begin may be tried again.
    pub fn unbegin(&self) {
        self.lock().progress.state = S3CMTF_FIT_READY;
    }

    fn end(&self, outcome: Outcome<Model>) {
        let mut state = self.lock();
        state.progress.state = S3CMTF_FIT_ENDED;
        state.outcome = Some(outcome);
        drop(state);
        self.ended.notify_all();
    }

    /// No code that holds the lock panics, and figures are figures if it did.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// A function of the host.
pub(super) type Call<'a> = &'a mut dyn FnMut(&Progress) -> bool;

/// Runs a fit that has begun to its end, whatever happens. `call` is shown what happens and returns whether
/// to stop.
pub(super) fn run<'a>(job: &Job, shared: &'a Shared, call: Option<Call<'a>>) {
    let outcome = caught(|| {
        let monitor = Cancelled {
            own: &shared.cancel,
            token: job.cancel.as_deref(),
        };
        let problem = job.parts.builder(&job.options).build(&monitor)?;
        let input = FitInput {
            test: job.test.as_ref().map(|s| s.view()),
            valid: job.valid.as_ref().map(|s| s.view()),
            init: job.init.as_deref(),
            checkpoint: job.checkpoint.clone(),
            resume: job.resume.clone(),
            ..FitInput::default()
        };
        let mut watch = Watch { shared, call };
        let (model, summary) = fit(&problem, &job.options, &input, &mut watch, &monitor)?;
        // Starting values are not what anybody was waiting for.
        if summary.reason == StopReason::Cancelled && model.history().is_empty() {
            return Err(Error::Cancelled.into());
        }
        shared.lock().progress.set_summary(&summary);
        Ok(model)
    });
    shared.end(outcome);
}

struct Cancelled<'a> {
    own: &'a AtomicBool,
    token: Option<&'a AtomicBool>,
}

impl Monitor for Cancelled<'_> {
    fn cancelled(&self) -> bool {
        self.own.load(Ordering::Relaxed) || self.token.is_some_and(|t| t.load(Ordering::Relaxed))
    }
}

/// Keeps the figures for those who poll, and calls the host.
struct Watch<'a> {
    shared: &'a Shared,
    call: Option<Call<'a>>,
}

impl Watch<'_> {
    /// Whether the host wants to stop.
    fn tell(&mut self, event: i32, message: Option<CString>) -> bool {
        let Some(call) = &mut self.call else {
            return false;
        };
        let mut progress = self.shared.progress();
        progress.event = event;
        progress.message = message.as_ref().map_or(std::ptr::null(), |m| m.as_ptr());
        call(&progress)
    }
}

impl Observer for Watch<'_> {
    fn epoch(&mut self, figures: &EpochMetrics) -> Control {
        self.shared.lock().progress.set_epoch(figures);
        if self.tell(S3CMTF_EVENT_EPOCH, None) {
            Control::Stop
        } else {
            Control::Continue
        }
    }

    fn event(&mut self, event: &Event) {
        let (number, message) = match event {
            Event::RankLowered(text) => (S3CMTF_EVENT_RANK_LOWERED, text.clone()),
            Event::RolledBack { epoch, eta } => {
                let mut state = self.shared.lock();
                state.progress.rollbacks += 1;
                state.progress.epoch = *epoch;
                (
                    S3CMTF_EVENT_ROLLED_BACK,
                    match eta.is_nan() {
                        true => format!("the loss exploded; back to epoch {epoch}"),
                        false => format!(
                            "the loss exploded; back to epoch {epoch} with learning rate {eta}"
                        ),
                    },
                )
            }
            Event::Warning(text) => (S3CMTF_EVENT_WARNING, text.clone()),
            Event::Selected { what, text } => (S3CMTF_EVENT_SELECTED, format!("{what}: {text}")),
            Event::Checkpoint { epoch } => (
                S3CMTF_EVENT_CHECKPOINT,
                format!("checkpoint after epoch {epoch}"),
            ),
            // The end is what the call returns.
            Event::Stopped(_) => return,
        };
        if self.tell(number, Some(c_text(&message))) {
            self.shared.cancel();
        }
    }
}
