//! The gradient against central differences of the loss that the driver records.

use super::parameter_vector::{ParameterVector, parameters};
use super::solver::CmtfOptSolver;
use s3cmtf::format::{CooView, Values};
use s3cmtf::internals::EntryLayout;
use s3cmtf::internals::Model;
use s3cmtf::internals::RowPenalty;
use s3cmtf::internals::Standardization;
use s3cmtf::internals::initialization;
use s3cmtf::internals::{Algorithm as _, EpochRequest, FitContext, InitialState, Origin, Purpose};
use s3cmtf::internals::{Data, DataConfig};
use s3cmtf::options::{Algorithm, Initialization, ModelKind, Options, PenaltyScaling};
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf_kernel::parallel::ThreadPool;
use s3cmtf_kernel::random::RandomStream;
use s3cmtf_kernel::simd::{Level, padded_len};

/// Random entries, some cells more than once.
struct Entries {
    dims: Vec<u64>,
    columns: Vec<Vec<u32>>,
    values: Vec<f32>,
    weights: Vec<f32>,
}

impl Entries {
    fn random(dims: &[u64], count: usize, weighted: bool) -> Entries {
        let mut s = RandomStream::new(&[count as u64]);
        let columns = dims
            .iter()
            .map(|&d| (0..count).map(|_| s.below(d) as u32).collect());
        let columns: Vec<Vec<u32>> = columns.collect();
        let weight = |e: usize| [0.5, 2.0, 1.0, 0.0, 1.25][e % 5];
        Entries {
            dims: dims.to_vec(),
            columns,
            values: (0..count)
                .map(|_| 1.0 + s.standard_normal() as f32)
                .collect(),
            weights: (0..if weighted { count } else { 0 }).map(weight).collect(),
        }
    }

    fn view(&self, name: &str) -> CooView<'_> {
        let columns: Vec<&[u32]> = self.columns.iter().map(Vec::as_slice).collect();
        let view = CooView::new(name, &self.dims, &columns, Values::F32(&self.values)).unwrap();
        match self.weights.is_empty() {
            true => view,
            false => view.with_weights(Values::F32(&self.weights)).unwrap(),
        }
    }
}

/// A model with starting values and the solver that is to train it.
struct Fixture {
    model: Model,
    context: FitContext<'static>,
    solver: CmtfOptSolver,
}

impl Fixture {
    fn new(problem: &Problem<'_>, options: &Options, level: Level) -> Fixture {
        let pool = ThreadPool::new(1, false, 0);
        let (mut model, _) = Model::zeros(problem, options).unwrap();
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
        let layout = EntryLayout::InOrder;
        let mut data = Data::new(problem, &model.shape, config, &layout, &pool, &()).unwrap();
        let modes = initialization::two_largest_modes(problem);
        initialization::fill(&mut model, problem, &data, options, modes, &pool).unwrap();
        for (n, mean) in data.prior_means.iter_mut().enumerate() {
            mean[..2].copy_from_slice(&[0.1 * n as f32, -0.2]);
        }
        let biases = &standardization.biases;
        data.tensor.subtract_biases(biases, &pool).unwrap();
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
            algorithm: &Default::default(),
            vectors: &[],
            test: None,
            validation: None,
        };
        let solver = CmtfOptSolver::new(&mut model, &context, &state).unwrap();
        Fixture {
            model,
            context,
            solver,
        }
    }

    fn loss(&self) -> f64 {
        let error = self.solver.training_error(&self.model, &self.context, None);
        error.unwrap().loss
    }

    /// Returns the objective without constant terms, and its gradient.
    fn evaluate(&self) -> (f64, ParameterVector) {
        let FitContext {
            standardization,
            pool,
            ..
        } = &self.context;
        let mut gradient = ParameterVector::zeros(&self.model).unwrap();
        let (objective, biases) = (&self.solver.objective, &standardization.biases);
        let value = objective.evaluate(&self.model, biases, &mut gradient, pool);
        (value.unwrap().total, gradient)
    }
}

fn block_mut(model: &mut Model, block: usize) -> &mut [f32] {
    let order = model.order();
    let factor = match block {
        n if n < order => &mut model.modes[n].factor,
        m => &mut model.matrices[m - order].factor,
    };
    factor.as_mut_slice().unwrap()
}

