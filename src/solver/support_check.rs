//! What algorithms refuse because of their properties, before any work on the problem.

use crate::error::{Error, Result};
use crate::kernel::CoreKind;
use crate::model::{Model, check_ranks};
use crate::options::{ModelKind, Options, ZeroFilling};
use crate::problem::{MatrixKind, Problem};

/// Refuses a kind of model that the algorithm does not fit, ranks that no such model has, and data that zero-filling excludes.
pub(super) fn check_properties(problem: &Problem<'_>, options: &Options) -> Result<()> {
    check_model(options, options.model)?;
    let is_cp = expected_model(options) == ModelKind::Cp;
    check_ranks(&options.rank, problem.order(), is_cp)?;
    if options.is_zero_filled() {
        check_zero_filling(problem, options)?;
    }
    Ok(())
}

/// Refuses a kind of model that the algorithm does not fit.
pub(super) fn check_model(options: &Options, kind: ModelKind) -> Result<()> {
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

/// Refuses a model to start from of another kind than the model that is fitted.
pub(super) fn check_start(options: &Options, init: &Model) -> Result<()> {
    let kind = kind_of(init);
    let expected = expected_model(options);
    if expected == ModelKind::Auto || expected == kind {
        return Ok(());
    }
    let (kind, expected) = (kind.name(), expected.name());
    let fitted = match options.algorithm.only_model() {
        Some(_) => format!("{} fits {expected} models only", options.algorithm.name()),
        None => format!("this fit has model = {expected}"),
    };
    Err(Error::argument(format!(
        "the model to start from is {kind}, and {fitted}; start from a {expected} model, or leave it out"
    )))
}

/// Returns the kind of a model.
pub(super) fn kind_of(model: &Model) -> ModelKind {
    match model.shape.kind() {
        CoreKind::Full => ModelKind::Tucker,
        CoreKind::Diagonal => ModelKind::Cp,
    }
}

/// Returns the kind of model that the algorithm or the options demand; `Auto` if neither does.
fn expected_model(options: &Options) -> ModelKind {
    options.algorithm.only_model().unwrap_or(options.model)
}

/// Refuses weights of entries and samples of zeros where all cells without an entry are 0.
fn check_zero_filling(problem: &Problem<'_>, options: &Options) -> Result<()> {
    let name = options.algorithm.name();
    let (who, instead) = match options.algorithm.properties().zero_filling {
        ZeroFilling::Optional {
            option,
            zeros,
            unknown,
        } => (
            format!("{name} with {option} = {zeros}"),
            format!("set {option} = {unknown}"),
        ),
        ZeroFilling::Always | ZeroFilling::Never => {
            (name.to_string(), "use another algorithm".into())
        }
    };
    let refuse = |what: String| Err(Error::argument(format!("{what}, or {instead}")));
    let no_weights = format!("{who} does not support weights of entries: every cell counts once");
    if problem.tensor().is_weighted() {
        return refuse(format!("{no_weights}; leave out the weights of the tensor"));
    }
    for matrix in problem.matrices().iter().filter(|m| !m.kind.is_graph()) {
        let matrix_name = matrix.entries.name();
        if matrix.entries.is_weighted() {
            return refuse(format!(
                "{matrix_name}: {no_weights}; leave out the weights of this matrix"
            ));
        }
        if matches!(matrix.kind, MatrixKind::Sampled(_)) {
            return refuse(format!(
                "{matrix_name}: {who} takes all unlisted cells as 0 and samples none; couple the matrix as full"
            ));
        }
    }
    Ok(())
}
