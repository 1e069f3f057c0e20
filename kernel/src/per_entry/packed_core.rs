//! Value, gradients and core update of one entry in one pass over a full core.
//!
//! With T_n the outer product of the rows after mode n, and M_0 the core:
//! ```text
//! for each entry (u_1, ..., u_N, x):
//!     T_n = u_{n+1} (x) ... (x) u_N                  for every mode but the last two
//!     for each slice i of the core (mode 1):
//!         G[i] += eta w e' u_1'[i] T_1'              update of the previous entry (primed)
//!         d_1[i] = <G[i], T_1>;  M_1 += u_1[i] G[i]
//!     for n = 2, ..., N - 2: the same on M_{n-1}, which gives d_n and M_n
//!     d_{N-1}, d_N and the value from the last two modes of M_{N-2}
//!     queue the core update of this entry
//! ```
//! Optimizations:
//! 1. The core update of an entry is delayed to the pass of the next entry. So every value of the core is read
//!    and written once per entry, with the same result as Algorithm 1.
//! 2. The core is stored without the padding of its last mode ([`PackedLayout`]): 9 vectors instead of 12 per
//!    slice at rank 12.
//! 3. A slice is processed in tiles of [`PackedVector::PACKED_TILE`] vectors, so that the sums of M and the
//!    vectors of T stay in registers.
//!
//! # Safety
//! Obligations of all functions:
//! - `core` has [`PackedLayout::core_len`] floats, and one vector more for [`pack`] and [`unpack`];
//! - `work` has `PackedLayout::work_len` floats, prepared by [`PackedLayout::prepare_work`];
//! - no other thread accesses them, and the machine has the instruction set of the vector type.
#![allow(unsafe_code)]

use super::packed_core_layout::PackedLayout;
use crate::simd::packed_vector::PackedVector;
use crate::simd::{F32x16, LANES, leaf, padded_len};

/// The core update of a pass: none, addition of the gradient, or addition followed by the projection onto values of at least 0.
pub(crate) const CORE_FIXED: u8 = 0;
pub(crate) const CORE_ADD: u8 = 1;
pub(crate) const CORE_NONNEG: u8 = 2;

/// Packs a core that is [`PackedLayout::is_packed`], one vector at a time. `out` has one vector more than the
/// packed core.
///
/// # Safety
/// See the module docs.
#[inline(always)]
pub(crate) unsafe fn pack<V: F32x16>(layout: &PackedLayout, core: *const f32, out: *mut f32) {
    let rank = layout.ranks[layout.ranks.len() - 2];
    // SAFETY: a packed row is shorter than a vector. The zeros that follow it are overwritten by the next row.
    unsafe {
        let mut from = core;
        for plane in (0..layout.core_len()).step_by(layout.plane_vectors * LANES) {
            for j in 0..rank {
                V::load(from).store(out.add(plane + j * layout.plane_row_stride));
                from = from.add(LANES);
            }
        }
    }
}

/// Copies a packed core back to the padded layout of the model.
///
/// # Safety
/// See the module docs.
#[inline(always)]
pub(crate) unsafe fn unpack<V: F32x16>(layout: &PackedLayout, from: *const f32, core: *mut f32) {
    let rank = layout.ranks[layout.ranks.len() - 2];
    // SAFETY: as in `pack`.
    unsafe {
        let mask = V::load(layout.mask.as_ptr());
        let mut to = core;
        for plane in (0..layout.core_len()).step_by(layout.plane_vectors * LANES) {
            for j in 0..rank {
                let row = V::load(from.add(plane + j * layout.plane_row_stride));
                (row * mask).store(to);
                to = to.add(LANES);
            }
        }
    }
}

/// Returns values of the core after the update of an entry.
#[inline(always)]
fn updated<V: F32x16, const CORE_UPDATE: u8>(g: V, outer: V, scale: V) -> V {
    let g = scale.mul_add(outer, g);
    if CORE_UPDATE == CORE_NONNEG {
        g.max_zero()
    } else {
        g
    }
}

/// Offsets in `work` of the outer product T_1 of this entry and of the previous entry. They swap at every entry.
#[derive(Clone, Copy)]
pub(crate) struct OuterBuffers {
    current: usize,
    previous: usize,
}

