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
use super::entry_block::FiberBatch;
use super::hogwild_rows::HogwildVector;
use super::hyper_diagonal::{line, lines, strips};
use super::order_n::general;
use super::order3_large::{GROUP, large3};
use super::order3_small::small3;
use super::order4;
use super::packed_core::{Flat, Flatten};
use super::per_entry::{self, single};
use crate::kernel::CoreShape;
use crate::simd::{F32x16, dispatched};

use crate::simd::{LANES, padded_len};

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

/// The rows of a mode, the penalty of each row per entry, the row that penalties pull to, and the step of
/// rows as a share of that of the job.
#[derive(Clone, Copy)]
pub(super) struct ModeRows {
    pub start: *mut f32,
    pub stride: usize,
    pub penalty: *const f32,
    pub prior: *const f32,
    pub step: f32,
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
    /// How a full core lies while entries go one by one; `None` if they do not.
    pub flat: Option<&'a Flat>,
    pub core: *mut f32,
    pub core_penalty: f32,
    /// The step of the core, and how many entries it steps with if they go one by one.
    pub core_eta: f32,
    pub core_entries: usize,
    /// The fiber mode and its rank.
    pub fiber: Option<(ModeRows, usize)>,
    pub listed: &'a [ModeRows],
    /// Whether the penalties of listed rows pull to anything but 0, or their steps are not those of the job.
    pub own: bool,
    /// Per entry the listed rows, the bits of the value and, if entries have weights, of the weight.
    pub entries: *const u32,
    pub weighted: bool,
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
    let widest = shape
        .ranks
        .iter()
        .map(|&j| padded_len(j))
        .max()
        .unwrap_or(0);
    // M, its transpose, E, rows and slopes of a batch, and what single entries need.
    let square = widest * widest.max(shape.core_len().div_ceil(widest.max(1)));
    3 * square.max(shape.core_len())
        + 2 * (LONGEST + GROUP + order) * widest
        + 2 * shape.rows_len()
        + entry::work_len(shape)
        + padded_len(fiber)
        + if order4::fits(shape) { order4::WORK } else { 0 }
}

dispatched! {
    /// Runs batches; returns the sum of squared errors, by weight, as they were met.
    pub(super) unsafe fn run(job: &Job<'_>, batches: &[FiberBatch]) -> f64 = any_run;
}

/// Numbers after a step of a single entry: `slope` times `scale` is minus the gradient of the error.
#[inline(always)]
pub(super) fn moved<L: F32x16>(x: L, slope: L, scale: f32, shrink: f32, rule: Rule) -> L {
    moved_to(x, L::zero(), slope, scale, shrink, rule)
}

/// The same with a penalty that pulls to `prior` instead of 0.
#[inline(always)]
pub(super) fn moved_to<L: F32x16>(
    x: L,
    prior: L,
    slope: L,
    scale: f32,
    shrink: f32,
    rule: Rule,
) -> L {
    if !rule.l1 && !rule.nonneg {
        let kept = prior.mul_add(L::splat(shrink), x * L::splat(1.0 - shrink));
        return slope.mul_add(L::splat(scale), kept);
    }
    let off = x - prior;
    let pulled = if rule.l1 { off.sign() } else { off };
    let x = pulled.mul_add(L::splat(-shrink), slope.mul_add(L::splat(scale), x));
    if rule.nonneg { x.at_least_zero() } else { x }
}

/// The size of a step, the same in all places of a line; and whether modes have priors and steps of their
/// own. Without, penalties pull to 0 and all steps are this one, which takes less.
#[derive(Clone, Copy)]
pub(super) struct Step<L, const OWN: bool = true> {
    pub eta: L,
    minus_eta: L,
    pub rule: Rule,
}

impl<L: F32x16, const OWN: bool> Step<L, OWN> {
    #[inline(always)]
    pub(super) fn new(eta: f32, rule: Rule) -> Self {
        Step {
            eta: L::splat(eta),
            minus_eta: L::splat(-eta),
            rule,
        }
    }

    /// Numbers after a step of a row of a mode whose prior and step are `own`, put where they belong.
    ///
    /// # Safety
    /// As of [`F32x16::store`], and of [`F32x16::load`] for the prior.
    #[inline(always)]
    pub(super) unsafe fn put(
        self,
        x: L,
        own: (*const f32, f32),
        slope: L,
        scale: L,
        penalty: f32,
        to: *mut f32,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            let (off, scale, penalty) = if OWN {
                let (prior, step) = own;
                let off = x - L::load(prior);
                (off, scale * L::splat(step), penalty * step)
            } else {
                (x, scale, penalty)
            };
            // Without branches in between, the penalty goes from memory into the multiply-add; other
            // rules write again what they have to.
            let pull = off * self.minus_eta;
            let stepped = slope.mul_add(scale, x);
            pull.mul_add(L::splat(penalty), stepped).store(to);
            if self.rule.l1 || self.rule.nonneg {
                self.moved(x, off, slope, scale, penalty).store(to);
            }
        }
    }

    /// Numbers after a step: `slope` times `scale` is minus the gradient of the error. Penalties pull
    /// `off` to 0.
    #[inline(always)]
    pub(super) fn moved(self, x: L, off: L, slope: L, scale: L, penalty: f32) -> L {
        let pulled = if self.rule.l1 { off.sign() } else { off };
        let pull = pulled * self.minus_eta;
        let x = pull.mul_add(L::splat(penalty), slope.mul_add(scale, x));
        if self.rule.nonneg {
            x.at_least_zero()
        } else {
            x
        }
    }
}

