//! Entries in classes: no two cells of a class have a row in common, so that any number of threads may
//! work on the cells of one at the same time, in any order. For data that has hardly any rows in common.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::blocking::{Cell, Spec};
use super::exclusive_rows::{Lease, LeasedRows};
use super::graph_colouring::{Colours, REST};
use crate::error::Result;
use crate::random::RandomStream;
use crate::try_alloc::{try_to_vec, try_with_capacity, try_zeroed};

/// Entries of a cell, and cells of a class to aim for: so many that threads of any speed can share
/// them, so few that copying the core for each costs little.
const LEAST: usize = 128;
const MOST: usize = 512;
const CELLS: usize = 128;

/// Rows that a class has, to see whether any comes twice. None before and after.
#[derive(Default)]
pub(crate) struct Seen {
    /// For each mode, a bit for each row.
    modes: Vec<Vec<u64>>,
}

impl Seen {
    /// Calls `visit` for the bits and the bit of every row of every entry.
    fn each(&mut self, cells: &[Cell], mut visit: impl FnMut(&mut u64, u64)) {
        for cell in cells {
            for entry in cell.entries().chunks_exact(cell.words()) {
                for (mode, &row) in self.modes.iter_mut().zip(entry) {
                    visit(&mut mode[row as usize / 64], 1 << (row % 64));
                }
            }
        }
    }

    /// Makes sure that no two of the cells have a row in common.
    ///
    /// # Panics
    /// If two have, or one of several has a row twice.
    fn check(&mut self, spec: &Spec, cells: &[Cell]) -> Result<()> {
        if cells.len() < 2 {
            return Ok(());
        }
        if self.modes.is_empty() {
            let bits = |rows: &usize| try_zeroed(rows.div_ceil(64), "rows");
            self.modes = spec.rows.iter().map(bits).collect::<Result<_>>()?;
        }
        assert_eq!(self.modes.len(), spec.rows.len());
        self.each(cells, |bits, bit| {
            assert!(
                *bits & bit == 0,
                "two cells of a class have a row in common"
            );
            *bits |= bit;
        });
        self.each(cells, |bits, _| *bits = 0);
        Ok(())
    }
}

/// Cells of which no two have a row in common: that was checked.
pub(crate) struct Class {
    cells: Vec<Cell>,
}

impl Class {
    /// The entries of a colour, in random order.
    ///
    /// # Panics
    /// If an entry names a row that is not there, or two cells have a row in common.
    pub(crate) fn new(
        spec: &Arc<Spec>,
        colours: &Colours,
        colour: usize,
        seen: &mut Seen,
    ) -> Result<Class> {
        let width = spec.width();
        let (members, words) = colours.members(colour);
        let mut order: Vec<u32> = try_to_vec(members, "entries")?;
        let mut stream = RandomStream::new(&[spec.seed, colour as u64]);
        for i in (1..order.len()).rev() {
            order.swap(i, stream.below(i as u64 + 1) as usize);
        }
        // The colours that are not apart are one cell.
        let count = match colour + 1 == colours.count() {
            true if order.len() <= REST => 1,
            _ => (order.len() / LEAST)
                .clamp(1, CELLS)
                .max(order.len().div_ceil(MOST)),
        };
        let cut = |k: usize| order.len() * k / count;
        let cell = |k: usize| {
            let members = &order[cut(k)..cut(k + 1)];
            let mut entries = try_with_capacity(members.len() * width, "words of entries")?;
            for &i in members {
                entries.extend_from_slice(&words[i as usize * width..][..width]);
            }
            Ok(spec.cell_of(entries))
        };
        Class::of(spec, (0..count).map(cell).collect::<Result<_>>()?, seen)
    }

