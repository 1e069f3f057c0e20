//! Entries in conflict-free classes, for data in which hardly any two entries share a row.
//!
//! A class consists of blocks of which no two share a row of any mode, so any number of threads may process the
//! blocks of one class at the same time and in any order. Classes come from a colouring of the entries.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::block::EntryBlock;
use super::colouring::{EntryColouring, MAX_CONFLICTING_ENTRIES};
use super::exclusive_rows::{AllRowsMut, ExclusiveRows, RowsMut};
use super::grid::BlockingSpec;
use crate::error::Result;
use crate::random::RandomStream;
use crate::try_alloc::{try_to_vec, try_with_capacity, try_zeroed};

/// Entries that a block should have at least: each block copies the core.
const MIN_BLOCK_ENTRIES: usize = 128;

/// Entries that a block has at most.
const MAX_BLOCK_ENTRIES: usize = 512;

/// Blocks of a class to aim for, so that threads of different speed share the work evenly.
const TARGET_BLOCKS: usize = 128;

/// A set of rows per mode, to check that no two blocks of a class share a row. Empty between checks.
#[derive(Default)]
pub struct RowBitSets {
    /// For each mode, one bit per row.
    modes: Vec<Vec<u64>>,
}

impl RowBitSets {
    /// Calls `visit` with the word and the bit of every row of every entry.
    fn for_each_row(&mut self, blocks: &[EntryBlock], mut visit: impl FnMut(&mut u64, u64)) {
        for block in blocks {
            for record in block.records().chunks_exact(block.record_words()) {
                for (mode, &row) in self.modes.iter_mut().zip(record) {
                    visit(&mut mode[row as usize / 64], 1 << (row % 64));
                }
            }
        }
    }

    /// Checks that no two of `blocks` share a row.
    ///
    /// # Panics
    /// If two blocks share a row, or one of several blocks contains a row twice.
    fn assert_disjoint(&mut self, spec: &BlockingSpec, blocks: &[EntryBlock]) -> Result<()> {
        if blocks.len() < 2 {
            return Ok(());
        }
        if self.modes.is_empty() {
            let words = |rows: &usize| try_zeroed(rows.div_ceil(64), "rows");
            self.modes = spec.row_counts.iter().map(words).collect::<Result<_>>()?;
        }
        assert_eq!(self.modes.len(), spec.row_counts.len());
        self.for_each_row(blocks, |word, bit| {
            assert!(*word & bit == 0, "two blocks of a class share a row");
            *word |= bit;
        });
        self.for_each_row(blocks, |word, _| *word = 0);
        Ok(())
    }
}

/// Blocks of which no two share a row; the constructor checks this.
pub struct ConflictFreeClass {
    blocks: Vec<EntryBlock>,
}

impl ConflictFreeClass {
    /// Builds the class of one colour. Its entries are in random order.
    ///
    /// # Panics
    /// If an entry has a row beyond the row counts, or two blocks share a row.
    pub fn new(
        spec: &Arc<BlockingSpec>,
        colouring: &EntryColouring,
        colour: usize,
        rows: &mut RowBitSets,
    ) -> Result<ConflictFreeClass> {
        let width = spec.full_record_words();
        let (entries, records) = colouring.entries(colour);
        let mut order: Vec<u32> = try_to_vec(entries, "entries")?;
        let mut stream = RandomStream::new(&[spec.seed, colour as u64]);
        for i in (1..order.len()).rev() {
            order.swap(i, stream.below(i as u64 + 1) as usize);
        }
        // Entries of the last colour may conflict: they form a single block.
        let count = if colour + 1 == colouring.count() && order.len() <= MAX_CONFLICTING_ENTRIES {
            1
        } else {
            (order.len() / MIN_BLOCK_ENTRIES)
                .clamp(1, TARGET_BLOCKS)
                .max(order.len().div_ceil(MAX_BLOCK_ENTRIES))
        };
        let cut = |k: usize| order.len() * k / count;
        let block = |k: usize| {
            let entries = &order[cut(k)..cut(k + 1)];
            let mut own = try_with_capacity(entries.len() * width, "words of entries")?;
            for &i in entries {
                own.extend_from_slice(&records[i as usize * width..][..width]);
            }
            Ok(EntryBlock::from_records(spec, own))
        };
        let blocks = (0..count).map(block).collect::<Result<_>>()?;
        ConflictFreeClass::from_blocks(spec, blocks, rows)
    }

    /// # Panics
    /// If two blocks share a row.
    pub(crate) fn from_blocks(
        spec: &BlockingSpec,
        blocks: Vec<EntryBlock>,
        rows: &mut RowBitSets,
    ) -> Result<ConflictFreeClass> {
        rows.assert_disjoint(spec, &blocks)?;
        Ok(ConflictFreeClass { blocks })
    }
}

