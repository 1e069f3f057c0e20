//! Statistics of a tensor or matrix: sizes, values, lengths of rows.

use super::batches::for_each_valid_batch;
use super::coo_view::CooView;
use super::row_map::{RowMap, RowMapBuilder};
use crate::error::Result;
use crate::progress::{Monitor, report_progress};
use crate::try_alloc::try_zeroed;

/// Statistics that [`summarize`] computes.
#[derive(Debug, Clone)]
pub struct Summary {
    /// The size of each mode.
    pub dims: Vec<u64>,
    /// The number of entries.
    pub count: u64,
    /// Fraction of positions with an entry.
    pub density: f64,
    /// Statistics of the values; `None` without entries.
    pub values: Option<ValueSummary>,
    /// Statistics of each mode.
    pub modes: Vec<ModeSummary>,
}

/// Statistics of values.
#[derive(Debug, Clone, Copy)]
pub struct ValueSummary {
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// The mean.
    pub mean: f64,
    /// The standard deviation (of the population).
    pub deviation: f64,
}

/// Statistics of the rows of a mode.
#[derive(Debug, Clone)]
pub struct ModeSummary {
    /// The size of the mode.
    pub dim: u64,
    /// Rows with at least one entry.
    pub rows_used: u64,
    /// Index (from 0) of the row with the most entries, the first of equals, and its number of entries.
    pub longest_row: Option<(u32, u64)>,
    /// Mean number of entries of the rows that have any.
    pub mean_length: f64,
    /// Number of rows with 1, 2 to 3, 4 to 7, ... entries: element `k` counts lengths from 2^k to 2^(k+1) - 1.
    pub histogram: Vec<u64>,
}

/// Computes statistics of all entries. An invalid entry is an error; [`check`](super::check) finds all of them.
pub fn summarize(view: &CooView<'_>, monitor: &dyn Monitor) -> Result<Summary> {
    let values = summarize_values(view, monitor)?;
    let count = view.len() as u64;
    let cells: f64 = view.dims().iter().map(|&d| d as f64).product();
    let mut modes = Vec::with_capacity(view.order());
    for n in 0..view.order() {
        let (map, lengths) = count_rows(view, n, monitor)?;
        modes.push(summarize_mode(view.dims()[n], &map, &lengths));
    }
    Ok(Summary {
        dims: view.dims().to_vec(),
        count,
        density: count as f64 / cells,
        values,
        modes,
    })
}

/// Returns the rows of mode `n` that occur and the number of entries of each. The entries must be valid.
pub(crate) fn count_rows(
    view: &CooView<'_>,
    n: usize,
    monitor: &dyn Monitor,
) -> Result<(RowMap, Vec<u64>)> {
    const PIECE: usize = 1 << 20;
    let column = view.column(n);
    let total = 2 * column.len() as u64;
    let mut builder = RowMapBuilder::new(view.dims()[n])?;
    for (piece, indices) in column.chunks(PIECE).enumerate() {
        report_progress(monitor, "rows", (piece * PIECE) as u64, total)?;
        for &index in indices {
            builder.mark(index);
        }
    }
    let map = builder.finish()?;
    let mut lengths: Vec<u64> = try_zeroed(map.len(), "rows")?;
    for (piece, indices) in column.chunks(PIECE).enumerate() {
        report_progress(
            monitor,
            "rows",
            (column.len() + piece * PIECE) as u64,
            total,
        )?;
        for &index in indices {
            // A mapped file that changed since the first pass may have other rows.
            if let Some(row) = map.compact(index) {
                lengths[row as usize] += 1;
            }
        }
    }
    Ok((map, lengths))
}

fn summarize_mode(dim: u64, map: &RowMap, lengths: &[u64]) -> ModeSummary {
    let mut histogram = Vec::new();
    let mut longest: Option<(u32, u64)> = None;
    for (index, &length) in map.indices().zip(lengths) {
        let bin = length.max(1).ilog2() as usize;
        if bin >= histogram.len() {
            histogram.resize(bin + 1, 0);
        }
        histogram[bin] += 1;
        if longest.is_none_or(|(_, most)| length > most) {
            longest = Some((index, length));
        }
    }
    let rows_used = lengths.len() as u64;
    ModeSummary {
        dim,
        rows_used,
        longest_row: longest,
        mean_length: lengths.iter().sum::<u64>() as f64 / (rows_used.max(1)) as f64,
        histogram,
    }
}

/// Validates all entries and computes the statistics of their values.
fn summarize_values(view: &CooView<'_>, monitor: &dyn Monitor) -> Result<Option<ValueSummary>> {
    if view.is_empty() {
        return Ok(None);
    }
    let values = view.values();
    let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
    // Mean and sum of squared deviations per batch, combined by the update of Chan et al., which is accurate for values
    // with a large offset and for any count.
    let (mut n, mut mean, mut squares) = (0.0f64, 0.0f64, 0.0f64);
    for_each_valid_batch(view, monitor, "values", &mut |_, range| {
        let (first, m) = (values.get(range.start), range.len() as f64);
        let mut sum = 0.0;
        for v in range.clone().map(|i| values.get(i)) {
            min = min.min(v);
            max = max.max(v);
            sum += v - first;
        }
        let batch_mean = first + sum / m;
        let batch_squares: f64 = range.map(|i| (values.get(i) - batch_mean).powi(2)).sum();
        let gap = batch_mean - mean;
        squares += batch_squares + gap * gap * n * m / (n + m);
        mean += gap * m / (n + m);
        n += m;
        Ok(())
    })?;
    Ok(Some(ValueSummary {
        min,
        max,
        mean,
        deviation: (squares / n).sqrt(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Values;

    #[test]
    fn statistics_are_exact_on_a_small_example() {
        let (a, b) = (vec![0u32, 0, 0, 2, 2, 7], vec![0u32, 1, 2, 0, 1, 0]);
        let v = [
            1e6 + 1.0,
            1e6 + 2.0,
            1e6 + 3.0,
            1e6 + 4.0,
            1e6 + 5.0,
            1e6 + 6.0,
        ];
        let view = CooView::new("t", &[8, 4], &[&a, &b], Values::F64(&v)).unwrap();
        let s = summarize(&view, &()).unwrap();
        assert_eq!(s.density, 6.0 / 32.0);
        let values = s.values.unwrap();
        assert_eq!(
            (values.min, values.max, values.mean),
            (1e6 + 1.0, 1e6 + 6.0, 1e6 + 3.5)
        );
        assert!((values.deviation - (35.0f64 / 12.0).sqrt()).abs() < 1e-9);
        assert_eq!(s.modes[0].rows_used, 3);
        assert_eq!(s.modes[0].longest_row, Some((0, 3)));
        assert_eq!(s.modes[0].mean_length, 2.0);
        assert_eq!(s.modes[0].histogram, [1, 2]);
        assert_eq!(s.modes[1].rows_used, 3);
        let bad = CooView::new("t", &[7, 4], &[&a, &b], Values::F64(&v)).unwrap();
        let error = summarize(&bad, &()).unwrap_err().to_string();
        assert!(
            error.contains("entry 6") && error.contains("beyond its size 7"),
            "{error}"
        );
    }
}
