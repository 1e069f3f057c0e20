//! Kernels of the algorithms that solve for or sample one row after the other.
//!
//! - `partials`: the partial derivatives of the model by a row, for all entries of the row; `normal_equations`: their products.
//!   `residual_products`: gradients.
//! - `cholesky`: solves the normal equations, or samples their posterior distribution.
//! - `fiber_sums`: sums over fibers. `hollow_gram`: products with the Gram matrix of fibers.
//! - `row_moments`, `row_sizes`: sums over the rows of a mode.

pub(crate) mod cholesky;
pub(crate) mod fiber_sums;
pub(crate) mod hollow_gram;
pub(crate) mod normal_equations;
#[cfg(test)]
mod normal_equations_tests;
pub(crate) mod partials;
mod residual_products;
pub(crate) mod row_moments;
pub(crate) mod row_sizes;
