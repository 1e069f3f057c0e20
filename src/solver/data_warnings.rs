//! Warnings of data that is probably not what the user intended.

use super::observer::{Event, Observer};
use crate::error::Result;
use crate::model::{FitRecord, Model, Predict};
use crate::problem::{MatrixKind, Problem};

/// Number of training entries whose residuals are examined at most.
const MAX_RESIDUALS: usize = 4096;

/// Multiply-adds of their predictions at most: a fraction of a second.
const MAX_OPERATIONS: usize = 1 << 28;

/// Number of standard deviations of the other residuals from which on a residual is an outlier. Of normal residuals none is.
const OUTLIER_DEVIATIONS: f64 = 10.0;

/// Standard deviation of a normal distribution as a multiple of its median absolute value.
const DEVIATION_PER_MEDIAN: f64 = 1.4826;

/// More outliers than this fraction are not errors in the data but its distribution.
const MAX_OUTLIER_FRACTION: f64 = 0.1;

/// Outliers matter from this fraction of the squared error on.
const MIN_OUTLIER_SHARE: f64 = 0.5;

/// Warns of observed matrices whose entries all have the same value.
pub(super) fn warn_of_constant_matrices(
    problem: &Problem<'_>,
    record: &mut FitRecord,
    observer: &mut dyn Observer,
) {
    for matrix in problem.matrices() {
        if matrix.is_constant && matrix.kind == MatrixKind::Observed && matrix.entries.len() > 1 {
            let event = Event::Warning(format!(
                "{}: all its entries have the same value, so that it carries no information; if unlisted \
                 cells are 0, couple it as full, or sampled with a number of zeros for each entry",
                matrix.entries.name()
            ));
            event.record(record, 0);
            observer.event(&event);
        }
    }
}

/// Warns of training values so far from their predictions that they dominate the squared error. Values on a bounded scale, such
/// as 0 and 1, have no outliers.
pub(super) fn warn_of_outliers(
    problem: &Problem<'_>,
    model: &mut Model,
    epoch: u64,
    observer: &mut dyn Observer,
) -> Result<()> {
    if problem.is_bounded() {
        return Ok(());
    }
    let Some(outliers) = Outliers::of(&sampled_residuals(problem, model)?) else {
        return Ok(());
    };
    let event = Event::Warning(format!(
        "{}: {:.1}% of the values are outliers, further from their predictions than {OUTLIER_DEVIATIONS} standard deviations \
         of the others; they have {:.0}% of the squared error and may distort the model. Correct or remove them, or fit the \
         logarithms of values that span orders of magnitude",
        problem.tensor().name(),
        100.0 * outliers.fraction,
        100.0 * outliers.share,
    ));
    event.record(&mut model.record, epoch);
    observer.event(&event);
    Ok(())
}

/// Returns the residuals of training entries at equal distances.
fn sampled_residuals(problem: &Problem<'_>, model: &Model) -> Result<Vec<f64>> {
    let view = problem.tensor().view();
    let affordable = MAX_OPERATIONS / model.operations_per_prediction().max(1);
    let count = view.len().min(MAX_RESIDUALS).min(affordable);
    let mut predict = model.predictor()?;
    let mut residuals = Vec::with_capacity(count);
    let mut index = vec![0; view.order()];
    for k in 0..count {
        let i = (k as u128 * view.len() as u128 / count as u128) as usize;
        if view.weight(i)? == Some(0.0) {
            continue;
        }
        for (n, index) in index.iter_mut().enumerate() {
            *index = view.column(n)[i];
        }
        residuals.push(view.values().get(i) - predict(&index));
    }
    Ok(residuals)
}

/// Residuals far from all others.
#[derive(Debug, PartialEq)]
struct Outliers {
    /// Their fraction of all residuals.
    fraction: f64,
    /// Their fraction of the sum of squares.
    share: f64,
}

impl Outliers {
    /// Returns the outliers if they are few and dominate the squared error.
    fn of(residuals: &[f64]) -> Option<Outliers> {
        let mut sizes: Vec<f64> = residuals.iter().map(|r| r.abs()).collect();
        sizes.sort_unstable_by(f64::total_cmp);
        let median = sizes.get(sizes.len() / 2)?;
        let limit = OUTLIER_DEVIATIONS * DEVIATION_PER_MEDIAN * median;
        let far = &sizes[sizes.partition_point(|&size| size <= limit)..];
        let squares = |sizes: &[f64]| -> f64 { sizes.iter().map(|size| size * size).sum() };
        let outliers = Outliers {
            fraction: far.len() as f64 / sizes.len() as f64,
            share: squares(far) / squares(&sizes),
        };
        let matters = limit > 0.0
            && outliers.fraction <= MAX_OUTLIER_FRACTION
            && outliers.share > MIN_OUTLIER_SHARE;
        matters.then_some(outliers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_large_residuals_are_outliers() {
        let mut residuals: Vec<f64> = (0..200).map(|k| f64::from(k % 20) / 10.0 - 1.0).collect();
        assert_eq!(Outliers::of(&residuals), None);
        residuals[3] = 100.0;
        residuals[4] = -80.0;
        let found = Outliers::of(&residuals).unwrap();
        assert!(found.fraction == 0.01 && found.share > 0.99, "{found:?}");
    }

    #[test]
    fn exact_fits_and_broad_distributions_have_none() {
        assert_eq!(Outliers::of(&[]), None);
        assert_eq!(Outliers::of(&[0.0, 0.0, 0.0, 9.0]), None);
        let broad: Vec<f64> = (0..100)
            .map(|k| if k % 5 == 0 { 50.0 } else { 1.0 })
            .collect();
        assert_eq!(Outliers::of(&broad), None);
    }
}
