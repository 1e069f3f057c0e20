//! Predictions of a factor model.

use std::ops::Range;

use super::chunks::{Cells, cells_of, predict_chunks};
use crate::error::Result;
use crate::format::CooView;
use crate::kernel::{Method, TensorKernel};

use crate::model::{Model, PosteriorSamples, Predict};
use crate::simd::Level;

use crate::progress::Monitor;
use crate::simd::AlignedVec;

impl Predict for Model {
    /// Rows never seen predict as the mean row of their mode. A model of samples predicts their mean.
    /// Fails only if the environment forces a kernel level that is not there.
    fn predictor(&self) -> Result<impl FnMut(&[u32]) -> f64> {
        let mut one = Predictor::new(self)?;
        Ok(move |index: &[u32]| match self.samples() {
            None => one.value(index),
            Some(samples) => {
                let mut sum = 0.0;
                one.each(samples, index, true, |x, _| sum += x);
                sum / samples.len() as f64
            }
        })
    }
}

/// What predicts on one thread.
pub(super) struct Predictor<'a> {
    model: &'a Model,
    kernel: TensorKernel,
    rows: AlignedVec,
    places: Vec<usize>,
}

impl<'a> Predictor<'a> {
    pub(super) fn new(model: &'a Model) -> Result<Predictor<'a>> {
        let level = Level::choose(None)?;
        Ok(Predictor {
            kernel: TensorKernel::new(model.shape(), Method::Shared(level)),
            rows: AlignedVec::zeroed(model.shape().rows_len()),
            places: vec![0; model.order()],
            model,
        })
    }

    fn place(&mut self, index: &[u32]) {
        for (n, (place, &i)) in self.places.iter_mut().zip(index).enumerate() {
            *place = self.model.row_of(n, i) as usize;
        }
    }

    /// What mean, biases, factors and core give.
    fn value(&mut self, index: &[u32]) -> f64 {
        let shape = self.model.shape();
        self.place(index);
        for (n, &row) in self.places.iter().enumerate() {
            let from = self.model.modes()[n].factor.padded_row(row);
            self.rows[shape.row(n)].copy_from_slice(from);
        }
        let places = self.places.iter().map(|&row| row as u32);
        self.model.baseline(places) + f64::from(self.kernel.value(self.model.core(), &self.rows))
    }

    /// What each sample gives, with the deviation of its noise; of its smooth rows if asked for.
    pub(super) fn each(
        &mut self,
        samples: &PosteriorSamples,
        index: &[u32],
        smooth: bool,
        mut take: impl FnMut(f64, f64),
    ) {
        let shape = self.model.shape();
        self.place(index);
        for sample in samples.iter() {
            let mut biases = 0.0;
            for (n, &row) in self.places.iter().enumerate() {
                let rows = match smooth && n == samples.conditional_mode() {
                    true => &sample.conditional_means,
                    false => &sample.modes[n],
                };
                let start = shape.row(n).start;
                rows.read_row(row, &mut self.rows[start..start + shape.ranks[n]]);
                if samples.has_biases() {
                    biases += f64::from(rows.last_value(row));
                }
            }
            let core = match sample.core.is_empty() {
                true => self.model.core(),
                false => &sample.core,
            };
            let value = f64::from(self.kernel.value(core, &self.rows));
            take(
                samples.mean() + samples.scale() * biases + value,
                sample.noise_deviation,
            );
        }
    }
}

/// Predicts every cell listed in `view` (its values do not matter) on `threads` threads and hands the
/// predictions over in order and in pieces, with the range of entries they belong to. `clip` limits
/// them to the range of the training values. 0 threads means all this process may use; predictions do
/// not depend on the number.
pub fn predict_all(
    model: &Model,
    view: &CooView<'_>,
    clip: bool,
    threads: usize,
    monitor: &dyn Monitor,
    mut take: impl FnMut(Range<usize>, &[f64]) -> Result<()>,
) -> Result<()> {
    model.check_order(view)?;
    predict(model, &cells_of(view), clip, threads, monitor, &mut take)
}

/// [`predict_all`] of `count` cells whose indices lie anywhere: `indices` writes those of some cells, one cell after
/// the other and one index per mode of the model.
pub fn predict_cells(
    model: &Model,
    count: usize,
    indices: impl Fn(Range<usize>, &mut [u32]) + Sync,
    clip: bool,
    threads: usize,
    monitor: &dyn Monitor,
    mut take: impl FnMut(Range<usize>, &[f64]) -> Result<()>,
) -> Result<()> {
    let cells = Cells {
        count,
        order: model.order(),
        indices: Box::new(indices),
    };
    predict(model, &cells, clip, threads, monitor, &mut take)
}

/// What takes predictions.
type Take<'a> = dyn FnMut(Range<usize>, &[f64]) -> Result<()> + 'a;

/// Neither generic nor inlined, so that all predictions are made by the same instructions.
#[inline(never)]
fn predict(
    model: &Model,
    cells: &Cells<'_>,
    clip: bool,
    threads: usize,
    monitor: &dyn Monitor,
    take: &mut Take<'_>,
) -> Result<()> {
    let (low, high) = model.range();
    predict_chunks(
        model,
        cells,
        threads,
        "predicting",
        monitor,
        |out: &mut Vec<f64>, _, x| {
            out.push(if clip { x.clamp(low, high) } else { x });
            Ok(())
        },
        |range, out| take(range, &out),
    )
}
