//! The geometry of a blocking: a grid of blocks over the cut modes.
//!
//! Each cut mode has a partition of its rows and is one axis of the grid. The parts that an entry's rows belong
//! to are its block coordinates. Blocks that differ in every coordinate share no row of a cut mode, so threads
//! may process them at the same time.

use std::sync::Arc;

use super::core_shape::MAX_ORDER;
use super::row_partition::RowPartition;

/// One mode of a blocking that is cut into parts.
#[derive(Clone)]
pub(crate) struct ModeCut {
    /// The grid axis whose coordinate is the part of the mode's row.
    pub axis: usize,
    pub partition: Arc<RowPartition>,
}

/// How the entries of a tensor or matrix are sorted into blocks.
pub(crate) struct BlockingSpec {
    /// For each mode, an upper bound of the row indices (exclusive).
    pub row_counts: Vec<usize>,
    /// The mode whose rows entries are grouped by inside a block, if any.
    pub fiber_mode: Option<usize>,
    /// For each mode, its cut if it has one.
    pub cuts: Vec<Option<ModeCut>>,
    /// Number of coordinate values of each axis.
    pub parts_per_axis: usize,
    /// Number of axes of the grid.
    pub axes: usize,
    /// Seeds the coordinates of axes without a mode, and the order of entries in a block.
    pub seed: u64,
    /// Whether entries have weights.
    pub weighted: bool,
}

impl BlockingSpec {
    /// Number of blocks.
    pub(crate) fn block_count(&self) -> usize {
        self.parts_per_axis.pow(self.axes as u32)
    }

    /// Returns the coordinates of a block; those beyond [`Self::axes`] are 0.
    pub(crate) fn coordinates(&self, block: usize) -> [usize; MAX_ORDER] {
        let mut coordinates = [0; MAX_ORDER];
        let mut rest = block;
        for x in coordinates.iter_mut().take(self.axes) {
            (*x, rest) = (rest % self.parts_per_axis, rest / self.parts_per_axis);
        }
        coordinates
    }

    /// Returns the index of the block at these coordinates. Axis 0 varies fastest.
    pub(crate) fn block_at(&self, coordinates: &[usize]) -> usize {
        coordinates[..self.axes]
            .iter()
            .rev()
            .fold(0, |block, x| block * self.parts_per_axis + x)
    }

    /// Number of modes.
    #[inline]
    pub(super) fn order(&self) -> usize {
        self.row_counts.len()
    }

    /// Number of u32 words of an unsorted entry record: the rows of all modes, the bits of the value and, if
    /// entries have weights, the bits of the weight.
    #[inline]
    pub(super) fn full_record_words(&self) -> usize {
        self.order() + self.payload_words()
    }

    /// Number of u32 words of an entry record in a block, which leaves out the row of the fiber mode.
    #[inline]
    pub(super) fn record_words(&self) -> usize {
        self.order() - usize::from(self.fiber_mode.is_some()) + self.payload_words()
    }

    /// Number of u32 words of value and weight.
    fn payload_words(&self) -> usize {
        1 + usize::from(self.weighted)
    }

    /// Returns a blocking without cuts into `blocks` random blocks of nearly equal size.
    pub(crate) fn uncut(
        row_counts: &[usize],
        fiber_mode: Option<usize>,
        blocks: usize,
        weighted: bool,
    ) -> BlockingSpec {
        BlockingSpec {
            row_counts: row_counts.to_vec(),
            fiber_mode,
            cuts: vec![None; row_counts.len()],
            parts_per_axis: blocks,
            axes: 1,
            seed: 0,
            weighted,
        }
    }

    /// Returns a blocking of the same entries into `shards` random shards, without cuts and fiber mode.
    pub(crate) fn random_shards(&self, shards: usize) -> BlockingSpec {
        BlockingSpec {
            seed: self.seed,
            ..Self::uncut(&self.row_counts, None, shards, self.weighted)
        }
    }

    /// Returns the modes whose rows an entry record in a block contains: all but the fiber mode.
    pub(crate) fn non_fiber_modes(&self) -> Vec<usize> {
        (0..self.order())
            .filter(|&n| self.fiber_mode != Some(n))
            .collect()
    }

    /// Returns the position of the row of mode `mode`, not the fiber mode, in an entry record of a block.
    pub(super) fn record_position(&self, mode: usize) -> usize {
        mode - usize::from(self.fiber_mode.is_some_and(|f| f < mode))
    }
}
