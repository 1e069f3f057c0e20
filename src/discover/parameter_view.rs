//! Read access to one set of model parameters: the model's own, or those of one posterior sample.

use crate::model::{Model, PosteriorSample, PosteriorSamples, QuantizedRows};

/// The parameters of the model itself, or of one of its posterior samples.
#[derive(Clone, Copy)]
pub(super) struct ParameterView<'a> {
    model: &'a Model,
    sample: Option<(&'a PosteriorSamples, &'a PosteriorSample)>,
    use_conditional_means: bool,
}

impl<'a> ParameterView<'a> {
    /// Returns one view per posterior sample, or the model's own view if it has no samples.
    ///
    /// With `use_conditional_means`, rows of the mode whose conditional means are stored (`conditional_means`) are those
    /// means instead of the sampled rows. Predictions then have the same expectation and less Monte Carlo variance
    /// (Rao-Blackwellization).
    pub(super) fn per_sample(
        model: &'a Model,
        use_conditional_means: bool,
    ) -> Vec<ParameterView<'a>> {
        let view = |sample| ParameterView {
            model,
            sample,
            use_conditional_means,
        };
        match model.samples() {
            None => vec![view(None)],
            Some(samples) => samples.iter().map(|s| view(Some((samples, s)))).collect(),
        }
    }

    /// Returns the view of the model's own factors and core. In a model with samples they are the last sample.
    pub(super) fn own(model: &'a Model) -> ParameterView<'a> {
        ParameterView {
            model,
            sample: None,
            use_conditional_means: false,
        }
    }

    pub(super) fn core(&self) -> &'a [f32] {
        match self.sample {
            Some((_, sample)) if !sample.core.is_empty() => &sample.core,
            _ => self.model.core(),
        }
    }

    /// The global mean, an additive term of every prediction.
    pub(super) fn mean(&self) -> f64 {
        match self.sample {
            None => self.model.mean(),
            Some((samples, _)) => samples.mean(),
        }
    }

    fn sample_rows(
        &self,
        samples: &PosteriorSamples,
        sample: &'a PosteriorSample,
        mode: usize,
    ) -> &'a QuantizedRows {
        if self.use_conditional_means && mode == samples.conditional_mode() {
            &sample.conditional_means
        } else {
            &sample.modes[mode]
        }
    }

    /// Writes the factor values of a compact row, without padding.
    #[inline]
    pub(super) fn read(&self, mode: usize, row: usize, out: &mut [f32]) {
        match self.sample {
            None => out.copy_from_slice(self.model.modes()[mode].factor.row(row)),
            Some((samples, sample)) => self.sample_rows(samples, sample, mode).read_row(row, out),
        }
    }

    /// Returns the bias of a compact row; 0 in a model without biases.
    #[inline]
    pub(super) fn bias(&self, mode: usize, row: usize) -> f64 {
        match self.sample {
            None => {
                let bias = self.model.modes()[mode].biases.get(row);
                bias.copied().map_or(0.0, f64::from)
            }
            Some((samples, sample)) if samples.has_biases() => {
                let rows = self.sample_rows(samples, sample, mode);
                samples.scale() * f64::from(rows.last_value(row))
            }
            Some(_) => 0.0,
        }
    }
}
