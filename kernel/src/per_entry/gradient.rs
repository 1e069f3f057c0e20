//! Value and gradients at one entry, for full cores of any order and for hyper-diagonal cores.
//!
//! Contracting the core with u_1 gives a core of one order less, and so on until the value remains. At each mode
//! n, slice i of the partially contracted core, contracted with all later rows, is component i of d_n. Only the
//! first mode reads the whole core, so an entry costs about 2 J^N multiply-adds. For order 3 and rows of one
//! vector, both contractions are one pass with the partial sums in registers (S and Collapse of the paper,
//! without the division).
//!
//! # Safety
//! Obligations of all functions, with the layout of [`CoreShape`]:
//! - `core` points to `shape.core_len()` floats, `rows` and `gradients` to `shape.rows_len()`, `work` to
//!   [`work_len`];
//! - no other thread accesses what is written;
//! - the machine has the instruction set of the vector type.
#![allow(unsafe_code)]

use crate::shape::core_shape::MAX_ORDER;
use crate::shape::core_shape::{CoreKind, CoreShape};
use crate::simd::{F32x16, dispatched, leaf};
use crate::simd::{LANES, padded_len};

/// Returns the number of floats of `work` that these functions need.
pub(crate) fn work_len(shape: &CoreShape) -> usize {
    if shape.kind() == CoreKind::Diagonal {
        return 0;
    }
    let last = shape.order() - 1;
    let mut len = padded_len(shape.ranks()[last]);
    let mut all = 0;
    for &rank in shape.ranks()[1.min(last)..last].iter().rev() {
        len *= rank;
        all += len;
    }
    2 * (all + padded_len(shape.ranks()[last]))
}

dispatched! {
    /// Returns the value and writes the gradients of all rows.
    pub(crate) unsafe fn gradients(shape: &CoreShape, core: *const f32, rows: *const f32, gradients: *mut f32, work: *mut f32) -> f32
        = gradients_leaf;
}
leaf! {
    /// Returns the value and writes the gradients of all rows.
    pub(crate) unsafe fn gradients_leaf<V: F32x16>(shape: &CoreShape, core: *const f32, rows: *const f32, gradients: *mut f32, work: *mut f32) -> f32
        = gradients_body;
}
dispatched! {
    /// Returns the value.
    pub(crate) unsafe fn value(shape: &CoreShape, core: *const f32, rows: *const f32, work: *mut f32) -> f32
        = value_body;
}
dispatched! {
    /// Computes `core = keep * core + scale * (u_1 (x) ... (x) u_N)`, for CP on the diagonal only.
    pub(super) unsafe fn update_core(shape: &CoreShape, core: *mut f32, rows: *const f32, keep: f32, scale: f32)
        = update_core_leaf;
}
leaf! {
    /// Computes `core = keep * core + scale * (u_1 (x) ... (x) u_N)`, for CP on the diagonal only.
    pub(crate) unsafe fn update_core_leaf<V: F32x16>(shape: &CoreShape, core: *mut f32, rows: *const f32, keep: f32, scale: f32)
        = update_core_body;
}

dispatched! {
    /// Computes `out = sum_i u_i from_i` over `rank` slices of `vectors` vectors.
    pub(super) unsafe fn weighted_sum(from: *const f32, u: *const f32, rank: usize, vectors: usize, out: *mut f32) = contract;
}

leaf! {
    /// Computes `out = sum_i u_i from_i` over `rank` slices of `vectors` vectors.
    pub(crate) unsafe fn contract<V: F32x16>(from: *const f32, u: *const f32, rank: usize, vectors: usize, out: *mut f32)
        = contract_body;
}

dispatched! {
    /// Computes `to_i += u_i from` for `rank` slices of `vectors` vectors.
    pub(super) unsafe fn add_outer(from: *const f32, u: *const f32, rank: usize, vectors: usize, to: *mut f32) = add_outer_body;
}

/// Returns the dot product of two rows of `vectors` vectors.
///
/// # Safety
/// Both rows must have that length.
#[inline(always)]
pub(crate) unsafe fn dot<V: F32x16>(a: *const f32, b: *const f32, vectors: usize) -> f32 {
    // SAFETY: the caller guarantees the lengths.
    unsafe {
        let mut sum = V::load(a) * V::load(b);
        for k in 1..vectors {
            sum = V::load(a.add(k * LANES)).mul_add(V::load(b.add(k * LANES)), sum);
        }
        sum.sum()
    }
}

