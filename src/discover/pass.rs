//! One pass over many rows for many queries at once.
//!
//! A query is a direction in the space of rows, and the score of a row is their product. Rows are turned into slices,
//! number by number, a tile of them at a time that stays in the first cache; the scores of a tile are then a sum of
//! slices ([`combine`]), without a sum across a vector for any row. Turning costs as much as a query or two, so that
//! queries come in blocks. With samples there is a layer for each, with directions of its own.

use std::ops::Range;

use super::top_k::{Ranked, Top, sort};
use crate::error::{Error, Result};
use crate::kernel::combine;

use crate::parallel::{available_threads, run_ordered};
use crate::progress::{Monitor, report_progress};
use crate::simd::AlignedVec;
use crate::simd::Level;

/// Rows of a tile: with 13 numbers each, half of the first cache.
pub(super) const TILE: usize = 512;

/// The most queries of a block, and the most rows that their lists have together, if a list of one has not.
const BLOCK: usize = 256;
const LISTED: usize = 1 << 20;

/// Rows to be scored.
pub(super) trait Table: Sync {
    /// How many layers there are: 1, or some for each sample.
    fn layers(&self) -> usize;

    /// The numbers of a row.
    fn width(&self) -> usize;

    /// Writes number `j` of row `i` of these to `slices[j * TILE + i]`.
    fn fill(&self, layer: usize, rows: &[u32], slices: &mut [f32]);
}

/// Queries of a block, as directions.
pub(super) struct Directions {
    width: usize,
    queries: usize,
    /// By layer, and within one by query.
    numbers: Vec<f32>,
    /// What the products of a layer are raised by, in the same order.
    pub bases: Vec<f64>,
}

impl Directions {
    pub(super) fn new(table: &impl Table, queries: usize) -> Directions {
        let count = table.layers() * queries;
        Directions {
            width: table.width(),
            queries,
            numbers: vec![0.0; count * table.width()],
            bases: vec![0.0; count],
        }
    }

    /// The direction of a query and its base.
    pub(super) fn of(&mut self, layer: usize, query: usize) -> (&mut [f32], &mut f64) {
        let at = layer * self.queries + query;
        (
            &mut self.numbers[at * self.width..(at + 1) * self.width],
            &mut self.bases[at],
        )
    }
}

/// What becomes of the products of a row in all layers.
#[derive(Clone, Copy)]
pub(super) enum Whole {
    /// Their sum, without bases, which are the same for all rows.
    Sum,
    /// A quantile of what samples predict: the mean is that of the first half of the layers, the deviation around it
    /// that of the second half, and that of the noise (`variance`); `score` is how many deviations are added.
    Quantile { score: f64, variance: f64 },
}

/// The `most` best of `rows` for each query, as places in `rows` and in no order. Places that `skip` tells for a
/// query do not count.
pub(super) fn best(
    (table, rows): (&impl Table, &[u32]),
    directions: &Directions,
    (whole, level): (Whole, Level),
    most: usize,
    skip: impl Fn(usize, usize) -> bool,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<Top>> {
    let queries = directions.queries;
    let layers = table.layers();
    let mut tops: Vec<Top> = (0..queries).map(|_| Top::new(most)).collect();
    let mut slices = AlignedVec::zeroed(table.width() * TILE);
    let mut product = AlignedVec::zeroed(TILE);
    // One tile of scores for each query, and for quantiles the sums and squares of what they are made of.
    let mut scores = AlignedVec::zeroed(queries * TILE);
    let sums = match whole {
        Whole::Sum => 0,
        Whole::Quantile { .. } => queries * TILE,
    };
    let mut sums = vec![[0.0f64; 3]; sums];
    for (tile, rows) in rows.chunks(TILE).enumerate() {
        if stop() {
            return Err(Error::Cancelled);
        }
        sums.fill([0.0; 3]);
        for layer in 0..layers {
            table.fill(layer, rows, &mut slices);
            for q in 0..queries {
                let at = layer * queries + q;
                let u = &directions.numbers[at * directions.width..][..directions.width];
                let scores = &mut scores[q * TILE..(q + 1) * TILE];
                match whole {
                    Whole::Sum if layer == 0 => combine(level, &slices, u, scores),
                    Whole::Sum => {
                        combine(level, &slices, u, &mut product);
                        let add = |(s, p): (&mut f32, &f32)| *s += p;
                        scores.iter_mut().zip(product.iter()).for_each(add);
                    }
                    Whole::Quantile { .. } => {
                        combine(level, &slices, u, &mut product);
                        // Around the base of the first, so that squares are small.
                        let base = directions.bases[at] - directions.bases[q];
                        let sums = &mut sums[q * TILE..(q + 1) * TILE];
                        let smooth = layer < layers / 2;
                        for (sums, &p) in sums.iter_mut().zip(product.iter()) {
                            let x = base + f64::from(p);
                            match smooth {
                                true => sums[0] += x,
                                false => (sums[1], sums[2]) = (sums[1] + x, sums[2] + x * x),
                            }
                        }
                    }
                }
            }
        }
        if let Whole::Quantile { score, variance } = whole {
            let count = (layers / 2) as f64;
            for (s, [smooth, sum, squares]) in scores.iter_mut().zip(&sums) {
                let own = (squares - sum * sum / count).max(0.0) / (count - 1.0).max(1.0);
                *s = (smooth / count + score * (own + variance).sqrt()) as f32;
            }
        }
        for (q, top) in tops.iter_mut().enumerate() {
            let scores = &scores[q * TILE..][..rows.len()];
            top.offer(scores, tile * TILE, |place| skip(q, place));
        }
    }
    Ok(tops)
}

/// The places kept as rows with their exact scores, the best first.
pub(super) fn ranked(top: Top, exact: impl FnMut(usize) -> Ranked) -> Vec<Ranked> {
    let mut list: Vec<Ranked> = top.places().map(exact).collect();
    sort(&mut list);
    list
}

/// Answers `count` queries with lists of at most `most` rows on `threads` threads, 0 meaning all this process may use.
/// `make` answers a block; `take` gets the answers one by one and in order, on the calling thread.
pub(super) fn in_blocks(
    (count, most): (usize, usize),
    threads: usize,
    (phase, monitor): (&str, &dyn Monitor),
    make: impl Fn(Range<usize>, &dyn Fn() -> bool) -> Result<Vec<Vec<Ranked>>> + Sync,
    mut take: impl FnMut(usize, &[Ranked]) -> Result<()>,
) -> Result<()> {
    // Few queries are still shared out; threads have no say in how.
    let block = (count / 16)
        .clamp(8, BLOCK)
        .min(LISTED / most.max(1))
        .max(1);
    let range = |b: u64| {
        let start = b as usize * block;
        start..(start + block).min(count)
    };
    let mut use_up = |b, made: Result<Vec<Vec<Ranked>>>| {
        let range = range(b);
        report_progress(monitor, phase, range.end as u64, count as u64)?;
        let mut made = range.zip(made?);
        made.try_for_each(|(i, list)| take(i, &list))
    };
    let threads = match threads {
        0 => available_threads(),
        t => t,
    };
    let blocks = count.div_ceil(block) as u64;
    if threads == 1 || blocks == 1 {
        let cancelled = || monitor.cancelled();
        return (0..blocks).try_for_each(|b| use_up(b, make(range(b), &cancelled)));
    }
    run_ordered(
        blocks,
        threads,
        monitor,
        |b, stop| make(range(b), &|| stop.requested()),
        use_up,
    )
}
