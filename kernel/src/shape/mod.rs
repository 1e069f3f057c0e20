//! Cores: their shape, their penalty, and their products with factors.
//!
//! - `core_shape`: ranks, and whether the core is full or diagonal. `core_penalty`: weight decay of the core.
//! - `mode_product`: products of cores and rows with small matrices. `decayed_sum`: sums of replicas of cores.

pub(crate) mod core_penalty;
pub(crate) mod core_shape;
pub(crate) mod decayed_sum;
pub(crate) mod mode_product;
