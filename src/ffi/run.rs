//! One fit as it runs, on the caller's thread or on one of its own.

use std::ffi::CString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use super::arg::c_message;
use super::coo_handle::{MatchedSource, Source};
use super::guard::caught;
use super::model::ModelHandle;
use super::problem::{MatchedParts, Parts};
use super::progress::{
    Progress, S3CMTF_EVENT_CHECKPOINT, S3CMTF_EVENT_EPOCH, S3CMTF_EVENT_RANK_LOWERED,
    S3CMTF_EVENT_ROLLED_BACK, S3CMTF_EVENT_SELECTED, S3CMTF_EVENT_WARNING, S3CMTF_FIT_ENDED,
    S3CMTF_FIT_READY, S3CMTF_FIT_RUNNING,
};
use super::status::{Failure, Outcome, S3CMTF_BAD_STATE};
use crate::error::Error;
use crate::fit_plan::{Choice, FitPlan};
use crate::format::RowMatch;
use crate::model::EpochMetrics;
use crate::options::Options;
use crate::problem::Problem;
use crate::progress::Monitor;
use crate::solver::{Control, Event, FitInput, Observer, StopReason, fit, plan, train};

/// Everything a fit needs; owns or shares all of it.
#[derive(Clone)]
pub(super) struct Job {
    pub parts: Parts,
    pub options: Options,
    pub test: Option<Arc<Source>>,
    pub valid: Option<Arc<Source>>,
    pub init: Option<ModelHandle>,
    pub checkpoint: Option<PathBuf>,
    pub resume: Option<PathBuf>,
    pub plan: Option<FitPlan>,
    pub cancel: Option<Arc<AtomicBool>>,
}

/// What the fit and those who watch it have in common.
pub(super) struct Shared {
    state: Mutex<State>,
    ended: Condvar,
    cancel: AtomicBool,
    /// Whether the handle was freed. The callback is not called any more.
    is_freed: AtomicBool,
}

struct State {
    progress: Progress,
    /// Whether the fit was started in the background.
    in_background: bool,
    /// What the fit gave, until somebody takes it.
    outcome: Option<Outcome<ModelHandle>>,
}

impl Shared {
    pub fn new(options: &Options) -> Shared {
        Shared {
            state: Mutex::new(State {
                progress: Progress::new(options.epochs),
                in_background: false,
                outcome: None,
            }),
            ended: Condvar::new(),
            cancel: AtomicBool::new(false),
            is_freed: AtomicBool::new(false),
        }
    }

    pub fn progress(&self) -> Progress {
        self.lock().progress
    }

    pub fn cancel(&self) {
        self.cancel.store(true, Ordering::Relaxed);
    }

    /// Ends the fit, whose handle is being freed.
    pub fn release(&self) {
        self.is_freed.store(true, Ordering::Relaxed);
        self.cancel();
    }

    /// What the fit gave, once.
    pub fn take(&self) -> Option<Outcome<ModelHandle>> {
        self.lock().outcome.take()
    }

    /// Fails unless the fit is in this state.
    pub fn require(&self, state: i32) -> Outcome {
        self.lock().require(state)
    }

    /// Waits until the fit has ended or the time (`None`: for ever) is up; whether it still runs.
    pub fn wait(&self, time: Option<Duration>) -> Outcome<bool> {
        let running = |s: &mut State| s.progress.state == S3CMTF_FIT_RUNNING;
        let mut state = self.lock();
        // Its callback would wait for itself.
        if running(&mut state) && !state.in_background {
            return Err(Failure::new(
                S3CMTF_BAD_STATE,
                "the fit runs in s3cmtf_fit_run(), which returns at its end; only fits in the background can be waited for",
            ));
        }
        Ok(match time {
            None => {
                drop(self.ended.wait_while(state, running));
                false
            }
            Some(time) => self
                .ended
                .wait_timeout_while(state, time, running)
                .is_ok_and(|(mut s, _)| running(&mut s)),
        })
    }

    /// Begins a fit that has not started.
    pub fn begin(&self, in_background: bool) -> Outcome {
        let mut state = self.lock();
        state.require(S3CMTF_FIT_READY)?;
        state.progress.state = S3CMTF_FIT_RUNNING;
        state.in_background = in_background;
        Ok(())
    }

    /// A fit that could not begin may be tried again.
    pub fn unbegin(&self) {
        self.lock().progress.state = S3CMTF_FIT_READY;
    }

