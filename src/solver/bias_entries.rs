//! The entries that biases are fitted to: all entries of a tensor, read again in every pass, or a sample in memory.

use std::sync::atomic::{AtomicU64, Ordering};

use super::chunked_sum::accumulator_count;
use super::holdout_split::HoldoutSplit;
use super::initial_sample::sample_size;
use super::value_scale::nearest_power_of_two;
use crate::error::Result;
use crate::parallel::ThreadPool;
use crate::problem::{AffineMap, EntryChunk, Problem};
use crate::progress::Monitor;
use crate::try_alloc::try_zeroed;

/// Size of the sample of initial biases.
const ENTRIES_PER_ROW: f64 = 32.0;

/// Number of entries per chunk.
const CHUNK: usize = 1 << 13;

/// Entries in chunks. Values are standardized ([`standardizing_map`]), so that `f32` keeps their differences.
pub(super) enum BiasEntries<'a> {
    /// All entries of a problem, which every pass converts again.
    Streamed(&'a Problem<'a>),
    /// A random sample, converted once.
    Sample {
        chunks: Vec<EntryChunk>,
        is_complete: bool,
    },
}

/// Returns the map of the tensor's values to values of mean 0 and a standard deviation near 1.
pub(super) fn standardizing_map(problem: &Problem<'_>) -> AffineMap {
    AffineMap {
        offset: problem.mean(),
        scale: nearest_power_of_two(problem.standard_deviation()),
    }
}

impl<'a> BiasEntries<'a> {
    /// Samples at most [`sample_size`] entries of a problem.
    pub(super) fn sample(
        problem: &Problem<'_>,
        seed: u64,
        pool: &ThreadPool<'_>,
    ) -> Result<BiasEntries<'a>> {
        let (tensor, maps, map) = (
            problem.tensor(),
            problem.row_maps(),
            standardizing_map(problem),
        );
        let fraction = sample_size(problem, ENTRIES_PER_ROW) / problem.count() as f64;
        let split = (fraction < 1.0).then(|| HoldoutSplit::new(0.0, fraction, seed));
        let is_selected = split.map(|split| move |entry: usize| split.is_training(entry));
        // Chunks of a sample have as many entries as those of all entries.
        let len = (CHUNK as f64 / fraction.min(1.0)).ceil() as usize;
        let read = |(): &mut (), c: usize| {
            let mut chunk = EntryChunk::default();
            let range = c * len..((c + 1) * len).min(tensor.len());
            let is_selected = is_selected.as_ref().map(|s| s as &dyn Fn(usize) -> bool);
            tensor.read_selected(&maps, range, map, is_selected, &mut chunk)?;
            Ok(chunk)
        };
        Ok(BiasEntries::Sample {
            chunks: pool.try_map(tensor.len().div_ceil(len), || Ok(()), read)?,
            is_complete: split.is_none(),
        })
    }

    /// Returns whether some entries of the problem are missing.
    pub(super) fn is_partial(&self) -> bool {
        matches!(
            self,
            BiasEntries::Sample {
                is_complete: false,
                ..
            }
        )
    }

    fn chunk_count(&self) -> usize {
        match self {
            BiasEntries::Streamed(problem) => problem.tensor().len().div_ceil(CHUNK),
            BiasEntries::Sample { chunks, .. } => chunks.len(),
        }
    }

    /// Returns a chunk. `buffer` holds it if it is read.
    fn chunk<'c>(&'c self, c: usize, buffer: &'c mut EntryChunk) -> Result<&'c EntryChunk> {
        match self {
            BiasEntries::Streamed(problem) => {
                let (tensor, maps) = (problem.tensor(), problem.row_maps());
                let range = c * CHUNK..((c + 1) * CHUNK).min(tensor.len());
                tensor.read_selected(&maps, range, standardizing_map(problem), None, buffer)?;
                Ok(buffer)
            }
            BiasEntries::Sample { chunks, .. } => Ok(&chunks[c]),
        }
    }
}

/// Passes over the entries.
pub(super) struct Passes<'a> {
    pub entries: &'a BiasEntries<'a>,
    pub pool: &'a ThreadPool<'a>,
    /// Number of passes completed.
    pub done: usize,
    /// Number of passes in all.
    pub count: usize,
}

impl Passes<'_> {
    /// Computes `count` pairs of sums over all entries. `add` adds the terms of the entries of a chunk; it has a buffer for
    /// one number per entry.
    pub(super) fn sums(
        &mut self,
        count: usize,
        add: impl Fn(&EntryChunk, &mut Vec<f64>, &mut [[f64; 2]]) + Sync,
    ) -> Result<Vec<[f64; 2]>> {
        let chunks = self.entries.chunk_count();
        let accumulators = accumulator_count(count);
        let (seen, stop) = (AtomicU64::new(0), self.pool.stop());
        let report = |monitor: &dyn Monitor| {
            let done = (self.done * chunks) as u64 + seen.load(Ordering::Relaxed);
            monitor.progress("fitting biases", done, (self.count * chunks) as u64);
        };
        let accumulate = |(entries, numbers): &mut (EntryChunk, Vec<f64>), first: usize| {
            let mut sums: Vec<[f64; 2]> = try_zeroed(count, "rows")?;
            for c in (first..chunks).step_by(accumulators) {
                if stop.requested() {
                    break;
                }
                add(self.entries.chunk(c, entries)?, numbers, &mut sums);
                seen.fetch_add(1, Ordering::Relaxed);
            }
            Ok(sums)
        };
        self.pool.check_cancelled()?;
        let partial =
            self.pool
                .map_with_report(accumulators, &report, Default::default, accumulate)?;
        let mut partial = partial.into_iter();
        let mut sums: Vec<[f64; 2]> = partial.next().unwrap_or_else(|| Ok(Vec::new()))?;
        for more in partial {
            let each = sums.iter_mut().zip(more?);
            each.for_each(|(sum, more)| (0..2).for_each(|i| sum[i] += more[i]));
        }
        self.done += 1;
        Ok(sums)
    }
}
