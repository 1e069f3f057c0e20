//! A fit and its preparation: data, starting values, evaluation entries and algorithm.

use std::sync::Arc;

use super::checkpoint_restore::restore_checkpoint;
use super::fit_monitor::FitMonitor;
use super::fit_state::{Clock, FitState, thread_pool};
use crate::error::{Error, Result};
use crate::format::CooView;
use crate::model::{Model, ParameterSnapshot};
use crate::options::{self, Initialization, Options};
use crate::problem::Problem;
use crate::solver::algorithm::{Algorithm, FitContext, InitialState, Origin, Purpose};
use crate::solver::algorithm_factory::{self, kernel_level};
use crate::solver::core_eta_scale;
use crate::solver::data::{Data, DataConfig};
use crate::solver::entries::Entries;
use crate::solver::evaluation_entries::{given_entries, held_out_entries};
use crate::solver::initialization::{self, WarmStart};
use crate::solver::input::FitInput;
use crate::solver::observer::{Event, Observer};
use crate::solver::resume::{Progress, different_data};
use crate::solver::row_penalty::RowPenalty;
use crate::solver::standardization::Standardization;

/// A fit whose options are resolved.
pub(in crate::solver) struct Fit<'a> {
    pub(super) input: &'a FitInput<'a>,
    pub(in crate::solver) context: FitContext<'a>,
    pub(super) monitor: &'a FitMonitor<'a>,
    pub(super) algorithm: Box<dyn Algorithm>,
    pub(super) test: Option<Entries>,
    pub(super) validation: Option<Entries>,
    pub(in crate::solver) model: Model,
    /// Parameters after the last epoch that was evaluated and had not diverged. `None` if the model has no use after a
    /// cancellation or divergence, which is then an error.
    pub(super) last_good: Option<ParameterSnapshot>,
    /// Whether the parameters before the current epoch are `last_good`.
    pub(super) is_at_last_good: bool,
    /// Parameters before the current epoch, if they are not `last_good`.
    pub(super) before_epoch: Option<ParameterSnapshot>,
    /// Parameters with the lowest validation error.
    pub(super) best: Option<ParameterSnapshot>,
    pub(super) progress: Progress,
    pub(super) clock: Clock,
    pub(super) checkpoints: Checkpoints,
}

/// What became of the checkpoints of a fit.
pub(super) struct Checkpoints {
    /// Epoch of the last that was written, or of the one that the fit resumed from.
    pub written: u64,
    /// Number that could not be written.
    pub failed: u64,
    /// Epoch of the last of these.
    pub last_failed: Option<u64>,
}

