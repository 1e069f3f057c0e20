//! The rows of one mode that occur, with their numbers of entries.

use std::sync::Arc;

use super::entry_source::EntrySource;
use crate::error::Result;
use crate::format::{CooView, RowMap};
use crate::progress::{Monitor, report_progress};
use crate::try_alloc::{try_collect, try_with_capacity, try_zeroed};

/// Indices between two progress reports.
const REPORT_INTERVAL: usize = 1 << 20;

/// The rows of one mode of the tensor, or the columns of a coupled matrix.
pub struct ProblemMode {
    pub(crate) rows: Arc<RowMap>,
    pub(crate) indices: Vec<u32>,
    pub(crate) counts: Arc<Vec<u64>>,
    pub(crate) weights: Vec<f64>,
}

impl ProblemMode {
    /// Counts the entries of each row of `rows` in column `n` of a view. Entries of weight 0 do not count.
    pub(super) fn count(
        rows: Arc<RowMap>,
        entries: &EntrySource<'_>,
        n: usize,
        monitor: &dyn Monitor,
    ) -> Result<ProblemMode> {
        let view = entries.view();
        // Counts by index need no row numbers of entries.
        let is_short = rows.dim() <= view.len() as u64;
        let (counts, weights) = match is_short && !entries.is_weighted() {
            true => (count_by_index(&rows, view, n, monitor)?, Vec::new()),
            false => count_by_row(&rows, entries, n, monitor)?,
        };
        Ok(ProblemMode {
            indices: all_indices(&rows, monitor)?,
            rows,
            counts: Arc::new(counts),
            weights,
        })
    }

    /// Returns the columns of a graph, which has none of its own.
    pub(super) fn empty(rows: RowMap) -> ProblemMode {
        ProblemMode {
            rows: Arc::new(rows),
            indices: Vec::new(),
            counts: Arc::default(),
            weights: Vec::new(),
        }
    }

    /// Returns the size of the mode.
    pub fn dim(&self) -> u64 {
        self.rows.dim()
    }

    /// Returns the rows that occur in the tensor or in a matrix coupled to this mode, with their compact numbers.
    pub fn rows(&self) -> &Arc<RowMap> {
        &self.rows
    }

    /// Returns the index of each compact row.
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// Returns the number of tensor entries of each compact row: |Omega(n, i)| of the paper. Rows that occur only in
    /// matrices have 0.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the sum of the weights of the tensor entries of each compact row, divided by the mean weight if that is below 1/256
    /// or above 256; empty if entries have no weights and each counts as 1.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }
}

/// Returns the index of each row. A full matrix has as many as its size.
fn all_indices(rows: &RowMap, monitor: &dyn Monitor) -> Result<Vec<u32>> {
    let mut indices = try_with_capacity(rows.len(), "rows")?;
    for index in rows.indices() {
        if indices.len() % REPORT_INTERVAL == 0 {
            report_progress(
                monitor,
                "finding rows",
                indices.len() as u64,
                rows.len() as u64,
            )?;
        }
        indices.push(index);
    }
    Ok(indices)
}

/// Counts the entries of each row in an unweighted column, in a table over all indices of the mode.
fn count_by_index(
    rows: &RowMap,
    view: &CooView<'_>,
    n: usize,
    monitor: &dyn Monitor,
) -> Result<Vec<u64>> {
    let mut by_index: Vec<u64> = try_zeroed(rows.dim() as usize, "rows")?;
    for (chunk, indices) in view.column(n).chunks(REPORT_INTERVAL).enumerate() {
        let start = chunk * REPORT_INTERVAL;
        report_progress(monitor, "counting rows", start as u64, view.len() as u64)?;
        for &index in indices {
            // An index that the file shows only now, because it changed, is rejected when the entries are copied.
            if let Some(count) = by_index.get_mut(index as usize) {
                *count += 1;
            }
        }
    }
    let counts = rows.indices().map(|index| by_index[index as usize]);
    try_collect(rows.len(), counts, "rows")
}

/// Returns the number and, if entries have weights, the total weight of the entries of each row.
fn count_by_row(
    rows: &RowMap,
    entries: &EntrySource<'_>,
    n: usize,
    monitor: &dyn Monitor,
) -> Result<(Vec<u64>, Vec<f64>)> {
    let view = entries.view();
    let mut counts: Vec<u64> = try_zeroed(rows.len(), "rows")?;
    let mut weights: Vec<f64> = match entries.is_weighted() {
        true => try_zeroed(rows.len(), "rows")?,
        false => Vec::new(),
    };
    for (chunk, indices) in view.column(n).chunks(REPORT_INTERVAL).enumerate() {
        let start = chunk * REPORT_INTERVAL;
        report_progress(monitor, "counting rows", start as u64, view.len() as u64)?;
        for (k, &index) in indices.iter().enumerate() {
            let weight = entries.weights.get(start + k);
            // As above.
            if let Some(row) = rows.compact(index).filter(|_| weight > 0.0) {
                counts[row as usize] += 1;
                if let Some(sum) = weights.get_mut(row as usize) {
                    *sum += f64::from(weight);
                }
            }
        }
    }
    Ok((counts, weights))
}
