//! The updates after a batch: of the core and of the fiber mode's row.
//!
//! A core that exceeds the L1 cache limits the speed, so it is read and written once per batch. The same pass
//! computes the products with E, updates the core, and contracts the updated core with the next batch's row,
//! which gives the next M. Where registers suffice, a pass serves two batches.
//!
//! # Safety
//! The obligations are those of [`super::dispatch`].
#![allow(unsafe_code)]

use super::job::{BatchJob, FiberMode, Regularizer, RowUpdate};
use crate::entries::block::FiberBatch;
use crate::per_entry::gradient::{self, contract, contract_body};
use crate::simd::LANES;
use crate::simd::{F32x16, leaf, prefetch};

/// Computes M for the first batch. [`update_core_and_fiber`] computes the others.
#[inline(always)]
pub(super) unsafe fn first_fiber_product<V: F32x16>(
    job: &BatchJob<'_>,
    batches: &[FiberBatch],
    vectors: usize,
    m: *mut f32,
) {
    if let (Some(FiberMode { rows: fiber, rank }), Some(batch)) = (job.fiber, batches.first()) {
        // SAFETY: the caller guarantees the pointers of the job.
        unsafe { contract::<V>(job.core, fiber.row(batch.run.fiber_row), rank, vectors, m) };
    }
}

/// Number of vectors of a core that stay in the L1 cache beside the other data of a batch.
const L1_CORE_VECTORS: usize = 512;

/// Prefetch distance in a larger core, in vectors.
const PREFETCH_VECTORS: usize = 10;

/// The pass over the core after a batch.
#[derive(Clone, Copy)]
struct CorePass<V> {
    eta: V,
    regularizer: Regularizer,
    e: *const f32,
    m: *mut f32,
    vectors: usize,
}

