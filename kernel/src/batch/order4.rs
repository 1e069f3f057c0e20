//! Order 4 with a full core, non-fiber rows of at most half a vector.
//!
//! With the fiber row u, the non-fiber rows a, b and c, and the value x of an entry:
//! ```text
//! for each batch:
//!     M = sum_l u[l] G[l]                    (8 x 8 x 8)
//!     for each entry (a, b, c, x):
//!         Q = sum_i a[i] M[i, :, :];  S = sum_k c[k] M[:, :, k]
//!         dc = Q^T b;  da = S b;  db = Q c
//!         e = x - dc . c
//!         keep w_e e a and b (x) c
//!         update a, b, c
//!     E = sum over entries of (w_e e a) (x) b (x) c
//!     update u and G with E; M for the next batch
//! ```
//! Optimizations:
//! 1. M is packed: one vector holds two rows, X[i][p] = (M[i][2p], M[i][2p+1]). Rows of half a vector would waste
//!    half of every instruction.
//! 2. T[k][p] is X with the first mode along the lanes, so that Q and S are computed by the same function.
//! 3. E is summed after the batch, packed like X, with a tile of it in registers.
//!
//! # Safety
//! The obligations are those of [`super::dispatch`].
#![allow(unsafe_code)]

use super::iter::{BatchIter, single_vector_modes, weighted_residual_vector};
use super::job::{BatchJob, MAX_BATCH_LEN, RowUpdate};
use super::update::{first_fiber_product, update_core_and_fiber};
use crate::entries::block::FiberBatch;
use crate::shape::core_shape::CoreShape;
use crate::simd::LANES;
use crate::simd::{F32x16, leaf};

/// Maximum number of components per row.
const J: usize = LANES / 2;
const PAIRS: usize = J / 2;
/// Number of floats of a packed 8 x 8 x 8 core.
const CUBE: usize = J * PAIRS * LANES;

/// Number of floats of `work` beyond M, E and a row of the fiber mode.
pub(super) const WORK_LEN: usize = 2 * CUBE + LANES * LANES + MAX_BATCH_LEN * (1 + PAIRS) * LANES;

/// Returns whether this kernel supports a core of this shape over the non-fiber modes.
pub(super) fn supports(shape: &CoreShape) -> bool {
    shape.order() == 3 && shape.ranks().iter().all(|&j| j <= J)
}

