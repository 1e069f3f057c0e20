//! The inputs of the batch kernels of one block, and the SGD update of a row.
//!
//! # Safety
//! The obligations are those of [`super::dispatch`].
#![allow(unsafe_code)]

use crate::per_entry::packed_core_layout::PackedLayout;
use crate::shape::core_shape::{CoreKind, CoreShape};
use crate::simd::F32x16;

/// Maximum number of entries in a batch.
pub const MAX_BATCH_LEN: usize = 64;

/// The penalty and constraint of rows and core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Regularizer {
    /// The penalty is the absolute value (L1) instead of the square (L2).
    pub l1: bool,
    /// Values are constrained to be at least 0.
    pub nonneg: bool,
}

impl Regularizer {
    /// The L2 penalty without a constraint.
    pub(crate) const L2: Regularizer = Regularizer {
        l1: false,
        nonneg: false,
    };

    /// Returns a vector projected onto the constraint.
    #[inline(always)]
    pub(crate) fn projected<V: F32x16>(self, x: V) -> V {
        if self.nonneg { x.max_zero() } else { x }
    }

    /// Returns `x` projected onto the constraint.
    #[inline]
    pub fn bounded(self, x: f32) -> f32 {
        if self.nonneg { x.max(0.0) } else { x }
    }
}

/// The rows of a mode: `stride` floats each, the penalty per entry of each row, and the prior mean towards which
/// penalties shrink rows.
#[derive(Clone, Copy)]
pub(crate) struct ModeRows {
    pub start: *mut f32,
    pub stride: usize,
    pub penalty: *const f32,
    pub prior_mean: *const f32,
}

/// The rows of the fiber mode and their rank.
#[derive(Clone, Copy)]
pub(crate) struct FiberMode {
    pub rows: ModeRows,
    pub rank: usize,
}

/// The inputs of the batch kernels: the batches of one block, and the rows and core they update.
pub(crate) struct BatchJob<'a> {
    /// Kind of the core; `None` for a matrix, which has no core.
    pub core_kind: Option<CoreKind>,
    /// Shape of the core over the non-fiber modes; over all modes if there is no fiber mode.
    pub shape: &'a CoreShape,
    /// Layout of a full core while entries are processed one by one; `None` for fiber batches and diagonal cores.
    pub packed: Option<&'a PackedLayout>,
    pub core: *mut f32,
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
    pub(crate) const NONE: ModeRows = ModeRows {
        start: std::ptr::null_mut(),
        stride: 0,
        penalty: std::ptr::null(),
        prior_mean: std::ptr::null(),
    };

    #[inline(always)]
    pub(crate) unsafe fn row(&self, row: u32) -> *mut f32 {
        // SAFETY: the caller guarantees that the row exists.
        unsafe { self.start.add(row as usize * self.stride) }
    }

    /// Returns the address of the prior mean of the floats of a row from float `k` on.
    #[inline(always)]
    pub(crate) unsafe fn prior_at(&self, k: usize) -> *const f32 {
        // SAFETY: `k` is below the stride, and the prior mean is as long as a row.
        unsafe { self.prior_mean.add(k) }
    }

    #[inline(always)]
    pub(crate) unsafe fn penalty(&self, row: u32) -> f32 {
        // SAFETY: the caller guarantees that the row exists; there is one penalty per row.
        unsafe { *self.penalty.add(row as usize) }
    }
}

/// The SGD update of rows with learning rate eta. Without `HAS_PRIOR`, prior means are 0, which takes fewer
/// instructions.
///
/// The penalty is added to the gradient of the loss, and the sum to the row. Rows with many entries have penalties per entry
/// below the rounding error of the row; the gradients of the loss then act as a dither, and the penalty is kept on average.
/// Applied to the row on its own it would be rounded away.
#[derive(Clone, Copy)]
pub(crate) struct RowUpdate<V, const HAS_PRIOR: bool = true> {
    minus_eta: V,
    pub regularizer: Regularizer,
}

impl<V: F32x16, const HAS_PRIOR: bool> RowUpdate<V, HAS_PRIOR> {
    #[inline(always)]
    pub(crate) fn new(eta: f32, regularizer: Regularizer) -> Self {
        RowUpdate {
            minus_eta: V::splat(-eta),
            regularizer,
        }
    }

    /// Updates the values `x` of a row and stores them to `to`. `scale * partials` is the gradient of the loss, so `scale` is
    /// the negative weighted residual if `partials` are those of the model's value. `penalty` is that of the row.
    ///
    /// # Safety
    /// One vector must be writable at `to` and readable at the prior mean.
    #[inline(always)]
    pub(crate) unsafe fn apply(
        self,
        x: V,
        prior_mean: *const f32,
        partials: V,
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
            // Without branches the penalty goes from memory into the multiplication. The other regularizers
            // overwrite the result.
            let gradient = partials.mul_add(scale, offset * V::splat(penalty));
            gradient.mul_add(self.minus_eta, x).store(to);
            if self.regularizer.l1 || self.regularizer.nonneg {
                self.updated(x, offset, partials, scale, penalty).store(to);
            }
        }
    }

    /// Returns the values `x` after an update as by [`RowUpdate::apply`]. The penalty shrinks `offset`, the difference of `x` and
    /// the prior mean, towards 0.
    #[inline(always)]
    pub(crate) fn updated(self, x: V, offset: V, partials: V, scale: V, penalty: f32) -> V {
        let subgradient = if self.regularizer.l1 {
            offset.sign()
        } else {
            offset
        };
        let gradient = partials.mul_add(scale, subgradient * V::splat(penalty));
        let x = gradient.mul_add(self.minus_eta, x);
        if self.regularizer.nonneg {
            x.max_zero()
        } else {
            x
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;
    use crate::simd::{LANES, Scalar};

    /// A row with millions of entries has a penalty per entry far below the rounding error of its values.
    #[test]
    #[cfg_attr(miri, ignore = "too slow: millions of updates")]
    fn the_penalty_of_a_row_with_very_many_entries_is_not_rounded_away() {
        const ENTRIES: usize = 4_000_000;
        let (eta, penalty) = (0.001f32, 10.0 / ENTRIES as f32);
        let regularizer = Regularizer {
            l1: false,
            nonneg: false,
        };
        let update = RowUpdate::<Scalar>::new(eta, regularizer);
        let mut s = RandomStream::new(&[5]);
        let mut row = [1.0f32; LANES];
        let mut expected = [1.0f64; LANES];
        let prior = [0.0f32; LANES];
        for _ in 0..ENTRIES {
            let residual = (s.uniform() - 0.5) as f32;
            let partial = (s.uniform() - 0.5) as f32;
            // SAFETY: all arrays have one vector.
            unsafe {
                let x = Scalar::load(row.as_ptr());
                let partials = Scalar::splat(partial);
                let scale = Scalar::splat(-residual);
                update.apply(
                    x,
                    prior.as_ptr(),
                    partials,
                    scale,
                    penalty,
                    row.as_mut_ptr(),
                );
            }
            for x in &mut expected {
                let gradient = f64::from(penalty) * *x - f64::from(residual) * f64::from(partial);
                *x -= f64::from(eta) * gradient;
            }
        }
        // The penalty shrinks the row by 0.01; the random updates move it by about as much.
        let error = (f64::from(row[0]) - expected[0]).abs();
        assert!(error < 5e-4, "{} {}", row[0], expected[0]);
    }
}
