//! Point predictions: mean + biases + the core contracted with one row per mode.

use std::ops::Range;

use super::parallel_chunks::{ChunkRun, Positions, check_prediction};
use super::unseen_variance::UnseenVariance;
use crate::error::Result;
use crate::format::CooView;
use crate::kernel::{Method, TensorKernel};
use crate::model::{AVERAGE_ROW, Model, PosteriorSamples, Predict, ProbitLink};
use crate::progress::Monitor;
use crate::simd::AlignedVec;
use crate::simd::Level;

impl Predict for Model {
    fn predicted_order(&self) -> Option<usize> {
        Some(self.order())
    }

    /// A row that the model does not have is replaced by the mean row of its mode. A model with posterior samples
    /// predicts the mean over the samples.
    ///
    /// Returns an error if the environment forces an instruction set that this machine does not have.
    fn predictor(&self) -> Result<impl FnMut(&[u32]) -> f64> {
        let mut predictor = Predictor::new(self)?;
        Ok(move |index: &[u32]| match self.samples() {
            None => predictor.value(index),
            Some(samples) => predictor.mean(samples, index),
        })
    }

    fn operations_per_prediction(&self) -> usize {
        let samples = self.samples().map_or(1, PosteriorSamples::len);
        // With a link, predictions need the variance of the samples, too.
        let passes = match self.samples().and_then(PosteriorSamples::link) {
            Some(_) => 2,
            None => 1,
        };
        let samples = samples.max(1).saturating_mul(passes);
        self.shape().core_len().saturating_mul(samples)
    }
}

/// The rows of a posterior sample that predictions use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowChoice {
    /// Sampled rows.
    Samples,
    /// The conditional means of the mode for which they are stored, and sampled rows of the others.
    ConditionalMeans,
}

/// The prediction of one posterior sample.
pub(super) struct SamplePrediction {
    pub value: f64,
    /// Standard deviation of the noise.
    pub noise_deviation: f64,
    /// Variance of the value due to rows that the model does not have. The value itself is that of their mean row. Computed for
    /// [`RowChoice::Samples`] only.
    pub unseen_variance: f64,
}

/// Moments of the predictions of all posterior samples at a position.
pub(super) struct SampleMoments {
    /// Mean of the predictions from conditional means of one mode, which has less Monte Carlo error (Rao-Blackwellization).
    pub mean: f64,
    /// Variance of the predictions from sampled rows.
    pub variance: f64,
    /// Mean variance of the noise.
    pub noise_variance: f64,
    /// Mean variance that indices without a row in the model add.
    pub unseen_variance: f64,
}

/// Predicts on one thread, with buffers for the rows of a position.
pub(super) struct Predictor<'a> {
    model: &'a Model,
    kernel: TensorKernel,
    /// The factor rows of the position, padded.
    rows: AlignedVec,
    /// The compact row of each mode.
    compact: Vec<usize>,
    /// The modes whose row the model does not have, without those of [`AVERAGE_ROW`].
    unseen_modes: Vec<usize>,
    unseen: UnseenVariance,
}

