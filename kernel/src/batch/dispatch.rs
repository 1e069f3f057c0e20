//! Selects the kernel for the fiber batches of a block.
//!
//! A fiber batch is a group of entries that share their row u of the fiber mode f. All batch kernels compute:
//! ```text
//! M = G x_f u                              once per batch: a core of one order less
//! for each entry of the batch:
//!     e = x - <M, outer product of the non-fiber rows>
//!     d_n = M x_{-n} {rows}                gradients of the non-fiber rows
//!     E += w e (outer product of the non-fiber rows)
//!     update the non-fiber rows with w e d_n
//! update u with <G, E> and G with u (x) E
//! ```
//! For order 3 an entry costs three products of J^2 multiply-adds: M w, M^T v, and E.
//!
//! The core is stored with the fiber mode first: one slab, a core over the non-fiber modes, per component of the
//! fiber mode.
//!
//! # Safety
//! Obligations of all batch kernels:
//! - the pointers of a [`BatchJob`] are valid for the lengths its fields state;
//! - no other thread accesses the memory they point to, except to read penalties and prior means;
//! - every row that an entry or batch names exists;
//! - `work` has [`work_len`] floats;
//! - the machine has the instruction set of the vector type.
#![allow(unsafe_code)]

use super::entry_rows::constant_vectors;
use super::hyper_diagonal;
use super::job::{BatchJob, MAX_BATCH_LEN};
use super::order_n;
use super::order3_large;
use super::order3_small;
use super::order4;
use crate::entries::block::FiberBatch;
use crate::hogwild::rows::HogwildVector;
use crate::per_entry::gradient;
use crate::per_entry::update;
use crate::shape::core_shape::{CoreKind, CoreShape};
use crate::simd::packed_vector::PackedVector;
use crate::simd::{F32x16, dispatched};
use crate::simd::{LANES, padded_len};

/// Returns the number of floats of `work` that a job needs. `order` is that of the tensor, `fiber` the rank of
/// the fiber mode.
pub(crate) fn work_len(shape: &CoreShape, order: usize, fiber: usize) -> usize {
    let widest = shape
        .ranks()
        .iter()
        .map(|&j| padded_len(j))
        .max()
        .unwrap_or(0);
    // M, its transpose, E, the rows and gradients of a batch, and the buffers of `entry_gradient`. With two modes there are M and
    // E of two batches.
    let square = widest * widest.max(shape.core_len().div_ceil(widest.max(1)));
    let squares = if shape.order() == 2 { 5 } else { 3 };
    squares * square.max(shape.core_len())
        + 2 * (MAX_BATCH_LEN + order3_large::GROUP + order) * widest
        + 2 * shape.rows_len()
        + gradient::work_len(shape)
        + 2 * padded_len(fiber)
        + if order4::supports(shape) {
            order4::WORK_LEN
        } else {
            0
        }
}

