//! The full core, given all rows: least squares by conjugate gradients, or a draw by solving for a right
//! side with noise in it. A product with the matrix of the equations is one pass over the entries.

use std::ops::Range;

use super::normal_wishart::gamma;
use super::sweep::{Way, stream};
use crate::error::Result;
use crate::kernel::{Coefficients, ModeCsr, add_fiber, combine, spread};

use crate::linalg::{ConjugateGradient, Operator};
use crate::model::Model;
use crate::simd::Level;

use crate::kernel::CoreShape;

use crate::parallel::ThreadPool;
use crate::random::RandomStream;
use crate::simd::padded_len;

/// Accuracy of the core update: the next sweep starts from its result.
const CG: ConjugateGradient = ConjugateGradient {
    iterations: 20,
    tolerance: 1e-2,
};

/// The variance that the core's numbers have around their start before anything is known.
const VARIANCE: f64 = 0.01;

/// How the core is found.
pub(super) struct CoreRule<'a> {
    pub way: Way,
    /// The precision of the noise.
    pub precision: f64,
    pub number: u64,
    /// What a value here is multiplied with to be one of the data.
    pub by: f64,
    /// Modes by size.
    pub order: &'a [usize],
    pub level: Level,
}

/// The pieces that a pass over the entries of one mode's lists is made of, and that mode.
pub(super) struct CoreWork {
    mode: usize,
    pieces: Vec<Range<usize>>,
}

/// Row-major with the modes in another order, the last padded.
pub(super) fn permuted(shape: &CoreShape, core: &[f32], order: &[usize], by: f64) -> Vec<f32> {
    let dense = shape.dense_core(core);
    let mut strides = vec![1; order.len()];
    for n in (0..order.len() - 1).rev() {
        strides[n] = strides[n + 1] * shape.ranks[n + 1];
    }
    let last = shape.ranks[order[order.len() - 1]];
    let outer = dense.len() / last;
    let mut out = vec![0.0; outer * padded_len(last)];
    let scale = (1.0 / by) as f32;
    let mut index = vec![0; order.len()];
    for row in 0..outer {
        let from: usize = index.iter().zip(order).map(|(i, &m)| i * strides[m]).sum();
        let step = strides[order[order.len() - 1]];
        for k in 0..last {
            out[row * padded_len(last) + k] = dense[from + k * step] * scale;
        }
        for k in (0..order.len() - 1).rev() {
            index[k] += 1;
            if index[k] < shape.ranks[order[k]] {
                break;
            }
            index[k] = 0;
        }
    }
    out
}

/// The opposite: the model's core from one with the modes in this order.
fn unpermuted(shape: &CoreShape, core: &[f64], order: &[usize], by: f64) -> Vec<f32> {
    let ranks: Vec<usize> = order.iter().map(|&m| shape.ranks[m]).collect();
    let turned = CoreShape::new(shape.kind, &ranks);
    let scaled: Vec<f32> = core.iter().map(|&g| (g * by) as f32).collect();
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(k, &m)| back[m] = k);
    permuted(&turned, &scaled, &back, 1.0)
}

/// A core of ones where the two largest modes have the same number, and the others that number as far
/// as they have it; without padding.
pub(super) fn diagonal(shape: &CoreShape, by_size: &[usize]) -> Vec<f32> {
    let mut core = vec![0.0; shape.ranks.iter().product()];
    let large = &by_size[by_size.len() - 2..];
    let count = large.iter().map(|&m| shape.ranks[m]).max().unwrap_or(0);
    for j in 0..count {
        let place = shape.ranks.iter().fold(0, |at, &rank| at * rank + j % rank);
        core[place] = 1.0;
    }
    core
}

/// The rows of every mode, in the order of a pass.
struct Levels<'a> {
    rows: Vec<(&'a [f32], usize)>,
    biases: Vec<&'a [f32]>,
    /// That of the kernels.
    kernel: Level,
}

impl Levels<'_> {
    fn row(&self, level: usize, row: usize) -> &[f32] {
        let (rows, rank) = self.rows[level];
        &rows[row * padded_len(rank)..][..rank]
    }

    /// Floats of a core over the levels from `first` on.
    fn floats(&self, first: usize) -> usize {
        let last = self.rows.len() - 1;
        let ranks = self.rows[first..last].iter().map(|r| r.1);
        ranks.product::<usize>() * padded_len(self.rows[last].1)
    }
}

