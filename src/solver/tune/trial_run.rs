//! The fit of one trial up to a rung.

use std::sync::Mutex;

use super::trial::TuneOptions;
use crate::error::{Error, Result};
use crate::model::{Checkpoint, EpochMetrics, Model};
use crate::options::{Initialization, ModelKind, Options};
use crate::parallel::StopFlag;
use crate::problem::Problem;
use crate::progress::Monitor;
use crate::solver::driver::{Clock, Fit, FitMonitor, FitState};
use crate::solver::gibbs_init::{GibbsStart, chain_rank};
use crate::solver::holdout_split::HoldoutSplit;
use crate::solver::input::FitInput;
use crate::solver::observer::{Control, Observer};
use crate::solver::standardization::Standardization;

/// A fit that can be continued.
pub(super) type PausedFit = (Model, Checkpoint);

/// A trial to be fitted up to a rung.
pub(super) struct TrialJob {
    pub options: Options,
    /// The epoch of the rung.
    pub epoch: u64,
    /// The fit to continue; `None` if the trial starts over.
    pub paused: Mutex<Option<PausedFit>>,
}

impl TrialJob {
    fn take_paused(&self) -> Option<PausedFit> {
        self.paused.lock().unwrap_or_else(|e| e.into_inner()).take()
    }

    fn starts_over(&self) -> bool {
        self.paused
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .is_none()
    }
}

/// Runs trials, from any thread.
#[derive(Clone)]
pub(super) struct TrialRunner<'a> {
    problem: &'a Problem<'a>,
    search_options: &'a TuneOptions<'a>,
    /// The resolved options of the plain fit.
    base: &'a Options,
    /// The standardization of the plain fit.
    standardization: Option<Standardization>,
    /// The held-out entries; `None` if there are validation entries.
    holdout: Option<HoldoutSplit>,
    /// Starting values from short runs of `gibbs`, with their ranks.
    gibbs_starts: Vec<(usize, GibbsStart)>,
}

impl<'a> TrialRunner<'a> {
    pub(super) fn new(
        problem: &'a Problem<'a>,
        search_options: &'a TuneOptions<'a>,
        base: &'a Options,
        standardization: Option<Standardization>,
    ) -> TrialRunner<'a> {
        let fraction = search_options.fraction;
        TrialRunner {
            problem,
            search_options,
            base,
            standardization,
            holdout: match search_options.valid {
                Some(_) => None,
                None => Some(HoldoutSplit::new(fraction, 1.0 - fraction, base.seed)),
            },
            gibbs_starts: Vec::new(),
        }
    }

    /// Computes the starting values that these trials need, once for all trials of a rank.
    pub(super) fn prepare(&mut self, jobs: &[TrialJob], monitor: &dyn Monitor) -> Result<()> {
        for job in jobs {
            let rank = chain_rank(self.problem, &job.options);
            let needs_start = job.starts_over() && job.options.start == Initialization::Gibbs;
            if !needs_start || self.gibbs_start(rank).is_some() {
                continue;
            }
            // From the plain fit's options, so that the order of the trials does not matter.
            let options = Options {
                model: ModelKind::Cp,
                rank: vec![rank],
                ..self.base.clone()
            };
            let held_out_fraction = if self.holdout.is_some() {
                self.search_options.fraction
            } else {
                0.0
            };
            // The monitor of the search has its time limit.
            let monitor = FitMonitor::new(monitor, Clock::start(), 0.0);
            let start =
                GibbsStart::sample(self.problem, &options, held_out_fraction, None, &monitor)?;
            self.gibbs_starts.push((rank, start));
        }
        Ok(())
    }

    /// The starting values of this rank, if they were computed.
    fn gibbs_start(&self, rank: usize) -> Option<&GibbsStart> {
        let start = self.gibbs_starts.iter().find(|(r, _)| *r == rank);
        start.map(|(_, start)| start)
    }

    /// Fits a trial up to its rung and returns its validation RMSE, and the fit to continue.
    pub(super) fn run(&self, job: &TrialJob, stop: &StopFlag) -> Result<(f64, PausedFit)> {
        let (problem, options, base) = (self.problem, &job.options, self.base);
        let monitor = FitMonitor::new(stop, Clock::start(), 0.0);
        let paused = job.take_paused();
        let gibbs_start = self.gibbs_start(chain_rank(problem, options));
        let start = match (options.start, gibbs_start) {
            _ if paused.is_some() => None,
            (Initialization::Gibbs, Some(start)) => {
                Some(start.initial_model(problem, options, &monitor)?)
            }
            _ => None,
        };
        // Standardization depends on these options only.
        let baseline = |o: &Options| (o.mean, o.biases, o.allows_baseline());
        let is_same_standardization = baseline(options) == baseline(base);
        let input = FitInput {
            valid: self.search_options.valid.clone(),
            ..FitInput::default()
        };
        let standardization = self.standardization.clone();
        let state = FitState {
            start,
            standardization: standardization.filter(|_| is_same_standardization),
            holdout: self.holdout,
            checkpoint: paused,
            ..FitState::default()
        };
        let mut observer = StopAfter(job.epoch);
        let is_new = state.checkpoint.is_none();
        let mut fit = Fit::new(problem, options, &input, state, &mut observer, &monitor)?;
        if is_new {
            fit.prepare(None)?;
        }
        fit.run(&mut observer)?;
        if monitor.is_cancelled_by_caller() {
            return Err(Error::Cancelled);
        }
        Ok((fit.validation_error()?, fit.into_checkpoint()?))
    }
}

/// Stops a fit after an epoch.
struct StopAfter(u64);

impl Observer for StopAfter {
    fn epoch(&mut self, metrics: &EpochMetrics) -> Control {
        if metrics.epoch >= self.0 {
            Control::Stop
        } else {
            Control::Continue
        }
    }
}
