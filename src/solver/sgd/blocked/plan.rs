//! How a problem is cut into blocks: a formula of the data and the ranks alone, never of the machine
//! or the number of threads, so that results do not depend on those.
//!
//! Modes that are large are cut into P parts each; a block is one part of every cut mode. Blocks
//! without a part in common run at the same time. Modes that are small are not cut: every block works
//! on a copy of their rows, and the copies are merged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::kernel::{BlockingSpec, LONGEST, ModeCut, RowPartition};
use crate::kernel::{CoreKind, CoreShape};

use crate::problem::{MatrixKind, Problem};
use crate::random::{RandomStream, hash_words};
use crate::simd::padded_len;
use crate::solver::stream_ids;
use crate::sort::stable_sort_by_key;

/// Rows of a block should fit a core's own cache with room to spare.
const BLOCK_BYTES: usize = 512 << 10;

/// Copies of small modes are at most this large.
const COPY_BYTES: usize = 256 << 10;

/// RowPartition to aim for where the rows would fit fewer: so that many threads have work.
const PARTS: usize = 16;

/// RowPartition there are at most.
const MOST_PARTS: usize = 128;

/// Entries a block should have at least: with batches, so many for each row of the fiber mode within
/// limits, and without.
const BLOCK_RUN: usize = 40;
const BLOCK_ENTRIES: std::ops::RangeInclusive<usize> = 4096..=16384;
const BLOCK_SINGLES: usize = 192;

/// Entries that classes without cuts should have: each is a step.
const CLASS_ENTRIES: usize = 2048;

/// Entries of a block between merges, if it takes several blocks to have them.
const MERGE_ENTRIES: usize = 8192;

/// RowPartition of modes that are not cut, for merging and for matrices and graphs on them.
const MERGE_PARTS: usize = 16;

/// A mode of the tensor in the plan.
pub(in crate::solver) struct ModePlan {
    /// Which coordinate of a block its part is, if it is cut.
    pub coordinate: Option<usize>,
    pub parts: Arc<RowPartition>,
}

/// Where the entries of a matrix are worked on.
pub(in crate::solver) enum Place {
    /// In the blocks of the tensor that have the part of its row.
    Blocks,
    /// In steps of their own: a matrix on a mode that is not cut, or a graph.
    Steps,
    /// Not in an epoch: a full matrix.
    Outside,
}

/// A matrix in the plan.
pub(in crate::solver) struct MatrixPlan {
    pub place: Place,
    /// RowPartition of its columns; `None` for a graph.
    pub columns: Option<Arc<RowPartition>>,
    /// Whether blocks work on copies of the columns.
    pub copied: bool,
    pub spec: Arc<BlockingSpec>,
}

/// How a problem is cut.
pub(in crate::solver) struct Plan {
    pub modes: Vec<ModePlan>,
    pub matrices: Vec<MatrixPlan>,
    pub spec: Arc<BlockingSpec>,
    /// How many steps of the tensor are merged together: more than one if blocks are short.
    pub together: usize,
    /// The entries of the longest row, if the tensor is not cut: hardly any entries share a row, and
    /// those that do not go together in classes.
    pub longest: Option<usize>,
}

/// What decides the cut: sizes and counts.
struct Sizes<'a> {
    shape: &'a CoreShape,
    entries: usize,
    counts: Vec<&'a [u64]>,
    largest: Vec<u64>,
}

/// A possible cut of the tensor.
#[derive(Debug, Clone, PartialEq)]
struct Cut {
    fiber: Option<usize>,
    modes: Vec<usize>,
    pieces: usize,
    cost: f64,
}