impl CoreWork {
    pub(super) fn new(lists: &ModeCsr, mode: usize) -> CoreWork {
        let length = lists.len().div_ceil(64).max(1 << 13);
        let starts = (0..lists.len()).step_by(length);
        CoreWork {
            mode,
            pieces: starts.map(|a| a..(a + length).min(lists.len())).collect(),
        }
    }

    /// Finds the core; `None` if `cancelled` said so.
    pub(super) fn find(
        &self,
        model: &mut Model,
        biases: &[Vec<f32>],
        lists: &ModeCsr,
        rule: &CoreRule<'_>,
        pool: &ThreadPool,
        cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<Option<()>> {
        let order: Vec<usize> = [self.mode]
            .into_iter()
            .chain(lists.other_modes().iter().copied())
            .collect();
        let shape = model.shape.clone();
        let start = permuted(&shape, &model.core, &order, rule.by);
        let levels = Levels {
            rows: order
                .iter()
                .map(|&m| (model.modes[m].factor.as_slice(), shape.ranks[m]))
                .collect(),
            biases: order.iter().map(|&m| &biases[m][..]).collect(),
            kernel: rule.level,
        };
        let squared: Vec<Vec<f32>> = levels
            .rows
            .iter()
            .map(|(rows, _)| rows.iter().map(|u| u * u).collect())
            .collect();
        let of_squares = Levels {
            rows: squared
                .iter()
                .zip(&levels.rows)
                .map(|(s, r)| (&s[..], r.1))
                .collect(),
            biases: levels.biases.clone(),
            kernel: rule.level,
        };
        // What the core is drawn to, and how strongly.
        let mut center = vec![0.0f64; start.len()];
        let ridge = match rule.way {
            Way::Best { ridge, .. } => ridge,
            Way::Draw { seed } => {
                let ones = shape.padded_core(&diagonal(&shape, rule.order));
                let ones = permuted(&shape, &ones, &order, 1.0);
                let off = center
                    .iter_mut()
                    .zip(ones)
                    .zip(&start)
                    .map(|((c, one), &g)| {
                        *c = f64::from(one);
                        (f64::from(g) - *c).powi(2)
                    });
                let off: f64 = off.sum();
                let half = 0.5 * shape.ranks.iter().product::<usize>() as f64;
                let mut s = RandomStream::new(&[seed, stream::CORE, rule.number]);
                gamma(&mut s, 1.5 * half) / (0.5 * (half * VARIANCE + off))
            }
        };
        let weight = rule.precision;
        let value = |entry: usize, row: usize, words: &[u32]| {
            let mut r = lists.value(entry);
            if let Some(bias) = levels.biases[0].get(row) {
                r -= bias;
            }
            for (biases, &word) in levels.biases[1..].iter().zip(words) {
                r -= biases.get(word as usize).copied().unwrap_or(0.0);
            }
            r
        };
        // The right side, with noise where the core is drawn.
        let pulls = |entry: usize, row: usize| {
            let weight = weight * f64::from(lists.weight(entry));
            let r = weight * f64::from(value(entry, row, lists.other_rows(entry)));
            match rule.way {
                Way::Best { .. } => r as f32,
                Way::Draw { seed } => {
                    let name = [seed, stream::CORE, rule.number, 1, entry as u64];
                    (r + weight.sqrt() * RandomStream::new(&name).standard_normal()) as f32
                }
            }
        };
        let weights = |entry: usize, _: usize| lists.weight(entry);
        let right = self.pass(&levels, &Take::Each(&pulls), lists, pool, cancelled)?;
        let ones = self.pass(&of_squares, &Take::Each(&weights), lists, pool, cancelled)?;
        let (Some(mut right), Some(ones)) = (right, ones) else {
            return Ok(None);
        };
        for (k, r) in right.iter_mut().enumerate() {
            *r += ridge * center[k];
            if let Way::Draw { seed } = rule.way {
                let name = [seed, stream::CORE, rule.number, 2, k as u64];
                *r += ridge.sqrt() * RandomStream::new(&name).standard_normal();
            }
        }
        let last = levels.rows[levels.rows.len() - 1].1;
        // Padding is no part of the core.
        let used = |k: usize| k % padded_len(last) < last;
        let mut times = |g: &[f64]| -> Result<Option<Vec<f64>>> {
            let core: Vec<f32> = g.iter().map(|&g| g as f32).collect();
            let product = self.pass(&levels, &Take::Value(&core), lists, pool, cancelled)?;
            Ok(product.map(|mut a| {
                for (k, a) in a.iter_mut().enumerate() {
                    *a = if used(k) {
                        weight * *a + ridge * g[k]
                    } else {
                        0.0
                    };
                }
                a
            }))
        };
        (0..right.len())
            .filter(|&k| !used(k))
            .for_each(|k| right[k] = 0.0);
        let scale: Vec<f64> = ones
            .iter()
            .map(|d| 1.0 / (weight * d + ridge).max(1e-30))
            .collect();
        let mut core: Vec<f64> = start.iter().map(|&g| f64::from(g)).collect();
        let found = match rule.way {
            Way::Best { nonneg: true, .. } => scaled_steps(&mut core, &right, &mut times)?,
            _ => CG.solve(&mut core, &right, &scale, &mut times)?,
        };
        if found.is_some() && core.iter().all(|g| (*g as f32).is_finite()) {
            let found = unpermuted(&shape, &core, &order, rule.by);
            model.core.copy_from_slice(&found);
        }
        Ok(found)
    }

    /// For all entries, the products of their rows times what is to be taken of each, added up.
    fn pass(
        &self,
        levels: &Levels<'_>,
        take: &Take<'_>,
        lists: &ModeCsr,
        pool: &ThreadPool,
        cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Vec<f64>>> {
        let done = pool.map(
            self.pieces.len(),
            cancelled,
            || (),
            |(), p| Pass::new(levels, take, lists).piece(self.pieces[p].clone()),
        )?;
        Ok(done.map(|done| {
            let mut total = vec![0.0; levels.floats(0)];
            for piece in done {
                total.iter_mut().zip(piece).for_each(|(t, x)| *t += x);
            }
            total
        }))
    }
}

/// What is taken of an entry.
enum Take<'a> {
    /// A number of the entry and its row.
    Each(&'a (dyn Fn(usize, usize) -> f32 + Sync)),
    /// The value that this core gives it, times its weight.
    Value(&'a [f32]),
}

/// So many runs of entries are added up before the sum goes to one of more digits.
const RUNS: usize = 256;

/// One piece of a pass. Contractions of the core, and sums of products, are kept for every level: neighbours share most of
/// their rows.
struct Pass<'a> {
    levels: &'a Levels<'a>,
    take: &'a Take<'a>,
    lists: &'a ModeCsr,
    /// The rows of all levels but the last that the following belong to.
    known: Vec<Option<u32>>,
    /// The core, contracted with the known rows up to each level.
    values: Vec<Vec<f32>>,
    /// What waits to be multiplied with the known row of each level.
    sums: Vec<Vec<f32>>,
    total: Vec<f64>,
    /// What is taken of each entry of a run.
    shares: Vec<f32>,
}

impl<'a> Pass<'a> {
    fn new(levels: &'a Levels<'a>, take: &'a Take<'a>, lists: &'a ModeCsr) -> Pass<'a> {
        let depth = levels.rows.len();
        let each = || (1..depth).map(|k| vec![0.0; levels.floats(k)]).collect();
        Pass {
            levels,
            take,
            lists,
            known: vec![None; depth - 1],
            values: each(),
            sums: each(),
            total: vec![0.0; levels.floats(0)],
            shares: Vec::new(),
        }
    }

    fn piece(mut self, entries: Range<usize>) -> Vec<f64> {
        let lists = self.lists;
        let (rows, _) = self.levels.rows[self.known.len()];
        let mut row = lists.row_of(entries.start);
        let (mut at, mut runs) = (entries.start, 0);
        while at < entries.end {
            while lists.row_entries(row).end <= at {
                row += 1;
            }
            // All entries that differ in their last row only.
            let shared = |entry: usize| &lists.other_rows(entry)[..self.known.len() - 1];
            let first = shared(at);
            let rest = at + 1..entries.end.min(lists.row_entries(row).end);
            let run = at..at + 1 + rest.take_while(|&e| shared(e).iter().eq(first)).count();
            if runs == RUNS {
                self.flush(0);
                runs = 0;
            }
            self.turn_to(row as u32, first);
            let share = match self.take {
                Take::Value(_) => Coefficients::ModelValue(&self.values[self.known.len() - 1]),
                Take::Each(take) => {
                    self.shares.clear();
                    self.shares.extend(run.clone().map(|e| take(e, row)));
                    Coefficients::Given(&self.shares)
                }
            };
            let sum = &mut self.sums[self.known.len() - 1];
            add_fiber(self.levels.kernel, lists, run.clone(), rows, share, sum);
            (at, runs) = (run.end, runs + 1);
        }
        self.flush(0);
        self.total
    }

    /// Makes these the known rows.
    fn turn_to(&mut self, row: u32, others: &[u32]) {
        let now = |k: usize| if k == 0 { row } else { others[k - 1] };
        let same = |&k: &usize| self.known[k] == Some(now(k));
        let same = (0..self.known.len()).take_while(same).count();
        self.flush(same);
        for k in same..self.known.len() {
            self.known[k] = Some(now(k));
            if let Take::Value(core) = self.take {
                let (before, here) = self.values.split_at_mut(k);
                let from = before.last().map_or(*core, |v| &v[..]);
                let u = self.levels.row(k, now(k) as usize);
                combine(self.levels.kernel, from, u, &mut here[0]);
            }
        }
    }

    /// Adds the sums that wait at the levels from `first` on to those before them, the last first.
    fn flush(&mut self, first: usize) {
        for k in (first..self.known.len()).rev() {
            let Some(row) = self.known[k] else {
                continue;
            };
            let u = self.levels.row(k, row as usize);
            let (before, after) = self.sums.split_at_mut(k);
            let from = &mut after[0];
            match before.last_mut() {
                Some(to) => spread(self.levels.kernel, from, u, to),
                None => {
                    for (to, &u) in self.total.chunks_exact_mut(from.len()).zip(u) {
                        let each = to.iter_mut().zip(&*from);
                        each.for_each(|(t, &f)| *t += f64::from(u) * f64::from(f));
                    }
                }
            }
            from.fill(0.0);
        }
    }
}

/// A few steps that keep every number at 0 or above: each multiplies with what is wanted over what is
/// there, which never makes the loss larger.
fn scaled_steps(g: &mut [f64], right: &[f64], times: &mut Operator<'_>) -> Result<Option<()>> {
    for _ in 0..4 {
        let Some(product) = times(g)? else {
            return Ok(None);
        };
        for (g, (r, p)) in g.iter_mut().zip(right.iter().zip(product)) {
            *g = if p > 0.0 { *g * (r.max(0.0) / p) } else { 0.0 };
        }
    }
    Ok(Some(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::CoreKind;

    #[test]
    fn modes_change_places_and_back() {
        let shape = CoreShape::new(CoreKind::Full, &[2, 3, 4]);
        let dense: Vec<f32> = (0..24).map(|k| k as f32).collect();
        let core = shape.padded_core(&dense);
        let turned = permuted(&shape, &core, &[2, 0, 1], 2.0);
        // Number (i, j, k) of the core is at (k, i, j).
        for (at, g) in dense.iter().enumerate() {
            let (i, j, k) = (at / 12, at / 4 % 3, at % 4);
            assert_eq!(turned[(k * 2 + i) * padded_len(3) + j], g / 2.0);
        }
        let back: Vec<f64> = turned.iter().map(|&g| f64::from(g)).collect();
        assert_eq!(unpermuted(&shape, &back, &[2, 0, 1], 2.0), core);
    }

    #[test]
    fn a_core_of_ones_joins_the_two_largest_modes() {
        let shape = CoreShape::new(CoreKind::Full, &[3, 2, 3]);
        let core = diagonal(&shape, &[1, 0, 2]);
        let ones: Vec<usize> = (0..18).filter(|&k| core[k] == 1.0).collect();
        assert_eq!(ones, [0, 6 + 3 + 1, 12 + 2]);
    }
}
