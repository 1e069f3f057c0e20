//! The factor model: rows per mode, a core, and rows for the columns of every coupled matrix.

use std::sync::Arc;

use super::record::FitRecord;
use super::rows::FactorMatrix;
use super::samples::PosteriorSamples;
use crate::error::{Error, Result};
use crate::format::{CooView, RowMap};
use crate::kernel::{CoreKind, CoreShape};
use crate::simd::AlignedVec;

use crate::options::{ModelKind, Options};
use crate::problem::{MatrixKind, Problem};
use crate::try_alloc::try_to_vec;

/// A core of more entries than this (64 MiB) is refused: J^N grows fast.
const LARGEST_CORE: usize = 1 << 24;

/// The rows of one mode.
pub struct ModelMode {
    /// Which rows exist.
    pub rows: Arc<RowMap>,
    /// How many tensor entries each row had.
    pub counts: Vec<u64>,
    /// What they weighed together; empty if entries had no weights.
    pub weights: Vec<f64>,
    /// One row per row that exists, and behind them their mean by the weight of their entries, which
    /// stands in for rows never seen.
    pub factor: FactorMatrix,
    /// What is added to predictions for each row that exists, and behind them their mean by entries, for rows never seen.
    /// Empty if the model has no biases.
    pub biases: Vec<f32>,
    /// What a row is thought to be like before its entries are seen, which rows that are folded in later
    /// need.
    pub(crate) prior: RowPrior,
}

/// What a penalty pulls the rows of a mode to, and the bias that goes with what matrices say of a row.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowPrior {
    /// The penalty of a row u is `u M u^T - 2 u . pull`, times a number: M, row-major without padding;
    /// empty if it is the identity.
    pub metric: Vec<f32>,
    /// One number per number of a row; empty if all are 0.
    pub linear: Vec<f32>,
    /// The bias of a row without tensor entries is the product of these with the row that its matrices
    /// give, plus the last of them. Empty if nothing is known.
    pub cold_bias: Vec<f32>,
}

impl ModelMode {
    /// What the tensor entries of a row weigh together.
    pub(crate) fn weight(&self, row: usize) -> f64 {
        let counted = || self.counts[row] as f64;
        self.weights.get(row).copied().unwrap_or_else(counted)
    }

    /// The same of all rows.
    pub(crate) fn total(&self) -> f64 {
        (0..self.counts.len()).map(|i| self.weight(i)).sum()
    }

    /// The mean of some biases of its rows, by what the entries of these weigh; 0 if there are none.
    pub(crate) fn mean_bias(&self, biases: &[f32]) -> f32 {
        let total = self.total();
        let biases = biases.iter().enumerate();
        let sum: f64 = biases.map(|(i, &b)| f64::from(b) * self.weight(i)).sum();
        (sum / if total > 0.0 { total } else { 1.0 }) as f32
    }
}

/// The rows that belong to the columns of a coupled matrix.
pub struct ModelMatrix {
    /// The mode it is coupled to, counted from 0.
    pub mode: usize,
    /// Its weight.
    pub weight: f64,
    /// The penalty on its columns, if it has one of its own.
    pub penalty: Option<f64>,
    /// What it is; a graph has no rows of its own.
    pub kind: MatrixKind,
    /// Which columns exist.
    pub columns: Arc<RowMap>,
    /// One row per column that exists.
    pub factor: FactorMatrix,
    /// What is added to predictions for each column. Empty if there are no offsets.
    pub offsets: Vec<f32>,
    /// What squared errors of values as they are counted in the fit, before the weight; `None` in models
    /// of earlier versions.
    pub(crate) precision: Option<f64>,
}

/// The figures of one epoch. What was not measured is NaN.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EpochMetrics {
    /// The epoch, counted from 1.
    pub epoch: u64,
    /// Its step size.
    pub eta: f64,
    /// The training loss: the paper's f, and half the squares of the biases times their penalty.
    pub loss: f64,
    /// Error on the training entries.
    pub train_rmse: f64,
    /// Error on the test entries.
    pub test_rmse: f64,
    /// Error on the validation entries.
    pub valid_rmse: f64,
    /// Seconds spent updating.
    pub update_seconds: f64,
    /// Seconds spent measuring errors.
    pub eval_seconds: f64,
    /// Tensor and matrix entries per second of updating.
    pub entries_per_second: f64,
}

