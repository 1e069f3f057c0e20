//! The arithmetic of the model, on pointers and lengths alone.
//!
//! One entry of the tensor needs the model's value there and, for every mode n, the gradient
//! d_n = G x_{-n} {u}: the derivative of the value by the mode's row. The paper gets the gradients by
//! collapsing S (the products g u v w) and dividing by the row; the kernels here collapse the partial
//! products of S without the mode's own factor, which is the same vector without the division.
//!
//! - [`mod@reference`]: plain loops, generic over the float type: the oracle for everything else.
//! - `naive`: Algorithm 2 of the paper, every mode from scratch, O(N^2 J^N).
//! - `entry`: one entry, partial contractions shared between modes, O(N J^N); O(N J) for CP.
//! - `vectors`: what those are written in; [`Level`]: the instruction sets they are stamped for.
//! - `grid`, `cell`: entries sorted into cells and grouped by a shared row; `batch`, `walk`, `after`,
//!   `vector`, `small3`, `large3`, `order4`, `general`: what runs them, O(J^2) per entry for order
//!   3; `single`: entries one by one; `eval`: errors on them; `graph`: edges.
//! - `colour`, `classes`: entries that have no rows in common, in cells of classes.
//! - `lease`: rows that threads take buffers at, which those work on.
//! - `packed`, `lockfree`: runs of single entries of a lock-free fit, the core read once per entry; `hand`: the rows
//!   a thread of it works on.
//! - [`hogwild_rows`]: rows that several threads update without synchronization.
//! - `mode_csr`, `partials`, `normal_equations`, `cholesky`: entries by row, the normal equations of a row,
//!   and their solution, for `als` and `gibbs`; `fiber_sums`: sums along fibers, for the core of those.
//! - `peak`: what the machine could do at most.
// One index runs over several arrays at once in most loops here.
#![allow(clippy::needless_range_loop)]

mod batch;
mod batch_iter;
mod batch_job;
mod batch_update;
mod block_update;
#[cfg(test)]
mod block_update_tests;
mod blocking;
mod cholesky;
mod conflict_free;
mod core_shape;
mod entry_block;
#[cfg(test)]
mod entry_block_tests;
mod entry_chunk;
mod entry_gradient;
mod entry_sort;
mod exclusive_rows;
mod fiber_sums;
mod flops_probe;
mod graph_colouring;
mod graph_update;
pub mod hogwild_rows;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod hogwild_rows_x86;
mod hogwild_update;
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
mod packed_core;
mod packed_core_layout;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod packed_core_x86;
mod partials;
mod per_entry;
mod predict_batches;
pub mod reference;
mod row_cache;
mod row_partition;
mod tensor_kernel;

pub(crate) use batch_job::{MAX_BATCH_LEN as LONGEST, Regularizer as Rule};
pub(crate) use block_update::{
    BlockModel, BlockScratch as Scratch, BlockUpdateSettings as Settings, CoreLayout as Form,
    RowAccess as Hold, residuals as cell_errors, squared_residuals as cell_squares,
    update_block as run, update_graph_block as run_graph,
};
pub(crate) use blocking::{BlockingSpec, ModeCut};
pub(crate) use cholesky::{Noise, cholesky_solve};
pub(crate) use conflict_free::{ClassRows, ConflictFreeClass, ConflictFreeClasses, RowBitSets};
pub use core_shape::{CoreKind, CoreShape, MAX_ORDER};
pub(crate) use entry_block::EntryBlock;
pub use entry_chunk::EntryChunk;
pub(crate) use entry_sort::SortedChunk;
pub(crate) use exclusive_rows::{ExclusiveRows, PartRefMut};
pub(crate) use fiber_sums::{Coefficients, add_fiber};
pub use flops_probe::peak_flops;
pub(crate) use graph_colouring::ColouringPlan;
pub(crate) use hogwild_update::{
    EntryWalk as Walk, HogwildKernel as Runner, HogwildSettings as Steps,
    update_graph_edges as run_edges, update_matrix_entries as run_matrix,
};
pub(crate) use mode_csr::{CooSlices, ModeCsr};
pub(crate) use mode_product::ModeProducts;
pub(crate) use nearest::{Lanes, nearest};
pub(crate) use normal_equations::NormalEquations;
pub(crate) use partials::{OtherMode, Partials, PartialsScratch};
pub(crate) use row_cache::RowCache;
pub(crate) use row_partition::RowPartition;
pub use tensor_kernel::{Method, TensorKernel};
pub(crate) use tensor_kernel::{add_outer as spread, weighted_sum as combine};
