//! A block of columns of all factors, copied so that the columns of a row are adjacent.

use std::ops::Range;

use crate::error::Result;
use crate::kernel::{ModeCsr, OtherMode, Partials};
use crate::model::{Model, ModelMode};
use crate::simd::{AlignedVec, Level, padded_len};

/// Columns of the factors of all modes.
pub(super) struct ColumnBlock {
    pub columns: Range<usize>,
    /// The rows of each mode, restricted to the columns and padded.
    pub rows: Vec<AlignedVec>,
}

impl ColumnBlock {
    /// Copies columns of the model.
    pub(super) fn copy(model: &Model, columns: Range<usize>) -> Result<ColumnBlock> {
        let width = padded_len(columns.len());
        let copy_mode = |mode: &ModelMode| {
            let mut rows = AlignedVec::try_zeroed(mode.rows.len() * width, "row elements")?;
            let factor = mode.factor.as_slice().chunks_exact(mode.factor.stride());
            for (to, from) in rows.chunks_exact_mut(width).zip(factor) {
                to[..columns.len()].copy_from_slice(&from[columns.clone()]);
            }
            Ok(rows)
        };
        Ok(ColumnBlock {
            rows: model.modes.iter().map(copy_mode).collect::<Result<_>>()?,
            columns,
        })
    }

    /// Writes the columns to the model.
    pub(super) fn store(&self, model: &mut Model) -> Result<()> {
        for (mode, rows) in model.modes.iter_mut().zip(&self.rows) {
            let stride = mode.factor.stride();
            let factor = mode.factor.as_mut_slice()?.chunks_exact_mut(stride);
            for (to, from) in factor.zip(rows.chunks_exact(self.width())) {
                to[self.columns.clone()].copy_from_slice(&from[..self.columns.len()]);
            }
        }
        Ok(())
    }

    /// Number of floats per row.
    pub(super) fn width(&self) -> usize {
        padded_len(self.columns.len())
    }

    /// Row `i` of mode `n`.
    pub(super) fn row(&self, n: usize, i: usize) -> &[f32] {
        &self.rows[n][i * self.width()..(i + 1) * self.width()]
    }

    /// The partial derivatives of the block's values by the rows that `csr` groups entries by.
    pub(super) fn partials(&self, csr: &ModeCsr, level: Level) -> Partials<'_> {
        let others = csr.other_modes().iter().map(|&m| OtherMode {
            rows: &self.rows[m],
            rank: self.columns.len(),
            biases: &[],
        });
        Partials {
            others: others.collect(),
            core: None,
            rank: self.columns.len(),
            level,
        }
    }
}
