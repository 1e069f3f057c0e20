//! The threads of an epoch: all of them run the strata of each partial pass, with barriers and merges in between.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard};

use super::batch_limit::TensorBatchLimit;
use super::class_update::ClassGroupRunner;
use super::config::EpochArguments;
use super::context::{PartialPass, PassContext, ThreadScratch};
use super::curvature::{Curvature, CurvatureMoments, CurvatureSample, SAMPLE_CHUNKS};
use super::curvature_interval::{bounded_interval, curvature_growth, next_interval, segment_end};
use super::merge::MergeTasks;
use super::merge_interval::{MergeInterval, PassStatistics, UNITS_PER_BLOCK, max_passes_per_epoch};
use super::pass::{entries_between_merges, new_pass};
use super::replica_divergence::SampleKernel;
use super::replicas::BlockReplicas;
use super::segment_settings::SegmentSettings;
use super::strata::{Stratum, merge_runs};
use super::task_order::{RoundTasks, run_shared_tasks};
use crate::error::Result;
use crate::kernel::{BlockScratch, CorePenalty, ExclusiveCells};
use crate::parallel::{Barrier, WorkerContext};
use crate::progress::StopFlag;
use crate::simd::AlignedVec;
use crate::solver::sgd::outer_updates::regularizer;
use crate::trace::{self, SpanKind};
use crate::try_alloc::CORE_ENTRIES;

/// The state that the threads of an epoch share.
pub(super) struct EpochRun<'a> {
    arguments: EpochArguments<'a>,
    replicas: ExclusiveCells<BlockReplicas>,
    /// For each tensor block, the batches that it can have.
    batch_limits: Vec<TensorBatchLimit>,
    sample: CurvatureSample,
    /// For each chunk of the sample, its moments when they were last measured.
    sample_moments: ExclusiveCells<CurvatureMoments>,
    /// The next chunk to be measured.
    next_chunk: AtomicUsize,
    /// For a tensor in conflict-free classes.
    class_runner: Option<ClassGroupRunner<'a>>,
    threads: usize,
    barrier: Barrier,
    tasks: RoundTasks,
    merge_tasks: MergeTasks,
    max_passes: usize,
    /// Pass `number` is at index `number % 2`. The other is the previous pass, or the next one while it is created.
    passes: [RwLock<Option<PartialPass<'a>>>; 2],
    progress: Mutex<Progress>,
}

/// Measurements of an epoch so far.
pub(super) struct Progress {
    /// The unit at which the current segment starts.
    segment_start: usize,
    /// Of the current pass.
    statistics: PassStatistics,
    pub interval: MergeInterval,
    /// Of all earlier passes.
    pub squared_error: f64,
    pub core_penalty: CorePenalty,
}

