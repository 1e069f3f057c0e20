//! The normal equations of one row for a block of up to 8 columns, and their solution.
//!
//! The equations are those of [`subset_rows`](super::subset_rows). Sums are in `f32` over the entries that a row has in a chunk,
//! and in `f64` beyond. Equations are solved in `f64`.
//!
//! 1. One column has vectors of entries: sum w d^2 and sum w d r are inner products of consecutive numbers.
//! 2. Several columns have vectors of columns, with several sums side by side if they are short.
//! 3. For a row with a single entry the solution has the closed form t + d w (r - d . t) / (lambda + w d . d).
#![allow(unsafe_code)]

use s3cmtf_kernel::simd::{F32x16, LANES};

/// The normal equations of a row without its penalty.
pub(crate) struct Sums<const W: usize> {
    /// The lower triangle of the sum of w d d^T.
    pub(crate) gram: [[f64; W]; W],
    /// The sum of w d r.
    pub(crate) rhs: [f64; W],
}

impl<const W: usize> Sums<W> {
    #[inline(always)]
    pub(crate) fn zero() -> Sums<W> {
        Sums {
            gram: [[0.0; W]; W],
            rhs: [0.0; W],
        }
    }

    /// Adds entries. Without weights, `w` is empty.
    ///
    /// # Safety
    /// The machine has the level of `V`, and there are as many residuals and weights as entries.
    #[inline(always)]
    pub(crate) unsafe fn add<V: F32x16, const U: usize>(
        &mut self,
        d: &[[f32; W]],
        r: &[f32],
        w: &[f32],
    ) {
        // SAFETY: the caller's obligations.
        unsafe {
            if W == 1 {
                let [square, product] = inner_products::<V>(d.as_flattened(), r, w);
                self.gram[0][0] += square;
                self.rhs[0] += product;
            } else if w.is_empty() {
                self.add_outer_products::<V, U, false>(d, r, w);
            } else {
                self.add_outer_products::<V, U, true>(d, r, w);
            }
        }
    }

    /// Adds the outer products of several columns, with `U` sums side by side.
    #[inline(always)]
    unsafe fn add_outer_products<V: F32x16, const U: usize, const WEIGHTED: bool>(
        &mut self,
        d: &[[f32; W]],
        r: &[f32],
        w: &[f32],
    ) {
        let mut gram = [[[0.0f32; W]; W]; U];
        let mut rhs = [[0.0f32; W]; U];
        let whole = d.len() / U * U;
        for k in 0..whole / U {
            for u in 0..U {
                // SAFETY: the caller's obligations; U k + u is the number of an entry.
                unsafe {
                    add_entry::<V, W, WEIGHTED>(d, r, w, U * k + u, &mut gram[u], &mut rhs[u]);
                }
            }
        }
        for k in whole..d.len() {
            // SAFETY: the caller's obligations.
            unsafe { add_entry::<V, W, WEIGHTED>(d, r, w, k, &mut gram[0], &mut rhs[0]) };
        }
        for u in 1..U {
            for i in 0..W {
                for j in 0..W {
                    gram[0][i][j] += gram[u][i][j];
                }
                rhs[0][i] += rhs[u][i];
            }
        }
        for i in 0..W {
            for j in 0..W {
                self.gram[i][j] += f64::from(gram[0][i][j]);
            }
            self.rhs[i] += f64::from(rhs[0][i]);
        }
    }

