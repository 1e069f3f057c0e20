//! Zeros of a matrix that lists only its other entries: sampled ones, and the check for full matrices.

use crate::error::{Error, Result};
use crate::format::CooView;
use crate::memory::require_memory;
use crate::progress::{Monitor, report_progress};
use crate::random::{Permutation, hash_words};
use crate::sort::sort_polling;
use crate::try_alloc::{try_collect, try_with_capacity};

/// Identifies the random stream of sampled zeros.
const ZERO_STREAM: u64 = 301;

/// Sampled zeros between two progress reports.
const REPORT_INTERVAL: usize = 1 << 16;

/// Bytes of a sampled zero: its row and column here, and the copies of solvers by rows and by columns.
const BYTES_PER_ZERO: f64 = 8.0 + 12.0 + 2.0 * 8.0;

/// Row, column and number of an entry of a matrix.
type Position = (u32, u32, usize);

/// Returns the positions of all entries of a matrix, sorted. They are copied, since a mapped file may change.
fn sorted_positions(view: &CooView<'_>, monitor: &dyn Monitor) -> Result<Vec<Position>> {
    let positions = view.column(0).iter().zip(view.column(1)).enumerate();
    let positions = positions.map(|(e, (&row, &column))| (row, column, e));
    let mut positions = try_collect(view.len(), positions, "entries")?;
    sort_polling(&mut positions, monitor)?;
    Ok(positions)
}

/// Checks that a full matrix has at most one entry at each position.
pub(super) fn check_unique_positions(view: &CooView<'_>, monitor: &dyn Monitor) -> Result<()> {
    match first_duplicate(view, monitor)? {
        None => Ok(()),
        Some((e, first)) => Err(Error::entry(
            view.name(),
            e as u64,
            format!(
                "has the same row and column as entry {}; a full matrix has one value for each position",
                first + 1
            ),
        )),
    }
}

/// Returns whether no position is listed twice.
pub(super) fn has_unique_positions(view: &CooView<'_>, monitor: &dyn Monitor) -> Result<bool> {
    Ok(first_duplicate(view, monitor)?.is_none())
}

/// Returns the number of the first entry at a position that is listed before, and the number of the entry there.
fn first_duplicate(view: &CooView<'_>, monitor: &dyn Monitor) -> Result<Option<(usize, usize)>> {
    report_progress(monitor, "finding duplicates", 0, view.len() as u64)?;
    Ok(sorted_positions(view, monitor)?
        .array_windows()
        .filter(|[a, b]| (a.0, a.1) == (b.0, b.1))
        .map(|[a, b]| (b.2, a.2))
        .min())
}

