//! The inputs of the batch kernels of one block, and the SGD update of a row.
//!
//! # Safety
//! The obligations are those of [`super::batch`].
#![allow(unsafe_code)]

use super::core_shape::{CoreKind, CoreShape};
use super::packed_core_layout::PackedLayout;
use crate::simd::F32x16;

/// Maximum number of entries in a batch.
pub(crate) const MAX_BATCH_LEN: usize = 64;

/// The penalty and constraint of rows and core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Regularizer {
    /// The penalty is the absolute value (L1) instead of the square (L2).
    pub l1: bool,
    /// Values are constrained to be at least 0.
    pub nonneg: bool,
}

impl Regularizer {
    /// Returns `x` projected onto the constraint.
    #[inline]
    pub(crate) fn bounded(self, x: f32) -> f32 {
        if self.nonneg { x.max(0.0) } else { x }
    }
}

/// The rows of a mode: `stride` floats each, the penalty per entry of each row, and the prior mean towards which
/// penalties shrink rows.
#[derive(Clone, Copy)]
pub(super) struct ModeRows {
    pub start: *mut f32,
    pub stride: usize,
    pub penalty: *const f32,
    pub prior_mean: *const f32,
}

/// The rows of the fiber mode and their rank.
#[derive(Clone, Copy)]
pub(super) struct FiberMode {
    pub rows: ModeRows,
    pub rank: usize,
}

/// The inputs of the batch kernels: the batches of one block, and the rows and core they update.
pub(super) struct BatchJob<'a> {
    /// Kind of the core; `None` for a matrix, which has no core.
    pub core_kind: Option<CoreKind>,
    /// Shape of the core over the non-fiber modes; over all modes if there is no fiber mode.
    pub shape: &'a CoreShape,
    /// Layout of a full core while entries are processed one by one; `None` for fiber batches and diagonal cores.
    pub packed: Option<&'a PackedLayout>,
    pub core: *mut f32,
    pub core_penalty: f32,
    /// Learning rate of the core. Without a fiber mode, a full core is updated with the first `core_entries`
    /// entries.
    pub core_eta: f32,
    pub core_entries: usize,
    /// `None` if entries are processed one by one.
    pub fiber: Option<FiberMode>,
    pub non_fiber: &'a [ModeRows],
    /// Whether a non-fiber mode has a prior mean other than 0.
    pub has_priors: bool,
    /// Records of the entries: the indices of the non-fiber rows, the bits of the value and, if weighted, of the
    /// weight.
    pub entries: *const u32,
    pub weighted: bool,
    pub eta: f32,
    pub loss_weight: f32,
    pub regularizer: Regularizer,
    /// Direction of the highest curvature among rows of the fiber mode, and eta times that curvature.
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
    };

    #[inline(always)]
    pub(super) unsafe fn row(&self, row: u32) -> *mut f32 {
        // SAFETY: the caller guarantees that the row exists.
        unsafe { self.start.add(row as usize * self.stride) }
    }

    /// Returns the address of the prior mean of the floats of a row from float `k` on.
    #[inline(always)]
    pub(super) unsafe fn prior_at(&self, k: usize) -> *const f32 {
        // SAFETY: `k` is below the stride, and the prior mean is as long as a row.
        unsafe { self.prior_mean.add(k) }
    }

    #[inline(always)]
    pub(super) unsafe fn penalty(&self, row: u32) -> f32 {
        // SAFETY: the caller guarantees that the row exists; there is one penalty per row.
        unsafe { *self.penalty.add(row as usize) }
    }
}

/// Returns values after an SGD update of one entry: `x + scale * gradient`, shrunk towards 0 by `shrink`, which
/// is eta times the penalty.
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

/// Returns values after an SGD update of one entry, shrunk towards `prior` instead of 0.
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
    let subgradient = if regularizer.l1 {
        offset.sign()
    } else {
        offset
    };
    let x = subgradient.mul_add(V::splat(-shrink), gradient.mul_add(V::splat(scale), x));
    if regularizer.nonneg { x.max_zero() } else { x }
}

/// The SGD update of rows with learning rate eta. Without `HAS_PRIOR`, prior means are 0, which takes fewer
/// instructions.
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

    /// Updates the values `x` of a row and stores them to `to`. `scale * gradient` is eta times the negative
    /// gradient of the loss; `penalty` is that of the row.
    ///
    /// # Safety
    /// One vector must be writable at `to` and readable at the prior mean.
    #[inline(always)]
    pub(super) unsafe fn apply(
        self,
        x: V,
        prior_mean: *const f32,
        gradient: V,
        scale: V,
        penalty: f32,
        to: *mut f32,
    ) {
        // SAFETY: the caller guarantees that `to` is writable and the prior mean readable.
        unsafe {
            let offset = if HAS_PRIOR {
                x - V::load(prior_mean)
            } else {
                x
            };
            // Without branches the penalty goes from memory into the multiply-add. The other regularizers
            // overwrite the result.
            let shrinkage = offset * self.minus_eta;
            let descended = gradient.mul_add(scale, x);
            shrinkage.mul_add(V::splat(penalty), descended).store(to);
            if self.regularizer.l1 || self.regularizer.nonneg {
                self.updated(x, offset, gradient, scale, penalty).store(to);
            }
        }
    }

    /// Returns the values `x` after an update. The penalty shrinks `offset`, the difference of `x` and the prior
    /// mean, towards 0.
    #[inline(always)]
    pub(super) fn updated(self, x: V, offset: V, gradient: V, scale: V, penalty: f32) -> V {
        let subgradient = if self.regularizer.l1 {
            offset.sign()
        } else {
            offset
        };
        let shrinkage = subgradient * self.minus_eta;
        let x = shrinkage.mul_add(V::splat(penalty), gradient.mul_add(scale, x));
        if self.regularizer.nonneg {
            x.max_zero()
        } else {
            x
        }
    }
}