impl OuterBuffers {
    pub(crate) fn new(layout: &PackedLayout) -> OuterBuffers {
        OuterBuffers {
            current: layout.t_starts[0],
            previous: layout.previous_t,
        }
    }
}

/// Applies the queued core update. Call it after the last entry.
///
/// # Safety
/// See the module docs.
#[inline(always)]
pub(crate) unsafe fn flush_core_update<V: PackedVector, const CORE_UPDATE: u8>(
    layout: &PackedLayout,
    buffers: OuterBuffers,
    core: *mut f32,
    work: *mut f32,
) {
    // SAFETY: the caller guarantees the lengths of core and `work`.
    unsafe {
        let (u, t) = (work.add(layout.previous_u), work.add(buffers.previous));
        let mut g = core;
        for i in 0..layout.ranks[0] {
            for l in 0..layout.slice_vectors[0] {
                let t = V::load(t.add(l * LANES));
                updated::<V, CORE_UPDATE>(V::load(g), t, V::splat(*u.add(i))).store(g);
                g = g.add(LANES);
            }
        }
    }
}

leaf! {
    /// Returns the value at the entry whose rows are in `work`, and writes the gradients beside the rows. The
    /// pass applies the queued core update and keeps T_1 for [`queue_core_update`].
    pub(crate) unsafe fn gradients<V: PackedVector, const CORE_UPDATE: u8>(layout: &PackedLayout, buffers: OuterBuffers, core: *mut f32, work: *mut f32) -> f32
        = gradients_body;
}

#[inline(always)]
unsafe fn gradients_body<V: PackedVector, const CORE_UPDATE: u8>(
    layout: &PackedLayout,
    buffers: OuterBuffers,
    core: *mut f32,
    work: *mut f32,
) -> f32 {
    let deepest = layout.slice_vectors.len() - 1;
    // SAFETY: the caller guarantees the lengths of core and `work`.
    unsafe {
        outer_products::<V>(layout, buffers, work);
        contract_mode::<V, CORE_UPDATE, true>(layout, 0, buffers, core, work);
        for n in 1..=deepest {
            contract_mode::<V, CORE_FIXED, false>(
                layout,
                n,
                buffers,
                work.add(layout.m_starts[n - 1]),
                work,
            );
        }
        let t = work.add(if deepest == 0 {
            buffers.current
        } else {
            layout.t_starts[deepest]
        });
        let m = work.add(layout.m_starts[deepest]);
        let (mut even, mut odd) = (V::zero(), V::zero());
        let mut at = 0;
        while at + LANES < layout.plane_vectors * LANES {
            let next = at + LANES;
            even = V::load(t.add(at)).mul_add(V::load(m.add(at)), even);
            odd = V::load(t.add(next)).mul_add(V::load(m.add(next)), odd);
            at += 2 * LANES;
        }
        if at < layout.plane_vectors * LANES {
            even = V::load(t.add(at)).mul_add(V::load(m.add(at)), even);
        }
        let value = (even + odd).sum();
        gradients_of_last_two::<V>(layout, m, work);
        value
    }
}

/// Queues the core update of the current entry: `scale` times the outer product of its rows.
///
/// # Safety
/// See the module docs; [`gradients`] must have run for this entry.
#[inline(always)]
pub(crate) unsafe fn queue_core_update<V: PackedVector>(
    layout: &PackedLayout,
    buffers: &mut OuterBuffers,
    work: *mut f32,
    scale: f32,
) {
    (buffers.current, buffers.previous) = (buffers.previous, buffers.current);
    let scale = V::splat(scale);
    // SAFETY: rows of the first mode are `padded_len(ranks[0])` floats long.
    unsafe {
        let (u, to) = (work.add(layout.row_starts[0]), work.add(layout.previous_u));
        for k in (0..padded_len(layout.ranks[0])).step_by(LANES) {
            (V::load(u.add(k)) * scale).store(to.add(k));
        }
    }
}