    /// # Panics
    /// If two cells have a row in common.
    fn of(spec: &Spec, cells: Vec<Cell>, seen: &mut Seen) -> Result<Class> {
        seen.check(spec, &cells)?;
        Ok(Class { cells })
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
    /// All of them together.
    ///
    /// # Panics
    /// If cells are not of one kind.
    pub(crate) fn new(spec: &Arc<Spec>, classes: Vec<Class>) -> Classes {
        let mut starts = vec![0];
        let mut cells = Vec::new();
        for class in classes {
            for mut cell in class.cells {
                assert!(Arc::ptr_eq(cell.spec(), spec) && spec.fiber.is_none());
                cell.set_number(cells.len());
                cells.push(cell);
            }
            starts.push(cells.len());
        }
        Classes {
            entries: cells.iter().map(Cell::len).sum(),
            cells,
            starts,
        }
    }

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
    use super::super::graph_colouring::Palette;
    use super::*;
    use crate::kernel::EntryChunk;

    const ROWS: [u64; 3] = [900, 700, 800];

    fn spec() -> Arc<Spec> {
        Arc::new(Spec {
            rows: ROWS.map(|r| r as usize).to_vec(),
            fiber: None,
            cuts: vec![None; 3],
            pieces: 1,
            coordinates: 1,
            seed: 5,
            weighted: false,
        })
    }

    /// Entries at random, in chunks that differ in length; those before `long` all have one row.
    fn classes(n: usize, long: usize, palette: Palette) -> (Colours, Classes) {
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
        let pieces = spec.in_pieces(palette.pieces);
        let sort = |w: &[usize]| pieces.sort(&chunk(w[0], w[1]), w[0]).unwrap();
        let sorted: Vec<_> = [0, n / 3, n / 2, n].windows(2).map(sort).collect();
        let made = (0..palette.pieces).map(|p| palette.piece(&spec, &sorted, p).unwrap());
        let colours = palette.colours(&spec, made.collect()).unwrap();
        let seen = &mut Seen::default();
        let class = |c| Class::new(&spec, &colours, c, seen).unwrap();
        let classes = (0..colours.count()).map(class).collect();
        let classes = Classes::new(&spec, classes);
        (colours, classes)
    }

    #[test]
    fn every_entry_is_in_one_class_and_no_row_twice_in_any() {
        // Few colours leave many entries; the third has more than a mask has bits.
        for (n, long, pieces, each) in [
            (20_000, 0, 1, 40),
            (20_000, 0, 4, 5),
            (9000, 150, 1, 40),
            (9000, 150, 3, 4),
        ] {
            let (colours, classes) = classes(n, long, Palette::fixed(pieces, each));
            assert_eq!((classes.len(), classes.count()), (n, colours.count()));
            assert!(classes.count() > 20);
            // Those of pieces are nearly even.
            let sizes = (0..pieces * each).map(|c| colours.members(c).0.len());
            let (least, most) = (sizes.clone().min().unwrap(), sizes.max().unwrap());
            assert!(4 * least > 3 * most, "{least} {most}");
            let mut found = Vec::new();
            for class in 0..classes.count() {
                let (first, count) = classes.class(class);
                let mut seen = ROWS.map(|r| vec![None; r as usize]);
                let mut entries = 0;
                for number in first..first + count {
                    let cell = &classes.cells()[number];
                    assert_eq!(cell.number(), number);
                    entries += cell.len();
                    cell.each(|rows, value, _| {
                        found.push(value as usize);
                        for (seen, &row) in seen.iter_mut().zip(rows) {
                            let last = seen[row as usize].replace(number);
                            // Only the smallest colours are not apart, in a cell of their own.
                            let alone = class + 1 == classes.count() && count == 1;
                            assert!(last.is_none() || alone);
                        }
                    });
                }
                assert_eq!(entries, colours.members(class).0.len());
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
        let _ = Class::of(&spec, cells, &mut Seen::default());
    }

    #[test]
    fn rows_of_one_class_are_forgotten_for_the_next() {
        let spec = spec();
        let seen = &mut Seen::default();
        for _ in 0..2 {
            let cell = |rows: [u32; 3]| spec.cell_of([&rows[..], &[0]].concat());
            let cells = vec![cell([1, 2, 3]), cell([4, 5, 6])];
            assert_eq!(Class::of(&spec, cells, seen).unwrap().cells.len(), 2);
        }
    }

    #[test]
    #[should_panic(expected = "taken before")]
    fn a_cell_is_taken_once() {
        let (_, classes) = classes(5000, 0, Palette::fixed(1, 8));
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
