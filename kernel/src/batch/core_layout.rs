//! The layout of the core that block kernels use: one slab per component of the fiber mode.

use crate::entries::grid::BlockingSpec;
use crate::error::Result;
use crate::per_entry::packed_core_layout::PackedLayout;
use crate::progress::{Monitor, OPERATIONS_PER_STRIDED_ENTRY, check_cancelled, count_operations};
use crate::shape::core_shape::{CoreKind, CoreShape, MAX_ORDER};
use crate::simd::padded_len;
use crate::try_alloc::{CORE_ENTRIES, try_zeroed};

/// Layout of the core of a block, with the fiber mode first.
#[derive(Debug, Clone)]
pub struct CoreLayout {
    /// `None` for a matrix, which has no core.
    pub(super) core_kind: Option<CoreKind>,
    /// Rank of each mode.
    pub(crate) ranks: Vec<usize>,
    pub(crate) fiber: Option<usize>,
    /// Shape of the core over the non-fiber modes.
    pub(crate) shape: CoreShape,
    /// Layout of a full core while entries are processed one by one.
    pub(crate) packed: Option<PackedLayout>,
}

impl CoreLayout {
    /// Returns the layout for a tensor.
    pub fn tensor(shape: &CoreShape, fiber: Option<usize>) -> CoreLayout {
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
    pub fn matrix(rank: usize) -> CoreLayout {
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
    pub fn slab_len(&self) -> usize {
        self.shape.core_len()
    }

    /// Returns the number of slabs of the core.
    pub fn slab_count(&self) -> usize {
        match (self.core_kind, self.fiber) {
            (Some(CoreKind::Full), Some(f)) => self.ranks[f],
            (None, _) => 0,
            _ => 1,
        }
    }

    /// Number of multiply-adds that the slabs' contraction with the row of the fiber mode takes, once per run or batch.
    pub(super) fn operations_per_run(&self) -> usize {
        match self.fiber {
            Some(_) => self.slab_count() * self.slab_len(),
            None => 0,
        }
    }

    /// Copies a core in the layout of [`CoreShape`] to the fiber-first layout. Polls `monitor` before.
    pub fn to_fiber_first(&self, core: &[f32], monitor: &dyn Monitor) -> Result<Vec<f32>> {
        check_cancelled(monitor)?;
        let mut out = try_zeroed(self.slab_count() * self.slab_len(), CORE_ENTRIES)?;
        self.for_each_position(|model_position, position| out[position] = core[model_position]);
        Ok(out)
    }

    /// Copies a core in the fiber-first layout to that of [`CoreShape`].
    pub fn copy_from_fiber_first(&self, from: &[f32], core: &mut [f32]) {
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
        // Distance in both layouts between entries whose indices of a mode differ by one.
        let (mut steps, mut slab_steps) = ([1; MAX_ORDER], [1; MAX_ORDER]);
        let mut non_fiber: Vec<usize> = (0..order).filter(|&n| n != f).collect();
        for n in (0..order - 1).rev() {
            let inner = if n + 2 == order {
                width
            } else {
                self.ranks[n + 1]
            };
            steps[n] = steps[n + 1] * inner;
        }
        let mut last = non_fiber.pop().expect("an order of 2 or more");
        let mut inner = slab_width;
        while let Some(n) = non_fiber.pop() {
            slab_steps[n] = slab_steps[last] * inner;
            (last, inner) = (n, self.ranks[n]);
        }
        slab_steps[f] = self.slab_len();
        count_operations(self.slab_count() * self.slab_len() * OPERATIONS_PER_STRIDED_ENTRY);
        visit_indices(&self.ranks, &steps, &slab_steps, 0, 0, &mut visit);
    }

    /// Returns the modes in the order of this layout.
    pub fn mode_order(&self) -> Vec<usize> {
        let non_fiber = (0..self.ranks.len()).filter(|&n| self.fiber != Some(n));
        self.fiber.into_iter().chain(non_fiber).collect()
    }

    /// Returns the shape of a core with its modes in the order of this layout.
    pub fn permuted_shape(&self, shape: &CoreShape) -> CoreShape {
        let order = self.mode_order();
        let ranks: Vec<usize> = order.iter().map(|&n| shape.ranks()[n]).collect();
        CoreShape::new(shape.kind(), &ranks)
    }

    /// Panics unless the layout is for blocks of `spec` and a core of `core` floats.
    pub(crate) fn check(&self, spec: &BlockingSpec, core: usize) {
        assert_eq!(
            (spec.fiber_mode, spec.row_counts.len()),
            (self.fiber, self.ranks.len())
        );
        assert_eq!(core, self.slab_count() * self.slab_len());
    }
}

/// Calls `visit` with the positions of all entries of a core in two layouts, in row-major order. `steps` and `other_steps` are
/// the distances between entries whose indices of a mode differ by one. Recurses over the modes.
fn visit_indices(
    ranks: &[usize],
    steps: &[usize],
    other_steps: &[usize],
    position: usize,
    other_position: usize,
    visit: &mut impl FnMut(usize, usize),
) {
    let Some((&rank, inner)) = ranks.split_first() else {
        return visit(position, other_position);
    };
    if inner.is_empty() {
        // A plain loop over the last mode: a call per entry takes several times as long.
        return (0..rank)
            .for_each(|i| visit(position + i * steps[0], other_position + i * other_steps[0]));
    }
    for i in 0..rank {
        let (position, other) = (position + i * steps[0], other_position + i * other_steps[0]);
        visit_indices(
            inner,
            &steps[1..],
            &other_steps[1..],
            position,
            other,
            visit,
        );
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
            let core = shape.padded_core(&dense).unwrap();
            for f in 0..ranks.len() {
                let layout = CoreLayout::tensor(&shape, Some(f));
                let first = layout.to_fiber_first(&core, &()).unwrap();
                assert_eq!(first.len(), layout.slab_count() * layout.slab_len());
                // Index (1, 0, ..., 0), fiber mode first, starts the second slab.
                let stride: usize = ranks[f + 1..].iter().product();
                assert_eq!(first[layout.slab_len()], dense[stride]);
                let mut back = vec![0.0; core.len()];
                layout.copy_from_fiber_first(&first, &mut back);
                assert_eq!(back, core);
            }
            let layout = CoreLayout::tensor(&shape, None);
            assert_eq!(layout.to_fiber_first(&core, &()).unwrap(), core);
        }
    }
}
