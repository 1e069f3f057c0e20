//! Construction of the solver from the driver's data, and what it refuses.

use super::mode_entries::SalsMode;
use super::packed_factors::PackedFactors;
use super::solver::SalsSolver;
use crate::algorithms::integer_option;
use s3cmtf::error::{Error, Result};
use s3cmtf::internals::Model;
use s3cmtf::internals::{FitContext, InitialState, Origin};
use s3cmtf::internals::{RowTasks, absorb_diagonal_core, group_by_modes};
use s3cmtf::options::{Options, Penalty};
use s3cmtf::problem::Problem;
use s3cmtf_kernel::kernel::CooSlices;
use s3cmtf_kernel::sort::stable_sort_by_key;
use s3cmtf_kernel::try_alloc::{try_to_vec, try_zeroed};

/// Refuses problems with matrices and options that SALS-single does not have.
pub(super) fn check_support(problem: &Problem<'_>, options: &Options) -> Result<()> {
    let refuse = |why: &str| Err(Error::argument(why));
    if !problem.matrices().is_empty() {
        return refuse(
            "sals (SALS-single) factorizes the tensor alone; leave out the matrices and graphs, or use another algorithm",
        );
    }
    if options.nonneg {
        return refuse(
            "sals solves for factors of either sign; for non-negative factors use als or blocked",
        );
    }
    if options.penalty == Penalty::L1 {
        return refuse(
            "sals solves for rows in closed form, which an l1 penalty does not have; use l2, or another algorithm",
        );
    }
    Ok(())
}

impl SalsSolver {
    /// Prepares the first epoch.
    pub(crate) fn new(
        model: &mut Model,
        context: &FitContext<'_>,
        initial: &InitialState<'_>,
    ) -> Result<SalsSolver> {
        let FitContext {
            options,
            data,
            pool,
            ..
        } = context;
        if !matches!(initial.origin, Origin::Checkpoint) {
            absorb_diagonal_core(model, 1.0)?;
        }
        let row_counts: Vec<usize> = model.modes.iter().map(|m| m.rows.len()).collect();
        let entries = data.tensor.list();
        let tensor = CooSlices {
            row_counts: &row_counts,
            rows: &entries.rows,
            // Epochs subtract the biases, which change after each of them.
            values: entries.original_values(),
            weights: &entries.weights,
        };
        let mut modes = Vec::new();
        for (n, csr) in group_by_modes(tensor, pool)?.into_iter().enumerate() {
            modes.push(SalsMode {
                tasks: RowTasks::all(&[&csr])?,
                residuals: try_zeroed(csr.len(), "residuals")?,
                penalties: data.penalty.of_rows(&model.modes[n])?,
                target: try_to_vec(&data.prior_means[n], "row elements")?,
                csr,
            });
        }
        let mut modes_by_size: Vec<usize> = (0..row_counts.len()).collect();
        stable_sort_by_key(&mut modes_by_size, &|&n| row_counts[n]);
        let (rank, subset_size) = (
            model.shape.ranks()[0],
            integer_option(options, "subset_size") as usize,
        );
        Ok(SalsSolver {
            modes,
            modes_by_size,
            factors: PackedFactors::new(&row_counts, rank, subset_size)?,
            inner_epochs: integer_option(options, "inner_epochs"),
        })
    }
}