/// Computes T of every mode but the last two.
#[inline(always)]
unsafe fn outer_products<V: PackedVector>(
    layout: &PackedLayout,
    buffers: OuterBuffers,
    work: *mut f32,
) {
    let last = layout.ranks.len() - 1;
    let t_of = |n: usize| {
        if n == 0 {
            buffers.current
        } else {
            layout.t_starts[n]
        }
    };
    // SAFETY: the caller guarantees the length of `work`; the gather indices are below [`LANES`].
    unsafe {
        let (v, w) = (
            work.add(layout.row_starts[last - 1]),
            work.add(layout.row_starts[last]),
        );
        let t = work.add(t_of(last - 2));
        if layout.gather_indices.is_empty() {
            let vectors = layout.plane_row_stride / LANES;
            for j in 0..layout.ranks[last - 1] {
                let vj = V::splat(*v.add(j));
                for k in 0..vectors {
                    let at = (j * vectors + k) * LANES;
                    (vj * V::load(w.add(k * LANES))).store(t.add(at));
                }
            }
        } else {
            let (v, w) = (V::load(v), V::load(w));
            for (l, [from_v, from_w]) in layout.gather_indices.iter().enumerate() {
                let product = v.permute(from_v.as_ptr()) * w.permute(from_w.as_ptr());
                product.store(t.add(l * LANES));
            }
        }
        for n in (0..last - 2).rev() {
            let (from, to) = (work.add(t_of(n + 1)), work.add(t_of(n)));
            let row = work.add(layout.row_starts[n + 1]);
            let vectors = layout.slice_vectors[n + 1];
            for i in 0..layout.ranks[n + 1] {
                let ui = V::splat(*row.add(i));
                for l in 0..vectors {
                    let at = (i * vectors + l) * LANES;
                    (ui * V::load(from.add(l * LANES))).store(to.add(at));
                }
            }
        }
    }
}

/// Contracts mode `n` of `core`, whose earlier modes are contracted already: computes d_n and M_n. Only the pass
/// over the first mode, which reads the whole core, is compiled for all tile sizes.
#[inline(always)]
unsafe fn contract_mode<V: PackedVector, const CORE_UPDATE: u8, const FIRST_MODE: bool>(
    layout: &PackedLayout,
    n: usize,
    buffers: OuterBuffers,
    core: *mut f32,
    work: *mut f32,
) {
    let t = if n == 0 {
        buffers.current
    } else {
        layout.t_starts[n]
    };
    let (rank, vectors) = (layout.ranks[n], layout.slice_vectors[n]);
    // SAFETY: the caller guarantees the lengths of core and `work`; tiles lie inside the slices.
    unsafe {
        let products = work.add(layout.products_start);
        let most = if FIRST_MODE {
            V::PACKED_TILE
        } else {
            V::PACKED_TILE.min(4)
        };
        let mut tiles = vectors.div_ceil(most);
        let mut l = 0;
        while tiles > 0 {
            let k = (vectors - l).div_ceil(tiles);
            let at = l * LANES;
            let tile = Tile {
                core: core.add(at),
                t: work.add(t + at),
                m: work.add(layout.m_starts[n] + at),
                previous_t: work.add(buffers.previous + at),
                u: work.add(layout.row_starts[n]),
                previous_u: work.add(layout.previous_u),
                rank,
                step: vectors * LANES,
                products,
                first: l == 0,
            };
            match k {
                1 => tile.contract::<V, 1, CORE_UPDATE>(),
                2 if const { V::PACKED_TILE >= 2 } => tile.contract::<V, 2, CORE_UPDATE>(),
                3 if const { V::PACKED_TILE >= 3 } => tile.contract::<V, 3, CORE_UPDATE>(),
                4 if const { V::PACKED_TILE >= 4 } => tile.contract::<V, 4, CORE_UPDATE>(),
                5 if const { FIRST_MODE && V::PACKED_TILE >= 5 } => {
                    tile.contract::<V, 5, CORE_UPDATE>()
                }
                6 if const { FIRST_MODE && V::PACKED_TILE >= 6 } => {
                    tile.contract::<V, 6, CORE_UPDATE>()
                }
                7 if const { FIRST_MODE && V::PACKED_TILE >= 7 } => {
                    tile.contract::<V, 7, CORE_UPDATE>()
                }
                8 if const { FIRST_MODE && V::PACKED_TILE >= 8 } => {
                    tile.contract::<V, 8, CORE_UPDATE>()
                }
                9 if const { FIRST_MODE && V::PACKED_TILE >= 9 } => {
                    tile.contract::<V, 9, CORE_UPDATE>()
                }
                _ => unreachable!("tiles have at most {most} vectors"),
            }
            l += k;
            tiles -= 1;
        }
        row_sums_padded::<V>(
            products,
            rank,
            work.add(layout.gradients_start + layout.row_starts[n]),
        );
    }
}

