//! Powers of two that bring values to magnitudes at which learning rates, penalties and `f32` suit them.

use std::ops::RangeInclusive;

use crate::error::{Error, Result};
use crate::fit_plan::Choice;
use crate::options::{Algorithm, Options};
use crate::problem::{CoupledMatrix, EntrySource, Problem};

/// Root mean squares of values that are computed with as they are.
const ORDINARY: RangeInclusive<f64> = 1.0 / 16.0..=1024.0;

/// Root mean square that other tensors are scaled to: that of ratings, which the learning rate and the penalty of the paper are
/// made for.
const TENSOR_MAGNITUDE: f64 = 4.0;

/// Smallest root mean square of values: a model of smaller ones would have less than four digits in `f32`, as the values have.
const MIN_MAGNITUDE: f64 = 6e-41;

/// Returns the power of two nearest to a magnitude in ratio; 1 for 0.
pub(super) fn nearest_power_of_two(magnitude: f64) -> f64 {
    if magnitude > 0.0 && magnitude.is_finite() {
        2f64.powi(magnitude.log2().round() as i32)
    } else {
        1.0
    }
}

/// Returns what the values of the tensor are divided by where no mean is subtracted: 1 if they are of an ordinary magnitude.
pub(super) fn unit_of_tensor(problem: &Problem<'_>) -> f64 {
    unit(problem.root_mean_square(), TENSOR_MAGNITUDE)
}

/// Returns what the values of a matrix or graph are divided by where no offsets are subtracted.
pub(super) fn unit_of_matrix(matrix: &CoupledMatrix<'_>) -> f64 {
    unit(matrix.root_mean_square(), 1.0)
}

fn unit(magnitude: f64, target: f64) -> f64 {
    match ORDINARY.contains(&magnitude) {
        true => 1.0,
        false => nearest_power_of_two(magnitude / target),
    }
}

/// Returns an error if values are too small for `f32`.
pub(super) fn check_magnitudes(problem: &Problem<'_>) -> Result<()> {
    let tensor = (problem.tensor().name(), problem.root_mean_square());
    let matrices = problem.matrices().iter();
    let matrices = matrices.map(|m| (m.entries.name(), m.root_mean_square()));
    let mut all = [tensor].into_iter().chain(matrices);
    match all.find(|(_, magnitude)| *magnitude > 0.0 && *magnitude < MIN_MAGNITUDE) {
        None => Ok(()),
        Some((name, magnitude)) => Err(Error::argument(format!(
            "{name}: the root mean square of its values is {magnitude:e}, too small for 32-bit numbers; multiply the values, \
             for example to a standard deviation near 1"
        ))),
    }
}

/// Describes the units of weights, and of values that are not standardized, that are not 1.
pub(super) fn unit_selections(problem: &Problem<'_>, options: &Options) -> Vec<Choice> {
    let mut selections = Vec::new();
    let mut add = |what: &str, entries: &EntrySource<'_>, unit: f64| {
        if unit != 1.0 {
            let text = format!("divided by {unit:.3e} during the fit");
            selections.push(Choice::new(
                &format!("{what} of {}", entries.name()),
                text,
                &[("unit", unit)],
            ));
        }
    };
    let is_standardized = subtracts_mean(options);
    let tensor = problem.tensor();
    add("weights", tensor, tensor.weights.unit());
    // `gibbs` standardizes the tensor itself.
    if !is_standardized && options.algorithm != Algorithm::Gibbs {
        add("values", tensor, unit_of_tensor(problem));
    }
    for matrix in problem.matrices() {
        add("weights", &matrix.entries, matrix.entries.weights.unit());
        if !is_standardized || matrix.kind.is_graph() {
            add("values", &matrix.entries, unit_of_matrix(matrix));
        }
    }
    selections
}

/// Returns whether a fit subtracts the mean of the values and brings them to a standard deviation near 1. `gibbs` samples the mean.
pub(super) fn subtracts_mean(options: &Options) -> bool {
    options.mean && options.allows_baseline() && options.algorithm != Algorithm::Gibbs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_powers_of_two() {
        let magnitudes = [1.1, 0.0, 3.0, 1e-9, 1e-40, 1e38];
        let expected = [
            1.0,
            1.0,
            4.0,
            2f64.powi(-30),
            2f64.powi(-133),
            2f64.powi(126),
        ];
        assert_eq!(magnitudes.map(nearest_power_of_two), expected);
    }

    #[test]
    fn only_extreme_magnitudes_have_a_unit() {
        assert_eq!([0.0625, 1.0, 5.0, 1000.0].map(|x| unit(x, 4.0)), [1.0; 4]);
        assert_eq!(unit(4.0 * 2f64.powi(-66), 4.0), 2f64.powi(-66));
        assert_eq!(unit(1e20, 1.0), 2f64.powi(66));
    }
}
