//! Concurrent updates of blocks without common rows give the same result as sequential updates. The blocks are small, so that
//! Miri can run these tests; it reports a thread that accesses a row of another thread's block.

use std::sync::Arc;

use super::block_update::{BlockScratch, BlockUpdateSettings, update_block};
use super::core_layout::CoreLayout;
use super::job::Regularizer;
use crate::entries::block::EntryBlock;
use crate::entries::chunk::EntryChunk;
use crate::entries::chunk::SortedChunk;
use crate::entries::classes::{ConflictFreeClass, ConflictFreeClasses, RowBitSets};
use crate::entries::exclusive_rows::{ExclusiveRows, RowsMut};
use crate::entries::grid::RowPartition;
use crate::entries::grid::{BlockingSpec, ModeCut};
use crate::progress::StopFlag;
use crate::shape::core_shape::{CoreKind, CoreShape};
use crate::simd::{LANES, Level};

const ROWS: [usize; 3] = [4; 3];
const RANKS: [usize; 3] = [2, 3, 2];

/// Returns the rows of all modes before the updates.
fn initial_rows() -> [Vec<f32>; 3] {
    [0, 1, 2].map(|n| {
        let value = |k: usize| 0.1 * (k / LANES + n + 1) as f32 / (k % LANES + 1) as f32;
        let is_padding = |k: usize| k % LANES >= RANKS[n];
        let values = (0..ROWS[n] * LANES).map(|k| if is_padding(k) { 0.0 } else { value(k) });
        values.collect()
    })
}

/// Updates rows and a core of its own with all entries of a block; returns the core.
fn update(block: &EntryBlock, rows: &mut [RowsMut<'_>]) -> Vec<f32> {
    let shape = CoreShape::new(CoreKind::Full, &RANKS);
    let layout = CoreLayout::tensor(&shape, block.spec().fiber_mode);
    let core = shape.padded_core(&[0.5; 12]).unwrap();
    let mut core = layout.to_fiber_first(&core, &()).unwrap();
    let settings = BlockUpdateSettings {
        level: Level::Scalar,
        eta: 0.1,
        loss_weight: 1.0,
        regularizer: Regularizer {
            l1: false,
            nonneg: false,
        },
        core_eta: 0.1,
        core_update_interval: 1,
        penalties: &[&[0.1f32; 4][..]; 3],
        prior_means: &[&[0.0f32; LANES][..]; 3],
        batch_len: 2,
        max_batch_len: 2,
        curvature_direction: &[0.0; LANES],
        curvature: 0.0,
        batch_range: 0.0..1.0,
        stop: &StopFlag::new(),
    };
    let mut scratch = BlockScratch::default();
    update_block(
        block,
        &layout,
        &mut core,
        rows,
        &settings,
        &[1],
        &mut scratch,
    )
    .unwrap();
    core
}

/// Runs both tasks, each on its own thread or one after the other, and returns their results.
fn run<T: Send>(concurrently: bool, task: impl Fn(usize) -> T + Sync) -> [T; 2] {
    if concurrently {
        let task = &task;
        std::thread::scope(|scope| {
            let threads = [0, 1].map(|k| scope.spawn(move || task(k)));
            threads.map(|thread| thread.join().unwrap())
        })
    } else {
        [0, 1].map(task)
    }
}

fn spec(fiber_mode: Option<usize>, cuts: Vec<Option<ModeCut>>) -> Arc<BlockingSpec> {
    Arc::new(BlockingSpec {
        row_counts: ROWS.to_vec(),
        fiber_mode,
        cuts,
        parts_per_axis: 2,
        axes: 2,
        seed: 5,
        weighted: false,
    })
}

#[test]
fn blocks_without_a_common_part_are_updated_concurrently() {
    // Rows of parts are interleaved.
    let cut = |axis| {
        let partition = RowPartition::new(vec![0, 1, 0, 1], 2);
        Some(ModeCut { axis, partition })
    };
    // The cells of the blocks (0, 0) and (1, 1).
    let rows = |of: fn(u32) -> u32| (0..8).map(of).collect::<Vec<u32>>();
    let chunk = EntryChunk {
        rows: vec![
            rows(|i| i % 4),
            rows(|i| (i + 2 * (i / 4 % 2)) % 4),
            rows(|i| i % 3),
        ],
        values: (0..8u8).map(|i| f32::from(i % 5)).collect(),
        weights: Vec::new(),
    };
    for fiber_mode in [None, Some(0)] {
        let spec = spec(fiber_mode, vec![cut(0), cut(1), None]);
        let sorted = [SortedChunk::new(&spec, &chunk, 0).unwrap()];
        let blocks = [0, 1].map(|part| {
            let block = EntryBlock::new(&spec, &sorted, spec.block_at(&[part; 2])).unwrap();
            assert_eq!(block.len(), 4);
            block
        });
        let updated = |concurrently| {
            let [mut first, mut second, third] = initial_rows();
            let outcomes = {
                let partition = |n: usize| &spec.cuts[n].as_ref().unwrap().partition;
                let first = ExclusiveRows::new(&mut first, LANES, partition(0));
                let second = ExclusiveRows::new(&mut second, LANES, partition(1));
                run(concurrently, |part| {
                    let mut first = first.borrow_part_mut(part);
                    let mut second = second.borrow_part_mut(part);
                    let mut replica = third.clone();
                    let mut rows = [
                        first.rows_mut(),
                        second.rows_mut(),
                        RowsMut::of_replica(&mut replica),
                    ];
                    let core = update(&blocks[part], &mut rows);
                    (core, replica)
                })
            };
            assert_ne!(first, initial_rows()[0]);
            (first, second, outcomes)
        };
        assert_eq!(updated(true), updated(false));
    }
}

#[test]
fn blocks_of_a_conflict_free_class_are_updated_concurrently() {
    let spec = spec(None, vec![None; 3]);
    // Their rows are interleaved in memory.
    let block = |entries: [[u32; 3]; 2]| {
        let record = |rows: [u32; 3]| [&rows[..], &[1.5f32.to_bits()]].concat();
        EntryBlock::from_records(&spec, entries.map(record).concat())
    };
    let blocks = vec![block([[0, 2, 0], [2, 0, 2]]), block([[1, 3, 1], [3, 1, 3]])];
    let class = ConflictFreeClass::from_blocks(&spec, blocks, &mut RowBitSets::default());
    let classes = ConflictFreeClasses::new(&spec, vec![class.unwrap()]);
    let updated = |concurrently| {
        let mut memory = initial_rows();
        let cores = {
            let modes: Vec<ExclusiveRows<'_>> = (memory.iter_mut().zip(ROWS))
                .map(|(rows, count)| {
                    ExclusiveRows::new(rows, LANES, &RowPartition::contiguous(count, 2))
                })
                .collect();
            let class = classes.borrow_rows(0, &modes);
            run(concurrently, |k| {
                let mut taken = class.take_block(k);
                let block = taken.block();
                let mut rows: Vec<RowsMut<'_>> = taken.modes_mut().collect();
                update(block, &mut rows)
            })
        };
        assert_ne!(memory, initial_rows());
        (memory, cores)
    };
    assert_eq!(updated(true), updated(false));
}