/// Chooses the leaf for a job.
unsafe fn any_run<L: HogwildVector + Flatten>(job: &Job<'_>, batches: &[FiberBatch]) -> f64 {
    // SAFETY: the caller's promises.
    unsafe {
        // Where an entry takes little time, what it has beside rows and a value is known when this is
        // compiled.
        // With few registers a prior or a step of a mode's own is not what takes time, nor is a weight, and every
        // variant takes room.
        let special = if job.fiber.is_none() {
            if job.weighted {
                alone::<L, true>(job, batches)
            } else {
                alone::<L, false>(job, batches)
            }
        } else if const { L::REGISTERS < 4 } {
            // One number at a time is there to compare with.
            None
        } else if job.weighted {
            if const { L::REGISTERS < 8 } {
                None
            } else {
                short::<L, true, true>(job, batches)
            }
        } else if const { L::REGISTERS < 32 } {
            short::<L, false, true>(job, batches)
        } else if job.own {
            short::<L, false, true>(job, batches)
        } else {
            short::<L, false, false>(job, batches)
        };
        // No closure: it would not have the instructions of the function that this becomes part of.
        if let Some(squares) = special {
            return squares;
        }
        match (job.fiber, job.between) {
            (None, _) => single::<L>(job, batches),
            (_, Between::Full) if job.shape.order() > 2 => general::<L>(job, batches),
            (_, Between::Full) if job.shape.order() == 2 && job.weighted => {
                large3::<L, true>(job, batches)
            }
            (_, Between::Full) if job.shape.order() == 2 => large3::<L, false>(job, batches),
            _ => match job.listed.len() {
                1 => strips::<L, 1>(job, batches),
                2 => strips::<L, 2>(job, batches),
                3 => strips::<L, 3>(job, batches),
                _ => lines::<L>(job, batches),
            },
        }
    }
}

/// Entries one by one; `None` if there is nothing special for such a core.
unsafe fn alone<L: HogwildVector, const W: bool>(
    job: &Job<'_>,
    batches: &[FiberBatch],
) -> Option<f64> {
    let shape = job.shape;
    // SAFETY: the caller's promises.
    unsafe {
        match (job.flat, shape.order(), shape.core_len()) {
            (None, 2, LANES) => Some(per_entry::line::<L, 2, W>(job, batches)),
            (None, 3, LANES) => Some(per_entry::line::<L, 3, W>(job, batches)),
            _ => None,
        }
    }
}

/// Batches whose listed rows are one line each; `None` if they are not.
unsafe fn short<L: F32x16, const W: bool, const OWN: bool>(
    job: &Job<'_>,
    batches: &[FiberBatch],
) -> Option<f64> {
    let shape = job.shape;
    // SAFETY: the caller's promises.
    unsafe {
        Some(match job.between {
            Between::Full if shape.order() == 2 => {
                let width = |n: usize| padded_len(shape.ranks[n]) / LANES;
                match (width(0), width(1)) {
                    (1, 1) => match shape.ranks[0].max(shape.ranks[1]) {
                        0..=4 => small3::<L, 4, W, OWN>(job, batches),
                        5..=8 => small3::<L, 8, W, OWN>(job, batches),
                        9 | 10 => small3::<L, 10, W, OWN>(job, batches),
                        11 | 12 => small3::<L, 12, W, OWN>(job, batches),
                        _ => small3::<L, 16, W, OWN>(job, batches),
                    },
                    _ => return None,
                }
            }
            Between::Full if order4::fits(shape) => order4::order4::<L, W, OWN>(job, batches),
            Between::Full if shape.order() > 2 => return None,
            _ => match (shape.rows_len() / LANES, shape.order()) {
                (1, 1) => line::<L, 1, W, OWN>(job, batches),
                (2, 2) => line::<L, 2, W, OWN>(job, batches),
                (3, 3) => line::<L, 3, W, OWN>(job, batches),
                _ => return None,
            },
        })
    }
}

impl ModeRows {
    pub(super) const NONE: ModeRows = ModeRows {
        start: std::ptr::null_mut(),
        stride: 0,
        penalty: std::ptr::null(),
        prior: std::ptr::null(),
        step: 1.0,
    };

    #[inline(always)]
    pub(super) unsafe fn row(&self, row: u32) -> *mut f32 {
        // SAFETY: the caller's promise that there is such a row.
        unsafe { self.start.add(row as usize * self.stride) }
    }

    /// Floats `k..` of the prior, and the step.
    #[inline(always)]
    pub(super) unsafe fn own(&self, k: usize) -> (*const f32, f32) {
        // SAFETY: the prior is as long as a row.
        unsafe { (self.prior.add(k), self.step) }
    }

    #[inline(always)]
    pub(super) unsafe fn penalty(&self, row: u32) -> f32 {
        // SAFETY: as above.
        unsafe { *self.penalty.add(row as usize) }
    }
}
