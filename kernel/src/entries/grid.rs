//! The geometry of a blocking: the partition of rows into parts, and a grid of blocks over the cut modes.
//!
//! Each cut mode has a partition of its rows and is one axis of the grid. The parts that an entry's rows belong
//! to are its block coordinates. Blocks that differ in every coordinate share no row of a cut mode, so threads
//! may process them at the same time.

use std::sync::Arc;

use crate::shape::core_shape::MAX_ORDER;

/// One mode of a blocking that is cut into parts.
#[derive(Clone)]
pub struct ModeCut {
    /// The grid axis whose coordinate is the part of the mode's row.
    pub axis: usize,
    /// Rows of each part.
    pub partition: Arc<RowPartition>,
}

/// How the entries of a tensor or matrix are sorted into blocks.
pub struct BlockingSpec {
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
    pub fn block_count(&self) -> usize {
        self.parts_per_axis.pow(self.axes as u32)
    }

    /// Returns the coordinates of a block; those beyond [`Self::axes`] are 0.
    pub fn coordinates(&self, block: usize) -> [usize; MAX_ORDER] {
        let mut coordinates = [0; MAX_ORDER];
        let mut rest = block;
        for x in coordinates.iter_mut().take(self.axes) {
            (*x, rest) = (rest % self.parts_per_axis, rest / self.parts_per_axis);
        }
        coordinates
    }

    /// Returns the index of the block at these coordinates. Axis 0 varies fastest.
    pub fn block_at(&self, coordinates: &[usize]) -> usize {
        coordinates[..self.axes]
            .iter()
            .rev()
            .fold(0, |block, x| block * self.parts_per_axis + x)
    }

    /// Number of modes.
    #[inline]
    pub(crate) fn order(&self) -> usize {
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
    pub(crate) fn record_words(&self) -> usize {
        self.order() - usize::from(self.fiber_mode.is_some()) + self.payload_words()
    }

    /// Number of u32 words of value and weight.
    fn payload_words(&self) -> usize {
        1 + usize::from(self.weighted)
    }

    /// Returns a blocking without cuts into `blocks` random blocks of nearly equal size.
    pub fn uncut(
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
    pub fn random_shards(&self, shards: usize) -> BlockingSpec {
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

/// A partition of rows `0..row_count` into parts `0..part_count`.
pub struct RowPartition {
    /// The part of each row.
    part_of: Vec<u16>,
    /// All rows, those of a part adjacent and ascending.
    rows: Vec<u32>,
    /// Where the rows of each part start in `rows`, and the end of the last.
    starts: Vec<usize>,
}

impl RowPartition {
    /// Builds a partition from the part of every row.
    ///
    /// # Panics
    /// If the part of a row is not below `part_count`.
    pub fn new(part_of: Vec<u16>, part_count: usize) -> Arc<RowPartition> {
        let mut starts = vec![0usize; part_count + 1];
        for &p in &part_of {
            starts[usize::from(p) + 1] += 1;
        }
        for p in 0..part_count {
            starts[p + 1] += starts[p];
        }
        let mut next = starts.clone();
        let mut rows = vec![0; part_of.len()];
        for (row, &p) in part_of.iter().enumerate() {
            rows[next[usize::from(p)]] = row as u32;
            next[usize::from(p)] += 1;
        }
        Arc::new(RowPartition {
            part_of,
            rows,
            starts,
        })
    }

    /// Cuts `row_count` rows into at most `part_count` contiguous parts of nearly equal size.
    pub fn contiguous(row_count: usize, part_count: usize) -> Arc<RowPartition> {
        let part_count = part_count.clamp(1, row_count.max(1));
        let part_of = (0..row_count)
            .map(|r| (r * part_count / row_count) as u16)
            .collect();
        RowPartition::new(part_of, part_count)
    }

    /// Number of parts.
    #[inline]
    pub fn part_count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of rows.
    #[inline]
    pub fn row_count(&self) -> usize {
        self.part_of.len()
    }

    /// Returns the part of a row.
    #[inline]
    pub fn part_of(&self, row: u32) -> u16 {
        self.part_of[row as usize]
    }

    /// Returns the rows of a part in ascending order.
    #[inline]
    pub fn rows_of(&self, part: usize) -> &[u32] {
        &self.rows[self.starts[part]..self.starts[part + 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_lists_the_rows_of_each_part() {
        let partition = RowPartition::new(vec![0, 2, 0, 1], 3);
        assert_eq!(
            (
                partition.rows_of(0),
                partition.rows_of(1),
                partition.rows_of(2)
            ),
            (&[0, 2][..], &[3][..], &[1][..])
        );
        let partition = RowPartition::contiguous(10, 3);
        assert_eq!((partition.part_count(), partition.row_count()), (3, 10));
        assert_eq!(partition.rows_of(0), [0, 1, 2, 3]);
        assert_eq!(RowPartition::contiguous(2, 5).part_count(), 2);
        assert_eq!(RowPartition::contiguous(0, 5).row_count(), 0);
    }
}
