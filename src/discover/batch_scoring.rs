//! Scores of many candidate rows for many queries at once.
//!
//! A query is a vector in the space of rows, and the score of a row is their inner product:
//!
//! ```text
//! for each block of queries                              (parallel)
//!     for each tile of 512 candidate rows
//!         transpose the tile, so that value j of all its rows is contiguous
//!         for each query q:  scores[q] = sum_j q[j] * tile[j]       (`weighted_sum`)
//!         offer the scores of the tile to the top-k heap of each query
//! ```
//!
//! The transposed tile stays in the L1 cache, and no score needs a horizontal sum of a vector. The transposition costs
//! as much as one or two queries, which is why queries are processed in blocks. A model with posterior samples has one
//! parameter set per sample, and a query then has one vector per parameter set.

use std::ops::Range;

use super::top_k::{RankedRow, TopK, sort_best_first};
use crate::error::{Error, Result};
use crate::kernel::weighted_sum;
use crate::model::{PosteriorSamples, ProbitLink};
use crate::parallel::{run_ordered, thread_count};
use crate::progress::{Monitor, report_progress};
use crate::simd::AlignedVec;
use crate::simd::Level;

/// Candidate rows per tile. With 13 values per row a tile takes half of a 48 KiB L1 cache.
pub(super) const TILE: usize = 512;

/// The largest number of queries per block.
const MAX_BLOCK_QUERIES: usize = 256;

/// The largest number of rows that the result lists of a block hold together. A block of one query may exceed it.
const MAX_BLOCK_ROWS: usize = 1 << 20;

/// The candidate rows of a query, in one or several parameter sets.
pub(super) trait CandidateTable: Sync {
    /// The number of parameter sets: 1, or one or more per posterior sample.
    fn parameter_sets(&self) -> usize;

    /// The number of values of a row.
    fn width(&self) -> usize;

    /// Writes value `j` of `rows[i]` to `tile[j * TILE + i]`.
    fn transpose(&self, parameter_set: usize, rows: &[u32], tile: &mut [f32]);
}

/// The query vectors of a block.
pub(super) struct QueryVectors {
    width: usize,
    queries: usize,
    /// Ordered by parameter set, then by query.
    values: Vec<f32>,
    /// A constant added to all scores of a query, in the same order.
    offsets: Vec<f64>,
    /// For each query, the factor of the noise variance of its own rows.
    noise_factors: Vec<f64>,
}

impl QueryVectors {
    pub(super) fn new(table: &impl CandidateTable, queries: usize) -> QueryVectors {
        let count = table.parameter_sets() * queries;
        QueryVectors {
            width: table.width(),
            queries,
            values: vec![0.0; count * table.width()],
            offsets: vec![0.0; count],
            noise_factors: vec![1.0; queries],
        }
    }

    /// Sets the factor of the noise variance of the rows of a query.
    pub(super) fn set_noise_factor(&mut self, query: usize, factor: f64) {
        self.noise_factors[query] = factor;
    }

    /// Returns the vector of a query and its offset.
    pub(super) fn get_mut(&mut self, parameter_set: usize, query: usize) -> (&mut [f32], &mut f64) {
        let at = parameter_set * self.queries + query;
        (
            &mut self.values[at * self.width..(at + 1) * self.width],
            &mut self.offsets[at],
        )
    }
}

/// How the inner products of a row in all parameter sets become its score.
#[derive(Clone, Copy)]
pub(super) enum ScoreRule<'a> {
    /// Their sum. Offsets are left out, since they are the same for all rows.
    Sum,
    /// The probability of the high one of two values. The parameter sets are those of a quantile.
    Probability(ProbitLink),
    /// A quantile of the predictive distribution: mean + `z` * standard deviation.
    ///
    /// The first half of the parameter sets gives the mean, the second half the variance of the samples, to which that of the
    /// noise is added.
    Quantile { z: f64, noise: CandidateNoise<'a> },
}

