//! Progress reports of a running fit: metrics of each epoch and events.

use crate::fit_plan::Choice;
use crate::model::{EpochMetrics, FitRecord};

/// Answer of an [`Observer`] after an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// The fit continues.
    Continue,
    /// The fit stops after this epoch and returns its model.
    Stop,
}

/// An event of a fit other than a completed epoch.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A rank was lowered to the number of rows of its mode.
    RankLowered(String),
    /// The loss exploded. The fit was rolled back to `epoch` and continues with a smaller learning rate.
    RolledBack {
        /// Epoch that the fit was rolled back to.
        epoch: u64,
        /// Learning rate of the next epoch; NaN if the algorithm has none.
        eta: f64,
    },
    /// A checkpoint was written.
    Checkpoint {
        /// Epoch after which it was written.
        epoch: u64,
    },
    /// The fit chose something that the options left open.
    Selected(Choice),
    /// The data or the options are probably not what the user intended.
    Warning(String),
    /// The fit stopped.
    Stopped(StopReason),
}

impl Event {
    /// Adds the event to the record of the model. Checkpoints and the end of the fit are not recorded here.
    pub(super) fn record(&self, record: &mut FitRecord, epoch: u64) {
        match self {
            Event::RankLowered(text) => record.add_event(epoch, "rank-lowered", text),
            Event::RolledBack { epoch, eta } => {
                let rate = match eta.is_nan() {
                    true => String::new(),
                    false => format!(", eta {eta}"),
                };
                let text = format!("the loss exploded: back to epoch {epoch}{rate}");
                record.add_event(*epoch, "rolled-back", &text);
            }
            Event::Selected(choice) => {
                let text = format!("{}: {}", choice.question, choice.answer);
                record.add_event(epoch, "selected", &text);
            }
            Event::Warning(text) => record.add_event(epoch, "warning", text),
            Event::Checkpoint { .. } | Event::Stopped(_) => {}
        }
    }
}

impl Choice {
    /// Records the choice and tells the observer.
    pub(super) fn report(&self, record: &mut FitRecord, epoch: u64, observer: &mut dyn Observer) {
        let event = Event::Selected(self.clone());
        event.record(record, epoch);
        observer.event(&event);
    }
}

/// Reason why a fit stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// All epochs were completed.
    Epochs,
    /// The relative change of the training loss fell below `tolerance`.
    Tolerance,
    /// The algorithm cannot lower the training loss any further.
    Converged,
    /// The validation error has not improved for `patience` evaluations.
    Patience,
    /// The time limit passed.
    TimeLimit,
    /// The observer or the monitor ended the fit.
    Cancelled,
}

impl StopReason {
    /// Returns the name used in summaries and records.
    pub fn name(self) -> &'static str {
        match self {
            StopReason::Epochs => "epochs",
            StopReason::Tolerance => "tolerance",
            StopReason::Converged => "converged",
            StopReason::Patience => "patience",
            StopReason::TimeLimit => "time-limit",
            StopReason::Cancelled => "cancelled",
        }
    }
}

/// Receives progress reports, on the thread that called [`fit`](super::fit()). `()` ignores them.
pub trait Observer {
    /// Called after every epoch. Metrics that were not measured are NaN.
    fn epoch(&mut self, metrics: &EpochMetrics) -> Control {
        let _ = metrics;
        Control::Continue
    }

    /// Called for every other event.
    fn event(&mut self, event: &Event) {
        let _ = event;
    }
}

impl Observer for () {}