impl Plan {
    pub(in crate::solver) fn new(problem: &Problem<'_>, shape: &CoreShape, seed: u64) -> Plan {
        let counts: Vec<&[u64]> = problem.modes().iter().map(|m| m.counts()).collect();
        let sizes = Sizes {
            shape,
            entries: problem.count() as usize,
            largest: counts
                .iter()
                .map(|c| c.iter().copied().max().unwrap_or(0))
                .collect(),
            counts,
        };
        let mut cut = sizes.best();
        let longest = sizes.longest().filter(|_| cut.fiber.is_none());
        if longest.is_some() {
            (cut.modes, cut.pieces) = (Vec::new(), 1);
        }
        let coupled = |n: usize| problem.matrices().iter().any(|m| m.mode == n);
        let stream = |what: u64, n: usize| [seed, stream_ids::PARTITION, what, n as u64];
        let modes: Vec<ModePlan> = sizes
            .counts
            .iter()
            .enumerate()
            .map(|(n, counts)| match cut.modes.iter().position(|&m| m == n) {
                Some(c) => ModePlan {
                    coordinate: Some(c),
                    parts: even_parts(counts, cut.pieces, &stream(0, n)),
                },
                // Also rows at the end may have most entries of a matrix.
                None if longest.is_some() && coupled(n) => ModePlan {
                    coordinate: None,
                    parts: even_parts(counts, MERGE_PARTS.min(counts.len()), &stream(0, n)),
                },
                None => ModePlan {
                    coordinate: None,
                    parts: RowPartition::contiguous(counts.len(), MERGE_PARTS),
                },
            })
            .collect();
        let spec = Arc::new(BlockingSpec {
            row_counts: sizes.counts.iter().map(|c| c.len()).collect(),
            fiber_mode: cut.fiber,
            cuts: modes
                .iter()
                .map(|m| m.coordinate.map(|axis| cut_at(axis, &m.parts)))
                .collect(),
            parts_per_axis: cut.pieces,
            axes: cut.modes.len().max(1),
            seed: hash_words(&stream(1, 0)),
            weighted: problem.tensor().is_weighted(),
        });
        let matrices = problem
            .matrices()
            .iter()
            .enumerate()
            .map(|(k, m)| {
                let seed = hash_words(&stream(2, k));
                let rows = &modes[m.mode];
                let (n, columns) = (m.entries.len(), m.columns.counts());
                let name = (seed, m.entries.is_weighted());
                match (m.kind, rows.coordinate) {
                    (MatrixKind::Graph, _) => graph_plan(&rows.parts, seed),
                    (MatrixKind::Full, _) => outside(&rows.parts, columns, seed),
                    (_, Some(c)) => in_blocks(&rows.parts, c, columns, n, &spec, name),
                    (_, None) => in_steps(&rows.parts, columns, name),
                }
            })
            .collect();
        Plan {
            modes,
            matrices,
            together: (MERGE_ENTRIES * spec.block_count() / sizes.entries.max(1))
                .clamp(1, spec.block_count() / spec.parts_per_axis),
            longest,
            spec,
        }
    }

    /// Steps of the tensor in an epoch; the blocks of a step have no part in common.
    pub(in crate::solver) fn steps(&self) -> usize {
        self.spec.parts_per_axis.pow(self.spec.axes as u32 - 1)
    }

    /// The cell of block `p` in a step.
    pub(in crate::solver) fn cell(&self, step: usize, p: usize) -> usize {
        let (pieces, mut rest) = (self.spec.parts_per_axis, step);
        let mut place = [0; crate::kernel::MAX_ORDER];
        for (c, slot) in place.iter_mut().enumerate().take(self.spec.axes) {
            let mut shift = 0;
            if c > 0 {
                (shift, rest) = (rest % pieces, rest / pieces);
            }
            *slot = (p + shift) % pieces;
        }
        self.spec.block_at(&place)
    }
}

fn cut_at(axis: usize, partition: &Arc<RowPartition>) -> ModeCut {
    ModeCut {
        axis,
        partition: partition.clone(),
    }
}

