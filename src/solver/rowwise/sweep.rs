//! One sweep: the update of the rows of every mode, the columns of its matrices, and the core, each given all others.

use super::core_update::CoreUpdate;
use super::data_term::{DataTerm, FullMatrixTerms};
use super::gaussian_prior::GaussianPrior;
use super::holdout::{HoldoutEntries, MeasureRequest, Measurement};
use super::prediction_window::SampleValues;
use super::problem::{RowwiseMatrix, RowwiseProblem};
use super::row_update::{RowConditional, RowOutput, Shrinkage, StreamKey, update_rows};
use super::state::{Sweep, SweepState};
use super::stream_ids;
use super::update::Update;
use crate::error::Result;
use crate::linalg::WARM_START_PASSES;
use crate::model::Model;
use crate::parallel::ThreadPool;
use crate::simd::padded_len;
use crate::trace::{self, SpanKind};
use crate::try_alloc::{try_to_vec, try_zeroed};

impl RowwiseProblem {
    /// Updates everything once, from the smallest mode to the largest, then the core. If it is cancelled, model and state
    /// are unusable. Sweeps that are kept also sample biases for rows without tensor entries.
    pub(super) fn sweep(
        &mut self,
        model: &mut Model,
        state: &mut SweepState,
        sweep: Sweep,
        pool: &ThreadPool<'_>,
    ) -> Result<()> {
        let number = sweep.number;
        state.noise_precision = self.noise_precision(model, state, number, pool)?;
        let has_factors = !state.noise.has_biases_only;
        if sweep.is_burn_in && has_factors {
            self.restart_components(model, state, number, pool)?;
        }
        let mut matrix_weights = vec![0.0; model.matrices.len()];
        for matrix in &self.matrices {
            let precision = self.matrix_precision(model, matrix, number, pool)?;
            matrix_weights[matrix.number] = matrix.weight * precision;
        }
        state.matrix_weights = matrix_weights;
        for n in self.modes_by_size.clone() {
            self.sample_latent_values(n, model, state, number, n as u64, pool)?;
            self.update_mode(model, state, n, number, pool)?;
            if sweep.is_kept {
                self.sample_cold_start_biases(model, state, n, number, pool)?;
            }
            for matrix in self.matrices.iter().filter(|m| m.mode == n && has_factors) {
                self.update_columns(model, state, matrix, number, pool)?;
            }
        }
        let mode = self.modes_by_size[0];
        if self.core_sums.is_some() && has_factors {
            let target = model.order() as u64;
            self.sample_latent_values(mode, model, state, number, target, pool)?;
        }
        if let Some(sums) = self.core_sums.as_ref().filter(|_| has_factors) {
            let _span = trace::span(SpanKind::Core);
            let update = CoreUpdate {
                update: self.update,
                noise_precision: state.noise_precision,
                sweep: number,
                scale: self.scaling.scale,
                modes_by_size: &self.modes_by_size,
                level: self.level,
                csr: &self.tensor[mode],
                mode,
                sums,
            };
            update.run(model, &state.biases, pool)?;
        }
        model.update_mean_rows()?;
        state.squared_error = None;
        Ok(())
    }

