//! Folding new rows into a fitted model: the rows in closed form, given everything else.
//!
//! In go a model and the entries of rows of one mode ([`FoldIn`]); out comes a model that has these rows, whose other
//! predictions are unchanged. The rows are the ones that the fit would have computed: by least squares with the fit's
//! penalties, priors, weights and offsets, or, for a model of posterior samples, sampled once for each of them.
//!
//! Open this file first. `check` refuses what cannot be folded in, `entries` groups the entries by new row in the scaled
//! `units` of the fit, `solve` computes the rows (with `solver::rowwise`, or by the algorithm of the model),
//! `extended_mode` inserts them.

mod check;
mod entries;
mod extended_mode;
mod input;
mod solve;
mod units;

pub use input::{FoldIn, FoldMatrix, FoldSummary};

use check::check;
use entries::{matrix_entries, new_row_indices, tensor_entries};
use solve::FoldInSolver;
use units::Units;

use super::rowwise::NewRowEntries;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::parallel::{ThreadPool, thread_count};
use crate::progress::Monitor;
use crate::simd::Level;

/// Returns a model with the rows that `input` has entries of, given everything else in `model`.
///
/// Rows are solved by least squares with the penalties, priors, weights and offsets of the fit; those of a model of
/// posterior samples are sampled once for each sample. All other predictions stay the same, bit by bit.
pub fn fold_in(
    model: &Model,
    input: &FoldIn<'_>,
    monitor: &dyn Monitor,
) -> Result<(Model, FoldSummary)> {
    check(model, input)?;
    let mut summary = FoldSummary::default();
    let indices = new_row_indices(input, monitor)?;
    if indices.is_empty() {
        return Err(Error::argument(match &input.tensor {
            Some(view) => format!(
                "{}: without entries there is nothing to fold in",
                view.name()
            ),
            None => "without entries there is nothing to fold in".into(),
        }));
    }
    let mode = &model.modes[input.mode];
    for &index in &indices {
        match mode.rows.compact(index) {
            None => summary.added += 1,
            Some(row) if input.replace || mode.counts[row as usize] == 0 => summary.replaced += 1,
            Some(row) => {
                return Err(Error::argument(format!(
                    "row {} of mode {} is in the model already, from {} entries; leave it out, or \
                     replace it, with all its entries",
                    u64::from(index) + 1,
                    input.mode + 1,
                    mode.counts[row as usize],
                )));
            }
        }
    }
    let units = Units::of(model);
    let entries = NewRowEntries {
        mode: input.mode,
        indices: &indices,
        tensor: tensor_entries(model, input, &indices, &units, &mut summary, monitor)?,
        matrices: matrix_entries(model, input, &indices, &units, &mut summary, monitor)?,
        level: Level::choose(None)?,
    };
    summary.without_entries = (0..indices.len())
        .filter(|&i| entries.tensor.row_entries(i).is_empty())
        .count() as u64;
    let pool = ThreadPool::new(thread_count(input.threads)?, false, 0).with_monitor(monitor);
    let solver = FoldInSolver {
        model,
        input,
        entries: &entries,
        units: &units,
        pool: &pool,
        monitor,
    };
    let extended = solver.extended_model()?;
    if extended.invalid_number().is_none() {
        Ok((extended, summary))
    } else {
        Err(Error::argument(
            "the rows that these entries determine are not finite; scale down the values",
        ))
    }
}