impl<'a> Fit<'a> {
    /// Prepares a fit of `options`, which are resolved, from `state`.
    pub(in crate::solver) fn new(
        problem: &Problem<'_>,
        options: &Options,
        input: &'a FitInput<'a>,
        state: FitState,
        observer: &mut dyn Observer,
        monitor: &'a FitMonitor<'a>,
    ) -> Result<Fit<'a>> {
        let FitState {
            checkpoint,
            mut start,
            zero_mean_modes,
            standardization,
            holdout,
            record,
            purpose,
        } = state;
        let is_resumed = checkpoint.is_some();
        let mut options = options.clone();
        let level = kernel_level(&options)?;
        let pool = thread_pool(&options, monitor);
        let mut standardization = match standardization {
            Some(known) => known,
            None => Standardization::new(problem, &options, &pool)?,
        };
        if options.lambda_bias.is_empty() {
            options
                .lambda_bias
                .clone_from(&standardization.bias_damping);
        }
        if options.algorithm == options::Algorithm::Gibbs
            && options.biases
            && purpose == Purpose::Result
        {
            standardization.estimate_bias_damping(problem, &options, &pool)?;
        }
        let (mut model, lowered_ranks) = Model::zeros(problem, &options)?;
        let plan = algorithm_factory::plan(problem, &model.shape, &options);
        standardization.store(&mut model)?;
        let config = DataConfig {
            seed: options.seed,
            matrix_weights: &problem.matrix_weights(&options),
            // Without one it is computed below, from the starting values.
            core_eta_scale: options.core_step.unwrap_or(1.0),
            penalty: RowPenalty {
                lambda: options.lambda_reg.unwrap_or(0.0),
                per: options.penalty_per,
            },
            standardization: &standardization,
            holdout,
        };
        let data = Data::new(problem, &model.shape, config, &plan.layout, &pool, monitor)?;
        let mut context = FitContext {
            options,
            data,
            standardization,
            purpose,
            level,
            pool,
        };
        model.record = record;
        for event in lowered_ranks.into_iter().map(Event::RankLowered) {
            event.record(&mut model.record, 0);
            observer.event(&event);
        }
        let FitContext {
            options,
            data,
            standardization,
            pool,
            ..
        } = &mut context;
        let zero_mean_modes =
            zero_mean_modes.unwrap_or_else(|| initialization::two_largest_modes(problem));
        let complete_start = start
            .as_mut()
            .filter(|_| input.init.is_none())
            .and_then(Arc::get_mut)
            .filter(|start| initialization::has_all_parameters(start, &model));
        let is_complete = complete_start.is_some();
        match complete_start {
            Some(start) => {
                initialization::take_parameters(&mut model, start, standardization, pool)?;
            }
            None => {
                initialization::fill(&mut model, problem, data, options, zero_mean_modes, pool)?;
            }
        }
        let init = input.init.or(start.as_deref());
        let mut vectors = Vec::new();
        let (mut progress, best) = match checkpoint {
            Some((saved_model, mut saved)) => {
                vectors = std::mem::take(&mut saved.vectors);
                restore_checkpoint(&mut model, saved_model, saved, standardization, input)?
            }
            None => {
                if let Some(init) = init.filter(|_| !is_complete) {
                    let warm_start = WarmStart {
                        nonneg: options.nonneg,
                        allows_smaller_rank: input.init.is_none(),
                    };
                    initialization::from_model(
                        &mut model,
                        init,
                        standardization,
                        warm_start,
                        monitor,
                    )?;
                }
                let from_identity = init.is_none_or(initialization::has_prior_means);
                initialization::set_prior_means(
                    &mut model,
                    options,
                    zero_mean_modes,
                    from_identity,
                )?;
                (Progress::default(), None)
            }
        };
        if options.core_step.is_none() {
            let scale = core_eta_scale::of_starting_values(&model, pool)?;
            (options.core_step, model.options.core_step) = (Some(scale), Some(scale));
            data.core_eta_scale = scale;
        }
        for (mode, prior_mean) in model.modes.iter().zip(&mut data.prior_means) {
            prior_mean[..mode.prior.linear.len()].copy_from_slice(&mode.prior.linear);
        }
        let read = |view: &Option<CooView<'_>>| {
            view.as_ref()
                .map(|v| given_entries(v, &model, standardization, pool, monitor))
                .transpose()
        };
        let mut validation = match holdout {
            Some(split) => Some(held_out_entries(
                problem,
                &model,
                standardization,
                split,
                pool,
                monitor,
            )?),
            None => read(&input.valid)?,
        };
        if let (Some(given), Some(0)) = (&input.valid, validation.as_ref().map(Entries::len)) {
            return Err(Error::argument(format!(
                "{}: all weights are 0; it cannot validate anything",
                given.name()
            )));
        }
        let mut crc = crc32fast::Hasher::new();
        validation.iter().for_each(|v| v.update_checksum(&mut crc));
        let fingerprint = (u64::from(data.fingerprint()) << 32) | u64::from(crc.finalize());
        if is_resumed && progress.data_fingerprint != fingerprint {
            return Err(different_data(input));
        }
        progress.data_fingerprint = fingerprint;
        let mut test = read(&input.test)?;
        standardization.load_biases(&model);
        let evaluated = test.iter_mut().chain(&mut validation);
        for entries in evaluated.chain([&mut data.tensor]) {
            entries.subtract_biases(&standardization.biases, pool)?;
        }
        let initial_state = InitialState {
            origin: match init {
                _ if is_resumed => Origin::Checkpoint,
                Some(init) => Origin::Model(init),
                None => Origin::Random,
            },
            algorithm: &progress.algorithm,
            vectors: &vectors,
            test: test.as_ref(),
            validation: validation.as_ref(),
        };
        let algorithm = algorithm_factory::create(plan, &mut model, &context, &initial_state)?;
        if algorithm.has_own_entries() {
            context.data.release_entries();
            let evaluated = test.iter_mut().chain(&mut validation);
            evaluated.for_each(Entries::release);
        }
        context.pool.check_cancelled()?;
        // Frees what the fit starts from before the parameters are copied.
        drop((start, vectors));
        let mut fit = Fit {
            algorithm,
            test,
            validation,
            last_good: None,
            is_at_last_good: true,
            before_epoch: None,
            checkpoints: Checkpoints {
                written: progress.epoch,
                failed: 0,
                last_failed: None,
            },
            context,
            input,
            model,
            best,
            progress,
            clock: monitor.clock(),
            monitor,
        };
        let has_old_biases = fit.context.options.start == Initialization::Gibbs
            || fit.context.standardization.has_sampled_biases;
        if has_old_biases && !is_resumed {
            // The biases were fitted without the rows of the starting model, or to some entries only.
            fit.update_biases()?;
        }
        if purpose == Purpose::Result || monitor.has_time_limit() {
            fit.last_good = Some(fit.model.snapshot()?);
        }
        Ok(fit)
    }
}
