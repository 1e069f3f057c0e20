//! The definition of `cmtf-opt`.

use super::lbfgs::MAX_PAIRS;
use super::setup::check_support;
use super::solver::CmtfOptSolver;
use crate::error::Result;
use crate::kernel::CoreShape;
use crate::options::{Options, Unobserved};
use crate::problem::Problem;
use crate::solver::algorithm_definition::{AlgorithmDefinition, AlgorithmPlan, ModelSize};
use crate::solver::entry_layout::EntryLayout;
use crate::solver::fit_sizes::FitSizes;
use crate::solver::observer::Selection;

/// CMTF-OPT.
pub(in crate::solver) struct CmtfOpt;

impl AlgorithmDefinition for CmtfOpt {
    fn check_support(&self, problem: &Problem<'_>, options: &Options) -> Result<()> {
        check_support(problem, options)
    }

    fn plan(&self, _: &Problem<'_>, _: &CoreShape, _: &Options) -> AlgorithmPlan {
        AlgorithmPlan::new(EntryLayout::InOrder, CmtfOptSolver::new)
    }

    fn selections(&self, options: &Options) -> Vec<Selection> {
        let text = match options.unobserved {
            Unobserved::Unknown => "unknown (the loss is a sum over the observed entries)",
            Unobserved::Zeros => "zeros (the loss is a sum over all cells)",
        };
        vec![Selection::new("unobserved cells", text.into(), &[])]
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
