//! The choice of the fiber mode and of the modes to cut, by a cost model.
//!
//! The choice is a function of the data and the ranks alone, never of the machine or the thread count, so that results do
//! not depend on those.

use std::cmp::Reverse;
use std::ops::RangeInclusive;

use crate::kernel::{CoreKind, CoreShape, MAX_BATCH_LEN};
use crate::simd::{LANES, padded_len};
use crate::sort::stable_sort_by_key;

/// Bytes of the cut modes' rows that a block should have at most, to fit the L2 cache with room to spare.
const MAX_BLOCK_ROW_BYTES: usize = 512 << 10;

/// Bytes of a replicated mode at most.
const MAX_REPLICA_BYTES: usize = 256 << 10;

/// Parts per axis to aim for if the cache would allow fewer, so that many threads have work.
const TARGET_PARTS: usize = 16;

/// Blocks that run at the same time at most, if they are long. Each has replicas of its own. The more replicas are merged, the
/// more entries are between two merges, and the slower a fit converges (docs/notes/convergence.md).
pub(super) const MAX_REPLICAS: usize = 16;

/// Parts per axis at most.
const MAX_PARTS: usize = 128;

/// Entries per row of the fiber mode that a block should have at least, within [`MIN_BLOCK_ENTRIES`].
const MIN_ENTRIES_PER_FIBER_ROW: usize = 40;
const MIN_BLOCK_ENTRIES: RangeInclusive<usize> = 4096..=16384;

/// Entries that a block without a fiber mode should have at least.
const MIN_BLOCK_ENTRIES_UNBATCHED: usize = 192;

/// Entries that conflict-free classes should have on average: each class costs a barrier.
const MIN_CLASS_ENTRIES: usize = 2048;

/// Cost of the bookkeeping of one entry and of one batch, in vector multiply-adds.
const ENTRY_OVERHEAD: f64 = 20.0;
const BATCH_OVERHEAD: f64 = 40.0;

/// The sizes that decide the cut.
pub(super) struct TensorSizes<'a> {
    shape: &'a CoreShape,
    /// Number of entries of the tensor.
    entries: usize,
    /// For each mode, the number of entries of each row.
    row_counts: Vec<&'a [u64]>,
    /// For each mode, the number of entries of its longest row.
    longest_rows: Vec<u64>,
}

/// A possible cut of the tensor.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TensorCut {
    pub fiber_mode: Option<usize>,
    /// The cut modes, in the order of the axes.
    pub modes: Vec<usize>,
    pub parts_per_axis: usize,
    /// Estimated cost of an epoch.
    cost: f64,
}

impl<'a> TensorSizes<'a> {
    pub(super) fn new(shape: &'a CoreShape, entries: usize, row_counts: Vec<&'a [u64]>) -> Self {
        let longest_row = |counts: &&[u64]| counts.iter().copied().max().unwrap_or(0);
        TensorSizes {
            shape,
            entries,
            longest_rows: row_counts.iter().map(longest_row).collect(),
            row_counts,
        }
    }

    fn rows(&self, n: usize) -> usize {
        self.row_counts[n].len()
    }

    fn bytes(&self, n: usize) -> usize {
        self.rows(n) * padded_len(self.shape.ranks()[n]) * 4
    }

    /// Returns the number of entries of the longest row if all rows are so short that conflict-free classes are large.
    pub(super) fn longest_row_for_classes(&self) -> Option<usize> {
        let longest = self.longest_rows.iter().copied().max().unwrap_or(0) as usize;
        let classes_are_large = longest.saturating_mul(MIN_CLASS_ENTRIES) <= self.entries;
        (classes_are_large && self.entries < u32::MAX as usize).then_some(longest)
    }

    /// Returns the cheapest cut over all fiber modes and none.
    pub(super) fn cheapest_cut(&self) -> TensorCut {
        let fiber_modes = (0..self.shape.order()).map(Some).chain([None]);
        fiber_modes
            .map(|fiber_mode| self.cut(fiber_mode))
            .min_by(|a, b| a.cost.total_cmp(&b.cost))
            .expect("the cut without a fiber mode always exists")
    }

