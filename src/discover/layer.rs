//! The numbers of a model as the layers of a pass: the model itself, or each of its samples.

use crate::model::{Model, Sample, SampleRows, Samples};

/// The model, or one of its samples.
#[derive(Clone, Copy)]
pub(super) struct Layer<'a> {
    model: &'a Model,
    sample: Option<(&'a Samples, &'a Sample)>,
    smooth: bool,
}

impl<'a> Layer<'a> {
    /// What the numbers of a model are: its own, or those of its samples; of their smooth rows if asked for.
    pub(super) fn all(model: &'a Model, smooth: bool) -> Vec<Layer<'a>> {
        let of = |sample| Layer {
            model,
            sample,
            smooth,
        };
        match model.samples() {
            None => vec![of(None)],
            Some(samples) => samples.list().map(|s| of(Some((samples, s)))).collect(),
        }
    }

    /// Its own numbers, which are those of the last draw if it has samples.
    pub(super) fn own(model: &'a Model) -> Layer<'a> {
        Layer {
            model,
            sample: None,
            smooth: false,
        }
    }

    pub(super) fn core(&self) -> &'a [f32] {
        match self.sample {
            Some((_, sample)) if !sample.core.is_empty() => &sample.core,
            _ => self.model.core(),
        }
    }

    /// What is added to every prediction.
    pub(super) fn mean(&self) -> f64 {
        match self.sample {
            None => self.model.mean(),
            Some((samples, _)) => samples.mean(),
        }
    }

    fn sample_rows(&self, samples: &Samples, sample: &'a Sample, mode: usize) -> &'a SampleRows {
        match self.smooth && mode == samples.smooth_mode() {
            true => &sample.smooth,
            false => &sample.modes[mode],
        }
    }

    /// Writes a compact row without its padding.
    pub(super) fn read(&self, mode: usize, row: usize, out: &mut [f32]) {
        match self.sample {
            None => out.copy_from_slice(self.model.modes()[mode].factor.row(row)),
            Some((samples, sample)) => self.sample_rows(samples, sample, mode).read(row, out),
        }
    }

    /// What is added to predictions for a compact row.
    pub(super) fn bias(&self, mode: usize, row: usize) -> f64 {
        match self.sample {
            None => {
                let bias = self.model.modes()[mode].biases.get(row);
                bias.copied().map_or(0.0, f64::from)
            }
            Some((samples, sample)) if samples.biased() => {
                let rows = self.sample_rows(samples, sample, mode);
                samples.scale() * f64::from(rows.last(row))
            }
            Some(_) => 0.0,
        }
    }
}