/// A few consecutive vectors of all slices of a mode.
struct Tile {
    core: *mut f32,
    t: *const f32,
    m: *mut f32,
    previous_t: *const f32,
    u: *const f32,
    previous_u: *const f32,
    rank: usize,
    /// Distance of two slices, in floats.
    step: usize,
    products: *mut f32,
    first: bool,
}

impl Tile {
    // Without optimization, all tile sizes inlined into one function would need megabytes of stack.
    #[cfg_attr(not(debug_assertions), inline(always))]
    unsafe fn contract<V: PackedVector, const K: usize, const CORE_UPDATE: u8>(&self) {
        // SAFETY: the caller guarantees that all addresses are valid for `K` vectors of `rank` slices.
        unsafe {
            let mut sums = [V::zero(); K];
            let mut t = [V::zero(); K];
            for l in 0..K {
                t[l] = V::load(self.t.add(l * LANES));
            }
            let mut slice = self.core;
            for i in 0..self.rank {
                let ui = V::splat(*self.u.add(i));
                // Read once: the compiler cannot exclude that stores to the core change it.
                let due = V::splat(*self.previous_u.add(i));
                let product = self.products.add(i * LANES);
                let mut p = if self.first {
                    V::zero()
                } else {
                    V::load(product)
                };
                for l in 0..K {
                    let at = slice.add(l * LANES);
                    let mut g = V::load(at);
                    if CORE_UPDATE != CORE_FIXED {
                        let old = V::load(self.previous_t.add(l * LANES));
                        g = updated::<V, CORE_UPDATE>(g, old, due);
                        g.store(at);
                    }
                    p = g.mul_add(t[l], p);
                    sums[l] = ui.mul_add(g, sums[l]);
                }
                p.store(product);
                // After the last slice, the address of a tile may lie beyond the core.
                slice = slice.wrapping_add(self.step);
            }
            for l in 0..K {
                sums[l].store(self.m.add(l * LANES));
            }
        }
    }
}

/// Computes the gradients of the last two modes from M, the core with all other modes contracted.
#[inline(always)]
unsafe fn gradients_of_last_two<V: PackedVector>(
    layout: &PackedLayout,
    m: *const f32,
    work: *mut f32,
) {
    let last = layout.ranks.len() - 1;
    let rank = layout.ranks[last - 1];
    // SAFETY: the caller guarantees the length of `work`; M has one vector more than its plane.
    unsafe {
        let (v, w) = (
            work.add(layout.row_starts[last - 1]),
            work.add(layout.row_starts[last]),
        );
        let gradient = work.add(layout.gradients_start + layout.row_starts[last]);
        let products = work.add(layout.products_start);
        let vectors = padded_len(layout.ranks[last]) / LANES;
        for k in 0..vectors {
            let wk = V::load(w.add(k * LANES));
            let mut sum = V::zero();
            for j in 0..rank {
                let row = V::load(m.add(j * layout.plane_row_stride + k * LANES));
                sum = V::splat(*v.add(j)).mul_add(row, sum);
                let product = products.add(j * LANES);
                if k == 0 {
                    (row * wk).store(product);
                } else {
                    row.mul_add(wk, V::load(product)).store(product);
                }
            }
            // A vector loaded from a plane without padding continues into the next row.
            if !layout.gather_indices.is_empty() {
                sum = sum * V::load(layout.mask.as_ptr());
            }
            sum.store(gradient.add(k * LANES));
        }
        row_sums_padded::<V>(
            products,
            rank,
            work.add(layout.gradients_start + layout.row_starts[last - 1]),
        );
    }
}

/// Writes the sums of `count` vectors to `out`, padded with zeros to the length of a row.
#[inline(always)]
unsafe fn row_sums_padded<V: PackedVector>(vectors: *mut f32, count: usize, out: *mut f32) {
    // SAFETY: the buffer has three vectors more than the longest row has components.
    unsafe {
        for k in count..count.next_multiple_of(4) {
            V::zero().store(vectors.add(k * LANES));
        }
        let mut k = 0;
        while k < count {
            let tile_rows = (count - k).min(LANES);
            V::row_sums(vectors.add(k * LANES), tile_rows).store(out.add(k));
            k += LANES;
        }
    }
}
