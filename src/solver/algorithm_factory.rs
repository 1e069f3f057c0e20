//! The choice of the algorithm. [`definition`] is the one place that names all definitions: a line for each row of the table
//! of algorithms (`options/algorithms.rs`), without which it does not compile.

use super::algorithm::{Algorithm, FitContext, InitialState};
use super::algorithm_definition::{AlgorithmDefinition, AlgorithmPlan, ModelSize};
use super::fit_sizes::FitSizes;
use super::memory_check::refuse_above_available_memory;
use super::support_check::{check_model, check_properties, kind_of};
use crate::error::Result;
use crate::fit_plan::Choice;
use crate::kernel::CoreShape;
use crate::model::Model;
use crate::options::{self, Options};
use crate::problem::{MatrixKind, Problem};
use crate::simd::Level;

/// Returns the definition of the algorithm that `options` name.
pub(super) fn definition(options: &Options) -> &'static dyn AlgorithmDefinition {
    match options.algorithm {
        options::Algorithm::Blocked => &super::sgd::blocked::Blocked,
        options::Algorithm::Opt => &super::sgd::hogwild::Opt,
        options::Algorithm::Naive => &super::sgd::hogwild::Naive,
        options::Algorithm::Als => &super::rowwise::Als,
        options::Algorithm::Gibbs => &super::rowwise::Gibbs,
        options::Algorithm::External(algorithm) => *algorithm
            .definition
            .downcast_ref::<&'static dyn AlgorithmDefinition>()
            .expect("a definition of the solver"),
    }
}

/// Refuses a problem or options that the algorithm does not support, before any work on them.
pub(super) fn check_support(problem: &Problem<'_>, options: &Options) -> Result<()> {
    check_properties(problem, options)?;
    definition(options).check_support(problem, options)
}

/// Refuses a fit that needs more memory than is available, before any of it is allocated: if the algorithm is known to need
/// much, or if the factors alone are too large, to which a full matrix adds rows and columns without entries. Matrices have these
/// kinds; `init` is the model to start from, if one is given.
pub(super) fn check_memory(
    problem: &Problem<'_>,
    kinds: &[MatrixKind],
    options: &Options,
    init: Option<&Model>,
) -> Result<()> {
    let definition = definition(options);
    if !definition.checks_memory() && !kinds.contains(&MatrixKind::Full) {
        return Ok(());
    }
    let sizes = FitSizes::of_problem(problem, kinds, options, init);
    let needed = match definition.checks_memory() {
        true => sizes.common_bytes() + definition.further_bytes(&sizes, options),
        false => sizes.factor_bytes(),
    };
    refuse_above_available_memory(options.algorithm.name(), needed, &sizes)
}

/// Plans the algorithm for a model of this shape.
pub(super) fn plan(problem: &Problem<'_>, shape: &CoreShape, options: &Options) -> AlgorithmPlan {
    definition(options).plan(problem, shape, options)
}

/// Creates a planned algorithm for a model with starting values.
pub(super) fn create(
    plan: AlgorithmPlan,
    model: &mut Model,
    context: &FitContext<'_>,
    state: &InitialState<'_>,
) -> Result<Box<dyn Algorithm>> {
    // The model to start from may have another core than the options.
    check_model(&context.options, kind_of(model))?;
    plan.create(model, context, state)
}

/// Describes how the algorithm interprets its own options, for the record of the fit.
pub(super) fn selections(options: &Options) -> Vec<Choice> {
    definition(options).selections(options)
}

/// Returns the instruction set of the kernels.
pub(super) fn kernel_level(options: &Options) -> Result<Level> {
    definition(options).kernel_level(options)
}

/// Returns the floating-point operations per entry of an epoch, for a model of these ranks. The help of `s3cmtf bench` has the
/// formulas.
pub fn flops_per_entry(options: &Options, ranks: &[usize]) -> f64 {
    definition(options).flops_per_entry(&ModelSize::new(options, ranks), options)
}

/// Returns the bytes that the algorithm of a fit needs besides copies of the entries and of the parameters, estimated from the
/// sizes of the fit.
pub fn further_bytes(options: &Options, sizes: &FitSizes) -> f64 {
    definition(options).further_bytes(sizes, options)
}
