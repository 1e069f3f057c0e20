//! The choice of the algorithm: the one place that names all implementations of [`Algorithm`].

use super::algorithm::{Algorithm, FitContext, InitialState};
use super::cmtf_opt::{self, CmtfOptSolver};
use super::entry_layout::EntryLayout;
use super::rowwise::RowwiseSolver;
use super::sals::{self, SalsSolver};
use super::sgd::blocked::{BlockedSgd, BlockingPlan};
use super::sgd::hogwild::HogwildSgd;
use super::tucker_als::{self, TuckerAls};
use crate::error::{Error, Result};
use crate::kernel::{CoreKind, CoreShape};
use crate::model::Model;
use crate::options::{self, ModelKind, Options};
use crate::problem::Problem;
use crate::simd::Level;

/// An algorithm that is chosen but not created, because its data is not copied yet.
pub(super) enum AlgorithmPlan {
    Blocked(Box<BlockingPlan>),
    Hogwild,
    Rowwise,
    Sals,
    CmtfOpt,
    TuckerAls,
}

impl AlgorithmPlan {
    /// Chooses the algorithm that `options` name.
    pub(super) fn new(
        problem: &Problem<'_>,
        shape: &CoreShape,
        options: &Options,
    ) -> AlgorithmPlan {
        match options.algorithm {
            options::Algorithm::Blocked => {
                AlgorithmPlan::Blocked(Box::new(BlockingPlan::new(problem, shape, options.seed)))
            }
            options::Algorithm::Opt | options::Algorithm::Naive => AlgorithmPlan::Hogwild,
            options::Algorithm::Als | options::Algorithm::Gibbs => AlgorithmPlan::Rowwise,
            options::Algorithm::Sals => AlgorithmPlan::Sals,
            options::Algorithm::CmtfOpt => AlgorithmPlan::CmtfOpt,
            options::Algorithm::TuckerAls => AlgorithmPlan::TuckerAls,
        }
    }

    /// Returns the layout in which the algorithm needs the entries.
    pub(super) fn layout(&self) -> EntryLayout {
        match self {
            AlgorithmPlan::Blocked(plan) => EntryLayout::Blocked(plan.partition()),
            AlgorithmPlan::Hogwild => EntryLayout::Shuffled,
            AlgorithmPlan::Rowwise
            | AlgorithmPlan::Sals
            | AlgorithmPlan::CmtfOpt
            | AlgorithmPlan::TuckerAls => EntryLayout::InOrder,
        }
    }

    /// Creates the algorithm for a model with starting values.
    pub(super) fn create(
        self,
        model: &mut Model,
        context: &FitContext<'_>,
        state: &InitialState<'_>,
    ) -> Result<Box<dyn Algorithm>> {
        // The model to start from may have another core than the options.
        let kind = match model.shape.kind() {
            CoreKind::Full => ModelKind::Tucker,
            _ => ModelKind::Cp,
        };
        check_model(&context.options, kind)?;
        Ok(match self {
            AlgorithmPlan::Blocked(plan) => {
                Box::new(BlockedSgd::new(*plan, state.algorithm.blocked))
            }
            AlgorithmPlan::Hogwild => Box::new(HogwildSgd),
            AlgorithmPlan::Rowwise => Box::new(RowwiseSolver::new(model, context, state)?),
            AlgorithmPlan::Sals => Box::new(SalsSolver::new(model, context, state)?),
            AlgorithmPlan::CmtfOpt => Box::new(CmtfOptSolver::new(model, context, state)?),
            AlgorithmPlan::TuckerAls => Box::new(TuckerAls::new(model, context, state)?),
        })
    }
}

/// Refuses a problem or options that the algorithm does not support, before any work on them.
pub(super) fn check_support(problem: &Problem<'_>, options: &Options) -> Result<()> {
    check_model(options, options.model)?;
    match options.algorithm {
        options::Algorithm::Sals => sals::check_support(problem, options),
        options::Algorithm::CmtfOpt => cmtf_opt::check_support(problem, options),
        options::Algorithm::TuckerAls => tucker_als::check_support(problem, options),
        _ => Ok(()),
    }
}

/// Refuses a fit that needs more memory than is available, before any of it is allocated, if the algorithm is known to need
/// much. `init` is the model to start from, if one is given.
pub(super) fn check_memory(
    problem: &Problem<'_>,
    options: &Options,
    init: Option<&Model>,
) -> Result<()> {
    match options.algorithm {
        options::Algorithm::TuckerAls => tucker_als::check_memory(problem, options, init),
        _ => Ok(()),
    }
}

/// Refuses a kind of model that the algorithm does not fit.
fn check_model(options: &Options, kind: ModelKind) -> Result<()> {
    match options.algorithm.only_model() {
        Some(only) if kind != only && kind != ModelKind::Auto => {
            let (algorithm, only) = (options.algorithm.name(), only.name());
            Err(Error::argument(format!(
                "{algorithm} fits {only} models only; set model = {only}, or use another algorithm"
            )))
        }
        _ => Ok(()),
    }
}

/// Returns the instruction set of the kernels. `naive` is the paper's baseline and always runs scalar code.
pub(super) fn kernel_level(options: &Options) -> Result<Level> {
    match options.algorithm {
        options::Algorithm::Naive => Ok(Level::Scalar),
        _ => Level::choose(options.kernel.level()),
    }
}
