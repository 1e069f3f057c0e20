//! The regularization weight of a row as a function of its entries.

use crate::error::Result;
use crate::model::ModelMode;
use crate::options::PenaltyScaling;
use crate::problem::ProblemMode;
use crate::try_alloc::try_collect;

/// Regularization weight lambda and its growth with the total weight of a row's entries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowPenalty {
    /// Penalty of a row with one entry.
    pub lambda: f64,
    /// How it grows with the entries of a row.
    pub per: PenaltyScaling,
}

impl RowPenalty {
    /// Returns the penalty of a row whose entries have this total weight.
    pub fn of_row(self, entry_weight: f64) -> f64 {
        self.lambda
            * match self.per {
                PenaltyScaling::Constant => 1.0,
                PenaltyScaling::SqrtCount => entry_weight.sqrt(),
                PenaltyScaling::Count => entry_weight,
            }
    }

    /// Returns the penalty of each row of a mode. A row without tensor entries is penalized like a row with one entry.
    pub fn of_rows(self, mode: &ModelMode) -> Result<Vec<f32>> {
        let weight = |i: usize| match mode.counts[i] {
            0 => 1.0,
            _ => mode.row_weight(i),
        };
        let penalties = (0..mode.counts.len()).map(|i| self.of_row(weight(i)) as f32);
        try_collect(mode.counts.len(), penalties, "rows")
    }

    /// Returns the penalty of each row divided by its number of entries; 0 for rows without entries.
    pub(super) fn per_entry(self, rows: &RowEntries<'_>) -> Result<Vec<f32>> {
        let penalty = |i: usize| match rows.counts[i] {
            0 => 0.0,
            n => (self.of_row(rows.weight(i)) / n as f64) as f32,
        };
        let count = rows.counts.len();
        try_collect(count, (0..count).map(penalty), "rows")
    }
}

/// Number and total weight of the entries of each row of a mode.
pub(super) struct RowEntries<'a> {
    pub counts: &'a [u64],
    /// Empty if entries are not weighted; each then weighs 1.
    pub weights: &'a [f64],
}

impl<'a> RowEntries<'a> {
    pub(super) fn of_mode(mode: &'a ProblemMode) -> Self {
        RowEntries {
            counts: mode.counts(),
            weights: mode.weights(),
        }
    }

    /// Returns the total weight of the entries of row `i`.
    pub(super) fn weight(&self, i: usize) -> f64 {
        let count = || self.counts[i] as f64;
        self.weights.get(i).copied().unwrap_or_else(count)
    }
}
