//! The definition of `cmtf-opt`.

use super::lbfgs::MAX_PAIRS;
use super::setup::check_support;
use super::solver::CmtfOptSolver;
use crate::algorithms::zero_filled::solve_zero_filled;
use s3cmtf::error::Result;
use s3cmtf::internals::Choice;
use s3cmtf::internals::EntryLayout;
use s3cmtf::internals::FitSizes;
use s3cmtf::internals::{AlgorithmDefinition, AlgorithmPlan, ModelSize};
use s3cmtf::internals::{FixedModel, Model, NewRowEntries, NewRows};
use s3cmtf::options::Options;
use s3cmtf::problem::Problem;
use s3cmtf_kernel::kernel::CoreShape;
use s3cmtf_kernel::parallel::ThreadPool;

/// CMTF-OPT.
pub(crate) struct CmtfOpt;

impl AlgorithmDefinition for CmtfOpt {
    fn check_support(&self, problem: &Problem<'_>, options: &Options) -> Result<()> {
        check_support(problem, options)
    }

    fn plan(&self, _: &Problem<'_>, _: &CoreShape, _: &Options) -> AlgorithmPlan {
        AlgorithmPlan::new(EntryLayout::InOrder, CmtfOptSolver::new)
    }

    fn selections(&self, options: &Options) -> Vec<Choice> {
        let text = match options.is_zero_filled() {
            false => "unknown (the loss is a sum over the observed entries)",
            true => "zeros (the loss is a sum over all cells)",
        };
        vec![Choice::new("unobserved cells", text.into(), &[])]
    }

    fn solve_new_rows(
        &self,
        model: &Model,
        fixed: &FixedModel<'_>,
        entries: &NewRowEntries<'_>,
        strengths: &[f32],
        pool: &ThreadPool<'_>,
    ) -> Option<Result<NewRows>> {
        model
            .options()
            .is_zero_filled()
            .then(|| solve_zero_filled(model, fixed, entries, strengths, pool))
    }

    fn flops_per_entry(&self, model: &ModelSize, _: &Options) -> f64 {
        // The gradient by the rows of each mode, for one evaluation per iteration.
        model.order * (model.order + 2.0) * model.largest_rank
    }

    fn further_bytes(&self, sizes: &FitSizes, options: &Options) -> f64 {
        // The changes of parameters and gradient of the last iterations, two gradients, the direction and the start of an
        // epoch.
        let vectors = 2 * options.epochs.min(MAX_PAIRS as u64) + 4;
        let parameters = sizes
            .factors()
            .map(|(rows, rank)| rows as f64 * rank as f64);
        4.0 * vectors as f64 * parameters.sum::<f64>()
    }

    fn checks_memory(&self) -> bool {
        true
    }
}
