//! Kernels that process one entry at a time, and the oracles of all families.
//!
//! One entry needs the model's value and, for every mode n, the partial derivative d_n = G x_{-n} {u} of the
//! value by the mode's row. The paper computes d_n(S, n) divided by the row. The kernels collapse
//! partial products of S without the mode's own factor. That is the same vector without the division.
//!
//! - `reference`: plain loops, generic over the float type. `naive`: Algorithm 2 of the paper, O(N^2 J^N).
//! - `gradient`: one entry, O(N J^N), O(N J) for CP; `tensor_kernel` is its safe wrapper.
//! - `packed_core`: full cores whose lines are packed into vectors; `packed_core_layout`: their order in memory.
//! - `update`: the update of the rows of a block without a fiber mode.

pub(crate) mod gradient;
mod naive;
pub(crate) mod packed_core;
pub(crate) mod packed_core_layout;
pub mod reference;
pub(crate) mod tensor_kernel;
pub(crate) mod update;
