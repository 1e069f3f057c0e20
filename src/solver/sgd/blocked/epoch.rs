//! One epoch on a model.

use super::config::{EpochArguments, FitInputs, Parameters};
use super::epoch_run::EpochRun;
use super::merge_interval::MergeInterval;
use crate::error::Result;
use crate::kernel::CoreLayout;
use crate::model::Model;
use crate::parallel::ThreadPool;

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
        let mut core = layout.to_fiber_first(&model.core, pool.monitor())?;
        let parameters = Parameters::new(
            self.plan,
            &layout,
            &mut core,
            &mut model.modes,
            &mut model.matrices,
        )?;
        let threads = pool.threads().min(self.max_task_count());
        let arguments = EpochArguments {
            inputs: self,
            layout: &layout,
            shape: &model.shape,
            parameters: &parameters,
            eta,
            stream_id,
        };
        let run = EpochRun::new(arguments, interval, threads)?;
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
