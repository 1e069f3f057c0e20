//! Value, gradients and core step at one entry, in one pass over the core.
//!
//! With T = u_2 (x) ... (x) u_N, slice i of the core times T is entry i of the first gradient, and the
//! slices weighted with u_1 sum up to a core of one order less, on which the same goes on. Both come
//! from one reading of the core, and the core's own step, e u_1 (x) T of the entry before, is made on
//! the way: every number of the core is read and written once per entry, in the order of Algorithm 1.
//!
//! For that the core lies here without the padding of its last mode: the last two modes together are
//! a plane of whole vectors (9 instead of 12 at rank 12). Cores of less than three modes get modes of
//! rank 1 in front.
//!
//! # Safety
//! Everywhere here: pointers are to as many floats as [`PackedLayout`] says.
#![allow(unsafe_code)]

use super::batch_job::{Regularizer, updated};
use super::packed_core_layout::PackedLayout;
use crate::simd::{F32x16, Portable, Scalar, leaf};

use crate::simd::{LANES, padded_len};

/// What passes over a core need beyond [`F32x16`].
pub(super) trait PackedVector: F32x16 {
    /// How many sums of vectors fit into registers next to everything else.
    const PACKED_TILE: usize;

    /// The floats at these places.
    ///
    /// # Safety
    /// There must be [`LANES`] places, each below [`LANES`].
    #[inline(always)]
    unsafe fn permute(self, places: *const u32) -> Self {
        let (mut from, mut to) = ([0.0f32; LANES], [0.0f32; LANES]);
        // SAFETY: arrays of one line; places are below its length.
        unsafe {
            self.store(from.as_mut_ptr());
            for (k, x) in to.iter_mut().enumerate() {
                *x = from[*places.add(k) as usize];
            }
            Self::load(to.as_ptr())
        }
    }

    /// The sums of the first `count` vectors, zeros after them.
    ///
    /// # Safety
    /// `count` is at most [`LANES`]; vectors up to the next multiple of four are there, those after
    /// `count` zero.
    #[inline(always)]
    unsafe fn row_sums(vectors: *const f32, count: usize) -> Self {
        let mut sums = [0.0f32; LANES];
        // SAFETY: the caller's promise.
        unsafe {
            for (k, sum) in sums.iter_mut().enumerate().take(count) {
                *sum = Self::load(vectors.add(k * LANES)).sum();
            }
            Self::load(sums.as_ptr())
        }
    }
}

impl PackedVector for Scalar {
    const PACKED_TILE: usize = 1;
}

impl PackedVector for Portable {
    const PACKED_TILE: usize = 1;
}

/// What a pass does to the core on its way.
pub(super) const CORE_FIXED: u8 = 0;
pub(super) const CORE_ADD: u8 = 1;
pub(super) const CORE_REGULARIZED: u8 = 2;

