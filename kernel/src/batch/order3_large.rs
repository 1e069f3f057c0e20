//! Order 3 with a full core, non-fiber rows of any length.
//!
//! The algorithm is that of [`super::order3_small`], but M does not fit into registers. Groups of entries without
//! a common row are processed together, so that one load of M serves all of them. The core is updated after two batches.
//!
//! # Safety
//! The obligations are those of [`super::dispatch`].
#![allow(unsafe_code)]

use super::iter::{BatchIter, weighted_residual_vector};
use super::job::{BatchJob, MAX_BATCH_LEN, RowUpdate};
use super::update::{
    add_update_of_first, first_fiber_product, update_after_pair, update_core_and_fiber,
    updates_pairs,
};
use crate::entries::block::FiberBatch;
use crate::simd::{F32x16, leaf};
use crate::simd::{LANES, padded_len};

/// Number of entries in a group.
pub(super) const GROUP: usize = 4;

/// Addresses of the buffers in `work`. Rows of mode a are `la` vectors long, those of mode b `lb`; `vs` and `ws`
/// hold rows of all entries of a batch, `dv` and `dw` gradients of a group.
#[derive(Clone, Copy)]
struct Buffers {
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
    /// Processes batches of a tensor of order 3 with a full core.
    pub(crate) unsafe fn run<V: F32x16>(job: &BatchJob<'_>, batches: &[FiberBatch]) -> f64 = run_body;
}

#[inline(always)]
unsafe fn run_body<V: F32x16>(job: &BatchJob<'_>, batches: &[FiberBatch]) -> f64 {
    // SAFETY: the caller guarantees the pointers of the job; the buffers in `work` do not overlap.
    unsafe {
        let (ja, jb) = (job.shape.ranks()[0], job.shape.ranks()[1]);
        let (wa, wb) = (padded_len(ja), padded_len(jb));
        let (la, lb) = (wa / LANES, wb / LANES);
        // M and its transpose are padded to whole vectors in both directions. There are M and E of two batches.
        let ms = [job.work, job.work.add(wa * wb)];
        let es = [ms[1].add(wa * wb), ms[1].add(2 * wa * wb)];
        let mt = es[1].add(wa * wb);
        let vs = mt.add(wa * wb);
        let ws = vs.add(MAX_BATCH_LEN * wa);
        let dv = ws.add(MAX_BATCH_LEN * wb);
        let dw = dv.add(GROUP * wa);
        let gradients = dw.add(GROUP * wb);
        for m in ms {
            for k in ja * lb..wa * lb {
                V::zero().store(m.add(k * LANES));
            }
        }
        let vectors = ja * lb;
        let pairs = updates_pairs::<V>(job, vectors);
        let mut size = first_group_len(batches, pairs);
        first_fiber_product::<V>(job, batches, vectors, ms[0]);
        if size == 2 {
            first_fiber_product::<V>(job, &batches[1..], vectors, ms[1]);
        }
        let mut position = 0;
        let mut total = 0.0f64;
        for (batch_index, (batch, mut entries)) in
            BatchIter::<2, 0>::new(job, job.non_fiber, batches, job.weighted).enumerate()
        {
            let (m, e) = (ms[position], es[position]);
            if position == 1 {
                let pair = [&batches[batch_index - 1], batch];
                add_update_of_first::<V>(job, pair, es[0], m, vectors);
            }
            let buffers = Buffers {
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
            transpose::<V>(&buffers);
            let mut squared_error = V::zero();
            let mut k = 0;
            while entries.remaining() > 0 {
                if entries.remaining() >= GROUP && rows_are_distinct(entries.peek()) {
                    let mut group = [std::ptr::null(); GROUP];
                    for entry in &mut group {
                        *entry = entries.next_record();
                    }
                    squared_error =
                        process_group::<V, GROUP>(job, &buffers, group, k, squared_error);
                    k += GROUP;
                } else {
                    squared_error = process_group::<V, 1>(
                        job,
                        &buffers,
                        [entries.next_record()],
                        k,
                        squared_error,
                    );
                    k += 1;
                }
            }
            total += f64::from(squared_error.first_lane());
            outer_sums::<V>(&buffers, batch.len as usize, ja);
            position += 1;
            if position < size {
                continue;
            }
            let following = &batches[batch_index + 1..];
            let next = [following.first(), following.get(1)];
            let next_size = first_group_len(following, pairs);
            if size == 2 {
                let pair = [&batches[batch_index - 1], batch];
                let e = [es[0].cast_const(), es[1].cast_const()];
                update_after_pair::<V>(job, pair, next, e, ms, gradients, vectors);
            } else {
                update_core_and_fiber::<V>(job, batch, next[0], e, ms[0], gradients, vectors);
                if next_size == 2 {
                    first_fiber_product::<V>(job, &following[1..], vectors, ms[1]);
                }
            }
            (position, size) = (0, next_size);
        }
        total
    }
}

/// Returns the number of batches before the next update of the core: 2 if batches are processed in `pairs` and the first two
/// have different rows of the fiber mode.
#[inline(always)]
fn first_group_len(batches: &[FiberBatch], pairs: bool) -> usize {
    match batches {
        [a, b, ..] if pairs && a.run.fiber_row != b.run.fiber_row => 2,
        _ => 1,
    }
}

/// Returns whether no two of the entries share a row.
#[inline(always)]
unsafe fn rows_are_distinct(entries: [*const u32; GROUP]) -> bool {
    let mut same = false;
    for i in 0..GROUP {
        for j in 0..i {
            // SAFETY: each record has two row indices.
            unsafe {
                same |= *entries[i] == *entries[j];
                same |= *entries[i].add(1) == *entries[j].add(1);
            }
        }
    }
    !same
}

#[inline(always)]
unsafe fn transpose<V: F32x16>(buffers: &Buffers) {
    let &Buffers { m, mt, la, lb, .. } = buffers;
    // SAFETY: both matrices consist of whole 16 by 16 tiles.
    unsafe {
        for a in 0..la {
            for b in 0..lb {
                let mut square = [V::zero(); LANES];
                for i in 0..LANES {
                    square[i] = V::load(m.add(((a * LANES + i) * lb + b) * LANES));
                }
                let square = V::transpose(square);
                for i in 0..LANES {
                    square[i].store(mt.add(((b * LANES + i) * la + a) * LANES));
                }
            }
        }
    }
}

/// Computes residuals and updates the rows of `N` entries without a common row, which start at entry `k` of the
/// batch. Returns `squared_error` plus their squared residuals.
#[inline(always)]
unsafe fn process_group<V: F32x16, const N: usize>(
    job: &BatchJob<'_>,
    buffers: &Buffers,
    entries: [*const u32; N],
    k: usize,
    mut squared_error: V,
) -> V {
    let &Buffers { la, lb, .. } = buffers;
    let (a, b) = (job.non_fiber[0], job.non_fiber[1]);
    let (ja, jb) = (job.shape.ranks()[0], job.shape.ranks()[1]);
    let (wa, wb) = (la * LANES, lb * LANES);
    // SAFETY: the caller guarantees the pointers of the job; entries have no common row.
    unsafe {
        let (mut pv, mut pw) = ([a.start; N], [b.start; N]);
        for n in 0..N {
            pv[n] = a.start.add(*entries[n] as usize * wa);
            pw[n] = b.start.add(*entries[n].add(1) as usize * wb);
        }
        products::<V, N>(buffers.m, pv, ja, lb, buffers.dw);
        products::<V, N>(buffers.mt, pw, jb, la, buffers.dv);
        let update = RowUpdate::<V>::new(job.eta, job.regularizer);
        for n in 0..N {
            let (pv, pw) = (pv[n], pw[n]);
            let (dv, dw) = (buffers.dv.add(n * wa), buffers.dw.add(n * wb));
            let vs = buffers.vs.add((k + n) * wa);
            let ws = buffers.ws.add((k + n) * wb);
            let mut value = V::zero();
            for t in (0..wb).step_by(LANES) {
                value = V::load(dw.add(t)).mul_add(V::load(pw.add(t)), value);
            }
            let x = V::splat(f32::from_bits(*entries[n].add(2)));
            let residual = x - value.splat_sum();
            let weighted_residual = weighted_residual_vector(residual, entries[n], 2, job.weighted);
            squared_error = residual.mul_add(weighted_residual, squared_error);
            let scale = weighted_residual * V::splat(-1.0);
            let (penalty_v, penalty_w) = (a.penalty(*entries[n]), b.penalty(*entries[n].add(1)));
            for t in (0..wa).step_by(LANES) {
                let v = V::load(pv.add(t));
                (v * weighted_residual).store(vs.add(t));
                let dv = V::load(dv.add(t));
                update.apply(v, a.prior_at(t), dv, scale, penalty_v, pv.add(t));
            }
            for t in (0..wb).step_by(LANES) {
                let w = V::load(pw.add(t));
                w.store(ws.add(t));
                let dw = V::load(dw.add(t));
                update.apply(w, b.prior_at(t), dw, scale, penalty_w, pw.add(t));
            }
        }
        squared_error
    }
}

/// Computes `out_n = sum_i x_n[i] m_i` for rows `m_i` of `vectors` vectors, and `N` rows x.
#[inline(always)]
pub(crate) unsafe fn products<V: F32x16, const N: usize>(
    m: *const f32,
    x: [*mut f32; N],
    rank: usize,
    vectors: usize,
    out: *mut f32,
) {
    // SAFETY: the caller guarantees the lengths of the buffers.
    unsafe {
        let mut k = 0;
        while V::VECTOR_REGISTERS >= 3 * N + 4 && k + 2 <= vectors {
            tile::<V, N, 2>(m, x, rank, vectors, k, out);
            k += 2;
        }
        while k < vectors {
            tile::<V, N, 1>(m, x, rank, vectors, k, out);
            k += 1;
        }
    }
}

/// Computes `K` vectors of the products from vector `k` on, with the sums in registers.
#[inline(always)]
unsafe fn tile<V: F32x16, const N: usize, const K: usize>(
    m: *const f32,
    x: [*mut f32; N],
    rank: usize,
    vectors: usize,
    k: usize,
    out: *mut f32,
) {
    // SAFETY: the caller guarantees the lengths of the buffers.
    unsafe {
        let mut sums = [[V::zero(); K]; N];
        for i in 0..rank {
            let mut row = [V::zero(); K];
            for t in 0..K {
                row[t] = V::load(m.add((i * vectors + k + t) * LANES));
            }
            for n in 0..N {
                let xi = V::splat(*x[n].add(i));
                for t in 0..K {
                    sums[n][t] = xi.mul_add(row[t], sums[n][t]);
                }
            }
        }
        for n in 0..N {
            for t in 0..K {
                sums[n][t].store(out.add((n * vectors + k + t) * LANES));
            }
        }
    }
}

/// Computes E = sum_k v_k w_k^T over the entries of a batch.
#[inline(always)]
unsafe fn outer_sums<V: F32x16>(buffers: &Buffers, count: usize, ja: usize) {
    // SAFETY: rows of E are computed in whole tiles; E has rows for a whole vector of them.
    unsafe {
        let mut t = 0;
        while V::VECTOR_REGISTERS >= 32 && t + 2 <= buffers.lb {
            for i in (0..ja).step_by(8) {
                outer_tile::<V, 8, 2>(buffers, count, i, t);
            }
            t += 2;
        }
        while t < buffers.lb {
            for i in (0..ja).step_by(4) {
                outer_tile::<V, 4, 1>(buffers, count, i, t);
            }
            t += 1;
        }
    }
}

/// Computes `R` rows of E from row `i` on, `K` vectors from vector `t` on, with the sums in registers.
#[inline(always)]
unsafe fn outer_tile<V: F32x16, const R: usize, const K: usize>(
    buffers: &Buffers,
    count: usize,
    i: usize,
    t: usize,
) {
    let &Buffers {
        e, vs, ws, la, lb, ..
    } = buffers;
    // SAFETY: the caller guarantees the lengths of the buffers.
    unsafe {
        let mut sums = [[V::zero(); K]; R];
        for k in 0..count {
            let mut w = [V::zero(); K];
            for s in 0..K {
                w[s] = V::load(ws.add((k * lb + t + s) * LANES));
            }
            let v = vs.add(k * la * LANES + i);
            for r in 0..R {
                let vi = V::splat(*v.add(r));
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
