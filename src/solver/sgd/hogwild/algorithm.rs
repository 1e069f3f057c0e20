//! `opt` and `naive` as algorithms of the driver.

use super::epoch::HogwildInputs;
use crate::error::Result;
use crate::model::Model;
use crate::solver::algorithm::{Algorithm, EpochRequest, FitContext};
use crate::solver::sgd::outer_updates::run_with_outer_updates;

/// Lock-free SGD, Algorithm 1 of the paper.
pub(in crate::solver) struct HogwildSgd;

impl Algorithm for HogwildSgd {
    fn epoch(
        &mut self,
        model: &mut Model,
        context: &FitContext<'_>,
        request: EpochRequest,
    ) -> Result<f64> {
        let (eta, stream_id) = (request.eta, request.stream());
        let inputs = HogwildInputs {
            data: &context.data,
            options: &context.options,
            level: context.level,
        };
        run_with_outer_updates(model, context, eta, |model| {
            inputs.run_epoch(model, eta, &stream_id, &context.pool)
        })
    }
}
