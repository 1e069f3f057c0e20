//! Construction of a row-wise solver from the driver's data.

use std::borrow::Cow;
use std::sync::Arc;

use super::holdout::HoldoutEntries;
use super::noise_pilot::{NoisePilot, pilot_split, pilot_weights};
use super::probit::Probit;
use super::problem::{MatrixInput, ModePenalty, RowwiseProblem, Settings};
use super::solver::RowwiseSolver;
use super::state::SweepState;
use super::update::Update;
use super::value_scaling::ValueScaling;
use crate::error::{Error, Result};
use crate::kernel::{CooSlices, CoreKind};
use crate::model::{Model, NoiseFactors, PosteriorSamples};
use crate::options::{Algorithm, LikelihoodChoice, Options, Penalty};
use crate::parallel::ThreadPool;
use crate::solver::algorithm::{FitContext, InitialState, Origin, Purpose};
use crate::solver::data::Data;
use crate::solver::entries::Entries;
use crate::solver::full_matrix::FullMatrix;
use crate::solver::holdout_split::HoldoutSplit;
use crate::try_alloc::{try_collect, try_copies, try_with_capacity};
use crate::value_range::ValueRange;

impl RowwiseSolver {
    /// Prepares the first sweep.
    pub(in crate::solver) fn new(
        model: &mut Model,
        context: &FitContext<'_>,
        initial: &InitialState<'_>,
    ) -> Result<RowwiseSolver> {
        let FitContext {
            options,
            data,
            level,
            pool,
            ..
        } = context;
        let origin = initial.origin;
        check_options(options)?;
        let is_gibbs = options.algorithm == Algorithm::Gibbs;
        let has_biases = is_gibbs && options.biases;
        let scaling = if is_gibbs {
            // The driver has subtracted the mean.
            let range = ValueRange {
                min: model.range.min - model.mean,
                max: model.range.max - model.mean,
            };
            ValueScaling::standardizing(data.tensor.list(), range)
        } else {
            ValueScaling::identity(model.range)
        };
        let settings = Settings {
            scaling,
            update: if is_gibbs {
                Update::Sample { seed: options.seed }
            } else {
                Update::LeastSquares {
                    core_ridge: data.penalty.lambda,
                    nonneg: options.nonneg,
                }
            },
            has_biases,
            level: *level,
        };
        let chooses_noise =
            is_gibbs && context.purpose == Purpose::Result && !matches!(origin, Origin::Checkpoint);
        let split = pilot_split(data.tensor.len(), options.seed).filter(|_| chooses_noise);
        let mut problem = build_problem(model, data, settings, split, pool)?;
        let pilot = match split {
            Some(split) => {
                let row_counts: Vec<usize> = model.modes.iter().map(|m| m.rows.len()).collect();
                let entries = data.tensor.list();
                Some(NoisePilot::new(entries, &row_counts, scaling, split, pool)?)
            }
            None => None,
        };
        let probit_candidate = match context.purpose {
            Purpose::Result if is_gibbs => probit_candidate(options, data, scaling)?,
            _ => None,
        };
        let is_probit = match (origin, &model.samples) {
            (Origin::Checkpoint, Some(samples)) => samples.link.is_some(),
            _ => pilot.is_none() && options.likelihood == LikelihoodChoice::Probit,
        };
        problem.probit = probit_candidate.filter(|_| is_probit);
        problem.training_count -= pilot.as_ref().map_or(0, |p| p.holdout.csr.len());
        if has_biases {
            problem
                .bias_damping
                .clone_from(&context.standardization.bias_damping);
        }
        if is_gibbs {
            problem.find_unfolding_grams(pool)?;
        }
        let bias_counts = model.modes.iter().map(|m| m.factor.len());
        let bias_counts: Vec<usize> = bias_counts
            .map(|n| if has_biases { n } else { 0 })
            .collect();
        let mut state = SweepState::new(&bias_counts)?;
        state.noise = initial.algorithm.read().unwrap_or_default();
        match origin {
            Origin::Random if is_gibbs => problem.initialize(model, options.seed, pool)?,
            Origin::Random => absorb_diagonal_core(model, scaling.scale)?,
            Origin::Model(other) => {
                absorb_diagonal_core(model, scaling.scale)?;
                if has_biases {
                    copy_biases(&mut state.biases, model, other, scaling.scale);
                }
                // Posterior samples are spread as widely as the distribution they come from. Fitted rows are spread less,
                // and hyperparameters learned from them would shrink rows with few entries too much.
                problem.uninformed_sweep = u64::from(other.samples.is_none());
            }
            Origin::Checkpoint => {
                if let Some(samples) = &model.samples {
                    state.biases = try_copies(&samples.biases, "biases")?;
                }
            }
        }
        let holdout = |entries: Option<&Entries>| {
            let entries = entries.filter(|e| is_gibbs && e.len() > 0);
            let holdout = entries.map(|entries| holdout_entries(entries, model, scaling, pool));
            holdout.transpose()
        };
        let mut solver = RowwiseSolver {
            problem,
            state,
            test: holdout(initial.test)?,
            validation: holdout(initial.validation)?,
            burn_in: is_gibbs.then_some(options.burn_in),
            entry_count: data.tensor.len(),
            pilot,
            probit_candidate,
            likelihood: options.likelihood,
        };
        if is_gibbs {
            if !matches!(origin, Origin::Checkpoint) || model.samples.is_none() {
                model.samples = Some(PosteriorSamples {
                    mean: model.mean + scaling.offset,
                    scale: scaling.scale,
                    has_biases,
                    conditional_mode: solver.problem.largest_mode(),
                    samples: Vec::new(),
                    biases: try_copies(&solver.state.biases, "biases")?,
                    noise_ratio: 1.0,
                    noise_factors: NoiseFactors::default(),
                    link: solver
                        .problem
                        .probit
                        .map(|p| p.link(model.mean + scaling.offset, scaling.scale, model.range)),
                });
            }
            solver.add_stored_samples(model, pool)?;
        }
        Ok(solver)
    }
}

