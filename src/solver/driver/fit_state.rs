//! What a fit starts from, beside the problem and the options.

use std::sync::Arc;
use std::time::Instant;

use crate::model::{Checkpoint, FitRecord, Model};
use crate::options::Options;
use crate::parallel::{ThreadPool, available_threads, varying_first_cpu};
use crate::progress::Monitor;
use crate::solver::algorithm::Purpose;
use crate::solver::holdout_split::HoldoutSplit;
use crate::solver::standardization::Standardization;

/// Initial state of a fit. The default is a fit from random starting values to all entries.
#[derive(Default)]
pub(in crate::solver) struct FitState {
    /// Checkpoint to resume from.
    pub checkpoint: Option<(Model, Checkpoint)>,
    /// Model to start from, unless the input gives one.
    pub start: Option<Arc<Model>>,
    /// Modes, counted from 0, whose rows start around 0 with `start = identity`; `None` takes the two largest.
    pub zero_mean_modes: Option<[usize; 2]>,
    /// Standardization of the data, if it is known already.
    pub standardization: Option<Standardization>,
    /// Split of the entries: the held-out part is the validation set.
    pub holdout: Option<HoldoutSplit>,
    /// Events so far.
    pub record: FitRecord,
    pub purpose: Purpose,
}

/// Start of a fit and the seconds spent on its activities.
#[derive(Clone, Copy)]
pub(in crate::solver) struct Clock {
    pub started: Instant,
    /// Until the first epoch.
    pub init_seconds: f64,
    pub update_seconds: f64,
    pub eval_seconds: f64,
}

impl Clock {
    pub(in crate::solver) fn start() -> Clock {
        Clock {
            started: Instant::now(),
            init_seconds: 0.0,
            update_seconds: 0.0,
            eval_seconds: 0.0,
        }
    }
}

/// Creates the thread pool that `options` ask for, to work until `monitor` cancels.
pub(in crate::solver) fn thread_pool<'m>(
    options: &Options,
    monitor: &'m dyn Monitor,
) -> ThreadPool<'m> {
    let threads = match options.threads {
        0 => available_threads(),
        n => n as usize,
    };
    ThreadPool::new(threads, options.pin, varying_first_cpu()).with_monitor(monitor)
}
