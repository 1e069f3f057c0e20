//! The solver: one iteration of L-BFGS, and the interface to the driver.

use std::cell::Cell;

use super::lbfgs::History;
use super::line_search::{Point, search};
use super::objective::{Objective, Value};
use super::parameter_vector::{ParameterVector, inner_product, set_parameters};
use s3cmtf::error::Result;
use s3cmtf::internals::Model;
use s3cmtf::internals::{
    Algorithm, EpochRequest, FitContext, TrainingError, canonical_form, default_training_error,
};
use s3cmtf::internals::{SquaredErrors, loss};

/// Length of the first step without a history, relative to the parameters.
const FIRST_STEP: f64 = 0.01;

/// `cmtf-opt` on one problem.
pub(crate) struct CmtfOptSolver {
    pub(super) objective: Objective,
    pub(super) history: History,
    /// The epoch whose changes are not yet in the history: those of the parameters are in `direction`, those of the gradient
    /// in `gradient`, and the gradient after it is in `trial_gradient`. An epoch that is cancelled leaves no trace in the
    /// history, so that a checkpoint after that has the history of the model.
    pub(super) last_changes: Option<u64>,
    /// The parameters before the epoch.
    pub(super) start: ParameterVector,
    pub(super) direction: ParameterVector,
    /// The gradient before the epoch.
    pub(super) gradient: ParameterVector,
    /// The gradient at the last step that was tried.
    pub(super) trial_gradient: ParameterVector,
    /// The objective after the last epoch; `None` if it is not known.
    pub(super) value: Option<Value>,
    /// The objective that no step lowered.
    pub(super) lowest: Option<f64>,
    pub(super) has_converged: bool,
}

impl Algorithm for CmtfOptSolver {
    fn epoch(
        &mut self,
        model: &mut Model,
        context: &FitContext<'_>,
        request: EpochRequest,
    ) -> Result<f64> {
        let FitContext {
            standardization,
            pool,
            ..
        } = context;
        if self.last_changes.take().is_some() {
            let (parameters, gradient) = (&mut self.direction, &mut self.gradient);
            self.history.add(parameters, gradient, model)?;
            std::mem::swap(&mut self.gradient, &mut self.trial_gradient);
        }
        let biases = &standardization.biases;
        // The driver has changed the biases since, if there are any.
        let value = match self.value.filter(|_| biases.is_empty()) {
            Some(value) => value,
            None => self
                .objective
                .evaluate(model, biases, &mut self.gradient, pool)?,
        };
        self.value = Some(value);
        if self.lowest == Some(value.total) {
            self.has_converged = true;
            return Ok(value.tensor);
        }
        self.start.set_parameters_of(model, pool)?;
        loop {
            if let Some(value) = self.step(model, value.total, context)? {
                self.value = Some(value);
                self.last_changes = Some(request.number);
                model.update_mean_rows_with(pool)?;
                return Ok(value.tensor);
            }
            if self.history.is_empty() {
                break;
            }
            // The history may be misleading, the gradient is not.
            self.history.clear();
        }
        set_parameters(model, &self.start, 0.0, &self.direction, pool)?;
        self.lowest = Some(value.total);
        // New biases may make further steps possible.
        self.has_converged = biases.is_empty();
        Ok(value.tensor)
    }

    fn vectors(&self, epoch: u64) -> Vec<Vec<&[f32]>> {
        let mut vectors = self.history.vectors();
        if self.last_changes == Some(epoch) {
            vectors.extend([&self.direction, &self.gradient]);
        }
        vectors.into_iter().map(ParameterVector::parts).collect()
    }

    fn has_converged(&self) -> bool {
        self.has_converged
    }

    fn training_error(
        &self,
        model: &Model,
        context: &FitContext<'_>,
        squared_errors: Option<SquaredErrors>,
    ) -> Result<TrainingError> {
        let FitContext {
            options,
            data,
            standardization,
            level,
            pool,
            ..
        } = context;
        // An epoch without biases ends with the objective of its model.
        if let Some(value) = self.value.filter(|_| standardization.biases.is_empty()) {
            let of_entries = match squared_errors {
                Some(known) => known,
                None if self.objective.zero_filled.is_some() || options.clip == Some(true) => {
                    context.squared_errors(model, &data.tensor)?
                }
                None => SquaredErrors {
                    plain: value.tensor,
                    clipped: value.tensor,
                },
            };
            let core: f64 = model.core.iter().map(|&g| f64::from(g).powi(2)).sum();
            return Ok(TrainingError {
                rmse: context.rmse(of_entries, data.tensor_weight),
                loss: value.total + 0.5 * data.penalty.lambda * core,
            });
        }
        let Some(of_all_cells) = self.objective.squared_error_of_all_cells(model, pool)? else {
            return default_training_error(model, context, squared_errors);
        };
        let of_entries = match squared_errors {
            Some(known) => known,
            None => context.squared_errors(model, &data.tensor)?,
        };
        Ok(TrainingError {
            rmse: context.rmse(of_entries, data.tensor_weight),
            loss: loss::objective(model, data, of_all_cells, options, *level, pool)?,
        })
    }

    fn can_diverge(&self) -> bool {
        false
    }

    fn finish(&mut self, model: &mut Model, context: &FitContext<'_>) -> Result<()> {
        // The driver may return the model of an earlier epoch, whose objective is not known.
        self.value = None;
        canonical_form(model, &context.options, context.pool.monitor())
    }
}

impl CmtfOptSolver {
    /// Moves the model to a point with a lower objective, which it returns, and keeps the changes for the history. Returns
    /// `None` if no step along the direction lowers it.
    fn step(
        &mut self,
        model: &mut Model,
        value: f64,
        context: &FitContext<'_>,
    ) -> Result<Option<Value>> {
        let FitContext {
            standardization,
            pool,
            ..
        } = context;
        self.history
            .direction(&self.gradient, &mut self.direction, pool)?;
        let start = Point {
            step: 0.0,
            value,
            slope: inner_product(&self.gradient, &self.direction, pool)?,
        };
        if start.slope.is_nan() || start.slope >= 0.0 {
            return Ok(None);
        }
        let first_step = if self.history.is_empty() {
            let parameters = inner_product(&self.start, &self.start, pool)?;
            FIRST_STEP * (parameters / -start.slope).sqrt()
        } else {
            1.0
        };
        let tried = Cell::new(None);
        let mut evaluate = |step: f64| {
            set_parameters(model, &self.start, step, &self.direction, pool)?;
            let gradient = &mut self.trial_gradient;
            let value = self
                .objective
                .evaluate(model, &standardization.biases, gradient, pool)?;
            tried.set(Some((step, value)));
            Ok(Point {
                step,
                value: value.total,
                slope: inner_product(gradient, &self.direction, pool)?,
            })
        };
        let Some(found) = search(start, first_step, &mut evaluate)? else {
            return Ok(None);
        };
        if tried.get().is_none_or(|(step, _)| step != found.step) {
            evaluate(found.step)?;
        }
        let value = tried.get().map(|(_, value)| value);
        self.direction.set_step(model, &self.start, pool)?;
        self.gradient.subtract_from(&self.trial_gradient, pool)?;
        Ok(value)
    }
}
