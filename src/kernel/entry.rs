//! Value and slopes at one entry: full cores of any order, and hyper-diagonal ones.
//!
//! With the rows u_1 ... u_N, contracting the core with the first row leaves a core of one order less;
//! going on like that gives the value, and at each mode the slices of what is left, each contracted
//! with all later rows, are the entries of that mode's slope. The whole core is read for the first
//! mode only, so an entry costs about 2 J^N multiply-adds. For order 3 and rows of one line both are
//! done in one pass (S and Collapse of the paper without the division), with the partial sums in
//! registers.
//!
//! # Safety
//! Everywhere here: `core` points to `shape.core_len()` floats, `rows` and `slopes` to
//! `shape.rows_len()`, `work` to [`work_len`], laid out as [`CoreShape`] says.
#![allow(unsafe_code)]

use crate::kernel::MAX_ORDER;
use crate::kernel::{CoreKind, CoreShape};
use crate::simd::{F32x16, dispatched, leaf};

use crate::simd::{LANES, padded_len};

/// Floats of memory the functions here need.
pub(super) fn work_len(shape: &CoreShape) -> usize {
    if shape.kind == CoreKind::Diagonal {
        return 0;
    }
    let last = shape.order() - 1;
    let mut len = padded_len(shape.ranks[last]);
    let mut all = 0;
    for &rank in shape.ranks[1.min(last)..last].iter().rev() {
        len *= rank;
        all += len;
    }
    2 * (all + padded_len(shape.ranks[last]))
}

dispatched! {
    /// The value, and the slopes of all rows.
    pub(super) unsafe fn slopes(shape: &CoreShape, core: *const f32, rows: *const f32, slopes: *mut f32, work: *mut f32) -> f32
        = slopes_leaf;
}
leaf! {
    /// The value, and the slopes of all rows.
    pub(super) unsafe fn slopes_leaf<L: F32x16>(shape: &CoreShape, core: *const f32, rows: *const f32, slopes: *mut f32, work: *mut f32) -> f32
        = any_slopes;
}
dispatched! {
    /// The value.
    pub(super) unsafe fn value(shape: &CoreShape, core: *const f32, rows: *const f32, work: *mut f32) -> f32
        = any_value;
}
dispatched! {
    /// `core = keep * core + scale * (u_1 (x) ... (x) u_N)`, on the diagonal only for CP.
    pub(super) unsafe fn step_core(shape: &CoreShape, core: *mut f32, rows: *const f32, keep: f32, scale: f32)
        = step_core_leaf;
}
leaf! {
    /// `core = keep * core + scale * (u_1 (x) ... (x) u_N)`, on the diagonal only for CP.
    pub(super) unsafe fn step_core_leaf<L: F32x16>(shape: &CoreShape, core: *mut f32, rows: *const f32, keep: f32, scale: f32)
        = any_step_core;
}

dispatched! {
    /// `out = sum_i u_i from_i` over `rank` slices of `lines` lines.
    pub(super) unsafe fn combine(from: *const f32, u: *const f32, rank: usize, lines: usize, out: *mut f32) = contract;
}

leaf! {
    /// `out = sum_i u_i from_i` over `rank` slices of `lines` lines.
    pub(super) unsafe fn contract<L: F32x16>(from: *const f32, u: *const f32, rank: usize, lines: usize, out: *mut f32)
        = contract_inline;
}

dispatched! {
    /// `to_i += u_i from` for `rank` slices of `lines` lines.
    pub(super) unsafe fn spread(from: *const f32, u: *const f32, rank: usize, lines: usize, to: *mut f32) = any_spread;
}

/// The sum of products of two rows of `lines` lines.
///
/// # Safety
/// Both must be that long.
#[inline(always)]
pub(super) unsafe fn dot<L: F32x16>(a: *const f32, b: *const f32, lines: usize) -> f32 {
    // SAFETY: within the lengths promised.
    unsafe {
        let mut sum = L::load(a) * L::load(b);
        for k in 1..lines {
            sum = L::load(a.add(k * LANES)).mul_add(L::load(b.add(k * LANES)), sum);
        }
        sum.sum()
    }
}

