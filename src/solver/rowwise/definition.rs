//! The definitions of `als` and `gibbs`.

use super::noise_model::NoiseModel;
use super::solver::RowwiseSolver;
use crate::kernel::CoreShape;
use crate::options::Options;
use crate::problem::Problem;
use crate::solver::algorithm_definition::{AlgorithmDefinition, AlgorithmPlan, ModelSize};
use crate::solver::algorithm_state::AlgorithmState;
use crate::solver::entry_layout::EntryLayout;
use crate::solver::fit_sizes::FitSizes;

/// Alternating least squares, row by row.
pub(in crate::solver) struct Als;

/// Gibbs sampling, row by row.
pub(in crate::solver) struct Gibbs;

impl AlgorithmDefinition for Als {
    fn plan(&self, _: &Problem<'_>, _: &CoreShape, _: &Options) -> AlgorithmPlan {
        rowwise_plan()
    }

    fn flops_per_entry(&self, model: &ModelSize, _: &Options) -> f64 {
        rowwise_flops(model)
    }
}

impl AlgorithmDefinition for Gibbs {
    fn plan(&self, _: &Problem<'_>, _: &CoreShape, _: &Options) -> AlgorithmPlan {
        rowwise_plan()
    }

    fn flops_per_entry(&self, model: &ModelSize, _: &Options) -> f64 {
        rowwise_flops(model)
    }

    fn initial_state(&self) -> AlgorithmState {
        AlgorithmState::of(&NoiseModel::default())
    }

    fn check_state(&self, state: &AlgorithmState) -> Result<(), String> {
        state.check::<NoiseModel>()
    }

    /// Returns the bytes of all posterior samples.
    fn further_bytes(&self, sizes: &FitSizes, options: &Options) -> f64 {
        // 16-bit values and a scale (`model::QuantizedRows`).
        let row_bytes = |rank: usize| 2.0 * (rank as f64 + 1.0) + 4.0;
        let factors = sizes
            .factors()
            .map(|(rows, rank)| rows as f64 * row_bytes(rank));
        let (sum, largest) = factors.fold((0.0, 0.0f64), |(sum, largest), bytes| {
            (sum + bytes, largest.max(bytes))
        });
        // One mode also has its conditional means.
        let sample = sum + largest + 4.0 * sizes.core_elements();
        // A model is written from a copy of all samples, made mode by mode. By then the training data are freed (unless it
        // is a checkpoint), but the allocator may not have returned them to the system.
        options.samples as f64 * (2.0 * sample + largest)
    }
}

fn rowwise_plan() -> AlgorithmPlan {
    AlgorithmPlan::new(EntryLayout::InOrder, RowwiseSolver::new)
}

fn rowwise_flops(model: &ModelSize) -> f64 {
    let (n, largest) = (model.order, model.largest_rank);
    match model.is_cp {
        true => n * (largest + n + 2.0) * largest,
        false => n * (largest * largest + 2.0 * model.core / largest),
    }
}
