//! One epoch: all threads run the strata of each partial pass, with barriers and merges in between.

use std::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard};

use super::batch_limit::TensorBatchLimit;
use super::class_update::ClassGroupRunner;
use super::context::{PartialPass, PassContext, ThreadScratch};
use super::epoch_settings::EpochSettings;
use super::fit_inputs::FitInputs;
use super::merge::MergeTasks;
use super::merge_interval::{MergeInterval, PassStatistics, UNITS_PER_BLOCK, max_passes_per_epoch};
use super::parameters::Parameters;
use super::pass::new_pass;
use super::replicas::BlockReplicas;
use super::strata::{Stratum, merge_runs};
use super::task_order::RoundTasks;
use crate::error::Result;
use crate::kernel::{BlockScratch, CoreLayout, CorePenalty, ExclusiveCells};
use crate::model::Model;
use crate::parallel::{Barrier, ThreadPool, WorkerContext};
use crate::simd::AlignedVec;
use crate::trace::{self, SpanKind};
use crate::try_alloc::CORE_ENTRIES;

/// The result of an epoch.
pub(in crate::solver) struct EpochOutcome {
    /// Weighted sum of squared errors of the tensor entries, each before its update.
    pub squared_error: f64,
    /// The merge interval for the next epoch.
    pub interval: MergeInterval,
}

impl FitInputs<'_> {
    /// Runs one epoch. `stream_id` identifies its random streams. Returns an error if the fit is
    /// cancelled; the parameters then contain only some of the updates.
    pub(in crate::solver) fn run_epoch(
        &self,
        model: &mut Model,
        eta: f64,
        interval: MergeInterval,
        stream_id: &[u64],
        pool: &ThreadPool<'_>,
    ) -> Result<EpochOutcome> {
        let layout = CoreLayout::tensor(&model.shape, self.plan.blocking.fiber_mode);
        let settings = EpochSettings::new(self, model, &layout, eta, stream_id, pool)?;
        let mut core = layout.to_fiber_first(&model.core, pool.monitor())?;
        let parameters = Parameters::new(
            self.plan,
            &layout,
            &mut core,
            &mut model.modes,
            &mut model.matrices,
        )?;
        let replicas: Vec<BlockReplicas> = (0..self.blocks_per_stratum())
            .map(|_| BlockReplicas::new(self.plan, &parameters))
            .collect::<Result<_>>()?;
        let replicas = ExclusiveCells::new(replicas);
        let threads = pool.threads().min(self.max_task_count());
        let run = EpochRun::new(
            self,
            &layout,
            &parameters,
            &replicas,
            &settings,
            interval,
            threads,
        )?;
        for result in pool.run(threads, |worker| run.run_thread(&worker))? {
            result?;
        }
        let mut progress = run.into_progress();
        drop(parameters);
        progress.core_penalty.apply(&mut core);
        layout.copy_from_fiber_first(&core, &mut model.core);
        Ok(EpochOutcome {
            squared_error: progress.squared_error,
            interval: progress.interval,
        })
    }
}

/// The state that the threads of an epoch share.
struct EpochRun<'a> {
    inputs: &'a FitInputs<'a>,
    layout: &'a CoreLayout,
    parameters: &'a Parameters<'a>,
    replicas: &'a ExclusiveCells<BlockReplicas>,
    settings: &'a EpochSettings<'a>,
    /// For a tensor in conflict-free classes.
    class_runner: Option<ClassGroupRunner<'a>>,
    threads: usize,
    barrier: Barrier,
    tasks: RoundTasks,
    /// For each tensor block, the batches that it can have.
    batch_limits: Vec<TensorBatchLimit>,
    merge_tasks: MergeTasks,
    max_passes: usize,
    /// Pass `number` is at index `number % 2`. The other is the previous pass, or the next one while it is created.
    passes: [RwLock<PartialPass>; 2],
    progress: Mutex<Progress>,
}

/// Measurements of an epoch so far.
struct Progress {
    /// Of the current pass.
    statistics: PassStatistics,
    interval: MergeInterval,
    /// Of all earlier passes.
    squared_error: f64,
    core_penalty: CorePenalty,
}

