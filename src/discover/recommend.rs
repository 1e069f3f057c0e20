//! The rows of a mode that a model predicts the most for.

use super::layer::Layer;
use super::pass::{Directions, TILE, Table, Whole, best, in_blocks, ranked};
use super::seen::{Seen, SeenBy};
use super::top_k::Ranked;
use super::{check_mode, known};
use crate::error::{Error, Result};
use crate::kernel::{Method, TensorKernel};
use crate::predict::{normal_quantile, samples_for, spreader};
use crate::try_alloc::try_collect;

use crate::model::{Model, Predict};
use crate::progress::Monitor;
use crate::simd::Level;

/// In the index of a query: the mode has no row of its own there, and its mean row stands for it. The core being
/// multilinear, that is the mean of the predictions over all rows, by their entries.
pub const AVERAGE: u32 = u32::MAX;

/// What rows are ranked by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Measure {
    /// The prediction.
    Mean,
    /// A quantile of the value, above 0 and below 1, which a model of samples knows: a low one prefers what is sure.
    Quantile(f64),
}

/// How to recommend.
#[derive(Clone, Copy)]
pub struct Recommend<'a> {
    /// The mode whose rows are ranked, counted from 0.
    pub mode: usize,
    /// How many rows to give for each query, if there are that many.
    pub top: usize,
    /// What rows are ranked by.
    pub measure: Measure,
    /// What is left out for those who have seen it; queries have a row of the mode of these.
    pub seen: Option<&'a Seen>,
    /// The only rows that count. Those that the model does not know cannot be ranked.
    pub only: Option<&'a [u32]>,
    /// Rows that do not count.
    pub without: &'a [u32],
    /// 0 means all this process may use; results do not depend on the number.
    pub threads: usize,
}

impl Recommend<'_> {
    /// The `top` rows of `mode` by their predictions.
    pub fn new(mode: usize, top: usize) -> Self {
        Recommend {
            mode,
            top,
            measure: Measure::Mean,
            seen: None,
            only: None,
            without: &[],
            threads: 0,
        }
    }
}

/// Ranks the rows of a mode for each of `count` queries, and hands over the best ones query by query, in order.
/// `index` writes the index of a query: a row for each mode, or [`AVERAGE`]; that of the ranked mode does not matter.
/// Rows of the index must be known to the model, and only rows that it knows are ranked.
///
/// A score is what is predicted for the cell, bit by bit, not limited to the range of the training values. Of equal
/// scores the smaller row comes first. All rows are scored in single precision first; which of two rows whose
/// predictions differ by no more than its rounding is the last of the list is decided there.
pub fn recommend(
    model: &Model,
    (count, index): (usize, impl Fn(usize, &mut [u32]) + Sync),
    options: &Recommend<'_>,
    monitor: &dyn Monitor,
    take: impl FnMut(usize, &[Ranked]) -> Result<()>,
) -> Result<()> {
    check_mode(model, options.mode)?;
    let mut cell = vec![AVERAGE; model.order()];
    for q in 0..count {
        index(q, &mut cell);
        let nobody = |seen: &&Seen| cell.get(seen.by()).is_none_or(|&i| i == AVERAGE);
        if let Some(seen) = options.seen.filter(nobody) {
            return Err(Error::argument(format!(
                "what was seen is left out by rows of mode {}, but a query has no row of that mode",
                seen.by() + 1
            )));
        }
        for (n, &i) in cell.iter().enumerate() {
            if n != options.mode && i != AVERAGE {
                known(model, n, i)?;
            }
        }
    }
    recommend_anyone(model, (count, index), options, monitor, take)
}

