//! The steps after a batch: of the core and of the fiber mode's row.
//!
//! A core that does not fit the nearest cache is what batches wait for, so it is read and written
//! once per batch: what the step of one batch leaves is contracted on the way to the M of the next.
//!
//! # Safety
//! As in [`super::batch`].
#![allow(unsafe_code)]

use super::batch_job::{Job, Step};
use super::entry::{self, contract, contract_inline};
use super::entry_block::FiberBatch;
use crate::simd::LANES;
use crate::simd::{F32x16, leaf, prefetch};

/// M for the first batch; [`after_full`] makes the others.
#[inline(always)]
pub(super) unsafe fn first_m<L: F32x16>(
    job: &Job<'_>,
    batches: &[FiberBatch],
    lines: usize,
    m: *mut f32,
) {
    if let (Some((fiber, rank)), Some(batch)) = (job.fiber, batches.first()) {
        // SAFETY: the caller's promises.
        unsafe { contract::<L>(job.core, fiber.row(batch.run.fiber_row), rank, lines, m) };
    }
}

/// Lines of a core that stay in the nearest cache, beside what else a batch needs.
const NEAR: usize = 512;

/// Lines of a larger core are asked for this many ahead.
const AHEAD: usize = 10;

/// What every line of the core goes through after a batch.
#[derive(Clone, Copy)]
struct Pass<L> {
    step: Step<L>,
    penalty: f32,
    /// Whether the penalty is too small to be seen next to 1.
    keep: bool,
    /// Whether the core is too large for the nearest cache.
    far: bool,
    e: *const f32,
    m: *mut f32,
    lines: usize,
}

impl<L: F32x16> Pass<L> {
    /// `R` slabs of the core from `slab` on, with the numbers of the fiber mode's row `u` that belong
    /// to them, and those of the next batch's row. Returns their products with E, not yet summed.
    #[inline(always)]
    unsafe fn slabs<const R: usize>(
        &self,
        slab: *mut f32,
        u: *const f32,
        next: *const f32,
        first: bool,
    ) -> [L; R] {
        // SAFETY: the promises of `after_full`.
        unsafe {
            let mut dots = [L::zero(); R];
            let (mut scale, mut to) = (dots, dots);
            for r in 0..R {
                scale[r] = L::splat(*u.add(r)) * self.step.eta;
                to[r] = L::splat(*next.add(r));
            }
            for k in 0..self.lines {
                let e = L::load(self.e.add(k * LANES));
                let m = self.m.add(k * LANES);
                let mut sum = if first { L::zero() } else { L::load(m) };
                // Slabs are often whole pages apart: all loads come before the stores, which the
                // machine would take for their own.
                let mut g = [L::zero(); R];
                if self.far {
                    for r in 0..R {
                        prefetch(slab.wrapping_add((r * self.lines + k + AHEAD) * LANES));
                    }
                }
                for r in 0..R {
                    g[r] = L::load(slab.add((r * self.lines + k) * LANES));
                }
                for r in 0..R {
                    dots[r] = g[r].mul_add(e, dots[r]);
                    g[r] = if self.keep {
                        e.mul_add(scale[r], g[r])
                    } else {
                        self.step.moved(g[r], g[r], e, scale[r], self.penalty)
                    };
                    sum = g[r].mul_add(to[r], sum);
                }
                for r in 0..R {
                    g[r].store(slab.add((r * self.lines + k) * LANES));
                }
                sum.store(m);
            }
            dots
        }
    }
}

leaf! {
    /// After a batch with a full core: updates of the core and of the fiber mode's row; then M for the batch
    /// `next`. `slopes` is memory for one row of that mode.
    pub(super) unsafe fn after_full<L: F32x16>(job: &Job<'_>, batch: &FiberBatch, next: Option<&FiberBatch>, e: *const f32, m: *mut f32,
        slopes: *mut f32, lines: usize) = after_full_body;
}

