//! The inputs of a fit, the same in all epochs.

use super::plan::BlockingPlan;
use super::strata::{Stratum, tournament_pairs};
use crate::kernel::ConflictFreeClasses;
use crate::options::Options;
use crate::simd::Level;
use crate::solver::data::Data;

/// The inputs of a fit.
pub(in crate::solver) struct FitInputs<'a> {
    pub data: &'a Data,
    pub plan: &'a BlockingPlan,
    pub options: &'a Options,
    pub level: Level,
}

impl FitInputs<'_> {
    /// Number of tensor blocks in a stratum; 0 if entries are in conflict-free classes.
    pub(super) fn blocks_per_stratum(&self) -> usize {
        match self.plan.longest_row {
            Some(_) => 0,
            None => self.plan.blocks_per_stratum,
        }
    }

    /// Number of tasks of a stratum, other than a class group.
    pub(super) fn task_count(&self, stratum: Stratum) -> usize {
        let parts = |m: usize| self.plan.matrices[m].blocking.parts_per_axis;
        match stratum {
            Stratum::TensorBlocks { .. } | Stratum::ClassGroup { .. } => self.blocks_per_stratum(),
            Stratum::MatrixBlocks { matrix, .. } => parts(matrix),
            Stratum::GraphPairs { matrix, round } => tournament_pairs(parts(matrix), round),
        }
    }

    /// Largest number of tasks of a stratum. More threads would be idle.
    pub(super) fn max_task_count(&self) -> usize {
        let matrices = self.plan.matrices.iter();
        let matrices = matrices.map(|m| m.blocking.parts_per_axis);
        let largest_class =
            |c: &ConflictFreeClasses| (0..c.count()).map(|k| c.block_range(k).len()).max();
        let class_blocks = self.data.tensor.classes().and_then(largest_class);
        matrices
            .chain([self.blocks_per_stratum(), class_blocks.unwrap_or(0)])
            .max()
            .unwrap_or(1)
    }
}
