//! Value, slopes and core step at one entry, in one pass over the core.
//!
//! With T = u_2 (x) ... (x) u_N, slice i of the core times T is entry i of the first slope, and the
//! slices weighted with u_1 sum up to a core of one order less, on which the same goes on. Both come
//! from one reading of the core, and the core's own step, e u_1 (x) T of the entry before, is made on
//! the way: every number of the core is read and written once per entry, in the order of Algorithm 1.
//!
//! For that the core lies here without the padding of its last mode: the last two modes together are
//! a plane of whole lines (9 instead of 12 at rank 12). Cores of less than three modes get modes of
//! rank 1 in front.
//!
//! # Safety
//! Everywhere here: pointers are to as many floats as [`Flat`] says.
#![allow(unsafe_code)]

use super::batch_job::{Rule, moved};
use super::packed_core_layout::Flat;
use crate::simd::{F32x16, Portable, Scalar, leaf};

use crate::simd::{LANES, padded_len};

/// What passes over a core need beyond [`F32x16`].
pub(super) trait Flatten: F32x16 {
    /// How many sums of lines fit into registers next to everything else.
    const TILE: usize;

    /// The floats at these places.
    ///
    /// # Safety
    /// There must be [`LANES`] places, each below [`LANES`].
    #[inline(always)]
    unsafe fn pick(self, places: *const u32) -> Self {
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

    /// The sums of the first `count` lines, zeros after them.
    ///
    /// # Safety
    /// `count` is at most [`LANES`]; lines up to the next multiple of four are there, those after
    /// `count` zero.
    #[inline(always)]
    unsafe fn sums_of(lines: *const f32, count: usize) -> Self {
        let mut sums = [0.0f32; LANES];
        // SAFETY: the caller's promise.
        unsafe {
            for (k, sum) in sums.iter_mut().enumerate().take(count) {
                *sum = Self::load(lines.add(k * LANES)).sum();
            }
            Self::load(sums.as_ptr())
        }
    }
}

impl Flatten for Scalar {
    const TILE: usize = 1;
}

impl Flatten for Portable {
    const TILE: usize = 1;
}

/// What a pass does to the core on its way.
pub(super) const NO_STEP: u8 = 0;
pub(super) const ADD: u8 = 1;
pub(super) const STEP: u8 = 2;

/// [`Flat::pack`] of a core that [`Flat::is_packed`], a line at a time; `out` has a line more.
///
/// # Safety
/// See the module.
#[inline(always)]
pub(super) unsafe fn pack<L: F32x16>(flat: &Flat, core: *const f32, out: *mut f32) {
    let rank = flat.ranks[flat.ranks.len() - 2];
    // SAFETY: rows are one line here and shorter there, where each ends in zeros until the next comes.
    unsafe {
        let mut from = core;
        for plane in (0..flat.core_len()).step_by(flat.plane * LANES) {
            for j in 0..rank {
                L::load(from).store(out.add(plane + j * flat.step));
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
pub(super) unsafe fn unpack<L: F32x16>(flat: &Flat, from: *const f32, core: *mut f32) {
    let rank = flat.ranks[flat.ranks.len() - 2];
    // SAFETY: as in `pack`.
    unsafe {
        let mask = L::load(flat.mask.as_ptr());
        let mut to = core;
        for plane in (0..flat.core_len()).step_by(flat.plane * LANES) {
            for j in 0..rank {
                let row = L::load(from.add(plane + j * flat.step));
                (row * mask).store(to);
                to = to.add(LANES);
            }
        }
    }
}

/// What becomes of the core on the way.
#[derive(Clone, Copy)]
pub(super) struct CoreStep {
    pub shrink: f32,
    pub rule: Rule,
}

/// Where T of this entry and of the one before lie: they take turns.
#[derive(Clone, Copy)]
pub(super) struct Turns {
    t: usize,
    old: usize,
}

impl Turns {
    pub(super) fn new(flat: &Flat) -> Turns {
        Turns {
            t: flat.t[0],
            old: flat.old_t,
        }
    }
}

/// The core after the step that is due.
///
/// # Safety
/// See the module.
#[inline(always)]
pub(super) unsafe fn finish<L: Flatten>(
    flat: &Flat,
    turns: Turns,
    core: *mut f32,
    work: *mut f32,
    by: CoreStep,
) {
    // SAFETY: within the lengths of the core.
    unsafe {
        let (u, t) = (work.add(flat.old_u), work.add(turns.old));
        let mut g = core;
        for i in 0..flat.ranks[0] {
            for l in 0..flat.slices[0] {
                let t = L::load(t.add(l * LANES));
                moved(L::load(g), t, *u.add(i), by.shrink, by.rule).store(g);
                g = g.add(LANES);
            }
        }
    }
}

leaf! {
    /// The value at an entry whose rows lie in `work`; the slopes come to lie beside them. The step that
    /// is due is made on the way, and T is kept for that of this entry ([`due`]).
    pub(super) unsafe fn slopes<L: Flatten, const HOW: u8>(flat: &Flat, turns: Turns, core: *mut f32, work: *mut f32, by: CoreStep) -> f32
        = slopes_body;
}

#[inline(always)]
unsafe fn slopes_body<L: Flatten, const HOW: u8>(
    flat: &Flat,
    turns: Turns,
    core: *mut f32,
    work: *mut f32,
    by: CoreStep,
) -> f32 {
    let deepest = flat.slices.len() - 1;
    // SAFETY: within the lengths of the parts of `work`.
    unsafe {
        outer::<L>(flat, turns, work);
        pass::<L, HOW, true>(flat, 0, turns, core, work, by);
        for n in 1..=deepest {
            pass::<L, NO_STEP, false>(flat, n, turns, work.add(flat.m[n - 1]), work, by);
        }
        let t = work.add(if deepest == 0 {
            turns.t
        } else {
            flat.t[deepest]
        });
        let m = work.add(flat.m[deepest]);
        let (mut even, mut odd) = (L::zero(), L::zero());
        let mut at = 0;
        while at + LANES < flat.plane * LANES {
            let next = at + LANES;
            even = L::load(t.add(at)).mul_add(L::load(m.add(at)), even);
            odd = L::load(t.add(next)).mul_add(L::load(m.add(next)), odd);
            at += 2 * LANES;
        }
        if at < flat.plane * LANES {
            even = L::load(t.add(at)).mul_add(L::load(m.add(at)), even);
        }
        let value = (even + odd).sum();
        last_two::<L>(flat, m, work);
        value
    }
}

/// Makes `scale` times the outer product of the rows the step that is due.
///
/// # Safety
/// See the module; [`slopes`] must have run.
#[inline(always)]
pub(super) unsafe fn due<L: Flatten>(flat: &Flat, turns: &mut Turns, work: *mut f32, scale: f32) {
    (turns.t, turns.old) = (turns.old, turns.t);
    let scale = L::splat(scale);
    // SAFETY: rows of the first mode are `padded_len(ranks[0])` long.
    unsafe {
        let (u, to) = (work.add(flat.starts[0]), work.add(flat.old_u));
        for k in (0..padded_len(flat.ranks[0])).step_by(LANES) {
            (L::load(u.add(k)) * scale).store(to.add(k));
        }
    }
}

/// T for every mode but the last two.
#[inline(always)]
unsafe fn outer<L: Flatten>(flat: &Flat, turns: Turns, work: *mut f32) {
    let last = flat.ranks.len() - 1;
    let t_of = |n: usize| if n == 0 { turns.t } else { flat.t[n] };
    // SAFETY: within the lengths of the parts of `work`; places are inside rows of one line.
    unsafe {
        let (v, w) = (work.add(flat.starts[last - 1]), work.add(flat.starts[last]));
        let t = work.add(t_of(last - 2));
        if flat.places.is_empty() {
            let lines = flat.step / LANES;
            for j in 0..flat.ranks[last - 1] {
                let vj = L::splat(*v.add(j));
                for k in 0..lines {
                    let at = (j * lines + k) * LANES;
                    (vj * L::load(w.add(k * LANES))).store(t.add(at));
                }
            }
        } else {
            let (v, w) = (L::load(v), L::load(w));
            for (l, [from_v, from_w]) in flat.places.iter().enumerate() {
                let product = v.pick(from_v.as_ptr()) * w.pick(from_w.as_ptr());
                product.store(t.add(l * LANES));
            }
        }
        for n in (0..last - 2).rev() {
            let (from, to) = (work.add(t_of(n + 1)), work.add(t_of(n)));
            let row = work.add(flat.starts[n + 1]);
            let lines = flat.slices[n + 1];
            for i in 0..flat.ranks[n + 1] {
                let ui = L::splat(*row.add(i));
                for l in 0..lines {
                    let at = (i * lines + l) * LANES;
                    (ui * L::load(from.add(l * LANES))).store(to.add(at));
                }
            }
        }
    }
}

/// Contracts mode `n` of `core`, which has lost the modes before: its slope, and M. The whole core is
/// worth code for all sizes of tiles, what is left of it is not.
#[inline(always)]
unsafe fn pass<L: Flatten, const HOW: u8, const WHOLE: bool>(
    flat: &Flat,
    n: usize,
    turns: Turns,
    core: *mut f32,
    work: *mut f32,
    by: CoreStep,
) {
    let t = if n == 0 { turns.t } else { flat.t[n] };
    let (rank, lines) = (flat.ranks[n], flat.slices[n]);
    // SAFETY: within the lengths of the parts of `work`; tiles are inside the slices.
    unsafe {
        let products = work.add(flat.products);
        let most = if WHOLE { L::TILE } else { L::TILE.min(4) };
        let mut tiles = lines.div_ceil(most);
        let mut l = 0;
        while tiles > 0 {
            let k = (lines - l).div_ceil(tiles);
            let at = l * LANES;
            let tile = Tile {
                core: core.add(at),
                t: work.add(t + at),
                m: work.add(flat.m[n] + at),
                old_t: work.add(turns.old + at),
                u: work.add(flat.starts[n]),
                old_u: work.add(flat.old_u),
                rank,
                step: lines * LANES,
                products,
                first: l == 0,
            };
            match k {
                1 => tile.run::<L, 1, HOW>(by),
                2 if const { L::TILE >= 2 } => tile.run::<L, 2, HOW>(by),
                3 if const { L::TILE >= 3 } => tile.run::<L, 3, HOW>(by),
                4 if const { L::TILE >= 4 } => tile.run::<L, 4, HOW>(by),
                5 if const { WHOLE && L::TILE >= 5 } => tile.run::<L, 5, HOW>(by),
                6 if const { WHOLE && L::TILE >= 6 } => tile.run::<L, 6, HOW>(by),
                7 if const { WHOLE && L::TILE >= 7 } => tile.run::<L, 7, HOW>(by),
                8 if const { WHOLE && L::TILE >= 8 } => tile.run::<L, 8, HOW>(by),
                9 if const { WHOLE && L::TILE >= 9 } => tile.run::<L, 9, HOW>(by),
                _ => unreachable!("tiles have at most {most} lines"),
            }
            l += k;
            tiles -= 1;
        }
        sums::<L>(products, rank, work.add(flat.slopes + flat.starts[n]));
    }
}

/// A few lines of all slices of a mode.
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
    unsafe fn run<L: Flatten, const K: usize, const HOW: u8>(&self, by: CoreStep) {
        // SAFETY: the caller's promises.
        unsafe {
            let mut sums = [L::zero(); K];
            let mut t = [L::zero(); K];
            for l in 0..K {
                t[l] = L::load(self.t.add(l * LANES));
            }
            let mut slice = self.core;
            for i in 0..self.rank {
                let ui = L::splat(*self.u.add(i));
                // Read once: for all the compiler knows, writing the core could change it.
                let scale = *self.old_u.add(i);
                let due = L::splat(scale);
                let product = self.products.add(i * LANES);
                let mut p = if self.first {
                    L::zero()
                } else {
                    L::load(product)
                };
                for l in 0..K {
                    let at = slice.add(l * LANES);
                    let mut g = L::load(at);
                    if HOW != NO_STEP {
                        let old = L::load(self.old_t.add(l * LANES));
                        g = match HOW {
                            ADD => due.mul_add(old, g),
                            _ => moved(g, old, scale, by.shrink, by.rule),
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

/// The slopes of the last two modes, given what the others leave of the core.
#[inline(always)]
unsafe fn last_two<L: Flatten>(flat: &Flat, m: *const f32, work: *mut f32) {
    let last = flat.ranks.len() - 1;
    let rank = flat.ranks[last - 1];
    // SAFETY: within the lengths of the parts of `work`; M has a line more than its plane.
    unsafe {
        let (v, w) = (work.add(flat.starts[last - 1]), work.add(flat.starts[last]));
        let slope = work.add(flat.slopes + flat.starts[last]);
        let products = work.add(flat.products);
        let lines = padded_len(flat.ranks[last]) / LANES;
        for k in 0..lines {
            let wk = L::load(w.add(k * LANES));
            let mut sum = L::zero();
            for j in 0..rank {
                let row = L::load(m.add(j * flat.step + k * LANES));
                sum = L::splat(*v.add(j)).mul_add(row, sum);
                let product = products.add(j * LANES);
                if k == 0 {
                    (row * wk).store(product);
                } else {
                    row.mul_add(wk, L::load(product)).store(product);
                }
            }
            // A line of a plane without padding ends in the next row.
            if !flat.places.is_empty() {
                sum = sum * L::load(flat.mask.as_ptr());
            }
            sum.store(slope.add(k * LANES));
        }
        sums::<L>(
            products,
            rank,
            work.add(flat.slopes + flat.starts[last - 1]),
        );
    }
}

/// The sums of `count` lines, padded with zeros like a row.
#[inline(always)]
unsafe fn sums<L: Flatten>(lines: *mut f32, count: usize, out: *mut f32) {
    // SAFETY: there are three lines more than the longest row has numbers.
    unsafe {
        for k in count..count.next_multiple_of(4) {
            L::zero().store(lines.add(k * LANES));
        }
        let mut k = 0;
        while k < count {
            let some = (count - k).min(LANES);
            L::sums_of(lines.add(k * LANES), some).store(out.add(k));
            k += LANES;
        }
    }
}
