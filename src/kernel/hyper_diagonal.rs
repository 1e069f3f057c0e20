//! Batches where M and E are vectors: matrices, hyper-diagonal cores, and full cores of order 2. O(J)
//! per entry.
//!
//! # Safety
//! As in [`super::batch`].
#![allow(unsafe_code)]

use super::batch_iter::{Batches, first_of, one_line, pulling, pulling_line};
use super::batch_job::{Between, Job, ModeRows, Step};
use super::batch_update::{after_full, step_fiber};
use super::entry::contract;
use super::entry_block::FiberBatch;
use super::order_n::{load_rows, step_rows};
use crate::simd::LANES;
use crate::simd::{F32x16, leaf};

/// M for a vector between the rows: that of a matrix, a diagonal core, or a full core of order 2.
#[inline(always)]
pub(super) unsafe fn vector<L: F32x16>(
    job: &Job<'_>,
    u: *const f32,
    rank: usize,
    lines: usize,
    m: *mut f32,
) {
    // SAFETY: the caller's promises.
    unsafe {
        match job.between {
            Between::Full => contract::<L>(job.core, u, rank, lines, m),
            Between::Diagonal => {
                for k in (0..lines * LANES).step_by(LANES) {
                    (L::load(job.core.add(k)) * L::load(u.add(k))).store(m.add(k));
                }
            }
            Between::Nothing => {
                for k in (0..lines * LANES).step_by(LANES) {
                    L::load(u.add(k)).store(m.add(k));
                }
            }
        }
    }
}

/// The steps after a batch where E is a vector. `m` is memory for one more, `slopes` for one row of
/// the fiber mode.
#[inline(always)]
unsafe fn after_vector<L: F32x16>(
    job: &Job<'_>,
    batch: &FiberBatch,
    (e, m, slopes): (*const f32, *mut f32, *mut f32),
    lines: usize,
) {
    // SAFETY: the caller's promises.
    unsafe {
        let Some((fiber, _)) = job.fiber else {
            return;
        };
        let count = batch.len as f32;
        match job.between {
            Between::Full => after_full::<L>(job, batch, None, e, m, slopes, lines),
            Between::Nothing => step_fiber::<L>(job, batch, count, job.weight, e),
            Between::Diagonal => {
                let u = fiber.row(batch.run.fiber_row);
                let penalty = job.core_penalty * count;
                let step = Step::<L>::new(job.core_eta, job.rule);
                for k in (0..lines * LANES).step_by(LANES) {
                    let (x, e, g) = (L::load(u.add(k)), L::load(e.add(k)), job.core.add(k));
                    let old = L::load(g);
                    step.moved(old, old, x * e, step.eta, penalty).store(g);
                    (old * e).store(slopes.add(k));
                }
                step_fiber::<L>(job, batch, count, 1.0, slopes);
            }
        }
    }
}

/// The rows of an entry, where they are, their product, and a vector times all of them but one each.
pub(super) struct Around<L, const N: usize> {
    pub at: [*mut f32; N],
    pub rows: [L; N],
    pub product: L,
    pub slopes: [L; N],
}

/// What an entry of `N` rows of one line has around the vector `m`.
#[inline(always)]
pub(super) unsafe fn around<L: F32x16, const N: usize>(
    m: L,
    listed: &[ModeRows; N],
    entry: *const u32,
) -> Around<L, N> {
    let mut at = [std::ptr::null_mut::<f32>(); N];
    // SAFETY: the caller's promises: the entry names rows that are there.
    unsafe {
        for n in 0..N {
            at[n] = listed[n].row(*entry.add(n));
        }
        around_at(m, &at, 0)
    }
}

