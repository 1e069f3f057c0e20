//! The parameters that an epoch changes, as exclusive rows that threads borrow part by part.

use super::plan::BlockingPlan;
use crate::error::Result;
use crate::kernel::{CoreLayout, ExclusiveRows, RowPartition};
use crate::model::{ModelMatrix, ModelMode};

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