/// `to_i += u_i from` for `rank` slices of `lines` lines.
///
/// # Safety
/// `to` must have `rank * lines` lines, `from` `lines`, `u` `rank` floats.
#[inline(always)]
unsafe fn any_spread<L: F32x16>(
    from: *const f32,
    u: *const f32,
    rank: usize,
    lines: usize,
    to: *mut f32,
) {
    // SAFETY: within the lengths promised.
    unsafe {
        for i in 0..rank {
            let ui = L::splat(*u.add(i));
            let slice = to.add(i * lines * LANES);
            for k in 0..lines {
                let at = slice.add(k * LANES);
                let line = L::load(from.add(k * LANES));
                ui.mul_add(line, L::load(at)).store(at);
            }
        }
    }
}

/// `out = sum_i u_i from_i` over `rank` slices of `lines` lines.
///
/// # Safety
/// `from` must have `rank * lines` lines, `out` `lines`, `u` `rank` floats.
#[inline(always)]
pub(super) unsafe fn contract_inline<L: F32x16>(
    from: *const f32,
    u: *const f32,
    rank: usize,
    lines: usize,
    out: *mut f32,
) {
    const TILE: usize = 8;
    // SAFETY: within the lengths promised.
    unsafe {
        let mut k = 0;
        while k + TILE <= lines {
            let mut sums = [L::zero(); TILE];
            for i in 0..rank {
                let ui = L::splat(*u.add(i));
                let slice = from.add((i * lines + k) * LANES);
                for t in 0..TILE {
                    sums[t] = ui.mul_add(L::load(slice.add(t * LANES)), sums[t]);
                }
            }
            for t in 0..TILE {
                sums[t].store(out.add((k + t) * LANES));
            }
            k += TILE;
        }
        while k < lines {
            let mut sum = L::zero();
            for i in 0..rank {
                let at = from.add((i * lines + k) * LANES);
                sum = L::splat(*u.add(i)).mul_add(L::load(at), sum);
            }
            sum.store(out.add(k * LANES));
            k += 1;
        }
    }
}

/// Contracts mode `n` of a full core that has lost the modes before; returns how many floats are left.
#[inline(always)]
unsafe fn contract_mode<L: F32x16>(
    shape: &CoreShape,
    n: usize,
    from: *const f32,
    rows: *const f32,
    out: *mut f32,
) -> usize {
    let last = shape.order() - 1;
    let lines =
        shape.ranks[n + 1..last].iter().product::<usize>() * padded_len(shape.ranks[last]) / LANES;
    // SAFETY: `from` has that many lines for each index of the mode.
    unsafe {
        let row = rows.add(shape.row(n).start);
        contract_inline::<L>(from, row, shape.ranks[n], lines, out);
    }
    lines * LANES
}

/// The value of a full core over the modes from `first` on.
#[inline(always)]
unsafe fn value_from<L: F32x16>(
    shape: &CoreShape,
    first: usize,
    core: *const f32,
    rows: *const f32,
    work: *mut f32,
) -> f32 {
    let last = shape.order() - 1;
    // SAFETY: every contraction leaves less than it read, so that `work` holds them one by one.
    unsafe {
        let (mut from, mut to) = (core, work);
        for n in first..last {
            let len = contract_mode::<L>(shape, n, from, rows, to);
            (from, to) = (to, to.add(len));
        }
        let row = shape.row(last);
        dot::<L>(from, rows.add(row.start), row.len() / LANES)
    }
}

#[inline(always)]
pub(super) unsafe fn any_value<L: F32x16>(
    shape: &CoreShape,
    core: *const f32,
    rows: *const f32,
    work: *mut f32,
) -> f32 {
    // SAFETY: the caller's promises.
    unsafe {
        match shape.kind {
            CoreKind::Full => value_from::<L>(shape, 0, core, rows, work),
            CoreKind::Diagonal => {
                let mut total = L::zero();
                for k in (0..shape.core_len()).step_by(LANES) {
                    let mut product = L::load(core.add(k));
                    for n in 0..shape.order() {
                        product = product * L::load(rows.add(shape.row(n).start + k));
                    }
                    total = total + product;
                }
                total.sum()
            }
        }
    }
}

#[inline(always)]
pub(super) unsafe fn any_slopes<L: F32x16>(
    shape: &CoreShape,
    core: *const f32,
    rows: *const f32,
    slopes: *mut f32,
    work: *mut f32,
) -> f32 {
    // SAFETY: the caller's promises.
    unsafe {
        if shape.kind == CoreKind::Diagonal {
            return diagonal_slopes::<L>(shape, core, rows, slopes);
        }
        if shape.order() == 3 && shape.rows_len() == 3 * LANES {
            return slopes3::<L>(shape.ranks[0], shape.ranks[1], core, rows, slopes);
        }
        full_slopes::<L>(shape, core, rows, slopes, work)
    }
}

