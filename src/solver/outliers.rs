//! A warning of values that are so far from their predictions that they dominate the squared error.

use crate::error::Result;
use crate::kernel::{Method, TensorKernel};
use crate::model::Model;
use crate::problem::{Outlier, Problem};
use crate::progress::{Monitor, StepPolls};
use crate::simd::{AlignedVec, Level};

/// Number of training entries whose residuals are examined at most.
const MAX_RESIDUALS: usize = 4096;

/// Multiply-adds of their predictions at most: a fraction of a second.
const MAX_OPERATIONS: usize = 1 << 28;

/// Numbers of robust standard deviations from which on residuals may be outliers. Of normal residuals none is.
const OUTLIER_DEVIATIONS: [f64; 3] = [10.0, 20.0, 40.0];

/// Standard deviation of a normal distribution as a multiple of its median absolute value.
const DEVIATION_PER_MEDIAN: f64 = 1.4826;

/// More outliers than this fraction are not errors in the data but its distribution.
const MAX_OUTLIER_FRACTION: f64 = 0.1;

/// Outliers matter from this fraction of the squared error on.
const MIN_OUTLIER_SHARE: f64 = 0.5;

/// Describes a value that is far from all others and has most of the variance.
pub(super) fn describe_outlier(name: &str, outlier: &Outlier) -> String {
    let Outlier {
        entry,
        value,
        others,
    } = outlier;
    format!(
        "{name}: entry {} has the value {value:.3e}, and all others are between {:.3e} and {:.3e}; it has most of the squared error and \
         distorts the model. Correct or remove it, or give it a small weight",
        entry + 1,
        others.min,
        others.max
    )
}

/// Returns a warning if few training values are far from their predictions and have most of the squared error. The parameters of the
/// model are in units of the data. Values on a bounded scale, such as ratings, have no outliers.
pub(super) fn outlier_warning(
    problem: &Problem<'_>,
    model: &Model,
    level: Level,
    monitor: &dyn Monitor,
) -> Result<Option<String>> {
    // A single one was reported at the start of the fit.
    if problem.is_bounded() || problem.outlier().is_some() {
        return Ok(None);
    }
    let residuals = sampled_residuals(problem, model, level, monitor)?;
    let warning = Outliers::of(&residuals).map(|outliers| {
        let entries = problem.tensor().view().len();
        let count = (outliers.fraction * entries as f64).round();
        format!(
            "{}: about {count} of {entries} values are outliers, {:.0} times as far from their predictions as others; they have \
             {:.0}% of the squared error and distort the model. Correct or remove them, give them small weights, or fit \
             logarithms if values span orders of magnitude",
            problem.tensor().name(),
            outliers.distance,
            100.0 * outliers.share,
        )
    });
    Ok(warning)
}

/// Returns the residuals of training entries at equal distances, of the model's own parameters.
fn sampled_residuals(
    problem: &Problem<'_>,
    model: &Model,
    level: Level,
    monitor: &dyn Monitor,
) -> Result<Vec<f64>> {
    let view = problem.tensor().view();
    let operations = model.shape.core_len().max(1);
    let count = (MAX_OPERATIONS / operations).min(MAX_RESIDUALS);
    let count = count.min(view.len());
    let mut kernel = TensorKernel::new(&model.shape, Method::Shared(level))?;
    let mut rows = AlignedVec::zeroed(model.shape.rows_len());
    let mut compact = vec![0; view.order()];
    let mut polls = StepPolls::new(monitor, operations);
    let mut residuals = Vec::with_capacity(count);
    for k in 0..count {
        polls.step()?;
        let i = (k as u128 * view.len() as u128 / count as u128) as usize;
        if view.weight(i)? == Some(0.0) {
            continue;
        }
        for (n, compact) in compact.iter_mut().enumerate() {
            *compact = model.row_of(n, view.column(n)[i]);
            let row = model.modes[n].factor.padded_row(*compact as usize);
            rows[model.shape.row(n)].copy_from_slice(row);
        }
        let baseline = model.baseline(compact.iter().copied());
        let prediction = baseline + f64::from(kernel.value(&model.core, &rows));
        residuals.push(view.values().get(i) - prediction);
    }
    Ok(residuals)
}

