//! Merging the replicas of all blocks into the parameters.

// One index runs over several arrays.
#![allow(clippy::needless_range_loop)]

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::config::Parameters;
use super::context::PassContext;
use super::plan::BlockingPlan;
use super::replicas::Replica;
use super::row_merge::{DeltaWeights, RowMerge, sum_deltas};
use super::task_order::run_shared_tasks;
use crate::error::Result;
use crate::parallel::lock_ignoring_poison;
use crate::try_alloc::{CORE_ENTRIES, try_zeroed};

/// What a merge task merges.
#[derive(Debug, Clone, Copy)]
enum MergeTarget {
    Core,
    /// The rows of a mode.
    Mode(usize),
    /// The columns of a matrix.
    Columns(usize),
}

/// One part of a replicated factor, to be merged by one thread.
#[derive(Debug, Clone, Copy)]
struct MergeTask {
    target: MergeTarget,
    part: usize,
}

/// The tasks that merge all replicas, which threads share.
pub(super) struct MergeTasks {
    tasks: Vec<MergeTask>,
    /// Index of the next task.
    next: AtomicUsize,
    /// The sum of the core's deltas.
    core_delta: Mutex<Vec<f32>>,
    /// Number of parts of the core that are in the sum.
    summed_core_parts: AtomicUsize,
}

impl MergeTasks {
    pub(super) fn new(plan: &BlockingPlan, parameters: &Parameters<'_>) -> Result<MergeTasks> {
        let core = &parameters.core;
        let core_len = core.partition().row_count() * core.stride();
        Ok(MergeTasks {
            tasks: merge_tasks(plan, parameters),
            next: AtomicUsize::new(0),
            core_delta: Mutex::new(try_zeroed(core_len, CORE_ENTRIES)?),
            summed_core_parts: AtomicUsize::new(0),
        })
    }

    /// Resets the counters for the next merge. Must not be called while a thread is merging.
    pub(super) fn reset(&self) {
        self.next.store(0, Ordering::Relaxed);
        self.summed_core_parts.store(0, Ordering::Relaxed);
    }
}

/// Returns the tasks that merge all replicas.
fn merge_tasks(plan: &BlockingPlan, parameters: &Parameters<'_>) -> Vec<MergeTask> {
    let mut tasks = Vec::new();
    let mut add = |target: MergeTarget, parts: usize| {
        tasks.extend((0..parts).map(|part| MergeTask { target, part }));
    };
    add(MergeTarget::Core, parameters.core.partition().part_count());
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
    /// Merges all replicas, together with the other threads. The deltas of a row have `weights`; those of the core have equal
    /// weights.
    pub(super) fn merge_replicas(&self, tasks: &MergeTasks, weights: DeltaWeights) -> Result<()> {
        let blocks = self.replicas.borrow_all();
        run_shared_tasks(&tasks.next, tasks.tasks.len(), |t| {
            let MergeTask { target, part } = tasks.tasks[t];
            let replicas: Vec<&Replica> = blocks
                .iter()
                .filter_map(|block| match target {
                    MergeTarget::Core => Some(&block.core),
                    MergeTarget::Mode(n) => block.modes[n].as_ref(),
                    MergeTarget::Columns(m) => block.columns[m].as_ref(),
                })
                .collect();
            match target {
                MergeTarget::Core => self.merge_core_part(tasks, &replicas, part)?,
                _ => self.merge_rows(target, part, &replicas, weights),
            }
            Ok(())
        })
    }

    /// Merges one part of the rows of a mode or the columns of a matrix.
    fn merge_rows(
        &self,
        target: MergeTarget,
        part: usize,
        replicas: &[&Replica],
        weights: DeltaWeights,
    ) {
        let (parameters, data) = (self.parameters, self.inputs.data);
        let curvature = &self.segment.curvature;
        let (rows, basis, penalties) = match target {
            MergeTarget::Core => unreachable!("the core has no rows"),
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
        let eta = self.segment.eta * self.pass.fraction() as f32;
        let mut guard = rows.borrow_part_mut(part);
        let mut merge = RowMerge::new(self.inputs.level, basis, eta, weights);
        for &row in rows.partition().rows_of(part) {
            let (current, penalty) = (guard.row_mut(row), penalties[row as usize]);
            if let Some(delta) = merge.merged_delta(replicas, row as usize, current, penalty) {
                self.add_delta(current, delta);
            }
        }
    }

    /// Sums the deltas of one part of the core. The thread that sums the last part merges the core as a whole: the directions of
    /// its curvature extend over all of it.
    fn merge_core_part(
        &self,
        tasks: &MergeTasks,
        replicas: &[&Replica],
        part: usize,
    ) -> Result<()> {
        let rows = &self.parameters.core;
        let (stride, partition) = (rows.stride(), rows.partition());
        let slabs = partition.rows_of(part);
        let mut deltas: Vec<f32> = try_zeroed(slabs.len() * stride, CORE_ENTRIES)?;
        let mut guard = rows.borrow_part_mut(part);
        for (&slab, delta) in slabs.iter().zip(deltas.chunks_exact_mut(stride)) {
            if self.stop.requested() {
                return Ok(());
            }
            sum_deltas(replicas, slab as usize, guard.row_mut(slab), delta);
        }
        drop(guard);
        let mut sum = lock_ignoring_poison(&tasks.core_delta);
        for (&slab, delta) in slabs.iter().zip(deltas.chunks_exact(stride)) {
            sum[slab as usize * stride..][..stride].copy_from_slice(delta);
        }
        let summed = tasks.summed_core_parts.fetch_add(1, Ordering::Relaxed) + 1;
        let has_entries = |r: &&Replica| r.entry_counts.iter().any(|&n| n > 0);
        if summed == partition.part_count() && replicas.iter().any(has_entries) {
            self.update_core(&mut sum, &self.pass.core_merge_factors);
        }
        Ok(())
    }

    /// Updates the core by the sum of deltas, scaled by the factor of each direction.
    pub(super) fn update_core(&self, delta: &mut Vec<f32>, factors: &[f32]) {
        let rows = &self.parameters.core;
        let (stride, partition) = (rows.stride(), rows.partition());
        self.segment
            .core_merge
            .merge(delta, &mut Vec::new(), factors);
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
        let regularizer = self.segment.regularizer;
        for j in 0..row.len() {
            row[j] = regularizer.bounded(row[j] + delta[j]);
        }
    }
}