#[inline(always)]
unsafe fn full_slopes<L: F32x16>(
    shape: &CoreShape,
    core: *const f32,
    rows: *const f32,
    slopes: *mut f32,
    work: *mut f32,
) -> f32 {
    let last = shape.order() - 1;
    let lines = padded_len(shape.ranks[last]) / LANES;
    // SAFETY: as in `value_from`; what is contracted here lies before what that needs.
    unsafe {
        for k in (0..shape.rows_len()).step_by(LANES) {
            L::zero().store(slopes.add(k));
        }
        let slope = |n: usize| slopes.add(shape.row(n).start);
        let (mut from, mut to) = (core, work);
        for n in 0..last {
            let target = if n + 1 == last { slope(last) } else { to };
            let rest = contract_mode::<L>(shape, n, from, rows, target);
            if n + 1 < last {
                to = to.add(rest);
            }
            for i in 0..shape.ranks[n] {
                let slice = from.add(i * rest);
                *slope(n).add(i) = value_from::<L>(shape, n + 1, slice, rows, to);
            }
            from = target;
        }
        if last == 0 {
            for k in 0..lines {
                L::load(core.add(k * LANES)).store(slope(0).add(k * LANES));
            }
            from = core;
        }
        dot::<L>(from, rows.add(shape.row(last).start), lines)
    }
}

/// Order 3, rows of one vector: P_i = sum_j v_j g_ij and Q_j = sum_i u_i g_ij in one pass; then
/// d_1[i] = P_i . w, d_2[j] = Q_j . w, d_3 = sum_i u_i P_i.
#[inline(always)]
unsafe fn slopes3<L: F32x16>(
    rank_u: usize,
    rank_v: usize,
    core: *const f32,
    rows: *const f32,
    slopes: *mut f32,
) -> f32 {
    // SAFETY: the core has `rank_u` slabs of `rank_v` vectors; rows and slopes are three vectors.
    unsafe {
        let w = L::load(rows.add(2 * LANES));
        // Sums over even and odd j, as P_i is summed.
        let mut sums = [[L::zero(); 2]; LANES];
        let mut q = [L::zero(); LANES];
        let mut j = 0;
        while j + 4 <= rank_v {
            slabs::<L, 4>(rank_u, rank_v, j, core, rows, &mut sums, &mut q);
            j += 4;
        }
        if j + 2 <= rank_v {
            slabs::<L, 2>(rank_u, rank_v, j, core, rows, &mut sums, &mut q);
            j += 2;
        }
        if j < rank_v {
            slabs::<L, 1>(rank_u, rank_v, j, core, rows, &mut sums, &mut q);
        }
        let mut third = L::zero();
        let mut products = [L::zero(); LANES];
        for i in 0..rank_u {
            let p = sums[i][0] + sums[i][1];
            third = L::splat(*rows.add(i)).mul_add(p, third);
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
            slopes.add(c).cast::<[f32; 4]>().write(L::sums(four));
            let four = [q[c], q[c + 1], q[c + 2], q[c + 3]];
            slopes
                .add(LANES + c)
                .cast::<[f32; 4]>()
                .write(L::sums(four));
        }
        third.store(slopes.add(2 * LANES));
        (third * w).sum()
    }
}

/// Adds vectors `j..j + K` of all slabs to the sums of [`slopes3`].
#[inline(always)]
unsafe fn slabs<L: F32x16, const K: usize>(
    rank_u: usize,
    rank_v: usize,
    j: usize,
    core: *const f32,
    rows: *const f32,
    sums: &mut [[L; 2]; LANES],
    q: &mut [L; LANES],
) {
    // SAFETY: as in `slopes3`; `j` is even, and `j + K` at most `rank_v`.
    unsafe {
        let v = rows.add(LANES + j);
        let mut qs = [L::zero(); K];
        for i in 0..rank_u {
            let slab = core.add((i * rank_v + j) * LANES);
            let ui = L::splat(*rows.add(i));
            let mut sum = sums[i];
            for k in 0..K {
                let g = L::load(slab.add(k * LANES));
                sum[k % 2] = L::splat(*v.add(k)).mul_add(g, sum[k % 2]);
                qs[k] = ui.mul_add(g, qs[k]);
            }
            sums[i] = sum;
        }
        q[j..j + K].copy_from_slice(&qs);
    }
}