/// The variance of the noise of candidate rows.
#[derive(Clone, Copy)]
pub(super) struct CandidateNoise<'a> {
    pub samples: &'a PosteriorSamples,
    /// The mode of the candidates.
    pub mode: usize,
    /// Mean variance of the noise of all samples.
    pub variance: f64,
}

impl CandidateNoise<'_> {
    /// Returns the factor of the variance for a candidate row with this mean prediction. Factors of the query's rows are not
    /// included.
    fn factor(&self, row: u32, mean: f64) -> f64 {
        let of_row = self.samples.noise_factors.of_row(self.mode, row);
        of_row * self.samples.level_noise_factor(mean)
    }
}

/// Running sums of the predictions of a row over the posterior samples.
#[derive(Clone, Copy, Default)]
struct PredictionSums {
    /// Over the first half of the parameter sets.
    smoothed: f64,
    /// Over the second half.
    sampled: f64,
    sampled_squares: f64,
}

impl PredictionSums {
    /// Returns the mean and the variance of the predictions of `count` samples.
    fn moments(&self, count: usize) -> (f64, f64) {
        let count = count as f64;
        let squares = self.sampled_squares - self.sampled * self.sampled / count;
        let variance = squares.max(0.0) / (count - 1.0).max(1.0);
        (self.smoothed / count, variance)
    }
}

/// Finds the best candidate rows of a block of queries.
pub(super) struct TopKScorer<'a, T> {
    pub table: &'a T,
    /// The compact rows of the candidates.
    pub rows: &'a [u32],
    pub rule: ScoreRule<'a>,
    pub level: Level,
    /// The number of candidates to keep for each query.
    pub k: usize,
}

impl<T: CandidateTable> TopKScorer<'_, T> {
    /// Returns the `k` best candidates of each query, as positions in `rows`.
    ///
    /// Candidates with `is_excluded(query, position)` are left out. Scores have single precision.
    pub(super) fn top_k(
        &self,
        vectors: &QueryVectors,
        is_excluded: impl Fn(usize, usize) -> bool,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Vec<TopK>> {
        let (table, level) = (self.table, self.level);
        let queries = vectors.queries;
        let parameter_sets = table.parameter_sets();
        let mut tops: Vec<TopK> = (0..queries).map(|_| TopK::new(self.k)).collect();
        let mut tile = AlignedVec::zeroed(table.width() * TILE);
        let mut product = AlignedVec::zeroed(TILE);
        let mut scores = AlignedVec::zeroed(queries * TILE);
        let sums = match self.rule {
            ScoreRule::Sum => 0,
            ScoreRule::Probability(_) | ScoreRule::Quantile { .. } => queries * TILE,
        };
        let mut sums = vec![PredictionSums::default(); sums];
        for (tile_number, rows) in self.rows.chunks(TILE).enumerate() {
            if is_cancelled() {
                return Err(Error::Cancelled);
            }
            sums.fill(PredictionSums::default());
            for set in 0..parameter_sets {
                table.transpose(set, rows, &mut tile);
                for q in 0..queries {
                    let at = set * queries + q;
                    let vector = &vectors.values[at * vectors.width..][..vectors.width];
                    let scores = &mut scores[q * TILE..(q + 1) * TILE];
                    match self.rule {
                        ScoreRule::Sum if set == 0 => weighted_sum(level, &tile, vector, scores),
                        ScoreRule::Sum => {
                            weighted_sum(level, &tile, vector, &mut product);
                            let add = |(s, p): (&mut f32, &f32)| *s += p;
                            scores.iter_mut().zip(product.iter()).for_each(add);
                        }
                        ScoreRule::Probability(_) | ScoreRule::Quantile { .. } => {
                            weighted_sum(level, &tile, vector, &mut product);
                            // Relative to the first offset, so that the squares are small.
                            let offset = vectors.offsets[at] - vectors.offsets[q];
                            let sums = &mut sums[q * TILE..(q + 1) * TILE];
                            let is_smoothed = set < parameter_sets / 2;
                            for (sums, &p) in sums.iter_mut().zip(product.iter()) {
                                let x = offset + f64::from(p);
                                if is_smoothed {
                                    sums.smoothed += x;
                                } else {
                                    sums.sampled += x;
                                    sums.sampled_squares += x * x;
                                }
                            }
                        }
                    }
                }
            }
            if !sums.is_empty() {
                let sums = scores.chunks_exact_mut(TILE).zip(sums.chunks_exact(TILE));
                for (q, (scores, sums)) in sums.enumerate() {
                    let offset = vectors.offsets[q];
                    for ((score, s), &row) in scores.iter_mut().zip(sums).zip(rows) {
                        let (mean, variance) = s.moments(parameter_sets / 2);
                        *score = match self.rule {
                            ScoreRule::Sum => continue,
                            ScoreRule::Probability(link) => link.score(offset + mean, variance),
                            ScoreRule::Quantile { z, noise } => {
                                let factor = noise.factor(row, offset + mean);
                                let factor = vectors.noise_factors[q] * factor;
                                mean + z * (factor * (variance + noise.variance)).sqrt()
                            }
                        } as f32;
                    }
                }
            }
            for (q, top) in tops.iter_mut().enumerate() {
                let scores = &scores[q * TILE..][..rows.len()];
                top.offer(scores, tile_number * TILE, |position| {
                    is_excluded(q, position)
                });
            }
        }
        Ok(tops)
    }
}

