//! Damped least squares for the bias model, one mode after the other.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::bias_update::groups;
use crate::error::{Error, Result};
use crate::model::BiasModel;
use crate::options::DEFAULT_LAMBDA_BIAS;
use crate::parallel::ThreadPool;
use crate::problem::{EntryChunk, Problem};
use crate::progress::{Monitor, report_progress};
use crate::try_alloc::try_zeroed;

/// How [`fit_biases`] works.
#[derive(Debug, Clone)]
pub struct BiasOptions {
    /// Acts like this many more entries of residual 0 in every row: for each mode, or one number for all. Empty: the
    /// noise over what the rows of each mode differ by, in variances.
    pub damping: Vec<f64>,
    /// How often all modes are solved in turn.
    pub sweeps: usize,
    /// The mean; `None` is that of the values.
    pub mean: Option<f64>,
}

impl Default for BiasOptions {
    /// Damping that is found, and the mean of the values.
    fn default() -> Self {
        BiasOptions {
            damping: Vec::new(),
            sweeps: 10,
            mean: None,
        }
    }
}

const CHUNK: usize = 1 << 13;

/// The most of an entry's error that biases fitted to it may have taken away.
const SWAY: f64 = 0.8;

/// Fits mean and biases to the tensor of `problem`; also returns the sum of squared errors. Streams over
/// the entries with one thread; weights count as that many entries.
pub fn fit_biases(
    problem: &Problem<'_>,
    options: &BiasOptions,
    monitor: &dyn Monitor,
) -> Result<(BiasModel, f64)> {
    let pool = ThreadPool::new(1, false, 0);
    let (model, squares) = fit_and_measure(problem, options, &pool, monitor)?;
    Ok((model, squares.fitted))
}

/// Sums of squared errors by weight, and by what biases were damped.
pub(super) struct BiasSquares {
    /// For each mode.
    pub damping: Vec<f64>,
    /// Of biases on the entries that they were fitted to.
    pub fitted: f64,
    /// Of biases on each entry if they had been fitted to all others, nearly: an entry pulls the bias of a row by its share
    /// of the row's weight.
    pub others: f64,
}

/// [`fit_biases`] with all threads of `pool`, and what other entries would say.
pub(super) fn fit_and_measure(
    problem: &Problem<'_>,
    options: &BiasOptions,
    pool: &ThreadPool,
    monitor: &dyn Monitor,
) -> Result<(BiasModel, BiasSquares)> {
    let maps = problem.row_maps();
    let order = problem.order();
    let mut biases: Vec<Vec<f64>> = maps.iter().map(|m| vec![0.0; m.len()]).collect();
    let mut entries = biases.clone();
    let given = problem.per_mode("damping", &options.damping)?;
    let mut damping = given.clone().unwrap_or_else(|| vec![0.0; order]);
    // Damping that is found is then as good as given: the same biases follow from it.
    let finds = if given.is_none() { options.sweeps } else { 0 };
    let sweeps = finds + options.sweeps;
    let mut passes = Passes {
        problem,
        pool,
        monitor,
        done: 0,
        count: 1 + sweeps * order,
    };
    let zero = problem.mean();
    // Values are counted from their mean.
    let mean = options.mean.map_or(0.0, |m| m - zero);
    for sweep in 0..sweeps {
        if sweep == finds {
            biases.iter_mut().for_each(|b| b.fill(0.0));
        }
        for mode in 0..order {
            let rows = biases[mode].len();
            let mut sums = passes.sums(rows + 1, |c, k, to| {
                let others: f64 = (0..order)
                    .filter(|&m| m != mode)
                    .map(|m| biases[m][c.rows[m][k] as usize])
                    .sum();
                let weight = f64::from(c.weight(k));
                let left = f64::from(c.values[k]) - mean - others;
                let row = &mut to[c.rows[mode][k] as usize];
                row[0] += weight * left;
                row[1] += weight;
                // Behind all rows, what they have in common.
                to[rows][0] += weight * (left * left);
                to[rows][1] += 1.0;
            })?;
            let [squares, count] = sums.pop().unwrap_or_default();
            if sweep < finds {
                damping[mode] = noise_over_spread(&sums, squares, count);
            }
            let rows = biases[mode].iter_mut().zip(&mut entries[mode]);
            for ((bias, entries), [residual, weight]) in rows.zip(sums) {
                let weight = weight + damping[mode];
                *bias = match weight > 0.0 {
                    true => residual / weight,
                    false => 0.0,
                };
                *entries = weight;
            }
        }
    }
    let [[fitted, others]] = passes.sums(1, |c, k, to| {
        let (mut bias, mut pull) = (0.0, 0.0);
        let weight = f64::from(c.weight(k));
        for m in 0..order {
            let row = c.rows[m][k] as usize;
            bias += biases[m][row];
            if entries[m][row] > 0.0 {
                pull += weight / entries[m][row];
            }
        }
        let square = weight * (f64::from(c.values[k]) - mean - bias).powi(2);
        to[0][0] += square;
        to[0][1] += square / (1.0 - pull.min(SWAY)).powi(2);
    })?[..] else {
        unreachable!("one sum was asked for")
    };
    let rows = problem.modes().iter().map(|m| m.rows().clone());
    let model = BiasModel::new(mean + zero, rows.zip(biases).collect());
    let squares = BiasSquares {
        damping,
        fitted,
        others,
    };
    Ok((model, squares))
}

