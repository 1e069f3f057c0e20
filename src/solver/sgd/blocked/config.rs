//! The inputs of a fit, the same in all epochs.

use super::plan::BlockingPlan;
use super::strata::{Stratum, tournament_pairs};
use crate::error::Result;
use crate::kernel::{ConflictFreeClasses, CoreLayout, CoreShape, ExclusiveRows, RowPartition};
use crate::model::{ModelMatrix, ModelMode};
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

/// The arguments of an epoch.
#[derive(Clone, Copy)]
pub(super) struct EpochArguments<'a> {
    pub inputs: &'a FitInputs<'a>,
    /// Layout of the tensor's core.
    pub layout: &'a CoreLayout,
    /// Shape of the model's core.
    pub shape: &'a CoreShape,
    pub parameters: &'a Parameters<'a>,
    pub eta: f64,
    /// Identifies the random streams of the epoch.
    pub stream_id: &'a [u64],
}

/// Parts of the core, whose replicas different threads sum.
const CORE_PARTS: usize = 16;

/// The parameters of the model during an epoch.
pub(super) struct Parameters<'a> {
    /// The core with the fiber mode first, one row per slab.
    pub core: ExclusiveRows<'a>,
    /// For each mode, the rows of its factor.
    pub factors: Vec<ExclusiveRows<'a>>,
    /// For each matrix, the rows of its columns; none for a graph.
    pub columns: Vec<ExclusiveRows<'a>>,
}

impl<'a> Parameters<'a> {
    /// Borrows the parameters of a model. `core` is in the layout of `layout`.
    pub(super) fn new(
        plan: &BlockingPlan,
        layout: &CoreLayout,
        core: &'a mut [f32],
        modes: &'a mut [ModelMode],
        matrices: &'a mut [ModelMatrix],
    ) -> Result<Parameters<'a>> {
        let mut factors = Vec::new();
        for (mode, plan) in modes.iter_mut().zip(&plan.modes) {
            let stride = mode.factor.stride();
            let memory = mode.factor.as_mut_slice()?;
            factors.push(ExclusiveRows::new(memory, stride, &plan.partition));
        }
        let no_columns = RowPartition::contiguous(0, 1);
        let mut columns = Vec::new();
        for (matrix, plan) in matrices.iter_mut().zip(&plan.matrices) {
            let stride = matrix.factor.stride();
            let memory = matrix.factor.as_mut_slice()?;
            let partition = plan.columns.as_ref().unwrap_or(&no_columns);
            columns.push(ExclusiveRows::new(memory, stride, partition));
        }
        let slabs = RowPartition::contiguous(layout.slab_count(), CORE_PARTS);
        Ok(Parameters {
            core: ExclusiveRows::new(core, layout.slab_len(), &slabs),
            factors,
            columns,
        })
    }
}
