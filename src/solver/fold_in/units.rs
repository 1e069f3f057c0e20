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
        match model.samples() {
            Some(samples) => Units {
                mean: samples.mean(),
                scale: samples.scale(),
                matrix_scales: vec![1.0; model.matrices.len()],
            },
            None => Units {
                mean: model.mean,
                scale: deviation(model.precision),
                matrix_scales: model
                    .matrices
                    .iter()
                    .map(|m| deviation(m.precision))
                    .collect(),
            },
        }
    }
}
