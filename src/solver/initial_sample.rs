//! Size of the sample of entries from which an initialization estimates starting values.

use crate::problem::Problem;

/// Fewest entries of a sample. Smaller data is taken whole.
const MIN_SAMPLE_ENTRIES: f64 = 1e6;

/// Most entries of a sample, which bounds the time and memory of the initialization.
pub const MAX_SAMPLE_ENTRIES: u64 = 5_000_000;

/// Returns the largest number of entries that an initialization uses if it needs `entries_per_row`, a number per row of all
/// modes together: it is proportional to the number of parameters, not to the number of entries.
pub(super) fn sample_size(problem: &Problem<'_>, entries_per_row: f64) -> f64 {
    needed_entries(problem, entries_per_row).clamp(MIN_SAMPLE_ENTRIES, MAX_SAMPLE_ENTRIES as f64)
}

/// Returns the number of entries with `entries_per_row` for each row.
pub(super) fn needed_entries(problem: &Problem<'_>, entries_per_row: f64) -> f64 {
    let rows: usize = problem.modes().iter().map(|m| m.rows().len()).sum();
    entries_per_row * rows as f64
}
