//! The interface between the driver and the algorithms.
//!
//! The [driver](super::driver) runs every algorithm in the same way: it copies the data in the layout that the algorithm
//! needs, fills the model with starting values, creates the algorithm, and then alternates epochs with measurements
//! until a stopping rule ends the fit. An algorithm implements [`Algorithm`]; only [`Algorithm::epoch`] has no default. What is
//! known of it before it is created is its [`AlgorithmDefinition`](super::algorithm_definition::AlgorithmDefinition).

use super::algorithm_state::AlgorithmState;
use super::data::Data;
use super::entries::Entries;
use super::loss::{self, SquaredErrors};
use super::reparametrization;
use super::standardization::Standardization;
use crate::error::Result;
use crate::fit_plan::{Choice, NoisePlan};
use crate::model::Model;
use crate::options::{ModelKind, Options};
use crate::parallel::ThreadPool;
use crate::progress::Monitor;
use crate::simd::Level;
use crate::value_range::ValueRange;

/// Everything that an algorithm reads and the driver owns.
pub struct FitContext<'m> {
    /// All options, resolved. The seed is among them.
    pub options: Options,
    /// The entries, standardized.
    pub data: Data,
    /// How values were standardized.
    pub standardization: Standardization,
    /// What the model is for.
    pub purpose: Purpose,
    /// Instruction set of the kernels.
    pub level: Level,
    /// The threads; they work until the monitor of the fit cancels.
    pub pool: ThreadPool<'m>,
}

/// What the model of a fit is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Purpose {
    /// The result that the caller asked for.
    #[default]
    Result,
    /// Starting values of another fit. No posterior samples are kept.
    StartingValues,
}

/// An epoch that the driver asks for.
#[derive(Clone, Copy)]
pub struct EpochRequest {
    /// Number of the epoch, counted from 1.
    pub number: u64,
    /// Number of rollbacks so far. An epoch that is repeated after one visits the entries in another order.
    pub attempt: u64,
    /// Learning rate; NaN if the algorithm has none.
    pub eta: f64,
}

impl EpochRequest {
    /// Returns the numbers that, with the seed, identify the random streams of the epoch.
    pub(super) fn stream(&self) -> [u64; 2] {
        [self.number, self.attempt]
    }
}

/// Origin of the parameters that the first epoch starts from.
#[derive(Clone, Copy)]
pub enum Origin<'a> {
    /// Random starting values.
    Random,
    /// Another model, whose rows the model has taken over.
    Model(&'a Model),
    /// A checkpoint of this fit.
    Checkpoint,
}

/// State in which an algorithm is created.
pub struct InitialState<'a> {
    /// Where the parameters come from.
    pub origin: Origin<'a>,
    /// The state of a checkpoint, as [`Algorithm::state`] returned it; otherwise empty.
    pub algorithm: &'a AlgorithmState,
    /// The vectors of a checkpoint, as [`Algorithm::vectors`] returned them, with their parts joined.
    pub vectors: &'a [Vec<f32>],
    /// The test entries, if any.
    pub test: Option<&'a Entries>,
    /// The validation entries, if any.
    pub validation: Option<&'a Entries>,
}

/// Entries outside the training set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvaluationSet {
    Test,
    Validation,
}

/// Error on the training entries.
#[derive(Debug, Clone, Copy)]
pub struct TrainingError {
    /// In units of the data.
    pub rmse: f64,
    /// The objective that epochs lower.
    pub loss: f64,
}

/// A training algorithm.
pub trait Algorithm {
    /// Runs one epoch. Returns the sum of squared errors met on the way, which reveals a diverging fit without another
    /// pass (0 if the algorithm does not measure it). After an error, [`Error::Cancelled`](crate::error::Error) among them,
    /// the model is invalid, and the driver restores it.
    fn epoch(
        &mut self,
        model: &mut Model,
        context: &FitContext<'_>,
        request: EpochRequest,
    ) -> Result<f64>;

    /// Completes the start of a new fit before its first epoch. What it has to choose, `planned` says; without a plan it
    /// chooses by held-out entries. Returns the noise, if the algorithm models it, and what was chosen.
    fn prepare(
        &mut self,
        model: &mut Model,
        context: &FitContext<'_>,
        planned: Option<&NoisePlan>,
    ) -> Result<(Option<NoisePlan>, Vec<Choice>)> {
        let _ = (model, context, planned);
        Ok((None, Vec::new()))
    }

    /// Returns the state to keep in a checkpoint.
    fn state(&self) -> AlgorithmState {
        AlgorithmState::default()
    }

    /// Returns the vectors to keep in a checkpoint, each in parts. They are those after epoch `epoch`: the last one, or the
    /// one before it if that was cancelled.
    fn vectors(&self, epoch: u64) -> Vec<Vec<&[f32]>> {
        let _ = epoch;
        Vec::new()
    }

