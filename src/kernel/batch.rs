//! Batches of entries that share their row of the fiber mode.
//!
//! With u that row, M = G x_f u is formed once per batch: a core of one order less. Each entry then
//! needs only M: its value, the slopes of its listed rows, which step at once, and its part of E, the
//! sum of error times the outer product of the listed rows as they were before. After the batch, E
//! gives the gradients of u (G x E) and of the core (u (x) E). For order 3 that is three products of
//! J^2 per entry: M w, M^T v, and E.
//!
//! The core is laid out with the fiber mode first: one slab, a core over the listed modes, per rank of
//! the fiber mode.
//!
//! # Safety
//! Everywhere here: the pointers of a [`Job`] are as its fields say, no other thread touches what they
//! point to, every row an entry or a batch names lies there, and `work` has [`work_len`] floats.
#![allow(unsafe_code)]

use super::entry::{self, contract};
use super::general::{general, single};
use super::grid::Batch;
use super::lines::{Line, prefetch, stamped};
use super::vector::{line, lines};
use crate::model::{CoreShape, STRIDE, padded};

/// Batches are at most this long.
pub(crate) const LONGEST: usize = 64;

/// How numbers are penalised and kept in bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rule {
    /// Absolute values instead of squares.
    pub l1: bool,
    /// No number below 0.
    pub nonneg: bool,
}

impl Rule {
    /// A number as the rule has it.
    #[inline]
    pub(crate) fn bounded(self, x: f32) -> f32 {
        if self.nonneg { x.max(0.0) } else { x }
    }
}

/// The rows of a mode, and the penalty of each row per entry.
#[derive(Clone, Copy)]
pub(super) struct ModeRows {
    pub start: *mut f32,
    pub stride: usize,
    pub penalty: *const f32,
}

/// What stands between the rows of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Between {
    /// A full core.
    Full,
    /// A hyper-diagonal core.
    Diagonal,
    /// Nothing, or ones: a matrix.
    Nothing,
}

pub(super) struct Job<'a> {
    pub between: Between,
    /// The core over the listed modes; without a fiber mode over all.
    pub shape: &'a CoreShape,
    pub core: *mut f32,
    pub core_penalty: f32,
    /// The fiber mode and its rank.
    pub fiber: Option<(ModeRows, usize)>,
    pub listed: &'a [ModeRows],
    /// Per entry the listed rows and the bits of the value.
    pub entries: *const u32,
    pub eta: f32,
    pub weight: f32,
    pub rule: Rule,
    /// The direction of the fiber mode's rows along which curvature is highest, and eta times it.
    pub steepest: *const f32,
    pub steepness: f32,
    pub work: *mut f32,
}

/// Floats of memory a job needs.
pub(super) fn work_len(shape: &CoreShape, order: usize, fiber: usize) -> usize {
    let widest = shape.ranks.iter().map(|&j| padded(j)).max().unwrap_or(0);
    // M, its transpose, E, rows and slopes of a batch, and what single entries need.
    let square = widest * widest.max(shape.core_len().div_ceil(widest.max(1)));
    3 * square.max(shape.core_len())
        + 2 * (LONGEST + order) * widest
        + 2 * shape.rows_len()
        + entry::work_len(shape)
        + padded(fiber)
}

