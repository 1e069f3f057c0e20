//! What a fit tells while it runs.

use crate::model::{EpochMetrics, FitRecord};

/// Whether a fit goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// It goes on.
    Continue,
    /// It stops after this epoch and returns the model it has.
    Stop,
}

/// Something worth knowing that is not an epoch's figures.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A rank was lowered to the rows its mode has.
    RankLowered(String),
    /// The loss exploded; the fit went back to `epoch` and goes on with step size `eta`.
    RolledBack {
        /// The epoch the fit went back to.
        epoch: u64,
        /// The first step size from there on.
        eta: f64,
    },
    /// A checkpoint was written.
    Checkpoint {
        /// After this epoch.
        epoch: u64,
    },
    /// The best epoch of a fit with some entries held out is known; all entries are fitted to now.
    Refit {
        /// For so many epochs.
        epochs: u64,
    },
    /// The data is not likely to be what was meant.
    Warning(String),
    /// The fit ended.
    Stopped(StopReason),
}

impl Event {
    /// Adds it to what is kept of a fit, if it says something about the model.
    pub(super) fn record(&self, record: &mut FitRecord, epoch: u64) {
        match self {
            Event::RankLowered(text) => record.add_event(epoch, "rank-lowered", text),
            Event::RolledBack { epoch, eta } => {
                let text = format!("the loss exploded: back to epoch {epoch}, eta {eta}");
                record.add_event(*epoch, "rolled-back", &text);
            }
            Event::Refit { epochs } => {
                let text = format!(
                    "the best epoch is known; all entries are fitted to for {epochs} epochs"
                );
                record.add_event(epoch, "refit", &text);
            }
            Event::Warning(text) => record.add_event(epoch, "warning", text),
            Event::Checkpoint { .. } | Event::Stopped(_) => {}
        }
    }
}

/// Why a fit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// All epochs were run.
    Epochs,
    /// The training loss hardly changed any more.
    Tolerance,
    /// The validation error got no better.
    Patience,
    /// The time was up.
    TimeLimit,
    /// The observer said so.
    Cancelled,
}

impl StopReason {
    /// One word for it.
    pub fn name(self) -> &'static str {
        match self {
            StopReason::Epochs => "epochs",
            StopReason::Tolerance => "tolerance",
            StopReason::Patience => "patience",
            StopReason::TimeLimit => "time-limit",
            StopReason::Cancelled => "cancelled",
        }
    }
}

/// Watches a fit, on the thread that called it. `()` watches nothing.
pub trait Observer {
    /// After every epoch; figures that were not measured are NaN.
    fn epoch(&mut self, figures: &EpochMetrics) -> Control {
        let _ = figures;
        Control::Continue
    }

    /// When something else happens.
    fn event(&mut self, event: &Event) {
        let _ = event;
    }
}

impl Observer for () {}
