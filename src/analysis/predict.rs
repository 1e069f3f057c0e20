//! Predictions of a factor model.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::format::CooView;
use crate::kernel::{Level, Method, TensorKernel};
use crate::model::{Model, Predict};
use crate::monitor::{Monitor, step};
use crate::options::KernelChoice;

/// A model ready to predict, with the buffers that needs.
pub struct Predictor<'a> {
    model: &'a Model,
    kernel: TensorKernel,
    rows: Vec<f32>,
}

impl<'a> Predictor<'a> {
    /// For this model. Fails only if the environment forces a kernel level that is not there.
    pub fn new(model: &'a Model) -> Result<Self> {
        let level = Level::choose(KernelChoice::Auto)?;
        Ok(Predictor {
            kernel: TensorKernel::new(model.shape(), Method::Shared(level)),
            rows: vec![0.0; model.shape().rows_len()],
            model,
        })
    }
}

impl Predict for Predictor<'_> {
    /// Rows never seen predict as the mean row of their mode.
    fn predict(&mut self, index: &[u32]) -> f64 {
        let shape = self.model.shape();
        for (n, &i) in index.iter().enumerate() {
            let row = self.model.row_of(n, i) as usize;
            self.rows[shape.row(n)].copy_from_slice(self.model.modes()[n].factor.padded_row(row));
        }
        f64::from(self.kernel.value(self.model.core(), &self.rows))
    }
}

/// Predicts every cell listed in `view` (its values do not matter) and hands the predictions over in
/// pieces, with the range of entries they belong to. `clip` limits them to the range of the training
/// values.
pub fn predict_all(
    model: &Model,
    view: &CooView<'_>,
    clip: bool,
    monitor: &dyn Monitor,
    mut take: impl FnMut(Range<usize>, &[f64]) -> Result<()>,
) -> Result<()> {
    const CHUNK: usize = 1 << 15;
    if view.order() != model.order() {
        return Err(Error::Argument(format!(
            "{}: has {} modes, the model has {}",
            view.name(),
            view.order(),
            model.order()
        )));
    }
    let mut predictor = Predictor::new(model)?;
    let (low, high) = model.range();
    let mut index = vec![0; view.order()];
    let mut out = Vec::with_capacity(CHUNK);
    for start in (0..view.len()).step_by(CHUNK) {
        step(monitor, "predicting", start as u64, view.len() as u64)?;
        let range = start..(start + CHUNK).min(view.len());
        out.clear();
        for i in range.clone() {
            for (n, slot) in index.iter_mut().enumerate() {
                *slot = view.column(n)[i];
            }
            let x = predictor.predict(&index);
            out.push(if clip { x.clamp(low, high) } else { x });
        }
        take(range, &out)?;
    }
    Ok(())
}
