//! The plan of a fit: the partition of each mode, and where the entries of each matrix are processed.
//!
//! Large modes are cut into parts; a block has one part of every cut mode. Blocks without a common part run at the same
//! time. Small modes are not cut: every block works on a replica of their rows, and the replicas are merged. The plan is a
//! function of the data and the ranks alone, never of the machine or the thread count.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::cut_search::{MAX_REPLICAS, TensorSizes};
use crate::kernel::{BlockingSpec, CoreShape, MAX_ORDER, ModeCut, RowPartition};
use crate::problem::{MatrixKind, Problem};
use crate::random::{RandomStream, hash_words};
use crate::solver::entry_layout::Partition;
use crate::solver::stream_ids;
use crate::sort::stable_sort_by_key;

/// Entries that a block should process between two merges; short blocks share a merge.
const ENTRIES_PER_MERGE: usize = 8192;

/// Parts of uncut modes, for merge tasks and for matrices and graphs on them.
const UNCUT_MODE_PARTS: usize = 16;

/// A mode of the tensor in the plan.
pub(in crate::solver) struct ModePlan {
    /// The grid axis of its parts, if the mode is cut.
    pub axis: Option<usize>,
    pub partition: Arc<RowPartition>,
}

/// Where the entries of a matrix are processed.
pub(in crate::solver) enum MatrixPlacement {
    /// In the tensor blocks that have the part of the entry's row.
    TensorBlocks,
    /// In strata of their own: matrices on uncut modes, and graphs.
    OwnStrata,
    /// Outside the epoch: full matrices.
    OutsideEpoch,
}

/// A matrix in the plan.
pub(in crate::solver) struct MatrixPlan {
    pub placement: MatrixPlacement,
    /// Partition of its columns; `None` for a graph.
    pub columns: Option<Arc<RowPartition>>,
    /// Whether blocks work on replicas of the columns.
    pub columns_replicated: bool,
    pub blocking: Arc<BlockingSpec>,
}

/// The plan of a fit.
pub(in crate::solver) struct BlockingPlan {
    pub modes: Vec<ModePlan>,
    pub matrices: Vec<MatrixPlan>,
    /// The blocking of the tensor.
    pub blocking: Arc<BlockingSpec>,
    /// Number of tensor blocks of a stratum: a divisor of the number of parts per axis.
    pub blocks_per_stratum: usize,
    /// Number of consecutive tensor strata with one merge: more than one if blocks are short.
    pub strata_per_merge: usize,
    /// The number of entries of the longest row if entries are in conflict-free classes instead of blocks: hardly any
    /// two entries share a row.
    pub longest_row: Option<usize>,
}

