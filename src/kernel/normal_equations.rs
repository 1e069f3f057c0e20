//! The normal equations of a row: sums of d d^T, d r and d over its entries, by weight, where d is the
//! slope of an entry by the row and r what is left of its value for the row to explain.
//!
//! Slopes are made for a batch of entries at a time and stay in the first cache; their outer products
//! are then added up in registers, one square of sixteen by sixteen after the other.
//!
//! # Safety
//! Lengths are checked in the safe functions at the top, indices when [`Lists`] are made.
#![allow(unsafe_code)]

use std::ops::Range;

use super::entry::contract;
use super::mode_csr::Lists;
use crate::simd::Level;
use crate::simd::{AlignedVec, LANES, padded_len};
use crate::simd::{F32x16, dispatched, prefetch};

/// Slopes made at a time.
const BATCH: usize = 64;

/// How many entries ahead rows are asked for.
const AHEAD: usize = 6;

/// The rows of another mode.
#[derive(Clone, Copy)]
pub(crate) struct Other<'a> {
    /// Padded.
    pub rows: &'a [f32],
    pub rank: usize,
    /// One per row, or none at all.
    pub biases: &'a [f32],
}

/// What the slopes by the rows of a mode are made of.
pub(crate) struct Slopes<'a> {
    /// The rows of the other modes, in the order of the lists.
    pub others: Vec<Other<'a>>,
    /// A full core with the modes in that order and then the row's own, which is padded. Without it a
    /// slope is the product of the other rows.
    pub core: Option<&'a [f32]>,
    /// The rank of the row.
    pub rank: usize,
    /// What every value is lowered by.
    pub mean: f32,
    pub level: Level,
}

/// What the entries of a row add up to.
pub(crate) struct Normal {
    rank: usize,
    /// Sums of d d^T: a line belongs to it from the one on that holds the diagonal.
    square: AlignedVec,
    /// Sums of d r.
    right: AlignedVec,
    /// Sums of d.
    slopes: AlignedVec,
    /// Sum of r.
    pub residuals: f64,
    /// The number of entries.
    pub count: usize,
    /// What they weigh together.
    pub weight: f64,
}

impl Normal {
    pub(crate) fn new(rank: usize) -> Normal {
        let width = padded_len(rank);
        Normal {
            rank,
            square: AlignedVec::zeroed(rank.next_multiple_of(4) * width),
            right: AlignedVec::zeroed(width),
            slopes: AlignedVec::zeroed(width),
            residuals: 0.0,
            count: 0,
            weight: 0.0,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.square.fill(0.0);
        self.right.fill(0.0);
        self.slopes.fill(0.0);
        (self.residuals, self.count, self.weight) = (0.0, 0, 0.0);
    }

    /// Row `i` of the sum of d d^T, from the diagonal on.
    pub(crate) fn square(&self, i: usize) -> &[f32] {
        &self.square[i * padded_len(self.rank)..][i..self.rank]
    }

    pub(crate) fn right(&self) -> &[f32] {
        &self.right[..self.rank]
    }

    pub(crate) fn slopes(&self) -> &[f32] {
        &self.slopes[..self.rank]
    }

    /// Adds the sums of other entries of the same row.
    pub(crate) fn add(&mut self, other: &Normal) {
        let parts = [
            (&mut self.square, &other.square),
            (&mut self.right, &other.right),
            (&mut self.slopes, &other.slopes),
        ];
        for (to, from) in parts {
            to.iter_mut().zip(from.iter()).for_each(|(t, f)| *t += f);
        }
        self.residuals += other.residuals;
        self.count += other.count;
        self.weight += other.weight;
    }
}

/// Memory for a batch of slopes. One per thread.
#[derive(Default)]
pub(crate) struct Room {
    slopes: AlignedVec,
    /// The same times the weights, where entries have some.
    weighted: AlignedVec,
    left: Vec<f32>,
    stack: AlignedVec,
}

impl Room {
    fn fit(&mut self, slopes: &Slopes<'_>) {
        let width = padded_len(slopes.rank);
        if self.slopes.len() < BATCH * width {
            self.slopes = AlignedVec::zeroed(BATCH * width);
        }
        self.left.resize(BATCH, 0.0);
        let stack = slopes.stack_len();
        if self.stack.len() < stack {
            self.stack = AlignedVec::zeroed(stack);
        }
    }
}

impl Slopes<'_> {
    /// Floats that a core has left when the first `k` of the other modes are contracted.
    fn left_of_core(&self, k: usize) -> usize {
        self.others[k..].iter().map(|o| o.rank).product::<usize>() * padded_len(self.rank)
    }