impl<'a> EpochRun<'a> {
    fn new(
        inputs: &'a FitInputs<'a>,
        layout: &'a CoreLayout,
        parameters: &'a Parameters<'a>,
        replicas: &'a ExclusiveCells<BlockReplicas>,
        settings: &'a EpochSettings<'a>,
        interval: MergeInterval,
        threads: usize,
    ) -> Result<Self> {
        let blocking = &inputs.plan.blocking;
        let max_passes = max_passes_per_epoch(inputs.data, inputs.plan, inputs.options);
        let first_pass = new_pass(inputs, settings, 0, &interval, max_passes);
        let class_runner = inputs.data.tensor.classes().map(|classes| {
            let max_blocks = settings.max_group_blocks;
            ClassGroupRunner::new(classes, &parameters.factors, max_blocks, threads)
        });
        let run = EpochRun {
            inputs,
            layout,
            parameters,
            replicas,
            settings,
            class_runner,
            threads,
            barrier: Barrier::new(threads),
            tasks: RoundTasks::new(
                inputs.max_task_count(),
                blocking.axes,
                blocking.parts_per_axis,
            ),
            batch_limits: (0..inputs.data.tensor.blocks().len())
                .map(|_| TensorBatchLimit::default())
                .collect(),
            merge_tasks: MergeTasks::new(inputs.plan, parameters)?,
            max_passes,
            passes: [first_pass, PartialPass::default()].map(RwLock::new),
            progress: Mutex::new(Progress {
                statistics: PassStatistics::default(),
                interval,
                squared_error: 0.0,
                core_penalty: CorePenalty::new(
                    f64::from(settings.core_eta),
                    inputs.data.core_penalty,
                    settings.regularizer.l1,
                ),
            }),
        };
        run.penalize_core(&run.pass(0), &mut run.progress());
        run.prepare_stratum(&run.pass(0), 0);
        Ok(run)
    }

    fn into_progress(self) -> Progress {
        self.progress
            .into_inner()
            .unwrap_or_else(|e| e.into_inner())
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn pass(&self, number: usize) -> RwLockReadGuard<'_, PartialPass> {
        self.passes[number % 2]
            .read()
            .unwrap_or_else(|e| e.into_inner())
    }

    /// Prepares stratum `position` of a pass. All other threads must be waiting.
    fn prepare_stratum(&self, pass: &PartialPass, position: usize) {
        if let (Some(runner), Some(Stratum::ClassGroup { group })) =
            (&self.class_runner, pass.strata.get(position))
        {
            runner.prepare(&pass.class_groups[*group]);
        }
    }

    /// Shrinks the core by its penalty for the entries of a pass. The pass follows, so that its updates see the shrunk core. All
    /// other threads must be waiting.
    fn penalize_core(&self, pass: &PartialPass, progress: &mut Progress) {
        let entries = self.inputs.data.tensor.len() as f64 * pass.fraction();
        progress.core_penalty.add_entries(entries);
        let Some(shrinkage) = progress.core_penalty.take_due() else {
            return;
        };
        let core = &self.parameters.core;
        for part in 0..core.partition().part_count() {
            let mut guard = core.borrow_part_mut(part);
            for &slab in core.partition().rows_of(part) {
                shrinkage.apply(guard.row_mut(slab));
            }
        }
    }

    /// Waits for the other threads at the barrier.
    fn wait(&self, stop: impl FnOnce() -> bool) -> bool {
        let _span = trace::span(SpanKind::Wait);
        self.barrier.wait(stop)
    }

    /// Runs one thread's share of all passes. After an error the other threads stop too.
    fn run_thread(&self, worker: &WorkerContext<'_>) -> Result<()> {
        let _guard = self.barrier.cancel_on_panic();
        let result = self.run_passes(worker);
        if result.is_err() {
            self.barrier.cancel();
        }
        result
    }

