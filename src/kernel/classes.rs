//! Entries in classes: no two cells of a class have a row in common, so that any number of threads may
//! work on the cells of one at the same time, in any order. For data that has hardly any rows in common.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::colour::{Colours, REST};
use super::grid::{Cell, Sorted, Spec};
use super::lease::{Lease, LeasedRows};
use crate::error::Result;
use crate::format::{collected, room, zeros};
use crate::random::Stream;

/// Entries of a cell, and cells of a class to aim for: so many that threads of any speed can share
/// them, so few that copying the core for each costs little.
const LEAST: usize = 128;
const MOST: usize = 512;
const CELLS: usize = 128;

/// The cells of one class, before those of all are together. Their entries are in random order.
///
/// # Panics
/// If an entry names a row that is not there.
pub(crate) fn cells_of(
    spec: &Arc<Spec>,
    sorted: &[Sorted],
    colours: &Colours,
    class: usize,
) -> Result<Vec<Cell>> {
    let words = spec.rows.len() + 1;
    let members = colours.members(class);
    let mut order: Vec<u32> = collected(members.len(), members.iter().copied(), "entries")?;
    let mut stream = Stream::new(&[spec.seed, class as u64]);
    for i in (1..order.len()).rev() {
        order.swap(i, stream.below(i as u64 + 1) as usize);
    }
    let chunk = sorted.first().map_or(1, |s| s.count(spec).max(1));
    // The colours that are not apart are one cell.
    let count = match class + 1 == colours.count() {
        true if order.len() <= REST => 1,
        _ => (order.len() / LEAST)
            .clamp(1, CELLS)
            .max(order.len().div_ceil(MOST)),
    };
    let cut = |k: usize| order.len() * k / count;
    (0..count)
        .map(|k| {
            let members = &order[cut(k)..cut(k + 1)];
            let mut entries = room(members.len() * words, "words of entries")?;
            for &i in members {
                let (chunk, at) = (i as usize / chunk, i as usize % chunk);
                entries.extend_from_slice(&sorted[chunk].words()[at * words..][..words]);
            }
            Ok(spec.cell_of(entries))
        })
        .collect()
}

/// Classes of cells that are yet to be checked, mode by mode.
pub(crate) struct Unchecked {
    cells: Vec<Cell>,
    starts: Vec<usize>,
    checked: Vec<AtomicBool>,
}

impl Unchecked {
    /// # Panics
    /// If cells are not of one kind.
    pub(crate) fn new(spec: &Arc<Spec>, classes: Vec<Vec<Cell>>) -> Unchecked {
        let mut starts = vec![0];
        let mut cells = Vec::new();
        for class in classes {
            for mut cell in class {
                assert!(Arc::ptr_eq(cell.spec(), spec) && spec.fiber.is_none());
                cell.set_number(cells.len());
                cells.push(cell);
            }
            starts.push(cells.len());
        }
        Unchecked {
            cells,
            starts,
            checked: spec.rows.iter().map(|_| AtomicBool::new(false)).collect(),
        }
    }

    /// Makes sure that no two cells of a class have a row of mode `m` in common.
    ///
    /// # Panics
    /// If two do.
    pub(crate) fn check(&self, m: usize) -> Result<()> {
        let Some(first) = self.cells.first() else {
            self.checked[m].store(true, Ordering::Relaxed);
            return Ok(());
        };
        // For each row one more than the number of the last cell that had it.
        let mut seen: Vec<u32> = zeros(first.spec().rows[m], "rows")?;
        for class in self.starts.windows(2) {
            for number in class[0]..class[1] {
                let now = number as u32 + 1;
                let cell = &self.cells[number];
                for entry in cell.entries().chunks_exact(cell.words()) {
                    let last = std::mem::replace(&mut seen[entry[m] as usize], now);
                    assert!(
                        last as usize <= class[0] || last == now,
                        "two cells of a class have a row in common"
                    );
                }
            }
        }
        self.checked[m].store(true, Ordering::Relaxed);
        Ok(())
    }

