//! Checks every entry of a file: checksums, index ranges, values and duplicates.

use super::batches::for_each_batch;
use super::coo_file::CooFile;
use super::coo_view::CooView;
use super::group_by_key::{DEFAULT_MEMORY, for_each_group};
use super::row_map::RowMapBuilder;
use crate::error::Result;
use crate::progress::{Monitor, report_progress};
use crate::random::splitmix64;
use crate::sort::stable_sort_by_key;

/// How many examples of each fault are kept.
const EXAMPLES: usize = 5;

/// A fault found in entries: how many, and the first few in the order of the file.
#[derive(Debug, Clone)]
pub struct Faults<T> {
    /// How many.
    pub count: u64,
    /// The first few.
    pub examples: Vec<T>,
}

impl<T> Default for Faults<T> {
    fn default() -> Self {
        Faults {
            count: 0,
            examples: Vec::new(),
        }
    }
}

impl<T> Faults<T> {
    fn add(&mut self, example: impl FnOnce() -> T) {
        self.count += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(example());
        }
    }
}

/// An entry that is not acceptable by itself. Entries, modes and indices count from 0.
#[derive(Debug, Clone, PartialEq)]
pub struct InvalidEntry {
    /// The entry.
    pub entry: u64,
    /// Its indices.
    pub index: Vec<u32>,
    /// The mode whose index is out of range, if that is the fault.
    pub mode: Option<usize>,
    /// Its value.
    pub value: f64,
    /// Its weight, if it has one.
    pub weight: Option<f64>,
}

/// A cell that is listed more than once.
#[derive(Debug, Clone, PartialEq)]
pub struct DuplicatePosition {
    /// The cell's indices, counted from 0.
    pub index: Vec<u32>,
    /// The entries that list it (counted from 0), with their values.
    pub entries: Vec<(u64, f64)>,
}

/// What [`check`] found.
#[derive(Debug, Clone, Default)]
pub struct CheckReport {
    /// The sections whose bytes do not match their checksum.
    pub damaged: Vec<String>,
    /// Indices that are not below the size of their mode.
    pub out_of_range: Faults<InvalidEntry>,
    /// Values or weights that are NaN or infinite, and weights below 0.
    pub not_finite: Faults<InvalidEntry>,
    /// Cells listed more than once.
    pub duplicates: Faults<DuplicatePosition>,
    /// Entries that repeat a cell already listed before them.
    pub repeated_entries: u64,
    /// For each mode, the rows without an entry. These are no fault.
    pub empty_rows: Vec<u64>,
}

impl CheckReport {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.damaged.is_empty()
            && self.out_of_range.count == 0
            && self.not_finite.count == 0
            && self.duplicates.count == 0
    }
}

/// Checks checksums, index ranges, values and duplicates of an opened file. The structure was
/// checked by opening it.
pub fn check(file: &CooFile, monitor: &dyn Monitor) -> Result<CheckReport> {
    Ok(CheckReport {
        damaged: file.damaged_sections(monitor)?,
        ..check_view(&file.view(), monitor)?
    })
}

/// [`check`] of entries wherever they are: what only files have, checksums, is left out.
pub fn check_view(view: &CooView<'_>, monitor: &dyn Monitor) -> Result<CheckReport> {
    let mut report = CheckReport::default();
    let values = view.values();
    for_each_batch(
        view,
        monitor,
        "values and indices",
        &mut |columns, range| {
            for (k, i) in range.enumerate() {
                let outside = columns
                    .iter()
                    .zip(view.dims())
                    .position(|(c, &dim)| u64::from(c[k]) >= dim);
                let (value, weight) = (values.get(i), view.weights().map(|w| w.get(i)));
                let finite = is_valid_entry(value, weight);
                if outside.is_none() && finite {
                    continue;
                }
                let bad = || InvalidEntry {
                    entry: i as u64,
                    index: view.index(i),
                    mode: outside,
                    value,
                    weight,
                };
                if outside.is_some() {
                    report.out_of_range.add(bad);
                }
                if !finite {
                    report.not_finite.add(bad);
                }
            }
            Ok(())
        },
    )?;
    for (n, &dim) in view.dims().iter().enumerate() {
        let mut rows = RowMapBuilder::new(dim)?;
        for (piece, indices) in view.column(n).chunks(1 << 20).enumerate() {
            report_progress(monitor, "rows", (piece << 20) as u64, view.len() as u64)?;
            for &index in indices {
                rows.mark(index);
            }
        }
        report.empty_rows.push(dim - rows.finish()?.len() as u64);
    }
    let mut cells: Vec<DuplicatePosition> = Vec::new();
    for_each_duplicate(view, monitor, &mut |entries| {
        report.duplicates.count += 1;
        report.repeated_entries += entries.len() as u64 - 1;
        cells.push(DuplicatePosition {
            index: view.index(entries[0] as usize),
            entries: entries
                .iter()
                .take(EXAMPLES)
                .map(|&e| (e, values.get(e as usize)))
                .collect(),
        });
        // Groups do not come in the order of the file; the first few must.
        if cells.len() > 64 * EXAMPLES {
            stable_sort_by_key(&mut cells, &|c| c.entries[0].0);
            cells.truncate(EXAMPLES);
        }
        Ok(())
    })?;
    stable_sort_by_key(&mut cells, &|c| c.entries[0].0);
    cells.truncate(EXAMPLES);
    report.duplicates.examples = cells;
    Ok(report)
}

/// Values are finite; weights are finite and not negative.
pub(super) fn is_valid_entry(value: f64, weight: Option<f64>) -> bool {
    value.is_finite() && weight.is_none_or(|w| w.is_finite() && w >= 0.0)
}

/// Calls `visit` with the entries (ascending) of every cell listed more than once.
pub(super) fn for_each_duplicate(
    view: &CooView<'_>,
    monitor: &dyn Monitor,
    visit: &mut dyn FnMut(&[u64]) -> Result<()>,
) -> Result<()> {
    let order = view.order();
    let columns: Vec<&[u32]> = (0..order).map(|n| view.column(n)).collect();
    let key = |i: usize| {
        columns
            .iter()
            .fold(0, |acc, c| splitmix64(acc ^ u64::from(c[i])))
    };
    for_each_group(
        view.len() as u64,
        DEFAULT_MEMORY,
        false,
        key,
        monitor,
        |group| {
            // Different cells may share a hash.
            let mut by_cell = group.to_vec();
            stable_sort_by_key(&mut by_cell, &|&i| (view.index(i as usize), i));
            for cell in by_cell.chunk_by(|&a, &b| view.index(a as usize) == view.index(b as usize))
            {
                if cell.len() > 1 {
                    visit(cell)?;
                }
            }
            Ok(())
        },
    )
}