/// Computes `to_i += u_i from` for `rank` slices of `vectors` vectors.
///
/// # Safety
/// `to` must have `rank * vectors` vectors, `from` `vectors`, and `u` `rank` floats.
#[inline(always)]
unsafe fn add_outer_body<V: F32x16>(
    from: *const f32,
    u: *const f32,
    rank: usize,
    vectors: usize,
    to: *mut f32,
) {
    // SAFETY: the caller guarantees the lengths.
    unsafe {
        for i in 0..rank {
            let ui = V::splat(*u.add(i));
            let slice = to.add(i * vectors * LANES);
            for k in 0..vectors {
                let at = slice.add(k * LANES);
                let line = V::load(from.add(k * LANES));
                ui.mul_add(line, V::load(at)).store(at);
            }
        }
    }
}

/// Computes `out = sum_i u_i from_i` over `rank` slices of `vectors` vectors.
///
/// # Safety
/// `from` must have `rank * vectors` vectors, `out` `vectors`, and `u` `rank` floats.
#[inline(always)]
pub(crate) unsafe fn contract_body<V: F32x16>(
    from: *const f32,
    u: *const f32,
    rank: usize,
    vectors: usize,
    out: *mut f32,
) {
    const TILE: usize = 8;
    // SAFETY: the caller guarantees the lengths.
    unsafe {
        let mut k = 0;
        while k + TILE <= vectors {
            let mut sums = [V::zero(); TILE];
            for i in 0..rank {
                let ui = V::splat(*u.add(i));
                let slice = from.add((i * vectors + k) * LANES);
                for t in 0..TILE {
                    sums[t] = ui.mul_add(V::load(slice.add(t * LANES)), sums[t]);
                }
            }
            for t in 0..TILE {
                sums[t].store(out.add((k + t) * LANES));
            }
            k += TILE;
        }
        while k < vectors {
            let mut sum = V::zero();
            for i in 0..rank {
                let at = from.add((i * vectors + k) * LANES);
                sum = V::splat(*u.add(i)).mul_add(V::load(at), sum);
            }
            sum.store(out.add(k * LANES));
            k += 1;
        }
    }
}

/// Contracts mode `n` of a full core whose earlier modes are contracted already. Returns the number of floats of
/// the result.
#[inline(always)]
unsafe fn contract_mode<V: F32x16>(
    shape: &CoreShape,
    n: usize,
    from: *const f32,
    rows: *const f32,
    out: *mut f32,
) -> usize {
    let last = shape.order() - 1;
    let vectors = shape.ranks()[n + 1..last].iter().product::<usize>()
        * padded_len(shape.ranks()[last])
        / LANES;
    // SAFETY: `from` has that many vectors for each index of the mode.
    unsafe {
        let row = rows.add(shape.row(n).start);
        contract_body::<V>(from, row, shape.ranks()[n], vectors, out);
    }
    vectors * LANES
}

/// Returns the value of a full core over the modes from `first` on.
#[inline(always)]
unsafe fn value_from<V: F32x16>(
    shape: &CoreShape,
    first: usize,
    core: *const f32,
    rows: *const f32,
    work: *mut f32,
) -> f32 {
    let last = shape.order() - 1;
    // SAFETY: every contraction is shorter than its input, so `work` has room for all of them one after the
    // other.
    unsafe {
        let (mut from, mut to) = (core, work);
        for n in first..last {
            let len = contract_mode::<V>(shape, n, from, rows, to);
            (from, to) = (to, to.add(len));
        }
        let row = shape.row(last);
        dot::<V>(from, rows.add(row.start), row.len() / LANES)
    }
}

#[inline(always)]
pub(crate) unsafe fn value_body<V: F32x16>(
    shape: &CoreShape,
    core: *const f32,
    rows: *const f32,
    work: *mut f32,
) -> f32 {
    // SAFETY: the caller guarantees the lengths.
    unsafe {
        match shape.kind() {
            CoreKind::Full => value_from::<V>(shape, 0, core, rows, work),
            CoreKind::Diagonal => {
                let mut total = V::zero();
                for k in (0..shape.core_len()).step_by(LANES) {
                    let mut product = V::load(core.add(k));
                    for n in 0..shape.order() {
                        product = product * V::load(rows.add(shape.row(n).start + k));
                    }
                    total = total + product;
                }
                total.sum()
            }
        }
    }
}

#[inline(always)]
pub(super) unsafe fn gradients_body<V: F32x16>(
    shape: &CoreShape,
    core: *const f32,
    rows: *const f32,
    gradients: *mut f32,
    work: *mut f32,
) -> f32 {
    // SAFETY: the caller guarantees the lengths.
    unsafe {
        if shape.kind() == CoreKind::Diagonal {
            return gradients_diagonal::<V>(shape, core, rows, gradients);
        }
        if shape.order() == 3 && shape.rows_len() == 3 * LANES {
            return gradients_order3::<V>(
                shape.ranks()[0],
                shape.ranks()[1],
                core,
                rows,
                gradients,
            );
        }
        gradients_full::<V>(shape, core, rows, gradients, work)
    }
}