/// The same for floats `k..` of rows that begin at `at`.
#[inline(always)]
pub(super) unsafe fn around_at<L: F32x16, const N: usize>(
    m: L,
    at: &[*mut f32; N],
    k: usize,
) -> Around<L, N> {
    let mut at = *at;
    let mut rows = [L::zero(); N];
    for n in 0..N {
        // SAFETY: the caller's promises.
        unsafe {
            at[n] = at[n].add(k);
            rows[n] = L::load(at[n]);
        }
    }
    let mut product = rows[0];
    let mut slopes = [m; N];
    for n in 1..N {
        slopes[n] = slopes[n] * product;
        product = product * rows[n];
    }
    let mut after = rows[N - 1];
    for n in (0..N - 1).rev() {
        slopes[n] = slopes[n] * after;
        after = after * rows[n];
    }
    Around {
        at,
        rows,
        product,
        slopes,
    }
}

leaf! {
    /// Runs batches of a vector of one line between `N` listed rows of one line.
    pub(super) unsafe fn line<L: F32x16, const N: usize, const W: bool>(job: &Job<'_>, batches: &[FiberBatch]) -> f64
        = line_body;
}

leaf! {
    /// Runs batches of a vector of any length between `N` listed rows.
    pub(super) unsafe fn strips<L: F32x16, const N: usize>(job: &Job<'_>, batches: &[FiberBatch]) -> f64 = strips_body;
}

leaf! {
    /// Runs batches of a vector of any length between any number of listed rows.
    pub(super) unsafe fn lines<L: F32x16>(job: &Job<'_>, batches: &[FiberBatch]) -> f64 = lines_body;
}

#[inline(always)]
unsafe fn line_body<L: F32x16, const N: usize, const W: bool>(
    job: &Job<'_>,
    batches: &[FiberBatch],
) -> f64 {
    // SAFETY: the caller's promises.
    unsafe {
        let Some((fiber, rank)) = job.fiber else {
            return 0.0;
        };
        let listed = one_line::<N>(job);
        let step = Step::<L>::new(job.eta, job.rule);
        let scale = L::splat(job.eta * job.weight);
        let mut total = 0.0f64;
        for (batch, entries) in Batches::new(job, &listed, batches, W) {
            vector::<L>(job, fiber.row(batch.run.fiber_row), rank, 1, job.work);
            let m = L::load(job.work);
            let mut e = L::zero();
            let mut squares = L::zero();
            for entry in entries {
                let Around {
                    at,
                    rows,
                    product,
                    slopes,
                } = around(m, &listed, entry);
                let value = L::splat(f32::from_bits(*entry.add(N)));
                let error = value - (m * product).total();
                let pull = pulling_line(error, entry, N, W);
                squares = error.mul_add(pull, squares);
                e = product.mul_add(pull, e);
                let scaled = pull * scale;
                for n in 0..N {
                    let (own, penalty) = (listed[n].own(0), listed[n].penalty(*entry.add(n)));
                    step.put(rows[n], own, slopes[n], scaled, penalty, at[n]);
                }
            }
            total += f64::from(squares.first());
            e.store(job.work);
            let (m, slopes) = (job.work.add(LANES), job.work.add(2 * LANES));
            after_vector::<L>(job, batch, (job.work, m, slopes), 1);
        }
        total
    }
}

#[inline(always)]
unsafe fn strips_body<L: F32x16, const N: usize>(job: &Job<'_>, batches: &[FiberBatch]) -> f64 {
    // SAFETY: the caller's promises; the parts of `work` do not overlap.
    unsafe {
        let Some((fiber, rank)) = job.fiber else {
            return 0.0;
        };
        let listed = first_of::<N>(job);
        let width = listed[0].stride;
        let lines = width / LANES;
        let m = job.work;
        let e = m.add(width);
        let fiber_slopes = e.add(width);
        let step = Step::<L>::new(job.eta, job.rule);
        let scale = L::splat(job.eta * job.weight);
        let mut total = 0.0f64;
        for (batch, entries) in Batches::new(job, &listed, batches, job.weighted) {
            vector::<L>(job, fiber.row(batch.run.fiber_row), rank, lines, m);
            for k in (0..width).step_by(LANES) {
                L::zero().store(e.add(k));
            }
            let mut squares = L::zero();
            for entry in entries {
                let mut at = [std::ptr::null_mut::<f32>(); N];
                let mut penalties = [0.0; N];
                for n in 0..N {
                    at[n] = listed[n].row(*entry.add(n));
                    penalties[n] = listed[n].penalty(*entry.add(n));
                }
                let value = L::splat(f32::from_bits(*entry.add(N)));
                let error = value - between::<L, N>(m, &at, width).total();
                let pull = pulling_line(error, entry, N, job.weighted);
                squares = error.mul_add(pull, squares);
                let scaled = pull * scale;
                // The rows are near by now: once more from there is faster than copies of them.
                for k in (0..width).step_by(LANES) {
                    let Around {
                        at,
                        rows,
                        product,
                        slopes,
                    } = around_at(L::load(m.add(k)), &at, k);
                    product.mul_add(pull, L::load(e.add(k))).store(e.add(k));
                    for n in 0..N {
                        let own = listed[n].own(k);
                        step.put(rows[n], own, slopes[n], scaled, penalties[n], at[n]);
                    }
                }
            }
            total += f64::from(squares.first());
            after_vector::<L>(job, batch, (e, m, fiber_slopes), lines);
        }
        total
    }
}

/// The sum of products of the vector `m` and `N` rows, all of `width` floats, before lines are summed.
#[inline(always)]
pub(super) unsafe fn between<L: F32x16, const N: usize>(
    m: *const f32,
    rows: &[*mut f32; N],
    width: usize,
) -> L {
    let mut sum = L::zero();
    for k in (0..width).step_by(LANES) {
        // SAFETY: all are that long.
        unsafe {
            let mut product = L::load(m.add(k));
            for n in 0..N - 1 {
                product = product * L::load(rows[n].add(k));
            }
            sum = product.mul_add(L::load(rows[N - 1].add(k)), sum);
        }
    }
    sum
}

#[inline(always)]
unsafe fn lines_body<L: F32x16>(job: &Job<'_>, batches: &[FiberBatch]) -> f64 {
    // SAFETY: the caller's promises; the parts of `work` do not overlap.
    unsafe {
        let Some((fiber, rank)) = job.fiber else {
            return 0.0;
        };
        let order = job.listed.len();
        let width = job.listed[0].stride;
        let lines = width / LANES;
        let m = job.work;
        let e = m.add(width);
        let rows = e.add(width);
        let slopes = rows.add(order * width);
        let fiber_slopes = slopes.add(order * width);
        let mut total = 0.0f64;
        for (batch, entries) in Batches::new(job, job.listed, batches, job.weighted) {
            vector::<L>(job, fiber.row(batch.run.fiber_row), rank, lines, m);
            for k in 0..lines {
                L::zero().store(e.add(k * LANES));
            }
            let mut squares = 0.0f32;
            for entry in entries {
                load_rows::<L>(job, entry, rows);
                let mut sum = L::zero();
                for k in (0..width).step_by(LANES) {
                    let mv = L::load(m.add(k));
                    let mut before = L::splat(1.0);
                    for n in 0..order {
                        (before * mv).store(slopes.add(n * width + k));
                        before = before * L::load(rows.add(n * width + k));
                    }
                    sum = before.mul_add(mv, sum);
                    let mut after = L::splat(1.0);
                    for n in (0..order).rev() {
                        let at = slopes.add(n * width + k);
                        (L::load(at) * after).store(at);
                        after = after * L::load(rows.add(n * width + k));
                    }
                }
                let error = f32::from_bits(*entry.add(order)) - sum.sum();
                let pull = pulling(error, entry, order, job.weighted);
                squares += error * pull;
                for k in (0..width).step_by(LANES) {
                    let mut product = L::load(rows.add(k));
                    for n in 1..order {
                        product = product * L::load(rows.add(n * width + k));
                    }
                    product
                        .mul_add(L::splat(pull), L::load(e.add(k)))
                        .store(e.add(k));
                }
                step_rows::<L>(job, entry, rows, slopes, job.weight * pull);
            }
            total += f64::from(squares);
            after_vector::<L>(job, batch, (e, m, fiber_slopes), lines);
        }
        total
    }
}
