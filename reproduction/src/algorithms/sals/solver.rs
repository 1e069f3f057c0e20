//! The solver: the passes over the blocks of columns, and the interface to the driver.

use super::mode_entries::SalsMode;
use super::packed_factors::PackedFactors;
use super::residuals::{compute_residuals, exchange_blocks};
use super::row_update::update_rows;
use s3cmtf::error::Result;
use s3cmtf::internals::Model;
use s3cmtf::internals::{Algorithm, EpochRequest, FitContext};

/// `sals` on one problem.
pub(crate) struct SalsSolver {
    pub(super) modes: Vec<SalsMode>,
    /// The modes in the order of their updates, by their number of rows.
    pub(super) modes_by_size: Vec<usize>,
    /// The factors of the model, during an epoch.
    pub(super) factors: PackedFactors,
    /// Number of updates of all modes for each block.
    pub(super) inner_epochs: u64,
}

impl Algorithm for SalsSolver {
    fn epoch(
        &mut self,
        model: &mut Model,
        context: &FitContext<'_>,
        _: EpochRequest,
    ) -> Result<f64> {
        let FitContext {
            standardization,
            level,
            pool,
            ..
        } = context;
        let (biases, level) = (&standardization.biases, *level);
        self.factors.load(model, pool)?;
        let blocks = &mut self.factors.blocks;
        for (n, mode) in self.modes.iter_mut().enumerate() {
            let columns = blocks[0].columns.clone();
            compute_residuals(mode, n, model, biases, columns, level, pool)?;
        }
        for k in 0..blocks.len() {
            for _ in 0..self.inner_epochs {
                for &n in &self.modes_by_size {
                    update_rows(&self.modes[n], n, &mut blocks[k], level, pool)?;
                }
            }
            if let Some(next) = blocks.get(k + 1) {
                for (n, mode) in self.modes.iter_mut().enumerate() {
                    exchange_blocks(mode, n, &blocks[k], next, level, pool)?;
                }
            }
        }
        self.factors.store(model, pool)?;
        model.update_mean_rows_with(pool)?;
        Ok(0.0)
    }

    fn can_diverge(&self) -> bool {
        false
    }
}