#[inline(always)]
unsafe fn gradients_full<V: F32x16>(
    shape: &CoreShape,
    core: *const f32,
    rows: *const f32,
    gradients: *mut f32,
    work: *mut f32,
) -> f32 {
    let last = shape.order() - 1;
    let vectors = padded_len(shape.ranks()[last]) / LANES;
    // SAFETY: as in `value_from`; the contractions made here precede its buffer in `work`.
    unsafe {
        for k in (0..shape.rows_len()).step_by(LANES) {
            V::zero().store(gradients.add(k));
        }
        let gradient = |n: usize| gradients.add(shape.row(n).start);
        let (mut from, mut to) = (core, work);
        for n in 0..last {
            let target = if n + 1 == last { gradient(last) } else { to };
            let rest = contract_mode::<V>(shape, n, from, rows, target);
            if n + 1 < last {
                to = to.add(rest);
            }
            for i in 0..shape.ranks()[n] {
                let slice = from.add(i * rest);
                *gradient(n).add(i) = value_from::<V>(shape, n + 1, slice, rows, to);
            }
            from = target;
        }
        if last == 0 {
            for k in 0..vectors {
                V::load(core.add(k * LANES)).store(gradient(0).add(k * LANES));
            }
            from = core;
        }
        dot::<V>(from, rows.add(shape.row(last).start), vectors)
    }
}

/// Order 3, rows of one vector: computes P_i = sum_j v_j g_ij and Q_j = sum_i u_i g_ij in one pass. Then d_1[i] =
/// P_i . w, d_2[j] = Q_j . w, d_3 = sum_i u_i P_i.
#[inline(always)]
unsafe fn gradients_order3<V: F32x16>(
    rank_u: usize,
    rank_v: usize,
    core: *const f32,
    rows: *const f32,
    gradients: *mut f32,
) -> f32 {
    // SAFETY: the core has `rank_u` slabs of `rank_v` vectors; `rows` and `gradients` have three vectors.
    unsafe {
        let w = V::load(rows.add(2 * LANES));
        // P_i, as separate sums over even and odd j.
        let mut sums = [[V::zero(); 2]; LANES];
        let mut q = [V::zero(); LANES];
        let mut j = 0;
        while j + 4 <= rank_v {
            accumulate_slabs::<V, 4>(rank_u, rank_v, j, core, rows, &mut sums, &mut q);
            j += 4;
        }
        if j + 2 <= rank_v {
            accumulate_slabs::<V, 2>(rank_u, rank_v, j, core, rows, &mut sums, &mut q);
            j += 2;
        }
        if j < rank_v {
            accumulate_slabs::<V, 1>(rank_u, rank_v, j, core, rows, &mut sums, &mut q);
        }
        let mut third = V::zero();
        let mut products = [V::zero(); LANES];
        for i in 0..rank_u {
            let p = sums[i][0] + sums[i][1];
            third = V::splat(*rows.add(i)).mul_add(p, third);
            products[i] = p * w;
        }
        for j in 0..rank_v {
            q[j] = q[j] * w;
        }
        for c in (0..LANES).step_by(4) {
            let four = [
                products[c],
                products[c + 1],
                products[c + 2],
                products[c + 3],
            ];
            gradients.add(c).cast::<[f32; 4]>().write(V::sums4(four));
            let four = [q[c], q[c + 1], q[c + 2], q[c + 3]];
            gradients
                .add(LANES + c)
                .cast::<[f32; 4]>()
                .write(V::sums4(four));
        }
        third.store(gradients.add(2 * LANES));
        (third * w).sum()
    }
}

/// Adds vectors `j..j + K` of all slabs to the sums of [`gradients_order3`].
#[inline(always)]
unsafe fn accumulate_slabs<V: F32x16, const K: usize>(
    rank_u: usize,
    rank_v: usize,
    j: usize,
    core: *const f32,
    rows: *const f32,
    sums: &mut [[V; 2]; LANES],
    q: &mut [V; LANES],
) {
    // SAFETY: as in `gradients_order3`; `j` is even, and `j + K` at most `rank_v`.
    unsafe {
        let v = rows.add(LANES + j);
        let mut qs = [V::zero(); K];
        for i in 0..rank_u {
            let slab = core.add((i * rank_v + j) * LANES);
            let ui = V::splat(*rows.add(i));
            let mut sum = sums[i];
            for k in 0..K {
                let g = V::load(slab.add(k * LANES));
                sum[k % 2] = V::splat(*v.add(k)).mul_add(g, sum[k % 2]);
                qs[k] = ui.mul_add(g, qs[k]);
            }
            sums[i] = sum;
        }
        q[j..j + K].copy_from_slice(&qs);
    }
}

