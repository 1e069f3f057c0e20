//! Order 3, both non_fiber rows one line.
//!
//! # Safety
//! As in [`super::batch`].
#![allow(unsafe_code)]

use super::batch_iter::{BatchIter, single_vector_modes, weighted_residual_vector};
use super::batch_job::{BatchJob, MAX_BATCH_LEN, RowUpdate};
use super::batch_update::{first_fiber_product, update_core_and_fiber};
use super::entry_block::FiberBatch;
use crate::simd::LANES;
use crate::simd::{F32x16, leaf};

leaf! {
    /// Runs batches of which at most `J` (an even number) of each row is used. M and its transpose are in
    /// registers where those suffice; E is formed after the batch, with its sums in registers.
    pub(super) unsafe fn run<V: F32x16, const J: usize, const HAS_PRIOR: bool>(job: &BatchJob<'_>, batches: &[FiberBatch]) -> f64
        = run_body;
}

#[inline(always)]
unsafe fn run_body<V: F32x16, const J: usize, const HAS_PRIOR: bool>(
    job: &BatchJob<'_>,
    batches: &[FiberBatch],
) -> f64 {
    // SAFETY: the caller's promises; the parts of `work` do not overlap.
    unsafe {
        // Without priors there are no weights either.
        let weighted = HAS_PRIOR && job.weighted;
        let non_fiber = single_vector_modes(job);
        let [a, b] = non_fiber;
        let rows = job.shape.ranks[0];
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
        for (number, (batch, entries)) in
            BatchIter::new(job, &non_fiber, batches, weighted).enumerate()
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
                let scale = weighted_residual * update.eta;
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
            let next = batches.get(number + 1);
            update_core_and_fiber::<V>(job, batch, next, e, m, gradients, rows);
        }
        total
    }
}
