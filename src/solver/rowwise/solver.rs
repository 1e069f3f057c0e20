//! The row-wise solver: its sweeps and its errors.

use super::holdout::{HoldoutEntries, SquaredErrors};
use super::noise_pilot::NoisePilot;
use super::probit::Probit;
use super::problem::RowwiseProblem;
use super::state::{ConditionalMeans, Sweep, SweepState};
use crate::error::Result;
use crate::model::Model;
use crate::options::LikelihoodChoice;
use crate::parallel::ThreadPool;
use crate::solver::algorithm::EvaluationSet;

/// `als` or `gibbs` on one problem.
pub(in crate::solver) struct RowwiseSolver {
    pub(super) problem: RowwiseProblem,
    pub(super) state: SweepState,
    /// For `gibbs` only, as all following fields.
    pub(super) test: Option<HoldoutEntries>,
    pub(super) validation: Option<HoldoutEntries>,
    /// Number of burn-in sweeps. A posterior sample is kept after each later sweep.
    pub(super) burn_in: Option<u64>,
    /// Number of tensor entries.
    pub(super) entry_count: usize,
    /// Held-out entries of the pilot chain, which chooses the noise model before the first sweep; `None` afterwards.
    pub(super) pilot: Option<NoisePilot>,
    /// The probit likelihood, if the tensor has exactly two values and the options allow it.
    pub(super) probit_candidate: Option<Probit>,
    /// The option of this name.
    pub(super) likelihood: LikelihoodChoice,
}

impl RowwiseSolver {
    /// Returns whether this is `gibbs`.
    pub(in crate::solver) fn is_gibbs(&self) -> bool {
        self.burn_in.is_some()
    }

    /// Runs sweep `number`, counted from 1. `als` subtracts `biases` from the values; `gibbs` samples its own. Returns the
    /// sum of squared errors on the training entries in units of the data (0 for `als`). After an error or a
    /// cancellation the model is unusable.
    pub(in crate::solver) fn sweep(
        &mut self,
        model: &mut Model,
        biases: &[Vec<f32>],
        number: u64,
        pool: &ThreadPool<'_>,
    ) -> Result<f64> {
        let kept_samples = model.samples.as_ref().map(|s| s.samples.clone());
        let result = self.run_sweep(model, biases, number, pool);
        if let (Err(_), Some(samples), Some(kept)) = (&result, &mut model.samples, kept_samples) {
            // The driver restores the rows; this is the rest of the state before the sweep.
            samples.samples = kept;
            self.state.biases.clone_from(&samples.biases);
            self.state.conditional_means = ConditionalMeans::default();
            self.state.squared_error = None;
        }
        result
    }

    fn run_sweep(
        &mut self,
        model: &mut Model,
        biases: &[Vec<f32>],
        number: u64,
        pool: &ThreadPool<'_>,
    ) -> Result<f64> {
        if !self.is_gibbs() && !biases.is_empty() {
            self.state.biases = biases.to_vec();
        }
        let is_kept = self.burn_in.is_some_and(|burn_in| number > burn_in);
        let sweep = Sweep {
            number,
            is_kept,
            is_burn_in: self.burn_in.is_some_and(|burn_in| number <= burn_in),
        };
        self.problem.sweep(model, &mut self.state, sweep, pool)?;
        if !self.is_gibbs() {
            return Ok(0.0);
        }
        let largest_mode = self.problem.largest_mode();
        if is_kept {
            self.state.swap_cold_start_biases(largest_mode);
            self.add_sample(model)?;
        }
        let squares = self.set_noise_deviation(model, pool)?;
        if is_kept {
            if !self.drop_unconverged_samples(model, pool)? {
                self.add_predictions(model, pool)?;
            }
            self.state.swap_cold_start_biases(largest_mode);
        }
        if let Some(samples) = &mut model.samples {
            samples.biases.clone_from(&self.state.biases);
        }
        Ok(squares * self.problem.scaling.scale.powi(2))
    }

    /// Returns the sum of squared errors on the training entries of the current state of the chain, in units of the data.
    pub(in crate::solver) fn training_squared_error(
        &self,
        model: &Model,
        pool: &ThreadPool<'_>,
    ) -> Result<f64> {
        let squares = match self.state.squared_error {
            Some(squares) => squares,
            None => self.problem.squared_error(model, &self.state, pool)?,
        };
        Ok(squares * self.problem.scaling.scale.powi(2))
    }

    /// Returns the RMSE of `gibbs` on test or validation entries: of the samples' mean predictions, or of the current
    /// state of the chain while there are no samples. NaN without entries.
    pub(in crate::solver) fn holdout_rmse(
        &self,
        set: EvaluationSet,
        model: &Model,
        clip: bool,
        pool: &ThreadPool<'_>,
    ) -> Result<f64> {
        let entries = match set {
            EvaluationSet::Test => &self.test,
            EvaluationSet::Validation => &self.validation,
        };
        let Some(entries) = entries else {
            return Ok(f64::NAN);
        };
        let errors = match entries
            .mean_prediction_errors(self.problem.scaling, self.problem.probit.as_ref())
        {
            Some(errors) => errors,
            None => {
                let measurement = self
                    .problem
                    .measure(model, &self.state, entries, false, pool)?;
                measurement.errors
            }
        };
        let SquaredErrors { plain, clipped } = errors;
        let squares = if clip { clipped } else { plain };
        Ok((squares / entries.total_weight()).sqrt())
    }
}
