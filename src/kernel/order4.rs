//! Order 4, at most half a line of each listed row used.
//!
//! M, a cube of 8 x 8 x 8, is packed: two rows of it in one line, X[i][p] being M[i][2p] and M[i][2p+1].
//! T[k][p] is the same with the first mode within the lines. With the listed rows a, b and c, X
//! contracted with a gives Q (over the second and third mode), T with c gives S (over the second and
//! first): what remains for the slopes is short. E is formed after the batch, packed like X.
//!
//! # Safety
//! As in [`super::batch`].
#![allow(unsafe_code)]

use super::batch_iter::{Batches, one_line, pulling_line};
use super::batch_job::{Job, LONGEST, Step};
use super::batch_update::{after_full, first_m};
use super::entry_block::FiberBatch;
use crate::kernel::CoreShape;
use crate::simd::{F32x16, leaf};

use crate::simd::LANES;

/// What is used of a line.
const J: usize = LANES / 2;
const PAIRS: usize = J / 2;
/// Floats of a packed cube.
const CUBE: usize = J * PAIRS * LANES;

/// Floats of memory beyond M, E and a row of the fiber mode.
pub(super) const WORK: usize = 2 * CUBE + LANES * LANES + LONGEST * (1 + PAIRS) * LANES;

/// Whether this is for cores of this shape over the listed modes.
pub(super) fn fits(shape: &CoreShape) -> bool {
    shape.order() == 3 && shape.ranks.iter().all(|&j| j <= J)
}

