//! Choice of the noise model of `gibbs` by a pilot chain, which does not see part of the training entries.
//!
//! The chain has two phases. In the first it samples the noise variance from the residuals of the training entries, with
//! which it finds structure fastest. In the second the noise variance is [`NOISE_FRACTION`] of the squared error on the
//! held-out entries. If factors then gain too little over biases alone, the first phase continues to [`EXTENDED_FIRST_SWEEPS`]
//! sweeps, and the second phase is repeated. Three outcomes are possible:
//!
//! - The first phase predicts the held-out entries much better than the second: the noise is sampled from the residuals.
//! - The second phase predicts them hardly better than biases alone: the model has biases only.
//! - Otherwise the ratio of the noise variance to the residual variance in the second phase is kept. The fit, which uses
//!   all entries, multiplies its residual variance by this ratio.

use std::ops::RangeInclusive;

use super::bias_baseline::BiasErrors;
use super::noise_model::NoiseModel;
use super::noise_pilot::NoisePilot;
use super::prediction_window::{PredictionWindow, TwoValueErrors, WindowEstimate};
use super::probit::Probit;
use super::solver::RowwiseSolver;
use super::state::{ConditionalMeans, Sweep};
use super::stream_ids;
use super::update::Update;
use crate::error::Result;
use crate::fit_plan::{Choice, NoisePlan};
use crate::model::Model;
use crate::parallel::ThreadPool;
use crate::random::hash_words;

/// Number of sweeps that sample the noise from the residuals: this number of entries divided by that of the data, within these
/// limits. Structure of small data may take hundreds of sweeps to find, which are fast there.
const FIRST_ENTRY_UPDATES: usize = 600_000;
const FIRST_SWEEPS: [u64; 2] = [8, 250];

/// Largest number of these sweeps, as a multiple of the burn-in sweeps of the fit.
const MAX_FIRST_SWEEPS_FACTOR: u64 = 32;

/// Number of these sweeps where biases alone would predict after fewer.
const EXTENDED_FIRST_SWEEPS: u64 = 58;

/// Number of the last of these sweeps that predict held-out entries.
const FIRST_WINDOW: u64 = 3;

/// Number of the following sweeps of the pilot chain, and how many of the last of them predict held-out entries.
const LAST_SWEEPS: u64 = 12;
const LAST_WINDOW: u64 = 8;

/// Variance of the noise as a fraction of the held-out squared error.
const NOISE_FRACTION: f64 = 0.81;

/// The noise is sampled from the residuals if the held-out squared error is then below this fraction of that of the larger noise.
const SAMPLED_RATIO: f64 = 0.9;

/// The model has factors only if they lower the held-out squared error of biases alone by at least this fraction.
const MIN_GAIN: f64 = 0.003;

/// The same after an extended first phase, which is a second look at the same entries.
const EXTENDED_MIN_GAIN: f64 = 0.02;

/// Least variance of the noise in the pilot chain.
const MIN_VARIANCE: f64 = 1e-12;

/// What the two phases of the pilot chain measure, in standardized units.
struct PilotErrors {
    /// Squared error on the held-out entries at the end of the first phase.
    sampled: f64,
    /// At the end of the second phase.
    last: WindowEstimate,
    /// Errors at the end of each phase, if the tensor has two values.
    sampled_two_values: Option<TwoValueErrors>,
    last_two_values: Option<TwoValueErrors>,
    /// Mean squared residual of the training entries in the second phase.
    residual_variance: f64,
}

impl PilotErrors {
    /// Returns whether noise as small as the residuals predicts much better.
    fn favor_sampled_noise(&self, biases: &BiasErrors) -> bool {
        self.sampled < SAMPLED_RATIO * self.last.squared_error.min(biases.held_out)
    }

    /// Returns whether factors lower the error of biases alone by less than the fraction `min_gain`.
    fn favor_biases(&self, biases: &BiasErrors, min_gain: f64) -> bool {
        let limit = (1.0 - min_gain) * biases.held_out;
        !self.favor_sampled_noise(biases) && self.last.squared_error > limit
    }
}

