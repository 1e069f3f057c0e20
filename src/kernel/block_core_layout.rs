//! The layout of the core that block kernels use: one slab per component of the fiber mode.

use super::blocking::BlockingSpec;
use super::core_shape::{CoreKind, CoreShape};
use super::packed_core_layout::PackedLayout;
use crate::simd::padded_len;

/// Layout of the core of a block, with the fiber mode first.
#[derive(Debug, Clone)]
pub(crate) struct CoreLayout {
    /// `None` for a matrix, which has no core.
    pub(super) core_kind: Option<CoreKind>,
    /// Rank of each mode.
    pub(super) ranks: Vec<usize>,
    pub(super) fiber: Option<usize>,
    /// Shape of the core over the non-fiber modes.
    pub(super) shape: CoreShape,
    /// Layout of a full core while entries are processed one by one.
    pub(super) packed: Option<PackedLayout>,
}

impl CoreLayout {
    /// Returns the layout for a tensor.
    pub(crate) fn tensor(shape: &CoreShape, fiber: Option<usize>) -> CoreLayout {
        let non_fiber: Vec<usize> = (0..shape.order())
            .filter(|&n| fiber != Some(n))
            .map(|n| shape.ranks()[n])
            .collect();
        CoreLayout {
            core_kind: Some(shape.kind()),
            ranks: shape.ranks().to_vec(),
            fiber,
            packed: (shape.kind() == CoreKind::Full && fiber.is_none())
                .then(|| PackedLayout::new(shape)),
            shape: CoreShape::new(shape.kind(), &non_fiber),
        }
    }

    /// Returns the layout for a matrix, whose fiber mode is its column mode.
    pub(crate) fn matrix(rank: usize) -> CoreLayout {
        CoreLayout {
            core_kind: None,
            ranks: vec![rank; 2],
            fiber: Some(1),
            shape: CoreShape::new(CoreKind::Diagonal, &[rank]),
            packed: None,
        }
    }

    /// Returns the number of floats of one slab: the part of the core that belongs to one component of the fiber
    /// mode.
    pub(crate) fn slab_len(&self) -> usize {
        self.shape.core_len()
    }

    /// Returns the number of slabs of the core.
    pub(crate) fn slab_count(&self) -> usize {
        match (self.core_kind, self.fiber) {
            (Some(CoreKind::Full), Some(f)) => self.ranks[f],
            (None, _) => 0,
            _ => 1,
        }
    }

    /// Copies a core in the layout of [`CoreShape`] to the fiber-first layout.
    pub(crate) fn to_fiber_first(&self, core: &[f32]) -> Vec<f32> {
        let mut out = vec![0.0; self.slab_count() * self.slab_len()];
        self.for_each_position(|model_position, position| out[position] = core[model_position]);
        out
    }

    /// Copies a core in the fiber-first layout to that of [`CoreShape`].
    pub(crate) fn copy_from_fiber_first(&self, from: &[f32], core: &mut [f32]) {
        self.for_each_position(|model_position, position| core[model_position] = from[position]);
    }

    /// Calls `visit` for every entry of the core, with its position in the layout of [`CoreShape`] and in this
    /// one.
    fn for_each_position(&self, mut visit: impl FnMut(usize, usize)) {
        let Some(f) = self
            .fiber
            .filter(|_| self.core_kind == Some(CoreKind::Full))
        else {
            (0..self.slab_len()).for_each(|k| visit(k, k));
            return;
        };
        let order = self.ranks.len();
        let last_width = |ranks: &[usize]| ranks.last().map_or(1, |&j| padded_len(j));
        let (width, slab_width) = (last_width(&self.ranks), last_width(self.shape.ranks()));
        let mut at = vec![0; order];
        for k in 0..self.ranks.iter().product::<usize>() {
            let mut rest = k;
            for n in (0..order).rev() {
                (at[n], rest) = (rest % self.ranks[n], rest / self.ranks[n]);
            }
            let model_position =
                (0..order - 1).fold(0, |p, n| p * self.ranks[n] + at[n]) * width + at[order - 1];
            let non_fiber: Vec<usize> = (0..order).filter(|&n| n != f).collect();
            let (&last, before) = non_fiber.split_last().expect("an order of 2 or more");
            let inner =
                before.iter().fold(0, |p, &n| p * self.ranks[n] + at[n]) * slab_width + at[last];
            visit(model_position, at[f] * self.slab_len() + inner);
        }
    }

    /// Returns the modes in the order of this layout.
    pub(crate) fn mode_order(&self) -> Vec<usize> {
        let non_fiber = (0..self.ranks.len()).filter(|&n| self.fiber != Some(n));
        self.fiber.into_iter().chain(non_fiber).collect()
    }

    /// Panics unless the layout is for blocks of `spec` and a core of `core` floats.
    pub(super) fn check(&self, spec: &BlockingSpec, core: usize) {
        assert_eq!(
            (spec.fiber_mode, spec.row_counts.len()),
            (self.fiber, self.ranks.len())
        );
        assert_eq!(core, self.slab_count() * self.slab_len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_goes_fiber_first_and_back() {
        for ranks in [vec![2, 3], vec![3, 2, 4], vec![2, 17, 3], vec![2, 3, 2, 5]] {
            let shape = CoreShape::new(CoreKind::Full, &ranks);
            let dense: Vec<f32> = (1..=ranks.iter().product::<usize>())
                .map(|x| x as f32)
                .collect();
            let core = shape.padded_core(&dense);
            for f in 0..ranks.len() {
                let layout = CoreLayout::tensor(&shape, Some(f));
                let first = layout.to_fiber_first(&core);
                assert_eq!(first.len(), layout.slab_count() * layout.slab_len());
                // Index (1, 0, ..., 0), fiber mode first, starts the second slab.
                let stride: usize = ranks[f + 1..].iter().product();
                assert_eq!(first[layout.slab_len()], dense[stride]);
                let mut back = vec![0.0; core.len()];
                layout.copy_from_fiber_first(&first, &mut back);
                assert_eq!(back, core);
            }
            let layout = CoreLayout::tensor(&shape, None);
            assert_eq!(layout.to_fiber_first(&core), core);
        }
    }
}
