//! Damped least squares for the bias model, one mode after the other.

use std::ops::Range;

use crate::error::Result;
use crate::model::BiasModel;
use crate::monitor::{Monitor, step};
use crate::problem::{Chunk, Problem};

/// How [`fit_biases`] works.
#[derive(Debug, Clone, Copy)]
pub struct BiasOptions {
    /// Acts like this many more entries of residual 0 in every row.
    pub damping: f64,
    /// How often all modes are solved in turn.
    pub sweeps: usize,
    /// The mean; `None` is that of the values.
    pub mean: Option<f64>,
}

impl Default for BiasOptions {
    /// Values that do well on ratings; the result hardly depends on them.
    fn default() -> Self {
        BiasOptions {
            damping: 5.0,
            sweeps: 10,
            mean: None,
        }
    }
}

const CHUNK: usize = 1 << 16;

/// The most of an entry's error that biases fitted to it may have taken away.
const SWAY: f64 = 0.8;

/// Fits mean and biases to the tensor of `problem`; also returns the sum of squared errors. Streams over
/// the entries; weights count as that many entries.
pub fn fit_biases(
    problem: &Problem<'_>,
    options: &BiasOptions,
    monitor: &dyn Monitor,
) -> Result<(BiasModel, f64)> {
    let (model, squares) = fit_and_measure(problem, options, monitor)?;
    Ok((model, squares.fitted))
}

/// Sums of squared errors by weight.
pub(super) struct BiasSquares {
    /// Of biases on the entries that they were fitted to.
    pub fitted: f64,
    /// Of biases on each entry if they had been fitted to all others, nearly: an entry pulls the bias of a row by its share
    /// of the row's weight.
    pub others: f64,
}

/// [`fit_biases`], and what other entries would say.
pub(super) fn fit_and_measure(
    problem: &Problem<'_>,
    options: &BiasOptions,
    monitor: &dyn Monitor,
) -> Result<(BiasModel, BiasSquares)> {
    let maps = problem.row_maps();
    let n = problem.tensor().len();
    let order = problem.order();
    let mut biases: Vec<Vec<f64>> = maps.iter().map(|m| vec![0.0; m.len()]).collect();
    let mut entries = biases.clone();
    let mut chunk = Chunk::default();
    let passes = 2 + options.sweeps * order;
    // Counted from there, values lose nothing as f32.
    let zero = problem.mean();
    let mut pass = 0;
    let mut scan = |visit: &mut dyn FnMut(&Chunk)| -> Result<()> {
        for start in (0..n).step_by(CHUNK) {
            step(
                monitor,
                "fitting biases",
                (pass * n + start) as u64,
                (passes * n) as u64,
            )?;
            let range: Range<usize> = start..(start + CHUNK).min(n);
            let tensor = problem.tensor();
            tensor.copy_from(&maps, range, zero, None, &mut chunk)?;
            visit(&chunk);
        }
        pass += 1;
        Ok(())
    };
    let weight = |c: &Chunk, k: usize| f64::from(c.weight(k));
    let (mut sum, mut total) = (0.0, 0.0);
    scan(&mut |c| {
        for k in 0..c.values.len() {
            sum += weight(c, k) * f64::from(c.values[k]);
            total += weight(c, k);
        }
    })?;
    let found = if total > 0.0 { sum / total } else { 0.0 };
    let mean = options.mean.map_or(found, |m| m - zero);
    for _ in 0..options.sweeps {
        for mode in 0..order {
            let mut sums = vec![(0.0f64, options.damping); biases[mode].len()];
            scan(&mut |c| {
                for k in 0..c.values.len() {
                    let others: f64 = (0..order)
                        .filter(|&m| m != mode)
                        .map(|m| biases[m][c.rows[m][k] as usize])
                        .sum();
                    let row = &mut sums[c.rows[mode][k] as usize];
                    row.0 += weight(c, k) * (f64::from(c.values[k]) - mean - others);
                    row.1 += weight(c, k);
                }
            })?;
            let rows = biases[mode].iter_mut().zip(&mut entries[mode]);
            for ((bias, entries), (residual, weight)) in rows.zip(sums) {
                *bias = match weight > 0.0 {
                    true => residual / weight,
                    false => 0.0,
                };
                *entries = weight;
            }
        }
    }
    let mut squares = BiasSquares {
        fitted: 0.0,
        others: 0.0,
    };
    scan(&mut |c| {
        for k in 0..c.values.len() {
            let (mut bias, mut pull) = (0.0, 0.0);
            for m in 0..order {
                let row = c.rows[m][k] as usize;
                bias += biases[m][row];
                if entries[m][row] > 0.0 {
                    pull += weight(c, k) / entries[m][row];
                }
            }
            let square = weight(c, k) * (f64::from(c.values[k]) - mean - bias).powi(2);
            squares.fitted += square;
            squares.others += square / (1.0 - pull.min(SWAY)).powi(2);
        }
    })?;
    let rows = problem.modes().iter().map(|m| m.rows().clone());
    let model = BiasModel::new(mean + zero, rows.zip(biases).collect());
    Ok((model, squares))
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
            damping: 0.0,
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
