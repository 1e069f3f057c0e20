//! The definition of `tucker-als`.

use super::memory::update_bytes;
use super::setup::check_support;
use super::solver::TuckerAlsSolver;
use crate::error::Result;
use crate::kernel::CoreShape;
use crate::options::Options;
use crate::problem::Problem;
use crate::solver::algorithm_definition::{AlgorithmDefinition, AlgorithmPlan, ModelSize};
use crate::solver::entry_layout::EntryLayout;
use crate::solver::fit_sizes::FitSizes;

/// CMTF-Tucker-ALS.
pub(in crate::solver) struct TuckerAls;

impl AlgorithmDefinition for TuckerAls {
    fn check_support(&self, problem: &Problem<'_>, options: &Options) -> Result<()> {
        check_support(problem, options)
    }

    fn plan(&self, _: &Problem<'_>, _: &CoreShape, _: &Options) -> AlgorithmPlan {
        AlgorithmPlan::new(EntryLayout::InOrder, TuckerAlsSolver::new)
    }

    fn flops_per_entry(&self, model: &ModelSize, _: &Options) -> f64 {
        // The products with the factors, if no two entries share rows of two modes.
        2.0 * model.order * (model.largest_rank + model.core / model.largest_rank)
    }

    fn further_bytes(&self, sizes: &FitSizes, options: &Options) -> f64 {
        let updates = (0..sizes.modes.len()).map(|n| update_bytes(sizes, n, options));
        updates.fold(0.0, f64::max)
    }

    fn checks_memory(&self) -> bool {
        true
    }
}
