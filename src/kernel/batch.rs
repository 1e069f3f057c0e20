//! Batches of entries that share their row of the fiber mode.
//!
//! With u that row, M = G x_f u is formed once per batch: a core of one order less. Each entry then
//! needs only M: its value, the slopes of its listed rows, which step at once, and its part of E, the
//! sum of error times the outer product of the listed rows as they were before. After the batch, E
//! gives the gradients of u (G x E) and of the core (u (x) E). For order 3 that is three products of
//! J^2 per entry: M w, M^T v, and E.
//!
//! The core is laid out with the fiber mode first: one slab, a core over the listed modes, per rank of
//! the fiber mode.
//!
//! # Safety
//! Everywhere here: the pointers of a [`Job`] are as its fields say, no other thread touches what they
//! point to, every row an entry or a batch names lies there, and `work` has [`work_len`] floats.
#![allow(unsafe_code)]

use super::batch_job::{Between, Job, LONGEST};
use super::entry;
use super::entry_block::FiberBatch;
use super::hogwild_rows::HogwildVector;
use super::hyper_diagonal::{line, lines, strips};
use super::order_n::general;
use super::order3_large::{GROUP, large3};
use super::order3_small::small3;
use super::order4;
use super::packed_core::Flatten;
use super::per_entry::{self, single};
use crate::kernel::CoreShape;
use crate::simd::{F32x16, dispatched};

use crate::simd::{LANES, padded_len};

/// Floats of memory a job needs.
pub(super) fn work_len(shape: &CoreShape, order: usize, fiber: usize) -> usize {
    let widest = shape
        .ranks
        .iter()
        .map(|&j| padded_len(j))
        .max()
        .unwrap_or(0);
    // M, its transpose, E, rows and slopes of a batch, and what single entries need.
    let square = widest * widest.max(shape.core_len().div_ceil(widest.max(1)));
    3 * square.max(shape.core_len())
        + 2 * (LONGEST + GROUP + order) * widest
        + 2 * shape.rows_len()
        + entry::work_len(shape)
        + padded_len(fiber)
        + if order4::fits(shape) { order4::WORK } else { 0 }
}

dispatched! {
    /// Runs batches; returns the sum of squared errors, by weight, as they were met.
    pub(super) unsafe fn run(job: &Job<'_>, batches: &[FiberBatch]) -> f64 = any_run;
}

/// Chooses the leaf for a job.
unsafe fn any_run<L: HogwildVector + Flatten>(job: &Job<'_>, batches: &[FiberBatch]) -> f64 {
    let shape = job.shape;
    // SAFETY: the caller's promises.
    unsafe {
        match (job.fiber, job.between) {
            (None, _) => match (job.flat, shape.order(), shape.core_len()) {
                (None, 2, LANES) => per_entry::line::<L, 2>(job, batches),
                (None, 3, LANES) => per_entry::line::<L, 3>(job, batches),
                _ => single::<L>(job, batches),
            },
            (_, Between::Full) if shape.order() == 2 => full_order3::<L>(job, batches),
            (_, Between::Full) if shape.order() > 2 => {
                if const { L::REGISTERS >= 4 } && specialised::<L>(job) && order4::fits(shape) {
                    order4::order4::<L>(job, batches)
                } else {
                    general::<L>(job, batches)
                }
            }
            _ => vector_core::<L>(job, batches),
        }
    }
}

/// Whether the leaves for short rows are used. The scalar level has none of them: it is there to compare with.
/// Levels with few registers have none for weights, where they gain nothing.
fn specialised<L: F32x16>(job: &Job<'_>) -> bool {
    L::REGISTERS >= 4 && (L::REGISTERS >= 8 || !job.weighted)
}

/// Runs batches of a tensor of order 3 with a full core.
unsafe fn full_order3<L: F32x16>(job: &Job<'_>, batches: &[FiberBatch]) -> f64 {
    let ranks = &job.shape.ranks;
    // SAFETY: the caller's promises.
    unsafe {
        if const { L::REGISTERS < 4 }
            || !specialised::<L>(job)
            || ranks.iter().any(|&j| padded_len(j) > LANES)
        {
            return large3::<L>(job, batches);
        }
        // Without weights and priors an entry takes up to 12% less time where registers suffice.
        if const { L::REGISTERS >= 32 } && !job.own && !job.weighted {
            return small_order3::<L, false>(job, batches);
        }
        small_order3::<L, true>(job, batches)
    }
}

unsafe fn small_order3<L: F32x16, const OWN: bool>(job: &Job<'_>, batches: &[FiberBatch]) -> f64 {
    // SAFETY: the caller's promises.
    unsafe {
        match job.shape.ranks[0].max(job.shape.ranks[1]) {
            0..=4 => small3::<L, 4, OWN>(job, batches),
            5..=8 => small3::<L, 8, OWN>(job, batches),
            9 | 10 => small3::<L, 10, OWN>(job, batches),
            11 | 12 => small3::<L, 12, OWN>(job, batches),
            _ => small3::<L, 16, OWN>(job, batches),
        }
    }
}

/// Runs batches where a vector stands between the rows: a hyper-diagonal core, a full core of order 2, or a matrix.
unsafe fn vector_core<L: F32x16>(job: &Job<'_>, batches: &[FiberBatch]) -> f64 {
    let order = job.listed.len();
    // SAFETY: the caller's promises.
    unsafe {
        if const { L::REGISTERS >= 4 }
            && specialised::<L>(job)
            && job.shape.rows_len() == order * LANES
        {
            match (order, job.weighted) {
                (1, false) => return line::<L, 1, false>(job, batches),
                (2, false) => return line::<L, 2, false>(job, batches),
                (3, false) => return line::<L, 3, false>(job, batches),
                (1, true) if const { L::REGISTERS >= 8 } => {
                    return line::<L, 1, true>(job, batches);
                }
                (2, true) if const { L::REGISTERS >= 8 } => {
                    return line::<L, 2, true>(job, batches);
                }
                (3, true) if const { L::REGISTERS >= 8 } => {
                    return line::<L, 3, true>(job, batches);
                }
                _ => {}
            }
        }
        match order {
            1 => strips::<L, 1>(job, batches),
            2 => strips::<L, 2>(job, batches),
            3 => strips::<L, 3>(job, batches),
            _ => lines::<L>(job, batches),
        }
    }
}
