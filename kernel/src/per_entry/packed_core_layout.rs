//! Layout of a packed core and of the scratch memory of [`super::packed_core`].
//!
//! A packed core is stored without the padding of its last mode: the last two modes together form a plane of
//! whole vectors (9 instead of 12 at rank 12). A core of fewer than three modes gets leading modes of rank 1.

use crate::shape::core_shape::CoreShape;
use crate::simd::{LANES, padded_len};

/// Layout of a packed core, and offsets of the buffers in `work`, all in floats unless stated.
#[derive(Debug, Clone)]
pub(crate) struct PackedLayout {
    /// Ranks of the modes, leading modes included: at least three.
    pub(crate) ranks: Vec<usize>,
    /// Number of leading modes of rank 1 that were added.
    pub(super) leading_modes: usize,
    /// Offset of the row of each mode.
    pub(crate) row_starts: Vec<usize>,
    /// Number of vectors per index of each mode but the last two.
    pub(super) slice_vectors: Vec<usize>,
    /// Number of vectors of the plane of the last two modes.
    pub(super) plane_vectors: usize,
    /// Distance of two rows of the plane.
    pub(super) plane_row_stride: usize,
    /// For each vector of a plane without padding, the indices of its factors in the last two rows.
    pub(super) gather_indices: Vec<[[u32; LANES]; 2]>,
    /// 1 in the lanes that hold components of the last row, else 0.
    pub(crate) mask: [f32; LANES],
    /// Offsets of T and M of each mode but the last two.
    pub(super) t_starts: Vec<usize>,
    pub(super) m_starts: Vec<usize>,
    /// Offsets of T_1 of the previous entry, and of its first row times eta and its weighted residual.
    pub(super) previous_t: usize,
    pub(super) previous_u: usize,
    pub(super) gradients_start: usize,
    pub(super) products_start: usize,
    pub(crate) work_len: usize,
}

impl PackedLayout {
    pub(crate) fn new(shape: &CoreShape) -> PackedLayout {
        let leading_modes = 3usize.saturating_sub(shape.order());
        let ranks: Vec<usize> = [1]
            .repeat(leading_modes)
            .iter()
            .chain(shape.ranks())
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
        let indices_of = |l: usize| {
            let mut indices = [[0; LANES]; 2];
            for k in 0..LANES {
                let at = l * LANES + k;
                // Lanes beyond the plane exist only if w is shorter than a vector; its last float is then 0.
                let end = LANES - 1;
                let (j, k_of_w) = if at < v * w {
                    (at / w, at % w)
                } else {
                    (end, end)
                };
                (indices[0][k], indices[1][k]) = (j as u32, k_of_w as u32);
            }
            indices
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
        // The last rows of a plane without padding are read as whole vectors, beyond the end of the plane.
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
                .map(indices_of)
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

    /// Returns the number of floats of the packed core.
    pub(crate) fn core_len(&self) -> usize {
        self.ranks[0] * self.slice_vectors[0] * LANES
    }

    /// Returns the number of floats of `work` if a packed core follows it.
    pub(crate) fn work_and_core_len(&self) -> usize {
        self.work_len + self.core_len() + LANES
    }

    /// Returns the offsets in `work` of the row of mode `n` of the shape and of its gradient.
    #[inline(always)]
    pub(crate) fn row(&self, n: usize) -> (usize, usize) {
        let start = self.row_starts[n + self.leading_modes];
        (start, self.gradients_start + start)
    }

    /// Calls `visit` for every row of the core along its last mode, with its offset in the padded layout, its
    /// offset in the packed layout, and its length.
    fn for_each_row(&self, mut visit: impl FnMut(usize, usize, usize)) {
        let [.., v, w] = self.ranks[..] else {
            unreachable!("three modes or more")
        };
        let planes = self.core_len() / (self.plane_vectors * LANES);
        for p in 0..planes {
            for j in 0..v {
                let padded = (p * v + j) * padded_len(w);
                visit(
                    padded,
                    p * self.plane_vectors * LANES + j * self.plane_row_stride,
                    w,
                );
            }
        }
    }

    /// Packs a core that is padded as [`CoreShape`] states.
    pub(crate) fn pack(&self, core: &[f32], out: &mut [f32]) {
        out.fill(0.0);
        self.for_each_row(|padded, packed, len| {
            out[packed..packed + len].copy_from_slice(&core[padded..padded + len]);
        });
    }

    /// Copies a packed core to the padded layout.
    pub(crate) fn unpack(&self, from: &[f32], core: &mut [f32]) {
        self.for_each_row(|padded, packed, len| {
            core[padded..padded + len].copy_from_slice(&from[packed..packed + len]);
        });
    }

    /// Returns whether the packed layout differs from the padded one.
    pub(super) fn is_packed(&self) -> bool {
        !self.plane_row_stride.is_multiple_of(LANES)
    }

    /// Initializes `work`: rows of leading modes are 1, no core update is queued.
    pub(crate) fn prepare_work(&self, work: &mut [f32]) {
        work.fill(0.0);
        (0..self.leading_modes).for_each(|n| work[self.row_starts[n]] = 1.0);
    }
}
