//! `opt` and `naive` as the driver sees them.

use super::epoch::surround_epoch;
use super::hogwild::LockFree;
use crate::error::Result;
use crate::model::Model;
use crate::solver::algorithm::{Algorithm, EpochRequest, FitContext};

/// Lock-free SGD, Algorithm 1 of the paper.
pub(in crate::solver) struct HogwildSgd;

impl Algorithm for HogwildSgd {
    fn epoch(
        &mut self,
        model: &mut Model,
        context: &FitContext,
        request: EpochRequest<'_>,
    ) -> Result<Option<f64>> {
        let (eta, stream) = (request.eta, request.stream());
        surround_epoch(model, context, eta, |model| {
            let epoch = LockFree::new(&context.data, &context.options, context.level);
            epoch.epoch(model, eta, &stream, &context.pool, request.cancelled)
        })
    }
}
