//! Order 3 with a full core, both non-fiber rows one vector long.
//!
//! With the fiber row u, the non-fiber rows v and w, and the value x of an entry:
//! ```text
//! for each batch:
//!     M = sum_l u[l] G[l]                   (J x J; computed by the previous batch's update)
//!     for each entry (v, w, x):
//!         dw = M^T v;  dv = M w
//!         e = x - dw . w
//!         keep w_e e v and w
//!         update v with dv, w with dw
//!     E = sum over entries of (w_e e v) w^T
//!     update u and G with E; M for the next batch
//! ```
//! Optimizations:
//! 1. The rows of M and of its transpose stay in registers during a batch, where the register file suffices. So
//!    both products are sums of broadcasts times registers, without horizontal sums.
//! 2. Two accumulators per product hide the latency of the multiply-add.
//! 3. E is summed after the batch from the kept rows, with all of E in registers. Adding to E at each entry would
//!    compete with M for registers.
//! 4. `J` and `HAS_PRIOR` are compile-time constants.
//!
//! # Safety
//! The obligations are those of [`super::dispatch`].
#![allow(unsafe_code)]

use super::iter::{BatchIter, single_vector_modes, weighted_residual_vector};
use super::job::{BatchJob, MAX_BATCH_LEN, RowUpdate};
use super::update::{first_fiber_product, update_core_and_fiber};
use crate::entries::block::FiberBatch;
use crate::simd::LANES;
use crate::simd::{F32x16, leaf};

leaf! {
    /// Processes batches of rows with at most `J` components; `J` is even.
    pub(crate) unsafe fn run<V: F32x16, const J: usize, const HAS_PRIOR: bool>(job: &BatchJob<'_>, batches: &[FiberBatch]) -> f64
        = run_body;
}

#[inline(always)]
unsafe fn run_body<V: F32x16, const J: usize, const HAS_PRIOR: bool>(
    job: &BatchJob<'_>,
    batches: &[FiberBatch],
) -> f64 {
    // SAFETY: the caller guarantees the pointers of the job; the buffers in `work` do not overlap.
    unsafe {
        // Weighted entries are processed with `HAS_PRIOR` set.
        let weighted = HAS_PRIOR && job.weighted;
        let non_fiber = single_vector_modes(job);
        let [a, b] = non_fiber;
        let rows = job.shape.ranks()[0];
        let m = job.work;
        let e = m.add(LANES * LANES);
        let vs = e.add(LANES * LANES);
        let ws = vs.add(MAX_BATCH_LEN * LANES);
        let gradients = ws.add(MAX_BATCH_LEN * LANES);
        for i in 0..LANES {
            V::zero().store(m.add(i * LANES));
        }
        let update = RowUpdate::<V, HAS_PRIOR>::new(job.eta, job.regularizer);
        first_fiber_product::<V>(job, batches, rows, m);
        let mut total = 0.0f64;
        for (batch_index, (batch, entries)) in
            BatchIter::<2, 1>::new(job, &non_fiber, batches, weighted).enumerate()
        {
            let mut mi = [V::zero(); LANES];
            for i in 0..J {
                mi[i] = V::load(m.add(i * LANES));
            }
            let mj = V::transpose(mi);
            let mut squared_error = V::zero();
            let count = batch.len as usize;
            for (k, entry) in entries.enumerate() {
                let (ra, rb) = (*entry, *entry.add(1));
                let (pv, pw) = (a.row(ra), b.row(rb));
                let (v, w) = (V::load(pv), V::load(pw));
                let (mut d0, mut d1) = (V::zero(), V::zero());
                let (mut c0, mut c1) = (V::zero(), V::zero());
                for i in (0..J).step_by(2) {
                    d0 = V::splat(*pv.add(i)).mul_add(mi[i], d0);
                    d1 = V::splat(*pv.add(i + 1)).mul_add(mi[i + 1], d1);
                    c0 = V::splat(*pw.add(i)).mul_add(mj[i], c0);
                    c1 = V::splat(*pw.add(i + 1)).mul_add(mj[i + 1], c1);
                }
                let dw = d0 + d1;
                let dv = c0 + c1;
                let residual = V::splat(f32::from_bits(*entry.add(2))) - (dw * w).splat_sum();
                let weighted_residual = weighted_residual_vector(residual, entry, 2, weighted);
                squared_error = residual.mul_add(weighted_residual, squared_error);
                (v * weighted_residual).store(vs.add(k * LANES));
                w.store(ws.add(k * LANES));
                let scale = weighted_residual * V::splat(-1.0);
                update.apply(v, a.prior_at(0), dv, scale, a.penalty(ra), pv);
                update.apply(w, b.prior_at(0), dw, scale, b.penalty(rb), pw);
            }
            total += f64::from(squared_error.first_lane());
            let mut sums = [V::zero(); J];
            for k in 0..count {
                let w = V::load(ws.add(k * LANES));
                let v = vs.add(k * LANES);
                for i in 0..J {
                    sums[i] = V::splat(*v.add(i)).mul_add(w, sums[i]);
                }
            }
            for i in 0..J {
                sums[i].store(e.add(i * LANES));
            }
            let next = batches.get(batch_index + 1);
            update_core_and_fiber::<V>(job, batch, next, e, m, gradients, rows);
        }
        total
    }
}
