//! The numerical kernels: model values, gradients, SGD updates and normal equations.
//!
//! What enters: packed entry blocks, rows that the caller owns exclusively (or shares lock-free), and a core.
//! What leaves: updated rows and cores, residuals, predictions, and normal equations. Nothing here knows files,
//! options or models. Open `block_update` first for `blocked`, `hogwild_update` for `opt`, `normal_equations` for
//! `als` and `gibbs`. Safe functions check every length and index; the modules below them work on raw pointers.
//!
//! One entry needs the model's value and, for every mode n, the partial derivative d_n = G x_{-n} {u} of the
//! value by the mode's row. The paper computes d_n(S, n) divided by the row. The kernels collapse
//! partial products of S without the mode's own factor. That is the same vector without the division.
//!
//! - Shapes and oracles: `core_shape`; [`mod@reference`] (plain loops, generic over the float type); `naive`
//!   (Algorithm 2 of the paper, O(N^2 J^N)); `entry_gradient` (one entry, O(N J^N), O(N J) for CP) and its safe
//!   wrapper `tensor_kernel`.
//! - Entries: `entry_chunk`, `entry_sort`, `blocking`, `entry_block` (blocks of entries, grouped in fiber
//!   batches), `row_counts`; `graph_colouring`, `conflict_free` (classes of blocks without a common row).
//! - Fiber batches: `block_update` checks and calls `batch`, which selects a kernel: `order3_small`,
//!   `order3_large`, `order4`, `order_n`, `hyper_diagonal`, or `per_entry` without a fiber mode. All share
//!   `batch_job` (types, row update), `entry_rows`, `batch_iter` (iteration and prefetching) and `batch_update` (core and fiber
//!   row after a batch). The core is in the layout of `block_core_layout`. `block_residuals`, `predict_batches` and `residual_sums` predict,
//!   `graph_update` updates along graph edges.
//! - Per-entry full cores: `packed_core` with its layout in `packed_core_layout` and its vector operations in
//!   `packed_vector`.
//! - Lock-free updates: `hogwild_update` for tensor entries, `hogwild_pairs` for matrix entries and graph edges. Both walk
//!   through entries with `hogwild_walk`.
//! - Row ownership: `row_partition`, `exclusive_rows`, `exclusive_cells`; [`hogwild_rows`] and `row_cache` for lock-free rows.
//! - Row-wise solvers: `mode_csr`, `partials`, `normal_equations`, `packed_columns`, `subset_rows`, `residual_update`, `residual_products`, `cholesky`, `fiber_sums`, `mode_product`, `hollow_gram`.
//! - Unfolded tensors: `unfolded_row`, `dense_products`.
//! - Long vectors of parameters: `vector_sums`.
//! - Merges of replicas: `decayed_sum`, `mode_product`.
//! - `nearest` finds nearest rows; `flops_probe` measures the machine's peak.
//!
//! Only `batch` dispatches to the batch kernels, and no two files import each other. [`crate::simd`] describes how a
//! kernel is compiled per instruction set and where to add one.
// One index runs over several arrays in most loops.
#![allow(clippy::needless_range_loop)]

mod batch;
mod batch_iter;
mod batch_job;
mod batch_update;
mod block_core_layout;
mod block_residuals;
mod block_update;
#[cfg(test)]
mod block_update_tests;
mod blocking;
mod cholesky;
#[cfg(test)]
mod concurrent_update_tests;
mod conflict_free;
mod core_penalty;
mod core_shape;
mod decayed_sum;
mod dense_products;
mod entry_block;
#[cfg(test)]
mod entry_block_tests;
mod entry_chunk;
mod entry_gradient;
mod entry_rows;
mod entry_sort;
mod exclusive_cells;
mod exclusive_rows;
mod fiber_sums;
mod flops_probe;
mod graph_colouring;
mod graph_update;
mod hogwild_pairs;
pub mod hogwild_rows;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod hogwild_rows_x86;
mod hogwild_update;
mod hogwild_walk;
mod hollow_gram;
mod hyper_diagonal;
mod mode_csr;
mod mode_product;
mod naive;
mod nearest;
mod normal_equations;
#[cfg(test)]
mod normal_equations_tests;
mod order3_large;
mod order3_small;
mod order4;
mod order_n;
mod packed_columns;
mod packed_core;
mod packed_core_layout;
mod packed_vector;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod packed_vector_x86;
mod partials;
mod per_entry;
mod predict_batches;
pub mod reference;
mod residual_products;
mod residual_sums;
mod residual_update;
mod row_cache;
mod row_counts;
mod row_moments;
mod row_partition;
mod row_sizes;
mod subset_rows;
mod subset_sums;
mod tensor_kernel;
mod unfolded_row;
mod vector_sums;

pub(crate) use batch_job::{MAX_BATCH_LEN, Regularizer};
pub(crate) use block_core_layout::CoreLayout;
pub(crate) use block_residuals::{BlockModel, residuals, squared_distances, squared_residuals};
pub(crate) use block_update::{
    BlockScratch, BlockUpdateSettings, update_block, update_graph_block,
};
pub(crate) use blocking::{BlockingSpec, ModeCut};
pub(crate) use cholesky::{Noise, cholesky_solve, cholesky_solve_pair};
pub(crate) use conflict_free::{ClassRows, ConflictFreeClass, ConflictFreeClasses, RowBitSets};
pub(crate) use core_penalty::CorePenalty;
pub use core_shape::{CoreKind, CoreShape, MAX_ORDER};
pub(crate) use decayed_sum::{decayed_sum, exp_minus};
pub(crate) use dense_products::{
    DENSE_LANES, Part, add_cross_products, add_row_products, row_inner_products,
};
pub(crate) use entry_block::EntryBlock;
pub use entry_chunk::EntryChunk;
pub(crate) use entry_sort::SortedChunk;
pub(crate) use exclusive_cells::ExclusiveCells;
pub(crate) use exclusive_rows::{ExclusiveRows, PartRefMut, RowsMut};
pub(crate) use fiber_sums::{Coefficients, add_fiber};
pub use flops_probe::peak_flops;
pub(crate) use graph_colouring::ColouringPlan;
pub(crate) use graph_update::Edges;
pub(crate) use hogwild_pairs::{update_graph_edges, update_matrix_entries};
pub(crate) use hogwild_update::{HogwildKernel, WalkOutcome};
pub(crate) use hogwild_walk::{EntryWalk, HogwildSettings};
pub(crate) use hollow_gram::{GRAM_COLUMNS, add_hollow_gram_product};
pub(crate) use mode_csr::{CooSlices, ModeCsr, RowGroup};
pub(crate) use mode_product::{ModeProducts, RowProducts};
pub(crate) use nearest::{Lanes, nearest};
pub(crate) use normal_equations::{BiasedRow, NormalEquations};
pub(crate) use packed_columns::{PackedColumns, packed_width};
pub(crate) use partials::{OtherMode, Partials, PartialsScratch};
pub(crate) use residual_update::{BlockValue, exchange_values, subtract_values};
pub(crate) use row_cache::RowCache;
pub(crate) use row_moments::{add_row_moments, add_weighted_rows};
pub(crate) use row_partition::RowPartition;
pub(crate) use row_sizes::row_sizes;
pub(crate) use subset_rows::SubsetRows;
pub use tensor_kernel::{Method, TensorKernel};
pub(crate) use tensor_kernel::{add_outer, weighted_sum};
pub(crate) use unfolded_row::{UnfoldedRowScratch, add_unfolded_row};
pub(crate) use vector_sums::{add_scaled, add_symmetric_product, inner_products};
