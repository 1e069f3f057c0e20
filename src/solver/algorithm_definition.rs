//! What the solver knows of an algorithm before one is created.
//!
//! Every algorithm implements [`AlgorithmDefinition`] in its own folder. Everything but the plan and the number of operations has
//! a default. [`algorithm_factory`](super::algorithm_factory) lists the definitions.

use super::algorithm::{Algorithm, FitContext, InitialState};
use super::algorithm_state::AlgorithmState;
use super::entry_layout::EntryLayout;
use super::fit_sizes::FitSizes;
use super::rowwise::{FixedModel, NewRowEntries, NewRows};
use crate::error::Result;
use crate::fit_plan::Choice;
use crate::kernel::CoreShape;
use crate::model::Model;
use crate::options::{ModelKind, Options};
use crate::parallel::ThreadPool;
use crate::problem::Problem;
use crate::simd::Level;

/// The definition of an algorithm.
pub trait AlgorithmDefinition: Sync {
    /// Refuses a problem or options that the algorithm does not support, before any work on them.
    fn check_support(&self, problem: &Problem<'_>, options: &Options) -> Result<()> {
        let _ = (problem, options);
        Ok(())
    }

    /// Plans the algorithm for a model of this shape.
    fn plan(&self, problem: &Problem<'_>, shape: &CoreShape, options: &Options) -> AlgorithmPlan;

    /// Describes how the algorithm interprets its own options, for the record of the fit.
    fn selections(&self, options: &Options) -> Vec<Choice> {
        let _ = options;
        Vec::new()
    }

    /// Returns the instruction set of the kernels.
    fn kernel_level(&self, options: &Options) -> Result<Level> {
        Level::choose(options.kernel.level())
    }

    /// Returns the state before the first epoch. Checkpoints have its fields.
    fn initial_state(&self) -> AlgorithmState {
        AlgorithmState::default()
    }

    /// Checks the state of a checkpoint, which has the fields of [`AlgorithmDefinition::initial_state`].
    fn check_state(&self, state: &AlgorithmState) -> std::result::Result<(), String> {
        let _ = state;
        Ok(())
    }

    /// Solves for new rows of a fitted model, given everything else; `None` if they are the least-squares solutions of their entries
    /// alone. `strengths` are the penalties of the rows.
    fn solve_new_rows(
        &self,
        model: &Model,
        fixed: &FixedModel<'_>,
        entries: &NewRowEntries<'_>,
        strengths: &[f32],
        pool: &ThreadPool<'_>,
    ) -> Option<Result<NewRows>> {
        let _ = (model, fixed, entries, strengths, pool);
        None
    }

    /// Returns the floating-point operations of an epoch per entry.
    fn flops_per_entry(&self, model: &ModelSize, options: &Options) -> f64;

    /// Returns the bytes that the algorithm needs besides copies of the entries and of the parameters.
    fn further_bytes(&self, sizes: &FitSizes, options: &Options) -> f64 {
        let _ = (sizes, options);
        0.0
    }

    /// Returns whether a fit that needs more memory than is available is refused before any of it is allocated, because
    /// the algorithm is known to need much.
    fn checks_memory(&self) -> bool {
        false
    }
}

/// The sizes of a model that determine the number of operations per entry.
pub struct ModelSize {
    /// Whether the core is diagonal.
    pub is_cp: bool,
    /// Number of modes.
    pub order: f64,
    /// Number of elements of a full core.
    pub core: f64,
    /// Largest rank of a mode.
    pub largest_rank: f64,
}

impl ModelSize {
    /// Returns the sizes of a model with these options and ranks.
    pub fn new(options: &Options, ranks: &[usize]) -> ModelSize {
        ModelSize {
            is_cp: options.model == ModelKind::Cp,
            order: ranks.len() as f64,
            core: ranks.iter().map(|&rank| rank as f64).product(),
            largest_rank: ranks.iter().copied().max().unwrap_or(1) as f64,
        }
    }
}

/// Creates an algorithm for a model with starting values.
type Create =
    dyn FnOnce(&mut Model, &FitContext<'_>, &InitialState<'_>) -> Result<Box<dyn Algorithm>>;

/// An algorithm that is chosen but not created, because its data is not copied yet.
pub struct AlgorithmPlan {
    /// The layout in which the algorithm needs the entries.
    pub layout: EntryLayout,
    create: Box<Create>,
}

impl AlgorithmPlan {
    /// Plans an algorithm that `create` creates once the entries are copied in this layout.
    pub fn new<A: Algorithm + 'static>(
        layout: EntryLayout,
        create: impl FnOnce(&mut Model, &FitContext<'_>, &InitialState<'_>) -> Result<A> + 'static,
    ) -> AlgorithmPlan {
        AlgorithmPlan {
            layout,
            create: Box::new(|model, context, state| {
                Ok(Box::new(create(model, context, state)?) as Box<dyn Algorithm>)
            }),
        }
    }

    /// Creates the algorithm for a model with starting values.
    pub(super) fn create(
        self,
        model: &mut Model,
        context: &FitContext<'_>,
        state: &InitialState<'_>,
    ) -> Result<Box<dyn Algorithm>> {
        (self.create)(model, context, state)
    }
}
