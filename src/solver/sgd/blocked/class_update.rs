//! SGD updates of a group of blocks of a conflict-free class. Threads take blocks in any order. Every block updates a replica
//! of the core, and the replicas of a group are merged.

use std::array;
use std::sync::{Arc, Mutex};

use super::class_groups::ClassGroup;
use super::context::{PassContext, ThreadScratch};
use super::curvature_basis::EntryCounts;
use super::merge_interval::PassStatistics;
use super::task_order::ContiguousTasks;
use super::tree_reduce::TreeReduction;
use crate::error::Result;
use crate::kernel::{
    self, BlockUpdateSettings, ClassRows, ConflictFreeClasses, EntryBlock, ExclusiveRows,
    MAX_ORDER, RowsMut,
};
use crate::parallel::lock_ignoring_poison;
use crate::trace::{self, SpanKind};
use crate::try_alloc::{CORE_ENTRIES, try_reserve};

/// The state that threads share while they process class groups.
pub(super) struct ClassGroupRunner<'a> {
    classes: &'a ConflictFreeClasses,
    factors: &'a [ExclusiveRows<'a>],
    core_deltas: TreeReduction,
    /// The rows of the current group's class, borrowed while threads wait at a barrier.
    class_rows: Mutex<Option<Arc<ClassRows<'a>>>>,
    tasks: ContiguousTasks,
    /// The factors that merge the core deltas of the current group.
    core_merge_factors: Mutex<Vec<f32>>,
}

impl<'a> ClassGroupRunner<'a> {
    pub(super) fn new(
        classes: &'a ConflictFreeClasses,
        factors: &'a [ExclusiveRows<'a>],
        max_group_blocks: usize,
        threads: usize,
    ) -> Self {
        ClassGroupRunner {
            classes,
            factors,
            core_deltas: TreeReduction::new(max_group_blocks),
            class_rows: Mutex::new(None),
            tasks: ContiguousTasks::new(threads),
            core_merge_factors: Mutex::new(Vec::new()),
        }
    }

    /// Borrows the rows of the class of a group that is to run next. All threads must be waiting.
    pub(super) fn prepare(&self, group: &ClassGroup) {
        let rows = self.classes.borrow_rows(group.class, self.factors);
        *lock_ignoring_poison(&self.class_rows) = Some(Arc::new(rows));
    }

    fn blocks<'g>(&'g self, group: &'g ClassGroup) -> impl Iterator<Item = &'g EntryBlock> {
        let blocks = &self.classes.blocks()[self.classes.block_range(group.class)];
        group.blocks.iter().map(|&b| &blocks[b])
    }

    fn entry_counts(&self, group: &ClassGroup) -> EntryCounts {
        let total: usize = self.blocks(group).map(EntryBlock::len).sum();
        EntryCounts {
            total: total as f64 as f32,
            per_replica: (total as f64 / group.blocks.len() as f64) as f32,
        }
    }
}

impl PassContext<'_> {
    /// Processes blocks of a group, together with the other threads. If a stop is requested, the sums of the group are
    /// incomplete.
    pub(super) fn update_class_group(
        &self,
        runner: &ClassGroupRunner<'_>,
        group: &ClassGroup,
        thread: usize,
        scratch: &mut ThreadScratch,
    ) -> Result<()> {
        let class_rows = lock_ignoring_poison(&runner.class_rows).clone();
        let class_rows = class_rows.expect("the rows were borrowed before the stratum");
        let order = self.parameters.factors.len();
        runner.tasks.run(group.blocks.len(), thread, |task| {
            if self.stop.requested() {
                return Ok(());
            }
            if task == 0 {
                let entries = runner.entry_counts(group);
                let factors = self.segment.core_merge_factors(self.inputs.data, entries);
                *lock_ignoring_poison(&runner.core_merge_factors) = factors;
            }
            let _span = trace::span(SpanKind::Block);
            let mut rows = class_rows.take_block(group.blocks[task]);
            let block = rows.block();
            let core = self.parameters.core.borrow_all();
            scratch.core_replica.copy_from_slice(core.rows());
            let mut modes = rows.modes_mut();
            let mut mode_rows: [RowsMut<'_>; MAX_ORDER] =
                array::from_fn(|_| modes.next().unwrap_or_else(RowsMut::none));
            let settings = BlockUpdateSettings {
                core_eta: self.segment.core_eta,
                core_update_interval: self.segment.core_update_period,
                ..self.kernel_settings(1.0, &self.segment.penalties, &self.segment.prior_means)
            };
            let squared_error = kernel::update_block(
                block,
                self.layout,
                &mut scratch.core_replica,
                &mut mode_rows[..order],
                &settings,
                &self.tensor_stream_id(block.index()),
                &mut scratch.kernel,
            )?;
            runner.core_deltas.add(task, group.blocks.len(), |sum| {
                let floats = scratch.core_replica.iter().zip(core.rows());
                sum.core_delta.clear();
                try_reserve(&mut sum.core_delta, floats.len(), CORE_ENTRIES)?;
                sum.core_delta.extend(floats.map(|(x, y)| x - y));
                sum.squared_error = squared_error;
                Ok(())
            })
        })
    }

    /// Merges the core replicas of a group after all of its blocks. All other threads must be waiting.
    pub(super) fn merge_class_group(
        &self,
        runner: &ClassGroupRunner<'_>,
        group: &ClassGroup,
        statistics: &mut PassStatistics,
    ) {
        *lock_ignoring_poison(&runner.class_rows) = None;
        runner.tasks.reset();
        let mut sum = runner.core_deltas.total();
        let total_weight = runner.blocks(group).map(EntryBlock::total_weight).sum();
        statistics.add_merge(sum.squared_error, total_weight);
        let factors = lock_ignoring_poison(&runner.core_merge_factors);
        self.update_core(&mut sum.core_delta, &factors);
    }
}
