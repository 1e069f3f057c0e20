//! Tests of sorting entries into blocks and of fiber batches.

use std::sync::Arc;

use super::block::EntryBlock;
use super::chunk::EntryChunk;
use super::chunk::{SortedChunk, radix_sort};
use super::grid::RowPartition;
use super::grid::{BlockingSpec, ModeCut};
use crate::random::RandomStream;

fn spec(fiber_mode: Option<usize>) -> Arc<BlockingSpec> {
    let cut = |axis, row_count: usize, part_count: usize| {
        let part_of = (0..row_count)
            .map(|r| (r * 7 % part_count) as u16)
            .collect();
        let partition = RowPartition::new(part_of, part_count);
        Some(ModeCut { axis, partition })
    };
    Arc::new(BlockingSpec {
        row_counts: vec![50, 40, 9],
        fiber_mode,
        cuts: vec![cut(0, 50, 4), cut(1, 40, 4), None],
        parts_per_axis: 4,
        axes: 2,
        seed: 3,
        weighted: false,
    })
}

fn chunk(first_value: u64, n: usize) -> EntryChunk {
    let mut s = RandomStream::new(&[first_value]);
    let rows = [50, 40, 9]
        .map(|d| (0..n).map(|_| s.below(d) as u32).collect())
        .to_vec();
    EntryChunk {
        rows,
        values: (0..n).map(|i| i as f32 + first_value as f32).collect(),
        weights: Vec::new(),
    }
}

#[test]
fn every_entry_is_in_its_block_once_and_in_one_batch() {
    for fiber_mode in [None, Some(0), Some(2)] {
        let spec = spec(fiber_mode);
        let scale = if cfg!(miri) { 10 } else { 100 };
        let chunks = [chunk(1000, 7 * scale), chunk(5000, 3 * scale)];
        let sorted: Vec<SortedChunk> = chunks
            .iter()
            .map(|c| SortedChunk::new(&spec, c, 0).unwrap())
            .collect();
        let mut found = Vec::new();
        for b in 0..spec.block_count() {
            let block = EntryBlock::new(&spec, &sorted, b).unwrap();
            assert_eq!(spec.block_at(&block.coordinates()), b);
            block.for_each_entry(|rows, value, _| found.push((value as u32, rows.to_vec())));
            let mut batches = Vec::new();
            block.shuffled_batches(16, &[1, b as u64], &mut batches);
            let mut visits = vec![0; block.len()];
            for batch in &batches {
                assert!(batch.len >= 1 && batch.len <= 16);
                for i in 0..batch.len {
                    visits[(batch.run.start + (batch.first + i) % batch.run.len) as usize] += 1;
                }
            }
            assert!(visits.iter().all(|&v| v == 1));
            check_row_counts(&block);
            if fiber_mode == Some(2) {
                assert!(block.whole_runs(usize::MAX).count() <= 9);
            }
        }
        found.sort_unstable();
        let mut expected: Vec<(u32, Vec<u32>)> = chunks
            .iter()
            .flat_map(|c| {
                (0..c.values.len())
                    .map(|i| (c.values[i] as u32, c.rows.iter().map(|r| r[i]).collect()))
            })
            .collect();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
}

/// The counts of the second and later calls are those of the first one.
fn check_row_counts(block: &EntryBlock) {
    for (m, &row_count) in block.spec().row_counts.iter().enumerate() {
        let mut expected = vec![0; row_count];
        block.for_each_entry(|rows, _, _| expected[rows[m] as usize] += 1);
        for _ in 0..3 {
            let mut counts = vec![5; row_count];
            block.add_row_counts(m, &mut counts);
            assert!(counts.iter().zip(&expected).all(|(a, b)| *a == b + 5));
        }
    }
}

#[test]
fn entries_of_one_block_are_grouped_by_fiber_in_their_order() {
    // Rows in the fiber mode: few, as many as entries, and so many that the sort uses leading bits only.
    for (row_count, fiber_mode) in [
        (9, None),
        (9, Some(1)),
        (300, Some(0)),
        (1 << 20, Some(2)),
        (u32::MAX as usize, Some(1)),
    ] {
        let mut stream = RandomStream::new(&[row_count as u64]);
        let mut row = |_| stream.below(row_count as u64) as u32;
        let n = if cfg!(miri) { 30 } else { 300 };
        let mut rows: Vec<u32> = (0..3 * n).map(&mut row).collect();
        // The last entry has the rows of the first one, and another the largest row.
        rows.copy_within(0..3, 3 * (n - 1));
        rows[30..33].fill(row_count as u32 - 1);
        let values: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let weights: Vec<f32> = values.iter().map(|x| x + 0.5).collect();
        let spec = Arc::new(BlockingSpec::uncut(&[row_count; 3], fiber_mode, 1, true));
        let block = EntryBlock::from_entries(&spec, &rows, &values, &weights).unwrap();
        let mut found = Vec::new();
        block.for_each_entry(|rows, value, weight| {
            assert_eq!(weight, value + 0.5);
            found.push((rows.to_vec(), value as usize));
        });
        let mut sorted = found.clone();
        sorted.sort_by_key(|e| e.1);
        let each = rows.chunks_exact(3).enumerate();
        assert!(sorted.into_iter().eq(each.map(|(i, r)| (r.to_vec(), i))));
        let fiber_row = |e: &(Vec<u32>, usize)| fiber_mode.map_or(0, |f| e.0[f]);
        for pair in found.windows(2) {
            assert!(fiber_row(&pair[0]) != fiber_row(&pair[1]) || pair[0].1 < pair[1].1);
        }
        if row_count <= 300 {
            assert!(found.is_sorted_by_key(|e| (fiber_row(e), e.1)));
        }
        assert_eq!(block.total_weight(), (n * n) as f64 / 2.0);
    }
}

#[test]
#[should_panic(expected = "a row that does not exist")]
fn an_entry_with_a_row_that_does_not_exist_is_rejected() {
    let spec = Arc::new(BlockingSpec::uncut(&[5, 4], Some(1), 1, false));
    let _ = EntryBlock::from_entries(&spec, &[4, 3, 5, 0], &[1.0, 2.0], &[]);
}

#[test]
fn radix_sort_is_stable_and_handles_keys_of_several_digits() {
    let keys: Vec<u32> = (0..1000u32)
        .map(|i| i.wrapping_mul(2_654_435_761) % 70_000 / 7 * 7)
        .collect();
    let mut items: Vec<u32> = (0..1000).collect();
    radix_sort(&mut items, 70_000, |i| keys[i as usize]).unwrap();
    let mut expected: Vec<u32> = (0..1000).collect();
    expected.sort_by_key(|&i| keys[i as usize]);
    assert_eq!(items, expected);
}

#[test]
#[should_panic(expected = "wrong block")]
fn an_entry_of_another_block_is_rejected() {
    let wrong = SortedChunk {
        records: vec![49, 39, 0, 0],
        starts: vec![0, 1].into_iter().chain([1; 15]).collect(),
    };
    let _ = EntryBlock::new(&spec(None), &[wrong], 0);
}