/// The same, but rows that the model does not know have the mean row of their mode.
pub(super) fn recommend_anyone(
    model: &Model,
    (count, index): (usize, impl Fn(usize, &mut [u32]) + Sync),
    options: &Recommend<'_>,
    monitor: &dyn Monitor,
    take: impl FnMut(usize, &[Ranked]) -> Result<()>,
) -> Result<()> {
    let (mode, order) = (options.mode, model.order());
    check_mode(model, mode)?;
    if let Some(seen) = options.seen
        && (seen.mode() != mode || seen.by() >= order)
    {
        return Err(Error::argument(format!(
            "rows of mode {} are ranked, but what was seen is of mode {}",
            mode + 1,
            seen.mode() + 1
        )));
    }
    // On this thread, before there are others.
    let level = Level::choose(None)?;
    let mut scores = Vec::new();
    let mut layers = Layer::all(model, true);
    let whole = match options.measure {
        Measure::Mean => Whole::Sum,
        Measure::Quantile(q) => {
            let samples = samples_for(model, &[q])?;
            scores.push(normal_quantile(q));
            layers.extend(Layer::all(model, false));
            let noise: f64 = samples.list().map(|s| s.noise * s.noise).sum();
            Whole::Quantile {
                score: scores[0],
                variance: noise / samples.len() as f64,
            }
        }
    };
    let table = Biased {
        model,
        mode,
        layers,
    };
    let (rows, indices) = candidates(model, options)?;
    let most = options.top.min(rows.len());
    let make = |range: std::ops::Range<usize>, stop: &dyn Fn() -> bool| {
        let mut cells = vec![AVERAGE; order * range.len()];
        let mut directions = Directions::new(&table, range.len());
        let mut contraction = Contraction::new(&table, level);
        for (q, cell) in cells.chunks_exact_mut(order).enumerate() {
            index(range.start + q, cell);
            cell[mode] = AVERAGE;
            contraction.place(cell, q, &mut directions);
        }
        let seen = |q: usize| {
            options.seen.map_or(SeenBy::default(), |seen| {
                seen.of(cells[q * order + seen.by()])
            })
        };
        let seen: Vec<SeenBy<'_>> = (0..range.len()).map(seen).collect();
        let skip = |q: usize, place: usize| seen[q].contains(indices[place]);
        let tops = best(
            (&table, &rows),
            &directions,
            (whole, level),
            most,
            skip,
            stop,
        )?;
        let mut mean = model.predictor()?;
        let mut spread = match (options.measure, model.samples()) {
            (Measure::Quantile(_), Some(samples)) => {
                let anything = (f64::NEG_INFINITY, f64::INFINITY);
                Some(spreader(model, samples, &scores, anything)?)
            }
            _ => None,
        };
        let mut lists = Vec::new();
        for (cell, top) in cells.chunks_exact_mut(order).zip(tops) {
            if stop() {
                return Err(Error::Cancelled);
            }
            lists.push(ranked(top, |place| {
                cell[mode] = indices[place];
                let score = match &mut spread {
                    Some(spread) => spread(cell).quantiles[0],
                    None => mean(cell),
                };
                Ranked {
                    index: cell[mode],
                    score,
                }
            }));
        }
        Ok(lists)
    };
    in_blocks(
        (count, most),
        options.threads,
        ("recommending", monitor),
        make,
        take,
    )
}

/// The compact rows that count, ascending, and their indices.
fn candidates(model: &Model, options: &Recommend<'_>) -> Result<(Vec<u32>, Vec<u32>)> {
    let map = &model.modes()[options.mode].rows;
    let mut counts: Vec<bool> = try_collect(
        map.len(),
        std::iter::repeat_n(options.only.is_none(), map.len()),
        "rows",
    )?;
    let lists = [
        (options.only.unwrap_or(&[]), true),
        (options.without, false),
    ];
    for (list, whether) in lists {
        for row in list.iter().filter_map(|&i| map.compact(i)) {
            counts[row as usize] = whether;
        }
    }
    let chosen = (0..)
        .zip(map.indices())
        .filter(|&(row, _)| counts[row as usize]);
    Ok(chosen.unzip())
}

/// The rows of a mode, each with its bias behind it.
struct Biased<'a> {
    model: &'a Model,
    mode: usize,
    layers: Vec<Layer<'a>>,
}

impl Table for Biased<'_> {
    fn layers(&self) -> usize {
        self.layers.len()
    }

    fn width(&self) -> usize {
        self.model.shape().ranks[self.mode] + 1
    }

    fn fill(&self, layer: usize, rows: &[u32], slices: &mut [f32]) {
        let (layer, rank) = (&self.layers[layer], self.width() - 1);
        let mut numbers = vec![0.0; rank];
        for (i, &row) in rows.iter().enumerate() {
            layer.read(self.mode, row as usize, &mut numbers);
            for (j, &x) in numbers.iter().enumerate() {
                slices[j * TILE + i] = x;
            }
            slices[rank * TILE + i] = layer.bias(self.mode, row as usize) as f32;
        }
    }
}

/// Finds the directions of queries, on one thread: the core contracted with the rows of all modes but the ranked one,
/// which is the slope of the prediction by the row of that.
struct Contraction<'a> {
    table: &'a Biased<'a>,
    kernel: TensorKernel,
    rows: Vec<f32>,
    slopes: Vec<f32>,
}

impl<'a> Contraction<'a> {
    fn new(table: &'a Biased<'a>, level: Level) -> Contraction<'a> {
        let shape = table.model.shape();
        Contraction {
            table,
            kernel: TensorKernel::new(shape, Method::Shared(level)),
            // The row of the ranked mode stays 0: its own slope does not depend on it.
            rows: vec![0.0; shape.rows_len()],
            slopes: vec![0.0; shape.rows_len()],
        }
    }

    /// Writes the directions of a query in all layers.
    fn place(&mut self, cell: &[u32], query: usize, to: &mut Directions) {
        let (model, mode) = (self.table.model, self.table.mode);
        let shape = model.shape();
        for (l, layer) in self.table.layers.iter().enumerate() {
            let (direction, base) = to.of(l, query);
            *base = layer.mean();
            for (n, &i) in cell.iter().enumerate().filter(|&(n, _)| n != mode) {
                let (row, start) = (model.row_of(n, i) as usize, shape.row(n).start);
                layer.read(n, row, &mut self.rows[start..start + shape.ranks[n]]);
                *base += layer.bias(n, row);
            }
            self.kernel
                .slopes(layer.core(), &self.rows, &mut self.slopes);
            let (rank, start) = (shape.ranks[mode], shape.row(mode).start);
            direction[..rank].copy_from_slice(&self.slopes[start..start + rank]);
            direction[rank] = 1.0;
        }
    }
}
