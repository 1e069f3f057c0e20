//! Spectral initialization of the smaller modes, from the entries alone.
//!
//! Two entries that differ in their index of mode n only lie on one mode-n fiber, and the expected product of their
//! values is the larger the more alike their two rows of mode n are. So the leading eigenvectors of
//!
//! ```text
//! A = D^-1/2 (X X^T without its diagonal) D^-1/2,   (X X^T)_ij = sum over fibers of x_i x_j
//! ```
//!
//! span the directions of that mode's rows, where X is the mode-n unfolding of the observed, centered and clipped
//! values and D counts the pairs of each row. Deleting the diagonal removes the bias of the noise's own squares (Cai, Li,
//! Poor and Chen, "Nonconvex low-rank tensor completion from noisy data", NeurIPS 2019, start from the same matrix).
//! Where every slice of the tensor averages to 0, a chain with a random initial state needs many sweeps to
//! find these directions; a chain that starts along them does not.
//!
//! In go the entries grouped by the rows of the largest mode; out come [`SpectralColumns`] for a smaller mode. Open
//! [`unfolding_gram`] first; [`centered_values`] and [`mode_fibers`] prepare its inputs.

mod centered_values;
mod mode_fibers;
mod unfolding_gram;

pub(super) use centered_values::{CenteredValues, used_entry_count};
pub(super) use unfolding_gram::{SpectralColumns, UnfoldingGram};