impl RowwiseSolver {
    /// Runs the pilot chain and chooses the noise model, or takes the planned one. The following sweeps use all entries.
    pub(super) fn run_pilot(
        &mut self,
        pilot: &NoisePilot,
        planned: Option<&NoisePlan>,
        model: &mut Model,
        pool: &ThreadPool<'_>,
    ) -> Result<PilotChoice> {
        let Update::Sample { seed } = self.problem.update else {
            return Ok(PilotChoice::default());
        };
        let pilot_seed = hash_words(&[seed, stream_ids::NOISE_PILOT]);
        self.problem.update = Update::Sample { seed: pilot_seed };
        let chosen = match planned {
            Some(plan) => self.follow(plan, model, pool),
            None => self.choose_model(pilot, model, pool),
        };
        self.problem.update = Update::Sample { seed };
        self.state.pilot_variance = None;
        let chosen = chosen?;
        self.state.noise = chosen.noise;
        self.state.squared_error = None;
        self.problem.uninformed_sweep = 0;
        self.problem.training_count = self.entry_count;
        for (n, csr) in self.problem.tensor.iter_mut().enumerate() {
            csr.set_weights(pilot.weights.get(n).cloned().unwrap_or_default());
        }
        self.problem.find_unfolding_grams(pool)?;
        let range = model.range;
        if let Some(samples) = &mut model.samples {
            let link = |p: Probit| p.link(samples.mean, samples.scale, range);
            samples.link = self.problem.probit.map(link);
            samples.noise_ratio = self.state.noise.variance_ratio / self.state.noise.interval_ratio;
        }
        Ok(chosen)
    }

    /// Runs the sweeps of a planned pilot chain that leave a trace in its state, and takes the planned noise.
    fn follow(
        &mut self,
        plan: &NoisePlan,
        model: &mut Model,
        pool: &ThreadPool<'_>,
    ) -> Result<PilotChoice> {
        self.state.pilot_variance = None;
        for &(first, last) in &plan.sweeps {
            for number in first..=last {
                self.pilot_sweep(number, model, pool)?;
            }
        }
        if let Some((first, last)) = plan.probit_sweeps {
            self.problem.probit = self.probit_candidate;
            self.state.noise.has_biases_only = plan.has_biases_only;
            for number in first..=last {
                self.pilot_sweep(number, model, pool)?;
            }
        }
        self.state.conditional_means = ConditionalMeans::default();
        Ok(PilotChoice {
            noise: NoiseModel {
                variance_ratio: plan.variance_ratio,
                interval_ratio: plan.interval_ratio,
                has_biases_only: plan.has_biases_only,
            },
            sweeps: plan.sweeps.clone(),
            probit_sweeps: plan.probit_sweeps,
            choices: Vec::new(),
        })
    }

    /// Chooses the noise model and, for two-valued tensors, the likelihood.
    fn choose_model(
        &mut self,
        pilot: &NoisePilot,
        model: &mut Model,
        pool: &ThreadPool<'_>,
    ) -> Result<PilotChoice> {
        let gaussian = self.choose_noise_model(pilot, model, pool)?;
        match (self.probit_candidate, gaussian.errors) {
            (Some(probit), Some(errors)) => {
                self.choose_likelihood(pilot, probit, (gaussian, errors), model, pool)
            }
            _ => Ok(gaussian.without_probit()),
        }
    }

