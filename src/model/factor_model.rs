//! The fitted model: a core, factors of modes and of coupled matrices, mean and biases.

use std::path::Path;

use super::factors::{ModelMatrix, ModelMode};
use super::fit_record::{EpochMetrics, FitRecord};
use super::posterior_samples::PosteriorSamples;
use crate::error::{Error, Result};
use crate::fit_plan::FitPlan;
use crate::format::{CooView, ModelNames, RowMatcher};
use crate::kernel::CoreShape;
use crate::options::Options;
use crate::simd::{AlignedVec, LANES};
use crate::try_alloc::{CORE_ENTRIES, try_to_vec};
use crate::value_range::ValueRange;

/// An index that stands for the mean row of its mode.
///
/// The model is multilinear, so the prediction for the mean row is the mean of the predictions over all rows, weighted by
/// their tensor entries.
pub const AVERAGE_ROW: u32 = u32::MAX;

/// A fitted model.
pub struct Model {
    #[doc(hidden)]
    pub shape: CoreShape,
    #[doc(hidden)]
    pub core: AlignedVec,
    #[doc(hidden)]
    pub modes: Vec<ModelMode>,
    #[doc(hidden)]
    pub matrices: Vec<ModelMatrix>,
    /// Mean of the training values, added to every prediction; 0 if it was not subtracted.
    pub(crate) mean: f64,
    /// Factor of squared errors of the original values in the objective. `None` in a model that was not fitted.
    pub(crate) precision: Option<f64>,
    /// What the weights of the tensor's entries were divided by, [`ModelMode::weights`] among them.
    pub(crate) weight_unit: f64,
    pub(crate) range: ValueRange,
    /// Whether predictions are clipped to the range unless asked otherwise.
    pub(crate) clips: bool,
    pub(crate) options: Options,
    /// The plan of the fit; `None` for a model that was not fitted.
    pub(crate) plan: Option<FitPlan>,
    pub(crate) history: Vec<EpochMetrics>,
    pub(crate) record: FitRecord,
    #[doc(hidden)]
    pub orthogonal: bool,
    pub(crate) samples: Option<PosteriorSamples>,
    /// During a fit: the prior mean of a full core, in standardized values. Empty if it is 0.
    #[doc(hidden)]
    pub core_prior_mean: Vec<f32>,
}

/// Returns an error if `view` does not have `order` modes, those of a model.
pub(crate) fn check_order(order: usize, view: &CooView<'_>) -> Result<()> {
    if view.order() == order {
        return Ok(());
    }
    Err(Error::argument(format!(
        "{}: has {} modes, the model has {order}",
        view.name(),
        view.order(),
    )))
}

impl Model {
    /// Returns an error if the number of modes of `view` differs from that of the model.
    pub fn check_order(&self, view: &CooView<'_>) -> Result<()> {
        check_order(self.order(), view)
    }

    /// Returns the number of modes.
    #[inline]
    pub fn order(&self) -> usize {
        self.modes.len()
    }

    /// Returns the size of each mode.
    pub fn dims(&self) -> Vec<u64> {
        self.modes.iter().map(|m| m.rows.dim()).collect()
    }

    /// Loads the names of rows and columns that are beside the file `path` of this model.
    pub fn row_names(&self, path: &Path) -> Result<ModelNames> {
        ModelNames::load(path, self.order(), self.matrices.len())
    }

    /// Returns a matcher for the rows and columns of this model, which was read from `path`.
    pub fn row_matcher(&self, path: &Path) -> Result<RowMatcher> {
        let name = path.display().to_string();
        Ok(self.matcher_with(name, self.row_names(path)?))
    }

    /// Returns a matcher for the rows and columns of this model with these names. Messages call it `name`.
    pub(crate) fn matcher_with(&self, name: String, names: ModelNames) -> RowMatcher {
        let widths: Vec<u64> = self.matrices.iter().map(|m| m.columns.dim()).collect();
        RowMatcher::of_model(name, &self.dims(), &widths, names)
    }

    /// Returns the ranks and the kind of the core.
    #[inline]
    pub fn shape(&self) -> &CoreShape {
        &self.shape
    }

    /// Returns the core in the layout that [`CoreShape`] describes.
    #[inline]
    pub fn core(&self) -> &[f32] {
        &self.core
    }

    /// Returns the parameters of each mode.
    #[inline]
    pub fn modes(&self) -> &[ModelMode] {
        &self.modes
    }

    /// Returns the parameters of each coupled matrix.
    pub fn matrices(&self) -> &[ModelMatrix] {
        &self.matrices
    }

    /// Returns the constant of every prediction: the mean of the training values, or 0.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Returns the sum of the mean and the biases of `rows`, one compact row per mode.
    ///
    /// # Panics
    /// If there are more rows than modes.
    #[inline]
    pub fn baseline(&self, rows: impl Iterator<Item = u32>) -> f64 {
        let mut sum = 0.0;
        for (n, row) in rows.enumerate() {
            if let Some(&bias) = self.modes[n].biases.get(row as usize) {
                sum += f64::from(bias);
            }
        }
        self.mean + sum
    }

    /// Returns the smallest and the largest training value.
    pub fn range(&self) -> ValueRange {
        self.range
    }

    /// Returns whether predictions are clipped to the range of the training values unless asked otherwise: the option `clip` of
    /// the fit, or by default whether the values have a bounded scale.
    pub fn clips(&self) -> bool {
        self.clips
    }

