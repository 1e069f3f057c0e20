//! `blocked` as the driver sees it.

use super::Blocked;
use super::merge_interval::Pace;
use super::plan::Plan;
use crate::error::Result;
use crate::model::Model;
use crate::solver::algorithm::{Algorithm, AlgorithmState, EpochRequest, FitContext};
use crate::solver::entry_layout::Partition;
use crate::solver::sgd::epoch::surround_epoch;

/// SGD in conflict-free blocks.
pub(in crate::solver) struct BlockedSgd {
    plan: Plan,
    pace: Pace,
}

impl BlockedSgd {
    pub(in crate::solver) fn new(plan: Plan, state: AlgorithmState) -> BlockedSgd {
        BlockedSgd {
            plan,
            pace: Pace {
                sweeps: state.sweeps as usize,
                error: state.sweep_error,
            },
        }
    }
}

impl Algorithm for BlockedSgd {
    fn epoch(
        &mut self,
        model: &mut Model,
        context: &FitContext,
        request: EpochRequest<'_>,
    ) -> Result<Option<f64>> {
        let blocked = Blocked {
            data: &context.data,
            plan: &self.plan,
            options: &context.options,
            level: context.level,
        };
        let (eta, stream, pace) = (request.eta, request.stream(), &mut self.pace);
        surround_epoch(model, context, eta, |model| {
            let (pool, cancelled) = (&context.pool, request.cancelled);
            let done = blocked.epoch(model, eta, *pace, &stream, pool, cancelled)?;
            Ok(done.map(|(squared_error, next)| {
                *pace = next;
                squared_error
            }))
        })
    }

    fn state(&self) -> AlgorithmState {
        AlgorithmState {
            sweeps: self.pace.sweeps as u64,
            sweep_error: self.pace.error,
        }
    }
}

impl Plan {
    /// Returns the blocking of the tensor and of the matrices.
    pub(in crate::solver) fn partition(&self) -> Partition {
        Partition {
            tensor: self.spec.clone(),
            longest_row: self.longest,
            matrices: self.matrices.iter().map(|m| m.spec.clone()).collect(),
        }
    }
}