    /// Returns the cut with this fiber mode: of the two largest modes, and of all modes that are too large to replicate.
    fn cut(&self, fiber_mode: Option<usize>) -> TensorCut {
        let order = self.shape.order();
        let mut by_size: Vec<usize> = (0..order).collect();
        stable_sort_by_key(&mut by_size, &|&n| {
            (Reverse(self.rows(n)), Some(n) == fiber_mode)
        });
        let mut modes = by_size[..2].to_vec();
        let mut parts = self.parts_per_axis(&modes, fiber_mode);
        for &n in &by_size[2..] {
            let blocks = parts.pow(modes.len() as u32);
            let replicated_rows = self.rows(n).saturating_mul(blocks);
            if self.bytes(n) > MAX_REPLICA_BYTES || replicated_rows > self.entries / 2 {
                modes.push(n);
                parts = self.parts_per_axis(&modes, fiber_mode);
            }
        }
        // Few parts leave threads without work. How many threads there will be is unknown; the square root is a compromise.
        let idle_factor = match fiber_mode {
            None if self.longest_row_for_classes().is_some() => 1.0,
            _ => (TARGET_PARTS as f64 / parts.min(TARGET_PARTS) as f64).sqrt(),
        };
        TensorCut {
            cost: self.cost(fiber_mode, &modes, parts) * idle_factor,
            fiber_mode,
            modes,
            parts_per_axis: parts,
        }
    }

    /// Returns the number of parts per axis: enough that the rows of a block fit the cache and threads have work, but not so
    /// many that blocks get short or one row outweighs a part.
    fn parts_per_axis(&self, modes: &[usize], fiber_mode: Option<usize>) -> usize {
        let min_block_entries = match fiber_mode {
            Some(f) => (MIN_ENTRIES_PER_FIBER_ROW * self.rows(f))
                .clamp(*MIN_BLOCK_ENTRIES.start(), *MIN_BLOCK_ENTRIES.end()),
            None => MIN_BLOCK_ENTRIES_UNBATCHED,
        };
        let max_blocks = (self.entries / min_block_entries).max(1) as f64;
        let bytes: usize = modes.iter().map(|&n| self.bytes(n)).sum();
        let mut wanted = bytes
            .div_ceil(MAX_BLOCK_ROW_BYTES)
            .clamp(TARGET_PARTS, MAX_PARTS);
        if wanted > MAX_REPLICAS {
            wanted = wanted.next_multiple_of(TARGET_PARTS);
        }
        // The offset makes the root of an exact power come out whole in spite of rounding.
        let by_entries = (max_blocks.powf(1.0 / modes.len() as f64) + 1e-9) as usize;
        let parts = modes
            .iter()
            .map(|&n| {
                let by_longest_row = self.entries as u64 / self.longest_rows[n].max(1);
                self.rows(n).min(by_longest_row as usize)
            })
            .fold(wanted.min(by_entries), usize::min)
            .max(1);
        // Unbatched blocks are short and many; a multiple of the target distributes them evenly. More parts than replicas are
        // distributed among several strata, so their number needs a divisor.
        let max_unrounded = match fiber_mode {
            None => TARGET_PARTS,
            Some(_) => MAX_REPLICAS,
        };
        if parts > max_unrounded {
            parts / TARGET_PARTS * TARGET_PARTS
        } else {
            parts
        }
    }

