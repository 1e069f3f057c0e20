//! The steps after a batch: of the core and of the fiber mode's row.
//!
//! A core that does not fit the nearest cache is what batches wait for, so it is read and written
//! once per batch: what the step of one batch leaves is contracted on the way to the M of the next.
//!
//! # Safety
//! As in [`super::batch`].
#![allow(unsafe_code)]

use super::batch_job::{BatchJob, FiberMode, RowUpdate};
use super::entry_block::FiberBatch;
use super::entry_gradient::{self, contract, contract_body};
use crate::simd::LANES;
use crate::simd::{F32x16, leaf, prefetch};

/// M for the first batch; [`update_core_and_fiber`] makes the others.
#[inline(always)]
pub(super) unsafe fn first_fiber_product<V: F32x16>(
    job: &BatchJob<'_>,
    batches: &[FiberBatch],
    vectors: usize,
    m: *mut f32,
) {
    if let (Some(FiberMode { rows: fiber, rank }), Some(batch)) = (job.fiber, batches.first()) {
        // SAFETY: the caller's promises.
        unsafe { contract::<V>(job.core, fiber.row(batch.run.fiber_row), rank, vectors, m) };
    }
}

/// Lines of a core that stay in the nearest cache, beside what else a batch needs.
const NEAR: usize = 512;

/// Lines of a larger core are asked for this many ahead.
const AHEAD: usize = 10;

/// What every line of the core goes through after a batch.
#[derive(Clone, Copy)]
struct Pass<V> {
    update: RowUpdate<V>,
    penalty: f32,
    /// Whether the penalty is too small to be seen next to 1.
    keep: bool,
    /// Whether the core is too large for the nearest cache.
    far: bool,
    e: *const f32,
    m: *mut f32,
    vectors: usize,
}

impl<V: F32x16> Pass<V> {
    /// `R` slabs of the core from `slab` on, with the numbers of the fiber mode's row `u` that belong
    /// to them, and those of the next batch's row. Returns their products with E, not yet summed.
    #[inline(always)]
    unsafe fn slabs<const R: usize>(
        &self,
        slab: *mut f32,
        u: *const f32,
        next: *const f32,
        first: bool,
    ) -> [V; R] {
        // SAFETY: the promises of `update_core_and_fiber`.
        unsafe {
            let mut dots = [V::zero(); R];
            let (mut scale, mut to) = (dots, dots);
            for r in 0..R {
                scale[r] = V::splat(*u.add(r)) * self.update.eta;
                to[r] = V::splat(*next.add(r));
            }
            for k in 0..self.vectors {
                let e = V::load(self.e.add(k * LANES));
                let m = self.m.add(k * LANES);
                let mut sum = if first { V::zero() } else { V::load(m) };
                // Slabs are often whole pages apart: all loads come before the stores, which the
                // machine would take for their own.
                let mut g = [V::zero(); R];
                if self.far {
                    for r in 0..R {
                        prefetch(slab.wrapping_add((r * self.vectors + k + AHEAD) * LANES));
                    }
                }
                for r in 0..R {
                    g[r] = V::load(slab.add((r * self.vectors + k) * LANES));
                }
                for r in 0..R {
                    dots[r] = g[r].mul_add(e, dots[r]);
                    g[r] = if self.keep {
                        e.mul_add(scale[r], g[r])
                    } else {
                        self.update.updated(g[r], g[r], e, scale[r], self.penalty)
                    };
                    sum = g[r].mul_add(to[r], sum);
                }
                for r in 0..R {
                    g[r].store(slab.add((r * self.vectors + k) * LANES));
                }
                sum.store(m);
            }
            dots
        }
    }
}

leaf! {
    /// After a batch with a full core: updates of the core and of the fiber mode's row; then M for the batch
    /// `next`. `gradients` is memory for one row of that mode.
    pub(super) unsafe fn update_core_and_fiber<V: F32x16>(job: &BatchJob<'_>, batch: &FiberBatch, next: Option<&FiberBatch>, e: *const f32, m: *mut f32,
        gradients: *mut f32, vectors: usize) = update_core_and_fiber_body;
}