/// Returns x^ = sum_j g_j prod_n u_n[j] and writes the gradients, as prefix times suffix products of the rows.
#[inline(always)]
pub(crate) unsafe fn gradients_diagonal<V: F32x16>(
    shape: &CoreShape,
    core: *const f32,
    rows: *const f32,
    gradients: *mut f32,
) -> f32 {
    let order = shape.order();
    let width = shape.core_len();
    // SAFETY: all rows are as long as the core.
    unsafe {
        let mut total = V::zero();
        for k in (0..width).step_by(LANES) {
            // The forward loop stores g times the product of the earlier rows.
            let mut before = V::load(core.add(k));
            for n in 0..order {
                before.store(gradients.add(n * width + k));
                before = before * V::load(rows.add(n * width + k));
            }
            total = total + before;
            let mut after = V::splat(1.0);
            for n in (0..order).rev() {
                let at = gradients.add(n * width + k);
                (V::load(at) * after).store(at);
                after = after * V::load(rows.add(n * width + k));
            }
        }
        total.sum()
    }
}

#[inline(always)]
pub(super) unsafe fn update_core_body<V: F32x16>(
    shape: &CoreShape,
    core: *mut f32,
    rows: *const f32,
    keep: f32,
    scale: f32,
) {
    // SAFETY: the caller guarantees the lengths. `keep` is nearly always 1, because lambda / |Omega| is below
    // its rounding error; that case saves a multiplication.
    unsafe {
        if keep == 1.0 {
            update_core_scaled::<V, true>(shape, core, rows, keep, scale);
        } else {
            update_core_scaled::<V, false>(shape, core, rows, keep, scale);
        }
    }
}

#[inline(always)]
unsafe fn update_core_scaled<V: F32x16, const KEEP_IS_ONE: bool>(
    shape: &CoreShape,
    core: *mut f32,
    rows: *const f32,
    keep: f32,
    scale: f32,
) {
    let last = shape.order() - 1;
    let keep = V::splat(keep);
    let kept = |g: V| if KEEP_IS_ONE { g } else { g * keep };
    // SAFETY: the caller guarantees the lengths; the loop visits each row of the core once, in order.
    unsafe {
        if shape.kind() == CoreKind::Diagonal {
            for k in (0..shape.core_len()).step_by(LANES) {
                let mut product = V::splat(scale);
                for n in 0..shape.order() {
                    product = product * V::load(rows.add(shape.row(n).start + k));
                }
                let g = core.add(k);
                (product + kept(V::load(g))).store(g);
            }
            return;
        }
        let vectors = padded_len(shape.ranks()[last]) / LANES;
        let w = rows.add(shape.row(last).start);
        let (v, inner) = if last == 0 {
            (&raw const scale, 1)
        } else {
            (rows.add(shape.row(last - 1).start), shape.ranks()[last - 1])
        };
        let single_vector_modes = last > 0 && vectors == 1 && inner <= LANES;
        let outer = last.saturating_sub(1);
        let mut at = [0usize; MAX_ORDER];
        let mut fiber = core;
        loop {
            let mut product = if last == 0 { 1.0 } else { scale };
            for n in 0..outer {
                product *= *rows.add(shape.row(n).start + at[n]);
            }
            if single_vector_modes {
                // Stored and read back one by one: a broadcast from memory needs no shuffle instruction.
                let mut factors = [0.0f32; LANES];
                let scaled = V::load(v) * V::splat(product);
                scaled.store(factors.as_mut_ptr());
                let w = V::load(w);
                for &c in &factors[..inner] {
                    let g = V::splat(c).mul_add(w, kept(V::load(fiber)));
                    g.store(fiber);
                    fiber = fiber.add(LANES);
                }
            }
            for j in 0..if single_vector_modes { 0 } else { inner } {
                let c = V::splat(product * *v.add(j));
                for k in 0..vectors {
                    let g = fiber.add(k * LANES);
                    c.mul_add(V::load(w.add(k * LANES)), kept(V::load(g)))
                        .store(g);
                }
                fiber = fiber.add(vectors * LANES);
            }
            let mut n = outer;
            loop {
                if n == 0 {
                    return;
                }
                n -= 1;
                at[n] += 1;
                if at[n] < shape.ranks()[n] {
                    break;
                }
                at[n] = 0;
            }
        }
    }
}
