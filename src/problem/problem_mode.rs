//! The rows of one mode that occur, with their numbers of entries.

use std::sync::Arc;

use crate::error::Result;
use crate::format::{CooView, RowMap};
use crate::progress::{Monitor, report_progress};
use crate::try_alloc::{try_collect, try_zeroed};

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
    /// Counts the entries of each row of `rows` in column `n` of `view`. Entries of weight 0 do not count.
    pub(super) fn count(
        rows: Arc<RowMap>,
        view: &CooView<'_>,
        n: usize,
        monitor: &dyn Monitor,
    ) -> Result<ProblemMode> {
        let (counts, weights) = match view.weights() {
            // Counts by index need no row numbers of entries.
            None if rows.dim() <= view.len() as u64 => {
                (count_by_index(&rows, view, n, monitor)?, Vec::new())
            }
            _ => count_by_row(&rows, view, n, monitor)?,
        };
        Ok(ProblemMode {
            indices: try_collect(rows.len(), rows.indices(), "rows")?,
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

    /// Returns the sum of the weights of the tensor entries of each compact row; empty if entries have no weights and
    /// each counts as 1.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }
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
    view: &CooView<'_>,
    n: usize,
    monitor: &dyn Monitor,
) -> Result<(Vec<u64>, Vec<f64>)> {
    let mut counts: Vec<u64> = try_zeroed(rows.len(), "rows")?;
    let mut weights: Vec<f64> = match view.weights() {
        Some(_) => try_zeroed(rows.len(), "rows")?,
        None => Vec::new(),
    };
    for (chunk, indices) in view.column(n).chunks(REPORT_INTERVAL).enumerate() {
        let start = chunk * REPORT_INTERVAL;
        report_progress(monitor, "counting rows", start as u64, view.len() as u64)?;
        for (k, &index) in indices.iter().enumerate() {
            let weight = solver_weight(view, start + k);
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

/// Returns the weight of entry `i` in the precision of solvers; 1 without weights.
#[inline]
pub(super) fn solver_weight(view: &CooView<'_>, i: usize) -> f32 {
    view.weights().map_or(1.0, |w| w.get(i) as f32)
}