    /// Returns whether further epochs cannot change the model. The fit then ends with the last one.
    fn has_converged(&self) -> bool {
        false
    }

    /// Computes the error on the training entries. `squared_errors` are given if they are known already.
    fn training_error(
        &self,
        model: &Model,
        context: &FitContext<'_>,
        squared_errors: Option<SquaredErrors>,
    ) -> Result<TrainingError> {
        default_training_error(model, context, squared_errors)
    }

    /// Computes the RMSE on the entries of an evaluation set, in units of the data; NaN without entries.
    fn evaluation_error(
        &self,
        set: EvaluationSet,
        entries: Option<&Entries>,
        model: &Model,
        context: &FitContext<'_>,
    ) -> Result<f64> {
        let _ = set;
        default_evaluation_error(entries, model, context)
    }

    /// Returns the number of the last epoch, as known after epoch `epoch`.
    fn last_epoch(&self, model: &Model, options: &Options, epoch: u64) -> u64 {
        let _ = (model, epoch);
        options.epochs
    }

    /// Returns whether too large a learning rate can make the loss grow. The driver then watches the loss and rolls back.
    fn can_diverge(&self) -> bool {
        true
    }

    /// Returns whether predictions are averaged over samples of many epochs. The driver then keeps the last model instead of
    /// the one with the lowest validation error.
    fn averages_samples(&self) -> bool {
        false
    }

    /// Returns whether the algorithm has copied all entries, training and evaluation entries alike. The driver then frees
    /// its own.
    fn has_own_entries(&self) -> bool {
        false
    }

    /// Brings the final model into its canonical form, which changes no prediction: orthonormal factors for Tucker,
    /// normalized columns for non-negative models.
    fn finish(&mut self, model: &mut Model, context: &FitContext<'_>) -> Result<()> {
        canonical_form(model, &context.options, context.pool.monitor())
    }
}

impl FitContext<'_> {
    /// Computes the squared errors on tensor entries, in standardized units. Predictions are clipped with the option `clip` only.
    pub fn squared_errors(&self, model: &Model, entries: &Entries) -> Result<SquaredErrors> {
        let (standardization, pool) = (&self.standardization, &self.pool);
        let clip = if self.options.clip == Some(true) {
            standardization.standardized_range(model.range)
        } else {
            ValueRange::UNBOUNDED
        };
        loss::tensor_squared_errors(model, entries, standardization, clip, self.level, pool)
    }

    /// Returns the RMSE for entries of a total weight, in units of the data. With the option `clip`, which is resolved, it is
    /// that of clipped predictions.
    pub fn rmse(&self, squared_errors: SquaredErrors, weight: f64) -> f64 {
        let squares = if self.options.clip == Some(true) {
            squared_errors.clipped
        } else {
            squared_errors.plain
        };
        (squares / weight).sqrt() * self.standardization.scale
    }
}

/// Computes the RMSE and the loss on the training entries for models that are one set of parameters.
pub fn default_training_error(
    model: &Model,
    context: &FitContext<'_>,
    squared_errors: Option<SquaredErrors>,
) -> Result<TrainingError> {
    let FitContext {
        options,
        data,
        standardization,
        level,
        pool,
        ..
    } = context;
    let squared_errors = match squared_errors {
        Some(known) => known,
        None => context.squared_errors(model, &data.tensor)?,
    };
    let objective = loss::objective(model, data, squared_errors.plain, options, *level, pool)?;
    let (biases, damping) = (&standardization.biases, &standardization.bias_damping);
    let bias_penalty = loss::bias_penalty(biases, damping, *level, pool)?;
    Ok(TrainingError {
        rmse: context.rmse(squared_errors, data.tensor_weight),
        loss: objective + bias_penalty,
    })
}

/// Computes the RMSE on some entries for models that are one set of parameters; NaN without entries.
pub(super) fn default_evaluation_error(
    entries: Option<&Entries>,
    model: &Model,
    context: &FitContext<'_>,
) -> Result<f64> {
    match entries.filter(|e| e.len() > 0) {
        Some(entries) => {
            let squared_errors = context.squared_errors(model, entries)?;
            Ok(context.rmse(squared_errors, entries.total_weight()))
        }
        None => Ok(f64::NAN),
    }
}

/// Normalizes the columns of a non-negative model, or orthonormalizes the factors of a Tucker model if the option
/// `orthogonal` is set. Predictions do not change, even if a cancellation ends it early.
pub fn canonical_form(model: &mut Model, options: &Options, monitor: &dyn Monitor) -> Result<()> {
    if options.nonneg {
        reparametrization::normalize_columns(model, monitor)
    } else if options.orthogonal && options.model == ModelKind::Tucker {
        reparametrization::orthogonalize(model, monitor)
    } else {
        Ok(())
    }
}
