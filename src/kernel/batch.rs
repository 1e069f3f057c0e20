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

use super::entry;
use super::general::{general, single};
use super::grid::Batch;
use super::large3::large3;
use super::lines::{Line, stamped};
use super::small3::small3;
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

/// The size of a step, the same in all places of a line.
#[derive(Clone, Copy)]
pub(super) struct Step<L> {
    pub eta: L,
    minus_eta: L,
    pub rule: Rule,
}

impl<L: Line> Step<L> {
    #[inline(always)]
    pub(super) fn new(eta: f32, rule: Rule) -> Self {
        Step {
            eta: L::splat(eta),
            minus_eta: L::splat(-eta),
            rule,
        }
    }

    /// Numbers after a step: `slope` times `scale` is minus the gradient of the error.
    #[inline(always)]
    pub(super) fn moved(self, x: L, slope: L, scale: L, penalty: f32) -> L {
        let pulled = if self.rule.l1 { x.sign() } else { x };
        // In this order the penalty goes from memory into the last instruction.
        let pull = pulled.times(self.minus_eta);
        let x = pull.times_plus(L::splat(penalty), slope.times_plus(scale, x));
        if self.rule.nonneg {
            x.at_least_zero()
        } else {
            x
        }
    }
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

impl ModeRows {
    #[inline(always)]
    pub(super) unsafe fn row(&self, row: u32) -> *mut f32 {
        // SAFETY: the caller's promise that there is such a row.
        unsafe { self.start.add(row as usize * self.stride) }
    }

    #[inline(always)]
    pub(super) unsafe fn penalty(&self, row: u32) -> f32 {
        // SAFETY: as above.
        unsafe { *self.penalty.add(row as usize) }
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
        let penalty = job.core_penalty * count;
        // Too small to be seen next to 1.
        let keep = job.eta * penalty < f32::EPSILON / 4.0 && !job.rule.nonneg;
        let step = Step::new(job.eta, job.rule);
        for l in (0..rank).step_by(4) {
            let mut dots = [L::zero(); 4];
            for t in 0..4.min(rank - l) {
                let slab = job.core.add((l + t) * lines * STRIDE);
                let scale = L::splat(job.eta * *u.add(l + t));
                let mut dot = L::zero();
                for k in 0..lines {
                    let (g, e) = (slab.add(k * STRIDE), L::load(sums.add(k * STRIDE)));
                    let old = L::load(g);
                    dot = old.times_plus(e, dot);
                    let new = if keep {
                        e.times_plus(scale, old)
                    } else {
                        step.moved(old, e, scale, penalty)
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
        let penalty = fiber.penalty(batch.run.fiber) * count;
        let step = Step::new(job.eta, job.rule);
        let scale = L::splat(job.eta * weight);
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
            step.moved(L::load(row), slope, scale, penalty).store(row);
        }
    }
}
