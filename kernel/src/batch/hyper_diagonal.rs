//! Batches where M and E are vectors: matrices, hyper-diagonal cores, and full cores of order 2. O(N J) per
//! entry.
//!
//! # Safety
//! The obligations are those of [`super::dispatch`].
#![allow(unsafe_code)]

use super::entry_rows::{EntryRows, RowProducts, RowSettings, row_products};
use super::iter::{BatchIter, single_vector_modes, weighted_residual, weighted_residual_vector};
use super::job::{BatchJob, FiberMode, RowUpdate};
use super::order_n::{load_rows, update_rows};
use super::update::{update_core_and_fiber, update_fiber_row};
use crate::entries::block::FiberBatch;
use crate::per_entry::gradient::contract;
use crate::shape::core_shape::CoreKind;
use crate::simd::LANES;
use crate::simd::{F32x16, leaf};

/// Computes the vector M = G x_f u: u itself for a matrix, g * u for a diagonal core, G^T u for a full core of
/// order 2.
#[inline(always)]
pub(super) unsafe fn fiber_product<V: F32x16>(
    job: &BatchJob<'_>,
    u: *const f32,
    rank: usize,
    vectors: usize,
    m: *mut f32,
) {
    // SAFETY: the caller guarantees the core; `u` and `m` have `vectors` vectors, or `u` has `rank` floats.
    unsafe {
        match job.core_kind {
            Some(CoreKind::Full) => contract::<V>(job.core, u, rank, vectors, m),
            Some(CoreKind::Diagonal) => {
                for k in (0..vectors * LANES).step_by(LANES) {
                    (V::load(job.core.add(k)) * V::load(u.add(k))).store(m.add(k));
                }
            }
            None => {
                for k in (0..vectors * LANES).step_by(LANES) {
                    V::load(u.add(k)).store(m.add(k));
                }
            }
        }
    }
}

/// Updates the core and the fiber mode's row after a batch where E is a vector. `m` is a buffer of the same
/// length, `gradients` one for a row of the fiber mode.
#[inline(always)]
unsafe fn update_vector_core_and_fiber<V: F32x16>(
    job: &BatchJob<'_>,
    batch: &FiberBatch,
    e: *const f32,
    m: *mut f32,
    gradients: *mut f32,
    vectors: usize,
) {
    // SAFETY: the caller guarantees the pointers of the job and the lengths of the buffers.
    unsafe {
        let Some(FiberMode { rows: fiber, .. }) = job.fiber else {
            return;
        };
        let count = batch.len as f32;
        match job.core_kind {
            Some(CoreKind::Full) => {
                update_core_and_fiber::<V>(job, batch, None, e, m, gradients, vectors)
            }
            None => update_fiber_row::<V>(job, batch, count, job.loss_weight, e),
            Some(CoreKind::Diagonal) => {
                let u = fiber.row(batch.run.fiber_row);
                let core_eta = V::splat(job.core_eta);
                for k in (0..vectors * LANES).step_by(LANES) {
                    let (x, e, g) = (V::load(u.add(k)), V::load(e.add(k)), job.core.add(k));
                    let old = V::load(g);
                    let new = (x * e).mul_add(core_eta, old);
                    job.regularizer.projected(new).store(g);
                    (old * e).store(gradients.add(k));
                }
                update_fiber_row::<V>(job, batch, count, 1.0, gradients);
            }
        }
    }
}

