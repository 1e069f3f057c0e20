//! Replicas: a block's private copies of the parameters that no block owns.

use super::config::Parameters;
use super::plan::BlockingPlan;
use crate::error::Result;
use crate::kernel::ExclusiveRows;
use crate::simd::AlignedVec;
use crate::try_alloc::try_zeroed;

/// A copy of all rows of a factor or of the core.
#[derive(Default)]
pub(super) struct Replica {
    pub rows: AlignedVec,
    /// For each row, the number of entries that updated it since the copy was made.
    pub entry_counts: Vec<u32>,
}

impl Replica {
    fn new(rows: &ExclusiveRows<'_>) -> Result<Replica> {
        let row_count = rows.partition().row_count();
        let len = row_count * rows.stride();
        Ok(Replica {
            rows: AlignedVec::try_zeroed(len, "elements of replicas")?,
            entry_counts: try_zeroed(row_count, "rows")?,
        })
    }

    pub(super) fn row(&self, row: u32) -> &[f32] {
        let stride = self.rows.len() / self.entry_counts.len();
        &self.rows[row as usize * stride..][..stride]
    }

    fn load(&mut self, rows: &ExclusiveRows<'_>) {
        self.rows.copy_from_slice(rows.borrow_all().rows());
        self.entry_counts.fill(0);
    }
}

/// The replicas of one block, and what it measured since they were loaded.
#[derive(Default)]
pub(super) struct BlockReplicas {
    pub core: Replica,
    /// For each uncut mode, its rows.
    pub modes: Vec<Option<Replica>>,
    /// For each matrix with replicated columns, those.
    pub columns: Vec<Option<Replica>>,
    /// Weighted sum of squared errors of the processed tensor entries, each before its update.
    pub squared_error: f64,
    /// Sum of the weights of these entries.
    pub total_weight: f64,
    /// Predictions of the divergence sample with these replicas; none if the divergence is not measured.
    pub sample_predictions: Vec<f32>,
}

impl BlockReplicas {
    pub(super) fn new(plan: &BlockingPlan, parameters: &Parameters<'_>) -> Result<BlockReplicas> {
        Ok(BlockReplicas {
            core: Replica::new(&parameters.core)?,
            modes: parameters
                .factors
                .iter()
                .zip(&plan.modes)
                .map(|(rows, plan)| plan.axis.is_none().then(|| Replica::new(rows)).transpose())
                .collect::<Result<_>>()?,
            columns: parameters
                .columns
                .iter()
                .zip(&plan.matrices)
                .map(|(rows, plan)| {
                    plan.columns_replicated
                        .then(|| Replica::new(rows))
                        .transpose()
                })
                .collect::<Result<_>>()?,
            ..BlockReplicas::default()
        })
    }

    /// Copies the current parameters and resets all counts and sums.
    pub(super) fn load(&mut self, parameters: &Parameters<'_>) {
        (self.squared_error, self.total_weight) = (0.0, 0.0);
        self.sample_predictions.clear();
        self.core.load(&parameters.core);
        for (replica, rows) in self.modes.iter_mut().zip(&parameters.factors) {
            replica.iter_mut().for_each(|r| r.load(rows));
        }
        for (replica, rows) in self.columns.iter_mut().zip(&parameters.columns) {
            replica.iter_mut().for_each(|r| r.load(rows));
        }
    }
}