    /// The classes.
    ///
    /// # Panics
    /// If a mode was not checked.
    pub(crate) fn finish(self) -> Classes {
        let all = self.checked.iter().all(|c| c.load(Ordering::Relaxed));
        assert!(all, "a mode was not checked");
        Classes {
            entries: self.cells.iter().map(Cell::len).sum(),
            cells: self.cells,
            starts: self.starts,
        }
    }
}

/// Cells in classes. No two cells of a class have a row in common: that was checked when they were put
/// together, and nothing changes them afterwards.
pub(crate) struct Classes {
    cells: Vec<Cell>,
    starts: Vec<usize>,
    entries: usize,
}

impl Classes {
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries
    }

    /// The cells of all classes, whose values can be changed; their rows cannot.
    pub(crate) fn cells_mut(&mut self) -> &mut [Cell] {
        &mut self.cells
    }

    /// The cells of all classes.
    pub(crate) fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The number of the first cell of a class, and how many it has.
    pub(crate) fn class(&self, class: usize) -> (usize, usize) {
        let (start, end) = (self.starts[class], self.starts[class + 1]);
        (start, end - start)
    }

    /// Leases all rows of all modes to the cells of a class.
    ///
    /// # Panics
    /// If somebody else uses a row, or the rows are not those the cells need.
    pub(crate) fn open<'a>(&'a self, class: usize, modes: &'a [LeasedRows<'a>]) -> OpenClass<'a> {
        let (start, count) = self.class(class);
        let spec = self.cells[start].spec();
        let fits = |(rows, mode): (&usize, &LeasedRows<'_>)| mode.parts().rows() >= *rows;
        assert!(spec.rows.len() == modes.len() && spec.rows.iter().zip(modes).all(fits));
        let all = |mode: &'a LeasedRows<'a>| (0..mode.parts().count()).map(|p| mode.lease(p));
        OpenClass {
            cells: &self.cells[start..start + count],
            taken: (0..count).map(|_| AtomicBool::new(false)).collect(),
            modes: modes.iter().map(|mode| all(mode).collect()).collect(),
        }
    }
}

/// All rows, for the cells of one class.
pub(crate) struct OpenClass<'a> {
    cells: &'a [Cell],
    /// Whether each cell has been taken.
    taken: Vec<AtomicBool>,
    /// For each mode, all of its parts.
    modes: Vec<Vec<Lease<'a>>>,
}

impl OpenClass<'_> {
    /// The only use of the rows of a cell.
    ///
    /// # Panics
    /// If the cell was taken before.
    pub(crate) fn take(&self, cell: usize) -> CellRows<'_> {
        let taken = self.taken[cell].swap(true, Ordering::SeqCst);
        assert!(!taken, "cell {cell} was taken before: a wrong schedule");
        CellRows { class: self, cell }
    }
}

/// The only use of the rows of a cell.
pub(crate) struct CellRows<'a> {
    class: &'a OpenClass<'a>,
    cell: usize,
}

