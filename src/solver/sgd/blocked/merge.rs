//! Merging the replicas of all blocks into the parameters.

// One index runs over several arrays.
#![allow(clippy::needless_range_loop)]

use super::context::PassContext;
use super::parameters::Parameters;
use super::plan::BlockingPlan;
use super::replicas::Replica;
use super::row_merge::{DeltaWeights, RowMerge, sum_deltas};
use crate::error::Result;
use crate::kernel::PartRefMut;
use crate::try_alloc::{CORE_ENTRIES, try_zeroed};

/// A replicated factor.
#[derive(Debug, Clone, Copy)]
pub(super) enum MergeTarget {
    Core,
    /// The rows of a mode.
    Mode(usize),
    /// The columns of a matrix.
    Columns(usize),
}

/// One part of a replicated factor, to be merged by one thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct MergeTask {
    target: MergeTarget,
    part: usize,
}

/// Returns the tasks that merge all replicas.
pub(super) fn merge_tasks(plan: &BlockingPlan, parameters: &Parameters<'_>) -> Vec<MergeTask> {
    let mut tasks = Vec::new();
    let mut add = |target: MergeTarget, parts: usize| {
        tasks.extend((0..parts).map(|part| MergeTask { target, part }));
    };
    add(MergeTarget::Core, 1);
    for (n, plan) in plan.modes.iter().enumerate() {
        if plan.axis.is_none() {
            add(MergeTarget::Mode(n), plan.partition.part_count());
        }
    }
    for (m, plan) in plan.matrices.iter().enumerate() {
        if plan.columns_replicated {
            let partition = parameters.columns[m].partition();
            add(MergeTarget::Columns(m), partition.part_count());
        }
    }
    tasks
}

impl PassContext<'_> {
    /// Merges one part of a replicated factor. The deltas of a row have `weights`; those of the core have equal weights.
    pub(super) fn merge(
        &self,
        MergeTask { target, part }: MergeTask,
        weights: DeltaWeights,
    ) -> Result<()> {
        let blocks: Vec<_> = self
            .replicas
            .iter()
            .map(|replicas| replicas.read().unwrap_or_else(|e| e.into_inner()))
            .collect();
        let replicas: Vec<&Replica> = blocks
            .iter()
            .filter_map(|block| match target {
                MergeTarget::Core => Some(&block.core),
                MergeTarget::Mode(n) => block.modes[n].as_ref(),
                MergeTarget::Columns(m) => block.columns[m].as_ref(),
            })
            .collect();
        let (parameters, data) = (self.parameters, self.inputs.data);
        let curvature = &self.epoch.curvature;
        let (rows, basis, penalties) = match target {
            MergeTarget::Core => return self.merge_core(&replicas),
            MergeTarget::Mode(n) => (
                &parameters.factors[n],
                &curvature.rows[n],
                &data.row_penalty[n],
            ),
            MergeTarget::Columns(m) => (
                &parameters.columns[m],
                &curvature.columns[m],
                &data.matrices[m].column_penalty,
            ),
        };
        let eta = self.epoch.eta * self.pass.fraction() as f32;
        let mut guard = rows.borrow_part_mut(part);
        let mut merge = RowMerge::new(basis, eta, weights);
        for &row in rows.partition().rows_of(part) {
            let (current, penalty) = (guard.row_mut(row), penalties[row as usize]);
            if let Some(delta) = merge.merged_delta(&replicas, row as usize, current, penalty) {
                self.add_delta(current, delta);
            }
        }
        Ok(())
    }

    /// Merges the core as a whole: the directions of its curvature extend over all of it.
    fn merge_core(&self, replicas: &[&Replica]) -> Result<()> {
        let rows = &self.parameters.core;
        let (stride, partition) = (rows.stride(), rows.partition());
        let mut delta: Vec<f32> = try_zeroed(partition.row_count() * stride, CORE_ENTRIES)?;
        let mut parts: Vec<PartRefMut<'_>> = (0..partition.part_count())
            .map(|part| rows.borrow_part_mut(part))
            .collect();
        let mut entries = None;
        for (part, guard) in parts.iter_mut().enumerate() {
            for &slab in partition.rows_of(part) {
                if self.stop.requested() {
                    return Ok(());
                }
                let delta = &mut delta[slab as usize * stride..][..stride];
                entries = sum_deltas(replicas, slab as usize, guard.row_mut(slab), delta);
            }
        }
        drop(parts);
        if entries.is_some() {
            self.update_core(&mut delta, &self.pass.core_merge_factors);
        }
        Ok(())
    }

    /// Updates the core by the sum of deltas, scaled by the factor of each direction.
    pub(super) fn update_core(&self, delta: &mut Vec<f32>, factors: &[f32]) {
        let rows = &self.parameters.core;
        let (stride, partition) = (rows.stride(), rows.partition());
        self.epoch.core_merge.merge(delta, &mut Vec::new(), factors);
        for part in 0..partition.part_count() {
            let mut guard = rows.borrow_part_mut(part);
            for &slab in partition.rows_of(part) {
                let delta = &delta[slab as usize * stride..][..stride];
                self.add_delta(guard.row_mut(slab), delta);
            }
        }
    }

    /// Adds `delta` to a row and enforces the bounds of the regularizer.
    #[inline]
    fn add_delta(&self, row: &mut [f32], delta: &[f32]) {
        let delta = &delta[..row.len()];
        let regularizer = self.epoch.regularizer;
        for j in 0..row.len() {
            row[j] = regularizer.bounded(row[j] + delta[j]);
        }
    }
}
