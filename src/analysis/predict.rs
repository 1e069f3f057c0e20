//! Predictions of a factor model.

use std::ops::Range;

use super::chunks::{Cells, cells_of, predict_chunks};
use crate::error::{Error, Result};
use crate::format::CooView;
use crate::kernel::{Level, Method, TensorKernel};
use crate::model::{Model, Predict};
use crate::monitor::Monitor;
use crate::options::KernelChoice;

impl Predict for Model {
    /// Rows never seen predict as the mean row of their mode. Fails only if the environment forces a
    /// kernel level that is not there.
    fn predictor(&self) -> Result<impl FnMut(&[u32]) -> f64> {
        let shape = self.shape();
        let level = Level::choose(KernelChoice::Auto)?;
        let mut kernel = TensorKernel::new(shape, Method::Shared(level));
        let mut rows = vec![0.0; shape.rows_len()];
        Ok(move |index: &[u32]| {
            for (n, &i) in index.iter().enumerate() {
                let row = self.row_of(n, i) as usize;
                rows[shape.row(n)].copy_from_slice(self.modes()[n].factor.padded_row(row));
            }
            let found = index.iter().enumerate().map(|(n, &i)| self.row_of(n, i));
            self.baseline(found) + f64::from(kernel.value(self.core(), &rows))
        })
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
    take: impl FnMut(Range<usize>, &[f64]) -> Result<()>,
) -> Result<()> {
    if view.order() != model.order() {
        return Err(Error::Argument(format!(
            "{}: has {} modes, the model has {}",
            view.name(),
            view.order(),
            model.order()
        )));
    }
    predict(model, &cells_of(view), clip, threads, monitor, take)
}

/// [`predict_all`] of `count` cells whose indices lie anywhere: `index` writes those of one cell, one
/// per mode of the model.
pub fn predict_cells(
    model: &Model,
    count: usize,
    index: impl Fn(usize, &mut [u32]) + Sync,
    clip: bool,
    threads: usize,
    monitor: &dyn Monitor,
    take: impl FnMut(Range<usize>, &[f64]) -> Result<()>,
) -> Result<()> {
    let order = model.order();
    let cells = Cells {
        count,
        order,
        index,
    };
    predict(model, &cells, clip, threads, monitor, take)
}

fn predict(
    model: &Model,
    cells: &Cells<impl Fn(usize, &mut [u32]) + Sync>,
    clip: bool,
    threads: usize,
    monitor: &dyn Monitor,
    mut take: impl FnMut(Range<usize>, &[f64]) -> Result<()>,
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
