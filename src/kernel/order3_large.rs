//! Order 3, listed rows of any length.
//!
//! M does not fit into registers: entries that have no row in common go through it together, so that
//! what is loaded of it serves all of them.
//!
//! # Safety
//! As in [`super::batch`].
#![allow(unsafe_code)]

use super::batch_iter::{Batches, pulling_line};
use super::batch_job::{Job, LONGEST, Step};
use super::batch_update::{after_full, first_m};
use super::entry_block::FiberBatch;
use crate::simd::{F32x16, leaf};
use crate::simd::{LANES, padded_len};

/// Entries that go together.
pub(super) const GROUP: usize = 4;

/// Where the parts of `work` are.
#[derive(Clone, Copy)]
struct Parts {
    m: *mut f32,
    mt: *mut f32,
    e: *mut f32,
    vs: *mut f32,
    ws: *mut f32,
    dv: *mut f32,
    dw: *mut f32,
    la: usize,
    lb: usize,
}

leaf! {
    /// Runs batches.
    pub(super) unsafe fn large3<L: F32x16>(job: &Job<'_>, batches: &[FiberBatch]) -> f64 = large3_body;
}

#[inline(always)]
unsafe fn large3_body<L: F32x16>(job: &Job<'_>, batches: &[FiberBatch]) -> f64 {
    // SAFETY: the caller's promises; the parts of `work` do not overlap.
    unsafe {
        let (ja, jb) = (job.shape.ranks[0], job.shape.ranks[1]);
        let (wa, wb) = (padded_len(ja), padded_len(jb));
        let (la, lb) = (wa / LANES, wb / LANES);
        // Whole lines in both directions.
        let m = job.work;
        let mt = m.add(wa * wb);
        let e = mt.add(wa * wb);
        let vs = e.add(wa * wb);
        let ws = vs.add(LONGEST * wa);
        let dv = ws.add(LONGEST * wb);
        let dw = dv.add(GROUP * wa);
        let slopes = dw.add(GROUP * wb);
        let parts = Parts {
            m,
            mt,
            e,
            vs,
            ws,
            dv,
            dw,
            la,
            lb,
        };
        for k in ja * lb..wa * lb {
            L::zero().store(m.add(k * LANES));
        }
        first_m::<L>(job, batches, ja * lb, m);
        let mut total = 0.0f64;
        for (number, (batch, mut entries)) in
            Batches::new(job, job.listed, batches, job.weighted).enumerate()
        {
            transpose::<L>(&parts);
            let mut squares = L::zero();
            let mut k = 0;
            while entries.left() > 0 {
                if entries.left() >= GROUP && apart(entries.peek()) {
                    let mut group = [std::ptr::null(); GROUP];
                    for entry in &mut group {
                        *entry = entries.step();
                    }
                    squares = together::<L, GROUP>(job, &parts, group, k, squares);
                    k += GROUP;
                } else {
                    squares = together::<L, 1>(job, &parts, [entries.step()], k, squares);
                    k += 1;
                }
            }
            total += f64::from(squares.first());
            outer_sums::<L>(&parts, batch.len as usize, ja);
            let next = batches.get(number + 1);
            after_full::<L>(job, batch, next, e, m, slopes, ja * lb);
        }
        total
    }
}

/// Whether entries have no row in common.
#[inline(always)]
unsafe fn apart(entries: [*const u32; GROUP]) -> bool {
    let mut same = false;
    for i in 0..GROUP {
        for j in 0..i {
            // SAFETY: each has two rows.
            unsafe {
                same |= *entries[i] == *entries[j];
                same |= *entries[i].add(1) == *entries[j].add(1);
            }
        }
    }
    !same
}

#[inline(always)]
unsafe fn transpose<L: F32x16>(parts: &Parts) {
    let &Parts { m, mt, la, lb, .. } = parts;
    // SAFETY: both are whole squares of lines.
    unsafe {
        for a in 0..la {
            for b in 0..lb {
                let mut square = [L::zero(); LANES];
                for i in 0..LANES {
                    square[i] = L::load(m.add(((a * LANES + i) * lb + b) * LANES));
                }
                let square = L::transposed(square);
                for i in 0..LANES {
                    square[i].store(mt.add(((b * LANES + i) * la + a) * LANES));
                }
            }
        }
    }
}

/// Errors and steps of `N` entries without a common row, from the `k`-th of the batch on. Adds their
/// squared errors.
#[inline(always)]
unsafe fn together<L: F32x16, const N: usize>(
    job: &Job<'_>,
    parts: &Parts,
    entries: [*const u32; N],
    k: usize,
    mut squares: L,
) -> L {
    let &Parts {
        m,
        mt,
        vs,
        ws,
        dv,
        dw,
        la,
        lb,
        ..
    } = parts;
    let (a, b) = (job.listed[0], job.listed[1]);
    let (ja, jb) = (job.shape.ranks[0], job.shape.ranks[1]);
    let (wa, wb) = (la * LANES, lb * LANES);
    // SAFETY: the caller's promises.
    unsafe {
        let (mut pv, mut pw) = ([a.start; N], [b.start; N]);
        for n in 0..N {
            pv[n] = a.start.add(*entries[n] as usize * wa);
            pw[n] = b.start.add(*entries[n].add(1) as usize * wb);
        }
        products::<L, N>(m, pv, ja, lb, dw);
        products::<L, N>(mt, pw, jb, la, dv);
        let step = Step::<L>::new(job.eta, job.rule);
        for n in 0..N {
            let (pv, pw, dv, dw) = (pv[n], pw[n], dv.add(n * wa), dw.add(n * wb));
            let (vs, ws) = (vs.add((k + n) * wa), ws.add((k + n) * wb));
            let mut value = L::zero();
            for t in (0..wb).step_by(LANES) {
                value = L::load(dw.add(t)).mul_add(L::load(pw.add(t)), value);
            }
            let x = L::splat(f32::from_bits(*entries[n].add(2)));
            let error = x - value.total();
            let pull = pulling_line(error, entries[n], 2, job.weighted);
            squares = error.mul_add(pull, squares);
            let scale = pull * step.eta;
            let (penalty_v, penalty_w) = (a.penalty(*entries[n]), b.penalty(*entries[n].add(1)));
            for t in (0..wa).step_by(LANES) {
                let v = L::load(pv.add(t));
                (v * pull).store(vs.add(t));
                let dv = L::load(dv.add(t));
                step.put(v, a.own(t), dv, scale, penalty_v, pv.add(t));
            }
            for t in (0..wb).step_by(LANES) {
                let w = L::load(pw.add(t));
                w.store(ws.add(t));
                let dw = L::load(dw.add(t));
                step.put(w, b.own(t), dw, scale, penalty_w, pw.add(t));
            }
        }
        squares
    }
}

/// `out_n = sum_i x_n[i] m_i` for rows `m_i` of `lines` lines, and `N` vectors x.
#[inline(always)]
unsafe fn products<L: F32x16, const N: usize>(
    m: *const f32,
    x: [*mut f32; N],
    rank: usize,
    lines: usize,
    out: *mut f32,
) {
    // SAFETY: within the lengths promised.
    unsafe {
        let mut k = 0;
        while L::REGISTERS >= 3 * N + 4 && k + 2 <= lines {
            tile::<L, N, 2>(m, x, rank, (lines, k), out);
            k += 2;
        }
        while k < lines {
            tile::<L, N, 1>(m, x, rank, (lines, k), out);
            k += 1;
        }
    }
}

/// `K` lines of products from line `k` on, their sums in registers.
#[inline(always)]
unsafe fn tile<L: F32x16, const N: usize, const K: usize>(
    m: *const f32,
    x: [*mut f32; N],
    rank: usize,
    (lines, k): (usize, usize),
    out: *mut f32,
) {
    // SAFETY: within the lengths promised.
    unsafe {
        let mut sums = [[L::zero(); K]; N];
        for i in 0..rank {
            let mut row = [L::zero(); K];
            for t in 0..K {
                row[t] = L::load(m.add((i * lines + k + t) * LANES));
            }
            for n in 0..N {
                let xi = L::splat(*x[n].add(i));
                for t in 0..K {
                    sums[n][t] = xi.mul_add(row[t], sums[n][t]);
                }
            }
        }
        for n in 0..N {
            for t in 0..K {
                sums[n][t].store(out.add((n * lines + k + t) * LANES));
            }
        }
    }
}

/// E = sum_k v_k w_k^T over the entries of a batch.
#[inline(always)]
unsafe fn outer_sums<L: F32x16>(parts: &Parts, count: usize, ja: usize) {
    // SAFETY: rows of E are computed in whole tiles; there is room for a whole line of them.
    unsafe {
        let mut t = 0;
        while L::REGISTERS >= 32 && t + 2 <= parts.lb {
            for i in (0..ja).step_by(8) {
                outer_tile::<L, 8, 2>(parts, count, i, t);
            }
            t += 2;
        }
        while t < parts.lb {
            for i in (0..ja).step_by(4) {
                outer_tile::<L, 4, 1>(parts, count, i, t);
            }
            t += 1;
        }
    }
}

/// `R` rows of E from row `i` on, `K` lines from line `t` on, their sums in registers.
#[inline(always)]
unsafe fn outer_tile<L: F32x16, const R: usize, const K: usize>(
    parts: &Parts,
    count: usize,
    i: usize,
    t: usize,
) {
    let &Parts {
        e, vs, ws, la, lb, ..
    } = parts;
    // SAFETY: within the lengths promised.
    unsafe {
        let mut sums = [[L::zero(); K]; R];
        for k in 0..count {
            let mut w = [L::zero(); K];
            for s in 0..K {
                w[s] = L::load(ws.add((k * lb + t + s) * LANES));
            }
            let v = vs.add(k * la * LANES + i);
            for r in 0..R {
                let vi = L::splat(*v.add(r));
                for s in 0..K {
                    sums[r][s] = vi.mul_add(w[s], sums[r][s]);
                }
            }
        }
        for r in 0..R {
            for s in 0..K {
                sums[r][s].store(e.add(((i + r) * lb + t + s) * LANES));
            }
        }
    }
}