impl BlockingPlan {
    pub(in crate::solver) fn new(
        problem: &Problem<'_>,
        shape: &CoreShape,
        seed: u64,
    ) -> BlockingPlan {
        let row_counts: Vec<&[u64]> = problem.modes().iter().map(|m| m.counts()).collect();
        let entries = problem.count() as usize;
        let sizes = TensorSizes::new(shape, entries, row_counts.clone());
        let mut cut = sizes.cheapest_cut();
        let longest_row = sizes
            .longest_row_for_classes()
            .filter(|_| cut.fiber_mode.is_none());
        if longest_row.is_some() {
            (cut.modes, cut.parts_per_axis) = (Vec::new(), 1);
        }
        let is_coupled = |n: usize| problem.matrices().iter().any(|m| m.mode == n);
        let stream_id = |purpose: u64, n: usize| [seed, stream_ids::PARTITION, purpose, n as u64];
        let modes: Vec<ModePlan> = row_counts
            .iter()
            .enumerate()
            .map(|(n, counts)| match cut.modes.iter().position(|&m| m == n) {
                Some(axis) => ModePlan {
                    axis: Some(axis),
                    partition: balanced_partition(counts, cut.parts_per_axis, &stream_id(0, n)),
                },
                // The last rows of a mode may have most entries of a matrix: contiguous parts would be uneven.
                None if longest_row.is_some() && is_coupled(n) => {
                    let part_count = UNCUT_MODE_PARTS.min(counts.len());
                    ModePlan {
                        axis: None,
                        partition: balanced_partition(counts, part_count, &stream_id(0, n)),
                    }
                }
                None => ModePlan {
                    axis: None,
                    partition: RowPartition::contiguous(counts.len(), UNCUT_MODE_PARTS),
                },
            })
            .collect();
        let blocking = Arc::new(BlockingSpec {
            row_counts: row_counts.iter().map(|c| c.len()).collect(),
            fiber_mode: cut.fiber_mode,
            cuts: modes
                .iter()
                .map(|m| m.axis.map(|axis| mode_cut(axis, &m.partition)))
                .collect(),
            parts_per_axis: cut.parts_per_axis,
            axes: cut.modes.len().max(1),
            seed: hash_words(&stream_id(1, 0)),
            weighted: problem.tensor().is_weighted(),
        });
        let matrices = problem
            .matrices()
            .iter()
            .enumerate()
            .map(|(k, m)| {
                let mode = &modes[m.mode];
                let matrix = MatrixSizes {
                    rows: &mode.partition,
                    column_counts: m.columns.counts(),
                    entries: m.entries.len(),
                    weighted: m.entries.is_weighted(),
                    seed: hash_words(&stream_id(2, k)),
                };
                match (m.kind, mode.axis) {
                    (MatrixKind::Graph, _) => matrix.graph(),
                    (MatrixKind::Full, _) => matrix.outside_epoch(),
                    (_, Some(axis)) => matrix.in_tensor_blocks(axis, &blocking),
                    (_, None) => matrix.in_own_strata(),
                }
            })
            .collect();
        let parts = blocking.parts_per_axis;
        let strata_per_merge = ENTRIES_PER_MERGE * blocking.block_count() / entries.max(1);
        BlockingPlan {
            modes,
            matrices,
            // Blocks of strata that share a merge wait for each other by parts, all of which every stratum must have.
            blocks_per_stratum: match strata_per_merge {
                0 | 1 => largest_divisor(parts, MAX_REPLICAS),
                _ => parts,
            },
            strata_per_merge: strata_per_merge.clamp(1, blocking.block_count() / parts),
            longest_row,
            blocking,
        }
    }

    /// Returns the blocking of the tensor and of the matrices.
    pub(in crate::solver) fn partition(&self) -> Partition {
        Partition {
            tensor: self.blocking.clone(),
            longest_row: self.longest_row,
            matrices: self.matrices.iter().map(|m| m.blocking.clone()).collect(),
        }
    }

    /// Number of tensor strata of a pass. No two blocks of a stratum have the same part of a cut mode.
    pub(super) fn strata(&self) -> usize {
        self.blocking.block_count() / self.blocks_per_stratum
    }

    /// Returns block `k` of a stratum. Strata form groups of equal size; group g has the parts from g * `blocks_per_stratum` on
    /// of axis 0, and block k has the k-th of them, p. Its part of each further axis is p plus an offset, modulo the number of
    /// parts. The offsets are the digits of the stratum's number within its group, written in base `parts_per_axis`.
    pub(super) fn block(&self, stratum: usize, k: usize) -> usize {
        let parts = self.blocking.parts_per_axis;
        let strata_per_group = self.strata() * self.blocks_per_stratum / parts;
        let (group, mut digits) = (stratum / strata_per_group, stratum % strata_per_group);
        let p = group * self.blocks_per_stratum + k;
        let mut coordinates = [0; MAX_ORDER];
        for (axis, x) in coordinates.iter_mut().enumerate().take(self.blocking.axes) {
            let mut digit = 0;
            if axis > 0 {
                (digit, digits) = (digits % parts, digits / parts);
            }
            *x = (p + digit) % parts;
        }
        self.blocking.block_at(&coordinates)
    }
}

/// Returns the largest divisor of `n` that is at most `max`.
fn largest_divisor(n: usize, max: usize) -> usize {
    let divides = |d: &usize| n.is_multiple_of(*d);
    (1..=n.min(max)).rev().find(divides).unwrap_or(1)
}

