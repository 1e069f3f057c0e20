//! `als` and `gibbs` as the driver sees them.

use super::noise_model::NoiseModel;
use super::noise_selection::PilotChoice;
use super::solver::RowwiseSolver;
use crate::error::Result;
use crate::fit_plan::{Choice, NoisePlan};
use crate::model::{Model, PosteriorSamples};
use crate::options::Options;
use crate::solver::algorithm::{
    Algorithm, EpochRequest, EvaluationSet, FitContext, Purpose, TrainingError, canonical_form,
    default_evaluation_error, default_training_error,
};
use crate::solver::algorithm_state::AlgorithmState;
use crate::solver::entries::Entries;
use crate::solver::loss::SquaredErrors;

/// Largest number of sweeps of `gibbs`, as a multiple of those asked for, where the chain takes long to burn in.
const MAX_SWEEPS_FACTOR: u64 = 3;

impl Algorithm for RowwiseSolver {
    fn epoch(
        &mut self,
        model: &mut Model,
        context: &FitContext<'_>,
        request: EpochRequest,
    ) -> Result<f64> {
        let (biases, pool) = (&context.standardization.biases, &context.pool);
        self.sweep(model, biases, request.number, pool)
    }

    /// Runs the pilot chain of `gibbs`.
    fn prepare(
        &mut self,
        model: &mut Model,
        context: &FitContext<'_>,
        planned: Option<&NoisePlan>,
    ) -> Result<(Option<NoisePlan>, Vec<Choice>)> {
        if !self.is_gibbs() {
            return Ok((None, Vec::new()));
        }
        let chosen = match self.pilot.take() {
            Some(pilot) => self.run_pilot(&pilot, planned, model, &context.pool)?,
            None => PilotChoice::default(),
        };
        let NoiseModel {
            variance_ratio,
            interval_ratio,
            has_biases_only,
        } = self.state.noise;
        let noise = NoisePlan {
            is_probit: self.problem.probit.is_some(),
            variance_ratio,
            interval_ratio,
            has_biases_only,
            sweeps: chosen.sweeps,
            probit_sweeps: chosen.probit_sweeps,
        };
        Ok((Some(noise), chosen.choices))
    }

    fn state(&self) -> AlgorithmState {
        match self.is_gibbs() {
            true => AlgorithmState::of(&self.state.noise),
            false => AlgorithmState::default(),
        }
    }

    fn training_error(
        &self,
        model: &Model,
        context: &FitContext<'_>,
        squared_errors: Option<SquaredErrors>,
    ) -> Result<TrainingError> {
        if !self.is_gibbs() {
            return default_training_error(model, context, squared_errors);
        }
        let squares = self.training_squared_error(model, &context.pool)?;
        Ok(TrainingError {
            rmse: (squares / context.data.tensor_weight).sqrt(),
            loss: 0.5 * squares,
        })
    }

    fn evaluation_error(
        &self,
        set: EvaluationSet,
        entries: Option<&Entries>,
        model: &Model,
        context: &FitContext<'_>,
    ) -> Result<f64> {
        if self.is_gibbs() {
            self.holdout_rmse(
                set,
                model,
                context.options.clip == Some(true),
                &context.pool,
            )
        } else {
            default_evaluation_error(entries, model, context)
        }
    }

    /// Returns the sweep after which `gibbs` has as many samples as it was asked for, including those that replace samples
    /// dropped as burn-in.
    fn last_epoch(&self, model: &Model, options: &Options, epoch: u64) -> u64 {
        let o = options;
        if !self.is_gibbs() {
            return o.epochs;
        }
        let requested = o.burn_in.saturating_add(o.samples);
        let kept = model.samples.as_ref().map_or(0, PosteriorSamples::len) as u64;
        let missing = o.samples.saturating_sub(kept);
        let last = epoch.max(o.burn_in).saturating_add(missing);
        last.min(requested.saturating_mul(MAX_SWEEPS_FACTOR))
    }

    fn can_diverge(&self) -> bool {
        false
    }

    fn averages_samples(&self) -> bool {
        self.is_gibbs()
    }

    /// `gibbs` measures all errors on its own copies; `als` uses the default measurements.
    fn has_own_entries(&self) -> bool {
        self.is_gibbs()
    }

    fn finish(&mut self, model: &mut Model, context: &FitContext<'_>) -> Result<()> {
        if !self.is_gibbs() {
            return canonical_form(model, &context.options, context.pool.monitor());
        }
        // A posterior sample is returned as it is.
        match context.purpose {
            Purpose::Result => {
                self.add_last_sample(model, &context.pool)?;
                self.estimate_noise_factors(model, &context.pool)
            }
            Purpose::StartingValues => self.round_last_sweep(model),
        }
    }
}