impl<V: F32x16> CorePass<V> {
    /// Processes `R` slabs of the core from `slab` on. `u` points to the matching components of the fiber mode's
    /// row, `next` to those of the next batch's row. Returns the products of slabs and E as vectors, not yet
    /// summed over lanes. `PREFETCH` is for cores that exceed the L1 cache.
    #[inline(always)]
    unsafe fn slabs<const R: usize, const PREFETCH: bool>(
        &self,
        slab: *mut f32,
        u: *const f32,
        next: *const f32,
        first: bool,
    ) -> [V; R] {
        // SAFETY: the obligations of `update_core_and_fiber`, whose core, E and M these are.
        unsafe {
            let mut dots = [V::zero(); R];
            let (mut scale, mut to) = (dots, dots);
            for r in 0..R {
                scale[r] = V::splat(*u.add(r)) * self.eta;
                to[r] = V::splat(*next.add(r));
            }
            for k in 0..self.vectors {
                let e = V::load(self.e.add(k * LANES));
                let m = self.m.add(k * LANES);
                let mut sum = if first { V::zero() } else { V::load(m) };
                // Slabs are often a multiple of the page size apart. All loads come before the stores, because
                // the processor would assume that such a load depends on an earlier store (4K aliasing).
                let mut g = [V::zero(); R];
                if PREFETCH {
                    for r in 0..R {
                        prefetch(
                            slab.wrapping_add((r * self.vectors + k + PREFETCH_VECTORS) * LANES),
                        );
                    }
                }
                for r in 0..R {
                    g[r] = V::load(slab.add((r * self.vectors + k) * LANES));
                }
                for r in 0..R {
                    dots[r] = g[r].mul_add(e, dots[r]);
                    g[r] = self.regularizer.projected(e.mul_add(scale[r], g[r]));
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

    /// Processes all `rank` slabs of `core`, and writes the products of slabs and E to `gradients`.
    #[inline(always)]
    unsafe fn all_slabs<const PREFETCH: bool>(
        &self,
        core: *mut f32,
        rank: usize,
        u: *const f32,
        next: *const f32,
        gradients: *mut f32,
    ) {
        // SAFETY: the obligations of `update_core_and_fiber`.
        unsafe {
            let slab_len = self.vectors * LANES;
            let mut l = 0;
            while l < rank {
                let slab = core.add(l * slab_len);
                let (u, next) = (u.add(l), next.add(l));
                let mut dots = [V::zero(); 4];
                if l + 4 <= rank && V::VECTOR_REGISTERS >= 16 {
                    dots = self.slabs::<4, PREFETCH>(slab, u, next, l == 0);
                } else if l + 4 <= rank {
                    [dots[0], dots[1]] = self.slabs::<2, PREFETCH>(slab, u, next, l == 0);
                    let slab = slab.add(2 * slab_len);
                    [dots[2], dots[3]] =
                        self.slabs::<2, PREFETCH>(slab, u.add(2), next.add(2), false);
                } else {
                    for t in 0..rank - l {
                        let slab = slab.add(t * slab_len);
                        [dots[t]] =
                            self.slabs::<1, PREFETCH>(slab, u.add(t), next.add(t), l + t == 0);
                    }
                }
                // Components beyond the rank are 0, as padding must be.
                gradients.add(l).cast::<[f32; 4]>().write(V::sums4(dots));
                l += 4;
            }
        }
    }
}

leaf! {
    /// Updates a full core and the fiber mode's row after a batch, then computes M for the batch `next`.
    /// `gradients` is a buffer for one row of the fiber mode.
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
    // SAFETY: the core has `rank` slabs of `vectors` vectors; E and M have as many vectors as one slab.
    unsafe {
        let Some(FiberMode { rows: fiber, rank }) = job.fiber else {
            return;
        };
        let count = batch.len as f32;
        let u = fiber.row(batch.run.fiber_row);
        let next_row = match next {
            Some(next) => fiber.row(next.run.fiber_row),
            None => u,
        };
        let pass = CorePass {
            eta: V::splat(job.core_eta),
            regularizer: job.regularizer,
            e,
            m,
            vectors,
        };
        // With constants the compiler keeps branches out of the inner loop.
        let core = job.core;
        match (job.regularizer.nonneg, rank * vectors > L1_CORE_VECTORS) {
            (false, false) => {
                let pass = CorePass {
                    regularizer: Regularizer::L2,
                    ..pass
                };
                pass.all_slabs::<false>(core, rank, u, next_row, gradients);
            }
            (false, true) => {
                let pass = CorePass {
                    regularizer: Regularizer::L2,
                    ..pass
                };
                pass.all_slabs::<true>(core, rank, u, next_row, gradients);
            }
            (true, _) => pass.all_slabs::<true>(core, rank, u, next_row, gradients),
        }
        for l in (rank.next_multiple_of(4)..fiber.stride).step_by(4) {
            gradients.add(l).cast::<[f32; 4]>().write([0.0; 4]);
        }
        update_fiber_row::<V>(job, batch, count, 1.0, gradients);
        // The next batch has the same row, which has just been updated, so M is computed again.
        if next.is_some() && next_row == u {
            contract_body::<V>(job.core, u, rank, vectors, m);
        }
    }
}

/// Returns whether the core is updated after two batches at a time, by [`update_after_pair`]: where it exceeds the L1 cache, and
/// registers suffice.
#[inline(always)]
pub(super) fn updates_pairs<V: F32x16>(job: &BatchJob<'_>, vectors: usize) -> bool {
    let rank = job.fiber.map_or(0, |fiber| fiber.rank);
    V::VECTOR_REGISTERS >= 32 && !job.regularizer.nonneg && rank * vectors > L1_CORE_VECTORS
}

/// Adds to M of the second batch of a pair what the update of the core by the first batch changes:
/// eta (u_1 . u_0) E_0, where eta is the learning rate of the core.
#[inline(always)]
pub(super) unsafe fn add_update_of_first<V: F32x16>(
    job: &BatchJob<'_>,
    pair: [&FiberBatch; 2],
    e: *const f32,
    m: *mut f32,
    vectors: usize,
) {
    // SAFETY: the obligations of `update_after_pair`.
    unsafe {
        let Some(FiberMode { rows: fiber, .. }) = job.fiber else {
            return;
        };
        let [u, v] = [
            fiber.row(pair[0].run.fiber_row),
            fiber.row(pair[1].run.fiber_row),
        ];
        let product = gradient::dot::<V>(u, v, fiber.stride / LANES);
        let scale = V::splat(job.core_eta * product);
        for k in (0..vectors * LANES).step_by(LANES) {
            let m = m.add(k);
            V::load(e.add(k)).mul_add(scale, V::load(m)).store(m);
        }
    }
}

/// The pass over the core after two batches, as [`CorePass`].
#[derive(Clone, Copy)]
struct PairPass<V> {
    eta: V,
    e: [*const f32; 2],
    m: [*mut f32; 2],
    vectors: usize,
}

impl<V: F32x16> PairPass<V> {
    /// Processes `R` slabs as [`CorePass::slabs`] does. Products are those of the slabs before both updates with E of each
    /// batch.
    #[inline(always)]
    unsafe fn slabs<const R: usize>(
        &self,
        slab: *mut f32,
        u: [*const f32; 2],
        next: [*const f32; 2],
        first: bool,
    ) -> [[V; R]; 2] {
        // SAFETY: the obligations of `update_after_pair`, whose core, E and M these are.
        unsafe {
            let mut dots = [[V::zero(); R]; 2];
            let (mut scale, mut to) = (dots, dots);
            for b in 0..2 {
                for r in 0..R {
                    scale[b][r] = V::splat(*u[b].add(r)) * self.eta;
                    to[b][r] = V::splat(*next[b].add(r));
                }
            }
            for k in 0..self.vectors {
                let (mut e, mut sums, mut g) = ([V::zero(); 2], [V::zero(); 2], [V::zero(); R]);
                for r in 0..R {
                    let ahead = (r * self.vectors + k + PREFETCH_VECTORS) * LANES;
                    prefetch(slab.wrapping_add(ahead));
                }
                for b in 0..2 {
                    e[b] = V::load(self.e[b].add(k * LANES));
                    if !first {
                        sums[b] = V::load(self.m[b].add(k * LANES));
                    }
                }
                for r in 0..R {
                    g[r] = V::load(slab.add((r * self.vectors + k) * LANES));
                }
                for r in 0..R {
                    let old = g[r];
                    for b in 0..2 {
                        dots[b][r] = old.mul_add(e[b], dots[b][r]);
                        g[r] = e[b].mul_add(scale[b][r], g[r]);
                    }
                    for b in 0..2 {
                        sums[b] = g[r].mul_add(to[b][r], sums[b]);
                    }
                }
                for r in 0..R {
                    g[r].store(slab.add((r * self.vectors + k) * LANES));
                }
                for b in 0..2 {
                    sums[b].store(self.m[b].add(k * LANES));
                }
            }
            dots
        }
    }
}

leaf! {
    /// Updates a full core and the fiber mode's rows after two batches with different rows, then computes M for the batches
    /// `next`. The result is that of two calls of [`update_core_and_fiber`] up to rounding: M of the second batch was corrected
    /// by [`add_update_of_first`], and its gradient is corrected here. `gradients` is a buffer for two rows of the fiber mode.
    pub(super) unsafe fn update_after_pair<V: F32x16>(job: &BatchJob<'_>, pair: [&FiberBatch; 2], next: [Option<&FiberBatch>; 2],
        e: [*const f32; 2], m: [*mut f32; 2], gradients: *mut f32, vectors: usize) = update_after_pair_body;
}

#[inline(always)]
unsafe fn update_after_pair_body<V: F32x16>(
    job: &BatchJob<'_>,
    pair: [&FiberBatch; 2],
    next: [Option<&FiberBatch>; 2],
    e: [*const f32; 2],
    m: [*mut f32; 2],
    gradients: *mut f32,
    vectors: usize,
) {
    // SAFETY: the core has `rank` slabs of `vectors` vectors; E and M have as many vectors as one slab.
    unsafe {
        let Some(FiberMode { rows: fiber, rank }) = job.fiber else {
            return;
        };
        let mut u = [fiber.start.cast_const(); 2];
        let mut next_rows = u;
        let mut to = [gradients; 2];
        for b in 0..2 {
            u[b] = fiber.row(pair[b].run.fiber_row);
            next_rows[b] = match next[b] {
                Some(next) => fiber.row(next.run.fiber_row),
                None => u[0],
            };
            to[b] = gradients.add(b * fiber.stride);
            for k in (0..fiber.stride).step_by(LANES) {
                V::zero().store(to[b].add(k));
            }
        }
        let pass = PairPass {
            eta: V::splat(job.core_eta),
            e,
            m,
            vectors,
        };
        let mut l = 0;
        while l < rank {
            let slab = job.core.add(l * vectors * LANES);
            let (rows, next_rows) = (
                [u[0].add(l), u[1].add(l)],
                [next_rows[0].add(l), next_rows[1].add(l)],
            );
            if l + 2 <= rank {
                let [a, b] = pass.slabs::<2>(slab, rows, next_rows, l == 0);
                let sums = V::sums4([a[0], a[1], b[0], b[1]]);
                for r in 0..2 {
                    (*to[0].add(l + r), *to[1].add(l + r)) = (sums[r], sums[2 + r]);
                }
            } else {
                let [a, b] = pass.slabs::<1>(slab, rows, next_rows, l == 0);
                (*to[0].add(l), *to[1].add(l)) = (a[0].sum(), b[0].sum());
            }
            l += 2;
        }
        let scale = V::splat(job.core_eta * gradient::dot::<V>(e[0], e[1], vectors));
        for k in (0..fiber.stride).step_by(LANES) {
            let gradient = to[1].add(k);
            let corrected = V::load(u[0].add(k)).mul_add(scale, V::load(gradient));
            corrected.store(gradient);
        }
        for b in 0..2 {
            update_fiber_row::<V>(job, pair[b], pair[b].len as f32, 1.0, to[b]);
        }
        // M of a batch whose row has just been updated is computed again.
        for b in 0..2 {
            if next[b].is_some() && (next_rows[b] == u[0] || next_rows[b] == u[1]) {
                contract_body::<V>(job.core, next_rows[b], rank, vectors, m[b]);
            }
        }
    }
}

/// Updates the fiber mode's row after a batch. The update is damped along the direction of the highest curvature:
/// there a batch overshoots where single entries, one after the other, would converge.
#[inline(always)]
pub(super) unsafe fn update_fiber_row<V: F32x16>(
    job: &BatchJob<'_>,
    batch: &FiberBatch,
    count: f32,
    weight: f32,
    gradients: *const f32,
) {
    // SAFETY: the caller guarantees the pointers of the job; the curvature direction is as long as a row.
    unsafe {
        let Some(FiberMode { rows: fiber, .. }) = job.fiber else {
            return;
        };
        let u = fiber.row(batch.run.fiber_row);
        let vectors = fiber.stride / LANES;
        let penalty = fiber.penalty(batch.run.fiber_row) * count;
        let update = RowUpdate::<V>::new(job.eta, job.regularizer);
        let scale = V::splat(-weight);
        let x = job.curvature_step * count;
        let damping = if x > 0.1 {
            let component = gradient::dot::<V>(gradients, job.curvature_direction, vectors);
            // A lower bound close to (1 - exp(-x)) / x.
            component * (1.0 / (1.0 + 0.5 * x + x * x / 12.0) - 1.0)
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
