//! Kernels that update or predict the entries of a block, one fiber batch after the other.
//!
//! A fiber batch is a run of entries of a block that share the row of one mode. Open `block_update` first: it checks lengths
//! and indices, and calls `dispatch`, which selects a kernel by the order and the rank. All kernels share the types below.
//!
//! - `block_update`: SGD updates with the entries of a block, or along the edges of a graph.
//! - `residuals`: predictions, residuals and their squares; its kernels are in `predict`.
//! - `dispatch` selects `order3_small`, `order3_large`, `order4`, `order_n`, `hyper_diagonal`, or
//!   `crate::per_entry::update` without a fiber mode. No other file calls these kernels.
//! - `core_layout`: the order of the core in memory.
//! - `job`: arguments of a kernel, and the update of a row. `entry_rows`: the rows of an entry. `iter`: iteration over
//!   batches, and prefetching. `update`: the core and the fiber row after a batch.

pub(crate) mod block_update;
#[cfg(test)]
mod block_update_tests;
#[cfg(test)]
mod concurrent_update_tests;
pub(crate) mod core_layout;
pub(crate) mod dispatch;
pub(crate) mod entry_rows;
mod hyper_diagonal;
pub(crate) mod iter;
pub(crate) mod job;
mod order3_large;
mod order3_small;
mod order4;
mod order_n;
mod predict;
pub(crate) mod residuals;
mod update;