    /// Returns the plan of the fit; `None` for a model that was not fitted.
    pub fn plan(&self) -> Option<&FitPlan> {
        self.plan.as_ref()
    }

    /// Returns the options of the fit.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Returns the metrics of every epoch of the fit.
    pub fn history(&self) -> &[EpochMetrics] {
        &self.history
    }

    /// Returns the events of the fit and its outcome, as far as they are known.
    pub fn record(&self) -> &FitRecord {
        &self.record
    }

    /// Returns whether the columns of the factors are orthonormal.
    pub fn is_orthogonal(&self) -> bool {
        self.orthogonal
    }

    /// Returns the posterior samples that predictions are averaged over, if the model has any. Factors, core, columns of
    /// matrices and biases of the model are then those of the last sample.
    #[inline]
    pub fn samples(&self) -> Option<&PosteriorSamples> {
        self.samples.as_ref().filter(|s| !s.is_empty())
    }

    /// Returns the compact row of `index` in mode `n`, or the mean row if the index has no training data or is [`AVERAGE_ROW`].
    #[inline]
    pub fn row_of(&self, n: usize, index: u32) -> u32 {
        let mode = &self.modes[n];
        mode.rows.compact(index).unwrap_or(mode.rows.len() as u32)
    }

    /// Returns a copy that owns all its parameters.
    pub fn try_clone(&self) -> Result<Model> {
        let mut modes = Vec::new();
        for mode in &self.modes {
            modes.push(ModelMode {
                rows: mode.rows.clone(),
                counts: mode.counts.clone(),
                weights: try_to_vec(&mode.weights, "rows")?,
                factor: mode.factor.try_clone()?,
                biases: try_to_vec(&mode.biases, "biases")?,
                prior: mode.prior.clone(),
            });
        }
        let mut matrices = Vec::new();
        for matrix in &self.matrices {
            matrices.push(ModelMatrix {
                columns: matrix.columns.clone(),
                factor: matrix.factor.try_clone()?,
                offsets: try_to_vec(&matrix.offsets, "offsets")?,
                ..*matrix
            });
        }
        Ok(Model {
            shape: self.shape.clone(),
            core: AlignedVec::try_from_slice(&self.core, CORE_ENTRIES)?,
            modes,
            matrices,
            mean: self.mean,
            precision: self.precision,
            weight_unit: self.weight_unit,
            range: self.range,
            options: self.options.clone(),
            plan: self.plan.clone(),
            history: self.history.clone(),
            record: self.record.clone(),
            orthogonal: self.orthogonal,
            core_prior_mean: try_to_vec(&self.core_prior_mean, CORE_ENTRIES)?,
            samples: self.samples.clone(),
            clips: self.clips,
        })
    }

    /// Returns a CRC-32 of the parameters from which another fit can start.
    pub(crate) fn checksum(&self) -> u32 {
        let mut crc = crc32fast::Hasher::new();
        crc.update(bytemuck::cast_slice(&self.core));
        for mode in &self.modes {
            mode.rows
                .indices()
                .for_each(|i| crc.update(&i.to_le_bytes()));
            crc.update(bytemuck::cast_slice(mode.factor.as_slice()));
            crc.update(bytemuck::cast_slice(&mode.biases));
        }
        for matrix in &self.matrices {
            crc.update(bytemuck::cast_slice(matrix.factor.as_slice()));
        }
        crc.finalize()
    }

    /// Gives a model of posterior samples the mean and the biases of its last sample, in the form that models without
    /// samples have.
    pub(crate) fn apply_sample_biases(&mut self) {
        let Some(samples) = &self.samples else {
            return;
        };
        self.mean = samples.mean;
        for (mode, biases) in self.modes.iter_mut().zip(&samples.biases) {
            mode.biases = biases.iter().map(|&b| samples.unscale(b)).collect();
        }
    }

    /// Returns whether every parameter is finite.
    pub fn is_finite(&self) -> bool {
        let factors = self
            .modes
            .iter()
            .map(|m| &m.factor)
            .chain(self.matrices.iter().map(|m| &m.factor));
        let biases = self.modes.iter().map(|m| &m.biases);
        let offsets = self.matrices.iter().map(|m| &m.offsets);
        self.core.iter().all(|g| g.is_finite())
            && self.mean.is_finite()
            && biases.chain(offsets).flatten().all(|x| x.is_finite())
            && self.modes.iter().all(|m| m.prior.is_finite())
            && self
                .samples
                .as_ref()
                .is_none_or(PosteriorSamples::is_finite)
            && factors.into_iter().all(|f| {
                // The compiler vectorizes a loop over a whole line.
                let lines = f.as_slice().as_chunks::<LANES>().0;
                let is_finite =
                    |line: &[f32; LANES]| line.iter().fold(true, |f, x| f & x.is_finite());
                lines.iter().all(is_finite)
            })
    }

    /// Returns the approximate memory of the parameters, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let factors = self.modes.iter().map(|m| &m.factor);
        let columns = self.matrices.iter().map(|m| &m.factor);
        let floats: usize = factors.chain(columns).map(|f| f.as_slice().len()).sum();
        let samples = self.samples.as_ref().map_or(0, |s| s.samples.len());
        // Samples keep 16 bits per value.
        4 * (floats + self.core.len()) + 2 * samples * floats
    }
}