leaf! {
    /// Runs batches.
    pub(super) unsafe fn order4<L: F32x16>(job: &Job<'_>, batches: &[FiberBatch]) -> f64
        = order4_body;
}

#[inline(always)]
unsafe fn order4_body<L: F32x16>(job: &Job<'_>, batches: &[FiberBatch]) -> f64 {
    // SAFETY: the caller's promises; the parts of `work` do not overlap.
    unsafe {
        let listed = one_line(job);
        let [ma, mb, mc] = listed;
        let (ja, jb) = (job.shape.ranks[0], job.shape.ranks[1]);
        let lines = ja * jb;
        let m = job.work;
        let e = m.add(lines * LANES);
        let x = e.add(lines * LANES);
        let t = x.add(CUBE);
        let square = t.add(CUBE);
        let firsts = square.add(LANES * LANES);
        let others = firsts.add(LONGEST * LANES);
        let slopes = others.add(LONGEST * PAIRS * LANES);
        // Only halves of lines of E are written, and only what is used of X.
        for k in 0..lines {
            L::zero().store(e.add(k * LANES));
        }
        for k in (0..CUBE).step_by(LANES) {
            L::zero().store(x.add(k));
        }
        let zero = [0.0f32; J];
        let step = Step::<L>::new(job.eta, job.rule);
        first_m::<L>(job, batches, lines, m);
        let mut total = 0.0f64;
        for (number, (batch, entries)) in
            Batches::new(job, &listed, batches, job.weighted).enumerate()
        {
            for i in 0..ja {
                for p in 0..jb.div_ceil(2) {
                    let low = m.add((i * jb + 2 * p) * LANES);
                    let high = if 2 * p + 1 < jb {
                        low.add(LANES).cast_const()
                    } else {
                        zero.as_ptr()
                    };
                    L::load_halves(low, high).store(x.add((i * PAIRS + p) * LANES));
                }
            }
            for p in 0..PAIRS {
                let mut rows = [L::zero(); LANES];
                for i in 0..J {
                    rows[i] = L::load(x.add((i * PAIRS + p) * LANES));
                }
                let columns = L::transposed(rows);
                for k in 0..LANES {
                    columns[k].store(square.add(k * LANES));
                }
                for k in 0..J {
                    L::load_halves(square.add(k * LANES), square.add((J + k) * LANES))
                        .store(t.add((k * PAIRS + p) * LANES));
                }
            }
            let mut squares = L::zero();
            for (n, entry) in entries.enumerate() {
                let (ra, rb, rc) = (*entry, *entry.add(1), *entry.add(2));
                let (pa, pb, pc) = (ma.row(ra), mb.row(rb), mc.row(rc));
                let q = contracted::<L>(x, pa);
                let s = contracted::<L>(t, pc);
                let mut pairs = [L::zero(); PAIRS];
                let (mut da, mut dc) = (L::zero(), L::zero());
                for p in 0..PAIRS {
                    pairs[p] = L::halves(*pb.add(2 * p), *pb.add(2 * p + 1));
                    da = pairs[p].mul_add(s[p], da);
                    dc = pairs[p].mul_add(q[p], dc);
                }
                let (da, dc) = (da.folded(), dc.folded());
                let (a, b, c) = (L::load(pa), L::load(pb), L::load(pc));
                let value = L::splat(f32::from_bits(*entry.add(3)));
                let error = value - (dc * c).total();
                let pull = pulling_line(error, entry, 3, job.weighted);
                squares = error.mul_add(pull, squares);
                let twice = L::load_halves(pc, pc);
                let mut parts = q;
                for p in 0..PAIRS {
                    parts[p] = q[p] * twice;
                    let other = others.add((n * PAIRS + p) * LANES);
                    (pairs[p] * twice).store(other);
                }
                let db = L::half_sums(parts);
                (a * pull).store(firsts.add(n * LANES));
                let scale = pull * step.eta;
                step.put(a, ma.own(0), da, scale, ma.penalty(ra), pa);
                step.put(b, mb.own(0), db, scale, mb.penalty(rb), pb);
                step.put(c, mc.own(0), dc, scale, mc.penalty(rc), pc);
            }
            total += f64::from(squares.first());
            for i in (0..ja).step_by(ROWS) {
                let sums = outer_sums::<L>(firsts.add(i), others, batch.len as usize);
                for r in 0..ROWS.min(ja - i) {
                    for p in 0..jb.div_ceil(2) {
                        let low = e.add(((i + r) * jb + 2 * p) * LANES);
                        if 2 * p + 1 < jb {
                            sums[r][p].store_halves(low, low.add(LANES));
                        } else {
                            sums[r][p].folded().store(low);
                        }
                    }
                }
            }
            let next = batches.get(number + 1);
            after_full::<L>(job, batch, next, e, m, slopes, lines);
        }
        total
    }
}

/// A packed cube contracted with a row.
#[inline(always)]
unsafe fn contracted<L: F32x16>(cube: *const f32, row: *const f32) -> [L; PAIRS] {
    // SAFETY: the lengths are these.
    unsafe {
        let (mut even, mut odd) = ([L::zero(); PAIRS], [L::zero(); PAIRS]);
        for i in (0..J).step_by(2) {
            let (x, y) = (L::splat(*row.add(i)), L::splat(*row.add(i + 1)));
            for p in 0..PAIRS {
                let at = cube.add((i * PAIRS + p) * LANES);
                even[p] = x.mul_add(L::load(at), even[p]);
                odd[p] = y.mul_add(L::load(at.add(PAIRS * LANES)), odd[p]);
            }
        }
        for p in 0..PAIRS {
            even[p] = even[p] + odd[p];
        }
        even
    }
}

/// Rows of E whose sums are in registers together.
const ROWS: usize = 4;

/// The sums over a batch of the first rows' numbers, from some place on, times what belongs to the
/// other rows.
#[inline(always)]
unsafe fn outer_sums<L: F32x16>(
    firsts: *const f32,
    others: *const f32,
    count: usize,
) -> [[L; PAIRS]; ROWS] {
    // SAFETY: there are as many of both.
    unsafe {
        let mut sums = [[L::zero(); PAIRS]; ROWS];
        for n in 0..count {
            let mut other = [L::zero(); PAIRS];
            for p in 0..PAIRS {
                other[p] = L::load(others.add((n * PAIRS + p) * LANES));
            }
            for r in 0..ROWS {
                let first = L::splat(*firsts.add(n * LANES + r));
                for p in 0..PAIRS {
                    sums[r][p] = first.mul_add(other[p], sums[r][p]);
                }
            }
        }
        sums
    }
}
