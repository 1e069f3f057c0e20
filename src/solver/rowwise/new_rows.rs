//! Rows of one mode that are folded into a fitted model: solved or sampled given everything else.

use std::borrow::Cow;

use super::bias_regression::stored_bias;
use super::core_layout::permute_core;
use super::data_term::{DataTerm, FullMatrixTerms, map_residuals, matrix_term};
use super::default_priors::hyperprior;
use super::gaussian_prior::GaussianPrior;
use super::probit::Probit;
use super::row_tasks::RowTasks;
use super::row_update::{RowConditional, RowOutput, Shrinkage, StreamKey, update_rows};
use super::stream_ids;
use crate::error::{Error, Result};
use crate::kernel::{CoreKind, CoreShape, ModeCsr, OtherMode, Partials};
use crate::model::{FactorMatrix, ModelMode};
use crate::parallel::ThreadPool;
use crate::random::hash_words;
use crate::simd::{Level, padded_len};
use crate::solver::gram::row_moments;

/// Maximum number of passes of coordinate descent for a non-negative row: enough to converge.
const NONNEG_PASSES: usize = 10_000;

/// Number of times that latent values and new rows are sampled in turn for a posterior sample.
const LATENT_ROUNDS: u64 = 10;

/// The entries of new rows, with scaled values.
pub struct NewRowEntries<'a> {
    /// Number of the mode, counted from 0.
    pub mode: usize,
    /// The indices of the rows, ascending.
    pub indices: &'a [u32],
    /// The tensor's entries by new row. Rows of other modes that the model does not have are the mean row.
    pub tensor: ModeCsr,
    /// The entries of each matrix of the mode by new row.
    pub matrices: Vec<ModeCsr>,
    /// Instruction set of the kernels.
    pub level: Level,
}

/// The columns of a coupled matrix.
pub struct FixedMatrix<'a> {
    /// Padded.
    pub columns: &'a [f32],
    /// Factor of its squared errors.
    pub weight: f64,
    /// For a full matrix, the value of the unobserved positions of each column.
    pub unobserved_values: Option<Vec<f32>>,
}

/// All parameters but the new rows, for scaled values.
pub struct FixedModel<'a> {
    /// Shape of the core.
    pub shape: &'a CoreShape,
    /// The model's core, which is `scale` times that for scaled values.
    pub core: &'a [f32],
    /// Scale of the values.
    pub scale: f64,
    /// For each mode its rows, padded, the mean row last.
    pub rows: Vec<&'a [f32]>,
    /// For each mode the biases of these rows; empty without biases.
    pub biases: Vec<&'a [f32]>,
    /// The matrices of [`NewRowEntries::matrices`].
    pub matrices: Vec<FixedMatrix<'a>>,
    /// Factor of the squared errors of the tensor: the precision of its noise.
    pub noise_precision: f64,
    /// Present if the likelihood is probit. Tensor values are then labels.
    pub probit: Option<Probit>,
    /// The stored regression of the biases of rows without tensor entries: see `stored_bias`. Ends with the
    /// deviation if rows are sampled.
    pub cold_start_regression: &'a [f32],
}

/// The l2 penalty on new rows of a model without samples.
pub(in crate::solver) struct RowPenalties<'a> {
    /// The strength for each row.
    pub strengths: &'a [f32],
    /// The strength for biases.
    pub bias_strength: f64,
    pub nonneg: bool,
}

/// New rows, one after the other, each followed by its bias if the mode has biases.
pub struct NewRows {
    /// The rows.
    pub rows: Vec<f32>,
    /// The means of the conditional distributions that `rows` are samples of; empty if they are not samples.
    pub means: Vec<f32>,
}

/// The rows that a mode has already, with the mean row last.
#[derive(Clone, Copy)]
pub(in crate::solver) struct ModeRows<'a> {
    pub rows: &'a FactorMatrix,
    /// Empty without biases.
    pub biases: &'a [f32],
    /// All modes of the model, by their number of rows.
    pub modes_by_size: &'a [usize],
}

