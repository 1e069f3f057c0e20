//! The definitions of `opt` and `naive`.

use super::algorithm::HogwildSgd;
use crate::error::Result;
use crate::kernel::CoreShape;
use crate::options::Options;
use crate::problem::Problem;
use crate::simd::Level;
use crate::solver::algorithm_definition::{AlgorithmDefinition, AlgorithmPlan, ModelSize};
use crate::solver::entry_layout::EntryLayout;

/// S3CMTF-opt of the paper.
pub(in crate::solver) struct Opt;

/// S3CMTF-naive of the paper.
pub(in crate::solver) struct Naive;

impl AlgorithmDefinition for Opt {
    fn plan(&self, _: &Problem<'_>, _: &CoreShape, _: &Options) -> AlgorithmPlan {
        hogwild_plan()
    }

    fn flops_per_entry(&self, model: &ModelSize, options: &Options) -> f64 {
        let threads = options.threads as f64;
        match model.is_cp {
            true => (7.0 * model.order - 3.0 + 3.0 / threads) * model.largest_rank,
            false => (4.0 + 2.0 / threads) * model.core,
        }
    }
}

impl AlgorithmDefinition for Naive {
    fn plan(&self, _: &Problem<'_>, _: &CoreShape, _: &Options) -> AlgorithmPlan {
        hogwild_plan()
    }

    /// Returns scalar code always: `naive` is the paper's baseline.
    fn kernel_level(&self, _: &Options) -> Result<Level> {
        Ok(Level::Scalar)
    }

    fn flops_per_entry(&self, model: &ModelSize, options: &Options) -> f64 {
        let (n, threads) = (model.order, options.threads as f64);
        match model.is_cp {
            true => (n * n + 3.0 * n + 1.0 + 3.0 / threads) * model.largest_rank,
            false => (n * n + n + 1.0 + 2.0 / threads) * model.core,
        }
    }
}

fn hogwild_plan() -> AlgorithmPlan {
    AlgorithmPlan::new(EntryLayout::Shuffled, |_, _, _| Ok(HogwildSgd))
}