/// A matrix whose rows are cut: its entries go with the blocks that have their row.
fn in_blocks(
    rows: &Arc<RowPartition>,
    coordinate: usize,
    columns: &[u64],
    entries: usize,
    tensor: &BlockingSpec,
    (seed, weighted): (u64, bool),
) -> MatrixPlan {
    // Copying the columns for every block must cost less than the entries do.
    let copied =
        columns.len() < tensor.parts_per_axis || columns.len() * tensor.block_count() <= entries;
    let other = usize::from(coordinate == 0);
    let parts = if copied {
        RowPartition::contiguous(columns.len(), MERGE_PARTS)
    } else {
        even_parts(columns, tensor.parts_per_axis, &[seed])
    };
    MatrixPlan {
        place: Place::Blocks,
        copied,
        spec: Arc::new(BlockingSpec {
            row_counts: vec![rows.row_count(), columns.len()],
            fiber_mode: Some(1),
            cuts: vec![
                Some(cut_at(coordinate, &rows)),
                (!copied).then(|| cut_at(other, &parts)),
            ],
            parts_per_axis: tensor.parts_per_axis,
            axes: tensor.axes,
            seed,
            weighted,
        }),
        columns: Some(parts),
    }
}

/// A matrix on a mode that is not cut.
fn in_steps(
    rows: &Arc<RowPartition>,
    columns: &[u64],
    (seed, weighted): (u64, bool),
) -> MatrixPlan {
    let parts = even_parts(
        columns,
        rows.part_count().min(columns.len().max(1)),
        &[seed],
    );
    MatrixPlan {
        place: Place::Steps,
        copied: false,
        spec: Arc::new(BlockingSpec {
            row_counts: vec![rows.row_count(), columns.len()],
            fiber_mode: Some(1),
            cuts: vec![Some(cut_at(0, &rows)), Some(cut_at(1, &parts))],
            parts_per_axis: rows.part_count(),
            axes: 2,
            seed,
            weighted,
        }),
        columns: Some(parts),
    }
}

/// A matrix whose entries are not worked on in an epoch; only its columns are there.
fn outside(rows: &Arc<RowPartition>, columns: &[u64], seed: u64) -> MatrixPlan {
    MatrixPlan {
        place: Place::Outside,
        copied: false,
        spec: Arc::new(BlockingSpec {
            row_counts: vec![rows.row_count(), columns.len()],
            fiber_mode: None,
            cuts: vec![None; 2],
            parts_per_axis: 1,
            axes: 1,
            seed,
            weighted: false,
        }),
        columns: Some(RowPartition::contiguous(columns.len(), MERGE_PARTS)),
    }
}

fn graph_plan(rows: &Arc<RowPartition>, seed: u64) -> MatrixPlan {
    MatrixPlan {
        place: Place::Steps,
        copied: false,
        spec: Arc::new(BlockingSpec {
            row_counts: vec![rows.row_count(); 2],
            fiber_mode: None,
            cuts: vec![Some(cut_at(0, &rows)), Some(cut_at(1, &rows))],
            parts_per_axis: rows.part_count(),
            axes: 2,
            seed,
            weighted: false,
        }),
        columns: None,
    }
}

/// Rows in random order, in `count` parts of nearly the same number of entries: the longest rows
/// first, each to the part that has the least.
fn even_parts(counts: &[u64], count: usize, name: &[u64]) -> Arc<RowPartition> {
    let mut order: Vec<u32> = (0..counts.len() as u32).collect();
    let mut stream = RandomStream::new(name);
    for i in (1..order.len()).rev() {
        order.swap(i, stream.below(i as u64 + 1) as usize);
    }
    let total: u64 = counts.iter().sum();
    let long = total / (count as u64 * 64) + 1;
    let mut first: Vec<u32> = order
        .iter()
        .copied()
        .filter(|&r| counts[r as usize] > long)
        .collect();
    stable_sort_by_key(&mut first, &|&r| Reverse(counts[r as usize]));
    let rest = order.into_iter().filter(|&r| counts[r as usize] <= long);
    let mut loads: BinaryHeap<Reverse<(u64, u16)>> =
        (0..count as u16).map(|p| Reverse((0, p))).collect();
    let mut of = vec![0; counts.len()];
    for row in first.iter().copied().chain(rest) {
        if let Some(mut least) = loads.peek_mut() {
            of[row as usize] = least.0.1;
            // Rows without entries count too: they have to be somewhere.
            least.0.0 += counts[row as usize].max(1);
        }
    }
    RowPartition::new(of, count)
}

