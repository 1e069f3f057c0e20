//! The default algorithm: SGD on fiber batches in conflict-free blocks.
//!
//! This is the stratified SGD of Gemulla et al. (KDD 2011), extended to tensors with a core, to coupled matrices and to
//! batches. What enters: a plan (`plan.rs`), the data in its blocks, a model and a learning rate. What leaves: the model after
//! one epoch, and the sum of squared errors. The result is bit-identical for any number of threads: the plan depends on the
//! data alone, and all sums have a fixed order.
//!
//! # Epochs, passes, strata, blocks
//! - Large modes are *cut* into parts, each an axis of a grid; a *block* has one part of every cut mode (`plan`, `cut_search`).
//! - A *stratum* is a set of tasks without common rows, which threads run at the same time. The tensor blocks of a stratum have
//!   different parts of every cut mode (`BlockingPlan::block`, `strata`). Matrices and graphs that no tensor block covers have
//!   strata of their own.
//! - The core, the rows of uncut modes and the columns of small matrices are *replicated* for every block (`replicas`) and merged
//!   after one or more strata (`merge`, `core_merge`, `row_merge`). A merge estimates what the blocks would have given one after
//!   the other. Along flat directions of the loss it adds their deltas; along steep directions it takes the mean of the deltas,
//!   or that of one block (`curvature`, `curvature_basis`).
//! - An *epoch* is one or more *partial passes* over all strata (`pass`). The more replicas diverge, the more passes there are, and
//!   the shorter is the interval between merges (`merge_interval`, `replica_divergence`).
//! - The curvature is measured again after one or more passes, a *segment*. The faster it grows, the shorter are segments
//!   (`curvature_interval`).
//! - If hardly any two entries share a row, entries are in *conflict-free classes* instead of blocks: only the core is
//!   replicated, and a stratum is a group of blocks of one class (`class_groups`, `class_update`).
//!
//! # Which thread owns a factor row
//! A row belongs to at most one thread at a time; [`ExclusiveRows`](crate::kernel::ExclusiveRows) checks this at run time and
//! panics on a conflict.
//! - A row of a cut mode: the thread that runs the block with the row's part, until the block is done. Within a stratum no
//!   other block has this part. A block of the next stratum waits until the blocks before it are done with its parts
//!   ([`RoundTasks`](task_order::RoundTasks)).
//! - A column of a large matrix on a cut mode: the thread that runs the block with the column's part. Such columns are cut
//!   along another axis than the rows (`other_axis` in `plan`), so a tensor block has one part of each.
//! - A row of an uncut mode, or a replicated column: during a stratum no thread writes it, because every block updates its
//!   own replica ([`ExclusiveCells`](crate::kernel::ExclusiveCells)). During the merge, the thread that merges the row's part
//!   owns it. The core is replicated too: threads sum the deltas of its parts, and the last of them merges all of it.
//! - A row or column of a matrix or graph with strata of its own: the thread that runs the pair of its row part and its column
//!   part.
//! - In conflict-free classes: the thread that takes the block whose entries have the row.
//!
//! Which thread takes a task depends on timing; the result does not.
//!
//! # Cancellation
//! The calling thread polls for cancellation while the workers run, and sets their stop flag. Workers finish the block at hand.
//! The last one to arrive at the next barrier reads the flag, and all return; a worker that waits for another block reads it
//! too. A panic of a worker cancels the barrier, so that the others return, and then reaches the caller. The epoch then
//! returns an error. Only some of the updates have been applied, and the replicas are not merged; the driver restores the
//! parameters.
//!
//! # Where to start
//! `epoch_run.rs` has the loop of a thread, `block_update.rs` the SGD updates of a block, `merge.rs` the merge. `algorithm.rs` is
//! the interface to the driver.

mod algorithm;
mod batch_limit;
mod block_update;
mod class_groups;
mod class_update;
mod config;
mod context;
mod core_merge;
mod curvature;
mod curvature_basis;
mod curvature_interval;
mod cut_search;
mod definition;
mod entry_sample;
mod epoch;
mod epoch_run;
mod merge;
mod merge_interval;
mod pass;
mod plan;
mod replica_divergence;
mod replicas;
mod row_merge;
mod segment_settings;
mod strata;
mod task_order;
mod tree_reduce;

pub(in crate::solver) use definition::Blocked;