    /// Updates the rows of mode `n` and their biases.
    fn update_mode(
        &self,
        model: &mut Model,
        state: &mut SweepState,
        n: usize,
        sweep: u64,
        pool: &ThreadPool<'_>,
    ) -> Result<()> {
        let _span = trace::span(SpanKind::Rows);
        let prior = self.row_prior(&model.modes[n].factor, state, n, sweep, pool)?;
        if state.noise.has_biases_only {
            state.row_priors[n] = Some(prior);
            return self.update_biases_only(model, state, n, sweep, pool);
        }
        let core = self.permuted_core(model, n, pool)?;
        let keeps_means = n == self.largest_mode();
        if keeps_means {
            let means = &mut state.conditional_means;
            if means.rows.is_empty() {
                means.rows = try_zeroed(model.modes[n].factor.as_slice().len(), "row elements")?;
            }
            means.biases = try_to_vec(&state.biases[n], "biases")?;
        }
        // The rows of a batch are updated in parallel, given those of the others.
        for tasks in &self.row_tasks[n] {
            let core = core.as_deref();
            let alpha = state.noise_precision;
            let mut terms = vec![self.tensor_term(model, &state.biases, n, core, alpha)];
            let weight = |matrix: &RowwiseMatrix| state.matrix_weights[matrix.number];
            terms.extend(self.matrix_terms(model, n, weight, pool)?);
            let graphs = self.graphs.iter().filter(|g| g.mode == n);
            let penalty = &self.penalties[n];
            let conditional = RowConditional {
                fixed_biases: if self.has_biases {
                    &[]
                } else {
                    &state.biases[n]
                },
                shrinkage: self.shrinkage(&penalty.strengths, &penalty.target),
                current_rows: model.modes[n].factor.as_slice(),
                nonneg_passes: self.nonneg_passes(),
                graphs: graphs.map(|g| (&g.adjacency, g.weight * alpha)).collect(),
                ..RowConditional::new(
                    &prior,
                    self.output(sweep, n as u64, keeps_means, state),
                    self.level,
                )
            };
            let updated = update_rows(tasks, &terms, &conditional, pool)?;
            let updated = UpdatedRows {
                mode: n,
                sweep,
                rows: &tasks.rows,
                row_len: conditional.output_len(),
                size: prior.size,
                values: &updated,
            };
            self.store_rows(model, state, &updated)?;
        }
        if self.has_biases
            && let Some((mean, biases)) = state.biases[n].split_last_mut()
        {
            *mean = model.modes[n].mean_bias(biases);
        }
        if keeps_means && let Some((mean, biases)) = state.conditional_means.biases.split_last_mut()
        {
            *mean = model.modes[n].mean_bias(biases);
        }
        state.row_priors[n] = Some(prior);
        Ok(())
    }

    /// Stores updated rows, biases and conditional means of a mode. The uninformed sweep keeps spectral rows as they are.
    fn store_rows(
        &self,
        model: &mut Model,
        state: &mut SweepState,
        updated: &UpdatedRows<'_>,
    ) -> Result<()> {
        let n = updated.mode;
        let (rank, width) = (model.shape.ranks()[n], padded_len(model.shape.ranks()[n]));
        let is_kept = updated.sweep == self.uninformed_sweep && self.spectral_modes.contains(&n);
        let grams = self.unfolding_grams.iter();
        let kept = grams.filter(|_| is_kept).find(|g| g.mode == n);
        let rows = model.modes[n].factor.as_mut_slice()?;
        let values = updated.values.chunks_exact(updated.row_len.max(1));
        for (&i, values) in updated.rows.iter().zip(values) {
            let i = i as usize;
            let range = i * width..i * width + rank;
            if !kept.is_some_and(|gram| gram.covers_row(i)) {
                rows[range.clone()].copy_from_slice(&values[..rank]);
            }
            if self.has_biases {
                state.biases[n][i] = values[rank];
            }
            // With conditional means a row is a sample followed by its mean.
            let mean = &values[updated.size..];
            if !mean.is_empty() {
                let means = &mut state.conditional_means;
                means.rows[range].copy_from_slice(&mean[..rank]);
                if self.has_biases {
                    means.biases[i] = mean[rank];
                }
            }
        }
        Ok(())
    }

    /// Updates the columns of a matrix.
    fn update_columns(
        &self,
        model: &mut Model,
        state: &SweepState,
        matrix: &RowwiseMatrix,
        sweep: u64,
        pool: &ThreadPool<'_>,
    ) -> Result<()> {
        let _span = trace::span(SpanKind::Rows);
        let columns = &model.matrices[matrix.number].factor;
        let (rank, width) = (columns.rank(), columns.stride());
        let prior: GaussianPrior = self.column_prior(matrix, columns, sweep, pool)?;
        let target = stream_ids::FIRST_MATRIX + matrix.number as u64;
        let conditional = RowConditional {
            shrinkage: self.shrinkage(&matrix.column_penalties, &[]),
            current_rows: columns.as_slice(),
            nonneg_passes: self.nonneg_passes(),
            ..RowConditional::new(&prior, self.output(sweep, target, false, state), self.level)
        };
        let rows = &model.modes[matrix.mode].factor;
        let full = matrix.full.as_deref();
        let full = full.map(|full| FullMatrixTerms::of_columns(full, rows, pool));
        let weight = state.matrix_weights[matrix.number];
        let term = [self.matrix_term(&matrix.by_column, rows, weight, full.transpose()?)];
        let tasks = &matrix.column_tasks;
        let updated = update_rows(tasks, &term, &conditional, pool)?;
        let columns = model.matrices[matrix.number].factor.as_mut_slice()?;
        let columns = columns.chunks_exact_mut(width);
        for (column, updated) in columns.zip(updated.chunks_exact(prior.size)) {
            column[..rank].copy_from_slice(&updated[..rank]);
        }
        Ok(())
    }

