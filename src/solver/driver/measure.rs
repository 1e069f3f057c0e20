//! Errors and losses during a fit.

use std::time::Instant;

use super::fit::Fit;
use super::fit_monitor::unless_cancelled;
use crate::error::Result;
use crate::model::EpochMetrics;
use crate::solver::algorithm::{EvaluationSet, TrainingError};
use crate::solver::bias_update;
use crate::solver::loss::SquaredErrors;
use crate::solver::standardization::ValueUnits;
use crate::trace::{self, SpanKind};

impl Fit<'_> {
    /// Computes the error on the training entries. `squared_errors` are given if they are known already.
    pub(super) fn training_error(
        &self,
        squared_errors: Option<SquaredErrors>,
    ) -> Result<TrainingError> {
        self.algorithm
            .training_error(&self.model, &self.context, squared_errors)
    }

    /// Computes the RMSE on the validation entries; NaN without any.
    pub(in crate::solver) fn validation_error(&self) -> Result<f64> {
        self.evaluation_error(EvaluationSet::Validation)
    }

    /// Computes the RMSE on the test entries; NaN without any.
    pub(super) fn test_error(&self) -> Result<f64> {
        self.evaluation_error(EvaluationSet::Test)
    }

    fn evaluation_error(&self, set: EvaluationSet) -> Result<f64> {
        let entries = match set {
            EvaluationSet::Test => &self.test,
            EvaluationSet::Validation => &self.validation,
        };
        self.algorithm
            .evaluation_error(set, entries.as_ref(), &self.model, &self.context)
    }

    /// Fills in the errors and the loss after an epoch. `squared_errors` on the training entries are given if they are
    /// known already.
    pub(super) fn evaluate(
        &mut self,
        metrics: &mut EpochMetrics,
        squared_errors: Option<SquaredErrors>,
    ) -> Result<()> {
        let _span = trace::span(SpanKind::Evaluation);
        let began = Instant::now();
        if self.test.is_some() || self.validation.is_some() {
            self.model.update_mean_rows_with(&self.context.pool)?;
        }
        let training = self.training_error(squared_errors)?;
        (metrics.train_rmse, metrics.loss) = (training.rmse, training.loss);
        metrics.test_rmse = self.test_error()?;
        metrics.valid_rmse = self.validation_error()?;
        metrics.eval_seconds = began.elapsed().as_secs_f64();
        self.clock.eval_seconds += metrics.eval_seconds;
        Ok(())
    }
}

impl Fit<'_> {
    /// Solves for the biases, given all other parameters. Returns the squared errors on the training entries after that;
    /// `None` if the model has no biases or samples them itself.
    pub(super) fn update_biases(&mut self) -> Result<Option<SquaredErrors>> {
        let context = &mut self.context;
        if context.standardization.biases.is_empty() {
            return Ok(None);
        }
        let _span = trace::span(SpanKind::Biases);
        let squared_errors = bias_update::update_biases(
            &self.model,
            &context.data.tensor,
            &mut context.standardization,
            context.level,
            &context.pool,
        )?;
        context.standardization.store(&mut self.model)?;
        self.subtract_biases()?;
        Ok(Some(squared_errors))
    }

    /// Subtracts the current biases from all entries.
    pub(super) fn subtract_biases(&mut self) -> Result<()> {
        let context = &mut self.context;
        let evaluated = self.test.iter_mut().chain(&mut self.validation);
        for entries in evaluated.chain([&mut context.data.tensor]) {
            entries.subtract_biases(&context.standardization.biases, &context.pool)?;
        }
        Ok(())
    }

    /// Restores the parameters of the last good epoch, if there is a copy.
    pub(super) fn restore_last_good(&mut self) -> Result<()> {
        if let Some(last_good) = &self.last_good {
            self.model.restore(last_good)?;
            self.load_biases()?;
        }
        Ok(())
    }

    /// Copies the parameters before an epoch, unless the last good ones are the same.
    pub(super) fn save_before_epoch(&mut self) -> Result<()> {
        match &mut self.before_epoch {
            _ if self.is_at_last_good => {}
            Some(before_epoch) => before_epoch.update(&self.model)?,
            None => self.before_epoch = Some(self.model.snapshot()?),
        }
        Ok(())
    }

    /// Restores the parameters before the current epoch.
    pub(super) fn restore_before_epoch(&mut self) -> Result<()> {
        match &self.before_epoch {
            Some(before_epoch) if !self.is_at_last_good => {
                self.model.restore(before_epoch)?;
                self.load_biases()
            }
            _ => self.restore_last_good(),
        }
    }

    /// Subtracts the biases of the model from all entries. After a cancellation some entries may have others: no error is
    /// measured on them any more.
    pub(super) fn load_biases(&mut self) -> Result<()> {
        self.context.standardization.load_biases(&self.model);
        unless_cancelled(self.subtract_biases())?;
        Ok(())
    }

    /// Scales the model and the best parameters so that they predict values in `units`.
    pub(super) fn convert_to(&mut self, units: ValueUnits) -> Result<()> {
        let standardization = &self.context.standardization;
        standardization.convert_model(&mut self.model, units)?;
        match &mut self.best {
            Some(best) => standardization.convert_parameters(best, units),
            None => Ok(()),
        }
    }
}