/// Computes the exact scores of the kept positions and sorts them, the best first.
pub(super) fn rescore(top: TopK, exact: impl FnMut(usize) -> RankedRow) -> Vec<RankedRow> {
    let mut list: Vec<RankedRow> = top.positions().map(exact).collect();
    sort_best_first(&mut list);
    list
}

/// A number of queries to be answered in parallel.
pub(super) struct QueryRun<'a> {
    /// The number of queries.
    pub count: usize,
    /// The largest number of rows in the list of a query.
    pub list_len: usize,
    /// The number of threads; 0 means all that this process may use.
    pub threads: usize,
    /// The name of the work in progress reports.
    pub phase: &'a str,
    pub monitor: &'a dyn Monitor,
}

impl QueryRun<'_> {
    /// Answers all queries in blocks. `answer` answers a block. `take` receives the list of each query in order, on the
    /// calling thread.
    ///
    /// The size of a block does not depend on the number of threads.
    pub(super) fn answer_in_blocks(
        &self,
        answer: impl Fn(Range<usize>, &dyn Fn() -> bool) -> Result<Vec<Vec<RankedRow>>> + Sync,
        mut take: impl FnMut(usize, &[RankedRow]) -> Result<()>,
    ) -> Result<()> {
        let QueryRun { count, monitor, .. } = *self;
        // Sixteen blocks or more, so that few queries still occupy several threads.
        let block = (count / 16)
            .clamp(8, MAX_BLOCK_QUERIES)
            .min(MAX_BLOCK_ROWS / self.list_len.max(1))
            .max(1);
        let range = |b: u64| {
            let start = b as usize * block;
            start..(start + block).min(count)
        };
        let mut consume = |b, lists: Result<Vec<Vec<RankedRow>>>| {
            let range = range(b);
            report_progress(monitor, self.phase, range.end as u64, count as u64)?;
            let mut lists = range.zip(lists?);
            lists.try_for_each(|(i, list)| take(i, &list))
        };
        let threads = thread_count(self.threads)?;
        let blocks = count.div_ceil(block) as u64;
        if threads == 1 || blocks == 1 {
            let is_cancelled = || monitor.cancelled();
            return (0..blocks).try_for_each(|b| consume(b, answer(range(b), &is_cancelled)));
        }
        run_ordered(
            blocks,
            threads,
            monitor,
            |b, stop| answer(range(b), &|| stop.requested()),
            consume,
        )
    }
}