/// Refuses options that the row-wise algorithms do not support.
fn check_options(options: &Options) -> Result<()> {
    if options.penalty == Penalty::L1 {
        return Err(Error::argument(
            "als and gibbs solve for rows in closed form, which an l1 penalty does not have; use l2, or \
             another algorithm",
        ));
    }
    if options.algorithm == Algorithm::Gibbs && options.nonneg {
        return Err(Error::argument(
            "gibbs samples values of either sign; for non-negative factors use als or blocked",
        ));
    }
    Ok(())
}

/// Returns the probit likelihood if the tensor has exactly two values and the option allows it. The probit likelihood of
/// other values is refused.
fn probit_candidate(
    options: &Options,
    data: &Data,
    scaling: ValueScaling,
) -> Result<Option<Probit>> {
    if options.likelihood == LikelihoodChoice::Gaussian {
        return Ok(None);
    }
    let probit = Probit::of(data.tensor.list(), scaling)?;
    if probit.is_none() && options.likelihood == LikelihoodChoice::Probit {
        return Err(Error::argument(
            "likelihood = probit: the tensor must have exactly two values, such as 0 and 1; use gaussian or auto",
        ));
    }
    Ok(probit)
}

/// Groups the entries of tensor and matrices, and collects the penalties of rows.
fn build_problem(
    model: &Model,
    data: &Data,
    settings: Settings,
    split: Option<HoldoutSplit>,
    pool: &ThreadPool<'_>,
) -> Result<RowwiseProblem> {
    let row_counts: Vec<usize> = model.modes.iter().map(|m| m.rows.len()).collect();
    let tensor = data.tensor.list();
    // Biases that the driver has subtracted are part of the values here.
    let values = settings.scaling.scaled(tensor.original_values())?;
    let weights = match split {
        Some(split) => Cow::Owned(pilot_weights(tensor, split)?),
        None => Cow::Borrowed(&tensor.weights[..]),
    };
    let matrix_sizes: Vec<[usize; 2]> = data
        .matrices
        .iter()
        .zip(&model.matrices)
        .map(|(m, columns)| {
            let rows = row_counts[m.mode];
            let is_graph = m.kind.is_graph();
            let columns = if is_graph {
                rows
            } else {
                columns.columns.len()
            };
            [rows, columns]
        })
        .collect();
    let inputs: Vec<MatrixInput<'_>> = data
        .matrices
        .iter()
        .zip(&matrix_sizes)
        .map(|(m, size)| {
            let entries = m.entries.list();
            let weights = m.column_weights.iter();
            let penalties = weights.map(|&weight| m.penalty.of_row(weight) as f32);
            // All rows of a complete matrix share one Gram matrix, and all its columns share another.
            let full = match &m.full {
                None if !m.kind.is_graph() => {
                    FullMatrix::of_complete(*size, entries, pool.monitor())?.map(Arc::new)
                }
                full => full.clone(),
            };
            Ok(MatrixInput {
                mode: m.mode,
                weight: f64::from(m.weight),
                column_penalties: try_collect(m.column_weights.len(), penalties, "columns")?,
                is_graph: m.kind.is_graph(),
                full,
                entries: CooSlices {
                    row_counts: size,
                    rows: &entries.rows,
                    values: &entries.values,
                    weights: &entries.weights,
                },
            })
        })
        .collect::<Result<_>>()?;
    let tensor = CooSlices {
        row_counts: &row_counts,
        rows: &tensor.rows,
        values: &values,
        weights: &weights,
    };
    let mut problem = RowwiseProblem::new(&model.shape, tensor, &inputs, settings, pool)?;
    for (mode, target) in model.modes.iter().zip(&data.prior_means) {
        problem.penalties.push(ModePenalty {
            strengths: match problem.update {
                Update::LeastSquares { .. } => data.penalty.of_rows(mode)?,
                Update::Sample { .. } => Vec::new(),
            },
            target: target.clone(),
        });
    }
    Ok(problem)
}

