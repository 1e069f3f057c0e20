//! How a core is laid out for passes of one entry at a time, and the scratch memory they need.
//!
//! The core lies without the padding of its last mode: the last two modes together are a plane of whole vectors (9
//! instead of 12 at rank 12). Cores of less than three modes get modes of rank 1 in leading_modes.

use crate::kernel::CoreShape;
use crate::simd::{LANES, padded_len};

/// How a core lies for passes, and the memory they need.
#[derive(Debug, Clone)]
pub(super) struct PackedLayout {
    /// Ranks of three modes or more.
    pub(super) ranks: Vec<usize>,
    /// How many of them were put in leading_modes.
    pub(super) leading_modes: usize,
    /// Where the row of each mode lies among the rows.
    pub(super) row_starts: Vec<usize>,
    /// Lines of what belongs to one index of each mode but the last two.
    pub(super) slice_vectors: Vec<usize>,
    /// Lines of the plane of the last two modes.
    pub(super) plane_vectors: usize,
    /// Floats from one row of the plane to the next.
    pub(super) plane_row_stride: usize,
    /// For each line of a plane without padding, where its factors are in the last two rows.
    pub(super) gather_indices: Vec<[[u32; LANES]; 2]>,
    /// 1 where the last row has numbers.
    pub(super) mask: [f32; LANES],
    /// Where the parts of the memory start: T and M of each mode but the last two.
    pub(super) t_starts: Vec<usize>,
    pub(super) m_starts: Vec<usize>,
    /// T of the entry before, and its first row times its residual.
    pub(super) previous_t: usize,
    pub(super) previous_u: usize,
    pub(super) gradients_start: usize,
    pub(super) products_start: usize,
    pub(super) work_len: usize,
}

impl PackedLayout {
    pub(super) fn new(shape: &CoreShape) -> PackedLayout {
        let leading_modes = 3usize.saturating_sub(shape.order());
        let ranks: Vec<usize> = [1]
            .repeat(leading_modes)
            .iter()
            .chain(&shape.ranks)
            .copied()
            .collect();
        let [.., v, w] = ranks[..] else {
            unreachable!("three modes or more")
        };
        let last = ranks.len() - 1;
        let compact = v <= LANES && w <= LANES;
        let plane_row_stride = if compact { w } else { padded_len(w) };
        let plane_vectors = (v * plane_row_stride).div_ceil(LANES);
        let mut slice_vectors = vec![plane_vectors; last - 1];
        for n in (0..last - 2).rev() {
            slice_vectors[n] = slice_vectors[n + 1] * ranks[n + 1];
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
        let row_starts: Vec<usize> = ranks.iter().map(|&j| take(j)).collect();
        let gradients_start = take(0);
        ranks.iter().for_each(|&j| {
            take(j);
        });
        // Rows of a plane without padding are read a line at a time, beyond its end.
        let t_starts = slice_vectors
            .iter()
            .map(|&vectors| take(vectors * LANES))
            .collect();
        let m_starts = slice_vectors
            .iter()
            .map(|&vectors| take((vectors + 1) * LANES))
            .collect();
        let longest = ranks.iter().max().copied().unwrap_or(0);
        PackedLayout {
            previous_t: take(slice_vectors[0] * LANES),
            previous_u: take(ranks[0]),
            products_start: take((longest + 3) * LANES),
            gather_indices: (0..if compact { plane_vectors } else { 0 })
                .map(place)
                .collect(),
            work_len: end,
            ranks,
            leading_modes,
            row_starts,
            slice_vectors,
            plane_vectors,
            plane_row_stride,
            mask,
            t_starts,
            m_starts,
            gradients_start,
        }
    }

    /// Floats of the core.
    pub(super) fn core_len(&self) -> usize {
        self.ranks[0] * self.slice_vectors[0] * LANES
    }

    /// Floats of memory with a packed core behind it.
    pub(super) fn work_and_core_len(&self) -> usize {
        self.work_len + self.core_len() + LANES
    }

    /// Where the row of mode `n` of the shape is in the memory, and its gradient.
    #[inline(always)]
    pub(super) fn row(&self, n: usize) -> (usize, usize) {
        let start = self.row_starts[n + self.leading_modes];
        (start, self.gradients_start + start)
    }

    /// Every row of a core along its last mode: where it is in the layout of the shape and in this.
    fn for_each_row(&self, mut take: impl FnMut(usize, usize, usize)) {
        let [.., v, w] = self.ranks[..] else {
            unreachable!("three modes or more")
        };
        let planes = self.core_len() / (self.plane_vectors * LANES);
        for p in 0..planes {
            for j in 0..v {
                let there = (p * v + j) * padded_len(w);
                take(
                    there,
                    p * self.plane_vectors * LANES + j * self.plane_row_stride,
                    w,
                );
            }
        }
    }

    /// The core as it lies here, from one laid out as the shape says.
    pub(super) fn pack(&self, core: &[f32], out: &mut [f32]) {
        out.fill(0.0);
        self.for_each_row(|there, here, len| {
            out[here..here + len].copy_from_slice(&core[there..there + len]);
        });
    }

    /// The way back.
    pub(super) fn unpack(&self, from: &[f32], core: &mut [f32]) {
        self.for_each_row(|there, here, len| {
            core[there..there + len].copy_from_slice(&from[here..here + len]);
        });
    }

    /// Whether the core lies in another way than the shape has it.
    pub(super) fn is_packed(&self) -> bool {
        !self.plane_row_stride.is_multiple_of(LANES)
    }

    /// Makes the memory ready: rows of modes in leading_modes are 1, no plane_row_stride is due.
    pub(super) fn prepare_work(&self, work: &mut [f32]) {
        work.fill(0.0);
        (0..self.leading_modes).for_each(|n| work[self.row_starts[n]] = 1.0);
    }
}
