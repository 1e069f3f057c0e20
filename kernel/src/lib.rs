//! The numerical kernels of the library `s3cmtf`: model values, gradients, SGD updates and normal equations.
//!
//! This crate is a part of `s3cmtf` and follows its version; use `s3cmtf` instead. Instruction sets and raw pointers are here, and
//! no file, option or model. What enters: packed entry blocks, rows that the caller owns exclusively (or shares lock-free), and a
//! core. What leaves: updated rows and cores, residuals, predictions, and normal equations. Safe functions check every length and
//! index; the modules below them work on raw pointers.
//!
//! Each layer imports only layers before it, apart from families of kernels, which share a few files:
//!
//! - `base`: errors, cancellation, traces, random streams, allocation.
//! - [`parallel`]: thread pool, pinning, reductions that do not depend on the thread count.
//! - [`simd`]: vector types. Describes how a kernel is compiled per instruction set and where to add one.
//! - [`linalg`]: dense linear algebra of small matrices.
//! - `shape`: cores. `entries`: the entries in the orders that algorithms read them in, and the ownership of rows.
//! - `batch`: SGD in blocks (algorithm `blocked`). Open `batch/block_update.rs` first.
//! - `per_entry`: kernels for single entries, and the oracles.
//! - `hogwild`: lock-free SGD (`opt`, `naive`). Open `hogwild/update.rs` first.
//! - `rowwise`: normal equations (`als`, `gibbs`). Open `rowwise/normal_equations.rs` first.
//! - `graph_update` updates along graph edges, `nearest` finds nearest rows, `flops_probe` measures the machine's peak.
//!
//! The library imports kernels from [`kernel`]. No two files import each other.
#![deny(unsafe_code)]
// Kernels without vectors of their own are compiled per instruction set, too: `dispatched!` passes the vector type.
#![allow(clippy::extra_unused_type_parameters)]
// One index runs over several arrays in most loops.
#![allow(clippy::needless_range_loop)]
// Nothing asks whether a block, a list of entries or a list of cells is empty.
#![allow(clippy::len_without_is_empty)]

mod base;
mod batch;
mod entries;
mod flops_probe;
mod graph_update;
mod hogwild;
pub mod linalg;
mod nearest;
pub mod parallel;
mod per_entry;
mod rowwise;
mod shape;
pub mod simd;

pub use base::{
    cache_line, error, printable, progress, random, sort, trace, try_alloc, value_range,
};

/// The kernels of all families.
pub mod kernel {
    pub use crate::batch::block_update::{
        BlockScratch, BlockUpdateSettings, update_block, update_graph_block,
    };
    pub use crate::batch::core_layout::CoreLayout;
    pub use crate::batch::job::{MAX_BATCH_LEN, Regularizer};
    pub use crate::batch::residuals::{
        BlockModel, residuals, squared_distances, squared_residuals,
    };
    pub use crate::entries::block::EntryBlock;
    pub use crate::entries::by_row::{CooSlices, ModeCsr, RowGroup};
    pub use crate::entries::chunk::{EntryChunk, SortedChunk};
    pub use crate::entries::classes::{
        ClassRows, ConflictFreeClass, ConflictFreeClasses, RowBitSets,
    };
    pub use crate::entries::colouring::ColouringPlan;
    pub use crate::entries::exclusive_cells::ExclusiveCells;
    pub use crate::entries::exclusive_rows::{ExclusiveRows, PartRefMut, RowsMut};
    pub use crate::entries::grid::{BlockingSpec, ModeCut, RowPartition};
    pub use crate::flops_probe::peak_flops;
    pub use crate::graph_update::Edges;
    pub use crate::hogwild::pairs::{update_graph_edges, update_matrix_entries};
    pub use crate::hogwild::row_cache::RowCache;
    pub use crate::hogwild::rows as hogwild_rows;
    pub use crate::hogwild::update::{HogwildKernel, WalkOutcome};
    pub use crate::hogwild::walk::{EntryWalk, HogwildSettings};
    pub use crate::nearest::{Lanes, nearest};
    pub use crate::per_entry::reference;
    pub use crate::per_entry::tensor_kernel::{Method, TensorKernel, add_outer, weighted_sum};
    pub use crate::rowwise::cholesky::{Noise, cholesky_solve, cholesky_solve_pair};
    pub use crate::rowwise::fiber_sums::{Coefficients, add_fiber};
    pub use crate::rowwise::hollow_gram::{GRAM_COLUMNS, add_hollow_gram_product};
    pub use crate::rowwise::normal_equations::{BiasedRow, NormalEquations};
    pub use crate::rowwise::partials::{OtherMode, Partials, PartialsScratch};
    pub use crate::rowwise::row_moments::{add_row_moments, add_weighted_rows};
    pub use crate::rowwise::row_sizes::row_sizes;
    pub use crate::shape::core_penalty::CorePenalty;
    pub use crate::shape::core_shape::{CoreKind, CoreShape, MAX_ORDER};
    pub use crate::shape::decayed_sum::{decayed_sum, exp_minus};
    pub use crate::shape::mode_product::{ModeProducts, RowProducts};
}
