//! Residuals of all entries, computed row by row in parallel.

use std::ops::Range;

use super::data_term::DataTerm;
use super::row_tasks::{RowTask, RowTasks};
use crate::error::Result;
use crate::kernel::{BiasedRow, PartialsScratch};
use crate::parallel::ThreadPool;
use crate::simd::padded_len;

/// Computes the residuals of all entries of `term` task by task, passes each task's range of entries and their
/// residuals to `reduce`, and returns the results in the order of the tasks.
///
/// `tasks` must cover all rows of the term, in their order; `rows` are padded.
pub(super) fn map_residuals<T: Send>(
    tasks: &RowTasks,
    term: &DataTerm<'_>,
    rows: &[f32],
    biases: &[f32],
    pool: &ThreadPool<'_>,
    reduce: impl Fn(Range<usize>, &[f32]) -> T + Sync,
) -> Result<Vec<T>> {
    let width = padded_len(term.partials.rank);
    let buffers = || Ok((PartialsScratch::default(), Vec::new()));
    let stop = pool.stop();
    pool.try_map(tasks.tasks.len(), buffers, |(scratch, residuals), t| {
        let (range, row_range) = match &tasks.tasks[t] {
            RowTask::Rows(rows) => {
                let first = term.csr.row_entries(rows.start).start;
                let end = term.csr.row_entries(rows.end - 1).end;
                (first..end, rows.clone())
            }
            RowTask::PartOfRow {
                position, entries, ..
            } => (entries.clone(), *position..position + 1),
        };
        debug_assert_eq!(tasks.rows[row_range.start] as usize, row_range.start);
        residuals.clear();
        residuals.resize(range.len(), 0.0);
        for row in row_range {
            let all = term.csr.row_entries(row);
            let entries = all.start.max(range.start)..all.end.min(range.end);
            let out = &mut residuals[entries.start - range.start..entries.end - range.start];
            let bias = biases.get(row).copied().unwrap_or(0.0);
            let row = &rows[row * width..(row + 1) * width];
            term.partials.residuals(
                term.csr,
                entries,
                BiasedRow { row, bias },
                scratch,
                out,
                stop,
            )?;
        }
        Ok(reduce(range, residuals))
    })
}
