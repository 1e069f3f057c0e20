//! The walk of a lock-free thread through a segment of entries, and the shared rows that it updates.
#![allow(unsafe_code)]

use super::row_cache::RowCache;
use super::rows::HogwildVector;
use crate::batch::job::Regularizer;
use crate::simd::{LANES, prefetch};

/// The entries of a segment and the order of their updates: entry `at`, then `at + stride` modulo the number of entries, and
/// so on.
pub struct EntryWalk<'a> {
    /// Number of row indices per entry.
    pub order: usize,
    /// Row indices of all entries.
    pub rows: &'a [u32],
    /// Values of all entries.
    pub values: &'a [f32],
    /// Empty if entries are unweighted.
    pub weights: &'a [f32],
    /// Current position, below the number of entries, and distance to the next one, at most that number.
    pub position: usize,
    /// Distance between two consecutive positions.
    pub stride: usize,
    /// Row indices and values of the next segment, which are prefetched.
    pub next_block: Option<(&'a [u32], &'a [f32])>,
}

impl EntryWalk<'_> {
    /// Panics if a length or the position is wrong.
    pub(crate) fn check(&self, order: usize) {
        let len = self.values.len();
        assert!(self.order == order && self.rows.len() == len * order);
        assert!(self.weights.is_empty() || self.weights.len() == len);
        assert!(self.position < len && self.stride <= len);
    }

    /// Returns the residual times the weight of the entry at `at`.
    ///
    /// # Safety
    /// `check` passed, and `at` is below the number of entries.
    #[inline(always)]
    pub(crate) unsafe fn weighted_residual(&self, residual: f32, at: usize) -> f32 {
        // The branch goes the same way for all entries, so it is predicted.
        if self.weights.is_empty() {
            return residual;
        }
        // SAFETY: weighted walks have one weight per entry, and the caller guarantees `at`.
        residual * unsafe { *self.weights.get_unchecked(at) }
    }

    /// Returns the position after `at`.
    #[inline(always)]
    pub fn next_position(&self, at: usize) -> usize {
        let next = at + self.stride;
        next - if next >= self.values.len() {
            self.values.len()
        } else {
            0
        }
    }
}

/// Parameters of lock-free updates.
#[derive(Clone, Copy)]
pub struct HogwildSettings<'a> {
    /// Learning rate of the rows.
    pub eta: f32,
    /// Weight of the loss of this tensor or matrix.
    pub loss_weight: f32,
    /// Penalty of the rows.
    pub regularizer: Regularizer,
    /// Learning rate of the core; `None` on threads that do not update the core.
    pub core_eta: Option<f32>,
    /// For each mode, the penalty per entry of each row.
    pub penalties: &'a [&'a [f32]],
    /// For each mode, the prior mean towards which penalties shrink rows, padded with zeros.
    pub prior_means: &'a [&'a [f32]],
}

/// The rows of a mode in the row cache of a thread.
#[derive(Clone, Copy)]
pub(super) struct SharedMode<'a> {
    start: *mut f32,
    rows: usize,
    pub(crate) stride: usize,
    penalty: &'a [f32],
    prior: &'a [f32],
}

impl Default for SharedMode<'_> {
    fn default() -> Self {
        SharedMode {
            start: std::ptr::null_mut(),
            rows: 0,
            stride: 0,
            penalty: &[],
            prior: &[],
        }
    }
}

impl<'a> SharedMode<'a> {
    pub(crate) fn new(
        cache: &mut RowCache<'_>,
        settings: &HogwildSettings<'a>,
        n: usize,
    ) -> SharedMode<'a> {
        let (penalty, prior) = (settings.penalties[n], settings.prior_means[n]);
        // A factor ends with one more row: the mean of its rows.
        assert!(penalty.len() <= cache.rows() && prior.len() >= cache.stride());
        SharedMode {
            start: cache.start(),
            rows: penalty.len(),
            stride: cache.stride(),
            penalty,
            prior,
        }
    }

    /// Returns the address of a row, and its penalty.
    #[inline(always)]
    pub(crate) fn row(&self, row: u32) -> (*mut f32, f32) {
        let row = row as usize;
        assert!(row < self.rows, "an entry names a row that does not exist");
        // SAFETY: the assertion above; there are as many penalties as rows, of `stride` floats each.
        unsafe {
            let penalty = *self.penalty.get_unchecked(row);
            (self.start.add(row * self.stride), penalty)
        }
    }

    /// Returns one vector of the prior mean from float `k` on.
    ///
    /// # Safety
    /// `k..k + LANES` is within the stride.
    #[inline(always)]
    pub(crate) unsafe fn prior<V: HogwildVector>(&self, k: usize) -> V {
        // SAFETY: `new` checked that the prior mean is as long as a row.
        unsafe { V::load(self.prior.as_ptr().add(k)) }
    }

    #[inline(always)]
    fn prefetch_for_write<V: HogwildVector>(&self, row: u32) {
        let at = self.start.wrapping_add(row as usize * self.stride);
        for k in (0..self.stride).step_by(LANES) {
            V::prefetch_for_write(at.wrapping_add(k));
        }
        prefetch(self.penalty.as_ptr().wrapping_add(row as usize));
    }
}

/// Prefetch distance, in entries.
pub(crate) const PREFETCH_DISTANCE: usize = 6;

/// Prefetches the rows of the entry at `at`, and a part of the next segment.
#[inline(always)]
pub(super) fn prefetch_ahead<V: HogwildVector>(
    modes: &[SharedMode<'_>],
    walk: &EntryWalk<'_>,
    at: usize,
    done: usize,
) {
    let rows = &walk.rows[at * walk.order..(at + 1) * walk.order];
    for (mode, &row) in modes.iter().zip(rows) {
        mode.prefetch_for_write::<V>(row);
    }
    if let Some((rows, values)) = walk.next_block {
        prefetch(rows.as_ptr().wrapping_add(done * walk.order).cast());
        prefetch(values.as_ptr().wrapping_add(done));
    }
}
