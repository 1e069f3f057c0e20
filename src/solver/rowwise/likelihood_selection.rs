//! Choice of the likelihood of two-valued tensors by the pilot chain.
//!
//! After the noise of the Gaussian likelihood is chosen, the pilot chain continues from the state of its first sweeps with the
//! probit likelihood, which has no noise to choose; with biases alone if the choice was so. Probit is kept if it predicts the
//! held-out entries better.

use super::noise_model::NoiseModel;
use super::noise_pilot::NoisePilot;
use super::noise_selection::{NoiseChoice, PilotChoice};
use super::prediction_window::{PredictionWindow, TwoValueErrors};
use super::probit::Probit;
use super::solver::RowwiseSolver;
use super::state::ConditionalMeans;
use crate::error::Result;
use crate::fit_plan::Choice;
use crate::model::Model;
use crate::options::LikelihoodChoice;
use crate::parallel::ThreadPool;

/// Number of sweeps with the probit likelihood, and how many of the last of them predict held-out entries.
const SWEEPS: u64 = 24;
const WINDOW: u64 = 16;

/// Probit may have a squared error that is larger by this factor if its log loss is smaller. The error of the short chain is larger
/// than that of the fit by about this much (docs/notes/accuracy.md).
const SQUARED_ERROR_TOLERANCE: f64 = 1.01;

impl RowwiseSolver {
    /// Chooses the likelihood, given the choice of the noise with the Gaussian likelihood and its errors. The state of the
    /// chain is then that of the chosen likelihood.
    pub(super) fn choose_likelihood(
        &mut self,
        pilot: &NoisePilot,
        probit: Probit,
        (gaussian, gaussian_errors): (NoiseChoice, TwoValueErrors),
        model: &mut Model,
        pool: &ThreadPool<'_>,
    ) -> Result<PilotChoice> {
        let (state, biases) = (model.snapshot()?, self.state.biases.clone());
        let noise = NoiseModel {
            has_biases_only: gaussian.noise.has_biases_only,
            ..NoiseModel::default()
        };
        self.state.noise = noise;
        self.state.pilot_variance = None;
        self.problem.probit = Some(probit);
        let errors = self.probit_errors(pilot, probit, gaussian.last_sweep, model, pool);
        let is_kept = |errors: &TwoValueErrors| {
            self.likelihood == LikelihoodChoice::Probit || errors.is_better_than(&gaussian_errors)
        };
        let is_probit = errors.as_ref().is_ok_and(is_kept);
        self.state.conditional_means = ConditionalMeans::default();
        self.state.noise = NoiseModel::default();
        if !is_probit {
            self.problem.probit = None;
            self.problem.restore_values(probit);
            model.restore(&state)?;
            self.state.biases = biases;
        }
        let errors = errors?;
        let scale = self.problem.scaling.scale;
        let describe = |e: &TwoValueErrors| {
            let rmse = scale * e.squared_error.sqrt();
            format!("RMSE {rmse:.4}, log loss {:.4}", e.log_loss)
        };
        let [of_probit, of_gaussian] = [&errors, &gaussian_errors].map(describe);
        let numbers = [
            (
                "held-out RMSE of probit",
                scale * errors.squared_error.sqrt(),
            ),
            ("log loss of probit", errors.log_loss),
            (
                "held-out RMSE of gaussian",
                scale * gaussian_errors.squared_error.sqrt(),
            ),
            ("log loss of gaussian", gaussian_errors.log_loss),
        ];
        let selection = |text: String| Choice::new("likelihood", text, &numbers);
        if is_probit {
            let factors = match noise.has_biases_only {
                true => " with biases alone",
                false => "",
            };
            let text = format!("probit{factors} (held-out {of_probit}; gaussian {of_gaussian})");
            let first = gaussian.last_sweep + 1;
            return Ok(PilotChoice {
                noise,
                sweeps: gaussian.sweeps,
                probit_sweeps: Some((first, first + SWEEPS - 1)),
                choices: vec![selection(text)],
            });
        }
        let text = format!("gaussian (held-out {of_gaussian}; probit {of_probit})");
        let mut chosen = gaussian.without_probit();
        chosen.choices.insert(0, selection(text));
        Ok(chosen)
    }

    /// Continues the chain with the probit likelihood after sweep `last_sweep`, and returns its errors on held-out entries.
    fn probit_errors(
        &mut self,
        pilot: &NoisePilot,
        probit: Probit,
        last_sweep: u64,
        model: &mut Model,
        pool: &ThreadPool<'_>,
    ) -> Result<TwoValueErrors> {
        let mut window = PredictionWindow::default();
        for number in 1..=SWEEPS {
            self.pilot_sweep(last_sweep + number, model, pool)?;
            if number > SWEEPS - WINDOW {
                self.add_to_window(&mut window, pilot, model, pool)?;
            }
        }
        Ok(window.two_value_errors(&pilot.holdout.csr, &probit, true))
    }
}

impl TwoValueErrors {
    /// Returns whether these errors of probit are better than those of the Gaussian likelihood.
    fn is_better_than(&self, gaussian: &TwoValueErrors) -> bool {
        let limit = SQUARED_ERROR_TOLERANCE * gaussian.squared_error;
        self.log_loss < gaussian.log_loss && self.squared_error < limit
    }
}