#[inline(always)]
unsafe fn update_core_and_fiber_body<V: F32x16>(
    job: &BatchJob<'_>,
    batch: &FiberBatch,
    next: Option<&FiberBatch>,
    e: *const f32,
    m: *mut f32,
    gradients: *mut f32,
    vectors: usize,
) {
    // SAFETY: the core has `rank` slabs of `vectors` vectors, E and M one.
    unsafe {
        let Some(FiberMode { rows: fiber, rank }) = job.fiber else {
            return;
        };
        let count = batch.len as f32;
        let u = fiber.row(batch.run.fiber_row);
        let then = match next {
            Some(next) => fiber.row(next.run.fiber_row),
            None => u,
        };
        let penalty = job.core_penalty * count;
        let pass = Pass {
            update: RowUpdate::<V>::new(job.core_eta, job.regularizer),
            penalty,
            keep: job.core_eta * penalty < f32::EPSILON / 4.0 && !job.regularizer.nonneg,
            far: rank * vectors > NEAR,
            e,
            m,
            vectors,
        };
        let mut l = 0;
        while l < rank {
            let slab = job.core.add(l * vectors * LANES);
            let (ul, next) = (u.add(l), then.add(l));
            let mut dots = [V::zero(); 4];
            if l + 4 <= rank && V::VECTOR_REGISTERS >= 16 {
                dots = pass.slabs::<4>(slab, ul, next, l == 0);
            } else if l + 4 <= rank {
                [dots[0], dots[1]] = pass.slabs::<2>(slab, ul, next, l == 0);
                let slab = slab.add(2 * vectors * LANES);
                [dots[2], dots[3]] = pass.slabs::<2>(slab, ul.add(2), next.add(2), false);
            } else {
                for t in 0..rank - l {
                    let slab = slab.add(t * vectors * LANES);
                    [dots[t]] = pass.slabs::<1>(slab, ul.add(t), next.add(t), l + t == 0);
                }
            }
            // The rest of a line is 0, as it has to be for padding.
            gradients.add(l).cast::<[f32; 4]>().write(V::sums4(dots));
            l += 4;
        }
        for l in (rank.next_multiple_of(4)..fiber.stride).step_by(4) {
            gradients.add(l).cast::<[f32; 4]>().write([0.0; 4]);
        }
        update_fiber_row::<V>(job, batch, count, 1.0, gradients);
        // The same row, which has just updated.
        if next.is_some() && then == u {
            contract_body::<V>(job.core, u, rank, vectors, m);
        }
    }
}

/// The step of the fiber mode's row after a batch, damped along the direction of the highest
/// curvature: there the entries one after the other would have stopped where all at once overshoot.
#[inline(always)]
pub(super) unsafe fn update_fiber_row<V: F32x16>(
    job: &BatchJob<'_>,
    batch: &FiberBatch,
    count: f32,
    weight: f32,
    gradients: *const f32,
) {
    // SAFETY: the caller's promises; the direction is as long as a row.
    unsafe {
        let Some(FiberMode { rows: fiber, .. }) = job.fiber else {
            return;
        };
        let u = fiber.row(batch.run.fiber_row);
        let vectors = fiber.stride / LANES;
        let penalty = fiber.penalty(batch.run.fiber_row) * count;
        let update = RowUpdate::<V>::new(job.eta, job.regularizer);
        let scale = V::splat(job.eta * weight);
        let x = job.curvature_step * count;
        let damping = if x > 0.1 {
            let along = entry_gradient::dot::<V>(gradients, job.curvature_direction, vectors);
            // Close to (1 - exp(-x)) / x, and below it.
            along * (1.0 / (1.0 + 0.5 * x + x * x / 12.0) - 1.0)
        } else {
            0.0
        };
        for k in (0..vectors * LANES).step_by(LANES) {
            let gradient = V::splat(damping).mul_add(
                V::load(job.curvature_direction.add(k)),
                V::load(gradients.add(k)),
            );
            let (row, prior) = (u.add(k), fiber.prior_at(k));
            update.apply(V::load(row), prior, gradient, scale, penalty, row);
        }
    }
}