impl<'a> Predictor<'a> {
    pub(super) fn new(model: &'a Model) -> Result<Predictor<'a>> {
        let level = Level::choose(None)?;
        Ok(Predictor {
            kernel: TensorKernel::new(model.shape(), Method::Shared(level))?,
            rows: AlignedVec::zeroed(model.shape().rows_len()),
            compact: vec![0; model.order()],
            unseen_modes: Vec::new(),
            unseen: UnseenVariance::default(),
            model,
        })
    }

    #[inline]
    fn set_position(&mut self, index: &[u32]) {
        self.unseen_modes.clear();
        for (n, &i) in index.iter().enumerate() {
            self.compact[n] = self.model.row_of(n, i) as usize;
            if self.compact[n] == self.model.modes()[n].rows.len() && i != AVERAGE_ROW {
                self.unseen_modes.push(n);
            }
        }
    }

    /// Returns the prediction of the model's own parameters.
    fn value(&mut self, index: &[u32]) -> f64 {
        let shape = self.model.shape();
        self.set_position(index);
        for (n, &row) in self.compact.iter().enumerate() {
            let from = self.model.modes()[n].factor.padded_row(row);
            self.rows[shape.row(n)].copy_from_slice(from);
        }
        let rows = self.compact.iter().map(|&row| row as u32);
        self.model.baseline(rows) + f64::from(self.kernel.value(self.model.core(), &self.rows))
    }

    /// Returns the mean prediction of the posterior samples.
    pub(super) fn mean(&mut self, samples: &PosteriorSamples, index: &[u32]) -> f64 {
        match samples.link() {
            Some(link) => link.expected_value(self.probability(samples, &link, index)),
            None => self.smoothed_mean(samples, index),
        }
    }

    /// Returns the probability of the high one of two values. The values of the samples are taken to be normal.
    pub(super) fn probability(
        &mut self,
        samples: &PosteriorSamples,
        link: &ProbitLink,
        index: &[u32],
    ) -> f64 {
        let moments = self.moments(samples, index);
        link.probability(moments.mean, moments.variance + moments.unseen_variance)
    }

    /// Returns the moments of the predictions of the posterior samples.
    pub(super) fn moments(&mut self, samples: &PosteriorSamples, index: &[u32]) -> SampleMoments {
        let count = samples.len() as f64;
        let mean = self.smoothed_mean(samples, index);
        // Sums of deviations from `mean`, so that the squares are small.
        let (mut sum, mut squares, mut noise, mut unseen) = (0.0, 0.0, 0.0, 0.0);
        self.for_each_sample(samples, index, RowChoice::Samples, |x| {
            let deviation = x.value - mean;
            sum += deviation;
            squares += deviation * deviation;
            noise += x.noise_deviation.powi(2);
            unseen += x.unseen_variance;
        });
        SampleMoments {
            mean,
            variance: (squares - sum * sum / count).max(0.0) / (count - 1.0).max(1.0),
            noise_variance: noise / count,
            unseen_variance: unseen / count,
        }
    }

    /// Returns the mean of the predictions from conditional means.
    fn smoothed_mean(&mut self, samples: &PosteriorSamples, index: &[u32]) -> f64 {
        let mut sum = 0.0;
        self.for_each_sample(samples, index, RowChoice::ConditionalMeans, |x| {
            sum += x.value;
        });
        sum / samples.len() as f64
    }

    /// Calls `take` with the prediction of each posterior sample.
    pub(super) fn for_each_sample(
        &mut self,
        samples: &PosteriorSamples,
        index: &[u32],
        choice: RowChoice,
        mut take: impl FnMut(SamplePrediction),
    ) {
        let shape = self.model.shape();
        self.set_position(index);
        for sample in samples.iter() {
            let mut biases = 0.0;
            for (n, &row) in self.compact.iter().enumerate() {
                let rows = match choice {
                    RowChoice::ConditionalMeans if n == samples.conditional_mode() => {
                        &sample.conditional_means
                    }
                    _ => &sample.modes[n],
                };
                let start = shape.row(n).start;
                rows.read_row(row, &mut self.rows[start..start + shape.ranks()[n]]);
                if samples.has_biases() {
                    biases += f64::from(rows.last_value(row));
                }
            }
            let core = if sample.core.is_empty() {
                self.model.core()
            } else {
                &sample.core
            };
            let value = f64::from(self.kernel.value(core, &self.rows));
            let is_unsure = choice == RowChoice::Samples
                && !self.unseen_modes.is_empty()
                && !sample.unseen_rows.is_empty();
            let unseen_variance = if is_unsure {
                let bias_scale = samples.has_biases().then(|| samples.scale());
                self.unseen.compute(
                    &mut self.kernel,
                    core,
                    &mut self.rows,
                    &self.unseen_modes,
                    &sample.unseen_rows,
                    bias_scale,
                )
            } else {
                0.0
            };
            take(SamplePrediction {
                value: samples.mean() + samples.scale() * biases + value,
                noise_deviation: sample.noise_deviation,
                unseen_variance,
            });
        }
    }
}

/// Options of predictions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PredictOptions {
    /// Whether predictions are clipped to the range of the training values.
    pub clip: bool,
    /// The number of threads; 0 means all that this process may use. Predictions do not depend on it.
    pub threads: usize,
}

/// Predicts every entry of `view`, whose values are ignored.
///
/// `take` receives the predictions in order and in pieces, each with its range of entries.
pub fn predict_entries(
    model: &Model,
    view: &CooView<'_>,
    options: &PredictOptions,
    monitor: &dyn Monitor,
    mut take: impl FnMut(Range<usize>, &[f64]) -> Result<()>,
) -> Result<()> {
    model.check_order(view)?;
    let positions = Positions::of_cells(view);
    predict(model, &positions, options, monitor, &mut take)
}

/// As [`predict_entries`], for `count` positions. `write_indices` writes the indices of a range of positions, position by
/// position, one index per mode of the model.
pub fn predict_at(
    model: &Model,
    count: usize,
    write_indices: impl Fn(Range<usize>, &mut [u32]) + Sync,
    options: &PredictOptions,
    monitor: &dyn Monitor,
    mut take: impl FnMut(Range<usize>, &[f64]) -> Result<()>,
) -> Result<()> {
    let positions = Positions::new(count, model.order(), write_indices);
    predict(model, &positions, options, monitor, &mut take)
}

/// Receives a range of positions and their predictions.
type Take<'a> = dyn FnMut(Range<usize>, &[f64]) -> Result<()> + 'a;

/// Neither generic nor inlined, so that all callers run the same machine code.
#[inline(never)]
fn predict(
    model: &Model,
    positions: &Positions<'_>,
    options: &PredictOptions,
    monitor: &dyn Monitor,
    take: &mut Take<'_>,
) -> Result<()> {
    let range = model.range();
    let clip = options.clip;
    let run = ChunkRun {
        threads: options.threads,
        phase: "predicting",
        monitor,
    };
    run.predict(
        model,
        positions,
        |out: &mut Vec<f64>, position, x: f64| {
            check_prediction(position, x)?;
            out.push(if clip {
                x.clamp(range.min, range.max)
            } else {
                x
            });
            Ok(())
        },
        |range, out| take(range, &out),
    )
}
