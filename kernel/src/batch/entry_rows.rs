//! The rows of an entry where M or the core is a vector: their products, and for each mode the gradient.
//!
//! # Safety
//! The obligations are those of [`super::dispatch`].
#![allow(unsafe_code)]

use super::iter::non_fiber_modes;
use super::job::{BatchJob, ModeRows, Regularizer};
use crate::simd::{F32x16, LANES};

/// The modes of the rows of an entry, with what is a compile-time constant in kernels for rows of `K` vectors. With `K` = 0
/// rows have any length. With other `K` there is no constraint and no L1 penalty.
pub(crate) struct RowSettings<const N: usize> {
    pub non_fiber: [ModeRows; N],
    /// Number of floats of a row.
    pub width: usize,
    pub regularizer: Regularizer,
}

impl<const N: usize> RowSettings<N> {
    #[inline(always)]
    pub(crate) fn new<const K: usize>(job: &BatchJob<'_>) -> Self {
        let mut settings = RowSettings {
            non_fiber: non_fiber_modes::<N>(job),
            width: job.non_fiber[0].stride,
            regularizer: job.regularizer,
        };
        if K > 0 {
            debug_assert_eq!(settings.width, K * LANES);
            settings.width = K * LANES;
            settings.regularizer = Regularizer::L2;
            for mode in &mut settings.non_fiber {
                mode.stride = K * LANES;
            }
        }
        settings
    }
}

/// Returns the number of vectors of a row in a job that kernels for a constant number of vectors support, and 0 otherwise.
pub(crate) fn constant_vectors(job: &BatchJob<'_>) -> usize {
    if job.regularizer == Regularizer::L2 {
        job.non_fiber[0].stride / LANES
    } else {
        0
    }
}

/// The rows of an entry and their addresses, their elementwise product, and for each mode the gradient: M times
/// the rows of all other modes.
pub(crate) struct RowProducts<V, const N: usize> {
    pub at: [*mut f32; N],
    pub rows: [V; N],
    pub product: V,
    pub gradients: [V; N],
}

/// Returns the products of an entry with `N` rows of one vector each.
#[inline(always)]
pub(crate) unsafe fn row_products<V: F32x16, const N: usize>(
    m: V,
    non_fiber: &[ModeRows; N],
    entry: *const u32,
) -> RowProducts<V, N> {
    let mut at = [std::ptr::null_mut::<f32>(); N];
    // SAFETY: the caller guarantees that the entry names rows that exist.
    unsafe {
        for n in 0..N {
            at[n] = non_fiber[n].row(*entry.add(n));
        }
        row_products_at(m, &at, 0)
    }
}

/// Returns the products of the vectors at float `k` of rows that start at `at`.
#[inline(always)]
unsafe fn row_products_at<V: F32x16, const N: usize>(
    m: V,
    at: &[*mut f32; N],
    k: usize,
) -> RowProducts<V, N> {
    let mut at = *at;
    let mut rows = [V::zero(); N];
    for n in 0..N {
        // SAFETY: the caller guarantees that `k` is inside the rows.
        unsafe {
            at[n] = at[n].add(k);
            rows[n] = V::load(at[n]);
        }
    }
    let mut product = rows[0];
    let mut gradients = [m; N];
    for n in 1..N {
        gradients[n] = gradients[n] * product;
        product = product * rows[n];
    }
    let mut after = rows[N - 1];
    for n in (0..N - 1).rev() {
        gradients[n] = gradients[n] * after;
        after = after * rows[n];
    }
    RowProducts {
        at,
        rows,
        product,
        gradients,
    }
}

/// The vectors of the rows of an entry and their gradients, if they fit into registers.
pub(crate) struct EntryRows<V, const N: usize, const K: usize> {
    /// Elementwise products of `m` and the rows, summed over vectors but not over lanes.
    pub dot: V,
    rows: [[V; N]; K],
    gradients: [[V; N]; K],
}

impl<V: F32x16, const N: usize, const K: usize> EntryRows<V, N, K> {
    /// Whether rows are kept. Where registers do not suffice, reading them from the L1 cache again is faster than copies.
    const KEPT: bool = K > 0 && V::VECTOR_REGISTERS >= 32;

    /// Reads the rows of `width` floats at `at` and multiplies them by `m`.
    #[inline(always)]
    pub(crate) unsafe fn new(m: *const f32, at: &[*mut f32; N], width: usize) -> Self {
        let mut kept = EntryRows {
            dot: V::zero(),
            rows: [[V::zero(); N]; K],
            gradients: [[V::zero(); N]; K],
        };
        // SAFETY: the caller guarantees that all are `width` floats long.
        unsafe {
            if !Self::KEPT {
                kept.dot = multiway_dot::<V, N>(m, at, width);
                return kept;
            }
            for k in 0..K {
                let m = V::load(m.add(k * LANES));
                let products = row_products_at(m, at, k * LANES);
                (kept.rows[k], kept.gradients[k]) = (products.rows, products.gradients);
                kept.dot = add_product(m, &products.rows, kept.dot);
            }
        }
        kept
    }

    /// Returns vector `k` of each row and its gradient. `m` points to vector `k` of the `m` passed to [`EntryRows::new`]; `at`
    /// are the same rows.
    #[inline(always)]
    pub(crate) unsafe fn vectors(
        &self,
        m: *const f32,
        at: &[*mut f32; N],
        k: usize,
    ) -> ([V; N], [V; N]) {
        if Self::KEPT {
            return (self.rows[k], self.gradients[k]);
        }
        // SAFETY: the caller guarantees that `k` is inside the rows.
        let products = unsafe { row_products_at(V::load(m), at, k * LANES) };
        (products.rows, products.gradients)
    }
}

/// Returns the elementwise products of `m` and `N` rows, all `width` floats long, summed over vectors but not
/// over lanes.
#[inline(always)]
pub(super) unsafe fn multiway_dot<V: F32x16, const N: usize>(
    m: *const f32,
    rows: &[*mut f32; N],
    width: usize,
) -> V {
    let mut sum = V::zero();
    for k in (0..width).step_by(LANES) {
        // SAFETY: the caller guarantees that all are `width` floats long.
        unsafe {
            let mut vectors = [V::zero(); N];
            for n in 0..N {
                vectors[n] = V::load(rows[n].add(k));
            }
            sum = add_product(V::load(m.add(k)), &vectors, sum);
        }
    }
    sum
}

/// Returns `sum` plus the elementwise product of `m` and the rows.
#[inline(always)]
fn add_product<V: F32x16, const N: usize>(m: V, rows: &[V; N], sum: V) -> V {
    let mut product = m;
    for n in 0..N - 1 {
        product = product * rows[n];
    }
    product.mul_add(rows[N - 1], sum)
}