/// A fitted model.
pub struct Model {
    pub(crate) shape: CoreShape,
    pub(crate) core: AlignedVec,
    pub(crate) modes: Vec<ModelMode>,
    pub(crate) matrices: Vec<ModelMatrix>,
    /// Added to every prediction.
    pub(crate) mean: f64,
    /// What squared errors of values as they are counted in the fit; `None` in models of earlier versions.
    pub(crate) precision: Option<f64>,
    pub(crate) range: (f64, f64),
    pub(crate) options: Options,
    pub(crate) history: Vec<EpochMetrics>,
    pub(crate) record: FitRecord,
    pub(crate) orthogonal: bool,
    pub(crate) samples: Option<PosteriorSamples>,
    /// During a fit: what a full core is pulled to, at the scale of the fit; empty if it is not.
    pub(crate) core_prior_mean: Vec<f32>,
}

impl Model {
    /// A model of zeros for `problem`, its ranks as `options` say but never above the rows a mode
    /// has. Also returns what was lowered, for the user to know.
    pub(crate) fn zeros(problem: &Problem<'_>, options: &Options) -> Result<(Model, Vec<String>)> {
        let kind = match options.model {
            ModelKind::Cp => CoreKind::Diagonal,
            _ => CoreKind::Full,
        };
        let (ranks, lowered) = ranks_for(problem, options, kind)?;
        let size = ranks
            .iter()
            .try_fold(1usize, |size, &j| size.checked_mul(j));
        if kind == CoreKind::Full && size.is_none_or(|s| s > LARGEST_CORE) {
            return Err(Error::argument(format!(
                "a core of {} entries is more than the {LARGEST_CORE} allowed; lower the ranks or fit a cp model",
                ranks
                    .iter()
                    .map(usize::to_string)
                    .collect::<Vec<_>>()
                    .join(" x ")
            )));
        }
        let shape = CoreShape::new(kind, &ranks);
        let mut modes = Vec::new();
        for (mode, &rank) in problem.modes().iter().zip(&ranks) {
            modes.push(ModelMode {
                rows: mode.rows().clone(),
                counts: try_to_vec(mode.counts(), "rows")?,
                weights: try_to_vec(mode.weights(), "rows")?,
                factor: FactorMatrix::zeros(mode.rows().len() + 1, rank)?,
                biases: Vec::new(),
                prior: RowPrior::default(),
            });
        }
        let mut matrices = Vec::new();
        for (m, weight) in problem
            .matrices()
            .iter()
            .zip(problem.matrix_weights(options)?)
        {
            matrices.push(ModelMatrix {
                mode: m.mode,
                weight,
                penalty: m.penalty,
                kind: m.kind,
                columns: m.columns.rows().clone(),
                factor: FactorMatrix::zeros(m.columns.rows().len(), ranks[m.mode])?,
                offsets: Vec::new(),
                precision: None,
            });
        }
        let model = Model {
            core: AlignedVec::try_zeroed(shape.core_len(), "numbers of the core")?,
            shape,
            modes,
            matrices,
            mean: 0.0,
            precision: None,
            range: problem.range(),
            options: options.clone(),
            history: Vec::new(),
            record: FitRecord::default(),
            orthogonal: false,
            core_prior_mean: Vec::new(),
            samples: None,
        };
        Ok((model, lowered))
    }

    /// Refuses entries of another number of modes.
    pub fn check_order(&self, view: &CooView<'_>) -> Result<()> {
        if view.order() == self.order() {
            return Ok(());
        }
        Err(Error::argument(format!(
            "{}: has {} modes, the model has {}",
            view.name(),
            view.order(),
            self.order()
        )))
    }

    /// The number of modes.
    pub fn order(&self) -> usize {
        self.modes.len()
    }

    /// The size of each mode.
    pub fn dims(&self) -> Vec<u64> {
        self.modes.iter().map(|m| m.rows.dim()).collect()
    }