    fn run_passes(&self, worker: &WorkerContext<'_>) -> Result<()> {
        let core = &self.parameters.core;
        let core_len = match self.class_runner {
            Some(_) => core.partition().row_count() * core.stride(),
            None => 0,
        };
        let mut scratch = ThreadScratch {
            kernel: BlockScratch::default(),
            sample: self.settings.divergence_sample.kernel(self.inputs.level)?,
            core_replica: AlignedVec::try_zeroed(core_len, CORE_ENTRIES)?,
        };
        let stop = || worker.stop.requested() || self.barrier.is_cancelled();
        for number in 0.. {
            let pass = self.pass(number);
            let context = PassContext {
                inputs: self.inputs,
                layout: self.layout,
                parameters: self.parameters,
                replicas: self.replicas,
                epoch: self.settings,
                pass: &pass,
                tasks: &self.tasks,
                batch_limits: &self.batch_limits,
                stop: worker.stop,
            };
            // A pass with class groups has no strata that share a merge, so `position` is also the index of the stratum.
            let strata_per_merge = self.inputs.plan.strata_per_merge;
            for (position, strata) in merge_runs(&pass.strata, strata_per_merge).enumerate() {
                let proceed = match strata[0] {
                    Stratum::ClassGroup { group } => self.run_class_group(
                        &context,
                        group,
                        position,
                        worker.index,
                        &stop,
                        &mut scratch,
                    )?,
                    _ => self.run_strata(
                        &context,
                        strata,
                        position,
                        worker.index,
                        &stop,
                        &mut scratch,
                    )?,
                };
                if !proceed {
                    return Ok(());
                }
            }
            let proceed = self.wait(|| {
                self.finish_pass(&pass, number);
                stop()
            });
            if !proceed || pass.units.end == UNITS_PER_BLOCK {
                break;
            }
        }
        Ok(())
    }

    /// Runs a group of blocks of a conflict-free class and merges its core replicas. Returns `false` if the threads are to
    /// stop.
    fn run_class_group(
        &self,
        context: &PassContext<'_>,
        group: usize,
        position: usize,
        thread: usize,
        stop: &dyn Fn() -> bool,
        scratch: &mut ThreadScratch,
    ) -> Result<bool> {
        let runner = self.class_runner.as_ref();
        let runner = runner.expect("class groups exist only if there are classes");
        let group = &context.pass.class_groups[group];
        context.update_class_group(runner, group, thread, scratch)?;
        Ok(self.wait(|| {
            // Blocks are missing after a stop.
            if stop() {
                return true;
            }
            let _span = trace::span(SpanKind::Merge);
            context.merge_class_group(runner, group, &mut self.progress().statistics);
            self.prepare_stratum(context.pass, position + 1);
            stop()
        }))
    }

    /// Runs strata that share a merge, and the merge if they are strata of tensor blocks. Returns `false` if the threads are
    /// to stop.
    fn run_strata(
        &self,
        context: &PassContext<'_>,
        strata: &[Stratum],
        position: usize,
        thread: usize,
        stop: &dyn Fn() -> bool,
        scratch: &mut ThreadScratch,
    ) -> Result<bool> {
        let task_count = self.inputs.task_count(strata[0]);
        let (rounds, threads) = (strata.len(), self.threads);
        let all_run = self
            .tasks
            .run(rounds, task_count, thread, threads, |round, task| {
                context.run_task(strata, round, position, task, stop, scratch)
            })?;
        if !all_run {
            self.barrier.cancel();
        }
        // The last thread to arrive prepares the next stratum while the others wait.
        let proceed = self.wait(|| {
            self.tasks.reset();
            self.prepare_stratum(context.pass, position + 1);
            stop()
        });
        if !proceed || !strata[0].has_tensor_blocks() {
            return Ok(proceed);
        }
        let merge = trace::span(SpanKind::Merge);
        let weights = context.delta_weights(position);
        context.merge_replicas(&self.merge_tasks, weights)?;
        drop(merge);
        Ok(self.wait(|| {
            // Replicas are incomplete after a stop.
            if stop() {
                return true;
            }
            self.merge_tasks.reset();
            let replicas = self.replicas.borrow_all();
            self.progress().statistics.add_replicas(replicas.iter());
            stop()
        }))
    }

    /// Adapts the merge interval and creates the next pass. All other threads must be waiting.
    fn finish_pass(&self, pass: &PartialPass, number: usize) {
        let mut progress = self.progress();
        let statistics = std::mem::take(&mut progress.statistics);
        progress.interval.adapt(&statistics, self.max_passes);
        progress.squared_error += statistics.squared_error;
        let mut next = self.passes[(number + 1) % 2]
            .write()
            .unwrap_or_else(|e| e.into_inner());
        *next = new_pass(
            self.inputs,
            self.settings,
            pass.units.end,
            &progress.interval,
            self.max_passes,
        );
        self.penalize_core(&next, &mut progress);
        self.prepare_stratum(&next, 0);
    }
}