    fn stack_len(&self) -> usize {
        match self.core {
            None => 0,
            Some(_) => (1..self.others.len()).map(|k| self.left_of_core(k)).sum(),
        }
    }

    fn check(&self, lists: &Lists) {
        assert!(self.level.is_available());
        assert_eq!(self.others.len(), lists.others().len());
        for (other, &limit) in self.others.iter().zip(lists.limits()) {
            assert!(other.rows.len() >= limit * padded_len(other.rank));
            assert!(other.biases.is_empty() || other.biases.len() >= limit);
            assert!(self.core.is_some() || other.rank == self.rank);
        }
        if let Some(core) = self.core {
            assert_eq!(core.len(), self.left_of_core(0));
        }
    }

    /// Adds `entries` of the lists to `to`.
    pub(crate) fn add(
        &self,
        lists: &Lists,
        entries: Range<usize>,
        room: &mut Room,
        to: &mut Normal,
    ) {
        self.check(lists);
        assert_eq!(to.rank, self.rank);
        room.fit(self);
        let weights = lists.weights(entries.clone());
        if room.weighted.len() < room.slopes.len() && !weights.is_empty() {
            room.weighted = AlignedVec::zeroed(room.slopes.len());
        }
        // SAFETY: the rows are there for every index of the lists, the core and the memory are as
        // long as the ranks say, and so is `to`; weights are as many as entries, or none; the level
        // is available.
        unsafe {
            add(
                self.level,
                self,
                lists.words(entries.clone()),
                weights,
                room,
                to,
            )
        }
        to.count += entries.len();
        to.weight += match weights.is_empty() {
            true => entries.len() as f64,
            false => weights.iter().map(|&w| f64::from(w)).sum(),
        };
    }

    /// Adds `entries` of the lists of a matrix to the right side in `to` alone.
    pub(crate) fn add_right(&self, lists: &Lists, entries: Range<usize>, to: &mut Normal) {
        self.check(lists);
        assert_eq!((to.rank, self.others.len()), (self.rank, 1));
        to.count += entries.len();
        for entry in entries {
            let row = lists.entry(entry)[0] as usize * padded_len(self.rank);
            let row = &self.others[0].rows[row..][..self.rank];
            let value = lists.value(entry);
            to.right
                .iter_mut()
                .zip(row)
                .for_each(|(r, d)| *r += value * d);
        }
    }

    /// What is left of the values of `entries` when the row and its bias are taken off too.
    pub(crate) fn errors(
        &self,
        lists: &Lists,
        entries: Range<usize>,
        (row, bias): (&[f32], f32),
        room: &mut Room,
        out: &mut [f32],
    ) {
        self.check(lists);
        assert_eq!(
            (row.len(), out.len()),
            (padded_len(self.rank), entries.len())
        );
        room.fit(self);
        // SAFETY: as above; the row is padded, and there is a place for every error.
        unsafe { errors(self.level, self, lists.words(entries), row, bias, room, out) }
    }
}

