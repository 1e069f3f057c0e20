//! Rows that are like others.
//!
//! Numbers of rows cannot be compared as they are: a core may stretch or turn any of them, and rows and core of the
//! same model can be written in many ways. What a row means is what it predicts, and two rows are as alike as their
//! predictions, without biases, over all cells: the cosine of u and v is that in the metric M, u M v^T over the roots
//! of u M u^T and v M v^T. With the core unfolded along the mode, M = G (A_2 (x) ... (x) A_N) G^T, where A_n is the
//! mean of w^T w over the rows w of another mode, by their entries. However the model is written, that is the same.
//! With samples the products of all of them are added up, so that what is not sure is less alike.

use super::layer::Layer;
use super::metric::metric;
use super::pass::{Directions, TILE, Table, Whole, best, in_blocks, ranked};
use super::top_k::Ranked;
use super::{check_mode, known};
use crate::error::{Error, Result};
use crate::model::Model;
use crate::progress::Monitor;
use crate::simd::Level;
use crate::try_alloc::try_zeroed;

/// What to compare.
#[derive(Clone, Copy)]
pub struct Similar {
    /// The mode whose rows are compared, counted from 0.
    pub mode: usize,
    /// How many rows to give for each, if there are that many.
    pub top: usize,
    /// 0 means all this process may use; results do not depend on the number.
    pub threads: usize,
}

/// For each of `rows`, the rows of the same mode whose predictions point the same way most: their cosines are the
/// scores, the largest first. Rows must be known to the model. Rows without tensor entries are never given, nor is a
/// row as its own neighbour; a row that predicts nothing but 0 is like no other.
pub fn similar(
    model: &Model,
    rows: &[u32],
    options: &Similar,
    monitor: &dyn Monitor,
    take: impl FnMut(usize, &[Ranked]) -> Result<()>,
) -> Result<()> {
    let mode = options.mode;
    check_mode(model, mode)?;
    // On this thread, before there are others.
    let level = Level::choose(None)?;
    let known = |&index: &u32| known(model, mode, index);
    let asked = rows.iter().map(known).collect::<Result<Vec<u32>>>()?;
    let scaled = Scaled::new(model, mode, monitor)?;
    let counts = &model.modes()[mode].counts;
    let used =
        |&(row, _): &(u32, u32)| counts[row as usize] > 0 && scaled.norms[row as usize] > 0.0;
    let all = (0..).zip(model.modes()[mode].rows.indices());
    let (rows, indices): (Vec<u32>, Vec<u32>) = all.filter(used).unzip();
    let most = options.top.min(rows.len());
    let make = |range: std::ops::Range<usize>, stop: &dyn Fn() -> bool| {
        let mut directions = Directions::new(&scaled, range.len());
        let asked = &asked[range];
        let mut out = vec![0.0; scaled.width()];
        for (q, &row) in asked.iter().enumerate() {
            for layer in 0..scaled.layers() {
                scaled.direction(layer, row as usize, &mut out);
                let (to, _) = directions.of(layer, q);
                to.iter_mut().zip(&out).for_each(|(t, &x)| *t = x as f32);
            }
        }
        // A row without a norm has no direction, and is like none.
        let skip = |q: usize, place: usize| {
            rows[place] == asked[q] || scaled.norms[asked[q] as usize] == 0.0
        };
        let whole = (Whole::Sum, level);
        let tops = best((&scaled, &rows), &directions, whole, most, skip, stop)?;
        let exact = |&row: &u32, top| {
            ranked(top, |place| Ranked {
                index: indices[place],
                score: scaled.cosine(row as usize, rows[place] as usize),
            })
        };
        if stop() {
            return Err(Error::Cancelled);
        }
        Ok(asked
            .iter()
            .zip(tops)
            .map(|(row, top)| exact(row, top))
            .collect())
    };
    in_blocks(
        (asked.len(), most),
        options.threads,
        ("comparing", monitor),
        make,
        take,
    )
}

/// The rows of a mode, each divided by its norm in the metric.
struct Scaled<'a> {
    mode: usize,
    rank: usize,
    layers: Vec<Layer<'a>>,
    /// The metric of each layer, row-major.
    metrics: Vec<Vec<f64>>,
    /// The norm of each compact row, over all layers; 0 if it has none.
    norms: Vec<f64>,
}

impl<'a> Scaled<'a> {
    fn new(model: &'a Model, mode: usize, monitor: &dyn Monitor) -> Result<Scaled<'a>> {
        let layers = Layer::all(model, false);
        let rank = model.shape().ranks[mode];
        let count = model.modes()[mode].rows.len();
        let mut norms: Vec<f64> = try_zeroed(count, "rows")?;
        let mut metrics = Vec::new();
        let (mut row, mut turned) = (vec![0.0f32; rank], vec![0.0f64; rank]);
        for layer in &layers {
            if monitor.cancelled() {
                return Err(Error::Cancelled);
            }
            let metric = metric(model, layer, mode, &[])?;
            for (i, norm) in norms.iter_mut().enumerate() {
                layer.read(mode, i, &mut row);
                times(&metric, &row, &mut turned);
                *norm += product(&turned, &row);
            }
            metrics.push(metric);
        }
        for norm in &mut norms {
            *norm = if *norm > f64::MIN_POSITIVE && norm.is_finite() {
                norm.sqrt()
            } else {
                0.0
            };
        }
        Ok(Scaled {
            mode,
            rank,
            layers,
            metrics,
            norms,
        })
    }

    /// A row times the metric, over its norm.
    fn direction(&self, layer: usize, row: usize, out: &mut [f64]) {
        let mut numbers = vec![0.0; self.rank];
        self.layers[layer].read(self.mode, row, &mut numbers);
        times(&self.metrics[layer], &numbers, out);
        let norm = self.norms[row];
        out.iter_mut()
            .for_each(|x| *x = if norm > 0.0 { *x / norm } else { 0.0 });
    }

    fn cosine(&self, a: usize, b: usize) -> f64 {
        let (mut direction, mut row) = (vec![0.0; self.rank], vec![0.0; self.rank]);
        let mut sum = 0.0;
        for (l, layer) in self.layers.iter().enumerate() {
            self.direction(l, a, &mut direction);
            layer.read(self.mode, b, &mut row);
            sum += product(&direction, &row);
        }
        (sum / self.norms[b]).clamp(-1.0, 1.0)
    }
}

impl Table for Scaled<'_> {
    fn layers(&self) -> usize {
        self.layers.len()
    }

    fn width(&self) -> usize {
        self.rank
    }

    fn fill(&self, layer: usize, rows: &[u32], slices: &mut [f32]) {
        let mut numbers = vec![0.0; self.rank];
        for (i, &row) in rows.iter().enumerate() {
            self.layers[layer].read(self.mode, row as usize, &mut numbers);
            let norm = self.norms[row as usize];
            for (j, &x) in numbers.iter().enumerate() {
                slices[j * TILE + i] = (f64::from(x) / norm) as f32;
            }
        }
    }
}

fn times(metric: &[f64], row: &[f32], out: &mut [f64]) {
    for (o, line) in out.iter_mut().zip(metric.chunks_exact(row.len())) {
        *o = product(line, row);
    }
}

fn product(a: &[f64], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(x, &y)| x * f64::from(y)).sum()
}