#[inline(always)]
unsafe fn after_full_body<L: F32x16>(
    job: &Job<'_>,
    batch: &FiberBatch,
    next: Option<&FiberBatch>,
    e: *const f32,
    m: *mut f32,
    slopes: *mut f32,
    lines: usize,
) {
    // SAFETY: the core has `rank` slabs of `lines` lines, E and M one.
    unsafe {
        let Some((fiber, rank)) = job.fiber else {
            return;
        };
        let count = batch.len as f32;
        let u = fiber.row(batch.run.fiber_row);
        let then = match next {
            Some(next) => fiber.row(next.run.fiber_row),
            None => u,
        };
        let penalty = job.core_penalty * count;
        let pass = Pass {
            step: Step::<L>::new(job.core_eta, job.rule),
            penalty,
            keep: job.core_eta * penalty < f32::EPSILON / 4.0 && !job.rule.nonneg,
            far: rank * lines > NEAR,
            e,
            m,
            lines,
        };
        let mut l = 0;
        while l < rank {
            let slab = job.core.add(l * lines * LANES);
            let (ul, next) = (u.add(l), then.add(l));
            let mut dots = [L::zero(); 4];
            if l + 4 <= rank && L::REGISTERS >= 16 {
                dots = pass.slabs::<4>(slab, ul, next, l == 0);
            } else if l + 4 <= rank {
                [dots[0], dots[1]] = pass.slabs::<2>(slab, ul, next, l == 0);
                let slab = slab.add(2 * lines * LANES);
                [dots[2], dots[3]] = pass.slabs::<2>(slab, ul.add(2), next.add(2), false);
            } else {
                for t in 0..rank - l {
                    let slab = slab.add(t * lines * LANES);
                    [dots[t]] = pass.slabs::<1>(slab, ul.add(t), next.add(t), l + t == 0);
                }
            }
            // The rest of a line is 0, as it has to be for padding.
            slopes.add(l).cast::<[f32; 4]>().write(L::sums(dots));
            l += 4;
        }
        for l in (rank.next_multiple_of(4)..fiber.stride).step_by(4) {
            slopes.add(l).cast::<[f32; 4]>().write([0.0; 4]);
        }
        step_fiber::<L>(job, batch, count, 1.0, slopes);
        // The same row, which has just moved.
        if next.is_some() && then == u {
            contract_inline::<L>(job.core, u, rank, lines, m);
        }
    }
}

/// The step of the fiber mode's row after a batch, damped along the direction of the highest
/// curvature: there the entries one after the other would have stopped where all at once overshoot.
#[inline(always)]
pub(super) unsafe fn step_fiber<L: F32x16>(
    job: &Job<'_>,
    batch: &FiberBatch,
    count: f32,
    weight: f32,
    slopes: *const f32,
) {
    // SAFETY: the caller's promises; the direction is as long as a row.
    unsafe {
        let Some((fiber, _)) = job.fiber else {
            return;
        };
        let u = fiber.row(batch.run.fiber_row);
        let lines = fiber.stride / LANES;
        let penalty = fiber.penalty(batch.run.fiber_row) * count;
        let step = Step::<L>::new(job.eta, job.rule);
        let scale = L::splat(job.eta * weight);
        let x = job.steepness * count;
        let damping = if x > 0.1 {
            let along = entry::dot::<L>(slopes, job.steepest, lines);
            // Close to (1 - exp(-x)) / x, and below it.
            along * (1.0 / (1.0 + 0.5 * x + x * x / 12.0) - 1.0)
        } else {
            0.0
        };
        for k in (0..lines * LANES).step_by(LANES) {
            let slope =
                L::splat(damping).mul_add(L::load(job.steepest.add(k)), L::load(slopes.add(k)));
            let (row, own) = (u.add(k), fiber.own(k));
            step.put(L::load(row), own, slope, scale, penalty, row);
        }
    }
}