    fn end(&self, outcome: Outcome<ModelHandle>) {
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

impl State {
    fn require(&self, state: i32) -> Outcome {
        let now = self.progress.state;
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
}

/// A function of the host.
pub(super) type Call<'a> = &'a mut dyn FnMut(&Progress) -> bool;

/// Runs a fit that has begun to its end, whatever happens. `call` is shown what happens and returns whether
/// to stop.
pub(super) fn run<'a>(job: &Job, shared: &'a Shared, call: Option<Call<'a>>) {
    let outcome = caught(|| {
        job.with_problem(shared, call, |problem, names, input, watch, monitor| {
            let options = &job.options;
            let (model, summary) = match &job.plan {
                Some(plan) => {
                    shared.lock().progress.epochs = plan.options.epochs;
                    train(problem, plan, options, input, watch, monitor)?
                }
                None => fit(problem, options, input, watch, monitor)?,
            };
            // A cancelled fit without an epoch has a model, but its status is promised to be S3CMTF_CANCELLED.
            if summary.reason == StopReason::Cancelled && summary.is_without_epochs() {
                return Err(Error::Cancelled.into());
            }
            shared.lock().progress.set_summary(&summary);
            Ok(ModelHandle::new(model, names.names()?))
        })
    });
    shared.end(outcome);
}

/// Makes the plan of a fit that has not begun.
pub(super) fn make_plan(job: &Job, shared: &Shared) -> Outcome<FitPlan> {
    let options = &job.options;
    job.with_problem(shared, None, |problem, _, input, watch, monitor| {
        Ok(plan(problem, options, input, watch, monitor)?)
    })
}

impl Job {
    /// Builds the problem of a fit and calls `then` with it, the tables of names, the input, and those who watch and cancel.
    fn with_problem<'a, T>(
        &self,
        shared: &'a Shared,
        call: Option<Call<'a>>,
        then: impl FnOnce(
            &Problem<'_>,
            &MatchedParts<'_>,
            &FitInput<'_>,
            &mut Watch<'_>,
            &dyn Monitor,
        ) -> Outcome<T>,
    ) -> Outcome<T> {
        let job = self;
        let monitor = Cancelled {
            own: &shared.cancel,
            token: job.cancel.as_deref(),
        };
        let parts = job.parts.matched()?;
        let (test, valid) = (
            parts.entries(job.test.as_ref())?,
            parts.entries(job.valid.as_ref())?,
        );
        let mut watch = Watch { shared, call };
        let entries = [&test, &valid].into_iter().flatten();
        for rows in parts.matches().chain(entries.map(|e| &e.rows)) {
            watch.report(rows);
        }
        if let Some(init) = &job.init {
            for warning in init.matcher()?.require_same_rows(&parts.as_model()?)? {
                if parts.has_file() {
                    watch.event(&Event::Warning(warning));
                }
            }
        }
        let mut options = job.options.clone();
        if let Some(plan) = &job.plan {
            options.seed = plan.options.seed;
        }
        let problem = parts.builder(&options).build(&monitor)?;
        let input = FitInput {
            test: test.as_ref().map(MatchedSource::view),
            valid: valid.as_ref().map(MatchedSource::view),
            init: job.init.as_ref().map(|init| &*init.model),
            checkpoint: job.checkpoint.clone(),
            resume: job.resume.clone(),
            ..FitInput::default()
        };
        then(&problem, &parts, &input, &mut watch, &monitor)
    }
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
    /// Reports how rows were matched.
    fn report(&mut self, rows: &RowMatch) {
        for text in &rows.warnings {
            self.event(&Event::Warning(text.clone()));
        }
        for text in &rows.notes {
            self.event(&Event::Selected(Choice::new("rows", text.clone(), &[])));
        }
    }

    /// Whether the host wants to stop.
    fn tell(&mut self, event: i32, message: Option<CString>) -> bool {
        let is_freed = self.shared.is_freed.load(Ordering::Relaxed);
        let Some(call) = self.call.as_mut().filter(|_| !is_freed) else {
            return is_freed;
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
            Event::Selected(choice) => (
                S3CMTF_EVENT_SELECTED,
                format!("{}: {}", choice.question, choice.answer),
            ),
            Event::Checkpoint { epoch } => (
                S3CMTF_EVENT_CHECKPOINT,
                format!("checkpoint after epoch {epoch}"),
            ),
            // The end is what the call returns.
            Event::Stopped(_) => return,
        };
        if self.tell(number, Some(c_message(&message))) {
            self.shared.cancel();
        }
    }
}