fn mode_cut(axis: usize, partition: &Arc<RowPartition>) -> ModeCut {
    ModeCut {
        axis,
        partition: partition.clone(),
    }
}

/// The sizes that decide how a matrix is processed.
struct MatrixSizes<'a> {
    rows: &'a Arc<RowPartition>,
    /// Number of entries of each column.
    column_counts: &'a [u64],
    entries: usize,
    weighted: bool,
    seed: u64,
}

impl MatrixSizes<'_> {
    fn row_counts(&self) -> Vec<usize> {
        vec![self.rows.row_count(), self.column_counts.len()]
    }

    /// A matrix on a cut mode: its entries are processed in the tensor blocks that have their row.
    fn in_tensor_blocks(&self, axis: usize, tensor: &BlockingSpec) -> MatrixPlan {
        let columns = self.column_counts.len();
        // Copying the columns for every block must cost less than the entries do.
        let replicated =
            columns < tensor.parts_per_axis || columns * tensor.block_count() <= self.entries;
        let other_axis = usize::from(axis == 0);
        let partition = if replicated {
            RowPartition::contiguous(columns, UNCUT_MODE_PARTS)
        } else {
            balanced_partition(self.column_counts, tensor.parts_per_axis, &[self.seed])
        };
        MatrixPlan {
            placement: MatrixPlacement::TensorBlocks,
            columns_replicated: replicated,
            blocking: Arc::new(BlockingSpec {
                row_counts: self.row_counts(),
                fiber_mode: Some(1),
                cuts: vec![
                    Some(mode_cut(axis, self.rows)),
                    (!replicated).then(|| mode_cut(other_axis, &partition)),
                ],
                parts_per_axis: tensor.parts_per_axis,
                axes: tensor.axes,
                seed: self.seed,
                weighted: self.weighted,
            }),
            columns: Some(partition),
        }
    }

    /// A matrix on an uncut mode.
    fn in_own_strata(&self) -> MatrixPlan {
        let part_count = self.rows.part_count().min(self.column_counts.len().max(1));
        let partition = balanced_partition(self.column_counts, part_count, &[self.seed]);
        MatrixPlan {
            placement: MatrixPlacement::OwnStrata,
            columns_replicated: false,
            blocking: Arc::new(BlockingSpec {
                row_counts: self.row_counts(),
                fiber_mode: Some(1),
                cuts: vec![Some(mode_cut(0, self.rows)), Some(mode_cut(1, &partition))],
                parts_per_axis: self.rows.part_count(),
                axes: 2,
                seed: self.seed,
                weighted: self.weighted,
            }),
            columns: Some(partition),
        }
    }

    /// A full matrix: an epoch only needs the partition of its columns.
    fn outside_epoch(&self) -> MatrixPlan {
        MatrixPlan {
            placement: MatrixPlacement::OutsideEpoch,
            columns_replicated: false,
            blocking: Arc::new(BlockingSpec {
                row_counts: self.row_counts(),
                fiber_mode: None,
                cuts: vec![None; 2],
                parts_per_axis: 1,
                axes: 1,
                seed: self.seed,
                weighted: false,
            }),
            columns: Some(RowPartition::contiguous(
                self.column_counts.len(),
                UNCUT_MODE_PARTS,
            )),
        }
    }

    /// A graph: both indices of an edge are rows of the mode.
    fn graph(&self) -> MatrixPlan {
        MatrixPlan {
            placement: MatrixPlacement::OwnStrata,
            columns_replicated: false,
            blocking: Arc::new(BlockingSpec {
                row_counts: vec![self.rows.row_count(); 2],
                fiber_mode: None,
                cuts: vec![Some(mode_cut(0, self.rows)), Some(mode_cut(1, self.rows))],
                parts_per_axis: self.rows.part_count(),
                axes: 2,
                seed: self.seed,
                weighted: false,
            }),
            columns: None,
        }
    }
}

