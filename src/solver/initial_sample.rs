//! Size of the sample of entries from which an initialization estimates starting values.

use crate::problem::Problem;

/// Fewest entries of a sample. Smaller data is taken whole.
const MIN_SAMPLE_ENTRIES: f64 = 1e6;

/// Most entries of the tensor that a Gibbs initialization uses, which bounds its time and memory.
pub const MAX_SAMPLE_ENTRIES: u64 = 2_500_000;

/// Returns the number of entries that an initialization uses if it needs `entries_per_row`, a number per row of all modes
/// together: it is proportional to the number of parameters, not to the number of entries.
pub(super) fn sample_size(problem: &Problem<'_>, entries_per_row: f64, max_entries: u64) -> f64 {
    let rows: usize = problem.modes().iter().map(|m| m.rows().len()).sum();
    (entries_per_row * rows as f64).clamp(MIN_SAMPLE_ENTRIES, max_entries as f64)
}
