//! Construction of the solver from the driver's data, and what it refuses.

use super::mode_entries::{TuckerMode, ZeroFilledMatrix};
use super::solver::{TuckerAlsSolver, workers};

use crate::algorithms::stream_ids;
use s3cmtf::error::{Error, Result};
use s3cmtf::internals::{FitContext, InitialState, Origin};
use s3cmtf::internals::{Model, RowPrior};
use s3cmtf::internals::{RowTasks, group_by_modes};
use s3cmtf::options::{Options, Penalty};
use s3cmtf::problem::Problem;
use s3cmtf_kernel::kernel::CooSlices;
use s3cmtf_kernel::progress::{OPERATIONS_PER_NORMAL_SAMPLE, StepPolls};
use s3cmtf_kernel::random::RandomStream;
use s3cmtf_kernel::sort::stable_sort_by_key;

/// Refuses problems and options that CMTF-Tucker-ALS does not have.
pub(super) fn check_support(problem: &Problem<'_>, options: &Options) -> Result<()> {
    let refuse = |why: String| Err(Error::argument(why));
    if let Some(graph) = problem.matrices().iter().find(|m| m.kind.is_graph()) {
        return refuse(format!(
            "{}: tucker-als has no graphs; leave it out, or use another algorithm",
            graph.entries.name()
        ));
    }
    if options.nonneg {
        return refuse(
            "tucker-als has orthonormal factors, with elements of either sign; for non-negative factors use als or blocked"
                .into(),
        );
    }
    if options.penalty == Penalty::L1 {
        return refuse(
            "tucker-als has orthonormal factors and no penalty; leave out penalty, or use another algorithm"
                .into(),
        );
    }
    Ok(())
}

impl TuckerAlsSolver {
    /// Prepares the first epoch.
    pub(crate) fn new(
        model: &mut Model,
        context: &FitContext<'_>,
        initial: &InitialState<'_>,
    ) -> Result<TuckerAlsSolver> {
        let FitContext {
            options,
            data,
            pool,
            ..
        } = context;
        let row_counts: Vec<usize> = model.modes.iter().map(|m| m.rows.len()).collect();
        let entries = data.tensor.list();
        let tensor = CooSlices {
            row_counts: &row_counts,
            rows: &entries.rows,
            values: &entries.values,
            weights: &[],
        };
        let mut modes = Vec::new();
        for (n, csr) in group_by_modes(tensor, pool)?.into_iter().enumerate() {
            let matrices = data.matrices.iter().enumerate();
            let matrices = matrices
                .filter(|(_, m)| m.mode == n)
                .filter_map(|(m, matrix)| {
                    // A matrix of weight 0 has no entries.
                    Some(ZeroFilledMatrix {
                        number: m,
                        scale: f64::from(matrix.weight).sqrt(),
                        entries: matrix.full.clone()?,
                    })
                });
            modes.push(TuckerMode {
                tasks: RowTasks::all(&[&csr])?,
                matrices: matrices.collect(),
                csr,
            });
        }
        let mut modes_by_size: Vec<usize> = (0..row_counts.len()).collect();
        stable_sort_by_key(&mut modes_by_size, &|&n| row_counts[n]);
        let solver = TuckerAlsSolver {
            squares: modes[0].csr.sum_of_squares(),
            modes,
            modes_by_size,
            seed: options.seed,
        };
        if matches!(initial.origin, Origin::Checkpoint) {
            return Ok(solver);
        }
        if matches!(initial.origin, Origin::Random) {
            fill_randomly(model, options.seed, pool.monitor())?;
        }
        // There is no penalty and no prior.
        for mode in &mut model.modes {
            mode.prior = RowPrior::default();
        }
        model.core_prior_mean = Vec::new();
        solver.orthonormalize(model, workers(context))?;
        model.update_mean_rows()?;
        Ok(solver)
    }
}

/// Fills the factors with samples of the normal distribution, whatever the option `start` says.
fn fill_randomly(
    model: &mut Model,
    seed: u64,
    monitor: &dyn s3cmtf_kernel::progress::Monitor,
) -> Result<()> {
    for (n, mode) in model.modes.iter_mut().enumerate() {
        let (rank, stride) = (mode.factor.rank(), mode.factor.stride());
        let mut polls = StepPolls::new(monitor, rank * OPERATIONS_PER_NORMAL_SAMPLE);
        let rows = mode.factor.as_mut_slice()?.chunks_exact_mut(stride);
        for (i, row) in rows.enumerate() {
            polls.step()?;
            let stream = [seed, stream_ids::BASIS, n as u64, i as u64];
            let mut s = RandomStream::new(&stream);
            row[..rank]
                .iter_mut()
                .for_each(|x| *x = s.standard_normal() as f32);
        }
    }
    Ok(())
}