    /// Returns the noise model and the evidence for it. The state of the chain is then that after its first sweeps.
    fn choose_noise_model(
        &mut self,
        pilot: &NoisePilot,
        model: &mut Model,
        pool: &ThreadPool<'_>,
    ) -> Result<NoiseChoice> {
        let two_values = self.probit_candidate;
        let biases = self
            .problem
            .bias_errors(&pilot.holdout, two_values.as_ref(), pool)?;
        let [least, most] = FIRST_SWEEPS;
        let burn_in = self.burn_in.unwrap_or(0);
        let most = most.min(MAX_FIRST_SWEEPS_FACTOR.saturating_mul(burn_in));
        let first_sweeps = FIRST_ENTRY_UPDATES / self.entry_count.max(1);
        let first_sweeps = (first_sweeps as u64).clamp(least, most.max(least));
        let mut numbers = 1..=first_sweeps;
        let mut min_gain = MIN_GAIN;
        let mut last_sweep = first_sweeps + LAST_SWEEPS;
        let mut sweeps = vec![(1, first_sweeps)];
        let mut errors = self.run_phases(numbers, &biases, pilot, model, pool)?;
        // Structure may take longer to find.
        let extended_sweeps = EXTENDED_FIRST_SWEEPS.min(most);
        if first_sweeps < extended_sweeps && errors.favor_biases(&biases, min_gain) {
            numbers = last_sweep + 1..=last_sweep + extended_sweeps - first_sweeps;
            last_sweep = numbers.end() + LAST_SWEEPS;
            sweeps.push((*numbers.start(), *numbers.end()));
            min_gain = EXTENDED_MIN_GAIN;
            errors = self.run_phases(numbers, &biases, pilot, model, pool)?;
        }
        let error = errors.last.squared_error;
        let rmse = |squared_error: f64| self.problem.scaling.scale * squared_error.sqrt();
        let evidence = format!(
            "held-out RMSE {:.4}, {:.4} with noise as small as the residuals, {:.4} with biases alone",
            rmse(error),
            rmse(errors.sampled),
            rmse(biases.held_out)
        );
        let numbers = [
            ("held-out RMSE", rmse(error)),
            (
                "held-out RMSE with the noise of the residuals",
                rmse(errors.sampled),
            ),
            ("held-out RMSE of biases", rmse(biases.held_out)),
            ("held-out entries", pilot.holdout.csr.len() as f64),
        ];
        let choice = |noise: NoiseModel, errors: Option<TwoValueErrors>| NoiseChoice {
            noise,
            evidence,
            numbers,
            errors,
            last_sweep,
            sweeps,
        };
        if errors.favor_sampled_noise(&biases) {
            return Ok(choice(NoiseModel::default(), errors.sampled_two_values));
        }
        if errors.favor_biases(&biases, min_gain) {
            let noise = NoiseModel {
                interval_ratio: biases.interval_ratio(),
                has_biases_only: true,
                ..NoiseModel::default()
            };
            return Ok(choice(noise, biases.two_values));
        }
        let interval_variance = error - errors.last.posterior_variance;
        let noise = NoiseModel {
            variance_ratio: at_least_one(NOISE_FRACTION * error / errors.residual_variance),
            interval_ratio: at_least_one(interval_variance / errors.residual_variance),
            has_biases_only: false,
        };
        Ok(choice(noise, errors.last_two_values))
    }

    /// Runs sweeps `first` of the first phase and those of the second, then restores the state after the first phase: the
    /// larger noise of the second may suppress components, which would be slow to return.
    fn run_phases(
        &mut self,
        first: RangeInclusive<u64>,
        biases: &BiasErrors,
        pilot: &NoisePilot,
        model: &mut Model,
        pool: &ThreadPool<'_>,
    ) -> Result<PilotErrors> {
        let last_first = *first.end();
        let mut window = PredictionWindow::default();
        self.state.pilot_variance = None;
        for number in first {
            self.pilot_sweep(number, model, pool)?;
            if number > last_first - FIRST_WINDOW {
                self.add_to_window(&mut window, pilot, model, pool)?;
            }
        }
        let mut estimate = window.estimate(&pilot.holdout.csr);
        let sampled = estimate.squared_error;
        let probit = self.probit_candidate;
        let two_values = |window: &PredictionWindow| {
            probit.map(|p| window.two_value_errors(&pilot.holdout.csr, &p, false))
        };
        let sampled_two_values = two_values(&window);
        let (state, state_biases) = (model.snapshot()?, self.state.biases.clone());
        window = PredictionWindow::default();
        let mut residual_squares = 0.0;
        for number in last_first + 1..=last_first + LAST_SWEEPS {
            let variance = NOISE_FRACTION * estimate.squared_error.min(biases.held_out);
            self.state.pilot_variance = Some(variance.max(MIN_VARIANCE));
            self.pilot_sweep(number, model, pool)?;
            if number > last_first + LAST_SWEEPS - LAST_WINDOW {
                self.add_to_window(&mut window, pilot, model, pool)?;
                estimate = window.estimate(&pilot.holdout.csr);
                residual_squares += self.problem.squared_error(model, &self.state, pool)?;
            }
        }
        model.restore(&state)?;
        self.state.biases = state_biases;
        self.state.conditional_means = ConditionalMeans::default();
        let residual_count = LAST_WINDOW as f64 * self.problem.training_count as f64;
        Ok(PilotErrors {
            sampled,
            sampled_two_values,
            last: estimate,
            last_two_values: two_values(&window),
            residual_variance: residual_squares / residual_count,
        })
    }