    /// Returns the solution for a penalty, or `None` if the equations are singular. Columns from `count` on are 0.
    #[inline(always)]
    pub(crate) fn solve(&self, count: usize, penalty: f64, target: &[f64; W]) -> Option<[f64; W]> {
        let (mut l, mut x) = (self.gram, self.rhs);
        for i in 0..W {
            x[i] += penalty * target[i];
            l[i][i] = if i < count { l[i][i] + penalty } else { 1.0 };
        }
        let mut inverse = [0.0f64; W];
        for i in 0..W {
            let diagonal = l[i][i];
            for j in 0..=i {
                let mut rest = l[i][j];
                for k in 0..j {
                    rest -= l[i][k] * l[j][k];
                }
                if i != j {
                    l[i][j] = rest * inverse[j];
                } else if rest > 1e-14 * diagonal && rest.is_finite() {
                    inverse[i] = 1.0 / rest.sqrt();
                } else {
                    return None;
                }
            }
        }
        for i in 0..W {
            for k in 0..i {
                x[i] -= l[i][k] * x[k];
            }
            x[i] *= inverse[i];
        }
        for i in (0..W).rev() {
            for k in i + 1..W {
                x[i] -= l[k][i] * x[k];
            }
            x[i] *= inverse[i];
        }
        Some(x)
    }
}

/// Returns the solution of a row with a single entry.
#[inline(always)]
pub(super) fn one_entry_solution<const W: usize>(
    penalty: f64,
    target: &[f64; W],
    d: &[f32; W],
    r: f32,
    w: f32,
) -> [f64; W] {
    let (w, mut square, mut residual) = (f64::from(w), 0.0, f64::from(r));
    for j in 0..W {
        let d = f64::from(d[j]);
        square += d * d;
        residual -= d * target[j];
    }
    let factor = w * residual / (penalty + w * square);
    let mut solution = *target;
    for j in 0..W {
        solution[j] += factor * f64::from(d[j]);
    }
    solution
}

/// Writes a row; elements that are not finite are 0.
#[inline(always)]
pub(crate) fn write<const W: usize>(solution: &[f64; W], to: &mut [f32]) {
    for j in 0..W {
        let x = solution[j] as f32;
        to[j] = if x.is_finite() { x } else { 0.0 };
    }
}

/// Adds w d d^T and w d r of entry `k`.
#[inline(always)]
unsafe fn add_entry<V: F32x16, const W: usize, const WEIGHTED: bool>(
    d: &[[f32; W]],
    r: &[f32],
    w: &[f32],
    k: usize,
    gram: &mut [[f32; W]; W],
    rhs: &mut [f32; W],
) {
    // SAFETY: the caller guarantees that there is such an entry.
    let (d, r) = unsafe { (*d.get_unchecked(k), *r.get_unchecked(k)) };
    let mut weighted = d;
    if WEIGHTED {
        // SAFETY: the caller guarantees that there is a weight.
        let w = unsafe { *w.get_unchecked(k) };
        for j in 0..W {
            weighted[j] *= w;
        }
    }
    for i in 0..W {
        for j in 0..W {
            gram[i][j] = V::mul_add_one(weighted[i], d[j], gram[i][j]);
        }
    }
    for j in 0..W {
        rhs[j] = V::mul_add_one(weighted[j], r, rhs[j]);
    }
}

/// Returns the sums of w d^2 and of w d r.
#[inline(always)]
unsafe fn inner_products<V: F32x16>(d: &[f32], r: &[f32], w: &[f32]) -> [f64; 2] {
    let whole = d.len() / LANES * LANES;
    let (mut square, mut product) = (0.0f32, 0.0f32);
    for k in whole..d.len() {
        let weighted = if w.is_empty() { d[k] } else { d[k] * w[k] };
        square = V::mul_add_one(weighted, d[k], square);
        product = V::mul_add_one(weighted, r[k], product);
    }
    if whole > 0 {
        // SAFETY: all slices have the vectors.
        unsafe {
            let mut sums = [V::zero(); 2];
            for k in (0..whole).step_by(LANES) {
                let d = V::load(d.as_ptr().add(k));
                let weighted = if w.is_empty() {
                    d
                } else {
                    d * V::load(w.as_ptr().add(k))
                };
                sums[0] = weighted.mul_add(d, sums[0]);
                sums[1] = weighted.mul_add(V::load(r.as_ptr().add(k)), sums[1]);
            }
            square += sums[0].sum();
            product += sums[1].sum();
        }
    }
    [f64::from(square), f64::from(product)]
}