dispatched! {
    unsafe fn add(slopes: &Slopes<'_>, words: &[u32], weights: &[f32], room: &mut Room, to: &mut Normal) = any_add;
}

dispatched! {
    unsafe fn errors(slopes: &Slopes<'_>, words: &[u32], row: &[f32], bias: f32, room: &mut Room, out: &mut [f32]) = any_errors;
}

#[inline(always)]
unsafe fn any_add<L: F32x16>(
    slopes: &Slopes<'_>,
    words: &[u32],
    weights: &[f32],
    room: &mut Room,
    to: &mut Normal,
) {
    let width = slopes.others.len() + 1;
    let mut known = Known::default();
    for (number, batch) in words.chunks(BATCH * width).enumerate() {
        let count = batch.len() / width;
        let weights = match weights.is_empty() {
            true => weights,
            false => &weights[number * BATCH..][..count],
        };
        // SAFETY: the caller's promises; a batch fits into the room.
        unsafe {
            fill::<L>(slopes, batch, room, &mut known);
            let (d, lines) = (room.slopes.as_ptr(), padded_len(slopes.rank) / LANES);
            // Slopes by weight: what every sum has once.
            let by_weight = match weights.is_empty() {
                true => d,
                false => {
                    let to = room.weighted.as_mut_ptr();
                    for (k, &w) in weights.iter().enumerate() {
                        for at in (k * lines..(k + 1) * lines).map(|line| line * LANES) {
                            (L::load(d.add(at)) * L::splat(w)).store(to.add(at));
                        }
                    }
                    to.cast_const()
                }
            };
            let square = to.square.as_mut_ptr();
            let mut i = 0;
            while i < slopes.rank {
                for line in i / LANES..lines {
                    let at = (by_weight.add(i), d.add(line * LANES), lines * LANES, count);
                    let to = square.add((i * lines + line) * LANES);
                    if L::REGISTERS >= 32 && i + 16 <= slopes.rank {
                        tile::<L, 16>(at, to);
                    } else if L::REGISTERS >= 32 && i + 8 <= slopes.rank {
                        tile::<L, 8>(at, to);
                    } else {
                        tile::<L, 4>(at, to);
                    }
                }
                i += match slopes.rank - i {
                    16.. if L::REGISTERS >= 32 => 16,
                    8.. if L::REGISTERS >= 32 => 8,
                    _ => 4,
                };
            }
            for line in 0..lines {
                let (right, total) = (
                    to.right.as_mut_ptr().add(line * LANES),
                    to.slopes.as_mut_ptr().add(line * LANES),
                );
                let (mut q, mut s) = (L::load(right), L::load(total));
                for (k, &r) in room.left[..count].iter().enumerate() {
                    let x = L::load(by_weight.add((k * lines + line) * LANES));
                    q = x.mul_add(L::splat(r), q);
                    s = s + x;
                }
                q.store(right);
                s.store(total);
            }
        }
        let left = room.left[..count].iter().map(|&r| f64::from(r));
        to.residuals += match weights.is_empty() {
            true => left.sum::<f64>(),
            false => left.zip(weights).map(|(r, &w)| f64::from(w) * r).sum(),
        };
    }
}

/// Adds to `R` lines the products of a line of every slope with `R` of its numbers.
#[inline(always)]
unsafe fn tile<L: F32x16, const R: usize>(
    (numbers, line, width, count): (*const f32, *const f32, usize, usize),
    to: *mut f32,
) {
    // SAFETY: the caller's promises.
    unsafe {
        let mut sums = [L::zero(); R];
        for i in 0..R {
            sums[i] = L::load(to.add(i * width));
        }
        for k in 0..count {
            let (numbers, x) = (numbers.add(k * width), L::load(line.add(k * width)));
            for i in 0..R {
                sums[i] = x.mul_add(L::splat(*numbers.add(i)), sums[i]);
            }
        }
        for i in 0..R {
            sums[i].store(to.add(i * width));
        }
    }
}

#[inline(always)]
unsafe fn any_errors<L: F32x16>(
    slopes: &Slopes<'_>,
    words: &[u32],
    row: &[f32],
    bias: f32,
    room: &mut Room,
    out: &mut [f32],
) {
    let width = slopes.others.len() + 1;
    let lines = row.len() / LANES;
    let mut known = Known::default();
    for (batch, out) in words.chunks(BATCH * width).zip(out.chunks_mut(BATCH)) {
        // SAFETY: the caller's promises; a batch fits into the room.
        unsafe {
            fill::<L>(slopes, batch, room, &mut known);
            let d = room.slopes.as_ptr();
            for (k, e) in out.iter_mut().enumerate() {
                let mut sum = L::zero();
                for line in 0..lines {
                    let x = L::load(d.add((k * lines + line) * LANES));
                    sum = x.mul_add(L::load(row.as_ptr().add(line * LANES)), sum);
                }
                *e = room.left[k] - bias - sum.sum();
            }
        }
    }
}

/// The rows whose contractions with the core lie on the stack.
#[derive(Default)]
struct Known {
    rows: [u32; 8],
    count: usize,
}

/// Makes the slopes of a batch and what their values leave.
#[inline(always)]
unsafe fn fill<L: F32x16>(slopes: &Slopes<'_>, words: &[u32], room: &mut Room, known: &mut Known) {
    // SAFETY: the caller's promises.
    unsafe {
        match (slopes.core, &slopes.others[..]) {
            (Some(core), _) => fill_full::<L>(slopes, core, words, room, known),
            (None, &[a]) => fill_products::<L, 1>(slopes, &[a], words, room),
            (None, &[a, b]) => fill_products::<L, 2>(slopes, &[a, b], words, room),
            (None, &[a, b, c]) => fill_products::<L, 3>(slopes, &[a, b, c], words, room),
            _ => fill_any::<L>(slopes, words, room),
        }
        let width = slopes.others.len() + 1;
        for (entry, left) in words.chunks_exact(width).zip(&mut room.left) {
            let mut r = f32::from_bits(*entry.get_unchecked(width - 1)) - slopes.mean;
            for (other, &row) in slopes.others.iter().zip(entry) {
                if !other.biases.is_empty() {
                    r -= other.biases.get_unchecked(row as usize);
                }
            }
            *left = r;
        }
    }
}

/// Products of `N` rows.
#[inline(always)]
unsafe fn fill_products<L: F32x16, const N: usize>(
    slopes: &Slopes<'_>,
    others: &[Other<'_>; N],
    words: &[u32],
    room: &mut Room,
) {
    let width = padded_len(slopes.rank);
    let out = room.slopes.as_mut_ptr();
    let count = words.len() / (N + 1);
    // SAFETY: the caller's promises.
    unsafe {
        for k in 0..count {
            let entry = words.as_ptr().add(k * (N + 1));
            if k + AHEAD < count {
                let ahead = *entry.add(AHEAD * (N + 1) + N - 1) as usize * width;
                for at in (0..width).step_by(LANES) {
                    prefetch(others[N - 1].rows.as_ptr().add(ahead + at));
                }
            }
            for at in (0..width).step_by(LANES) {
                let row = |n: usize| {
                    let row = *entry.add(n) as usize * width;
                    L::load(others[n].rows.as_ptr().add(row + at))
                };
                let mut x = row(0);
                for n in 1..N {
                    x = x * row(n);
                }
                x.store(out.add(k * width + at));
            }
        }
    }
}

/// Products of any number of rows.
#[inline(always)]
unsafe fn fill_any<L: F32x16>(slopes: &Slopes<'_>, words: &[u32], room: &mut Room) {
    let (width, n) = (padded_len(slopes.rank), slopes.others.len());
    let out = room.slopes.as_mut_ptr();
    // SAFETY: the caller's promises.
    unsafe {
        for (k, entry) in words.chunks_exact(n + 1).enumerate() {
            for at in (0..width).step_by(LANES) {
                let mut x = L::splat(1.0);
                for (other, &row) in slopes.others.iter().zip(entry) {
                    x = x * L::load(other.rows.as_ptr().add(row as usize * width + at));
                }
                x.store(out.add(k * width + at));
            }
        }
    }
}

/// The core contracted with one row after the other; what neighbours share is kept.
#[inline(always)]
unsafe fn fill_full<L: F32x16>(
    slopes: &Slopes<'_>,
    core: &[f32],
    words: &[u32],
    room: &mut Room,
    known: &mut Known,
) {
    let n = slopes.others.len();
    let width = padded_len(slopes.rank);
    // SAFETY: the caller's promises; the parts of the stack do not overlap.
    unsafe {
        for (k, entry) in words.chunks_exact(n + 1).enumerate() {
            let mut same = 0;
            while same < known.count && known.rows[same] == entry[same] {
                same += 1;
            }
            let mut from = core.as_ptr();
            let mut to = room.stack.as_mut_ptr();
            for (m, other) in slopes.others.iter().enumerate() {
                let left = slopes.left_of_core(m + 1);
                let target = match m + 1 == n {
                    true => room.slopes.as_mut_ptr().add(k * width),
                    false => to,
                };
                if m >= same || m + 1 == n {
                    let row = other
                        .rows
                        .as_ptr()
                        .add(entry[m] as usize * padded_len(other.rank));
                    contract::<L>(from, row, other.rank, left / LANES, target);
                    known.rows[m] = entry[m];
                }
                from = to;
                to = to.add(if m + 1 == n { 0 } else { left });
            }
            known.count = n - 1;
        }
    }
}
