//! How sure predictions are: the deviation of what a cell may turn out to be, and quantiles of it.

use std::ops::Range;

use super::chunks::{Cells, cells_of, chunks_of};
use super::values::Predictor;
use crate::error::{Error, Result};
use crate::format::CooView;
use crate::model::{Model, PosteriorSamples};
use crate::progress::Monitor;

/// What is predicted for a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    /// The prediction.
    pub mean: f64,
    /// The deviation of the value around it: that of the samples and that of the noise.
    pub deviation: f64,
    /// The quantiles asked for, in their order.
    pub quantiles: Vec<f64>,
}

/// Predicts every cell listed in `view` as [`super::predict_all`] does, each with the deviation of its
/// value and with quantiles (each above 0 and below 1) of a normal distribution with that mean and
/// deviation. `clip` limits prediction and quantiles to the range of the training values. Only a model
/// of samples knows how sure it is.
pub fn predict_spread(
    model: &Model,
    view: &CooView<'_>,
    quantiles: &[f64],
    clip: bool,
    threads: usize,
    monitor: &dyn Monitor,
    take: impl FnMut(Range<usize>, &[Spread]) -> Result<()>,
) -> Result<()> {
    model.check_order(view)?;
    spread(
        model,
        &cells_of(view),
        quantiles,
        clip,
        threads,
        monitor,
        take,
    )
}

/// [`predict_spread`] of `count` cells whose indices lie anywhere: `indices` writes those of some cells, one cell after
/// the other and one index per mode of the model.
pub fn predict_spread_cells(
    model: &Model,
    (count, indices): (usize, impl Fn(Range<usize>, &mut [u32]) + Sync),
    quantiles: &[f64],
    clip: bool,
    threads: usize,
    monitor: &dyn Monitor,
    take: impl FnMut(Range<usize>, &[Spread]) -> Result<()>,
) -> Result<()> {
    let cells = Cells {
        count,
        order: model.order(),
        indices: Box::new(indices),
    };
    spread(model, &cells, quantiles, clip, threads, monitor, take)
}

fn spread(
    model: &Model,
    cells: &Cells<'_>,
    quantiles: &[f64],
    clip: bool,
    threads: usize,
    monitor: &dyn Monitor,
    mut take: impl FnMut(Range<usize>, &[Spread]) -> Result<()>,
) -> Result<()> {
    let samples = samples_for(model, quantiles)?;
    let range = match clip {
        true => model.range(),
        false => (f64::NEG_INFINITY, f64::INFINITY),
    };
    let scores: Vec<f64> = quantiles.iter().map(|&q| normal_quantile(q)).collect();
    let predictor = || spreader(model, samples, &scores, range);
    let add = |out: &mut Vec<Spread>, _: usize, spread: Spread| {
        out.push(spread);
        Ok(())
    };
    let each = |range, out: Vec<Spread>| take(range, &out);
    chunks_of(
        predictor,
        cells,
        threads,
        ("predicting", monitor),
        add,
        each,
    )
}

/// The samples of a model, which must have some, for quantiles that are some.
pub(crate) fn samples_for<'m>(model: &'m Model, quantiles: &[f64]) -> Result<&'m PosteriorSamples> {
    let Some(samples) = model.samples() else {
        return Err(Error::argument(
            "the model has no samples, so it does not know how sure it is; fit one with algorithm gibbs",
        ));
    };
    match quantiles.iter().find(|q| !(**q > 0.0 && **q < 1.0)) {
        None => Ok(samples),
        Some(bad) => Err(Error::argument(format!(
            "a quantile of {bad}; it must be above 0 and below 1"
        ))),
    }
}

/// What predicts on one thread. `scores` are the quantiles of the standard normal distribution; predictions and
/// quantiles are limited to the range.
pub(crate) fn spreader<'m>(
    model: &'m Model,
    samples: &'m PosteriorSamples,
    scores: &'m [f64],
    (low, high): (f64, f64),
) -> Result<impl FnMut(&[u32]) -> Spread + 'm> {
    let count = samples.len() as f64;
    let mut one = Predictor::new(model)?;
    Ok(move |index: &[u32]| {
        let (mut sum, mut squares, mut noise, mut smooth) = (0.0, 0.0, 0.0, 0.0);
        one.each(samples, index, true, |x, _| smooth += x);
        let center = smooth / count;
        one.each(samples, index, false, |x, deviation| {
            sum += x - center;
            squares += (x - center) * (x - center);
            noise += deviation * deviation;
        });
        let variance = (squares - sum * sum / count).max(0.0) / (count - 1.0).max(1.0);
        let deviation = (variance + noise / count).sqrt();
        let quantile = |z: &f64| (center + z * deviation).clamp(low, high);
        Spread {
            mean: center.clamp(low, high),
            deviation,
            quantiles: scores.iter().map(quantile).collect(),
        }
    })
}

/// The number that a standard normal one is below with this probability: a rational approximation by
/// Acklam, with an error of a billionth of it.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969683028665376e1,
        2.209460984245205e2,
        -2.759285104469687e2,
        1.38357751867269e2,
        -3.066479806614716e1,
        2.506628277459239,
    ];
    const B: [f64; 5] = [
        -5.447609879822406e1,
        1.615858368580409e2,
        -1.556989798598866e2,
        6.680131188771972e1,
        -1.328068155288572e1,
    ];
    const C: [f64; 6] = [
        -7.784894002430293e-3,
        -3.223964580411365e-1,
        -2.400758277161838,
        -2.549732539343734,
        4.374664141464968,
        2.938163982698783,
    ];
    const D: [f64; 4] = [
        7.784695709041462e-3,
        3.224671290700398e-1,
        2.445134137142996,
        3.754408661907416,
    ];
    let polynomial = |c: &[f64], x: f64| c.iter().fold(0.0, |sum, c| sum * x + c);
    let tail = |p: f64| {
        let q = (-2.0 * p.ln()).sqrt();
        polynomial(&C, q) / (polynomial(&D, q) * q + 1.0)
    };
    if p < 0.02425 {
        tail(p)
    } else if p > 1.0 - 0.02425 {
        -tail(1.0 - p)
    } else {
        let q = p - 0.5;
        let r = q * q;
        polynomial(&A, r) * q / (polynomial(&B, r) * r + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_the_normal_distribution() {
        for (p, z) in [
            (0.5, 0.0),
            (0.95, 1.6448536269514722),
            (0.975, 1.959963984540054),
            (0.001, -3.090232306167813),
            (0.99999, 4.264890793922825),
        ] {
            assert!((normal_quantile(p) - z).abs() < 1e-7, "{p}");
        }
    }
}
