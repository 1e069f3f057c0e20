//! Errors and losses during a fit.

use std::time::Instant;

use super::fit::Fit;
use crate::error::Result;
use crate::model::EpochMetrics;
use crate::solver::algorithm::{EvaluationSet, TrainingError};
use crate::solver::loss::SquaredErrors;
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
