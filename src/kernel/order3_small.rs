//! Order 3, both listed rows one line.
//!
//! # Safety
//! As in [`super::batch`].
#![allow(unsafe_code)]

use super::batch_iter::{Batches, one_line, pulling_line};
use super::batch_job::{Job, LONGEST, Step};
use super::batch_update::{after_full, first_m};
use super::entry_block::FiberBatch;
use crate::simd::LANES;
use crate::simd::{F32x16, leaf};

leaf! {
    /// Runs batches of which at most `J` (an even number) of each row is used. M and its transpose are in
    /// registers where those suffice; E is formed after the batch, with its sums in registers.
    pub(super) unsafe fn small3<L: F32x16, const J: usize, const OWN: bool>(job: &Job<'_>, batches: &[FiberBatch]) -> f64
        = small3_body;
}

#[inline(always)]
unsafe fn small3_body<L: F32x16, const J: usize, const OWN: bool>(
    job: &Job<'_>,
    batches: &[FiberBatch],
) -> f64 {
    // SAFETY: the caller's promises; the parts of `work` do not overlap.
    unsafe {
        // Without priors there are no weights either.
        let weighted = OWN && job.weighted;
        let listed = one_line(job);
        let [a, b] = listed;
        let rows = job.shape.ranks[0];
        let m = job.work;
        let e = m.add(LANES * LANES);
        let vs = e.add(LANES * LANES);
        let ws = vs.add(LONGEST * LANES);
        let slopes = ws.add(LONGEST * LANES);
        for i in 0..LANES {
            L::zero().store(m.add(i * LANES));
        }
        let step = Step::<L, OWN>::new(job.eta, job.rule);
        first_m::<L>(job, batches, rows, m);
        let mut total = 0.0f64;
        for (number, (batch, entries)) in Batches::new(job, &listed, batches, weighted).enumerate()
        {
            let mut mi = [L::zero(); LANES];
            for i in 0..J {
                mi[i] = L::load(m.add(i * LANES));
            }
            let mj = L::transposed(mi);
            let mut squares = L::zero();
            let count = batch.len as usize;
            for (k, entry) in entries.enumerate() {
                let (ra, rb) = (*entry, *entry.add(1));
                let (pv, pw) = (a.row(ra), b.row(rb));
                let (v, w) = (L::load(pv), L::load(pw));
                let (mut d0, mut d1) = (L::zero(), L::zero());
                let (mut c0, mut c1) = (L::zero(), L::zero());
                for i in (0..J).step_by(2) {
                    d0 = L::splat(*pv.add(i)).mul_add(mi[i], d0);
                    d1 = L::splat(*pv.add(i + 1)).mul_add(mi[i + 1], d1);
                    c0 = L::splat(*pw.add(i)).mul_add(mj[i], c0);
                    c1 = L::splat(*pw.add(i + 1)).mul_add(mj[i + 1], c1);
                }
                let dw = d0 + d1;
                let dv = c0 + c1;
                let error = L::splat(f32::from_bits(*entry.add(2))) - (dw * w).total();
                let pull = pulling_line(error, entry, 2, weighted);
                squares = error.mul_add(pull, squares);
                (v * pull).store(vs.add(k * LANES));
                w.store(ws.add(k * LANES));
                let scale = pull * step.eta;
                step.put(v, a.own(0), dv, scale, a.penalty(ra), pv);
                step.put(w, b.own(0), dw, scale, b.penalty(rb), pw);
            }
            total += f64::from(squares.first());
            let mut sums = [L::zero(); J];
            for k in 0..count {
                let w = L::load(ws.add(k * LANES));
                let v = vs.add(k * LANES);
                for i in 0..J {
                    sums[i] = L::splat(*v.add(i)).mul_add(w, sums[i]);
                }
            }
            for i in 0..J {
                sums[i].store(e.add(i * LANES));
            }
            let next = batches.get(number + 1);
            after_full::<L>(job, batch, next, e, m, slopes, rows);
        }
        total
    }
}