    /// The ranks and the kind of core.
    pub fn shape(&self) -> &CoreShape {
        &self.shape
    }

    /// The core, laid out as [`CoreShape`] says.
    pub fn core(&self) -> &[f32] {
        &self.core
    }

    /// The modes.
    pub fn modes(&self) -> &[ModelMode] {
        &self.modes
    }

    /// The coupled matrices.
    pub fn matrices(&self) -> &[ModelMatrix] {
        &self.matrices
    }

    /// What is added to every prediction: the mean of the training values, or 0.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The sum of mean and biases for these compact rows, one per mode.
    pub fn baseline(&self, rows: impl Iterator<Item = u32>) -> f64 {
        let bias = |(mode, row): (&ModelMode, u32)| mode.biases.get(row as usize).copied();
        let biases = self.modes.iter().zip(rows).filter_map(bias);
        self.mean + biases.map(f64::from).sum::<f64>()
    }

    /// The smallest and the largest training value.
    pub fn range(&self) -> (f64, f64) {
        self.range
    }

    /// The options it was fitted with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The figures of every epoch it was fitted for.
    pub fn history(&self) -> &[EpochMetrics] {
        &self.history
    }

    /// What happened in the fit and how it ended, as far as that is known.
    pub fn record(&self) -> &FitRecord {
        &self.record
    }

    /// Whether the columns of the factors are orthonormal.
    pub fn is_orthogonal(&self) -> bool {
        self.orthogonal
    }

    /// The samples that predictions are averaged over, if the model has some. Factors, core, columns of
    /// matrices and biases are then those of the last draw.
    pub fn samples(&self) -> Option<&PosteriorSamples> {
        self.samples.as_ref().filter(|s| !s.is_empty())
    }

    /// The compact row that stands for `index` in mode `n`: the mean row if it was never seen.
    pub fn row_of(&self, n: usize, index: u32) -> u32 {
        let mode = &self.modes[n];
        mode.rows.compact(index).unwrap_or(mode.rows.len() as u32)
    }