/// The blocks of all conflict-free classes. No two blocks of a class share a row: the constructor of each class
/// checked this, and nothing changes rows afterwards.
pub struct ConflictFreeClasses {
    /// The blocks of all classes, class after class.
    blocks: Vec<EntryBlock>,
    /// Index of the first block of each class, and the number of blocks.
    starts: Vec<usize>,
    entries: usize,
}

impl ConflictFreeClasses {
    /// Combines classes and numbers their blocks.
    ///
    /// # Panics
    /// If a block has another blocking than `spec`.
    pub fn new(spec: &Arc<BlockingSpec>, classes: Vec<ConflictFreeClass>) -> ConflictFreeClasses {
        let mut starts = vec![0];
        let mut blocks = Vec::new();
        for class in classes {
            for mut block in class.blocks {
                assert!(Arc::ptr_eq(block.spec(), spec) && spec.fiber_mode.is_none());
                block.set_index(blocks.len());
                blocks.push(block);
            }
            starts.push(blocks.len());
        }
        ConflictFreeClasses {
            entries: blocks.iter().map(EntryBlock::len).sum(),
            blocks,
            starts,
        }
    }

    /// Number of classes.
    pub fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Returns the blocks of all classes, to change their values; their rows cannot change.
    pub fn blocks_mut(&mut self) -> &mut [EntryBlock] {
        &mut self.blocks
    }

    /// Returns the blocks of all classes.
    pub fn blocks(&self) -> &[EntryBlock] {
        &self.blocks
    }

    /// Returns the range of the blocks of a class.
    pub fn block_range(&self, class: usize) -> Range<usize> {
        self.starts[class]..self.starts[class + 1]
    }

    /// Borrows all rows of all modes for the blocks of a class.
    ///
    /// # Panics
    /// If another borrow of a row exists, or `modes` do not have the rows of the blocks.
    pub fn borrow_rows<'a>(
        &'a self,
        class: usize,
        modes: &'a [ExclusiveRows<'a>],
    ) -> ClassRows<'a> {
        let range = self.block_range(class);
        let spec = self.blocks[range.start].spec();
        let has_rows =
            |(rows, mode): (&usize, &ExclusiveRows<'_>)| mode.partition().row_count() >= *rows;
        assert!(
            spec.row_counts.len() == modes.len() && spec.row_counts.iter().zip(modes).all(has_rows)
        );
        ClassRows {
            taken: range.clone().map(|_| AtomicBool::new(false)).collect(),
            blocks: &self.blocks[range],
            modes: modes.iter().map(ExclusiveRows::borrow_all_mut).collect(),
        }
    }
}

/// A borrow of all rows, distributed among the blocks of one class.
pub struct ClassRows<'a> {
    blocks: &'a [EntryBlock],
    /// Whether each block has been taken.
    taken: Vec<AtomicBool>,
    /// For each mode, all of its rows.
    modes: Vec<AllRowsMut<'a>>,
}

impl ClassRows<'_> {
    /// Returns the exclusive use of the rows of block `block` of the class. Each block can be taken once.
    ///
    /// # Panics
    /// If the block was taken before.
    pub fn take_block(&self, block: usize) -> BlockRows<'_> {
        let taken = self.taken[block].swap(true, Ordering::SeqCst);
        assert!(!taken, "block {block} was taken before: a wrong schedule");
        BlockRows { class: self, block }
    }
}

/// The exclusive use of the rows of one block.
pub struct BlockRows<'a> {
    class: &'a ClassRows<'a>,
    block: usize,
}

