//! The entries of a tensor or matrix in the orders that algorithms read them in, and the ownership of rows.
//!
//! - `chunk`: entries on their way from a problem, sorted by block.
//! - `grid`: the partition of rows into parts, and the grid of blocks. `block`: the entries of a block, in fiber batches.
//! - `colouring`, `classes`: classes of blocks without a common row.
//! - `by_row`: the entries of every row of a mode.
//! - `exclusive_rows`, `exclusive_cells`: rows and values that one thread at a time changes, checked at run time.

pub(crate) mod block;
#[cfg(test)]
mod block_tests;
pub(crate) mod by_row;
pub(crate) mod chunk;
pub(crate) mod classes;
pub(crate) mod colouring;
pub(crate) mod exclusive_cells;
pub(crate) mod exclusive_rows;
pub(crate) mod grid;
