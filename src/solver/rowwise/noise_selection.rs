//! Selection of the noise model of `gibbs` by a pilot chain, which does not see part of the training entries.
//!
//! The chain has two phases. In the first it samples the noise variance from the residuals of the training entries, with
//! which it finds structure fastest. In the second the noise variance is [`NOISE_FRACTION`] of the squared error on the
//! held-out entries. Three outcomes are possible:
//!
//! - The first phase predicts the held-out entries much better than the second: the noise is sampled from the residuals.
//! - The second phase predicts them hardly better than biases alone: the model has biases only.
//! - Otherwise the ratio of the noise variance to the residual variance in the second phase is kept. The fit, which uses
//!   all entries, multiplies its residual variance by this ratio.

use super::bias_baseline::BiasErrors;
use super::noise_model::NoiseModel;
use super::noise_pilot::NoisePilot;
use super::prediction_window::PredictionWindow;
use super::solver::RowwiseSolver;
use super::state::{ConditionalMeans, Sweep};
use super::stream_ids;
use super::update::Update;
use crate::error::Result;
use crate::model::Model;
use crate::parallel::ThreadPool;
use crate::random::hash_words;
use crate::solver::observer::Selection;

/// Number of sweeps that sample the noise from the residuals: this number of entries divided by that of the data, within these
/// limits. Structure of small data may take hundreds of sweeps to find, which are fast there.
const FIRST_ENTRY_UPDATES: usize = 600_000;
const FIRST_SWEEPS: [usize; 2] = [8, 250];

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

/// Least variance of the noise in the pilot chain.
const MIN_VARIANCE: f64 = 1e-12;

impl RowwiseSolver {
    /// Runs the pilot chain and chooses the noise model. The following sweeps use all entries.
    pub(super) fn run_pilot(
        &mut self,
        pilot: &NoisePilot,
        model: &mut Model,
        pool: &ThreadPool<'_>,
    ) -> Result<()> {
        let Update::Sample { seed } = self.problem.update else {
            return Ok(());
        };
        let pilot_seed = hash_words(&[seed, stream_ids::NOISE_PILOT]);
        self.problem.update = Update::Sample { seed: pilot_seed };
        let chosen = self.choose_noise_model(pilot, model, pool);
        self.problem.update = Update::Sample { seed };
        self.state.pilot_variance = None;
        let (noise, evidence) = chosen?;
        self.state.noise = noise;
        self.selection = Some(Selection::new("noise", noise.describe(&evidence)));
        self.state.squared_error = None;
        self.problem.uninformed_sweep = 0;
        self.problem.training_count = self.entry_count;
        for (n, csr) in self.problem.tensor.iter_mut().enumerate() {
            csr.set_weights(pilot.weights.get(n).cloned().unwrap_or_default());
        }
        self.problem.find_unfolding_grams(pool)?;
        if let Some(samples) = &mut model.samples {
            samples.noise_ratio = self.state.noise.variance_ratio / self.state.noise.interval_ratio;
        }
        Ok(())
    }

    /// Returns the noise model and the evidence for it. The state of the chain is then that after its first sweeps: the larger noise of the last sweeps may
    /// suppress components, which would be slow to return.
    fn choose_noise_model(
        &mut self,
        pilot: &NoisePilot,
        model: &mut Model,
        pool: &ThreadPool<'_>,
    ) -> Result<(NoiseModel, String)> {
        let biases = self.problem.bias_errors(&pilot.holdout, pool)?;
        let first_sweeps = FIRST_ENTRY_UPDATES / self.entry_count.max(1);
        let first_sweeps = first_sweeps.clamp(FIRST_SWEEPS[0], FIRST_SWEEPS[1]) as u64;
        let mut window = PredictionWindow::default();
        for number in 1..=first_sweeps {
            self.pilot_sweep(number, model, pool)?;
            if number > first_sweeps - FIRST_WINDOW {
                self.add_to_window(&mut window, pilot, model, pool)?;
            }
        }
        let sampled = window.estimate(&pilot.holdout);
        let (state, state_biases) = (model.snapshot()?, self.state.biases.clone());
        let mut estimate = sampled;
        window = PredictionWindow::default();
        let mut residual_squares = 0.0;
        for number in first_sweeps + 1..=first_sweeps + LAST_SWEEPS {
            let variance = NOISE_FRACTION * estimate.squared_error.min(biases.held_out);
            self.state.pilot_variance = Some(variance.max(MIN_VARIANCE));
            self.pilot_sweep(number, model, pool)?;
            if number > first_sweeps + LAST_SWEEPS - LAST_WINDOW {
                self.add_to_window(&mut window, pilot, model, pool)?;
                estimate = window.estimate(&pilot.holdout);
                residual_squares += self.problem.squared_error(model, &self.state, pool)?;
            }
        }
        model.restore(&state)?;
        self.state.biases = state_biases;
        self.state.conditional_means = ConditionalMeans::default();
        let error = estimate.squared_error;
        let rmse = |squared_error: f64| self.problem.scaling.scale * squared_error.sqrt();
        let evidence = format!(
            "held-out RMSE {:.4}, {:.4} with noise as small as the residuals, {:.4} with biases alone",
            rmse(error),
            rmse(sampled.squared_error),
            rmse(biases.held_out)
        );
        if sampled.squared_error < SAMPLED_RATIO * error.min(biases.held_out) {
            return Ok((NoiseModel::default(), evidence));
        }
        if error > (1.0 - MIN_GAIN) * biases.held_out {
            let noise = NoiseModel {
                interval_ratio: biases.interval_ratio(),
                has_biases_only: true,
                ..NoiseModel::default()
            };
            return Ok((noise, evidence));
        }
        let residual_count = LAST_WINDOW as f64 * self.problem.training_count as f64;
        let residual_variance = residual_squares / residual_count;
        let interval_variance = error - estimate.posterior_variance;
        let noise = NoiseModel {
            variance_ratio: at_least_one(NOISE_FRACTION * error / residual_variance),
            interval_ratio: at_least_one(interval_variance / residual_variance),
            has_biases_only: false,
        };
        Ok((noise, evidence))
    }

    fn pilot_sweep(&mut self, number: u64, model: &mut Model, pool: &ThreadPool<'_>) -> Result<()> {
        let sweep = Sweep {
            number,
            is_kept: false,
            is_burn_in: true,
        };
        self.problem.sweep(model, &mut self.state, sweep, pool)
    }

    /// Adds the predictions of the current state of the chain for held-out entries to `window`.
    fn add_to_window(
        &mut self,
        window: &mut PredictionWindow,
        pilot: &NoisePilot,
        model: &Model,
        pool: &ThreadPool<'_>,
    ) -> Result<()> {
        let holdout = &pilot.holdout;
        let smoothed = self
            .problem
            .measure(model, &self.state, holdout, true, pool)?;
        let means = std::mem::take(&mut self.state.conditional_means);
        let sampled = self
            .problem
            .measure(model, &self.state, holdout, true, pool);
        self.state.conditional_means = means;
        window.add(&smoothed.predictions, &sampled?.predictions);
        Ok(())
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