impl<'a> BlockRows<'a> {
    pub fn block(&self) -> &'a EntryBlock {
        &self.class.blocks[self.block]
    }

    /// Returns the rows of each mode for a kernel.
    pub fn modes_mut(&mut self) -> impl Iterator<Item = RowsMut<'_>> {
        let block = self.block();
        let rows_of_block = move |rows: &'a AllRowsMut<'a>| {
            // SAFETY: no two blocks of a class share a row, `take_block` returned this block once, and `&mut self` is
            // borrowed while the result exists. Each mode has memory of its own.
            unsafe { rows.rows_of_block(block) }
        };
        self.class.modes.iter().map(rows_of_block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::chunk::EntryChunk;
    use crate::entries::chunk::SortedChunk;
    use crate::entries::colouring::ColouringPlan;
    use crate::entries::grid::RowPartition;

    const ROWS: [u64; 3] = [900, 700, 800];

    fn spec() -> Arc<BlockingSpec> {
        Arc::new(BlockingSpec {
            row_counts: ROWS.map(|r| r as usize).to_vec(),
            fiber_mode: None,
            cuts: vec![None; 3],
            parts_per_axis: 1,
            axes: 1,
            seed: 5,
            weighted: false,
        })
    }

    /// Classes of `n` random entries, sorted in chunks of different length. The first `long` entries share a row.
    fn classes(
        n: usize,
        long: usize,
        plan: ColouringPlan,
    ) -> (EntryColouring, ConflictFreeClasses) {
        let mut s = RandomStream::new(&[n as u64]);
        let mut rows = ROWS
            .map(|d| (0..n).map(|_| s.below(d) as u32).collect::<Vec<u32>>())
            .to_vec();
        rows[1][..long].fill(3);
        let chunk = |from: usize, to: usize| EntryChunk {
            rows: rows.iter().map(|r| r[from..to].to_vec()).collect(),
            values: (from..to).map(|i| i as f32).collect(),
            weights: Vec::new(),
        };
        let spec = spec();
        let by_shard = spec.random_shards(plan.shards);
        let sort = |w: &[usize]| SortedChunk::new(&by_shard, &chunk(w[0], w[1]), w[0]).unwrap();
        let sorted: Vec<_> = [0, n / 3, n / 2, n].windows(2).map(sort).collect();
        let shards = (0..plan.shards).map(|s| plan.colour_shard(&spec, &sorted, s).unwrap());
        let colouring = plan.combine(&spec, shards.collect()).unwrap();
        let rows = &mut RowBitSets::default();
        let class = |c| ConflictFreeClass::new(&spec, &colouring, c, rows).unwrap();
        let classes = (0..colouring.count()).map(class).collect();
        let classes = ConflictFreeClasses::new(&spec, classes);
        (colouring, classes)
    }

    #[test]
    #[cfg_attr(miri, ignore = "too slow: thousands of entries")]
    fn every_entry_is_in_one_class_and_no_class_contains_a_row_twice() {
        // Few colours leave many entries uncoloured; the long rows exceed the 64 colours of a mask.
        for (n, long, shards, colours) in [
            (20_000, 0, 1, 40),
            (20_000, 0, 4, 5),
            (9000, 150, 1, 40),
            (9000, 150, 3, 4),
        ] {
            let (colouring, classes) = classes(n, long, ColouringPlan::fixed(shards, colours));
            assert_eq!((classes.len(), classes.count()), (n, colouring.count()));
            assert!(classes.count() > 20);
            // The colours of the shards have nearly the same size.
            let sizes = (0..shards * colours).map(|c| colouring.entries(c).0.len());
            let (smallest, largest) = (sizes.clone().min().unwrap(), sizes.max().unwrap());
            assert!(4 * smallest > 3 * largest, "{smallest} {largest}");
            let mut found = Vec::new();
            for class in 0..classes.count() {
                let range = classes.block_range(class);
                // Entries of the last class may conflict if they form a single block.
                let may_conflict = class + 1 == classes.count() && range.len() == 1;
                let mut block_of_row = ROWS.map(|r| vec![None; r as usize]);
                let mut entries = 0;
                for index in range {
                    let block = &classes.blocks()[index];
                    assert_eq!(block.index(), index);
                    entries += block.len();
                    block.for_each_entry(|rows, value, _| {
                        found.push(value as usize);
                        for (block_of_row, &row) in block_of_row.iter_mut().zip(rows) {
                            let last = block_of_row[row as usize].replace(index);
                            assert!(last.is_none() || may_conflict);
                        }
                    });
                }
                assert_eq!(entries, colouring.entries(class).0.len());
            }
            found.sort_unstable();
            assert!(found.into_iter().eq(0..n));
        }
    }

    #[test]
    #[should_panic(expected = "share a row")]
    fn blocks_that_share_a_row_are_rejected() {
        let spec = spec();
        let block = |rows: [u32; 3]| EntryBlock::from_records(&spec, [&rows[..], &[0]].concat());
        let blocks = vec![block([1, 2, 3]), block([4, 5, 6]), block([7, 2, 9])];
        let _ = ConflictFreeClass::from_blocks(&spec, blocks, &mut RowBitSets::default());
    }

    #[test]
    fn row_sets_are_empty_again_after_a_check() {
        let spec = spec();
        let rows = &mut RowBitSets::default();
        for _ in 0..2 {
            let block =
                |rows: [u32; 3]| EntryBlock::from_records(&spec, [&rows[..], &[0]].concat());
            let blocks = vec![block([1, 2, 3]), block([4, 5, 6])];
            let class = ConflictFreeClass::from_blocks(&spec, blocks, rows).unwrap();
            assert_eq!(class.blocks.len(), 2);
        }
    }

    #[test]
    #[should_panic(expected = "taken before")]
    fn a_block_can_be_taken_once() {
        let entries = if cfg!(miri) { 2400 } else { 5000 };
        let (_, classes) = classes(entries, 0, ColouringPlan::fixed(1, 8));
        let mut memory: Vec<Vec<f32>> = ROWS.map(|r| vec![0.0; r as usize * 16]).to_vec();
        let rows: Vec<ExclusiveRows<'_>> = memory
            .iter_mut()
            .zip(ROWS)
            .map(|(m, r)| ExclusiveRows::new(m, 16, &RowPartition::contiguous(r as usize, 4)))
            .collect();
        drop(classes.borrow_rows(0, &rows));
        let class = classes.borrow_rows(1, &rows);
        let (_one, _other) = (class.take_block(0), class.take_block(1));
        let _again = class.take_block(0);
    }
}