    /// A copy whose numbers can be changed.
    pub fn try_clone(&self) -> Result<Model> {
        let mut modes = Vec::new();
        for mode in &self.modes {
            modes.push(ModelMode {
                rows: mode.rows.clone(),
                counts: try_to_vec(&mode.counts, "rows")?,
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
            core: self.core.clone(),
            modes,
            matrices,
            mean: self.mean,
            precision: self.precision,
            range: self.range,
            options: self.options.clone(),
            history: self.history.clone(),
            record: self.record.clone(),
            orthogonal: self.orthogonal,
            core_prior_mean: self.core_prior_mean.clone(),
            samples: self.samples.clone(),
        })
    }

    /// Recomputes the mean rows.
    pub(crate) fn update_mean_rows(&mut self) -> Result<()> {
        for mode in &mut self.modes {
            let (n, stride, rank) = (mode.rows.len(), mode.factor.stride(), mode.factor.rank());
            let mut mean = vec![0.0f64; rank];
            let total = mode.total();
            if total > 0.0 {
                let rows = mode.factor.as_slice().chunks_exact(stride);
                for (i, row) in rows.take(n).enumerate() {
                    let share = mode.weight(i) / total;
                    mean.iter_mut()
                        .zip(row)
                        .for_each(|(m, &u)| *m += share * f64::from(u));
                }
            }
            let slot = &mut mode.factor.as_mut_slice()?[n * stride..][..rank];
            slot.iter_mut().zip(mean).for_each(|(s, m)| *s = m as f32);
        }
        Ok(())
    }

    /// Whether every number is finite.
    pub(crate) fn is_finite(&self) -> bool {
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
            && factors
                .into_iter()
                .all(|f| f.as_slice().iter().all(|x| x.is_finite()))
    }

    /// About how much memory its numbers take.
    pub(crate) fn bytes(&self) -> usize {
        let factors = self.modes.iter().map(|m| &m.factor);
        let columns = self.matrices.iter().map(|m| &m.factor);
        let numbers: usize = factors.chain(columns).map(|f| f.as_slice().len()).sum();
        let samples = self.samples.as_ref().map_or(0, |s| s.samples.len());
        // A sample has half as many bits for a number.
        4 * (numbers + self.core.len()) + 2 * samples * numbers
    }

    /// A copy of all numbers that fitting changes.
    pub(crate) fn snapshot(&self) -> Result<ParameterSnapshot> {
        Ok(ParameterSnapshot {
            core: self.core.to_vec(),
            factors: self
                .modes
                .iter()
                .map(|m| m.factor.try_clone())
                .collect::<Result<_>>()?,
            biases: self
                .modes
                .iter()
                .map(|m| try_to_vec(&m.biases, "biases"))
                .collect::<Result<_>>()?,
            columns: self
                .matrices
                .iter()
                .map(|m| m.factor.try_clone())
                .collect::<Result<_>>()?,
        })
    }

    /// Goes back to such a copy.
    pub(crate) fn restore(&mut self, from: &ParameterSnapshot) -> Result<()> {
        self.core.copy_from_slice(&from.core);
        for (mode, rows) in self.modes.iter_mut().zip(&from.factors) {
            mode.factor.copy_from(rows)?;
        }
        for (mode, biases) in self.modes.iter_mut().zip(&from.biases) {
            mode.biases.copy_from_slice(biases);
        }
        for (matrix, rows) in self.matrices.iter_mut().zip(&from.columns) {
            matrix.factor.copy_from(rows)?;
        }
        Ok(())
    }
}

impl RowPrior {
    fn is_finite(&self) -> bool {
        [&self.metric, &self.linear, &self.cold_bias]
            .into_iter()
            .flatten()
            .all(|x| x.is_finite())
    }
}

/// A copy of all numbers of a model that fitting changes.
pub(crate) struct ParameterSnapshot {
    pub core: Vec<f32>,
    pub factors: Vec<FactorMatrix>,
    pub columns: Vec<FactorMatrix>,
    pub biases: Vec<Vec<f32>>,
}

impl ParameterSnapshot {
    /// Overwrites the copy with the present numbers of `model`.
    pub(crate) fn update(&mut self, model: &Model) -> Result<()> {
        self.core.copy_from_slice(&model.core);
        for (rows, mode) in self.factors.iter_mut().zip(&model.modes) {
            rows.copy_from(&mode.factor)?;
        }
        for (biases, mode) in self.biases.iter_mut().zip(&model.modes) {
            biases.copy_from_slice(&mode.biases);
        }
        for (rows, matrix) in self.columns.iter_mut().zip(&model.matrices) {
            rows.copy_from(&matrix.factor)?;
        }
        Ok(())
    }
}

/// The rank of each mode, lowered to the rows it has.
fn ranks_for(
    problem: &Problem<'_>,
    options: &Options,
    kind: CoreKind,
) -> Result<(Vec<usize>, Vec<String>)> {
    let order = problem.order();
    if options.rank.is_empty() {
        return Err(Error::argument("the rank is not settled"));
    }
    if options.rank.len() != 1 && options.rank.len() != order {
        return Err(Error::argument(format!(
            "{} ranks for {order} modes; give one, or one per mode",
            options.rank.len()
        )));
    }
    let asked = |n: usize| {
        if options.rank.len() == 1 {
            options.rank[0]
        } else {
            options.rank[n]
        }
    };
    if kind == CoreKind::Diagonal && (1..order).any(|n| asked(n) != asked(0)) {
        return Err(Error::argument(
            "a cp model has the same rank in every mode",
        ));
    }
    let mut ranks = Vec::new();
    let mut lowered = Vec::new();
    for (n, mode) in problem.modes().iter().enumerate() {
        let rows = mode.rows().len().max(1);
        // The diagonal core of cp needs equal ranks, and more components than rows are meant there.
        if kind == CoreKind::Full && asked(n) > rows {
            lowered.push(format!(
                "mode {} has {rows} rows; its rank is lowered from {} to that",
                n + 1,
                asked(n)
            ));
            ranks.push(rows);
        } else {
            ranks.push(asked(n));
        }
    }
    Ok((ranks, lowered))
}
