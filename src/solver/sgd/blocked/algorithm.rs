//! `blocked` as an algorithm of the driver.

use super::config::FitInputs;
use super::merge_interval::{BlockedState, MergeInterval};
use super::plan::BlockingPlan;
use crate::error::Result;
use crate::model::Model;
use crate::solver::algorithm::{Algorithm, EpochRequest, FitContext};
use crate::solver::algorithm_state::AlgorithmState;
use crate::solver::sgd::outer_updates::run_with_outer_updates;

/// SGD in conflict-free blocks.
pub(in crate::solver) struct BlockedSgd {
    plan: BlockingPlan,
    interval: MergeInterval,
}

impl BlockedSgd {
    pub(in crate::solver) fn new(plan: BlockingPlan, state: BlockedState) -> BlockedSgd {
        BlockedSgd {
            plan,
            interval: state.into(),
        }
    }
}

impl Algorithm for BlockedSgd {
    fn epoch(
        &mut self,
        model: &mut Model,
        context: &FitContext<'_>,
        request: EpochRequest,
    ) -> Result<f64> {
        let inputs = FitInputs {
            data: &context.data,
            plan: &self.plan,
            options: &context.options,
            level: context.level,
        };
        let (eta, stream_id, interval) = (request.eta, request.stream(), &mut self.interval);
        run_with_outer_updates(model, context, eta, |model| {
            let outcome = inputs.run_epoch(model, eta, *interval, &stream_id, &context.pool)?;
            *interval = outcome.interval;
            Ok(outcome.squared_error)
        })
    }

    fn state(&self) -> AlgorithmState {
        AlgorithmState::of(&BlockedState::from(self.interval))
    }
}
