//! New rows of a model, or of each of its posterior samples.

use std::sync::Arc;

use super::extended_mode::ExtendedMode;
use super::input::FoldIn;
use super::units::Units;
use crate::error::{Error, Result};
use crate::model::{FactorMatrix, Model, ModelMatrix, PosteriorSample, QuantizedRows};
use crate::parallel::ThreadPool;
use crate::problem::MatrixKind;
use crate::progress::{Monitor, report_progress};
use crate::solver::algorithm_factory;
use crate::solver::row_penalty::RowPenalty;
use crate::solver::rowwise::{
    FixedMatrix, FixedModel, FoldInStream, ModeRows, NewRowEntries, NewRows, Probit, RowPenalties,
    cold_start_weight, restore_quantized,
};
use crate::sort::stable_sort_by_key;

/// Smallest noise variance of a posterior sample: a sample without training error still leaves rows a distribution.
const MIN_NOISE_VARIANCE: f64 = 1e-12;

/// Folds new rows into a model.
pub(super) struct FoldInSolver<'a> {
    pub model: &'a Model,
    pub input: &'a FoldIn<'a>,
    pub entries: &'a NewRowEntries<'a>,
    pub units: &'a Units,
    pub pool: &'a ThreadPool<'a>,
    pub monitor: &'a dyn Monitor,
}

