//! The affine map between values of the data and the values that `gibbs` works with.

use crate::error::Result;
use crate::solver::entries::EntryList;
use crate::try_alloc::try_collect;
use crate::value_range::ValueRange;

/// A value of the data is `scale` times the scaled value plus `offset`.
#[derive(Debug, Clone, Copy)]
pub(super) struct ValueScaling {
    pub scale: f64,
    pub offset: f64,
    /// The range of the training values, which predictions are clipped to, less the mean that the driver has subtracted.
    pub range: ValueRange,
}

impl ValueScaling {
    /// Leaves values as they are.
    pub(super) fn identity(range: ValueRange) -> ValueScaling {
        ValueScaling {
            scale: 1.0,
            offset: 0.0,
            range,
        }
    }

    /// Gives values weighted mean 0 and a standard deviation between 0.7 and 1.4. The scale is a power of two, so
    /// scaling does not round.
    pub(super) fn standardizing(entries: &EntryList, range: ValueRange) -> ValueScaling {
        let total = entries.total_weight();
        let total = if total > 0.0 { total } else { 1.0 };
        let weighted_mean = |f: &dyn Fn(f64) -> f64| {
            let terms = entries.values.iter().enumerate();
            let terms = terms.map(|(i, &x)| f64::from(entries.weight(i)) * f(f64::from(x)));
            terms.sum::<f64>() / total
        };
        let mean = weighted_mean(&|x| x);
        let variance = weighted_mean(&|x| (x - mean).powi(2));
        let scale = variance.sqrt().log2().round().exp2();
        // Equal values have no scale; their variance is rounding error.
        let is_constant = !(scale.is_normal() && variance > 1e-12 * mean * mean);
        ValueScaling {
            scale: if is_constant { 1.0 } else { scale },
            offset: mean,
            range,
        }
    }

    /// Returns values of the data as scaled values.
    pub(super) fn scaled(&self, values: &[f32]) -> Result<Vec<f32>> {
        let scaled = values
            .iter()
            .map(|&x| ((f64::from(x) - self.offset) / self.scale) as f32);
        try_collect(values.len(), scaled, "entries")
    }

    /// Returns a scaled value as a value of the data.
    pub(super) fn unscaled(&self, value: f64) -> f64 {
        value * self.scale + self.offset
    }

    /// Limits a value of the data to the range of the training values.
    pub(super) fn clipped(&self, value: f64) -> f64 {
        self.range.clip(value)
    }
}
