//! The definition of `sals`.

use super::setup::check_support;
use super::solver::SalsSolver;
use crate::error::Result;
use crate::kernel::{CoreShape, packed_width};
use crate::options::Options;
use crate::problem::Problem;
use crate::solver::algorithm_definition::{AlgorithmDefinition, AlgorithmPlan, ModelSize};
use crate::solver::entry_layout::EntryLayout;
use crate::solver::fit_sizes::{FitSizes, ModeSize};

/// SALS-single.
pub(in crate::solver) struct Sals;

impl AlgorithmDefinition for Sals {
    fn check_support(&self, problem: &Problem<'_>, options: &Options) -> Result<()> {
        check_support(problem, options)
    }

    fn plan(&self, _: &Problem<'_>, _: &CoreShape, _: &Options) -> AlgorithmPlan {
        AlgorithmPlan::new(EntryLayout::InOrder, SalsSolver::new)
    }

    fn flops_per_entry(&self, model: &ModelSize, options: &Options) -> f64 {
        let (n, rank) = (model.order, model.largest_rank);
        let blocks = (rank / options.subset_size as f64).ceil();
        let block = rank / blocks;
        let updates = options.inner_epochs as f64 * (block + n + 2.0);
        // Residuals without the first block, and the exchange of blocks before each of the others.
        let residuals = n + 2.0 * n * (1.0 - 1.0 / blocks);
        n * (updates + residuals) * rank
    }

    fn further_bytes(&self, sizes: &FitSizes, options: &Options) -> f64 {
        // The residuals of the list of each mode, and the factors in blocks of columns.
        let residuals = 4.0 * sizes.modes.len() as f64 * sizes.entries as f64;
        let blocks = |mode: &ModeSize| {
            let count = mode
                .rank
                .div_ceil(options.subset_size.max(1) as usize)
                .max(1);
            count * packed_width(mode.rank.div_ceil(count))
        };
        let factors = sizes.modes.iter().map(|m| m.rows as f64 * blocks(m) as f64);
        residuals + 4.0 * factors.sum::<f64>()
    }
}
