//! Predictive distributions: the mean, standard deviation and quantiles of the value at a position.
//!
//! With posterior samples s = 1, ..., S, let p_s be the prediction of sample s and sigma_s its noise standard deviation.
//! The predictive distribution is approximated by a normal distribution. Its variance is the sample variance of p_s plus
//! the mean of sigma_s^2, both times factors for the rows and the level of the prediction, since rows with less noise are also better
//! known. A row without any entry has the mean row of its mode in p_s; the mean over s of the variance of such rows
//! ([`super::unseen_variance`]) is added. The mean of the distribution is the mean of the predictions from conditional means of one
//! mode instead of its sampled rows, which has less Monte Carlo error (Rao-Blackwellization).
//!
//! With the probit likelihood the distribution has two values. The probability of the high value is that of a latent value above
//! the threshold, whose distribution is the normal one above.

use std::ops::Range;

use super::parallel_chunks::{ChunkRun, Positions, check_prediction};
use super::predictions::{PredictOptions, Predictor};
use crate::error::{Error, Result};
use crate::format::CooView;
use crate::model::{Model, PosteriorSamples, Predict, ProbitLink};
use crate::normal_distribution::normal_quantile;
use crate::progress::Monitor;
use crate::value_range::ValueRange;

/// The predictive distribution of the value at a position.
#[derive(Debug, Clone, PartialEq)]
pub struct PredictiveDistribution {
    /// The prediction.
    pub mean: f64,
    /// The standard deviation of the value: of the posterior samples, of the noise, and of rows without any entry.
    pub standard_deviation: f64,
    /// The requested quantiles, in the order of their probabilities in the request.
    pub quantiles: Vec<f64>,
}

/// Predicts the distribution of the value at every entry of `view`.
///
/// The probabilities of `quantiles` are above 0 and below 1. Options and the order of the results are those of
/// [`predict_entries`](super::predict_entries); clipping limits means and quantiles. The model must have posterior
/// samples.
pub fn predict_intervals(
    model: &Model,
    view: &CooView<'_>,
    quantiles: &[f64],
    options: &PredictOptions,
    monitor: &dyn Monitor,
    take: impl FnMut(Range<usize>, &[PredictiveDistribution]) -> Result<()>,
) -> Result<()> {
    model.check_order(view)?;
    let positions = Positions::of_cells(view);
    predict(model, &positions, quantiles, options, monitor, take)
}

/// As [`predict_intervals`], for `count` positions. `write_indices` writes the indices of a range of positions, position
/// by position, one index per mode of the model.
pub fn predict_intervals_at(
    model: &Model,
    count: usize,
    write_indices: impl Fn(Range<usize>, &mut [u32]) + Sync,
    quantiles: &[f64],
    options: &PredictOptions,
    monitor: &dyn Monitor,
    take: impl FnMut(Range<usize>, &[PredictiveDistribution]) -> Result<()>,
) -> Result<()> {
    let positions = Positions::new(count, model.order(), write_indices);
    predict(model, &positions, quantiles, options, monitor, take)
}

fn predict(
    model: &Model,
    positions: &Positions<'_>,
    quantiles: &[f64],
    options: &PredictOptions,
    monitor: &dyn Monitor,
    mut take: impl FnMut(Range<usize>, &[PredictiveDistribution]) -> Result<()>,
) -> Result<()> {
    let samples = require_samples(model, quantiles)?;
    let range = if options.clip {
        model.range()
    } else {
        ValueRange::UNBOUNDED
    };
    let run = ChunkRun {
        threads: options.threads,
        phase: "predicting",
        monitor,
    };
    run.map(
        || interval_predictor(model, samples, quantiles, range),
        2 * model.operations_per_prediction(),
        positions,
        |out: &mut Vec<PredictiveDistribution>, position, distribution| {
            let PredictiveDistribution {
                mean,
                standard_deviation,
                quantiles,
            } = &distribution;
            for x in [mean, standard_deviation].into_iter().chain(quantiles) {
                check_prediction(position, *x)?;
            }
            out.push(distribution);
            Ok(())
        },
        |range, out| take(range, &out),
    )
}