impl CellRows<'_> {
    pub(crate) fn cell(&self) -> &Cell {
        &self.class.cells[self.cell]
    }

    /// Where row 0 of a mode is, and how far rows are apart; only rows of the cell may be touched.
    pub(super) fn rows(&self, m: usize) -> (*mut f32, usize) {
        let lease = &self.class.modes[m][0];
        (lease.start(), lease.stride())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Chunk;

    const ROWS: [u64; 3] = [900, 700, 800];

    fn spec() -> Arc<Spec> {
        Arc::new(Spec {
            rows: ROWS.map(|r| r as usize).to_vec(),
            fiber: None,
            cuts: vec![None; 3],
            pieces: 1,
            coordinates: 1,
            seed: 5,
        })
    }

    /// Entries at random; those before `long` all have one row.
    fn entries(n: usize, long: usize) -> Vec<Sorted> {
        let mut s = Stream::new(&[n as u64]);
        let mut rows = ROWS
            .map(|d| (0..n).map(|_| s.below(d) as u32).collect::<Vec<u32>>())
            .to_vec();
        rows[1][..long].fill(3);
        let chunk = |from: usize, to: usize| Chunk {
            rows: rows.iter().map(|r| r[from..to].to_vec()).collect(),
            values: (from..to).map(|i| i as f32).collect(),
            weights: Vec::new(),
        };
        let spec = spec();
        let cuts = [0, n / 2 + 1, n];
        let chunks = cuts.windows(2).map(|w| chunk(w[0], w[1]));
        chunks.map(|c| spec.sort(&c, 0).unwrap()).collect()
    }

    fn classes(sorted: &[Sorted], longest: usize) -> (Colours, Unchecked) {
        let spec = spec();
        let colours = Colours::new(&spec, sorted, longest).unwrap();
        let cells = (0..colours.count()).map(|c| cells_of(&spec, sorted, &colours, c).unwrap());
        let cells = cells.collect();
        (colours, Unchecked::new(&spec, cells))
    }

    #[test]
    fn every_entry_is_in_one_class_and_no_row_twice_in_any() {
        // The second has more colours than a mask has bits.
        for (n, long) in [(20_000, 0), (9000, 150)] {
            let sorted = entries(n, long);
            let (colours, unchecked) = classes(&sorted, 40);
            (0..3).for_each(|m| unchecked.check(m).unwrap());
            let classes = unchecked.finish();
            assert_eq!((classes.len(), classes.count()), (n, colours.count()));
            assert!(classes.count() > 20);
            let mut found = Vec::new();
            for class in 0..classes.count() {
                let (first, count) = classes.class(class);
                let mut seen = ROWS.map(|r| vec![None; r as usize]);
                let mut entries = 0;
                for number in first..first + count {
                    let cell = &classes.cells()[number];
                    assert_eq!(cell.number(), number);
                    entries += cell.len();
                    cell.each(|rows, value| {
                        found.push(value as usize);
                        for (seen, &row) in seen.iter_mut().zip(rows) {
                            let last = seen[row as usize].replace(number);
                            // Only the smallest colours are not apart, in a cell of their own.
                            let alone = class + 1 == classes.count() && count == 1;
                            assert!(last.is_none() || alone);
                        }
                    });
                }
                assert_eq!(entries, colours.members(class).len());
            }
            found.sort_unstable();
            assert!(found.into_iter().eq(0..n));
        }
    }

    #[test]
    #[should_panic(expected = "a row in common")]
    fn cells_with_a_common_row_are_refused() {
        let spec = spec();
        let cell = |rows: [u32; 3]| spec.cell_of([&rows[..], &[0]].concat());
        let cells = vec![cell([1, 2, 3]), cell([4, 5, 6]), cell([7, 2, 9])];
        let unchecked = Unchecked::new(&spec, vec![cells]);
        unchecked.check(0).unwrap();
        unchecked.check(2).unwrap();
        let _ = unchecked.check(1);
    }

    #[test]
    #[should_panic(expected = "checked")]
    fn all_modes_have_to_be_checked() {
        let (_, unchecked) = classes(&entries(500, 0), 3);
        unchecked.check(0).unwrap();
        unchecked.check(2).unwrap();
        let _ = unchecked.finish();
    }

    #[test]
    #[should_panic(expected = "taken before")]
    fn a_cell_is_taken_once() {
        let (_, unchecked) = classes(&entries(5000, 0), 20);
        (0..3).for_each(|m| unchecked.check(m).unwrap());
        let classes = unchecked.finish();
        let mut memory: Vec<Vec<f32>> = ROWS.map(|r| vec![0.0; r as usize * 16]).to_vec();
        let rows: Vec<LeasedRows<'_>> = memory
            .iter_mut()
            .zip(ROWS)
            .map(|(m, r)| LeasedRows::new(m, 16, &super::super::Parts::neighbours(r as usize, 4)))
            .collect();
        drop(classes.open(0, &rows));
        let open = classes.open(1, &rows);
        let (_one, _other) = (open.take(0), open.take(1));
        let _again = open.take(0);
    }
}
