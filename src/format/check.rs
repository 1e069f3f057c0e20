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

/// Number of examples kept of each fault.
const MAX_EXAMPLES: usize = 5;

/// Entries with one kind of fault.
#[derive(Debug, Clone)]
pub struct Faults<T> {
    /// Number of faults.
    pub count: u64,
    /// The first few, in the order of the file.
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
        if self.examples.len() < MAX_EXAMPLES {
            self.examples.push(example());
        }
    }
}

/// An invalid entry. Entries, modes and indices count from 0.
#[derive(Debug, Clone, PartialEq)]
pub struct InvalidEntry {
    /// Number of the entry.
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

/// A position with more than one entry.
#[derive(Debug, Clone, PartialEq)]
pub struct DuplicatePosition {
    /// Indices of the position, counted from 0.
    pub index: Vec<u32>,
    /// Its entries (counted from 0) and their values.
    pub entries: Vec<(u64, f64)>,
}

/// The faults that [`check`] found.
#[derive(Debug, Clone, Default)]
pub struct CheckReport {
    /// Sections whose checksum does not match.
    pub damaged: Vec<String>,
    /// Indices that are not below the size of their mode.
    pub out_of_range: Faults<InvalidEntry>,
    /// Values that are NaN or infinite, and weights that are, also as `f32`, or that are below 0.
    pub not_finite: Faults<InvalidEntry>,
    /// Positions with more than one entry.
    pub duplicates: Faults<DuplicatePosition>,
    /// Number of entries whose position has an earlier entry.
    pub repeated_entries: u64,
    /// Number of rows without an entry, for each mode. They are no fault.
    pub empty_rows: Vec<u64>,
}

impl CheckReport {
    /// Returns whether there are no faults.
    pub fn is_clean(&self) -> bool {
        self.damaged.is_empty()
            && self.out_of_range.count == 0
            && self.not_finite.count == 0
            && self.duplicates.count == 0
    }
}

/// Checks checksums, index ranges, values and duplicates of an opened file. Opening it has checked the header.
pub fn check(file: &CooFile, monitor: &dyn Monitor) -> Result<CheckReport> {
    Ok(CheckReport {
        damaged: file.damaged_sections(monitor)?,
        ..check_view(&file.view(), monitor)?
    })
}

/// As [`check`], for entries in memory or in a file, without checksums.
pub fn check_view(view: &CooView<'_>, monitor: &dyn Monitor) -> Result<CheckReport> {
    let mut report = CheckReport::default();
    let values = view.values();
    for_each_batch(view, monitor, "values and indices", &mut |_, range| {
        for i in range {
            let outside = view.mode_out_of_range(i);
            let bad = || InvalidEntry {
                entry: i as u64,
                index: view.index(i),
                mode: outside,
                value: values.get(i),
                weight: view.weights().map(|w| w.get(i)),
            };
            if outside.is_some() {
                report.out_of_range.add(bad);
            }
            if !view.has_valid_numbers(i) {
                report.not_finite.add(bad);
            }
        }
        Ok(())
    })?;
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
    let mut positions: Vec<DuplicatePosition> = Vec::new();
    for_each_duplicate(view, monitor, &mut |entries| {
        report.duplicates.count += 1;
        report.repeated_entries += entries.len() as u64 - 1;
        positions.push(DuplicatePosition {
            index: view.index(entries[0] as usize),
            entries: entries
                .iter()
                .take(MAX_EXAMPLES)
                .map(|&e| (e, values.get(e as usize)))
                .collect(),
        });
        // Groups do not come in the order of the file, but the examples must.
        if positions.len() > 64 * MAX_EXAMPLES {
            stable_sort_by_key(&mut positions, &|c| c.entries[0].0);
            positions.truncate(MAX_EXAMPLES);
        }
        Ok(())
    })?;
    stable_sort_by_key(&mut positions, &|c| c.entries[0].0);
    positions.truncate(MAX_EXAMPLES);
    report.duplicates.examples = positions;
    Ok(report)
}

/// Calls `visit` with the ascending numbers of the entries of every position that has more than one.
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
            // Different positions may share a hash.
            let mut by_position = group.to_vec();
            stable_sort_by_key(&mut by_position, &|&i| (view.index(i as usize), i));
            for entries in
                by_position.chunk_by(|&a, &b| view.index(a as usize) == view.index(b as usize))
            {
                if entries.len() > 1 {
                    visit(entries)?;
                }
            }
            Ok(())
        },
    )
}