impl Sizes<'_> {
    fn rows(&self, n: usize) -> usize {
        self.counts[n].len()
    }

    fn bytes(&self, n: usize) -> usize {
        self.rows(n) * padded_len(self.shape.ranks[n]) * 4
    }

    /// The entries of the longest row, if all rows are so short that classes are large.
    fn longest(&self) -> Option<usize> {
        let longest = self.largest.iter().copied().max().unwrap_or(0) as usize;
        let large = longest.saturating_mul(CLASS_ENTRIES) <= self.entries;
        (large && self.entries < u32::MAX as usize).then_some(longest)
    }

    /// The cheapest cut over all fiber modes, and without one.
    fn best(&self) -> Cut {
        let fibers = (0..self.shape.order()).map(Some).chain([None]);
        fibers
            .map(|fiber| self.cut(fiber))
            .min_by(|a, b| a.cost.total_cmp(&b.cost))
            .expect("there is always one without a fiber mode")
    }

    /// The cut with this fiber mode: the two largest modes, and whatever is too large to copy.
    fn cut(&self, fiber: Option<usize>) -> Cut {
        let order = self.shape.order();
        let mut by_size: Vec<usize> = (0..order).collect();
        stable_sort_by_key(&mut by_size, &|&n| {
            (Reverse(self.rows(n)), Some(n) == fiber)
        });
        let mut modes = by_size[..2].to_vec();
        let mut pieces = self.pieces(&modes, fiber);
        for &n in &by_size[2..] {
            let blocks = pieces.pow(modes.len() as u32);
            let copies = self.rows(n).saturating_mul(blocks);
            if self.bytes(n) > COPY_BYTES || copies > self.entries / 2 {
                modes.push(n);
                pieces = self.pieces(&modes, fiber);
            }
        }
        // Few parts keep many threads from helping; half of that counts.
        let idle = match fiber {
            None if self.longest().is_some() => 1.0,
            _ => (PARTS as f64 / pieces.min(PARTS) as f64).sqrt(),
        };
        Cut {
            cost: self.cost(fiber, &modes, pieces) * idle,
            fiber,
            modes,
            pieces,
        }
    }

    /// P: enough parts that the rows of a block fit the cache and threads have work, but not so many
    /// that blocks get short or one row outweighs a part.
    fn pieces(&self, modes: &[usize], fiber: Option<usize>) -> usize {
        let least = match fiber {
            Some(f) => {
                (BLOCK_RUN * self.rows(f)).clamp(*BLOCK_ENTRIES.start(), *BLOCK_ENTRIES.end())
            }
            None => BLOCK_SINGLES,
        };
        let blocks = (self.entries / least).max(1) as f64;
        let bytes: usize = modes.iter().map(|&n| self.bytes(n)).sum();
        let wanted = bytes.div_ceil(BLOCK_BYTES).clamp(PARTS, MOST_PARTS);
        // A hair more, since the root of a cube comes out a hair below.
        let by_entries = (blocks.powf(1.0 / modes.len() as f64) + 1e-9) as usize;
        let pieces = modes
            .iter()
            .map(|&n| {
                let share = self.entries as u64 / self.largest[n].max(1);
                self.rows(n).min(share as usize)
            })
            .fold(wanted.min(by_entries), usize::min)
            .max(1);
        // Short blocks are many, and better dealt out evenly.
        match fiber {
            None if pieces > PARTS => pieces / PARTS * PARTS,
            _ => pieces,
        }
    }

    /// The cost of an epoch, in lines multiplied and added.
    fn cost(&self, fiber: Option<usize>, modes: &[usize], pieces: usize) -> f64 {
        let n = self.entries as f64;
        let lines = |ranks: &[usize]| -> f64 {
            let (last, rest) = ranks.split_last().expect("at least one rank");
            let lines = (padded_len(*last) / 16) as f64;
            match self.shape.kind {
                CoreKind::Full => rest.iter().map(|&j| j as f64).product::<f64>() * lines,
                CoreKind::Diagonal => lines,
            }
        };
        let Some(f) = fiber else {
            return n * (4.0 * lines(&self.shape.ranks) + 20.0);
        };
        let listed: Vec<usize> = (0..self.shape.order())
            .filter(|&m| m != f)
            .map(|m| self.shape.ranks[m])
            .collect();
        let slab = lines(&listed);
        let slabs = match self.shape.kind {
            CoreKind::Full => self.shape.ranks[f] as f64,
            CoreKind::Diagonal => 1.0,
        };
        // Blocks a row of the fiber mode can be in, and how many of them it is in.
        let free = modes.len() - usize::from(modes.contains(&f));
        let blocks = (pieces as f64).powi(free as i32);
        let batches: f64 = self.counts[f]
            .iter()
            .map(|&c| {
                let c = c as f64;
                blocks * (1.0 - (-c / blocks).exp()) + c / LONGEST as f64
            })
            .sum();
        n * (3.0 * slab + 20.0) + batches * (5.0 * slabs * slab + 40.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(rows: &[usize], entries: usize, rank: usize, kind: CoreKind) -> Cut {
        with_sizes(rows, entries, rank, kind, |sizes| sizes.best())
    }

    fn with_sizes<T>(
        rows: &[usize],
        entries: usize,
        rank: usize,
        kind: CoreKind,
        look: impl Fn(&Sizes<'_>) -> T,
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
        let sizes = Sizes {
            shape: &shape,
            entries,
            largest: counts.iter().map(|c| *c.iter().max().unwrap()).collect(),
            counts: counts.iter().map(Vec::as_slice).collect(),
        };
        look(&sizes)
    }

    #[test]
    fn only_short_rows_make_classes() {
        let longest = |rows: &[usize]| {
            with_sizes(rows, 1_000_000, 8, CoreKind::Full, |sizes| sizes.longest())
        };
        assert_eq!(longest(&[100_000; 3]), Some(10));
        assert_eq!(longest(&[10_000; 4]), Some(100));
        assert_eq!(longest(&[100_000, 100_000, 100]), None);
    }

    #[test]
    fn ratings_are_batched_by_time_and_cut_by_user_and_item() {
        let c = cut(&[71_000, 11_000, 157], 8_000_000, 12, CoreKind::Full);
        assert_eq!((c.fiber, c.modes, c.pieces), (Some(2), vec![0, 1], 16));
        // As many parts as blocks of 4096 entries allow.
        let c = cut(&[3000, 3883, 29], 390_120, 12, CoreKind::Full);
        assert_eq!((c.fiber, c.modes, c.pieces), (Some(2), vec![1, 0], 9));
    }

    #[test]
    fn data_without_neighbours_is_not_batched() {
        let c = cut(&[1_000_000; 3], 1_000_000, 8, CoreKind::Full);
        assert_eq!((c.fiber, c.modes.len(), c.pieces), (None, 3, 16));
        // Batches of one or two do not pay if only a few blocks could run at once.
        let c = cut(&[100_000; 3], 1_000_000, 8, CoreKind::Full);
        assert_eq!((c.fiber, c.pieces), (None, 16));
        let c = cut(&[1000; 3], 1_000_000, 8, CoreKind::Full);
        assert!(c.fiber.is_some());
    }

    #[test]
    fn every_shape_gets_a_plan() {
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
                    assert!(c.pieces >= 1 && c.modes.len() >= 2);
                    assert!(c.modes.iter().all(|&n| c.pieces <= rows[n].max(1)));
                }
            }
        }
    }

    #[test]
    fn parts_have_the_same_number_of_entries() {
        let counts: Vec<u64> = (0..5000u64).map(|i| 20_000 / (i + 10)).collect();
        let parts = even_parts(&counts, 16, &[1]);
        let loads: Vec<u64> = (0..16)
            .map(|p| parts.rows_of(p).iter().map(|&r| counts[r as usize]).sum())
            .collect();
        let (least, most) = (loads.iter().min().unwrap(), loads.iter().max().unwrap());
        assert!(most - least < most / 50, "{loads:?}");
    }
}