/// Residuals far from all others.
#[derive(Debug, PartialEq)]
struct Outliers {
    /// Their fraction of all residuals.
    fraction: f64,
    /// Their median size as a multiple of that of all.
    distance: f64,
    /// Their fraction of the sum of squares.
    share: f64,
}

impl Outliers {
    /// Returns the outliers if they are few, apart from the others, and dominate the squared error.
    fn of(residuals: &[f64]) -> Option<Outliers> {
        let mut sizes: Vec<f64> = residuals.iter().map(|r| r.abs()).collect();
        sizes.sort_unstable_by(f64::total_cmp);
        let median = *sizes.get(sizes.len() / 2)?;
        let deviation = DEVIATION_PER_MEDIAN * median;
        let beyond = |limit: f64| &sizes[sizes.partition_point(|&size| size <= limit)..];
        let squares = |sizes: &[f64]| -> f64 { sizes.iter().map(|size| size * size).sum() };
        let all_squares = squares(&sizes);
        let outliers = |limit: f64| {
            let far = beyond(limit);
            let outliers = Outliers {
                fraction: far.len() as f64 / sizes.len() as f64,
                distance: far.get(far.len() / 2)? / median,
                share: squares(far) / all_squares,
            };
            let matters = outliers.fraction <= MAX_OUTLIER_FRACTION
                && is_separate(far.len(), beyond(0.5 * limit).len())
                && outliers.share > MIN_OUTLIER_SHARE;
            matters.then_some(outliers)
        };
        let mut limits = OUTLIER_DEVIATIONS.iter().map(|x| x * deviation);
        limits.find_map(|limit| outliers(limit).filter(|_| median > 0.0))
    }
}

/// Returns whether `far` of the `all` residuals beyond half a limit are beyond the limit itself by another cause than a heavy tail.
/// Of a Pareto distribution with a finite mean fewer than half are; more than that by a standard deviation are not from such a
/// tail.
fn is_separate(far: usize, all: usize) -> bool {
    let (far, all) = (far as f64, all as f64);
    far - 0.5 * all > 0.5 * all.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    #[test]
    fn few_large_residuals_are_outliers() {
        let mut residuals: Vec<f64> = (0..200).map(|k| f64::from(k % 20) / 10.0 - 1.0).collect();
        assert_eq!(Outliers::of(&residuals), None);
        residuals[3] = 100.0;
        residuals[4] = -80.0;
        residuals[9] = 90.0;
        let found = Outliers::of(&residuals).unwrap();
        assert!(found.fraction == 0.015 && found.share > 0.99, "{found:?}");
        assert!((found.distance - 180.0).abs() < 1.0, "{found:?}");
    }

    #[test]
    fn exact_fits_and_broad_distributions_have_none() {
        assert_eq!(Outliers::of(&[]), None);
        assert_eq!(Outliers::of(&[0.0, 0.0, 0.0, 0.0, 9.0, 9.0, 9.0]), None);
        let broad: Vec<f64> = (0..100)
            .map(|k| if k % 5 == 0 { 50.0 } else { 1.0 })
            .collect();
        assert_eq!(Outliers::of(&broad), None);
        // Quotients of normal numbers have a Cauchy distribution, others a log-normal one.
        let mut s = RandomStream::new(&[3]);
        let cauchy: Vec<f64> = (0..4096)
            .map(|_| s.standard_normal() / s.standard_normal())
            .collect();
        assert_eq!(Outliers::of(&cauchy), None);
        let skewed: Vec<f64> = (0..4096)
            .map(|_| (1.5 * s.standard_normal()).exp())
            .collect();
        assert_eq!(Outliers::of(&skewed), None);
    }
}