/// Groups test or validation entries. Rows that the model does not have are its mean rows.
fn holdout_entries(
    entries: &Entries,
    model: &Model,
    scaling: ValueScaling,
    pool: &ThreadPool<'_>,
) -> Result<HoldoutEntries> {
    let row_counts: Vec<usize> = model.modes.iter().map(|m| m.rows.len() + 1).collect();
    let is_weighted = entries.is_weighted();
    let count = entries.len();
    let mut rows = try_with_capacity(count * row_counts.len(), "row indices")?;
    let mut values = try_with_capacity(count, "entries")?;
    let mut weights = try_with_capacity(if is_weighted { count } else { 0 }, "entries")?;
    entries.for_each(|row, value, weight| {
        rows.extend_from_slice(row);
        values.push(value);
        weights.extend(is_weighted.then_some(weight));
    });
    let entries = CooSlices {
        row_counts: &row_counts,
        rows: &rows,
        values: &scaling.scaled(&values)?,
        weights: &weights,
    };
    HoldoutEntries::new(entries, pool)
}

/// Copies the biases of another model, divided by `scale` and centered, where both models have a row.
fn copy_biases(biases: &mut [Vec<f32>], model: &Model, other: &Model, scale: f64) {
    for ((to, mode), old) in biases.iter_mut().zip(&model.modes).zip(&other.modes) {
        let old_bias = |index| old.biases.get(old.rows.compact(index)? as usize).copied();
        for (to, index) in to.iter_mut().zip(mode.rows.indices()) {
            *to = (f64::from(old_bias(index).unwrap_or(0.0)) / scale) as f32;
        }
        // Values have mean 0 here, so biases must have none.
        if let Some((last, biases)) = to.split_last_mut() {
            let mean = mode.mean_bias(biases);
            biases.iter_mut().for_each(|b| *b -= mean);
            *last = 0.0;
        }
    }
}

/// Multiplies a hyper-diagonal core, divided by `scale`, into the rows of the first mode, so that the core for scaled
/// values is 1: rows determine the scale of a component. A full core stays.
pub fn absorb_diagonal_core(model: &mut Model, scale: f64) -> Result<()> {
    if model.shape.kind() == CoreKind::Full {
        return Ok(());
    }
    let rank = model.shape.ranks()[0];
    let core = model.core[..rank].iter();
    let core: Vec<f32> = core.map(|g| (f64::from(*g) / scale) as f32).collect();
    let factor = &mut model.modes[0].factor;
    let stride = factor.stride();
    for row in factor.as_mut_slice()?.chunks_exact_mut(stride) {
        row.iter_mut().zip(&core).for_each(|(u, g)| *u *= g);
    }
    // Matrices of that mode must keep their predictions.
    for matrix in model.matrices.iter_mut().filter(|m| m.mode == 0) {
        for row in matrix.factor.as_mut_slice()?.chunks_exact_mut(stride) {
            row.iter_mut()
                .zip(&core)
                .filter(|(_, g)| **g != 0.0)
                .for_each(|(v, g)| *v /= g);
        }
    }
    model.core[..rank].fill(scale as f32);
    model.update_mean_rows()
}