    /// Returns the estimated cost of an epoch in vector multiply-adds.
    fn cost(&self, fiber_mode: Option<usize>, modes: &[usize], parts_per_axis: usize) -> f64 {
        let n = self.entries as f64;
        let core_vectors = |ranks: &[usize]| -> f64 {
            let (last, others) = ranks.split_last().expect("at least one rank");
            let row_vectors = (padded_len(*last) / LANES) as f64;
            match self.shape.kind() {
                CoreKind::Full => others.iter().map(|&j| j as f64).product::<f64>() * row_vectors,
                CoreKind::Diagonal => row_vectors,
            }
        };
        let Some(f) = fiber_mode else {
            return n * (4.0 * core_vectors(self.shape.ranks()) + ENTRY_OVERHEAD);
        };
        let non_fiber_ranks: Vec<usize> = (0..self.shape.order())
            .filter(|&m| m != f)
            .map(|m| self.shape.ranks()[m])
            .collect();
        let slab = core_vectors(&non_fiber_ranks);
        let slabs = match self.shape.kind() {
            CoreKind::Full => self.shape.ranks()[f] as f64,
            CoreKind::Diagonal => 1.0,
        };
        // Expected number of blocks in which a fiber row with c entries occurs, out of those it can be in.
        let free_axes = modes.len() - usize::from(modes.contains(&f));
        let blocks = (parts_per_axis as f64).powi(free_axes as i32);
        let batches: f64 = self.row_counts[f]
            .iter()
            .map(|&c| {
                let c = c as f64;
                blocks * (1.0 - (-c / blocks).exp()) + c / MAX_BATCH_LEN as f64
            })
            .sum();
        n * (3.0 * slab + ENTRY_OVERHEAD) + batches * (5.0 * slabs * slab + BATCH_OVERHEAD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(rows: &[usize], entries: usize, rank: usize, kind: CoreKind) -> TensorCut {
        with_sizes(rows, entries, rank, kind, |sizes| sizes.cheapest_cut())
    }

    fn with_sizes<T>(
        rows: &[usize],
        entries: usize,
        rank: usize,
        kind: CoreKind,
        check: impl Fn(&TensorSizes<'_>) -> T,
    ) -> T {
        let shape = CoreShape::new(kind, &vec![rank; rows.len()]);
        let counts: Vec<Vec<u64>> = rows
            .iter()
            .map(|&r| {
                (0..r)
                    .map(|i| (entries * (i + 1) / r - entries * i / r) as u64)
                    .collect()
            })
            .collect();
        let counts = counts.iter().map(Vec::as_slice).collect();
        check(&TensorSizes::new(&shape, entries, counts))
    }

    #[test]
    fn only_short_rows_allow_classes() {
        let longest_row = |rows: &[usize]| {
            with_sizes(rows, 1_000_000, 8, CoreKind::Full, |sizes| {
                sizes.longest_row_for_classes()
            })
        };
        assert_eq!(longest_row(&[100_000; 3]), Some(10));
        assert_eq!(longest_row(&[10_000; 4]), Some(100));
        assert_eq!(longest_row(&[100_000, 100_000, 100]), None);
    }

    #[test]
    fn ratings_are_batched_by_time_and_cut_by_user_and_item() {
        let c = cut(&[71_000, 11_000, 157], 8_000_000, 12, CoreKind::Full);
        assert_eq!(
            (c.fiber_mode, c.modes, c.parts_per_axis),
            (Some(2), vec![0, 1], 16)
        );
        // As many parts as blocks of 4096 entries allow.
        let c = cut(&[3000, 3883, 29], 390_120, 12, CoreKind::Full);
        assert_eq!(
            (c.fiber_mode, c.modes, c.parts_per_axis),
            (Some(2), vec![1, 0], 9)
        );
    }

    #[test]
    fn many_parts_are_a_multiple_of_the_target() {
        // The rows of both modes take 60.8 times the memory of a block.
        let c = cut(&[480_000, 18_000, 74], 80_000_000, 12, CoreKind::Full);
        assert_eq!((c.fiber_mode, c.parts_per_axis), (Some(2), 64));
        // Shorter blocks would be needed for more parts.
        let c = cut(&[480_000, 18_000, 74], 10_000_000, 12, CoreKind::Full);
        assert_eq!((c.fiber_mode, c.parts_per_axis), (Some(2), 48));
        let c = cut(&[200_000, 18_000, 74], 80_000_000, 12, CoreKind::Full);
        assert_eq!((c.fiber_mode, c.parts_per_axis), (Some(2), 32));
    }

    #[test]
    fn data_without_shared_rows_is_not_batched() {
        let c = cut(&[1_000_000; 3], 1_000_000, 8, CoreKind::Full);
        assert_eq!(
            (c.fiber_mode, c.modes.len(), c.parts_per_axis),
            (None, 3, 16)
        );
        // Batches of one or two entries do not pay if only a few blocks could run at once.
        let c = cut(&[100_000; 3], 1_000_000, 8, CoreKind::Full);
        assert_eq!((c.fiber_mode, c.parts_per_axis), (None, 16));
        let c = cut(&[1000; 3], 1_000_000, 8, CoreKind::Full);
        assert!(c.fiber_mode.is_some());
    }

    #[test]
    fn every_shape_has_a_cut() {
        for kind in [CoreKind::Full, CoreKind::Diagonal] {
            for rows in [
                vec![1, 1],
                vec![5, 3],
                vec![100_000, 20_000],
                vec![1, 1, 1],
                vec![1, 1000, 1],
                vec![265, 265, 24, 12],
                vec![100_000, 90_000, 80_000, 2],
                vec![30; 8],
            ] {
                for entries in [1, 100, 10_000, 1_000_000] {
                    let c = cut(&rows, entries, 4, kind);
                    assert!(c.parts_per_axis >= 1 && c.modes.len() >= 2);
                    assert!(c.modes.iter().all(|&n| c.parts_per_axis <= rows[n].max(1)));
                }
            }
        }
    }
}