    pub(super) fn pilot_sweep(
        &mut self,
        number: u64,
        model: &mut Model,
        pool: &ThreadPool<'_>,
    ) -> Result<()> {
        let sweep = Sweep {
            number,
            is_kept: false,
            is_burn_in: true,
        };
        self.problem.sweep(model, &mut self.state, sweep, pool)
    }

    /// Adds the predictions of the current state of the chain for held-out entries to `window`.
    pub(super) fn add_to_window(
        &mut self,
        window: &mut PredictionWindow,
        pilot: &NoisePilot,
        model: &Model,
        pool: &ThreadPool<'_>,
    ) -> Result<()> {
        window.add(
            &self
                .problem
                .sample_values(model, &mut self.state, &pilot.holdout, pool)?,
        );
        Ok(())
    }
}

/// The noise model that was chosen with the Gaussian likelihood.
pub(super) struct NoiseChoice {
    pub noise: NoiseModel,
    pub evidence: String,
    /// The numbers behind it.
    pub numbers: [(&'static str, f64); 4],
    /// Errors on held-out entries, if the tensor has two values.
    pub errors: Option<TwoValueErrors>,
    /// Number of the last sweep of the pilot chain.
    pub last_sweep: u64,
    /// First and last number of the sweeps whose state is kept.
    pub sweeps: Vec<(u64, u64)>,
}

/// What the pilot chain chose.
#[derive(Default)]
pub(super) struct PilotChoice {
    pub noise: NoiseModel,
    /// First and last number of the sweeps whose state the chain continues from.
    pub sweeps: Vec<(u64, u64)>,
    /// The same of the sweeps with the probit likelihood that follow; `None` with the Gaussian one.
    pub probit_sweeps: Option<(u64, u64)>,
    pub choices: Vec<Choice>,
}

impl NoiseChoice {
    /// Returns the choice of the Gaussian likelihood.
    pub(super) fn without_probit(self) -> PilotChoice {
        PilotChoice {
            choices: vec![self.selection()],
            noise: self.noise,
            sweeps: self.sweeps,
            probit_sweeps: None,
        }
    }

    fn selection(&self) -> Choice {
        Choice::new("noise", self.noise.describe(&self.evidence), &self.numbers)
    }
}

impl BiasErrors {
    /// Returns the variance of a value given a sample of biases, as a multiple of that of the residuals, where only the biases
    /// of the largest mode are samples.
    fn interval_ratio(self) -> f64 {
        let residual_variance = self.training / (1.0 - self.sampled_fraction).max(0.1);
        let bias_variance = self.sampled_fraction * residual_variance;
        at_least_one((self.held_out - bias_variance) / residual_variance)
    }
}

/// Returns a ratio of variances, at least 1; 1 if there is no residual variance.
fn at_least_one(ratio: f64) -> f64 {
    if ratio.is_finite() {
        ratio.max(1.0)
    } else {
        1.0
    }
}
