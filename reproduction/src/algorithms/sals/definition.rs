//! The definition of `sals`.

use super::setup::check_support;
use super::solver::SalsSolver;
use crate::algorithms::integer_option;
use crate::kernels::packed_width;
use s3cmtf::error::Result;
use s3cmtf::internals::EntryLayout;
use s3cmtf::internals::{AlgorithmDefinition, AlgorithmPlan, ModelSize};
use s3cmtf::internals::{FitSizes, ModeSize};
use s3cmtf::options::Options;
use s3cmtf::problem::Problem;
use s3cmtf_kernel::kernel::CoreShape;

/// SALS-single.
pub(crate) struct Sals;

impl AlgorithmDefinition for Sals {
    fn check_support(&self, problem: &Problem<'_>, options: &Options) -> Result<()> {
        check_support(problem, options)
    }

    fn plan(&self, _: &Problem<'_>, _: &CoreShape, _: &Options) -> AlgorithmPlan {
        AlgorithmPlan::new(EntryLayout::InOrder, SalsSolver::new)
    }

    fn flops_per_entry(&self, model: &ModelSize, options: &Options) -> f64 {
        let (n, rank) = (model.order, model.largest_rank);
        let blocks = (rank / integer_option(options, "subset_size") as f64).ceil();
        let block = rank / blocks;
        let updates = integer_option(options, "inner_epochs") as f64 * (block + n + 2.0);
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
                .div_ceil(integer_option(options, "subset_size") as usize)
                .max(1);
            count * packed_width(mode.rank.div_ceil(count))
        };
        let factors = sizes.modes.iter().map(|m| m.rows as f64 * blocks(m) as f64);
        residuals + 4.0 * factors.sum::<f64>()
    }
}