/// Samples `per_entry` zeros for every entry that is not 0: distinct positions of its row without an entry, at most as
/// many as the row has. Returns their rows and columns. `name` identifies the random stream.
pub(super) fn sample_zeros(
    view: &CooView<'_>,
    per_entry: u32,
    name: &[u64],
    monitor: &dyn Monitor,
) -> Result<[Vec<u32>; 2]> {
    let width = view.dims()[1];
    let positions = sorted_positions(view, monitor)?;
    let rows = || positions.chunk_by(|a, b| a.0 == b.0);
    let wanted = |row: &[Position]| {
        let observed = row.chunk_by(|a, b| a.1 == b.1).count() as u64;
        let nonzeros = row.iter().filter(|p| view.values().get(p.2) != 0.0);
        let nonzeros = nonzeros.count() as u64;
        let free = width.saturating_sub(observed);
        (nonzeros * u64::from(per_entry)).min(free) as usize
    };
    let total: usize = rows().map(wanted).sum();
    require_memory(
        total as f64 * BYTES_PER_ZERO,
        &format!("{}: {total} sampled zeros need", view.name()),
        "sample fewer for each entry",
    )?;
    let mut zeros = [
        try_with_capacity(total, "zeros")?,
        try_with_capacity(total, "zeros")?,
    ];
    for row in rows() {
        let mut observed: Vec<u32> = row.iter().map(|position| position.1).collect();
        observed.dedup();
        let (index, wanted) = (row[0].0, wanted(row));
        let order = Permutation::new(width, &[hash_words(name), ZERO_STREAM, u64::from(index)]);
        let mut position = 0;
        for _ in 0..wanted {
            if zeros[0].len() % REPORT_INTERVAL == 0 {
                report_progress(
                    monitor,
                    "sampling zeros",
                    zeros[0].len() as u64,
                    total as u64,
                )?;
            }
            // The row has as many unobserved columns.
            let column = loop {
                let column = order.apply(position) as u32;
                position += 1;
                if observed.binary_search(&column).is_err() {
                    break column;
                }
            };
            zeros[0].push(index);
            zeros[1].push(column);
        }
    }
    Ok(zeros)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Values;
    use crate::problem::{MatrixKind, Problem};
    use std::collections::BTreeSet;

    const ROWS: &[u32] = &[4, 1, 4, 1, 1, 7, 7, 7, 7, 2];
    const COLUMNS: &[u32] = &[0, 3, 9, 5, 3, 0, 1, 2, 3, 6];
    // The last entry is an explicit zero.
    const VALUES: [f64; 10] = [1., 1., 1., 2., 1., 1., 1., 1., 1., 0.];

    fn view(size: u64) -> CooView<'static> {
        const V: Values<'static> = Values::F64(&VALUES);
        CooView::new("Y", &[8, size], &[ROWS, COLUMNS], V).unwrap()
    }

    #[test]
    fn sampled_zeros_lie_in_the_same_rows_at_unobserved_positions() {
        let sample = |per_entry, seed| sample_zeros(&view(10), per_entry, &[seed, 0], &()).unwrap();
        for per_entry in [1, 2, 3, u32::MAX] {
            let zeros = sample(per_entry, 1);
            let positions: BTreeSet<(u32, u32)> = zeros[0]
                .iter()
                .copied()
                .zip(zeros[1].iter().copied())
                .collect();
            assert_eq!(positions.len(), zeros[0].len(), "positions are distinct");
            let observed: BTreeSet<(u32, u32)> =
                ROWS.iter().copied().zip(COLUMNS.iter().copied()).collect();
            assert!(positions.is_disjoint(&observed));
            assert!(zeros[1].iter().all(|&c| c < 10));
            for (row, nonzeros, free) in [(4, 2, 8), (1, 3, 8), (7, 4, 6), (2, 0, 9), (0, 0, 10)] {
                let sampled = zeros[0].iter().filter(|&&r| r == row).count() as u64;
                assert_eq!(
                    sampled,
                    (nonzeros * u64::from(per_entry)).min(free),
                    "row {row}, {per_entry}"
                );
            }
        }
        assert_eq!(sample(2, 1), sample(2, 1));
        assert_ne!(sample(2, 1), sample(2, 2));
    }

    #[test]
    fn columns_are_sampled_uniformly() {
        let rows: Vec<u32> = (0..4000).collect();
        let first_column = vec![0u32; 4000];
        let ones = vec![1.0f32; 4000];
        let view = CooView::new(
            "Y",
            &[4000, 11],
            &[&rows, &first_column],
            Values::F32(&ones),
        )
        .unwrap();
        let zeros = sample_zeros(&view, 3, &[0, 0], &()).unwrap();
        for column in 1..11 {
            let n = zeros[1].iter().filter(|&&c| c == column).count();
            assert!((1080..1320).contains(&n), "{column}: {n}");
        }
    }

    #[test]
    fn sampled_zeros_are_entries_of_the_problem() {
        let tensor = CooView::new("T", &[8, 2], &[&[0], &[1]], Values::F32(&[1.0])).unwrap();
        let build = |kind| {
            let builder = Problem::builder(tensor.clone()).seed(5);
            builder.matrix(0, view(10), 1.0, kind).build(&())
        };
        let problem = build(MatrixKind::Sampled(1)).unwrap();
        let matrix = &problem.matrices()[0];
        assert_eq!(matrix.entries.len(), 10 + 9);
        assert_eq!(matrix.columns.counts().iter().sum::<u64>(), 19);
        assert_eq!(problem.modes()[0].indices(), [0, 1, 2, 4, 7]);
        let maps = [problem.row_maps()[0], matrix.columns.rows()];
        let mut chunk = crate::problem::EntryChunk::default();
        matrix.entries.read_chunk(&maps, 7..15, &mut chunk).unwrap();
        assert_eq!(chunk.values, [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(chunk.rows[0].len(), 8);
        // A position with two entries has no unique value.
        let error = build(MatrixKind::Full).err().unwrap().to_string();
        assert!(
            error.contains("Y: entry 5: has the same row and column as entry 2"),
            "{error}"
        );
    }
}
