//! Copies of the parameters of a model, to return to after divergence or at the best epoch.

use super::factor_matrix::{CompactRows, FactorMatrix};
use super::factor_model::Model;
use crate::error::Result;
use crate::try_alloc::{CORE_ENTRIES, try_to_vec};

/// A copy of core, factors, matrix columns and biases, from which [`Model::restore`] restores a model.
pub(crate) struct ParameterSnapshot {
    pub core: Vec<f32>,
    /// Factor of each mode.
    pub factors: Vec<CompactRows>,
    /// V of each coupled matrix.
    pub columns: Vec<FactorMatrix>,
    /// Biases of each mode.
    pub biases: Vec<Vec<f32>>,
}

impl ParameterSnapshot {
    /// Overwrites the copy with the present parameters of `model`, which must have the same shape.
    pub(crate) fn update(&mut self, model: &Model) -> Result<()> {
        self.core.copy_from_slice(&model.core);
        for (rows, mode) in self.factors.iter_mut().zip(&model.modes) {
            rows.copy_from(&mode.factor);
        }
        for (biases, mode) in self.biases.iter_mut().zip(&model.modes) {
            biases.copy_from_slice(&mode.biases);
        }
        for (rows, matrix) in self.columns.iter_mut().zip(&model.matrices) {
            rows.copy_from(&matrix.factor)?;
        }
        Ok(())
    }

    /// Returns whether every parameter is finite.
    pub(super) fn is_finite(&self) -> bool {
        let factors = self.factors.iter().flat_map(CompactRows::rows).flatten();
        let columns = self.columns.iter().flat_map(FactorMatrix::as_slice);
        let biases = self.biases.iter().flatten();
        let mut all = self.core.iter().chain(factors).chain(columns).chain(biases);
        all.all(|x| x.is_finite())
    }
}

impl Model {
    /// Returns a copy of all parameters that fitting updates.
    pub(crate) fn snapshot(&self) -> Result<ParameterSnapshot> {
        Ok(ParameterSnapshot {
            core: try_to_vec(&self.core, CORE_ENTRIES)?,
            factors: self
                .modes
                .iter()
                .map(|m| CompactRows::copy_of(&m.factor))
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

    /// Overwrites the parameters with those of `snapshot`, which must have the same shape.
    pub(crate) fn restore(&mut self, snapshot: &ParameterSnapshot) -> Result<()> {
        self.core.copy_from_slice(&snapshot.core);
        for (mode, rows) in self.modes.iter_mut().zip(&snapshot.factors) {
            rows.copy_to(&mut mode.factor)?;
        }
        for (mode, biases) in self.modes.iter_mut().zip(&snapshot.biases) {
            mode.biases.copy_from_slice(biases);
        }
        for (matrix, rows) in self.matrices.iter_mut().zip(&snapshot.columns) {
            matrix.factor.copy_from(rows)?;
        }
        Ok(())
    }
}