    /// The penalty on rows; `None` for `gibbs`, whose rows have a prior instead.
    fn shrinkage<'r>(&self, strengths: &'r [f32], target: &'r [f32]) -> Option<Shrinkage<'r>> {
        let shrinkage = Shrinkage {
            strengths,
            metric: &[],
            metric_times_target: target,
        };
        matches!(self.update, Update::LeastSquares { .. }).then_some(shrinkage)
    }

    fn nonneg_passes(&self) -> Option<usize> {
        let is_nonneg = matches!(self.update, Update::LeastSquares { nonneg: true, .. });
        is_nonneg.then_some(WARM_START_PASSES)
    }

    /// Whether an update of the rows of a mode or the columns of a matrix returns samples, means or both.
    pub(super) fn output(
        &self,
        sweep: u64,
        target: u64,
        keeps_means: bool,
        state: &SweepState,
    ) -> RowOutput {
        let Update::Sample { seed } = self.update else {
            return RowOutput::Mean;
        };
        if state.noise.has_biases_only && !keeps_means {
            return RowOutput::Mean;
        }
        let key = StreamKey {
            seed,
            purpose: stream_ids::ROWS,
            sweep,
            target,
        };
        if keeps_means {
            RowOutput::SampleAndMean(key)
        } else {
            RowOutput::Sample(key)
        }
    }

    /// Measures the model on test or validation entries, with conditional means instead of samples for the largest
    /// mode if there are some.
    pub(super) fn measure(
        &self,
        model: &Model,
        state: &SweepState,
        entries: &HoldoutEntries,
        wants_predictions: bool,
        pool: &ThreadPool<'_>,
    ) -> Result<Measurement> {
        let n = entries.mode;
        let core = self.permuted_core(model, n, pool)?;
        let mut partials = self.partials(model, &state.biases, n, core.as_deref());
        let mut rows = model.modes[n].factor.as_slice();
        let mut biases = &state.biases[n][..];
        let means = &state.conditional_means;
        if !means.rows.is_empty() {
            let largest = self.largest_mode();
            let mut others = self.tensor[n].other_modes().iter();
            match others.position(|&m| m == largest) {
                Some(k) => {
                    partials.others[k].rows = &means.rows;
                    partials.others[k].biases = &means.biases;
                }
                None => (rows, biases) = (&means.rows, &means.biases),
            }
        }
        let term = DataTerm {
            csr: &entries.csr,
            partials,
            weight: 1.0,
            has_bias: self.has_biases,
            full_matrix: None,
        };
        let probit = self.probit;
        let expected_value = |x: f64| probit.map_or(x, |p| p.expected_value(x, 0.0));
        let request = MeasureRequest {
            scaling: self.scaling,
            expected_value: &expected_value,
            wants_predictions,
        };
        entries.measure(&term, rows, biases, &request, pool)
    }
}

impl RowwiseProblem {
    /// Returns the values of the model for test or validation entries, from conditional means and from sampled rows.
    pub(super) fn sample_values(
        &self,
        model: &Model,
        state: &mut SweepState,
        entries: &HoldoutEntries,
        pool: &ThreadPool<'_>,
    ) -> Result<SampleValues> {
        let smoothed = self.measure(model, state, entries, true, pool)?;
        let means = std::mem::take(&mut state.conditional_means);
        let sampled = self.measure(model, state, entries, true, pool);
        state.conditional_means = means;
        Ok(SampleValues {
            smoothed: smoothed.predictions,
            sampled: sampled?.predictions,
        })
    }
}

/// The result of an update of the rows of a mode.
struct UpdatedRows<'a> {
    mode: usize,
    sweep: u64,
    /// The rows that were updated.
    rows: &'a [u32],
    /// Number of floats per row: `size`, or twice that with conditional means.
    row_len: usize,
    /// Number of elements of a row, its bias included.
    size: usize,
    values: &'a [f32],
}
