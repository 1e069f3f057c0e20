//! The solver: one iteration of L-BFGS, and the interface to the driver.

use std::cell::Cell;

use super::lbfgs::History;
use super::line_search::{Point, search};
use super::objective::Objective;
use super::parameter_vector::{ParameterVector, inner_product, set_parameters};
use crate::error::Result;
use crate::model::Model;
use crate::solver::algorithm::{
    Algorithm, EpochRequest, FitContext, TrainingError, default_training_error,
};
use crate::solver::loss::{self, SquaredErrors};

/// Length of the first step without a history, relative to the parameters.
const FIRST_STEP: f64 = 0.01;

/// `cmtf-opt` on one problem.
pub(in crate::solver) struct CmtfOptSolver {
    pub(super) objective: Objective,
    pub(super) history: History,
    /// The parameters before the epoch.
    pub(super) start: ParameterVector,
    pub(super) direction: ParameterVector,
    /// The gradient before the epoch.
    pub(super) gradient: ParameterVector,
    /// The gradient at the last step that was tried.
    pub(super) trial_gradient: ParameterVector,
    /// The objective after the last epoch, whose gradient is `gradient`; `None` if it is not known.
    pub(super) value: Option<f64>,
    /// The objective that no step lowered.
    pub(super) lowest: Option<f64>,
}

impl Algorithm for CmtfOptSolver {
    fn epoch(
        &mut self,
        model: &mut Model,
        context: &FitContext<'_>,
        _: EpochRequest,
    ) -> Result<f64> {
        let FitContext {
            standardization,
            pool,
            ..
        } = context;
        let biases = &standardization.biases;
        // The driver has changed the biases since, if there are any.
        let value = match self.value.filter(|_| biases.is_empty()) {
            Some(value) => value,
            None => self
                .objective
                .evaluate(model, biases, &mut self.gradient, pool)?,
        };
        self.value = Some(value);
        if self.lowest == Some(value) {
            return Ok(0.0);
        }
        self.start.set_parameters_of(model, pool)?;
        loop {
            if let Some(value) = self.step(model, value, context)? {
                self.value = Some(value);
                model.update_mean_rows_with(pool)?;
                return Ok(0.0);
            }
            if self.history.is_empty() {
                break;
            }
            // The history may be misleading, the gradient is not.
            self.history.clear();
        }
        set_parameters(model, &self.start, 0.0, &self.direction, pool)?;
        self.lowest = Some(value);
        Ok(0.0)
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
            level,
            pool,
            ..
        } = context;
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
}

impl CmtfOptSolver {
    /// Moves the model to a point with a lower objective, which it returns, and adds the changes to the history. Returns `None` if no
    /// step along the direction lowers it.
    fn step(
        &mut self,
        model: &mut Model,
        value: f64,
        context: &FitContext<'_>,
    ) -> Result<Option<f64>> {
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
        let tried = Cell::new(f64::NAN);
        let mut evaluate = |step: f64| {
            set_parameters(model, &self.start, step, &self.direction, pool)?;
            let gradient = &mut self.trial_gradient;
            let value = self
                .objective
                .evaluate(model, &standardization.biases, gradient, pool)?;
            tried.set(step);
            Ok(Point {
                step,
                value,
                slope: inner_product(gradient, &self.direction, pool)?,
            })
        };
        let Some(found) = search(start, first_step, &mut evaluate)? else {
            return Ok(None);
        };
        if found.step != tried.get() {
            evaluate(found.step)?;
        }
        let change = self.history.add(model)?;
        change.parameters.set_step(model, &self.start, pool)?;
        let (new, old) = (&self.trial_gradient, &self.gradient);
        change.gradient.set_difference(new, old, pool)?;
        std::mem::swap(&mut self.gradient, &mut self.trial_gradient);
        Ok(Some(found.value))
    }
}