leaf! {
    /// Processes batches where M and the `N` non-fiber rows are one vector each.
    pub(super) unsafe fn one_vector<V: F32x16, const N: usize, const WEIGHTED: bool>(job: &BatchJob<'_>, batches: &[FiberBatch]) -> f64
        = one_vector_body;
}

leaf! {
    /// Processes batches with `N` non-fiber rows of `K` vectors per entry; see [`RowSettings`].
    pub(super) unsafe fn fixed_order<V: F32x16, const N: usize, const K: usize>(job: &BatchJob<'_>, batches: &[FiberBatch]) -> f64 = fixed_order_body;
}

leaf! {
    /// Processes batches where M has any length, with any number of non-fiber rows per entry.
    pub(super) unsafe fn any_order<V: F32x16>(job: &BatchJob<'_>, batches: &[FiberBatch]) -> f64 = any_order_body;
}

#[inline(always)]
unsafe fn one_vector_body<V: F32x16, const N: usize, const WEIGHTED: bool>(
    job: &BatchJob<'_>,
    batches: &[FiberBatch],
) -> f64 {
    // SAFETY: the caller guarantees the pointers of the job; rows are one vector long.
    unsafe {
        let Some(FiberMode { rows: fiber, rank }) = job.fiber else {
            return 0.0;
        };
        let non_fiber = single_vector_modes::<N>(job);
        let update = RowUpdate::<V>::new(job.eta, job.regularizer);
        let scale = V::splat(-job.loss_weight);
        let mut total = 0.0f64;
        for (batch, entries) in BatchIter::<N, 1>::new(job, &non_fiber, batches, WEIGHTED) {
            fiber_product::<V>(job, fiber.row(batch.run.fiber_row), rank, 1, job.work);
            let m = V::load(job.work);
            let mut e = V::zero();
            let mut squared_error = V::zero();
            for entry in entries {
                let RowProducts {
                    at,
                    rows,
                    product,
                    gradients,
                } = row_products(m, &non_fiber, entry);
                let value = V::splat(f32::from_bits(*entry.add(N)));
                let residual = value - (m * product).splat_sum();
                let weighted_residual = weighted_residual_vector(residual, entry, N, WEIGHTED);
                squared_error = residual.mul_add(weighted_residual, squared_error);
                e = product.mul_add(weighted_residual, e);
                let scaled = weighted_residual * scale;
                for n in 0..N {
                    let (prior, penalty) = (
                        non_fiber[n].prior_at(0),
                        non_fiber[n].penalty(*entry.add(n)),
                    );
                    update.apply(rows[n], prior, gradients[n], scaled, penalty, at[n]);
                }
            }
            total += f64::from(squared_error.first_lane());
            e.store(job.work);
            let (m, gradients) = (job.work.add(LANES), job.work.add(2 * LANES));
            update_vector_core_and_fiber::<V>(job, batch, job.work, m, gradients, 1);
        }
        total
    }
}

#[inline(always)]
unsafe fn fixed_order_body<V: F32x16, const N: usize, const K: usize>(
    job: &BatchJob<'_>,
    batches: &[FiberBatch],
) -> f64 {
    // SAFETY: the caller guarantees the pointers of the job; the buffers in `work` do not overlap.
    unsafe {
        let Some(FiberMode { rows: fiber, rank }) = job.fiber else {
            return 0.0;
        };
        let RowSettings {
            non_fiber,
            width,
            regularizer,
        } = RowSettings::<N>::new::<K>(job);
        let vectors = width / LANES;
        let m = job.work;
        let e = m.add(width);
        let fiber_gradient = e.add(width);
        let update = RowUpdate::<V>::new(job.eta, regularizer);
        let scale = V::splat(-job.loss_weight);
        let mut total = 0.0f64;
        for (batch, entries) in BatchIter::<N, K>::new(job, &non_fiber, batches, job.weighted) {
            fiber_product::<V>(job, fiber.row(batch.run.fiber_row), rank, vectors, m);
            for k in (0..width).step_by(LANES) {
                V::zero().store(e.add(k));
            }
            let mut squared_error = V::zero();
            for entry in entries {
                let mut at = [std::ptr::null_mut::<f32>(); N];
                let mut penalties = [0.0; N];
                for n in 0..N {
                    at[n] = non_fiber[n].row(*entry.add(n));
                    penalties[n] = non_fiber[n].penalty(*entry.add(n));
                }
                let kept = EntryRows::<V, N, K>::new(m, &at, width);
                let value = V::splat(f32::from_bits(*entry.add(N)));
                let residual = value - kept.dot.splat_sum();
                let weighted_residual = weighted_residual_vector(residual, entry, N, job.weighted);
                squared_error = residual.mul_add(weighted_residual, squared_error);
                let scaled = weighted_residual * scale;
                for k in 0..vectors {
                    let (rows, gradients) = kept.vectors(m.add(k * LANES), &at, k);
                    let mut product = rows[0];
                    for n in 1..N {
                        product = product * rows[n];
                    }
                    let e = e.add(k * LANES);
                    product.mul_add(weighted_residual, V::load(e)).store(e);
                    for n in 0..N {
                        let (prior, to) = (non_fiber[n].prior_at(k * LANES), at[n].add(k * LANES));
                        update.apply(rows[n], prior, gradients[n], scaled, penalties[n], to);
                    }
                }
            }
            total += f64::from(squared_error.first_lane());
            update_vector_core_and_fiber::<V>(job, batch, e, m, fiber_gradient, vectors);
        }
        total
    }
}

#[inline(always)]
unsafe fn any_order_body<V: F32x16>(job: &BatchJob<'_>, batches: &[FiberBatch]) -> f64 {
    // SAFETY: the caller guarantees the pointers of the job; the buffers in `work` do not overlap.
    unsafe {
        let Some(FiberMode { rows: fiber, rank }) = job.fiber else {
            return 0.0;
        };
        let order = job.non_fiber.len();
        let width = job.non_fiber[0].stride;
        let vectors = width / LANES;
        let m = job.work;
        let e = m.add(width);
        let rows = e.add(width);
        let gradients = rows.add(order * width);
        let fiber_gradient = gradients.add(order * width);
        let mut total = 0.0f64;
        for (batch, entries) in BatchIter::<0, 0>::new(job, job.non_fiber, batches, job.weighted) {
            fiber_product::<V>(job, fiber.row(batch.run.fiber_row), rank, vectors, m);
            for k in 0..vectors {
                V::zero().store(e.add(k * LANES));
            }
            let mut squared_error = 0.0f32;
            for entry in entries {
                load_rows::<V>(job, entry, rows);
                let mut sum = V::zero();
                for k in (0..width).step_by(LANES) {
                    let mv = V::load(m.add(k));
                    let mut before = V::splat(1.0);
                    for n in 0..order {
                        (before * mv).store(gradients.add(n * width + k));
                        before = before * V::load(rows.add(n * width + k));
                    }
                    sum = before.mul_add(mv, sum);
                    let mut after = V::splat(1.0);
                    for n in (0..order).rev() {
                        let at = gradients.add(n * width + k);
                        (V::load(at) * after).store(at);
                        after = after * V::load(rows.add(n * width + k));
                    }
                }
                let residual = f32::from_bits(*entry.add(order)) - sum.sum();
                let weighted_residual = weighted_residual(residual, entry, order, job.weighted);
                squared_error += residual * weighted_residual;
                for k in (0..width).step_by(LANES) {
                    let mut product = V::load(rows.add(k));
                    for n in 1..order {
                        product = product * V::load(rows.add(n * width + k));
                    }
                    product
                        .mul_add(V::splat(weighted_residual), V::load(e.add(k)))
                        .store(e.add(k));
                }
                update_rows::<V>(
                    job,
                    entry,
                    rows,
                    gradients,
                    job.loss_weight * weighted_residual,
                );
            }
            total += f64::from(squared_error);
            update_vector_core_and_fiber::<V>(job, batch, e, m, fiber_gradient, vectors);
        }
        total
    }
}
