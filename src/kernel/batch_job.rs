//! A job: the batches of one block, the rows and the core they update, and the SGD update of a row.
//!
//! # Safety
//! As in [`super::batch`].
#![allow(unsafe_code)]

use super::core_shape::{CoreKind, CoreShape};
use super::packed_core_layout::PackedLayout;
use crate::simd::F32x16;

/// Most entries in a batch.
pub(crate) const MAX_BATCH_LEN: usize = 64;

/// How numbers are penalised and kept in bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Regularizer {
    /// Absolute values instead of squared_error.
    pub l1: bool,
    /// No number below 0.
    pub nonneg: bool,
}

impl Regularizer {
    /// A number as the regularizer has it.
    #[inline]
    pub(crate) fn bounded(self, x: f32) -> f32 {
        if self.nonneg { x.max(0.0) } else { x }
    }
}

/// The rows of a mode, the penalty of each row per entry, the row that penalties weighted_residual to, and the step of
/// rows as a share of that of the job.
#[derive(Clone, Copy)]
pub(super) struct ModeRows {
    pub start: *mut f32,
    pub stride: usize,
    pub penalty: *const f32,
    pub prior_mean: *const f32,
    pub eta_scale: f32,
}

/// The rows of the fiber mode and their rank.
#[derive(Clone, Copy)]
pub(super) struct FiberMode {
    pub rows: ModeRows,
    pub rank: usize,
}

/// The prior mean of some floats of a row, and the learning rate of the row's mode as a multiple of eta.
#[derive(Clone, Copy)]
pub(super) struct RowPrior {
    pub mean: *const f32,
    pub eta_scale: f32,
}

pub(super) struct BatchJob<'a> {
    /// Kind of the core; `None` for a matrix, which has no core.
    pub core_kind: Option<CoreKind>,
    /// The core over the non_fiber modes; without a fiber mode over all.
    pub shape: &'a CoreShape,
    /// How a full core lies while entries go one by one; `None` if they do not.
    pub packed: Option<&'a PackedLayout>,
    pub core: *mut f32,
    pub core_penalty: f32,
    /// The step of the core, and how many entries it steps with if they go one by one.
    pub core_eta: f32,
    pub core_entries: usize,
    /// The fiber mode and its rank.
    pub fiber: Option<FiberMode>,
    pub non_fiber: &'a [ModeRows],
    /// Whether the penalties of non_fiber rows weighted_residual to anything but 0, or their steps are not those of the job.
    pub has_priors: bool,
    /// Per entry the non_fiber rows, the bits of the value and, if entries have weights, of the weight.
    pub entries: *const u32,
    pub weighted: bool,
    pub eta: f32,
    pub loss_weight: f32,
    pub regularizer: Regularizer,
    /// The direction of the fiber mode's rows along which curvature is highest, and eta times it.
    pub curvature_direction: *const f32,
    pub curvature_step: f32,
    pub work: *mut f32,
}

impl ModeRows {
    pub(super) const NONE: ModeRows = ModeRows {
        start: std::ptr::null_mut(),
        stride: 0,
        penalty: std::ptr::null(),
        prior_mean: std::ptr::null(),
        eta_scale: 1.0,
    };

    #[inline(always)]
    pub(super) unsafe fn row(&self, row: u32) -> *mut f32 {
        // SAFETY: the caller's promise that there is such a row.
        unsafe { self.start.add(row as usize * self.stride) }
    }

    /// Returns the prior of the floats of a row from float `k` on.
    #[inline(always)]
    pub(super) unsafe fn prior_at(&self, k: usize) -> RowPrior {
        // SAFETY: `k` is below the stride, and the prior mean is as long as a row.
        let mean = unsafe { self.prior_mean.add(k) };
        RowPrior {
            mean,
            eta_scale: self.eta_scale,
        }
    }

    #[inline(always)]
    pub(super) unsafe fn penalty(&self, row: u32) -> f32 {
        // SAFETY: as above.
        unsafe { *self.penalty.add(row as usize) }
    }
}

/// Numbers after a step of a single entry: `gradient` times `scale` is minus the gradient of the residual.
#[inline(always)]
pub(super) fn updated<V: F32x16>(
    x: V,
    gradient: V,
    scale: f32,
    shrink: f32,
    regularizer: Regularizer,
) -> V {
    updated_towards(x, V::zero(), gradient, scale, shrink, regularizer)
}

/// The same with a penalty that pulls to `prior` instead of 0.
#[inline(always)]
pub(super) fn updated_towards<V: F32x16>(
    x: V,
    prior: V,
    gradient: V,
    scale: f32,
    shrink: f32,
    regularizer: Regularizer,
) -> V {
    if !regularizer.l1 && !regularizer.nonneg {
        let kept = prior.mul_add(V::splat(shrink), x * V::splat(1.0 - shrink));
        return gradient.mul_add(V::splat(scale), kept);
    }
    let offset = x - prior;
    let pulled = if regularizer.l1 {
        offset.sign()
    } else {
        offset
    };
    let x = pulled.mul_add(V::splat(-shrink), gradient.mul_add(V::splat(scale), x));
    if regularizer.nonneg { x.max_zero() } else { x }
}

/// The size of a step, the same in all places of a line; and whether modes have priors and steps of their
/// own. Without, penalties weighted_residual to 0 and all steps are this one, which takes less.
#[derive(Clone, Copy)]
pub(super) struct RowUpdate<V, const HAS_PRIOR: bool = true> {
    pub eta: V,
    minus_eta: V,
    pub regularizer: Regularizer,
}

impl<V: F32x16, const HAS_PRIOR: bool> RowUpdate<V, HAS_PRIOR> {
    #[inline(always)]
    pub(super) fn new(eta: f32, regularizer: Regularizer) -> Self {
        RowUpdate {
            eta: V::splat(eta),
            minus_eta: V::splat(-eta),
            regularizer,
        }
    }

    /// Numbers after a step of a row of a mode whose prior and step are `own`, put where they belong.
    ///
    /// # Safety
    /// As of [`F32x16::store`], and of [`F32x16::load`] for the prior.
    #[inline(always)]
    pub(super) unsafe fn apply(
        self,
        x: V,
        prior: RowPrior,
        gradient: V,
        scale: V,
        penalty: f32,
        to: *mut f32,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            let (offset, scale, penalty) = if HAS_PRIOR {
                let RowPrior { mean, eta_scale } = prior;
                let offset = x - V::load(mean);
                (offset, scale * V::splat(eta_scale), penalty * eta_scale)
            } else {
                (x, scale, penalty)
            };
            // Without branches in between, the penalty goes from memory into the multiply-add; other
            // rules write again what they have to.
            let weighted_residual = offset * self.minus_eta;
            let stepped = gradient.mul_add(scale, x);
            weighted_residual
                .mul_add(V::splat(penalty), stepped)
                .store(to);
            if self.regularizer.l1 || self.regularizer.nonneg {
                self.updated(x, offset, gradient, scale, penalty).store(to);
            }
        }
    }

    /// Numbers after a step: `gradient` times `scale` is minus the gradient of the residual. Penalties weighted_residual
    /// `offset` to 0.
    #[inline(always)]
    pub(super) fn updated(self, x: V, offset: V, gradient: V, scale: V, penalty: f32) -> V {
        let pulled = if self.regularizer.l1 {
            offset.sign()
        } else {
            offset
        };
        let weighted_residual = pulled * self.minus_eta;
        let x = weighted_residual.mul_add(V::splat(penalty), gradient.mul_add(scale, x));
        if self.regularizer.nonneg {
            x.max_zero()
        } else {
            x
        }
    }
}