/// Returns the posterior samples of a model, or an error if it has none or if a probability is not between 0 and 1.
pub(crate) fn require_samples<'m>(
    model: &'m Model,
    probabilities: &[f64],
) -> Result<&'m PosteriorSamples> {
    let Some(samples) = model.samples() else {
        return Err(Error::argument(
            "the model has no posterior samples, so there are no predictive intervals; fit one with algorithm gibbs",
        ));
    };
    match probabilities.iter().find(|q| !(**q > 0.0 && **q < 1.0)) {
        None => Ok(samples),
        Some(bad) => Err(Error::argument(format!(
            "a quantile of {bad}; it must be above 0 and below 1"
        ))),
    }
}

/// Returns a function that predicts distributions, for one thread.
///
/// `quantiles` are the probabilities of the quantiles. Means and quantiles are clipped to the range.
pub(crate) fn interval_predictor<'m>(
    model: &'m Model,
    samples: &'m PosteriorSamples,
    quantiles: &'m [f64],
    range: ValueRange,
) -> Result<impl FnMut(&[u32]) -> PredictiveDistribution + 'm> {
    let mut predictor = Predictor::new(model)?;
    let z_scores: Vec<f64> = quantiles.iter().map(|&q| normal_quantile(q)).collect();
    Ok(move |index: &[u32]| {
        if let Some(link) = samples.link() {
            let probability = predictor.probability(samples, &link, index);
            return two_point_distribution(&link, probability, quantiles);
        }
        let moments = predictor.moments(samples, index);
        let mean = moments.mean;
        let rows = index.iter().enumerate().map(|(n, &i)| model.row_of(n, i));
        let factor = samples.noise_factors.of_rows(rows) * samples.level_noise_factor(mean);
        let variance = factor * (moments.variance + moments.noise_variance);
        let standard_deviation = (variance + moments.unseen_variance).sqrt();
        let quantile = |z: &f64| (mean + z * standard_deviation).clamp(range.min, range.max);
        PredictiveDistribution {
            mean: mean.clamp(range.min, range.max),
            standard_deviation,
            quantiles: z_scores.iter().map(quantile).collect(),
        }
    })
}

/// Returns the distribution of one of two values.
fn two_point_distribution(
    link: &ProbitLink,
    probability: f64,
    quantiles: &[f64],
) -> PredictiveDistribution {
    let quantile = |&q: &f64| match q <= 1.0 - probability {
        true => link.low,
        false => link.high,
    };
    let variance = probability * (1.0 - probability);
    PredictiveDistribution {
        mean: link.expected_value(probability),
        standard_deviation: (link.high - link.low) * variance.sqrt(),
        quantiles: quantiles.iter().map(quantile).collect(),
    }
}

/// Computes a quantile to rank by, at a position.
type QuantilePredictor<'m> = Box<dyn FnMut(&[u32]) -> f64 + 'm>;

/// Returns a function that computes a quantile to rank by, for one thread: of the predictive distribution or, if that has two
/// values only, of the posterior distribution of the expected value.
pub(crate) fn quantile_predictor<'m>(
    model: &'m Model,
    samples: &'m PosteriorSamples,
    quantile: &'m [f64; 1],
) -> Result<QuantilePredictor<'m>> {
    let Some(link) = samples.link() else {
        let mut predict = interval_predictor(model, samples, quantile, ValueRange::UNBOUNDED)?;
        return Ok(Box::new(move |index: &[u32]| predict(index).quantiles[0]));
    };
    let z = normal_quantile(quantile[0]);
    let mut predictor = Predictor::new(model)?;
    Ok(Box::new(move |index: &[u32]| {
        let moments = predictor.moments(samples, index);
        let deviation = (moments.variance + moments.unseen_variance).sqrt();
        link.expected_value(link.probability(moments.mean + z * deviation, 0.0))
    }))
}
