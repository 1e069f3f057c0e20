//! Zeros of a matrix that lists its other entries only.

use crate::error::{Error, Result};
use crate::format::CooView;

use crate::progress::{Monitor, report_progress};
use crate::random::{Permutation, hash_words};
use crate::try_alloc::{try_collect, try_with_capacity};

/// Names the random stream of drawn zeros.
const ZEROS: u64 = 301;

/// How often the caller is told, in entries.
const EVERY: usize = 1 << 16;

/// Row, column and number of every entry of a matrix, sorted. Copies: a file may change under its map.
fn by_row(view: &CooView<'_>) -> Result<Vec<(u32, u32, usize)>> {
    let cells = view.column(0).iter().zip(view.column(1)).enumerate();
    let cells = cells.map(|(e, (&row, &column))| (row, column, e));
    let mut cells = try_collect(view.len(), cells, "entries")?;
    cells.sort_unstable();
    Ok(cells)
}

/// A matrix all of whose cells count has one value in each.
pub(super) fn check_cells(view: &CooView<'_>, monitor: &dyn Monitor) -> Result<()> {
    report_progress(monitor, "looking for doubles", 0, view.len() as u64)?;
    let double = by_row(view)?
        .array_windows()
        .filter(|[a, b]| (a.0, a.1) == (b.0, b.1))
        .map(|[a, b]| (b.2, a.2))
        .min();
    match double {
        None => Ok(()),
        Some((e, before)) => Err(Error::entry(
            view.name(),
            e as u64,
            format!(
                "is the cell of entry {} once more; a full matrix has one value for each",
                before + 1
            ),
        )),
    }
}

/// Draws `each` zeros for every listed entry that is not 0: cells of its row that are not listed, no cell
/// twice, and no more than the row has. Returns rows and columns.
pub(super) fn draw(
    view: &CooView<'_>,
    each: u32,
    name: &[u64],
    monitor: &dyn Monitor,
) -> Result<[Vec<u32>; 2]> {
    let size = view.dims()[1];
    let cells = by_row(view)?;
    let mut zeros = [Vec::new(), Vec::new()];
    let mut told = 0;
    for row in cells.chunk_by(|a, b| a.0 == b.0) {
        if zeros[0].len() >= told + EVERY {
            told = zeros[0].len();
            report_progress(monitor, "drawing zeros", told as u64, 0)?;
        }
        let mut listed: Vec<u32> = row.iter().map(|cell| cell.1).collect();
        listed.dedup();
        let ones = row.iter().filter(|cell| view.values().get(cell.2) != 0.0);
        let ones = ones.count() as u64;
        let left = size.saturating_sub(listed.len() as u64);
        let wanted = (ones * u64::from(each)).min(left) as usize;
        if wanted == 0 {
            continue;
        }
        let index = row[0].0;
        let places = Permutation::new(size, &[hash_words(name), ZEROS, u64::from(index)]);
        let drawn = (0..size).map(|k| places.apply(k) as u32);
        let drawn = drawn.filter(|column| listed.binary_search(column).is_err());
        let mut own: Vec<u32> = try_with_capacity(wanted, "zeros")?;
        own.extend(drawn.take(wanted));
        for list in &mut zeros {
            if list.try_reserve(wanted).is_err() {
                return Err(Error::out_of_memory(list.len() + wanted, "zeros"));
            }
        }
        zeros[0].extend(std::iter::repeat_n(index, wanted));
        zeros[1].extend(own);
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
    // The last is a zero that was listed.
    const VALUES: [f64; 10] = [1., 1., 1., 2., 1., 1., 1., 1., 1., 0.];

    fn view(size: u64) -> CooView<'static> {
        const V: Values<'static> = Values::F64(&VALUES);
        CooView::new("Y", &[8, size], &[ROWS, COLUMNS], V).unwrap()
    }

    #[test]
    fn zeros_are_of_the_same_rows_and_never_listed() {
        let draw = |each, seed| draw(&view(10), each, &[seed, 0], &()).unwrap();
        for each in [1, 2, 3, u32::MAX] {
            let zeros = draw(each, 1);
            let cells: BTreeSet<(u32, u32)> = zeros[0]
                .iter()
                .copied()
                .zip(zeros[1].iter().copied())
                .collect();
            assert_eq!(cells.len(), zeros[0].len(), "no cell twice");
            let listed: BTreeSet<(u32, u32)> =
                ROWS.iter().copied().zip(COLUMNS.iter().copied()).collect();
            assert!(cells.is_disjoint(&listed));
            assert!(zeros[1].iter().all(|&c| c < 10));
            for (row, ones, left) in [(4, 2, 8), (1, 3, 8), (7, 4, 6), (2, 0, 9), (0, 0, 10)] {
                let drawn = zeros[0].iter().filter(|&&r| r == row).count() as u64;
                assert_eq!(
                    drawn,
                    (ones * u64::from(each)).min(left),
                    "row {row}, {each}"
                );
            }
        }
        assert_eq!(draw(2, 1), draw(2, 1));
        assert_ne!(draw(2, 1), draw(2, 2));
    }

    #[test]
    fn all_columns_are_drawn_alike() {
        let rows: Vec<u32> = (0..4000).collect();
        let none = vec![0u32; 4000];
        let ones = vec![1.0f32; 4000];
        let view = CooView::new("Y", &[4000, 11], &[&rows, &none], Values::F32(&ones)).unwrap();
        let zeros = draw(&view, 3, &[0, 0], &()).unwrap();
        for column in 1..11 {
            let n = zeros[1].iter().filter(|&&c| c == column).count();
            assert!((1080..1320).contains(&n), "{column}: {n}");
        }
    }

    #[test]
    fn a_problem_has_them_as_entries() {
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
        // A cell that is listed twice has no one value.
        let error = build(MatrixKind::Full).err().unwrap().to_string();
        assert!(
            error.contains("Y: entry 5: is the cell of entry 2"),
            "{error}"
        );
    }
}