dispatched! {
    /// Updates rows and core with all entries of the batches. Returns the weighted sum of squared residuals, each
    /// taken before the updates of its own entry.
    pub(crate) unsafe fn run(job: &BatchJob<'_>, batches: &[FiberBatch]) -> f64 = run_level;
}

/// Selects the leaf for a job.
unsafe fn run_level<V: HogwildVector + PackedVector>(
    job: &BatchJob<'_>,
    batches: &[FiberBatch],
) -> f64 {
    let shape = job.shape;
    // SAFETY: the caller guarantees the obligations of the module docs.
    unsafe {
        match (job.fiber, job.core_kind) {
            (None, _) => match (job.packed, shape.order(), shape.core_len()) {
                (None, 2, LANES) => update::diagonal_one_vector::<V, 2>(job, batches),
                (None, 3, LANES) => update::diagonal_one_vector::<V, 3>(job, batches),
                _ => update::run::<V>(job, batches),
            },
            (_, Some(CoreKind::Full)) if shape.order() == 2 => full_order3::<V>(job, batches),
            (_, Some(CoreKind::Full)) if shape.order() > 2 => {
                if const { V::VECTOR_REGISTERS >= 4 }
                    && uses_short_row_kernels::<V>(job)
                    && order4::supports(shape)
                {
                    order4::run::<V>(job, batches)
                } else {
                    order_n::run::<V>(job, batches)
                }
            }
            _ => vector_core::<V>(job, batches),
        }
    }
}

/// Returns whether the kernels for short rows are used. The scalar level, which serves for comparison, has none
/// of them. Levels with few registers have none for weighted entries, where they gain nothing.
fn uses_short_row_kernels<V: F32x16>(job: &BatchJob<'_>) -> bool {
    V::VECTOR_REGISTERS >= 4 && (V::VECTOR_REGISTERS >= 8 || !job.weighted)
}

/// Processes batches of a tensor of order 3 with a full core.
unsafe fn full_order3<V: F32x16>(job: &BatchJob<'_>, batches: &[FiberBatch]) -> f64 {
    let ranks = job.shape.ranks();
    // SAFETY: the caller guarantees the obligations of the module docs.
    unsafe {
        if const { V::VECTOR_REGISTERS < 4 }
            || !uses_short_row_kernels::<V>(job)
            || ranks.iter().any(|&j| padded_len(j) > LANES)
        {
            return order3_large::run::<V>(job, batches);
        }
        // Without weights and priors an entry takes up to 12% less time where registers suffice.
        if const { V::VECTOR_REGISTERS >= 32 } && !job.has_priors && !job.weighted {
            return small_order3::<V, false>(job, batches);
        }
        small_order3::<V, true>(job, batches)
    }
}

unsafe fn small_order3<V: F32x16, const HAS_PRIOR: bool>(
    job: &BatchJob<'_>,
    batches: &[FiberBatch],
) -> f64 {
    // SAFETY: the caller guarantees the obligations of the module docs.
    unsafe {
        match job.shape.ranks()[0].max(job.shape.ranks()[1]) {
            0..=4 => order3_small::run::<V, 4, HAS_PRIOR>(job, batches),
            5..=8 => order3_small::run::<V, 8, HAS_PRIOR>(job, batches),
            9 | 10 => order3_small::run::<V, 10, HAS_PRIOR>(job, batches),
            11 | 12 => order3_small::run::<V, 12, HAS_PRIOR>(job, batches),
            _ => order3_small::run::<V, 16, HAS_PRIOR>(job, batches),
        }
    }
}

/// Processes batches where M is a vector: a hyper-diagonal core, a full core of order 2, or a matrix.
unsafe fn vector_core<V: F32x16>(job: &BatchJob<'_>, batches: &[FiberBatch]) -> f64 {
    let order = job.non_fiber.len();
    // SAFETY: the caller guarantees the obligations of the module docs.
    unsafe {
        if const { V::VECTOR_REGISTERS >= 4 }
            && uses_short_row_kernels::<V>(job)
            && job.shape.rows_len() == order * LANES
        {
            match (order, job.weighted) {
                (1, false) => return hyper_diagonal::one_vector::<V, 1, false>(job, batches),
                (2, false) => return hyper_diagonal::one_vector::<V, 2, false>(job, batches),
                (3, false) => return hyper_diagonal::one_vector::<V, 3, false>(job, batches),
                (1, true) if const { V::VECTOR_REGISTERS >= 8 } => {
                    return hyper_diagonal::one_vector::<V, 1, true>(job, batches);
                }
                (2, true) if const { V::VECTOR_REGISTERS >= 8 } => {
                    return hyper_diagonal::one_vector::<V, 2, true>(job, batches);
                }
                (3, true) if const { V::VECTOR_REGISTERS >= 8 } => {
                    return hyper_diagonal::one_vector::<V, 3, true>(job, batches);
                }
                _ => {}
            }
        }
        match (order, constant_vectors(job)) {
            (1, 4) if const { V::VECTOR_REGISTERS >= 8 } => {
                hyper_diagonal::fixed_order::<V, 1, 4>(job, batches)
            }
            (2, 2) if const { V::VECTOR_REGISTERS >= 8 } => {
                hyper_diagonal::fixed_order::<V, 2, 2>(job, batches)
            }
            (2, 4) if const { V::VECTOR_REGISTERS >= 8 } => {
                hyper_diagonal::fixed_order::<V, 2, 4>(job, batches)
            }
            (1, _) => hyper_diagonal::fixed_order::<V, 1, 0>(job, batches),
            (2, _) => hyper_diagonal::fixed_order::<V, 2, 0>(job, batches),
            (3, _) => hyper_diagonal::fixed_order::<V, 3, 0>(job, batches),
            _ => hyper_diagonal::any_order::<V>(job, batches),
        }
    }
}
