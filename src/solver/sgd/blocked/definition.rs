//! The definition of `blocked`.

use super::algorithm::BlockedSgd;
use super::merge_interval::BlockedState;
use super::plan::BlockingPlan;
use crate::kernel::CoreShape;
use crate::options::Options;
use crate::problem::Problem;
use crate::solver::algorithm_definition::{AlgorithmDefinition, AlgorithmPlan, ModelSize};
use crate::solver::algorithm_state::AlgorithmState;
use crate::solver::entry_layout::EntryLayout;

/// SGD in conflict-free blocks.
pub(in crate::solver) struct Blocked;

impl AlgorithmDefinition for Blocked {
    fn plan(&self, problem: &Problem<'_>, shape: &CoreShape, options: &Options) -> AlgorithmPlan {
        let plan = BlockingPlan::new(problem, shape, options.seed);
        let layout = EntryLayout::Blocked(plan.partition());
        AlgorithmPlan::new(layout, |_, _, state| {
            let state = state.algorithm.read().unwrap_or_default();
            Ok(BlockedSgd::new(plan, state))
        })
    }

    fn initial_state(&self) -> AlgorithmState {
        AlgorithmState::of(&BlockedState::default())
    }

    fn check_state(&self, state: &AlgorithmState) -> Result<(), String> {
        state.check::<BlockedState>()
    }

    fn flops_per_entry(&self, model: &ModelSize, _: &Options) -> f64 {
        match model.is_cp {
            true => (7.0 * model.order - 8.0) * model.largest_rank,
            false => 6.0 * model.core / model.largest_rank,
        }
    }
}
