//! Units in which values and biases are near 1, whatever the scale of the data.

use crate::model::Model;

/// The affine map from values of the data to scaled values: subtract the mean, then divide by the scale.
pub(super) struct Units {
    pub mean: f64,
    /// Scale of the tensor's values and of biases.
    pub scale: f64,
    /// Scale of the values of each matrix.
    pub matrix_scales: Vec<f64>,
}

impl Units {
    /// The units of the fit: those of the posterior samples, or the standard deviations of the noise.
    pub(super) fn of(model: &Model) -> Units {
        let deviation = |precision: Option<f64>| precision.map_or(1.0, |p| p.powf(-0.5));
        let matrices = model.matrices.iter();
        let (mean, scale) = match model.samples() {
            Some(samples) => (samples.mean(), samples.scale()),
            None => (model.mean, deviation(model.precision)),
        };
        Units {
            mean,
            scale,
            matrix_scales: matrices.map(|m| deviation(m.precision)).collect(),
        }
    }
}
