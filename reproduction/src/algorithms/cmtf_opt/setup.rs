//! Construction of the solver from the driver's data, and what it refuses.

use std::sync::Arc;

use super::grouped_entries::GroupedEntries;
use super::lbfgs::History;
use super::objective::{MatrixTerm, Objective};
use super::parameter_vector::ParameterVector;
use super::row_pass::RowPenalties;
use super::solver::CmtfOptSolver;
use super::starting_values::{distribute_core, scale_random_values};
use s3cmtf::error::{Error, Result};
use s3cmtf::internals::Model;
use s3cmtf::internals::group_by_modes;
use s3cmtf::internals::{Data, MatrixData};
use s3cmtf::internals::{FitContext, InitialState, Origin};
use s3cmtf::options::{Options, Penalty};
use s3cmtf::problem::Problem;
use s3cmtf_kernel::kernel::{CooSlices, ModeCsr};
use s3cmtf_kernel::parallel::ThreadPool;
use s3cmtf_kernel::try_alloc::{try_collect, try_to_vec};

/// Refuses problems and options that CMTF-OPT does not have.
pub(super) fn check_support(problem: &Problem<'_>, options: &Options) -> Result<()> {
    let refuse = |why: &str| Err(Error::argument(why));
    if let Some(graph) = problem.matrices().iter().find(|m| m.kind.is_graph()) {
        return Err(Error::argument(format!(
            "{}: cmtf-opt (CMTF-OPT) factorizes matrices and has no graphs; leave it out, or use another algorithm",
            graph.entries.name()
        )));
    }
    if options.nonneg {
        return refuse(
            "cmtf-opt optimizes factors of either sign; for non-negative factors use als or blocked",
        );
    }
    if options.penalty == Penalty::L1 {
        return refuse(
            "cmtf-opt needs a smooth objective, which an l1 penalty does not give; use l2, or another algorithm",
        );
    }
    Ok(())
}

impl CmtfOptSolver {
    /// Prepares the first epoch.
    pub(crate) fn new(
        model: &mut Model,
        context: &FitContext<'_>,
        initial: &InitialState<'_>,
    ) -> Result<CmtfOptSolver> {
        let (objective, pool) = (objective(model, context)?, &context.pool);
        match initial.origin {
            Origin::Checkpoint => {}
            Origin::Random if !context.options.start.defines_prior_mean() => {
                scale_random_values(model, &objective, pool)?;
            }
            Origin::Random | Origin::Model(_) => distribute_core(model, pool)?,
        }
        let mut history = History::default();
        history.restore(saved_vectors(model, initial.vectors)?, model, pool)?;
        let zeros = || ParameterVector::zeros(model);
        Ok(CmtfOptSolver {
            objective,
            history,
            last_changes: None,
            start: zeros()?,
            direction: zeros()?,
            gradient: zeros()?,
            trial_gradient: zeros()?,
            value: None,
            lowest: None,
            has_converged: false,
        })
    }
}

/// Reads the vectors of a checkpoint.
fn saved_vectors(model: &Model, saved: &[Vec<f32>]) -> Result<Vec<ParameterVector>> {
    let vector = |elements: &Vec<f32>| {
        ParameterVector::from_elements(model, elements)?.ok_or_else(|| {
            Error::argument(format!(
                "the checkpoint has a vector of {} elements, which is not the number of parameters; it was not written by \
                 this library",
                elements.len()
            ))
        })
    };
    saved.iter().map(vector).collect()
}

fn objective(model: &Model, context: &FitContext<'_>) -> Result<Objective> {
    let FitContext {
        options,
        data,
        level,
        pool,
        ..
    } = context;
    let row_counts: Vec<usize> = model.modes.iter().map(|m| m.rows.len()).collect();
    let entries = data.tensor.list();
    let tensor = CooSlices {
        row_counts: &row_counts,
        rows: &entries.rows,
        // Evaluations subtract the biases, which change after each epoch.
        values: entries.original_values(),
        weights: &entries.weights,
    };
    let by_mode = group_by_modes(tensor, pool)?;
    let squares = options
        .is_zero_filled()
        .then(|| by_mode[0].sum_of_squares());
    let by_mode = by_mode.into_iter();
    let tensor = by_mode.map(|csr| GroupedEntries::new(Arc::new(csr)));
    let mut matrices = Vec::new();
    for (matrix, columns) in data.matrices.iter().zip(&model.matrices) {
        let size = [row_counts[matrix.mode], columns.factor.len()];
        matrices.push(matrix_term(matrix, &size, pool)?);
    }
    Ok(Objective {
        tensor: tensor.collect::<Result<_>>()?,
        zero_filled: squares,
        matrices,
        penalties: penalties(model, data)?,
        level: *level,
    })
}

/// Groups the entries of a matrix by row and by column.
fn matrix_term(
    matrix: &MatrixData,
    size: &[usize; 2],
    pool: &ThreadPool<'_>,
) -> Result<MatrixTerm> {
    let [by_row, by_column] = match &matrix.full {
        Some(full) => [full.by_row.clone(), full.by_column.clone()],
        None => {
            let entries = matrix.entries.list();
            let entries = CooSlices {
                row_counts: size,
                rows: &entries.rows,
                values: &entries.values,
                weights: &entries.weights,
            };
            let csr = |mode| ModeCsr::new(mode, entries, pool.monitor()).map(Arc::new);
            [csr(0)?, csr(1)?]
        }
    };
    Ok(MatrixTerm {
        mode: matrix.mode,
        weight: f64::from(matrix.weight),
        by_row: GroupedEntries::new(by_row)?,
        by_column: GroupedEntries::new(by_column)?,
        full: matrix.full.clone().map(|full| {
            let squares = full.sum_of_squares();
            (full, squares)
        }),
    })
}

/// Collects the penalties of the rows of each mode, then of the columns of each matrix.
fn penalties(model: &Model, data: &Data) -> Result<Vec<RowPenalties>> {
    let mut penalties = Vec::new();
    for (mode, target) in model.modes.iter().zip(&data.prior_means) {
        penalties.push(RowPenalties {
            strengths: data.penalty.of_rows(mode)?,
            target: try_to_vec(target, "row elements")?,
        });
    }
    for matrix in &data.matrices {
        let weights = &matrix.column_weights;
        let strengths = weights.iter().map(|&w| matrix.penalty.of_row(w) as f32);
        penalties.push(RowPenalties {
            strengths: try_collect(weights.len(), strengths, "columns")?,
            target: try_to_vec(&matrix.prior_mean, "row elements")?,
        });
    }
    Ok(penalties)
}
