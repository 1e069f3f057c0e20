//! Batches of a tensor of order 4 or more with a full core of any ranks.
//!
//! M is a core of order 3 or more, and each entry is processed by the kernels of [`crate::per_entry::gradient`] on it.
//!
//! # Safety
//! The obligations are those of [`super::dispatch`].
#![allow(unsafe_code)]

use super::iter::{BatchIter, weighted_residual};
use super::job::{BatchJob, FiberMode, RowUpdate};
use super::update::{first_fiber_product, update_core_and_fiber};
use crate::entries::block::FiberBatch;
use crate::per_entry::gradient::{gradients_leaf, update_core_leaf};
use crate::simd::LANES;
use crate::simd::{F32x16, leaf};

leaf! {
    /// Processes batches of a tensor of order 4 or more with a full core.
    pub(crate) unsafe fn run<V: F32x16>(job: &BatchJob<'_>, batches: &[FiberBatch]) -> f64 = run_body;
}

#[inline(always)]
unsafe fn run_body<V: F32x16>(job: &BatchJob<'_>, batches: &[FiberBatch]) -> f64 {
    // SAFETY: the caller guarantees the pointers of the job; the buffers in `work` do not overlap.
    unsafe {
        let Some(FiberMode { rows: fiber, .. }) = job.fiber else {
            return 0.0;
        };
        let shape = job.shape;
        let vectors = shape.core_len() / LANES;
        let m = job.work;
        let e = m.add(shape.core_len());
        let rows = e.add(shape.core_len());
        let gradients = rows.add(shape.rows_len());
        let fiber_gradient = gradients.add(shape.rows_len());
        let work = fiber_gradient.add(fiber.stride);
        let mut total = 0.0f64;
        first_fiber_product::<V>(job, batches, vectors, m);
        for (batch_index, (batch, entries)) in
            BatchIter::<0, 0>::new(job, job.non_fiber, batches, job.weighted).enumerate()
        {
            for k in 0..vectors {
                V::zero().store(e.add(k * LANES));
            }
            let mut squared_error = 0.0f32;
            for entry in entries {
                load_rows::<V>(job, entry, rows);
                let value = gradients_leaf::<V>(shape, m, rows, gradients, work);
                let residual = f32::from_bits(*entry.add(job.non_fiber.len())) - value;
                let weighted_residual =
                    weighted_residual(residual, entry, job.non_fiber.len(), job.weighted);
                squared_error += residual * weighted_residual;
                update_core_leaf::<V>(shape, e, rows, 1.0, weighted_residual);
                update_rows::<V>(job, entry, rows, gradients, weighted_residual);
            }
            total += f64::from(squared_error);
            let next = batches.get(batch_index + 1);
            update_core_and_fiber::<V>(job, batch, next, e, m, fiber_gradient, vectors);
        }
        total
    }
}

/// Copies the non-fiber rows of an entry one after the other to `rows`.
#[inline(always)]
pub(super) unsafe fn load_rows<V: F32x16>(job: &BatchJob<'_>, entry: *const u32, rows: *mut f32) {
    // SAFETY: the caller guarantees the record and its rows; `rows` has room for one row per mode.
    unsafe {
        let mut to = rows;
        for (n, mode) in job.non_fiber.iter().enumerate() {
            let row = mode.row(*entry.add(n));
            for k in (0..mode.stride).step_by(LANES) {
                V::load(row.add(k)).store(to.add(k));
            }
            to = to.add(mode.stride);
        }
    }
}

/// Updates the non-fiber rows of an entry, given copies of them, their gradients and the weighted residual.
#[inline(always)]
pub(super) unsafe fn update_rows<V: F32x16>(
    job: &BatchJob<'_>,
    entry: *const u32,
    rows: *const f32,
    gradients: *const f32,
    residual: f32,
) {
    // SAFETY: the caller guarantees the record and its rows; `rows` and `gradients` hold one row per mode.
    unsafe {
        let update = RowUpdate::<V>::new(job.eta, job.regularizer);
        let scale = V::splat(-residual);
        let mut at = 0;
        for (n, mode) in job.non_fiber.iter().enumerate() {
            let row = *entry.add(n);
            let (to, penalty) = (mode.row(row), mode.penalty(row));
            for k in (0..mode.stride).step_by(LANES) {
                let (x, d) = (V::load(rows.add(at + k)), V::load(gradients.add(at + k)));
                update.apply(x, mode.prior_at(k), d, scale, penalty, to.add(k));
            }
            at += mode.stride;
        }
    }
}
