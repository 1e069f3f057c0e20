//! Values, or residuals of a model, centered by mode and clipped.

use std::ops::Range;

use crate::kernel::ModeCsr;

/// Maximum number of entries that spectral initialization uses.
const MAX_ENTRIES: usize = 1 << 22;

/// Least number of entries that one task reads.
const CHUNK_ENTRIES: usize = 1 << 15;

/// Values are clipped at this multiple of their root mean square: products of four of them have heavy tails, which
/// would hide all structure.
const CLIP_DEVIATIONS: f64 = 2.0;

/// The mean of a row is computed as if the row had so many more entries of value 0.
const MEAN_DAMPING_ENTRIES: f64 = 5.0;

/// Values of the first entries, less the means of their rows in every mode, clipped and scaled to at most 1.
pub(in crate::solver::rowwise) struct CenteredValues {
    /// One per entry, times its weight.
    pub(super) weighted: Vec<f64>,
    /// Weighted mean of the squares before weighting.
    pub(super) mean_square: f64,
}

/// The first rows of the grouping mode, those whose entries are used, in chunks.
pub(super) fn row_chunks(csr: &ModeCsr) -> Vec<Range<usize>> {
    let (mut chunks, mut start) = (Vec::new(), 0);
    let rows = (0..csr.row_count())
        .take_while(|&i| csr.row_entries(i).end <= MAX_ENTRIES)
        .count();
    for i in 0..rows {
        let entries = csr.row_entries(i).end - csr.row_entries(start).start;
        if entries >= CHUNK_ENTRIES || i + 1 == rows {
            chunks.push(start..i + 1);
            start = i + 1;
        }
    }
    chunks
}

/// Returns the number of entries that are used: the first ones.
pub(in crate::solver::rowwise) fn used_entry_count(csr: &ModeCsr) -> usize {
    row_chunks(csr)
        .last()
        .map_or(0, |chunk| csr.row_entries(chunk.end - 1).end)
}

impl CenteredValues {
    /// Subtracts the total mean of the first entries' values, then the damped means of the rows of each mode, one mode
    /// after the other, and clips.
    pub(in crate::solver::rowwise) fn new(csr: &ModeCsr, mut values: Vec<f64>) -> CenteredValues {
        let entries = 0..values.len();
        subtract_row_means(&mut values, csr, 0.0, entries.clone().map(|_| 0));
        for k in 0..csr.other_modes().len() {
            let row = |e: usize| csr.other_rows(e)[k] as usize;
            let rows = entries.clone().map(row);
            subtract_row_means(&mut values, csr, MEAN_DAMPING_ENTRIES, rows);
        }
        let own_rows = (0..csr.row_count()).flat_map(|i| csr.row_entries(i).map(move |_| i));
        let own_rows = own_rows.take(entries.len());
        subtract_row_means(&mut values, csr, MEAN_DAMPING_ENTRIES, own_rows);
        let limit = CLIP_DEVIATIONS * mean_square(&values, csr).sqrt();
        let scale = if limit.is_normal() { 1.0 / limit } else { 0.0 };
        values
            .iter_mut()
            .for_each(|x| *x = (*x * scale).clamp(-1.0, 1.0));
        let mean_square = mean_square(&values, csr);
        for (x, e) in values.iter_mut().zip(entries) {
            *x *= f64::from(csr.weight(e));
        }
        CenteredValues {
            mean_square,
            weighted: values,
        }
    }
}

/// Returns the weighted mean of the squares of the first entries' values.
fn mean_square(values: &[f64], csr: &ModeCsr) -> f64 {
    let (mut squares, mut weight) = (0.0, 0.0);
    for (e, x) in values.iter().enumerate() {
        let w = f64::from(csr.weight(e));
        (squares, weight) = (squares + w * x * x, weight + w);
    }
    if weight > 0.0 { squares / weight } else { 0.0 }
}

/// Subtracts from each of the first entries' values the weighted mean over its row; `rows` are the rows of the entries.
fn subtract_row_means(
    values: &mut [f64],
    csr: &ModeCsr,
    damping: f64,
    rows: impl Iterator<Item = usize> + Clone,
) {
    let row_count = rows.clone().max().map_or(0, |last| last + 1);
    // Sum of values and sum of weights.
    let mut sums = vec![(0.0, damping); row_count];
    for (e, (x, i)) in values.iter().zip(rows.clone()).enumerate() {
        let w = f64::from(csr.weight(e));
        sums[i].0 += w * x;
        sums[i].1 += w;
    }
    for (x, i) in values.iter_mut().zip(rows) {
        let (sum, weight) = sums[i];
        *x -= if weight > 0.0 { sum / weight } else { 0.0 };
    }
}
