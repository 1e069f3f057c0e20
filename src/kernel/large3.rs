//! Order 3, listed rows of any length.
//!
//! # Safety
//! As in [`super::batch`].
#![allow(unsafe_code)]

use super::batch::{Job, LONGEST, Step, after_full};
use super::entry::{self, contract};
use super::grid::Batch;
use super::lines::Line;
use super::walk::Batches;
use crate::model::STRIDE;

/// `out = sum_i x_i m_i` for rows `m_i` of `lines` lines, `K` lines at a time.
#[inline(always)]
unsafe fn product<L: Line, const K: usize>(
    m: *const f32,
    x: *const f32,
    rank: usize,
    lines: usize,
    out: *mut f32,
) {
    // SAFETY: within the lengths promised.
    unsafe {
        for k in (0..lines).step_by(K) {
            let (mut even, mut odd) = ([L::zero(); K], [L::zero(); K]);
            let mut i = 0;
            while i + 2 <= rank {
                let (x0, x1) = (L::splat(*x.add(i)), L::splat(*x.add(i + 1)));
                let row = m.add((i * lines + k) * STRIDE);
                let next = row.add(lines * STRIDE);
                for t in 0..K {
                    even[t] = x0.times_plus(L::load(row.add(t * STRIDE)), even[t]);
                    odd[t] = x1.times_plus(L::load(next.add(t * STRIDE)), odd[t]);
                }
                i += 2;
            }
            if i < rank {
                let x0 = L::splat(*x.add(i));
                let row = m.add((i * lines + k) * STRIDE);
                for t in 0..K {
                    even[t] = x0.times_plus(L::load(row.add(t * STRIDE)), even[t]);
                }
            }
            for t in 0..K {
                even[t].plus(odd[t]).store(out.add((k + t) * STRIDE));
            }
        }
    }
}

/// Order 3 with rows of any length: `la` and `lb` lines, both multiples of `K`.
#[inline(always)]
pub(super) unsafe fn large3<L: Line, const K: usize>(
    job: &Job<'_>,
    batches: &[Batch],
    la: usize,
    lb: usize,
) -> f64 {
    // SAFETY: the caller's promises; the parts of `work` do not overlap.
    unsafe {
        let Some((fiber, rank)) = job.fiber else {
            return 0.0;
        };
        let (a, b) = (job.listed[0], job.listed[1]);
        let (ja, jb) = (job.shape.ranks[0], job.shape.ranks[1]);
        let (wa, wb) = (la * STRIDE, lb * STRIDE);
        let m = job.work;
        let mt = m.add(ja * wb);
        let e = mt.add(jb * wa);
        let vs = e.add(ja * wb);
        let ws = vs.add(LONGEST * wa);
        let dv = ws.add(LONGEST * wb);
        let dw = dv.add(wa);
        let slopes = dw.add(wb);
        for k in 0..jb * la {
            L::zero().store(mt.add(k * STRIDE));
        }
        let mut total = 0.0f64;
        let listed = [a, b];
        let step = Step::new(job.eta, job.rule);
        for (batch, entries) in Batches::new(job, &listed, batches) {
            contract::<L>(job.core, fiber.row(batch.run.fiber), rank, ja * lb, m);
            for i in 0..ja {
                for j in 0..jb {
                    *mt.add(j * wa + i) = *m.add(i * wb + j);
                }
            }
            let mut squares = 0.0f32;
            let count = batch.len as usize;
            for (k, entry) in entries.enumerate() {
                let (ra, rb) = (*entry, *entry.add(1));
                let (pv, pw) = (a.row(ra), b.row(rb));
                product::<L, K>(m, pv, ja, lb, dw);
                product::<L, K>(mt, pw, jb, la, dv);
                let error = f32::from_bits(*entry.add(2)) - entry::dot::<L>(dw, pw, lb);
                squares += error * error;
                let scale = L::splat(job.eta * error);
                let (penalty_v, penalty_w) = (a.penalty(ra), b.penalty(rb));
                for t in 0..la {
                    let v = L::load(pv.add(t * STRIDE));
                    v.times(L::splat(error)).store(vs.add(k * wa + t * STRIDE));
                    let d = L::load(dv.add(t * STRIDE));
                    step.moved(v, d, scale, penalty_v).store(pv.add(t * STRIDE));
                }
                for t in 0..lb {
                    let w = L::load(pw.add(t * STRIDE));
                    w.store(ws.add(k * wb + t * STRIDE));
                    let d = L::load(dw.add(t * STRIDE));
                    step.moved(w, d, scale, penalty_w).store(pw.add(t * STRIDE));
                }
            }
            total += f64::from(squares);
            outer_sums::<L, K>(vs, ws, count, (ja, la), lb, e);
            after_full::<L>(job, batch, count as f32, e, ja * lb, slopes);
        }
        total
    }
}

/// E = sum_k v_k w_k^T, a tile of rows and lines at a time, so that its sums stay in registers.
#[inline(always)]
unsafe fn outer_sums<L: Line, const K: usize>(
    vs: *const f32,
    ws: *const f32,
    count: usize,
    (ja, la): (usize, usize),
    lb: usize,
    e: *mut f32,
) {
    const ROWS: usize = 6;
    // SAFETY: within the lengths promised.
    unsafe {
        for t in (0..lb).step_by(K) {
            let mut i = 0;
            while i < ja {
                let some = ROWS.min(ja - i);
                if some == ROWS {
                    let mut sums = [[L::zero(); K]; ROWS];
                    for k in 0..count {
                        let w = ws.add((k * lb + t) * STRIDE);
                        let v = vs.add(k * la * STRIDE + i);
                        for r in 0..ROWS {
                            let vi = L::splat(*v.add(r));
                            for s in 0..K {
                                sums[r][s] = vi.times_plus(L::load(w.add(s * STRIDE)), sums[r][s]);
                            }
                        }
                    }
                    for r in 0..ROWS {
                        for s in 0..K {
                            sums[r][s].store(e.add(((i + r) * lb + t + s) * STRIDE));
                        }
                    }
                } else {
                    for r in 0..some {
                        for s in 0..K {
                            let mut sum = L::zero();
                            for k in 0..count {
                                let w = ws.add((k * lb + t + s) * STRIDE);
                                let v = *vs.add(k * la * STRIDE + i + r);
                                sum = L::splat(v).times_plus(L::load(w), sum);
                            }
                            sum.store(e.add(((i + r) * lb + t + s) * STRIDE));
                        }
                    }
                }
                i += some;
            }
        }
    }
}
