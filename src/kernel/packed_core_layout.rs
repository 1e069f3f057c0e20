//! How a core is laid out for passes of one entry at a time, and the scratch memory they need.
//!
//! The core lies without the padding of its last mode: the last two modes together are a plane of whole vectors (9
//! instead of 12 at rank 12). Cores of less than three modes get modes of rank 1 in front.

use crate::kernel::CoreShape;
use crate::simd::{LANES, padded_len};

/// How a core lies for passes, and the memory they need.
#[derive(Debug, Clone)]
pub(super) struct Flat {
    /// Ranks of three modes or more.
    pub(super) ranks: Vec<usize>,
    /// How many of them were put in front.
    pub(super) front: usize,
    /// Where the row of each mode lies among the rows.
    pub(super) starts: Vec<usize>,
    /// Lines of what belongs to one index of each mode but the last two.
    pub(super) slices: Vec<usize>,
    /// Lines of the plane of the last two modes.
    pub(super) plane: usize,
    /// Floats from one row of the plane to the next.
    pub(super) step: usize,
    /// For each line of a plane without padding, where its factors are in the last two rows.
    pub(super) places: Vec<[[u32; LANES]; 2]>,
    /// 1 where the last row has numbers.
    pub(super) mask: [f32; LANES],
    /// Where the parts of the memory start: T and M of each mode but the last two.
    pub(super) t: Vec<usize>,
    pub(super) m: Vec<usize>,
    /// T of the entry before, and its first row times its error.
    pub(super) old_t: usize,
    pub(super) old_u: usize,
    pub(super) slopes: usize,
    pub(super) products: usize,
    pub(super) work: usize,
}

impl Flat {
    pub(super) fn new(shape: &CoreShape) -> Flat {
        let front = 3usize.saturating_sub(shape.order());
        let ranks: Vec<usize> = [1]
            .repeat(front)
            .iter()
            .chain(&shape.ranks)
            .copied()
            .collect();
        let [.., v, w] = ranks[..] else {
            unreachable!("three modes or more")
        };
        let last = ranks.len() - 1;
        let compact = v <= LANES && w <= LANES;
        let step = if compact { w } else { padded_len(w) };
        let plane = (v * step).div_ceil(LANES);
        let mut slices = vec![plane; last - 1];
        for n in (0..last - 2).rev() {
            slices[n] = slices[n + 1] * ranks[n + 1];
        }
        let place = |l: usize| {
            let mut places = [[0; LANES]; 2];
            for k in 0..LANES {
                let at = l * LANES + k;
                // Beyond the end is only where w is shorter than a line, so that its last float is 0.
                let end = LANES - 1;
                let (j, k_of_w) = if at < v * w {
                    (at / w, at % w)
                } else {
                    (end, end)
                };
                (places[0][k], places[1][k]) = (j as u32, k_of_w as u32);
            }
            places
        };
        let mut mask = [0.0; LANES];
        mask[..w.min(LANES)].fill(1.0);
        let mut end = 0;
        let mut take = |floats: usize| {
            let start = end;
            end += padded_len(floats);
            start
        };
        let starts: Vec<usize> = ranks.iter().map(|&j| take(j)).collect();
        let slopes = take(0);
        ranks.iter().for_each(|&j| {
            take(j);
        });
        // Rows of a plane without padding are read a line at a time, beyond its end.
        let t = slices.iter().map(|&lines| take(lines * LANES)).collect();
        let m = slices
            .iter()
            .map(|&lines| take((lines + 1) * LANES))
            .collect();
        let longest = ranks.iter().max().copied().unwrap_or(0);
        Flat {
            old_t: take(slices[0] * LANES),
            old_u: take(ranks[0]),
            products: take((longest + 3) * LANES),
            places: (0..if compact { plane } else { 0 }).map(place).collect(),
            work: end,
            ranks,
            front,
            starts,
            slices,
            plane,
            step,
            mask,
            t,
            m,
            slopes,
        }
    }

    /// Floats of the core.
    pub(super) fn core_len(&self) -> usize {
        self.ranks[0] * self.slices[0] * LANES
    }

    /// Floats of memory with a packed core behind it.
    pub(super) fn all_work(&self) -> usize {
        self.work + self.core_len() + LANES
    }

    /// Where the row of mode `n` of the shape is in the memory, and its slope.
    #[inline(always)]
    pub(super) fn row(&self, n: usize) -> (usize, usize) {
        let start = self.starts[n + self.front];
        (start, self.slopes + start)
    }

    /// Every row of a core along its last mode: where it is in the layout of the shape and in this.
    fn each_row(&self, mut take: impl FnMut(usize, usize, usize)) {
        let [.., v, w] = self.ranks[..] else {
            unreachable!("three modes or more")
        };
        let planes = self.core_len() / (self.plane * LANES);
        for p in 0..planes {
            for j in 0..v {
                let there = (p * v + j) * padded_len(w);
                take(there, p * self.plane * LANES + j * self.step, w);
            }
        }
    }

    /// The core as it lies here, from one laid out as the shape says.
    pub(super) fn pack(&self, core: &[f32], out: &mut [f32]) {
        out.fill(0.0);
        self.each_row(|there, here, len| {
            out[here..here + len].copy_from_slice(&core[there..there + len]);
        });
    }

    /// The way back.
    pub(super) fn unpack(&self, from: &[f32], core: &mut [f32]) {
        self.each_row(|there, here, len| {
            core[there..there + len].copy_from_slice(&from[here..here + len]);
        });
    }

    /// Whether the core lies in another way than the shape has it.
    pub(super) fn is_packed(&self) -> bool {
        !self.step.is_multiple_of(LANES)
    }

    /// Makes the memory ready: rows of modes in front are 1, no step is due.
    pub(super) fn prepare(&self, work: &mut [f32]) {
        work.fill(0.0);
        (0..self.front).for_each(|n| work[self.starts[n]] = 1.0);
    }
}
