//! A job: the batches of one block, the rows and the core they update, and the SGD update of a row.
//!
//! # Safety
//! As in [`super::batch`].
#![allow(unsafe_code)]

use super::packed_core_layout::Flat;
use crate::kernel::CoreShape;
use crate::simd::F32x16;

/// Most entries in a batch.
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
