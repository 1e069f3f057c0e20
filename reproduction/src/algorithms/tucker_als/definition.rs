//! The definition of `tucker-als`.

use super::memory::update_bytes;
use super::setup::check_support;
use super::solver::TuckerAlsSolver;
use crate::algorithms::zero_filled::solve_zero_filled;
use s3cmtf::error::Result;
use s3cmtf::internals::EntryLayout;
use s3cmtf::internals::FitSizes;
use s3cmtf::internals::{AlgorithmDefinition, AlgorithmPlan, ModelSize};
use s3cmtf::internals::{FixedModel, Model, NewRowEntries, NewRows};
use s3cmtf::options::Options;
use s3cmtf::problem::Problem;
use s3cmtf_kernel::kernel::CoreShape;
use s3cmtf_kernel::parallel::ThreadPool;

/// CMTF-Tucker-ALS.
pub(crate) struct TuckerAls;

impl AlgorithmDefinition for TuckerAls {
    fn check_support(&self, problem: &Problem<'_>, options: &Options) -> Result<()> {
        check_support(problem, options)
    }

    fn plan(&self, _: &Problem<'_>, _: &CoreShape, _: &Options) -> AlgorithmPlan {
        AlgorithmPlan::new(EntryLayout::InOrder, TuckerAlsSolver::new)
    }

    fn solve_new_rows(
        &self,
        model: &Model,
        fixed: &FixedModel<'_>,
        entries: &NewRowEntries<'_>,
        strengths: &[f32],
        pool: &ThreadPool<'_>,
    ) -> Option<Result<NewRows>> {
        Some(solve_zero_filled(model, fixed, entries, strengths, pool))
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