/// What rows of a mode may differ by is known by so many rows beforehand.
const ROWS: f64 = 3.0;

/// The noise is not known better than by so many entries.
const ENTRIES: f64 = 10.0;

/// The least damping, so that a row with one entry keeps something of it.
const LEAST: f64 = 0.01;

/// The variance of the noise over that of the means of rows, by comparing what entries of the same row and rows differ by:
/// how many entries a row needs until they tell as much about its bias as all other rows. Of each row there is the sum
/// of what is left and its weight; of all rows the sum of squares and the number of entries.
fn noise_over_spread(rows: &[[f64; 2]], squares: f64, count: f64) -> f64 {
    let seen = rows.iter().filter(|[_, weight]| *weight > 0.0);
    let (mut number, mut sum, mut weight, mut weight2, mut explained) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for [left, w] in seen {
        number += 1.0;
        sum += left;
        weight += w;
        weight2 += w * w;
        explained += left * left / w;
    }
    let free = count - number;
    if free < ENTRIES {
        // Nearly all entries are in rows of their own: there is nothing to tell.
        return DEFAULT_LAMBDA_BIAS;
    }
    let noise = (squares - explained) / free;
    if noise.is_nan() || noise <= 0.0 {
        return LEAST;
    }
    let between = (explained - sum * sum / weight - (number - 1.0) * noise).max(0.0);
    let before = ROWS * weight / number;
    let spread =
        (between + before * noise / DEFAULT_LAMBDA_BIAS) / (weight - weight2 / weight + before);
    (noise / spread).max(LEAST)
}

/// Passes over the entries of a problem, which are counted from the mean: so values lose nothing as `f32`.
struct Passes<'a> {
    problem: &'a Problem<'a>,
    pool: &'a ThreadPool,
    monitor: &'a dyn Monitor,
    /// How many there were, and how many there will be.
    done: usize,
    count: usize,
}

impl Passes<'_> {
    /// `count` pairs of sums, to which `add` adds what entry `k` of a chunk gives.
    fn sums(
        &mut self,
        count: usize,
        add: impl Fn(&EntryChunk, usize, &mut [[f64; 2]]) + Sync,
    ) -> Result<Vec<[f64; 2]>> {
        let (tensor, maps) = (self.problem.tensor(), self.problem.row_maps());
        let (n, zero) = (tensor.len(), self.problem.mean());
        let groups = groups(count);
        let (seen, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let mut watch = || {
            let done = (self.done * n) as u64 + seen.load(Ordering::Relaxed);
            let told = report_progress(
                self.monitor,
                "fitting biases",
                done,
                (self.count * n) as u64,
            );
            stop.fetch_or(told.is_err(), Ordering::Relaxed);
            told.is_err()
        };
        let one = |chunk: &mut EntryChunk, group: usize| {
            let mut sums: Vec<[f64; 2]> = try_zeroed(count, "rows")?;
            for start in (group * CHUNK..n).step_by(groups * CHUNK) {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let range = start..(start + CHUNK).min(n);
                let len = range.len() as u64;
                tensor.read_selected(&maps, range, zero, None, chunk)?;
                (0..chunk.values.len()).for_each(|k| add(chunk, k, &mut sums));
                seen.fetch_add(len, Ordering::Relaxed);
            }
            Ok(sums)
        };
        if watch() {
            return Err(Error::Cancelled);
        }
        let made = self
            .pool
            .map(groups, &mut watch, EntryChunk::default, one)?;
        let mut made = made.ok_or(Error::Cancelled)?.into_iter();
        let mut sums: Vec<[f64; 2]> = made.next().unwrap_or_else(|| Ok(Vec::new()))?;
        for group in made {
            let each = sums.iter_mut().zip(group?);
            each.for_each(|(sum, more)| (0..2).for_each(|i| sum[i] += more[i]));
        }
        self.done += 1;
        Ok(sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{CooView, Values};
    use crate::model::Predict;

    #[test]
    fn additive_data_is_fitted_exactly() {
        let mut columns = vec![Vec::new(); 3];
        let mut values = Vec::new();
        for i in 0..20u32 {
            for j in 0..15u32 {
                for k in 0..5u32 {
                    columns
                        .iter_mut()
                        .zip([i * 1000, j, k])
                        .for_each(|(c, x)| c.push(x));
                    values.push(2.0 + f64::from(i) * 0.1 - f64::from(j) * 0.3 + f64::from(k * k));
                }
            }
        }
        let slices: Vec<&[u32]> = columns.iter().map(Vec::as_slice).collect();
        let view = CooView::new("t", &[20_000, 15, 5], &slices, Values::F64(&values)).unwrap();
        let problem = Problem::builder(view).build(&()).unwrap();
        let how = BiasOptions {
            damping: vec![0.0],
            sweeps: 20,
            mean: None,
        };
        let (model, squares) = fit_biases(&problem, &how, &()).unwrap();
        assert!(squares < 1e-6);
        let mut predict = model.predictor().unwrap();
        for (e, &value) in values.iter().enumerate() {
            let index: Vec<u32> = columns.iter().map(|c| c[e]).collect();
            assert!((predict(&index) - value).abs() < 1e-5);
        }
        // A row never seen: the mean and the other biases.
        assert!(predict(&[7, 0, 0]).is_finite());
        assert_eq!(predict(&[7, u32::MAX, u32::MAX]), model.mean());
    }
}
