//! How the rows of a mode are divided into tasks for threads.
//!
//! Tasks are a function of the data alone, and the sums over the parts of a long row are added in order, so results
//! are independent of the thread count.

use std::ops::Range;
use std::sync::Mutex;

use crate::error::Result;
use crate::kernel::ModeCsr;
use crate::try_alloc::{try_collect, try_to_vec};

/// One unit of work.
pub enum RowTask {
    /// All entries of several rows: a range of positions in [`RowTasks::rows`].
    Rows(Range<usize>),
    /// Some entries of one long row.
    PartOfRow {
        /// Position in [`RowTasks::rows`].
        position: usize,
        /// The data term that the entries belong to.
        term: usize,
        /// The entries of the part.
        entries: Range<usize>,
    },
}

/// The tasks that update some or all rows of a mode.
pub struct RowTasks {
    /// The rows.
    pub rows: Vec<u32>,
    /// The tasks, in the order of the rows.
    pub tasks: Vec<RowTask>,
}

/// Cost of solving for one row, in entries.
const ROW_COST_ENTRIES: usize = 64;

/// About how many tasks the rows are divided into.
const TASKS: usize = 256;

/// Bounds of the size of a task, in entries.
const MIN_TASK_ENTRIES: usize = 1 << 11;
const MAX_TASK_ENTRIES: usize = 1 << 15;

/// Fewest rows of a batch of tasks. They cost so much that tasks are of the largest size, as without batches, so results are
/// independent of the batches.
const MIN_BATCH_ROWS: usize = TASKS * MAX_TASK_ENTRIES / ROW_COST_ENTRIES;

/// Maximum number of parts of one row: each needs memory for its normal equations.
const MAX_PARTS: usize = 64;

impl RowTasks {
    /// Divides all rows. `terms` are the entries of each data term.
    pub fn all(terms: &[&ModeCsr]) -> Result<RowTasks> {
        let rows = terms.first().map_or(0, |csr| csr.row_count());
        let rows = try_collect(rows, 0..rows as u32, "rows")?;
        Ok(RowTasks::new(terms, rows))
    }

    /// Divides the given rows into batches, one after the other of which is updated: only one needs memory for its results.
    pub(super) fn batches(terms: &[&ModeCsr], rows: &[u32]) -> Result<Vec<RowTasks>> {
        let count = (rows.len() / MIN_BATCH_ROWS).max(1);
        let batch = |k: usize| &rows[k * rows.len() / count..(k + 1) * rows.len() / count];
        let tasks = |k| Ok(RowTasks::new(terms, try_to_vec(batch(k), "rows")?));
        (0..count).map(tasks).collect()
    }

    /// Divides the given rows.
    pub(super) fn new(terms: &[&ModeCsr], rows: Vec<u32>) -> RowTasks {
        let entry_count = |row: u32| {
            terms
                .iter()
                .map(|csr| csr.row_entries(row as usize).len())
                .sum::<usize>()
        };
        let total: usize = rows
            .iter()
            .map(|&row| entry_count(row) + ROW_COST_ENTRIES)
            .sum();
        let limit = (total / TASKS).clamp(MIN_TASK_ENTRIES, MAX_TASK_ENTRIES);
        let mut tasks = Vec::new();
        let (mut first, mut size) = (0, 0);
        for (position, &row) in rows.iter().enumerate() {
            let row_size = entry_count(row);
            if row_size >= 2 * limit {
                if first < position {
                    tasks.push(RowTask::Rows(first..position));
                }
                let part = limit.max(row_size.div_ceil(MAX_PARTS));
                for (term, csr) in terms.iter().enumerate() {
                    let all = csr.row_entries(row as usize);
                    let starts = all.clone().step_by(part);
                    tasks.extend(starts.map(|start| RowTask::PartOfRow {
                        position,
                        term,
                        entries: start..(start + part).min(all.end),
                    }));
                }
                (first, size) = (position + 1, 0);
                continue;
            }
            size += row_size + ROW_COST_ENTRIES;
            if size >= limit {
                tasks.push(RowTask::Rows(first..position + 1));
                (first, size) = (position + 1, 0);
            }
        }
        if first < rows.len() {
            tasks.push(RowTask::Rows(first..rows.len()));
        }
        RowTasks { rows, tasks }
    }

    /// Returns the results, of `width` elements for each of the rows, that each task writes: none for a part of a row.
    pub fn row_slots<'r, E>(
        &self,
        mut results: &'r mut [E],
        width: usize,
    ) -> Vec<Mutex<&'r mut [E]>> {
        let mut position = 0;
        let slot = |task: &RowTask| {
            let RowTask::Rows(range) = task else {
                return Mutex::new(Default::default());
            };
            let skipped = (range.start - position) * width;
            let (_, rest) = std::mem::take(&mut results).split_at_mut(skipped);
            let (slot, rest) = rest.split_at_mut(range.len() * width);
            (results, position) = (rest, range.end);
            Mutex::new(slot)
        };
        self.tasks.iter().map(slot).collect()
    }
}