impl<'a> EpochRun<'a> {
    /// Measures the curvature and prepares the first pass.
    pub(super) fn new(
        arguments: EpochArguments<'a>,
        mut interval: MergeInterval,
        threads: usize,
    ) -> Result<Self> {
        let EpochArguments {
            inputs,
            layout,
            shape,
            parameters,
            ..
        } = arguments;
        let (data, plan) = (inputs.data, inputs.plan);
        let sample = CurvatureSample::new(data, layout, shape);
        let mut kernel = sample.kernel(inputs.level)?;
        let never = StopFlag::new();
        let moments = (0..SAMPLE_CHUNKS)
            .map(|chunk| sample.moments(chunk, data, parameters, &mut kernel, &never));
        let sample_moments = ExclusiveCells::new(moments);
        let replicas: Vec<BlockReplicas> = (0..inputs.blocks_per_stratum())
            .map(|_| BlockReplicas::new(plan, parameters))
            .collect::<Result<_>>()?;
        let settings = segment_settings(&arguments, &sample, &sample_moments)?;
        let class_runner = data.tensor.classes().map(|classes| {
            let max_blocks = settings.max_group_blocks;
            ClassGroupRunner::new(classes, &parameters.factors, max_blocks, threads)
        });
        let max_passes = max_passes_per_epoch(data, plan, inputs.options);
        interval.curvature_units = bounded_interval(interval.curvature_units, data.tensor.len());
        let units = 0..segment_end(0, interval.curvature_units);
        let first_pass = new_pass(inputs, settings, units, &interval, max_passes);
        let core_eta = f64::from(first_pass.settings.core_eta);
        let l1 = regularizer(inputs.options).l1;
        let run = EpochRun {
            arguments,
            replicas: ExclusiveCells::new(replicas),
            batch_limits: (0..data.tensor.blocks().len())
                .map(|_| TensorBatchLimit::default())
                .collect(),
            sample,
            sample_moments,
            next_chunk: AtomicUsize::new(0),
            class_runner,
            threads,
            barrier: Barrier::new(threads),
            tasks: RoundTasks::new(
                inputs.max_task_count(),
                plan.blocking.axes,
                plan.blocking.parts_per_axis,
            ),
            merge_tasks: MergeTasks::new(plan, parameters)?,
            max_passes,
            passes: [Some(first_pass), None].map(RwLock::new),
            progress: Mutex::new(Progress {
                segment_start: 0,
                statistics: PassStatistics::default(),
                interval,
                squared_error: 0.0,
                core_penalty: CorePenalty::new(core_eta, data.core_penalty, l1),
            }),
        };
        if let Some(pass) = &*run.pass(0) {
            run.penalize_core(pass, &mut run.progress());
            run.prepare_stratum(pass, 0);
        }
        Ok(run)
    }

