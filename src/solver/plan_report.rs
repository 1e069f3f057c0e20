//! What a planner tells of the data and the options: warnings and units.

use super::observer::{Event, Observer};
use super::outliers::describe_outlier;
use super::value_scale::unit_selections;
use crate::fit_plan::Choice;
use crate::model::FitRecord;
use crate::options::Options;
use crate::problem::{MatrixKind, Problem};

/// Warns of options that were given although the algorithm does not use them.
pub(super) fn warn_of_unused_options(
    options: &Options,
    record: &mut FitRecord,
    observer: &mut dyn Observer,
) {
    let unused = options.unused();
    if !unused.is_empty() {
        let (algorithm, names) = (options.algorithm.name(), unused.join(", "));
        let event = Event::Warning(format!("not used by {algorithm}: {names}"));
        event.record(record, 0);
        observer.event(&event);
    }
}

/// Reports the units of weights and values that are not 1, and warns of a value or a weight beside which all others hardly count.
pub(super) fn report_data(
    problem: &Problem<'_>,
    options: &Options,
    record: &mut FitRecord,
    observer: &mut dyn Observer,
) {
    for selection in unit_selections(problem, options) {
        selection.report(record, 0, observer);
    }
    let tensor = [(problem.tensor(), problem.outlier())].into_iter();
    let matrices = problem.matrices().iter();
    for (entries, outlier) in tensor.chain(matrices.map(|m| (&m.entries, m.outlier()))) {
        let outlier = outlier.map(|outlier| describe_outlier(entries.name(), &outlier));
        let concentration = entries.weights.is_concentrated.then(|| {
            format!(
                "{}: few entries have nearly all of the weight, so that the others hardly count; limit the largest weights",
                entries.name()
            )
        });
        for text in outlier.into_iter().chain(concentration) {
            let event = Event::Warning(text);
            event.record(record, 0);
            observer.event(&event);
        }
    }
}

/// Adds to the record that cells of observed matrices without an entry are taken as 0.
pub(super) fn report_zero_filled(
    problem: &Problem<'_>,
    record: &mut FitRecord,
    observer: &mut dyn Observer,
) {
    let matrices = problem.matrices().iter();
    for matrix in matrices.filter(|m| m.kind == MatrixKind::Observed) {
        let what = format!("matrix {}", matrix.entries.name());
        let text = "full (cells without an entry are 0)".to_string();
        Choice::new(&what, text, &[]).report(record, 0, observer);
    }
}

/// Says why a fit does not try zeros in the unlisted cells of a matrix of equal values.
fn warn_of_large_matrix(
    name: &str,
    size: u64,
    record: &mut FitRecord,
    observer: &mut dyn Observer,
) {
    let event = Event::Warning(format!(
        "{name}: all its entries have the same value, and cells that it does not list are taken as unknown: with zeros there \
         the model would have {size} rows and columns, far more than there are entries; state smaller sizes, or couple it as \
         full, or sampled with a number of zeros for each entry"
    ));
    event.record(record, 0);
    observer.event(&event);
}

/// Warns of an observed matrix whose entries all have the same value.
fn warn_of_constant_matrix(name: &str, record: &mut FitRecord, observer: &mut dyn Observer) {
    let event = Event::Warning(format!(
        "{name}: all its entries have the same value, so that it carries no information; if unlisted \
         cells are 0, couple it as full, or sampled with a number of zeros for each entry"
    ));
    event.record(record, 0);
    observer.event(&event);
}

/// Warns of matrices of these kinds that say nothing, or are taken otherwise than the caller may expect. Those that were
/// `compared` have their evidence.
pub(super) fn warn_of_matrices(
    problem: &Problem<'_>,
    options: &Options,
    kinds: &[MatrixKind],
    compared: &[usize],
    record: &mut FitRecord,
    observer: &mut dyn Observer,
) {
    let weights = problem.matrix_weights(options);
    for (m, matrix) in problem.matrices().iter().enumerate() {
        let is_observed = kinds[m] == MatrixKind::Observed && !options.is_zero_filled();
        let is_given = is_observed && weights[m] > 0.0 && !compared.contains(&m);
        let name = matrix.entries.name();
        match matrix.refused_full_size {
            Some(size) if is_observed => {
                warn_of_large_matrix(name, size, record, observer);
            }
            _ if matrix.is_constant && is_given && matrix.entries.len() > 1 => {
                warn_of_constant_matrix(name, record, observer);
            }
            _ => {}
        }
    }
}
