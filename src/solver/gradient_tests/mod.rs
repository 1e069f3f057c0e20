//! Tests that an epoch of SGD follows the gradient of the paper's objective.
//!
//! `finite_differences` compares an epoch with a tiny learning rate with central differences of the objective, term by
//! term. `reference_sgd` compares epochs of `naive` and `opt` with each other and with plain SGD in `f64`. `penalty_at_scale`
//! tests the penalty for large numbers of entries, also that of `als`.

mod finite_differences;
mod penalty_at_scale;
mod random_entries;
mod reference_sgd;

use super::algorithm::{Algorithm, EpochRequest, FitContext, InitialState, Origin, Purpose};
use super::algorithm_factory;
use super::data::{Data, DataConfig};
use super::initialization;
use super::row_penalty::RowPenalty;
use super::standardization::Standardization;
use crate::model::Model;
use crate::options::Options;
use crate::parallel::ThreadPool;
use crate::problem::Problem;
use crate::simd::{Level, padded_len};

/// A model with starting values and the algorithm that is to train it.
struct Fixture {
    model: Model,
    context: FitContext<'static>,
    algorithm: Box<dyn Algorithm>,
}

impl Fixture {
    /// Prepares a fit with these options, which are resolved, on one thread.
    fn new(problem: &Problem<'_>, options: &Options, level: Level) -> Fixture {
        let pool = ThreadPool::new(1, false, 0);
        let (mut model, _) = Model::zeros(problem, options).unwrap();
        let plan = algorithm_factory::plan(problem, &model.shape, options);
        let standardization = Standardization::new(problem, options, &pool).unwrap();
        let config = DataConfig {
            seed: options.seed,
            matrix_weights: &problem.matrix_weights(options),
            core_eta_scale: 1.0,
            penalty: RowPenalty {
                lambda: options.lambda_reg.unwrap(),
                per: options.penalty_per,
            },
            standardization: &standardization,
            holdout: None,
        };
        let data = Data::new(problem, &model.shape, config, &plan.layout, &pool, &()).unwrap();
        let modes = initialization::two_largest_modes(problem);
        initialization::fill(&mut model, problem, &data, options, modes, &pool).unwrap();
        let context = FitContext {
            options: options.clone(),
            data,
            standardization,
            purpose: Purpose::Result,
            level,
            pool,
        };
        let state = InitialState {
            origin: Origin::Random,
            vectors: &[],
            algorithm: &Default::default(),
            test: None,
            validation: None,
        };
        let algorithm = algorithm_factory::create(plan, &mut model, &context, &state).unwrap();
        Fixture {
            model,
            context,
            algorithm,
        }
    }

    /// Runs the first epoch.
    fn run_epoch(&mut self, eta: f64) {
        let request = EpochRequest {
            number: 1,
            attempt: 0,
            eta,
        };
        self.algorithm
            .epoch(&mut self.model, &self.context, request)
            .unwrap();
    }
}

/// Position of a parameter in a model.
#[derive(Debug, Clone, Copy)]
struct Parameter {
    /// 0 for the core, then the modes, then the matrices.
    part: usize,
    /// Index into the memory of the part.
    index: usize,
}

/// Returns all parameters of a model, without padding and mean rows.
fn parameters(model: &Model) -> Vec<Parameter> {
    let last = model.shape.ranks()[model.order() - 1];
    let stride = padded_len(last);
    let core = (0..model.core.len()).filter(|k| k % stride < last);
    let mut all: Vec<Parameter> = core.map(|index| Parameter { part: 0, index }).collect();
    let modes = model.modes.iter().map(|m| (&m.factor, m.rows.len()));
    let matrices = model.matrices.iter().map(|m| (&m.factor, m.factor.len()));
    for (n, (factor, rows)) in modes.chain(matrices).enumerate() {
        let (rank, stride) = (factor.rank(), factor.stride());
        let indices = (0..rows * stride).filter(|k| k % stride < rank);
        all.extend(indices.map(|index| Parameter { part: 1 + n, index }));
    }
    all
}

/// Returns a parameter for reading and writing.
fn value_mut(model: &mut Model, Parameter { part, index }: Parameter) -> &mut f32 {
    let order = model.order();
    let rows = match part {
        0 => return &mut model.core[index],
        n if n <= order => &mut model.modes[n - 1].factor,
        m => &mut model.matrices[m - 1 - order].factor,
    };
    &mut rows.as_mut_slice().unwrap()[index]
}

/// Returns the values of all parameters.
fn values(model: &mut Model) -> Vec<f32> {
    let all = parameters(model);
    all.iter().map(|&p| *value_mut(model, p)).collect()
}
