//! How long a fit goes on, and how large its steps are.

use std::time::Instant;

use super::super::observer::StopReason;
use super::super::resume::{PATIENCE, TOLERANCE};
use super::Fit;
use crate::model::PosteriorSamples;
use crate::options::{LearningRateSchedule, Options};

/// The square schedule ends with this share of the first step.
const LEAST_STEP: f64 = 0.002;

/// `gibbs` has up to so many times the sweeps it was asked for, where it takes long to come to rest.
const MORE_SWEEPS: u64 = 3;

impl Fit<'_> {
    /// Why the fit whose checkpoint this goes on from had found its best epoch, with entries held out.
    pub(super) fn ended(&self) -> Option<StopReason> {
        let (o, p) = (&self.options, &self.progress);
        let finds = o.valid_fraction > 0.0 && o.refit && p.refit == 0;
        match p.ended {
            TOLERANCE if finds => Some(StopReason::Tolerance),
            PATIENCE if finds => Some(StopReason::Patience),
            _ => None,
        }
    }

    /// The number of the last epoch, as it looks after epoch `now`: those of `gibbs` are sweeps, which its samples
    /// ask for, and it makes up for those that were dropped.
    pub(super) fn last_epoch(&self, now: u64) -> u64 {
        let o = &self.options;
        match (self.draws(), self.progress.refit) {
            (true, _) => {
                let asked = o.burn_in.saturating_add(o.samples.saturating_mul(o.thin));
                let kept = self.model.samples.as_ref().map_or(0, PosteriorSamples::len) as u64;
                let lacks = o.samples.saturating_sub(kept).saturating_mul(o.thin);
                let under_way = now.saturating_sub(o.burn_in) % o.thin;
                let last = (now.max(o.burn_in) - under_way).saturating_add(lacks);
                last.min(asked.saturating_mul(MORE_SWEEPS))
            }
            (false, 0) => o.epochs,
            (false, found) => found,
        }
    }

    /// The step size of an epoch, counted from 1.
    pub(super) fn eta_of(&self, epoch: u64) -> f64 {
        let t = (epoch - 1) as f64;
        let share = match self.options.schedule {
            LearningRateSchedule::Inverse => 1.0 / (1.0 + self.options.decay * t),
            LearningRateSchedule::Square => {
                let left = 1.0 - t / self.options.epochs.max(1) as f64;
                (left * left).max(LEAST_STEP)
            }
        };
        self.options.eta.unwrap_or(0.0) * share * self.progress.eta_scale
    }
}

pub(super) fn out_of_time(options: &Options, started: Instant) -> bool {
    options.time_limit > 0.0 && started.elapsed().as_secs_f64() >= options.time_limit
}