/// Identifies the random streams of the rows that are folded into one posterior sample.
#[derive(Clone, Copy)]
pub(in crate::solver) struct FoldInStream {
    pub seed: u64,
    /// The number of the posterior sample.
    pub sample: u64,
}

impl NewRowEntries<'_> {
    /// Solves for the rows by penalized least squares.
    pub(in crate::solver) fn solve(
        &self,
        model: &FixedModel<'_>,
        mode: &ModelMode,
        penalties: &RowPenalties<'_>,
        pool: &ThreadPool<'_>,
    ) -> Result<NewRows> {
        let size = self.row_size(model);
        let mut prior = GaussianPrior::isotropic(size, 0.0);
        if size > model.shape.ranks()[self.mode] {
            prior.set_bias_precision(penalties.bias_strength);
        }
        // Coordinate descent starts from the mean row. Non-negative models have no biases.
        let rows = model.rows[self.mode].chunks_exact(padded_len(size));
        let mean_row = rows.last().unwrap_or_default();
        let starts = if penalties.nonneg {
            mean_row.repeat(self.indices.len())
        } else {
            Vec::new()
        };
        let conditional = RowConditional {
            shrinkage: Some(Shrinkage {
                strengths: penalties.strengths,
                metric: &mode.prior.metric,
                metric_times_target: &mode.prior.linear,
            }),
            current_rows: &starts,
            nonneg_passes: penalties.nonneg.then_some(NONNEG_PASSES),
            ..RowConditional::new(&prior, RowOutput::Mean, self.level)
        };
        let mut rows = self.update(model, &self.tensor, &conditional, pool)?;
        for (i, bias) in self.cold_start_biases(model, &rows) {
            rows[(i + 1) * size - 1] = bias as f32;
        }
        Ok(NewRows {
            rows,
            means: Vec::new(),
        })
    }

    /// Samples the rows from their conditional distributions. The prior is the posterior expectation given the mode's
    /// own rows and biases.
    pub(in crate::solver) fn sample(
        &self,
        model: &FixedModel<'_>,
        mode_rows: ModeRows<'_>,
        stream: FoldInStream,
        pool: &ThreadPool<'_>,
    ) -> Result<NewRows> {
        let ModeRows {
            rows,
            biases,
            modes_by_size,
        } = mode_rows;
        // Without the mean row, which is the last.
        let moments = row_moments(rows, rows.len() - 1, biases, pool)?;
        let hyperprior = hyperprior(modes_by_size, self.mode);
        let prior = hyperprior.expectation(&moments, !biases.is_empty());
        let key = |purpose: u64| StreamKey {
            seed: stream.seed,
            purpose,
            sweep: stream.sample,
            target: self.mode as u64,
        };
        let row_key = key(stream_ids::FOLD_IN);
        let output = RowOutput::SampleAndMean(row_key);
        let conditional = RowConditional {
            stream_rows: Some(self.indices),
            ..RowConditional::new(&prior, output, self.level)
        };
        let both = match &model.probit {
            None => self.update(model, &self.tensor, &conditional, pool)?,
            Some(probit) => {
                self.update_with_latent_values(model, probit, conditional, row_key, pool)?
            }
        };
        let size = prior.size;
        let (mut rows, mut means) = (Vec::new(), Vec::new());
        for row in both.chunks_exact(2 * size) {
            rows.extend_from_slice(&row[..size]);
            means.extend_from_slice(&row[size..]);
        }
        let bias_key = key(stream_ids::COLD_START_BIASES);
        for (i, mean) in self.cold_start_biases(model, &means) {
            let deviation = f64::from(model.cold_start_regression[size]);
            let noise = bias_key
                .stream(u64::from(self.indices[i]))
                .standard_normal();
            means[(i + 1) * size - 1] = mean as f32;
            rows[(i + 1) * size - 1] = (mean + deviation * noise) as f32;
        }
        Ok(NewRows { rows, means })
    }

    /// Number of elements of a row, its bias included.
    fn row_size(&self, model: &FixedModel<'_>) -> usize {
        model.shape.ranks()[self.mode] + usize::from(!model.biases[self.mode].is_empty())
    }

    /// Predicts the biases of the rows that have no tensor entries but matrix entries, and returns them with the
    /// positions of the rows.
    fn cold_start_biases(&self, model: &FixedModel<'_>, rows: &[f32]) -> Vec<(usize, f64)> {
        let (size, rank) = (self.row_size(model), model.shape.ranks()[self.mode]);
        if size == rank || model.cold_start_regression.is_empty() {
            return Vec::new();
        }
        let is_cold = |i: usize| {
            self.tensor.row_entries(i).is_empty()
                && !self.matrices.iter().all(|m| m.row_entries(i).is_empty())
        };
        let rows = rows.chunks_exact(size).enumerate();
        rows.filter(|(i, _)| is_cold(*i))
            .map(|(i, row)| (i, stored_bias(model.cold_start_regression, &row[..rank])))
            .collect()
    }

    /// Alternately samples the latent values of the entries and the new rows. The rows start as the mean row. `key` identifies the
    /// random streams of the rows.
    fn update_with_latent_values(
        &self,
        model: &FixedModel<'_>,
        probit: &Probit,
        mut conditional: RowConditional<'_>,
        key: StreamKey,
        pool: &ThreadPool<'_>,
    ) -> Result<Vec<f32>> {
        let (n, count) = (self.mode, self.indices.len());
        let rank = model.shape.ranks()[n];
        let width = padded_len(rank);
        let mean_row = model.rows[n].chunks_exact(width).last().unwrap_or_default();
        let mut rows = mean_row.repeat(count);
        let mean_bias = model.biases[n].last();
        let mut biases = vec![0.0; mean_bias.map_or(0, |_| count)];
        biases.fill(mean_bias.copied().unwrap_or(0.0));
        let mut tensor = self.tensor.clone();
        let tasks = RowTasks::all(&[&tensor])?;
        let mut updated = Vec::new();
        for round in 0..LATENT_ROUNDS {
            let round_key = StreamKey {
                sweep: key.sweep * LATENT_ROUNDS + round,
                ..key
            };
            let latent_key = StreamKey {
                purpose: stream_ids::LATENT_VALUES,
                ..round_key
            };
            let (others, core) = self.other_rows(model, pool)?;
            let term = self.tensor_term(model, &tensor, &others, core.as_deref());
            let parts = map_residuals(&tasks, &term, &rows, &biases, pool, |range, residuals| {
                let sample = |(entry, &e): (usize, &f32)| {
                    let latent = tensor.value(entry);
                    // Entries keep their order if the rows of other entries are folded in with them.
                    let row = tensor.row_of(entry);
                    let position = (entry - tensor.row_entries(row).start) as u64;
                    let of_row = latent_key.stream_word(u64::from(self.indices[row]));
                    let x = f64::from(latent) - f64::from(e);
                    probit.sample(x, latent, hash_words(&[of_row, position]))
                };
                range.zip(residuals).map(sample).collect::<Vec<f32>>()
            })?;
            tensor.set_values(parts.into_iter().flatten());
            conditional.output = RowOutput::SampleAndMean(round_key);
            updated = self.update(model, &tensor, &conditional, pool)?;
            let size = conditional.prior.size;
            for (i, row) in updated.chunks_exact(2 * size).enumerate() {
                rows[i * width..][..rank].copy_from_slice(&row[..rank]);
                if let Some(bias) = biases.get_mut(i) {
                    *bias = row[rank];
                }
            }
        }
        Ok(updated)
    }

    /// Updates all new rows, given the values of their tensor entries.
    fn update(
        &self,
        model: &FixedModel<'_>,
        tensor: &ModeCsr,
        conditional: &RowConditional<'_>,
        pool: &ThreadPool<'_>,
    ) -> Result<Vec<f32>> {
        let rank = model.shape.ranks()[self.mode];
        let (others, core) = self.other_rows(model, pool)?;
        let mut terms = vec![self.tensor_term(model, tensor, &others, core.as_deref())];
        for (csr, matrix) in self.matrices.iter().zip(&model.matrices) {
            let full = matrix
                .unobserved_values
                .as_ref()
                .map(|values| FullMatrixTerms::of_padded_columns(matrix.columns, rank, values));
            terms.push(matrix_term(
                csr,
                matrix.columns,
                rank,
                matrix.weight,
                full,
                self.level,
            ));
        }
        let entries: Vec<&ModeCsr> = terms.iter().map(|t| t.csr).collect();
        let tasks = RowTasks::all(&entries)?;
        let rows = update_rows(&tasks, &terms, conditional, pool)?;
        if rows.iter().all(|x| x.is_finite()) {
            Ok(rows)
        } else {
            Err(Error::argument(
                "the rows that these entries determine are not finite; scale down the values",
            ))
        }
    }

    /// Returns the rows of the other modes, and the core in the order of partial derivatives if it is full.
    pub fn other_rows<'m>(
        &self,
        model: &FixedModel<'m>,
        pool: &ThreadPool<'_>,
    ) -> Result<OtherRows<'m>> {
        let (shape, n) = (model.shape, self.mode);
        let rank = shape.ranks()[n];
        let others = self.tensor.other_modes();
        let mut other_rows: Vec<Cow<'m, [f32]>> = others
            .iter()
            .map(|&m| Cow::Borrowed(model.rows[m]))
            .collect();
        let core = match shape.kind() {
            CoreKind::Full => {
                let order: Vec<usize> = others.iter().copied().chain([n]).collect();
                let core = permute_core(shape, model.core, &order, model.scale, pool.monitor())?;
                Some(core)
            }
            CoreKind::Diagonal => {
                // Partial derivatives are products of rows, so the core is multiplied into the rows of the smallest
                // of the other modes.
                let scaled = model
                    .core
                    .iter()
                    .map(|g| (f64::from(*g) / model.scale) as f32);
                let core: Vec<f32> = scaled.collect();
                for row in other_rows[0].to_mut().chunks_exact_mut(padded_len(rank)) {
                    row.iter_mut().zip(&core).for_each(|(u, g)| *u *= g);
                }
                None
            }
        };
        Ok((other_rows, core))
    }

    /// The squared errors of the tensor as a function of the new rows.
    fn tensor_term<'t>(
        &self,
        model: &'t FixedModel<'_>,
        tensor: &'t ModeCsr,
        other_rows: &'t [Cow<'_, [f32]>],
        core: Option<&'t [f32]>,
    ) -> DataTerm<'t> {
        DataTerm {
            csr: tensor,
            partials: self.partials(model, other_rows, core),
            weight: model.noise_precision,
            has_bias: !model.biases[self.mode].is_empty(),
            full_matrix: None,
        }
    }

    /// The partial derivatives of tensor entries by a new row, given what [`Self::other_rows`] returned.
    pub fn partials<'t>(
        &self,
        model: &'t FixedModel<'_>,
        other_rows: &'t [Cow<'_, [f32]>],
        core: Option<&'t [f32]>,
    ) -> Partials<'t> {
        let others = self.tensor.other_modes();
        let others = others.iter().zip(other_rows).map(|(&m, rows)| OtherMode {
            rows,
            rank: model.shape.ranks()[m],
            biases: model.biases[m],
        });
        Partials {
            others: others.collect(),
            core,
            rank: model.shape.ranks()[self.mode],
            level: self.level,
        }
    }
}

/// The rows of all modes but that of the new rows, and the full core, for scaled values.
pub(in crate::solver) type OtherRows<'m> = (Vec<Cow<'m, [f32]>>, Option<Vec<f32>>);
