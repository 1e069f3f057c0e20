//! The solver: the sweep over the modes, and the interface to the driver.

use super::dense::{factor_rows, orthonormalize_columns, round_to_f32, store_rows};
use super::factor_update::leading_left_vectors;
use super::mode_entries::TuckerMode;
use super::objective::objective;
use super::unfolding::Unfolding;
use super::workers::Workers;
use crate::algorithms::stream_ids;
use s3cmtf::error::Result;
use s3cmtf::internals::Model;
use s3cmtf::internals::SquaredErrors;
use s3cmtf::internals::{Algorithm, EpochRequest, FitContext, TrainingError};
use s3cmtf_kernel::random::hash_words;

/// `tucker-als` on one problem.
pub(crate) struct TuckerAlsSolver {
    pub(super) modes: Vec<TuckerMode>,
    /// The modes in the order of their updates, by their number of rows.
    pub(super) modes_by_size: Vec<usize>,
    /// |X|^2.
    pub(super) squares: f64,
    pub(super) seed: u64,
}

impl TuckerAlsSolver {
    /// Returns the seed of random columns of mode `n`.
    fn basis_seed(&self, n: usize) -> u64 {
        hash_words(&[self.seed, stream_ids::BASIS, n as u64])
    }

    /// Makes all factors orthonormal and computes the core and the columns of matrices from them.
    pub(super) fn orthonormalize(&self, model: &mut Model, workers: Workers<'_>) -> Result<()> {
        for n in 0..model.order() {
            let count = model.modes[n].rows.len();
            let mut factor = factor_rows(&model.modes[n].factor, count, workers)?;
            let rank = model.shape.ranks()[n];
            orthonormalize_columns(&mut factor, rank, self.basis_seed(n), workers)?;
            round_to_f32(&mut factor, rank, workers)?;
            self.store_factor(model, n, &factor, workers)?;
        }
        let last = self.modes_by_size[self.modes_by_size.len() - 1];
        let count = model.modes[last].rows.len();
        let factor = factor_rows(&model.modes[last].factor, count, workers)?;
        let unfolding = Unfolding::new(&self.modes[last], model, workers)?;
        let core = unfolding.core(model, last, &factor)?;
        drop(unfolding);
        store_core(model, &core)
    }

    /// Writes the rows of a factor, and V = Y^T A for its matrices, into the model.
    fn store_factor(
        &self,
        model: &mut Model,
        n: usize,
        rows: &[f64],
        workers: Workers<'_>,
    ) -> Result<()> {
        store_rows(rows, &mut model.modes[n].factor, workers)?;
        for matrix in &self.modes[n].matrices {
            let factor = &mut model.matrices[matrix.number].factor;
            let (rank, stride) = (factor.rank(), factor.stride());
            let to = (factor.as_mut_slice()?, stride);
            matrix.write_transposed_product((rows, rank), 1.0, workers, to, |x| x as f32)?;
        }
        Ok(())
    }
}

/// Returns the threads of a fit.
pub(super) fn workers<'a>(context: &'a FitContext<'_>) -> Workers<'a> {
    Workers {
        pool: &context.pool,
        level: context.level,
    }
}

/// Writes a core without padding into the model.
fn store_core(model: &mut Model, core: &[f64]) -> Result<()> {
    let rounded: Vec<f32> = core.iter().map(|&g| g as f32).collect();
    model
        .core
        .copy_from_slice(&model.shape.padded_core(&rounded)?);
    Ok(())
}

impl Algorithm for TuckerAlsSolver {
    fn epoch(
        &mut self,
        model: &mut Model,
        context: &FitContext<'_>,
        _: EpochRequest,
    ) -> Result<f64> {
        let workers = workers(context);
        let mut core = Vec::new();
        for (k, &n) in self.modes_by_size.iter().enumerate() {
            let unfolding = Unfolding::new(&self.modes[n], model, workers)?;
            let current = &model.modes[n].factor;
            let rank = current.rank();
            let mut factor =
                leading_left_vectors(&unfolding, current, self.basis_seed(n), workers)?;
            round_to_f32(&mut factor, rank, workers)?;
            if k + 1 == self.modes_by_size.len() {
                core = unfolding.core(model, n, &factor)?;
            }
            drop(unfolding);
            self.store_factor(model, n, &factor, workers)?;
        }
        store_core(model, &core)?;
        Ok(0.0)
    }

    fn training_error(
        &self,
        model: &Model,
        context: &FitContext<'_>,
        squared_errors: Option<SquaredErrors>,
    ) -> Result<TrainingError> {
        let data = &context.data;
        let squared_errors = match squared_errors {
            Some(known) => known,
            None => context.squared_errors(model, &data.tensor)?,
        };
        let smallest = self.modes_by_size[0];
        let mode = (smallest, &self.modes[smallest]);
        Ok(TrainingError {
            rmse: context.rmse(squared_errors, data.tensor_weight),
            loss: objective(model, data, mode, self.squares, workers(context))?,
        })
    }

    fn can_diverge(&self) -> bool {
        false
    }

    fn finish(&mut self, model: &mut Model, _: &FitContext<'_>) -> Result<()> {
        model.orthogonal = true;
        Ok(())
    }
}
