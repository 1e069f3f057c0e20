//! Lock-free SGD (HOGWILD!): threads update rows that they share, without locks.
//!
//! Open `update` first: updates with tensor entries. `pairs` updates with matrix entries and along the edges of graphs. Both
//! walk through the entries with `walk`. `rows` defines what concurrent access guarantees; `row_cache` keeps rows of small
//! modes per thread.

pub(crate) mod pairs;
pub(crate) mod row_cache;
pub mod rows;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod rows_x86;
pub(crate) mod update;
pub(crate) mod walk;