/// [`PackedLayout::pack`] of a core that [`PackedLayout::is_packed`], a line at a time; `out` has a line more.
///
/// # Safety
/// See the module.
#[inline(always)]
pub(super) unsafe fn pack<V: F32x16>(layout: &PackedLayout, core: *const f32, out: *mut f32) {
    let rank = layout.ranks[layout.ranks.len() - 2];
    // SAFETY: rows are one line here and shorter there, where each ends in zeros until the next comes.
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

/// The way back.
///
/// # Safety
/// As of [`pack`].
#[inline(always)]
pub(super) unsafe fn unpack<V: F32x16>(layout: &PackedLayout, from: *const f32, core: *mut f32) {
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

/// What becomes of the core on the way.
#[derive(Clone, Copy)]
pub(super) struct CoreUpdate {
    pub shrink: f32,
    pub regularizer: Regularizer,
}

/// Where T of this entry and of the one before lie: they take buffers.
#[derive(Clone, Copy)]
pub(super) struct OuterBuffers {
    current: usize,
    previous: usize,
}

impl OuterBuffers {
    pub(super) fn new(layout: &PackedLayout) -> OuterBuffers {
        OuterBuffers {
            current: layout.t_starts[0],
            previous: layout.previous_t,
        }
    }
}

/// The core after the step that is due.
///
/// # Safety
/// See the module.
#[inline(always)]
pub(super) unsafe fn flush_core_update<V: PackedVector>(
    layout: &PackedLayout,
    buffers: OuterBuffers,
    core: *mut f32,
    work: *mut f32,
    by: CoreUpdate,
) {
    // SAFETY: within the lengths of the core.
    unsafe {
        let (u, t) = (work.add(layout.previous_u), work.add(buffers.previous));
        let mut g = core;
        for i in 0..layout.ranks[0] {
            for l in 0..layout.slice_vectors[0] {
                let t = V::load(t.add(l * LANES));
                updated(V::load(g), t, *u.add(i), by.shrink, by.regularizer).store(g);
                g = g.add(LANES);
            }
        }
    }
}

leaf! {
    /// The value at an entry whose rows lie in `work`; the gradients come to lie beside them. The step that
    /// is due is made on the way, and T is kept for that of this entry ([`queue_core_update`]).
    pub(super) unsafe fn gradients<V: PackedVector, const CORE_UPDATE: u8>(layout: &PackedLayout, buffers: OuterBuffers, core: *mut f32, work: *mut f32, by: CoreUpdate) -> f32
        = gradients_body;
}

#[inline(always)]
unsafe fn gradients_body<V: PackedVector, const CORE_UPDATE: u8>(
    layout: &PackedLayout,
    buffers: OuterBuffers,
    core: *mut f32,
    work: *mut f32,
    by: CoreUpdate,
) -> f32 {
    let deepest = layout.slice_vectors.len() - 1;
    // SAFETY: within the lengths of the parts of `work`.
    unsafe {
        outer_products::<V>(layout, buffers, work);
        contract_mode::<V, CORE_UPDATE, true>(layout, 0, buffers, core, work, by);
        for n in 1..=deepest {
            contract_mode::<V, CORE_FIXED, false>(
                layout,
                n,
                buffers,
                work.add(layout.m_starts[n - 1]),
                work,
                by,
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

/// Makes `scale` times the outer product of the rows the step that is due.
///
/// # Safety
/// See the module; [`gradients`] must have run.
#[inline(always)]
pub(super) unsafe fn queue_core_update<V: PackedVector>(
    layout: &PackedLayout,
    buffers: &mut OuterBuffers,
    work: *mut f32,
    scale: f32,
) {
    (buffers.current, buffers.previous) = (buffers.previous, buffers.current);
    let scale = V::splat(scale);
    // SAFETY: rows of the first mode are `padded_len(ranks[0])` long.
    unsafe {
        let (u, to) = (work.add(layout.row_starts[0]), work.add(layout.previous_u));
        for k in (0..padded_len(layout.ranks[0])).step_by(LANES) {
            (V::load(u.add(k)) * scale).store(to.add(k));
        }
    }
}

/// T for every mode but the last two.
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
    // SAFETY: within the lengths of the parts of `work`; places are inside rows of one line.
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

/// Contracts mode `n` of `core`, which has lost the modes before: its gradient, and M. The whole core is
/// worth code for all sizes of tiles, what is left of it is not.
#[inline(always)]
unsafe fn contract_mode<V: PackedVector, const CORE_UPDATE: u8, const FIRST_MODE: bool>(
    layout: &PackedLayout,
    n: usize,
    buffers: OuterBuffers,
    core: *mut f32,
    work: *mut f32,
    by: CoreUpdate,
) {
    let t = if n == 0 {
        buffers.current
    } else {
        layout.t_starts[n]
    };
    let (rank, vectors) = (layout.ranks[n], layout.slice_vectors[n]);
    // SAFETY: within the lengths of the parts of `work`; tiles are inside the slices.
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
                old_t: work.add(buffers.previous + at),
                u: work.add(layout.row_starts[n]),
                old_u: work.add(layout.previous_u),
                rank,
                step: vectors * LANES,
                products,
                first: l == 0,
            };
            match k {
                1 => tile.contract::<V, 1, CORE_UPDATE>(by),
                2 if const { V::PACKED_TILE >= 2 } => tile.contract::<V, 2, CORE_UPDATE>(by),
                3 if const { V::PACKED_TILE >= 3 } => tile.contract::<V, 3, CORE_UPDATE>(by),
                4 if const { V::PACKED_TILE >= 4 } => tile.contract::<V, 4, CORE_UPDATE>(by),
                5 if const { FIRST_MODE && V::PACKED_TILE >= 5 } => {
                    tile.contract::<V, 5, CORE_UPDATE>(by)
                }
                6 if const { FIRST_MODE && V::PACKED_TILE >= 6 } => {
                    tile.contract::<V, 6, CORE_UPDATE>(by)
                }
                7 if const { FIRST_MODE && V::PACKED_TILE >= 7 } => {
                    tile.contract::<V, 7, CORE_UPDATE>(by)
                }
                8 if const { FIRST_MODE && V::PACKED_TILE >= 8 } => {
                    tile.contract::<V, 8, CORE_UPDATE>(by)
                }
                9 if const { FIRST_MODE && V::PACKED_TILE >= 9 } => {
                    tile.contract::<V, 9, CORE_UPDATE>(by)
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

/// A few vectors of all slices of a mode.
struct Tile {
    core: *mut f32,
    t: *const f32,
    m: *mut f32,
    old_t: *const f32,
    u: *const f32,
    old_u: *const f32,
    rank: usize,
    /// Floats from slice to slice.
    step: usize,
    products: *mut f32,
    first: bool,
}

impl Tile {
    // Without optimization, all sizes in one function would need megabytes of stack.
    #[cfg_attr(not(debug_assertions), inline(always))]
    unsafe fn contract<V: PackedVector, const K: usize, const CORE_UPDATE: u8>(
        &self,
        by: CoreUpdate,
    ) {
        // SAFETY: the caller's promises.
        unsafe {
            let mut sums = [V::zero(); K];
            let mut t = [V::zero(); K];
            for l in 0..K {
                t[l] = V::load(self.t.add(l * LANES));
            }
            let mut slice = self.core;
            for i in 0..self.rank {
                let ui = V::splat(*self.u.add(i));
                // Read once: for all the compiler knows, writing the core could change it.
                let scale = *self.old_u.add(i);
                let due = V::splat(scale);
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
                        let old = V::load(self.old_t.add(l * LANES));
                        g = match CORE_UPDATE {
                            CORE_ADD => due.mul_add(old, g),
                            _ => updated(g, old, scale, by.shrink, by.regularizer),
                        };
                        g.store(at);
                    }
                    p = g.mul_add(t[l], p);
                    sums[l] = ui.mul_add(g, sums[l]);
                }
                p.store(product);
                slice = slice.add(self.step);
            }
            for l in 0..K {
                sums[l].store(self.m.add(l * LANES));
            }
        }
    }
}

/// The gradients of the last two modes, given what the others leave of the core.
#[inline(always)]
unsafe fn gradients_of_last_two<V: PackedVector>(
    layout: &PackedLayout,
    m: *const f32,
    work: *mut f32,
) {
    let last = layout.ranks.len() - 1;
    let rank = layout.ranks[last - 1];
    // SAFETY: within the lengths of the parts of `work`; M has a line more than its plane.
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
            // A line of a plane without padding ends in the next row.
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

/// The sums of `count` vectors, padded with zeros like a row.
#[inline(always)]
unsafe fn row_sums_padded<V: PackedVector>(vectors: *mut f32, count: usize, out: *mut f32) {
    // SAFETY: there are three vectors more than the longest row has numbers.
    unsafe {
        for k in count..count.next_multiple_of(4) {
            V::zero().store(vectors.add(k * LANES));
        }
        let mut k = 0;
        while k < count {
            let some = (count - k).min(LANES);
            V::row_sums(vectors.add(k * LANES), some).store(out.add(k));
            k += LANES;
        }
    }
}