leaf! {
    /// Processes batches of a tensor of order 4 with a full core.
    pub(crate) unsafe fn run<V: F32x16>(job: &BatchJob<'_>, batches: &[FiberBatch]) -> f64
        = run_body;
}

#[inline(always)]
unsafe fn run_body<V: F32x16>(job: &BatchJob<'_>, batches: &[FiberBatch]) -> f64 {
    // SAFETY: the caller guarantees the pointers of the job; the buffers in `work` do not overlap.
    unsafe {
        let non_fiber = single_vector_modes(job);
        let [ma, mb, mc] = non_fiber;
        let (ja, jb) = (job.shape.ranks()[0], job.shape.ranks()[1]);
        let vectors = ja * jb;
        let m = job.work;
        let e = m.add(vectors * LANES);
        let x = e.add(vectors * LANES);
        let t = x.add(CUBE);
        let square = t.add(CUBE);
        let scaled_a = square.add(LANES * LANES);
        let outer_bc = scaled_a.add(MAX_BATCH_LEN * LANES);
        let gradients = outer_bc.add(MAX_BATCH_LEN * PAIRS * LANES);
        // The loops below write only the lower halves of the vectors of E, and only the components of X below
        // the ranks.
        for k in 0..vectors {
            V::zero().store(e.add(k * LANES));
        }
        clear_packed::<V>(x);
        let update = RowUpdate::<V>::new(job.eta, job.regularizer);
        first_fiber_product::<V>(job, batches, vectors, m);
        let mut total = 0.0f64;
        for (batch_index, (batch, entries)) in
            BatchIter::<3, 1>::new(job, &non_fiber, batches, job.weighted).enumerate()
        {
            pack::<V>(job.shape, m, x);
            for p in 0..PAIRS {
                let mut rows = [V::zero(); LANES];
                for i in 0..J {
                    rows[i] = V::load(x.add((i * PAIRS + p) * LANES));
                }
                let columns = V::transpose(rows);
                for k in 0..LANES {
                    columns[k].store(square.add(k * LANES));
                }
                for k in 0..J {
                    V::load_halves(square.add(k * LANES), square.add((J + k) * LANES))
                        .store(t.add((k * PAIRS + p) * LANES));
                }
            }
            let mut squared_error = V::zero();
            for (n, entry) in entries.enumerate() {
                let (ra, rb, rc) = (*entry, *entry.add(1), *entry.add(2));
                let (pa, pb, pc) = (ma.row(ra), mb.row(rb), mc.row(rc));
                let q = contract_packed::<V>(x, pa);
                let s = contract_packed::<V>(t, pc);
                let mut pairs = [V::zero(); PAIRS];
                let (mut da, mut dc) = (V::zero(), V::zero());
                for p in 0..PAIRS {
                    pairs[p] = V::splat_halves(*pb.add(2 * p), *pb.add(2 * p + 1));
                    da = pairs[p].mul_add(s[p], da);
                    dc = pairs[p].mul_add(q[p], dc);
                }
                let (da, dc) = (da.fold_halves(), dc.fold_halves());
                let (a, b, c) = (V::load(pa), V::load(pb), V::load(pc));
                let value = V::splat(f32::from_bits(*entry.add(3)));
                let residual = value - (dc * c).splat_sum();
                let weighted_residual = weighted_residual_vector(residual, entry, 3, job.weighted);
                squared_error = residual.mul_add(weighted_residual, squared_error);
                let c_twice = V::load_halves(pc, pc);
                let mut parts = q;
                for p in 0..PAIRS {
                    parts[p] = q[p] * c_twice;
                    let other = outer_bc.add((n * PAIRS + p) * LANES);
                    (pairs[p] * c_twice).store(other);
                }
                let db = V::half_sums(parts);
                (a * weighted_residual).store(scaled_a.add(n * LANES));
                let scale = weighted_residual * V::splat(-1.0);
                update.apply(a, ma.prior_at(0), da, scale, ma.penalty(ra), pa);
                update.apply(b, mb.prior_at(0), db, scale, mb.penalty(rb), pb);
                update.apply(c, mc.prior_at(0), dc, scale, mc.penalty(rc), pc);
            }
            total += f64::from(squared_error.first_lane());
            for i in (0..ja).step_by(TILE_ROWS) {
                let sums = outer_sums::<V>(scaled_a.add(i), outer_bc, batch.len as usize);
                for r in 0..TILE_ROWS.min(ja - i) {
                    for p in 0..jb.div_ceil(2) {
                        let low = e.add(((i + r) * jb + 2 * p) * LANES);
                        if 2 * p + 1 < jb {
                            sums[r][p].store_halves(low, low.add(LANES));
                        } else {
                            sums[r][p].fold_halves().store(low);
                        }
                    }
                }
            }
            let next = batches.get(batch_index + 1);
            update_core_and_fiber::<V>(job, batch, next, e, m, gradients, vectors);
        }
        total
    }
}

/// Writes zeros to a packed core. [`pack`] writes only components below the ranks.
#[inline(always)]
pub(super) unsafe fn clear_packed<V: F32x16>(x: *mut f32) {
    for k in (0..CUBE).step_by(LANES) {
        // SAFETY: `x` has [`CUBE`] floats.
        unsafe { V::zero().store(x.add(k)) };
    }
}

/// Packs a core over the non-fiber modes: two of its rows per vector of `x`.
#[inline(always)]
pub(crate) unsafe fn pack<V: F32x16>(shape: &CoreShape, m: *const f32, x: *mut f32) {
    let zero = [0.0f32; J];
    let (ja, jb) = (shape.ranks()[0], shape.ranks()[1]);
    // SAFETY: `m` is a core of this shape, and `x` has [`CUBE`] floats.
    unsafe {
        for i in 0..ja {
            for p in 0..jb.div_ceil(2) {
                let low = m.add((i * jb + 2 * p) * LANES);
                let high = if 2 * p + 1 < jb {
                    low.add(LANES)
                } else {
                    zero.as_ptr()
                };
                V::load_halves(low, high).store(x.add((i * PAIRS + p) * LANES));
            }
        }
    }
}

/// Returns the value of a packed core at three rows, not yet summed over lanes.
#[inline(always)]
pub(crate) unsafe fn product<V: F32x16>(
    x: *const f32,
    a: *const f32,
    b: *const f32,
    c: *const f32,
) -> V {
    // SAFETY: `x` has [`CUBE`] floats and each row has [`J`].
    unsafe {
        let q = contract_packed::<V>(x, a);
        let mut sum = V::zero();
        for p in 0..PAIRS {
            let pair = V::splat_halves(*b.add(2 * p), *b.add(2 * p + 1));
            sum = pair.mul_add(q[p], sum);
        }
        sum * V::load_halves(c, c)
    }
}

/// Contracts the first mode of a packed core with a row.
#[inline(always)]
unsafe fn contract_packed<V: F32x16>(cube: *const f32, row: *const f32) -> [V; PAIRS] {
    // SAFETY: `cube` has [`CUBE`] floats and `row` has [`J`].
    unsafe {
        let (mut even, mut odd) = ([V::zero(); PAIRS], [V::zero(); PAIRS]);
        for i in (0..J).step_by(2) {
            let (x, y) = (V::splat(*row.add(i)), V::splat(*row.add(i + 1)));
            for p in 0..PAIRS {
                let at = cube.add((i * PAIRS + p) * LANES);
                even[p] = x.mul_add(V::load(at), even[p]);
                odd[p] = y.mul_add(V::load(at.add(PAIRS * LANES)), odd[p]);
            }
        }
        for p in 0..PAIRS {
            even[p] = even[p] + odd[p];
        }
        even
    }
}

/// Number of rows of E whose sums are in registers at a time.
const TILE_ROWS: usize = 4;

/// Computes [`TILE_ROWS`] rows of E: sums over the entries of a batch of components of `scaled_a` times
/// `outer_bc`.
#[inline(always)]
unsafe fn outer_sums<V: F32x16>(
    scaled_a: *const f32,
    outer_bc: *const f32,
    count: usize,
) -> [[V; PAIRS]; TILE_ROWS] {
    // SAFETY: both buffers hold `count` entries.
    unsafe {
        let mut sums = [[V::zero(); PAIRS]; TILE_ROWS];
        for n in 0..count {
            let mut other = [V::zero(); PAIRS];
            for p in 0..PAIRS {
                other[p] = V::load(outer_bc.add((n * PAIRS + p) * LANES));
            }
            for r in 0..TILE_ROWS {
                let first = V::splat(*scaled_a.add(n * LANES + r));
                for p in 0..PAIRS {
                    sums[r][p] = first.mul_add(other[p], sums[r][p]);
                }
            }
        }
        sums
    }
}