impl FoldInSolver<'_> {
    /// Returns the model with the new rows.
    pub(super) fn extended_model(&self) -> Result<Model> {
        let (model, n) = (self.model, self.input.mode);
        let extension = ExtendedMode::new(&model.modes[n].rows, self.entries.indices)?;
        let mut extended = model.try_clone()?;
        let new = match model.samples() {
            None => self.solve()?,
            Some(_) => self.extend_samples(&mut extended, &extension)?,
        };
        let (mode, old) = (&mut extended.modes[n], &model.modes[n]);
        let row_count = self.entries.indices.len();
        let (rank, size) = (old.factor.rank(), new.rows.len() / row_count);
        let new_rows = || new.rows.chunks_exact(size);
        mode.factor = extension.merge_rows(&old.factor, new_rows().map(|r| &r[..rank]))?;
        if !old.biases.is_empty() {
            let bias = |r: &[f32]| (f64::from(r[rank]) * self.units.scale) as f32;
            mode.biases = extension.merge_list(&old.biases, new_rows().map(bias));
        }
        let tensor = &self.entries.tensor;
        let counts = (0..row_count).map(|i| tensor.row_entries(i).len() as u64);
        mode.counts = Arc::new(extension.merge_list(&old.counts, counts));
        let weights: Vec<f64> = (0..row_count).map(|i| tensor.row_weight(i)).collect();
        let is_count = |i: usize| weights[i] == tensor.row_entries(i).len() as f64;
        if !old.weights.is_empty() || !(0..row_count).all(is_count) {
            let old_weights: Vec<f64> = (0..old.counts.len()).map(|i| old.row_weight(i)).collect();
            mode.weights = extension.merge_list(&old_weights, weights.into_iter());
        }
        mode.rows = extension.map.clone();
        Ok(extended)
    }

    /// The matrices of the input, with their scaled padded columns and the factors of their squared errors.
    fn fixed_matrices<'s>(
        &self,
        columns: &'s [Vec<f32>],
        weight: impl Fn(usize) -> f64,
    ) -> Vec<FixedMatrix<'s>> {
        let given = self.input.matrices.iter().zip(columns);
        given
            .map(|(given, columns)| FixedMatrix {
                columns,
                weight: weight(given.number),
                unobserved_values: self.unobserved_values(given.number),
            })
            .collect()
    }

    /// The total weight of the entries of a new row in each matrix.
    fn matrix_weights(&self, row: usize) -> impl Iterator<Item = f64> {
        let given = self.input.matrices.iter().zip(&self.entries.matrices);
        given.map(move |(given, csr)| {
            let matrix = &self.model.matrices[given.number];
            match matrix.kind {
                MatrixKind::Full => matrix.columns.len() as f64,
                _ => csr.row_weight(row),
            }
        })
    }

    /// The scaled value of the unobserved positions of each column of a full matrix.
    fn unobserved_values(&self, number: usize) -> Option<Vec<f32>> {
        let matrix = &self.model.matrices[number];
        let scale = self.units.matrix_scales[number];
        let offset = |k: usize| f64::from(matrix.offsets.get(k).copied().unwrap_or(0.0));
        let value = |k: usize| (-offset(k) / scale) as f32;
        let columns = 0..matrix.columns.len();
        (matrix.kind == MatrixKind::Full).then(|| columns.map(value).collect())
    }

    /// The scaled padded columns of each matrix of the input: those of the model.
    fn scaled_columns(&self) -> Vec<Vec<f32>> {
        let scaled = |number: usize| {
            let scale = self.units.matrix_scales[number];
            let columns = self.model.matrices[number].factor.as_slice().iter();
            columns.map(|v| (f64::from(*v) / scale) as f32).collect()
        };
        let given = self.input.matrices.iter();
        given.map(|given| scaled(given.number)).collect()
    }

    /// The same of a posterior sample, whose columns are scaled.
    fn columns_of_sample(&self, sample: &PosteriorSample) -> Vec<Vec<f32>> {
        let padded = |m: usize| padded_columns(&sample.columns[m], &self.model.matrices[m]);
        let given = self.input.matrices.iter();
        given.map(|given| padded(given.number)).collect()
    }

    /// The weight of a matrix: that of the input, or of the fit.
    fn weight(&self, number: usize) -> f64 {
        let given = self.input.matrices.iter().find(|m| m.number == number);
        let own = self.model.matrices[number].weight;
        given.and_then(|m| m.weight).unwrap_or(own)
    }

    /// The strength of the penalty of each row, as in the fit.
    fn penalty_strengths(&self) -> Vec<f32> {
        let options = &self.model.options;
        let penalty = RowPenalty {
            lambda: match options.algorithm.properties().has_penalties {
                true => options.lambda_reg.unwrap_or(0.0),
                false => 0.0,
            },
            per: options.penalty_per,
        };
        let strength = |i: usize| {
            let weight = match self.entries.tensor.row_weight(i) {
                0.0 if options.is_zero_filled() => 1.0,
                // The penalty of a row without tensor entries grows with its matrix entries.
                0.0 => cold_start_weight(self.matrix_weights(i)),
                weight => weight,
            };
            penalty.of_row(weight) as f32
        };
        (0..self.entries.indices.len()).map(strength).collect()
    }

    /// Solves for the rows of a model without posterior samples.
    fn solve(&self) -> Result<NewRows> {
        let (model, n) = (self.model, self.input.mode);
        let scale = self.units.scale;
        let scaled = |x: &[f32]| x.iter().map(|x| (f64::from(*x) / scale) as f32).collect();
        let biases: Vec<Vec<f32>> = model.modes.iter().map(|m| scaled(&m.biases)).collect();
        let columns = self.scaled_columns();
        let regression: Vec<f32> = scaled(&model.modes[n].prior.cold_bias);
        let fixed = FixedModel {
            shape: &model.shape,
            core: &model.core,
            scale,
            rows: model.modes.iter().map(|m| m.factor.as_slice()).collect(),
            biases: biases.iter().map(Vec::as_slice).collect(),
            matrices: self.fixed_matrices(&columns, |m| self.weight(m)),
            noise_precision: 1.0,
            probit: None,
            cold_start_regression: &regression,
        };
        let strengths = self.penalty_strengths();
        let algorithm = algorithm_factory::definition(&model.options);
        let solved = algorithm.solve_new_rows(model, &fixed, self.entries, &strengths, self.pool);
        if let Some(rows) = solved {
            return rows;
        }
        let penalties = RowPenalties {
            strengths: &strengths,
            bias_strength: model.options.bias_penalty(n),
            nonneg: model.options.nonneg,
        };
        self.entries
            .solve(&fixed, &model.modes[n], &penalties, self.pool)
    }

    /// Samples rows for every posterior sample and extends the samples by them. Returns rows for the state of the chain
    /// that the model's own rows are.
    fn extend_samples(&self, extended: &mut Model, extension: &ExtendedMode) -> Result<NewRows> {
        let (model, n) = (self.model, self.input.mode);
        let Some(samples) = &mut extended.samples else {
            return Err(Error::argument("the model has no posterior samples"));
        };
        let count = samples.samples.len();
        let mut rows: Vec<FactorMatrix> = model
            .modes
            .iter()
            .map(|m| m.factor.try_clone())
            .collect::<Result<_>>()?;
        let mut biases = samples.biases.clone();
        let scale = samples.scale;
        for k in 0..count {
            self.report(k, count)?;
            let sample = samples.samples[k].clone();
            for m in 0..model.order() {
                restore_quantized(&sample.modes[m], &mut rows[m], &mut biases[m])?;
            }
            let state = ChainState {
                rows: rows.iter().collect(),
                biases: &biases,
                core: if sample.core.is_empty() {
                    &model.core
                } else {
                    &sample.core
                },
                columns: self.columns_of_sample(&sample),
            };
            let new = self.sample_rows(&state, &sample, k, scale)?;
            let size = new.rows.len() / self.entries.indices.len();
            let mut merged = (*sample).clone();
            merged.modes[n] = extension.merge_quantized(&sample.modes[n], size, &new.rows)?;
            if samples.conditional_mode == n {
                merged.conditional_means =
                    extension.merge_quantized(&sample.conditional_means, size, &new.means)?;
            }
            samples.samples[k] = Arc::new(merged);
        }
        self.report(count, count)?;
        // The current state of the chain has the hyperparameters of the last sample.
        let last = count - 1;
        let state = ChainState {
            rows: model.modes.iter().map(|m| &m.factor).collect(),
            biases: &samples.biases,
            core: &model.core,
            columns: self.scaled_columns(),
        };
        let sample = samples.samples[last].clone();
        let new = self.sample_rows(&state, &sample, last, scale)?;
        let rank = model.shape.ranks()[n];
        let size = new.rows.len() / self.entries.indices.len();
        if let Some(factors) = samples.noise_factors.rows.get_mut(n) {
            let ones = std::iter::repeat_n(1.0, self.entries.indices.len());
            *factors = extension.merge_list(factors, ones);
        }
        if samples.has_biases {
            let new_biases = new.rows.chunks_exact(size).map(|r| r[rank]);
            samples.biases[n] = extension.merge_list(&samples.biases[n], new_biases);
        }
        Ok(new)
    }

    fn report(&self, done: usize, count: usize) -> Result<()> {
        report_progress(self.monitor, "folding in", done as u64, count as u64 + 1)
    }

    /// Samples rows given a state of the chain, and noise and matrix weights of posterior sample `number`.
    fn sample_rows(
        &self,
        state: &ChainState<'_>,
        sample: &PosteriorSample,
        number: usize,
        scale: f64,
    ) -> Result<NewRows> {
        let (model, n) = (self.model, self.input.mode);
        let matrix_weight = |m: usize| {
            let fit_weight = model.matrices[m].weight;
            if fit_weight > 0.0 {
                sample.weights[m] * (self.weight(m) / fit_weight)
            } else {
                // A matrix without weight has no precision either.
                0.0
            }
        };
        let ratio = model.samples.as_ref().map_or(1.0, |s| s.noise_ratio);
        let link = model.samples.as_ref().and_then(|s| s.link);
        let probit = link.map(|link| Probit::from_link(&link, self.units.mean, scale));
        let noise_variance = ratio
            * match &probit {
                Some(probit) => probit.variance(),
                None => (sample.noise_deviation / scale).powi(2),
            };
        let fixed = FixedModel {
            shape: &model.shape,
            core: state.core,
            scale,
            rows: state.rows.iter().map(|rows| rows.as_slice()).collect(),
            biases: state.biases.iter().map(Vec::as_slice).collect(),
            matrices: self.fixed_matrices(&state.columns, matrix_weight),
            noise_precision: 1.0 / noise_variance.max(MIN_NOISE_VARIANCE),
            probit,
            cold_start_regression: sample.cold_bias.get(n).map_or(&[], Vec::as_slice),
        };
        let mut modes_by_size: Vec<usize> = (0..model.order()).collect();
        stable_sort_by_key(&mut modes_by_size, &|&m| model.modes[m].rows.len());
        let mode_rows = ModeRows {
            rows: state.rows[n],
            biases: &state.biases[n],
            modes_by_size: &modes_by_size,
        };
        let stream = FoldInStream {
            seed: model.options.seed,
            sample: number as u64,
        };
        self.entries.sample(&fixed, mode_rows, stream, self.pool)
    }
}

/// The parameters of a posterior sample, or of the model itself.
struct ChainState<'a> {
    rows: Vec<&'a FactorMatrix>,
    biases: &'a [Vec<f32>],
    core: &'a [f32],
    /// Scaled padded columns of the matrices of the input.
    columns: Vec<Vec<f32>>,
}

/// Returns the columns of a matrix in a posterior sample, padded.
fn padded_columns(columns: &QuantizedRows, matrix: &ModelMatrix) -> Vec<f32> {
    let (rank, stride) = (matrix.factor.rank(), matrix.factor.stride());
    let mut padded = vec![0.0; matrix.factor.len() * stride];
    for (i, row) in padded.chunks_exact_mut(stride).enumerate() {
        columns.read_row(i, &mut row[..rank]);
    }
    padded
}
