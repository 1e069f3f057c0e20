//! The input of a fit: a validated tensor with its coupled matrices.
//!
//! Enters: [`CooView`](crate::format::CooView)s of a tensor and its matrices. Leaves: a [`Problem`], whose rows are
//! numbered compactly, so that everything downstream takes memory for the rows that occur and not for the sizes of the
//! modes.
//!
//! Open `build` first: it reads all entries once. Indices must be below the sizes, values finite, weights finite and not
//! negative, and sizes of coupled modes must agree. Entries of weight 0 are ignored. `entry_weights` normalizes weights that are
//! far from 1.
//!
//! The entries themselves stay in the views. A solver copies them into its own layout with [`EntrySource::read_chunk`],
//! which validates every index again: a file that changed while it was mapped gives an error, never an index out of
//! bounds.

mod build;
#[cfg(test)]
mod build_tests;
mod coupled_problem;
mod entry_source;
mod entry_weights;
mod matrix_kind;
mod problem_mode;
mod sampled_zeros;
mod scale_detector;
mod value_statistics;

pub use crate::kernel::EntryChunk;
pub use build::ProblemBuilder;
pub use coupled_problem::{CoupledMatrix, Problem};
pub use entry_source::EntrySource;
pub use matrix_kind::MatrixKind;
pub use problem_mode::ProblemMode;

pub(crate) use entry_source::AffineMap;
pub(crate) use entry_weights::EntryWeights;
pub(crate) use value_statistics::Outlier;