stamped! {
    /// Runs batches; returns the sum of squared errors as they were met.
    pub(super) unsafe fn run(job: &Job<'_>, batches: &[Batch]) -> f64 = any_run;
}

/// One number of lines after a step: `slope` times `scale` is minus the gradient of the error.
#[inline(always)]
pub(super) fn moved<L: Line>(x: L, slope: L, scale: f32, shrink: f32, rule: Rule) -> L {
    if !rule.l1 && !rule.nonneg {
        return slope.times_plus(L::splat(scale), x.times(L::splat(1.0 - shrink)));
    }
    let pulled = if rule.l1 { x.sign() } else { x };
    let x = pulled.times_plus(L::splat(-shrink), slope.times_plus(L::splat(scale), x));
    if rule.nonneg { x.at_least_zero() } else { x }
}

#[inline(always)]
unsafe fn any_run<L: Line>(job: &Job<'_>, batches: &[Batch]) -> f64 {
    // SAFETY: the caller's promises.
    unsafe {
        if job.fiber.is_none() {
            return single::<L>(job, batches);
        }
        let shape = job.shape;
        match job.between {
            Between::Full if shape.order() == 2 => {
                let width = |n: usize| padded(shape.ranks[n]) / STRIDE;
                match (width(0), width(1)) {
                    (1, 1) => match shape.ranks[0].max(shape.ranks[1]).div_ceil(2) {
                        1 | 2 => small3::<L, 4>(job, batches),
                        3 => small3::<L, 6>(job, batches),
                        4 => small3::<L, 8>(job, batches),
                        5 => small3::<L, 10>(job, batches),
                        6 => small3::<L, 12>(job, batches),
                        7 => small3::<L, 14>(job, batches),
                        _ => small3::<L, 16>(job, batches),
                    },
                    (2, 2) => large3::<L, 2>(job, batches, 2, 2),
                    (a, b) => large3::<L, 1>(job, batches, a, b),
                }
            }
            Between::Full if shape.order() > 2 => general::<L>(job, batches),
            _ => match (shape.rows_len() / STRIDE, shape.order()) {
                (1, 1) => line::<L, 1>(job, batches),
                (2, 2) => line::<L, 2>(job, batches),
                (3, 3) => line::<L, 3>(job, batches),
                _ => lines::<L>(job, batches),
            },
        }
    }
}

/// Where the entries of a batch are: one after the other, around the end of the run to its start.
pub(super) struct Walk {
    start: *const u32,
    end: *const u32,
    at: *const u32,
    words: usize,
}

impl Walk {
    #[inline(always)]
    pub(super) unsafe fn new(job: &Job<'_>, batch: &Batch) -> Walk {
        let words = job.listed.len() + 1;
        // SAFETY: the run is inside the entries.
        unsafe {
            let start = job.entries.add(batch.run.start as usize * words);
            Walk {
                start,
                end: start.add(batch.run.len as usize * words),
                at: start.add(batch.first as usize * words),
                words,
            }
        }
    }

    #[inline(always)]
    pub(super) unsafe fn next(&mut self) -> *const u32 {
        let now = self.at;
        // SAFETY: inside the run, or its end, which becomes its start.
        unsafe {
            self.at = self.at.add(self.words);
        }
        if self.at == self.end {
            self.at = self.start;
        }
        now
    }
}

/// Rows are asked for this many entries ahead.
const AHEAD: usize = 6;

/// Asks for the rows of the first entries of the next batch, and for the entries of the one after.
#[inline(always)]
pub(super) unsafe fn prefetch_entries(job: &Job<'_>, batches: &[Batch], next: usize) {
    if let Some(batch) = batches.get(next) {
        // SAFETY: the batch has that many entries; prefetching their rows reads nothing.
        unsafe {
            let mut walk = Walk::new(job, batch);
            for _ in 0..AHEAD.min(batch.len as usize) {
                let entry = walk.next();
                for (n, mode) in job.listed.iter().enumerate() {
                    prefetch(mode.row(*entry.add(n)));
                }
            }
        }
    }
    if let Some(batch) = batches.get(next + 1) {
        // SAFETY: prefetching reads nothing.
        unsafe {
            let at = Walk::new(job, batch).at;
            let bytes = batch.len as usize * (job.listed.len() + 1) * 4;
            for k in (0..bytes.min(1024)).step_by(64) {
                prefetch(at.cast::<f32>().wrapping_add(k / 4));
            }
        }
    }
}

impl ModeRows {
    #[inline(always)]
    pub(super) unsafe fn row(&self, row: u32) -> *mut f32 {
        // SAFETY: the caller's promise that there is such a row.
        unsafe { self.start.add(row as usize * self.stride) }
    }

    #[inline(always)]
    pub(super) unsafe fn shrink(&self, row: u32, eta: f32) -> f32 {
        // SAFETY: as above.
        unsafe { eta * *self.penalty.add(row as usize) }
    }
}

/// After a batch of `count` entries with a full core: steps of the core and of the fiber mode's row.
/// `slopes` is memory for one row of that mode.
#[inline(always)]
pub(super) unsafe fn after_full<L: Line>(
    job: &Job<'_>,
    batch: &Batch,
    count: f32,
    sums: *const f32,
    lines: usize,
    slopes: *mut f32,
) {
    // SAFETY: the core has `rank` slabs of `lines` lines, the sums one.
    unsafe {
        let Some((fiber, rank)) = job.fiber else {
            return;
        };
        let u = fiber.row(batch.run.fiber);
        let core_shrink = job.eta * job.core_penalty * count;
        // Too small to be seen next to 1.
        let keep = core_shrink < f32::EPSILON / 4.0 && !job.rule.nonneg;
        for l in (0..rank).step_by(4) {
            let mut dots = [L::zero(); 4];
            for t in 0..4.min(rank - l) {
                let slab = job.core.add((l + t) * lines * STRIDE);
                let scale = job.eta * *u.add(l + t);
                let mut dot = L::zero();
                for k in 0..lines {
                    let (g, e) = (slab.add(k * STRIDE), L::load(sums.add(k * STRIDE)));
                    let old = L::load(g);
                    dot = old.times_plus(e, dot);
                    let new = if keep {
                        e.times_plus(L::splat(scale), old)
                    } else {
                        moved(old, e, scale, core_shrink, job.rule)
                    };
                    new.store(g);
                }
                dots[t] = dot;
            }
            // The rest of a line is 0, as it has to be for padding.
            slopes.add(l).cast::<[f32; 4]>().write(L::sums(dots));
        }
        for l in (rank.next_multiple_of(4)..fiber.stride).step_by(4) {
            slopes.add(l).cast::<[f32; 4]>().write([0.0; 4]);
        }
        step_fiber::<L>(job, batch, count, 1.0, slopes);
    }
}

/// The step of the fiber mode's row after a batch, damped along the direction of the highest
/// curvature: there the entries one after the other would have stopped where all at once overshoot.
#[inline(always)]
pub(super) unsafe fn step_fiber<L: Line>(
    job: &Job<'_>,
    batch: &Batch,
    count: f32,
    weight: f32,
    slopes: *const f32,
) {
    // SAFETY: the caller's promises; the direction is as long as a row.
    unsafe {
        let Some((fiber, _)) = job.fiber else {
            return;
        };
        let u = fiber.row(batch.run.fiber);
        let lines = fiber.stride / STRIDE;
        let shrink = fiber.shrink(batch.run.fiber, job.eta) * count;
        let x = job.steepness * count;
        let damping = if x > 0.1 {
            let along = entry::dot::<L>(slopes, job.steepest, lines);
            // Close to (1 - exp(-x)) / x, and below it.
            along * (1.0 / (1.0 + 0.5 * x + x * x / 12.0) - 1.0)
        } else {
            0.0
        };
        for k in (0..lines * STRIDE).step_by(STRIDE) {
            let slope =
                L::splat(damping).times_plus(L::load(job.steepest.add(k)), L::load(slopes.add(k)));
            let row = u.add(k);
            moved(L::load(row), slope, job.eta * weight, shrink, job.rule).store(row);
        }
    }
}

/// Order 3, both listed rows one line, at most `J` (an even number) of it used. M and its transpose
/// are in registers where those suffice; E is formed after the batch, with its sums in registers.
#[inline(always)]
unsafe fn small3<L: Line, const J: usize>(job: &Job<'_>, batches: &[Batch]) -> f64 {
    // SAFETY: the caller's promises; the parts of `work` do not overlap.
    unsafe {
        let Some((fiber, rank)) = job.fiber else {
            return 0.0;
        };
        let (a, b) = (job.listed[0], job.listed[1]);
        let rows = job.shape.ranks[0];
        let m = job.work;
        let mt = m.add(STRIDE * STRIDE);
        let e = mt.add(STRIDE * STRIDE);
        let vs = e.add(STRIDE * STRIDE);
        let ws = vs.add(LONGEST * STRIDE);
        let slopes = ws.add(LONGEST * STRIDE);
        for i in 0..STRIDE {
            L::zero().store(m.add(i * STRIDE));
            L::zero().store(mt.add(i * STRIDE));
        }
        let mut total = 0.0f64;
        for (number, batch) in batches.iter().enumerate() {
            prefetch_entries(job, batches, number + 1);
            contract::<L>(job.core, fiber.row(batch.run.fiber), rank, rows, m);
            for i in 0..J {
                for j in 0..J {
                    *mt.add(j * STRIDE + i) = *m.add(i * STRIDE + j);
                }
            }
            let (mut mi, mut mj) = ([L::zero(); J], [L::zero(); J]);
            for i in 0..J {
                mi[i] = L::load(m.add(i * STRIDE));
                mj[i] = L::load(mt.add(i * STRIDE));
            }
            let mut squares = 0.0f32;
            let mut walk = Walk::new(job, batch);
            let mut ahead = Walk::new(job, batch);
            let count = batch.len as usize;
            for _ in 0..AHEAD.min(count) {
                ahead.next();
            }
            for k in 0..count {
                let entry = walk.next();
                if k + AHEAD < count {
                    let far = ahead.next();
                    prefetch(a.row(*far));
                    prefetch(b.row(*far.add(1)));
                }
                let (ra, rb) = (*entry, *entry.add(1));
                let (pv, pw) = (a.row(ra), b.row(rb));
                let (v, w) = (L::load(pv), L::load(pw));
                let (mut d0, mut d1) = (L::zero(), L::zero());
                let (mut c0, mut c1) = (L::zero(), L::zero());
                for i in (0..J).step_by(2) {
                    d0 = L::splat(*pv.add(i)).times_plus(mi[i], d0);
                    d1 = L::splat(*pv.add(i + 1)).times_plus(mi[i + 1], d1);
                    c0 = L::splat(*pw.add(i)).times_plus(mj[i], c0);
                    c1 = L::splat(*pw.add(i + 1)).times_plus(mj[i + 1], c1);
                }
                let dw = d0.plus(d1);
                let dv = c0.plus(c1);
                let error = f32::from_bits(*entry.add(2)) - dw.times(w).sum();
                squares += error * error;
                v.times(L::splat(error)).store(vs.add(k * STRIDE));
                w.store(ws.add(k * STRIDE));
                let step = job.eta * error;
                moved(v, dv, step, a.shrink(ra, job.eta), job.rule).store(pv);
                moved(w, dw, step, b.shrink(rb, job.eta), job.rule).store(pw);
            }
            total += f64::from(squares);
            let mut sums = [L::zero(); J];
            for k in 0..count {
                let w = L::load(ws.add(k * STRIDE));
                let v = vs.add(k * STRIDE);
                for i in 0..J {
                    sums[i] = L::splat(*v.add(i)).times_plus(w, sums[i]);
                }
            }
            for i in 0..J {
                sums[i].store(e.add(i * STRIDE));
            }
            after_full::<L>(job, batch, count as f32, e, rows, slopes);
        }
        total
    }
}

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
unsafe fn large3<L: Line, const K: usize>(
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
        for (number, batch) in batches.iter().enumerate() {
            prefetch_entries(job, batches, number + 1);
            contract::<L>(job.core, fiber.row(batch.run.fiber), rank, ja * lb, m);
            for i in 0..ja {
                for j in 0..jb {
                    *mt.add(j * wa + i) = *m.add(i * wb + j);
                }
            }
            let mut squares = 0.0f32;
            let mut walk = Walk::new(job, batch);
            let count = batch.len as usize;
            for k in 0..count {
                let entry = walk.next();
                let (ra, rb) = (*entry, *entry.add(1));
                let (pv, pw) = (a.row(ra), b.row(rb));
                product::<L, K>(m, pv, ja, lb, dw);
                product::<L, K>(mt, pw, jb, la, dv);
                let error = f32::from_bits(*entry.add(2)) - entry::dot::<L>(dw, pw, lb);
                squares += error * error;
                let step = job.eta * error;
                let (shrink_v, shrink_w) = (a.shrink(ra, job.eta), b.shrink(rb, job.eta));
                for t in 0..la {
                    let v = L::load(pv.add(t * STRIDE));
                    v.times(L::splat(error)).store(vs.add(k * wa + t * STRIDE));
                    let d = L::load(dv.add(t * STRIDE));
                    moved(v, d, step, shrink_v, job.rule).store(pv.add(t * STRIDE));
                }
                for t in 0..lb {
                    let w = L::load(pw.add(t * STRIDE));
                    w.store(ws.add(k * wb + t * STRIDE));
                    let d = L::load(dw.add(t * STRIDE));
                    moved(w, d, step, shrink_w, job.rule).store(pw.add(t * STRIDE));
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