/// Compares the gradient with central differences of the loss. The loss is quadratic in each single parameter, so that
/// differences are exact for any distance.
fn compare(dims: &[u64], options: &Options, weighted: bool, level: Level) {
    let mut tensor = Entries::random(dims, 60, weighted);
    // Some rows have entries of matrices only.
    tensor.dims[0] += 2;
    let observed = Entries::random(&[dims[0] + 2, 5], 14, weighted);
    let mut full = Entries::random(&[dims[1], 4], 9, false);
    // A full matrix has one value for each position.
    for e in 0..9 {
        full.columns[0][e] = e as u32 % dims[1] as u32;
        full.columns[1][e] = e as u32 / dims[1] as u32;
    }
    let sampled = Entries::random(&[dims[0] + 2, 6], 8, false);
    let problem = Problem::builder(tensor.view("x"))
        .matrix(0, observed.view("observed"), 1.5, MatrixKind::Observed)
        .matrix(1, full.view("full"), 0.5, MatrixKind::Full)
        .matrix(0, sampled.view("sampled"), 2.0, MatrixKind::Sampled(2))
        .build(&())
        .unwrap();
    let mut fixture = Fixture::new(&problem, options, level);
    let (value, gradient) = fixture.evaluate();
    let core = options.lambda_reg.unwrap() * options.rank[0] as f64;
    let loss = fixture.loss();
    if !options.biases || !options.allows_baseline() {
        let expected = value + 0.5 * core;
        assert!((loss - expected).abs() < 1e-5 * loss, "{loss}, {expected}");
    }
    let largest = gradient
        .blocks
        .concat()
        .iter()
        .fold(0.0f32, |x, y| x.max(y.abs()));
    const DISTANCE: f32 = 0.25;
    let (rank, stride) = (options.rank[0], padded_len(options.rank[0]));
    for (block, elements) in gradient.blocks.iter().enumerate() {
        for (element, &expected) in elements.iter().enumerate() {
            let k = element / rank * stride + element % rank;
            let old = block_mut(&mut fixture.model, block)[k];
            let mut at = |x: f32| {
                block_mut(&mut fixture.model, block)[k] = x;
                (f64::from(x), fixture.loss())
            };
            let ((a, below), (b, above)) = (at(old - DISTANCE), at(old + DISTANCE));
            at(old);
            let found = (above - below) / (b - a);
            assert!(
                (found - f64::from(expected)).abs() < 2e-4 * f64::from(largest),
                "block {block}, element {element}: {found} instead of {expected}, {options:?}"
            );
        }
    }
}

fn options(unobserved: &str) -> Options {
    let mut o = Options::default();
    o.algorithm = Algorithm::External(&crate::algorithms::CMTF_OPT);
    (o.model, o.rank) = (ModelKind::Cp, vec![3]);
    (o.start, o.lambda_reg) = (Initialization::Normal, Some(0.3));
    o.set("unobserved", unobserved).unwrap();
    o
}

#[test]
fn the_gradient_is_that_of_the_loss() {
    for dims in [&[7, 5][..], &[6, 5, 4], &[5, 4, 3, 3], &[4, 3, 3, 2, 3]] {
        for (unobserved, weighted) in [("unknown", false), ("unknown", true), ("zeros", false)] {
            for baseline in [false, true] {
                let mut o = options(unobserved);
                (o.mean, o.biases) = (baseline, baseline);
                compare(dims, &o, weighted, Level::best());
            }
        }
    }
    let mut o = options("unknown");
    (o.rank, o.penalty_per) = (vec![19], PenaltyScaling::Constant);
    for level in Level::available() {
        compare(&[6, 5, 4], &o, true, level);
    }
}

#[test]
fn an_epoch_lowers_the_loss_until_none_can() {
    let tensor = Entries::random(&[6, 5, 4], 60, false);
    let problem = Problem::builder(tensor.view("x")).build(&()).unwrap();
    for unobserved in ["unknown", "zeros"] {
        let mut o = options(unobserved);
        (o.mean, o.biases) = (false, false);
        let mut fixture = Fixture::new(&problem, &o, Level::best());
        let mut run = || {
            let request = EpochRequest {
                number: 1,
                attempt: 0,
                eta: 0.0,
            };
            let Fixture {
                model,
                context,
                solver,
            } = &mut fixture;
            solver.epoch(model, context, request).unwrap();
            let bits = parameters(model).concat().into_iter().map(f32::to_bits);
            (
                solver.value.unwrap().total,
                solver.has_converged(),
                bits.collect::<Vec<u32>>(),
            )
        };
        let (mut value, _, mut bits) = run();
        let mut epochs = 1;
        loop {
            let (next, is_lowest, next_bits) = run();
            epochs += 1;
            assert!(epochs < 2000, "no end at {value}");
            if is_lowest {
                assert!(next == value && next_bits == bits);
                break;
            }
            assert!(next < value, "{next} after {value}");
            (value, bits) = (next, next_bits);
        }
        // A later epoch changes nothing.
        let (_, is_lowest, next_bits) = run();
        assert!(is_lowest && next_bits == bits);
        // Products in f32 hide changes of f below EPSILON f. A step of the gradient g lowers f by g^2 / (2 L), where the
        // curvature L of a row is about the number of its entries.
        let curvature = 60.0 / 6.0;
        let hidden = (2.0 * curvature * f64::from(f32::EPSILON) * value).sqrt();
        let (_, gradient) = fixture.evaluate();
        let largest = gradient
            .blocks
            .concat()
            .iter()
            .fold(0.0f32, |x, y| x.max(y.abs()));
        assert!(
            f64::from(largest) < hidden,
            "{largest}, not below {hidden}, after {epochs} epochs"
        );
    }
}