    pub(super) fn into_progress(self) -> Progress {
        self.progress
            .into_inner()
            .unwrap_or_else(|e| e.into_inner())
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn pass(&self, number: usize) -> RwLockReadGuard<'_, Option<PartialPass<'a>>> {
        self.passes[number % 2]
            .read()
            .unwrap_or_else(|e| e.into_inner())
    }

    /// Prepares stratum `position` of a pass. All other threads must be waiting.
    fn prepare_stratum(&self, pass: &PartialPass<'_>, position: usize) {
        if let (Some(runner), Some(Stratum::ClassGroup { group })) =
            (&self.class_runner, pass.strata.get(position))
        {
            runner.prepare(&pass.class_groups[*group]);
        }
    }

    /// Shrinks the core by its penalty for the entries of a pass. The pass follows, so that its updates see the shrunk core. All
    /// other threads must be waiting.
    fn penalize_core(&self, pass: &PartialPass<'_>, progress: &mut Progress) {
        let entries = self.arguments.inputs.data.tensor.len() as f64 * pass.fraction();
        progress.core_penalty.add_entries(entries);
        let Some(shrinkage) = progress.core_penalty.take_due() else {
            return;
        };
        let core = &self.arguments.parameters.core;
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
    pub(super) fn run_thread(&self, worker: &WorkerContext<'_>) -> Result<()> {
        let _guard = self.barrier.cancel_on_panic();
        let result = self.run_passes(worker);
        if result.is_err() {
            self.barrier.cancel();
        }
        result
    }

    fn run_passes(&self, worker: &WorkerContext<'_>) -> Result<()> {
        let EpochArguments {
            inputs,
            layout,
            parameters,
            ..
        } = self.arguments;
        let core = &parameters.core;
        let core_len = match self.class_runner {
            Some(_) => core.partition().row_count() * core.stride(),
            None => 0,
        };
        let mut scratch = ThreadScratch {
            kernel: BlockScratch::default(),
            sample: self.sample.kernel(inputs.level)?,
            core_replica: AlignedVec::try_zeroed(core_len, CORE_ENTRIES)?,
        };
        let stop = || worker.stop.requested() || self.barrier.is_cancelled();
        for number in 0.. {
            let pass = self.pass(number);
            let pass = pass.as_ref().expect("a pass is created before it runs");
            let context = PassContext {
                inputs,
                layout,
                parameters,
                replicas: &self.replicas,
                segment: &pass.settings,
                pass,
                tasks: &self.tasks,
                batch_limits: &self.batch_limits,
                stop: worker.stop,
            };
            // A pass with class groups has no strata that share a merge, so `position` is also the index of the stratum.
            let strata_per_merge = inputs.plan.strata_per_merge;
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
            let is_last = pass.units.end == UNITS_PER_BLOCK;
            if pass.units.end == pass.segment_end && !is_last {
                self.measure_moments(&mut scratch.sample, worker.stop)?;
            }
            let mut finished = Ok(());
            let proceed = self.wait(|| {
                finished = self.finish_pass(pass, number);
                finished.is_err() || stop()
            });
            finished?;
            if !proceed || is_last {
                break;
            }
        }
        Ok(())
    }

    /// Measures the moments of the sample, together with the other threads.
    fn measure_moments(&self, kernel: &mut SampleKernel, stop: &StopFlag) -> Result<()> {
        let EpochArguments {
            inputs, parameters, ..
        } = self.arguments;
        run_shared_tasks(&self.next_chunk, SAMPLE_CHUNKS, |chunk| {
            let moments = self
                .sample
                .moments(chunk, inputs.data, parameters, kernel, stop);
            *self.sample_moments.borrow_mut(chunk) = moments;
            Ok(())
        })
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
        let task_count = self.arguments.inputs.task_count(strata[0]);
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

    /// Adapts the merge interval and creates the next pass, if any. All other threads must be waiting.
    fn finish_pass(&self, pass: &PartialPass<'a>, number: usize) -> Result<()> {
        let mut progress = self.progress();
        let statistics = std::mem::take(&mut progress.statistics);
        progress.interval.adapt(&statistics, self.max_passes);
        progress.squared_error += statistics.squared_error;
        let start = pass.units.end;
        if start == UNITS_PER_BLOCK {
            return Ok(());
        }
        let (settings, end) = if start < pass.segment_end {
            (pass.settings.clone(), pass.segment_end)
        } else {
            self.begin_segment(start, &pass.settings.curvature, &mut progress)?
        };
        let (inputs, interval) = (self.arguments.inputs, &progress.interval);
        let next = new_pass(inputs, settings, start..end, interval, self.max_passes);
        self.penalize_core(&next, &mut progress);
        self.prepare_stratum(&next, 0);
        let mut slot = self.passes[(number + 1) % 2]
            .write()
            .unwrap_or_else(|e| e.into_inner());
        *slot = Some(next);
        Ok(())
    }

    /// Begins a segment at unit `start`, after its moments were measured. `old` is the curvature of the last segment. Returns
    /// the settings and the end of the segment.
    fn begin_segment(
        &self,
        start: usize,
        old: &Curvature,
        progress: &mut Progress,
    ) -> Result<(Arc<SegmentSettings<'a>>, usize)> {
        let inputs = self.arguments.inputs;
        self.next_chunk.store(0, Ordering::Relaxed);
        let settings = segment_settings(&self.arguments, &self.sample, &self.sample_moments)?;
        let interval = &mut progress.interval;
        let pass_units = UNITS_PER_BLOCK / interval.passes_per_epoch.min(self.max_passes);
        let merged = f64::from(entries_between_merges(inputs, pass_units).total);
        let growth = curvature_growth(inputs, old, &settings, merged);
        let units = (start - progress.segment_start) as f64;
        interval.curvature_units = next_interval(units, growth, inputs.data.tensor.len());
        progress.segment_start = start;
        Ok((settings, segment_end(start, interval.curvature_units)))
    }
}

/// Derives the settings of a segment from the moments of the sample.
fn segment_settings<'a>(
    epoch: &EpochArguments<'a>,
    sample: &CurvatureSample,
    moments: &ExclusiveCells<CurvatureMoments>,
) -> Result<Arc<SegmentSettings<'a>>> {
    let (inputs, moments) = (epoch.inputs, moments.borrow_all());
    let curvature = Curvature::new(sample, moments.iter(), inputs.data, inputs.level)?;
    Ok(Arc::new(SegmentSettings::new(epoch, curvature)?))
}
