//! Variances and hyperpriors that `gibbs` assumes for scaled values, whose variance is about 1.

use super::normal_wishart::NormalWishart;

/// Variance of an element of a factor row before any entry is seen.
pub(super) const FACTOR_VARIANCE: f64 = 0.01;

/// Variance of an element of a factor row in the first sweep, when there are no rows to learn it from. It is large, or
/// rows near 0 would keep each other there.
pub(super) const INITIAL_VARIANCE: f64 = 0.1;

/// Variance of a bias in the first sweep.
pub(super) const INITIAL_BIAS_VARIANCE: f64 = 0.1;

/// All modes but the two largest, given the modes by size.
pub(super) fn small_modes(modes_by_size: &[usize]) -> &[usize] {
    &modes_by_size[..modes_by_size.len().saturating_sub(2)]
}

/// The hyperprior of the rows of mode `n`, given the modes by size: around 1 for small modes, around 0 for the two
/// largest. So before any entry is seen, the model is a matrix of the two largest modes.
pub(super) fn hyperprior(modes_by_size: &[usize], n: usize) -> NormalWishart {
    let is_small = small_modes(modes_by_size).contains(&n);
    NormalWishart {
        mean: if is_small { 1.0 } else { 0.0 },
        mean_strength: 2.0,
        variance: 0.3 * FACTOR_VARIANCE,
        extra_degrees_of_freedom: 0.0,
    }
}
