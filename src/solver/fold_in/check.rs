//! Checks of the input against the model.

use super::input::FoldIn;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::options::{Algorithm, Penalty};
use crate::problem::MatrixKind;

/// Refuses input that cannot be folded into the model.
pub(super) fn check(model: &Model, input: &FoldIn<'_>) -> Result<()> {
    let n = input.mode;
    if n >= model.order() {
        return Err(Error::argument(format!(
            "mode {}; the model has {}",
            n + 1,
            model.order()
        )));
    }
    let is_gibbs = model.options.algorithm == Algorithm::Gibbs;
    if is_gibbs && model.samples().is_none() {
        return Err(Error::argument(
            "the model has no posterior samples yet, which rows are folded into; finish its fit",
        ));
    }
    if !is_gibbs && model.precision.is_none() {
        return Err(without_precision());
    }
    if !is_gibbs && model.options.penalty == Penalty::L1 {
        return Err(Error::argument(
            "the model has an l1 penalty, with which rows have no closed form; fit one with l2",
        ));
    }
    input.tensor.iter().try_for_each(|t| model.check_order(t))?;
    if model.options.is_zero_filled() {
        let matrices = input.matrices.iter().map(|m| &m.entries);
        if let Some(weighted) = input
            .tensor
            .iter()
            .chain(matrices)
            .find(|v| v.weights().is_some())
        {
            return Err(Error::argument(format!(
                "{}: has weights, which the zeros of the fit lack; leave them out",
                weighted.name()
            )));
        }
    }
    for (k, given) in input.matrices.iter().enumerate() {
        let (view, number) = (&given.entries, given.number);
        let refuse = |why: String| Err(Error::argument(format!("{}: {why}", view.name())));
        let Some(matrix) = model.matrices.get(number) else {
            return refuse(format!(
                "is given as matrix {} of the model, which has {}",
                number + 1,
                model.matrices.len()
            ));
        };
        if matrix.mode != n {
            return refuse(format!(
                "matrix {} of the model is coupled to mode {}, not to mode {}",
                number + 1,
                matrix.mode + 1,
                n + 1
            ));
        }
        if matrix.kind == MatrixKind::Graph {
            return refuse(format!(
                "matrix {} of the model is a graph; new rows have no graph entries",
                number + 1
            ));
        }
        if view.order() != 2 {
            return refuse(format!("has {} modes; a matrix has 2", view.order()));
        }
        if input.matrices[..k].iter().any(|m| m.number == number) {
            return refuse(format!("matrix {} of the model is given twice", number + 1));
        }
        if let Some(weight) = given.weight.filter(|w| !(w.is_finite() && *w >= 0.0)) {
            return refuse(format!(
                "a weight of {weight}; it must be a finite number, 0 or more"
            ));
        }
        let is_stored = match model.samples() {
            Some(samples) => samples.iter().all(|s| s.columns.len() > number),
            None => matrix.precision.is_some(),
        };
        if !is_stored {
            return Err(without_precision());
        }
    }
    Ok(())
}

fn without_precision() -> Error {
    Error::argument(
        "the model does not have the precision of its entries, which rows are folded in with; fit it again",
    )
}
