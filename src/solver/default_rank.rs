//! Default ranks, and those of the model that a fit starts from.

use crate::kernel::CoreKind;
use crate::model::Model;
use crate::options::{Algorithm, ModelKind, Options};
use crate::problem::Problem;

/// Rank of a Tucker model that is left to the library: its core grows with the power of the order.
pub(super) const TUCKER_RANK: usize = 10;

/// Rank of a CP model fitted by anything but `gibbs`: the first whose number of entries per row the data reaches. No
/// selection is recorded (docs/notes/selection.md).
const CP_RANKS: [(f64, usize); 3] = [(8.0, 64), (2.0, 32), (0.0, 16)];

/// Returns the rank of a model that is not fitted by `gibbs`. The number of entries per row bounds what can be learnt about
/// a row.
pub(super) fn default_rank(problem: &Problem<'_>, model: ModelKind) -> usize {
    if model == ModelKind::Cp {
        cp_rank(entries_per_row(problem))
    } else {
        TUCKER_RANK
    }
}

/// Returns the rank of a model fitted by `gibbs`.
pub(super) fn default_gibbs_rank(problem: &Problem<'_>, model: ModelKind) -> usize {
    if model == ModelKind::Cp {
        cp_gibbs_rank(entries_per_row(problem))
    } else {
        TUCKER_RANK
    }
}

/// Returns the approximate rank of a CP model that is left to the library, for data of this many entries with these numbers
/// of rows per mode, known or estimated before the data is read. The rank of the fit may differ, since rows that do not
/// occur do not count there.
pub(super) fn likely_rank(entries: u64, rows: &[u64], algorithm: Algorithm) -> usize {
    let per_row = per_row_of_two_largest(entries, rows.iter().copied());
    match algorithm {
        Algorithm::Gibbs => cp_gibbs_rank(per_row),
        _ => cp_rank(per_row),
    }
}

/// Takes ranks and model from the model to start from, unless ranks are given.
pub(super) fn take_shape(o: &mut Options, init: Option<&Model>) {
    if let Some(init) = init.filter(|_| o.rank.is_empty()) {
        o.rank = init.shape().ranks().to_vec();
        o.model = match init.shape().kind() {
            CoreKind::Full => ModelKind::Tucker,
            CoreKind::Diagonal => ModelKind::Cp,
        };
    }
}

fn cp_rank(entries_per_row: f64) -> usize {
    let is_reached = |(least, _): &&(f64, usize)| entries_per_row >= *least;
    CP_RANKS
        .iter()
        .find(is_reached)
        .map_or(1, |&(_, rank)| rank)
}

/// Returns 16 to 96: 16 more for every six times the entries. Averaging over samples forgives too large a rank.
fn cp_gibbs_rank(entries_per_row: f64) -> usize {
    let vectors = ((1.0 + entries_per_row).log2() / 2.5).round();
    16 * vectors.clamp(1.0, 6.0) as usize
}

/// Returns the number of entries per row of the two largest modes.
pub(super) fn entries_per_row(problem: &Problem<'_>) -> f64 {
    let rows = problem.modes().iter().map(|m| m.rows().len() as u64);
    per_row_of_two_largest(problem.count(), rows)
}

fn per_row_of_two_largest(entries: u64, rows: impl Iterator<Item = u64>) -> f64 {
    let mut rows: Vec<u64> = rows.collect();
    rows.sort_unstable();
    let largest: u64 = rows.iter().rev().take(2).sum();
    entries as f64 / largest.max(1) as f64
}
