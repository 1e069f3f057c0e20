//! Values, or residuals of a model, centered by mode and clipped.

use std::ops::Range;
use std::sync::Mutex;

use crate::error::Result;
use crate::kernel::ModeCsr;
use crate::parallel::{ThreadPool, lock_ignoring_poison};
use crate::solver::chunked_sum::sum_chunks;
use crate::try_alloc::try_zeroed;

/// Maximum number of entries that spectral initialization uses.
const MAX_ENTRIES: usize = 1 << 22;

/// Least number of entries that one task reads.
const CHUNK_ENTRIES: usize = 1 << 15;

/// Number of values that are summed at a time.
const CHUNK_VALUES: usize = 1 << 19;

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
    pub(in crate::solver::rowwise) fn new(
        csr: &ModeCsr,
        values: Vec<f64>,
        pool: &ThreadPool<'_>,
    ) -> Result<CenteredValues> {
        let mut values = ValueChunks { csr, values, pool };
        values.subtract_row_means(0.0, 1, |_, rows| rows.fill(0))?;
        for (k, &count) in csr.other_row_counts().iter().enumerate() {
            values.subtract_row_means(MEAN_DAMPING_ENTRIES, count, |entries, rows| {
                let of_entries = rows.iter_mut().zip(entries);
                of_entries.for_each(|(row, e)| *row = csr.other_rows(e)[k]);
            })?;
        }
        values.subtract_row_means(MEAN_DAMPING_ENTRIES, csr.row_count(), |entries, rows| {
            let mut row = csr.row_of(entries.start);
            for (to, e) in rows.iter_mut().zip(entries) {
                while csr.row_entries(row).end <= e {
                    row += 1;
                }
                *to = row as u32;
            }
        })?;
        let limit = CLIP_DEVIATIONS * values.mean_square()?.sqrt();
        let scale = if limit.is_normal() { 1.0 / limit } else { 0.0 };
        values.for_each_chunk(|_, values| {
            let values = values.iter_mut();
            values.for_each(|x| *x = (*x * scale).clamp(-1.0, 1.0));
        })?;
        let mean_square = values.mean_square()?;
        values.for_each_chunk(|entries, values| {
            let weighted = values.iter_mut().zip(entries);
            weighted.for_each(|(x, e)| *x *= f64::from(csr.weight(e)));
        })?;
        Ok(CenteredValues {
            mean_square,
            weighted: values.values,
        })
    }
}

/// Values of the first entries, which all threads read and change in fixed chunks: results are independent of the number of
/// threads.
struct ValueChunks<'a> {
    csr: &'a ModeCsr,
    values: Vec<f64>,
    pool: &'a ThreadPool<'a>,
}

impl ValueChunks<'_> {
    /// Calls `work` with the entries of each chunk and their values.
    fn for_each_chunk(&mut self, work: impl Fn(Range<usize>, &mut [f64]) + Sync) -> Result<()> {
        let chunks = self.values.chunks_mut(CHUNK_VALUES).map(Mutex::new);
        let chunks: Vec<Mutex<&mut [f64]>> = chunks.collect();
        let run = |(): &mut (), c: usize| {
            let mut values = lock_ignoring_poison(&chunks[c]);
            let first = c * CHUNK_VALUES;
            work(first..first + values.len(), &mut values);
        };
        self.pool.map(chunks.len(), || (), run)?;
        Ok(())
    }

    /// Returns the weighted mean of the squares.
    fn mean_square(&self) -> Result<f64> {
        let (csr, values) = (self.csr, &self.values[..]);
        let sum = |(): &mut (), c: usize| {
            let (mut squares, mut weight) = (0.0, 0.0);
            for e in chunk(c, values.len()) {
                let (w, x) = (f64::from(csr.weight(e)), values[e]);
                (squares, weight) = (squares + w * x * x, weight + w);
            }
            Ok([squares, weight])
        };
        let chunks = self.values.len().div_ceil(CHUNK_VALUES);
        let [squares, weight] = sum_chunks(chunks, self.pool, || Ok(()), sum)?;
        Ok(if weight > 0.0 { squares / weight } else { 0.0 })
    }

    /// Subtracts from each value the weighted mean over its row. `rows` writes the rows of some entries, of `row_count` rows in
    /// all.
    fn subtract_row_means(
        &mut self,
        damping: f64,
        row_count: usize,
        rows: impl Fn(Range<usize>, &mut [u32]) + Sync,
    ) -> Result<()> {
        /// Number of entries whose rows are found at a time.
        const ENTRIES_AT_ONCE: usize = 256;
        let for_each_row = |entries: Range<usize>, visit: &mut dyn FnMut(Range<usize>, &[u32])| {
            let mut buffer = [0; ENTRIES_AT_ONCE];
            for start in entries.clone().step_by(ENTRIES_AT_ONCE) {
                let some = start..(start + ENTRIES_AT_ONCE).min(entries.end);
                let buffer = &mut buffer[..some.len()];
                rows(some.clone(), buffer);
                visit(some, buffer);
            }
        };
        let (csr, values) = (self.csr, &self.values[..]);
        // Sum of values and sum of weights.
        let sum = |(): &mut (), c: usize| -> Result<Vec<[f64; 2]>> {
            let mut sums: Vec<[f64; 2]> = try_zeroed(row_count, "rows")?;
            if c == 0 {
                sums.iter_mut().for_each(|[_, weight]| *weight = damping);
            }
            for_each_row(chunk(c, values.len()), &mut |entries, rows| {
                for (&i, e) in rows.iter().zip(entries) {
                    let (w, sum) = (f64::from(csr.weight(e)), &mut sums[i as usize]);
                    sum[0] += w * values[e];
                    sum[1] += w;
                }
            });
            Ok(sums)
        };
        let chunks = self.values.len().div_ceil(CHUNK_VALUES);
        let mut sums = self.pool.try_map(chunks, || Ok(()), sum)?.into_iter();
        let mut means = sums.next().unwrap_or_default();
        for more in sums {
            let each = means.iter_mut().zip(more);
            each.for_each(|(sum, more)| (0..2).for_each(|k| sum[k] += more[k]));
        }
        for [sum, weight] in &mut means {
            *sum = if *weight > 0.0 { *sum / *weight } else { 0.0 };
        }
        self.for_each_chunk(|entries, values| {
            let first = entries.start;
            for_each_row(entries, &mut |entries, rows| {
                let values = &mut values[entries.start - first..entries.end - first];
                for (x, &i) in values.iter_mut().zip(rows) {
                    *x -= means[i as usize][0];
                }
            });
        })
    }
}

/// Returns the entries of chunk `c` of `count` entries.
fn chunk(c: usize, count: usize) -> Range<usize> {
    c * CHUNK_VALUES..((c + 1) * CHUNK_VALUES).min(count)
}
