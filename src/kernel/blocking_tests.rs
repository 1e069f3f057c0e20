//! Entries in cells: each in its own, once, and in batches.

use std::sync::Arc;

use super::blocking::{Sorted, Spec, radix};
use super::exclusive_rows::Parts;
use crate::kernel::EntryChunk;
use crate::random::RandomStream;

fn spec(fiber: Option<usize>) -> Arc<Spec> {
    let parts =
        |rows: usize, count| Parts::new((0..rows).map(|r| (r * 7 % count) as u16).collect(), count);
    Arc::new(Spec {
        rows: vec![50, 40, 9],
        fiber,
        cuts: vec![Some((0, parts(50, 4))), Some((1, parts(40, 4))), None],
        pieces: 4,
        coordinates: 2,
        seed: 3,
        weighted: false,
    })
}

fn chunk(from: u64, n: usize) -> EntryChunk {
    let mut s = RandomStream::new(&[from]);
    let rows = [50, 40, 9]
        .map(|d| (0..n).map(|_| s.below(d) as u32).collect())
        .to_vec();
    EntryChunk {
        rows,
        values: (0..n).map(|i| i as f32 + from as f32).collect(),
        weights: Vec::new(),
    }
}

#[test]
fn every_entry_is_in_its_cell_once_and_batches_cover_it() {
    for fiber in [None, Some(0), Some(2)] {
        let spec = spec(fiber);
        let chunks = [chunk(1000, 700), chunk(5000, 300)];
        let sorted: Vec<Sorted> = chunks.iter().map(|c| spec.sort(c, 0).unwrap()).collect();
        let mut found = Vec::new();
        for c in 0..spec.cells() {
            let cell = spec.build(&sorted, c).unwrap();
            assert_eq!(spec.cell(&cell.place()), c);
            cell.each(|rows, value, _| found.push((value as u32, rows.to_vec())));
            let mut batches = Vec::new();
            cell.batches(16, &[1, c as u64], &mut batches);
            let mut visits = vec![0; cell.len()];
            for b in &batches {
                assert!(b.len >= 1 && b.len <= 16);
                for i in 0..b.len {
                    visits[(b.run.start + (b.first + i) % b.run.len) as usize] += 1;
                }
            }
            assert!(visits.iter().all(|&v| v == 1));
            if fiber == Some(2) {
                assert!(cell.whole().count() <= 9);
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

#[test]
fn radix_sorts_large_keys_and_keeps_the_order_of_equal_ones() {
    let keys: Vec<u32> = (0..1000u32)
        .map(|i| i.wrapping_mul(2_654_435_761) % 70_000 / 7 * 7)
        .collect();
    let mut items: Vec<u32> = (0..1000).collect();
    radix(&mut items, 70_000, |i| keys[i as usize]).unwrap();
    let mut expected: Vec<u32> = (0..1000).collect();
    expected.sort_by_key(|&i| keys[i as usize]);
    assert_eq!(items, expected);
}

#[test]
#[should_panic(expected = "wrong cell")]
fn entries_of_another_sorting_are_refused() {
    let wrong = Sorted {
        words: vec![49, 39, 0, 0],
        starts: vec![0, 1].into_iter().chain([1; 15]).collect(),
    };
    let _ = spec(None).build(&[wrong], 0);
}