/// x^ = sum_j g_j prod_n u_n[j]: products from both ends.
#[inline(always)]
pub(super) unsafe fn diagonal_slopes<L: F32x16>(
    shape: &CoreShape,
    core: *const f32,
    rows: *const f32,
    slopes: *mut f32,
) -> f32 {
    let order = shape.order();
    let width = shape.core_len();
    // SAFETY: all rows are as long as the core.
    unsafe {
        let mut total = L::zero();
        for k in (0..width).step_by(LANES) {
            // On the way forward the slopes hold g times the product of the rows before.
            let mut before = L::load(core.add(k));
            for n in 0..order {
                before.store(slopes.add(n * width + k));
                before = before * L::load(rows.add(n * width + k));
            }
            total = total + before;
            let mut after = L::splat(1.0);
            for n in (0..order).rev() {
                let at = slopes.add(n * width + k);
                (L::load(at) * after).store(at);
                after = after * L::load(rows.add(n * width + k));
            }
        }
        total.sum()
    }
}

#[inline(always)]
pub(super) unsafe fn any_step_core<L: F32x16>(
    shape: &CoreShape,
    core: *mut f32,
    rows: *const f32,
    keep: f32,
    scale: f32,
) {
    // SAFETY: the caller's promises. A factor of 1 is not worth a multiplication: lambda / |Omega| is
    // nearly always too small to be seen next to 1.
    unsafe {
        if keep == 1.0 {
            step_core_keeping::<L, true>(shape, core, rows, keep, scale);
        } else {
            step_core_keeping::<L, false>(shape, core, rows, keep, scale);
        }
    }
}

#[inline(always)]
unsafe fn step_core_keeping<L: F32x16, const ALL: bool>(
    shape: &CoreShape,
    core: *mut f32,
    rows: *const f32,
    keep: f32,
    scale: f32,
) {
    let last = shape.order() - 1;
    let keep = L::splat(keep);
    let kept = |g: L| if ALL { g } else { g * keep };
    // SAFETY: the walk visits each row of the core once, in order.
    unsafe {
        if shape.kind == CoreKind::Diagonal {
            for k in (0..shape.core_len()).step_by(LANES) {
                let mut product = L::splat(scale);
                for n in 0..shape.order() {
                    product = product * L::load(rows.add(shape.row(n).start + k));
                }
                let g = core.add(k);
                (product + kept(L::load(g))).store(g);
            }
            return;
        }
        let lines = padded_len(shape.ranks[last]) / LANES;
        let w = rows.add(shape.row(last).start);
        let (v, inner) = if last == 0 {
            (&raw const scale, 1)
        } else {
            (rows.add(shape.row(last - 1).start), shape.ranks[last - 1])
        };
        let one_line = last > 0 && lines == 1 && inner <= LANES;
        let outer = last.saturating_sub(1);
        let mut at = [0usize; MAX_ORDER];
        let mut fiber = core;
        loop {
            let mut product = if last == 0 { 1.0 } else { scale };
            for n in 0..outer {
                product *= *rows.add(shape.row(n).start + at[n]);
            }
            if one_line {
                // All factors at once, read back one by one: a broadcast from memory is free.
                let mut factors = [0.0f32; LANES];
                let scaled = L::load(v) * L::splat(product);
                scaled.store(factors.as_mut_ptr());
                let w = L::load(w);
                for &c in &factors[..inner] {
                    let g = L::splat(c).mul_add(w, kept(L::load(fiber)));
                    g.store(fiber);
                    fiber = fiber.add(LANES);
                }
            }
            for j in 0..if one_line { 0 } else { inner } {
                let c = L::splat(product * *v.add(j));
                for k in 0..lines {
                    let g = fiber.add(k * LANES);
                    c.mul_add(L::load(w.add(k * LANES)), kept(L::load(g)))
                        .store(g);
                }
                fiber = fiber.add(lines * LANES);
            }
            let mut n = outer;
            loop {
                if n == 0 {
                    return;
                }
                n -= 1;
                at[n] += 1;
                if at[n] < shape.ranks[n] {
                    break;
                }
                at[n] = 0;
            }
        }
    }
}