/// Rows with more than this fraction of a mean part's entries are assigned first.
const LONG_ROW_FRACTION: u64 = 64;

/// Partitions rows with `counts` entries each into `part_count` parts. Rows are in random order, except that the longest
/// come first; each goes to the part with the fewest entries so far.
pub(super) fn balanced_partition(
    counts: &[u64],
    part_count: usize,
    stream_id: &[u64],
) -> Arc<RowPartition> {
    let mut order: Vec<u32> = (0..counts.len() as u32).collect();
    let mut stream = RandomStream::new(stream_id);
    for i in (1..order.len()).rev() {
        order.swap(i, stream.below(i as u64 + 1) as usize);
    }
    let total: u64 = counts.iter().sum();
    let long = total / (part_count as u64 * LONG_ROW_FRACTION) + 1;
    let mut long_rows: Vec<u32> = order
        .iter()
        .copied()
        .filter(|&r| counts[r as usize] > long)
        .collect();
    stable_sort_by_key(&mut long_rows, &|&r| Reverse(counts[r as usize]));
    let other_rows = order.into_iter().filter(|&r| counts[r as usize] <= long);
    let mut loads: BinaryHeap<Reverse<(u64, u16)>> =
        (0..part_count as u16).map(|p| Reverse((0, p))).collect();
    let mut part_of = vec![0; counts.len()];
    for row in long_rows.iter().copied().chain(other_rows) {
        if let Some(mut smallest) = loads.peek_mut() {
            part_of[row as usize] = smallest.0.1;
            // A row without entries counts as one, so that such rows are distributed too.
            smallest.0.0 += counts[row as usize].max(1);
        }
    }
    RowPartition::new(part_of, part_count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(parts: usize, axes: usize) -> BlockingPlan {
        BlockingPlan {
            modes: Vec::new(),
            matrices: Vec::new(),
            blocking: Arc::new(BlockingSpec {
                row_counts: vec![parts; axes],
                fiber_mode: None,
                cuts: vec![None; axes],
                parts_per_axis: parts,
                axes,
                seed: 0,
                weighted: false,
            }),
            blocks_per_stratum: largest_divisor(parts, MAX_REPLICAS),
            strata_per_merge: 1,
            longest_row: None,
        }
    }

    #[test]
    fn every_block_is_in_one_stratum_and_blocks_of_a_stratum_have_no_common_part() {
        for (parts, axes, blocks_per_stratum) in [
            (1, 2, 1),
            (7, 2, 7),
            (16, 3, 16),
            (48, 2, 16),
            (64, 2, 16),
            (48, 3, 16),
        ] {
            let plan = plan(parts, axes);
            assert_eq!(plan.blocks_per_stratum, blocks_per_stratum);
            let mut seen = vec![false; plan.blocking.block_count()];
            for stratum in 0..plan.strata() {
                let mut used = vec![vec![false; parts]; axes];
                for k in 0..blocks_per_stratum {
                    let block = plan.block(stratum, k);
                    assert!(!std::mem::replace(&mut seen[block], true));
                    let coordinates = plan.blocking.coordinates(block);
                    for (used, &part) in used.iter_mut().zip(&coordinates) {
                        assert!(!std::mem::replace(&mut used[part], true));
                    }
                }
            }
            assert!(seen.into_iter().all(|s| s));
        }
    }
}

#[cfg(test)]
mod balanced_partition_tests {
    use super::*;

    #[test]
    fn parts_have_nearly_the_same_number_of_entries() {
        let counts: Vec<u64> = (0..5000u64).map(|i| 20_000 / (i + 10)).collect();
        let partition = balanced_partition(&counts, 16, &[1]);
        let entries = |p: usize| -> u64 {
            let rows = partition.rows_of(p).iter();
            rows.map(|&r| counts[r as usize]).sum()
        };
        let loads: Vec<u64> = (0..16).map(entries).collect();
        let (smallest, largest) = (loads.iter().min().unwrap(), loads.iter().max().unwrap());
        assert!(largest - smallest < largest / 50, "{loads:?}");
    }
}
