//! Computations with one result per row of a mode, from sums over the entries of the row.
//!
//! A thread computes several short rows. The entries of a long row are summed in parts, by several threads. Parts are merged in
//! order, so results are independent of the thread count.

use std::ops::Range;

use super::rowwise::{RowTask, RowTasks};
use crate::error::Result;
use crate::kernel::ModeCsr;
use crate::parallel::{ThreadPool, lock_ignoring_poison};
use crate::progress::StopFlag;
use crate::trace::{self, SpanKind};

/// A computation. Results are incomplete if a stop is requested.
pub(super) trait RowComputation: Sync {
    /// An element of a result.
    type Element: Send;
    /// Buffers of one thread.
    type Scratch;
    /// Sums over some entries of a row.
    type Part: Send;
    /// What is added up over rows.
    type Total: Default + Send;

    fn scratch(&self) -> Result<Self::Scratch>;

    /// Writes the result of a row, given all its entries.
    fn compute_row(
        &self,
        row: usize,
        entries: Range<usize>,
        scratch: &mut Self::Scratch,
        stop: &StopFlag,
        to: &mut [Self::Element],
        total: &mut Self::Total,
    ) -> Result<()>;

    /// Writes the results of several rows, given all their entries.
    fn compute_short_rows(
        &self,
        rows: Range<usize>,
        csr: &ModeCsr,
        scratch: &mut Self::Scratch,
        stop: &StopFlag,
        to: &mut [Self::Element],
        total: &mut Self::Total,
    ) -> Result<()> {
        let width = to.len() / rows.len();
        for (row, to) in rows.zip(to.chunks_exact_mut(width)) {
            if stop.requested() {
                break;
            }
            self.compute_row(row, csr.row_entries(row), scratch, stop, to, total)?;
        }
        Ok(())
    }

    /// Returns the sums over some entries of a row.
    fn sum_part(
        &self,
        row: usize,
        entries: Range<usize>,
        scratch: &mut Self::Scratch,
        stop: &StopFlag,
    ) -> Result<Self::Part>;

    /// Writes the result of a row, given the sums over its parts.
    fn merge_parts(
        &self,
        row: usize,
        parts: Vec<Self::Part>,
        scratch: &mut Self::Scratch,
        to: &mut [Self::Element],
        total: &mut Self::Total,
    );
}

/// Computes the results of all rows, `width` elements each. Returns the totals of groups of rows, in order.
pub(super) fn compute_rows<C: RowComputation>(
    computation: &C,
    csr: &ModeCsr,
    tasks: &RowTasks,
    results: &mut [C::Element],
    width: usize,
    pool: &ThreadPool<'_>,
) -> Result<Vec<C::Total>> {
    let _span = trace::span(SpanKind::Rows);
    let stop = pool.stop();
    let slots = tasks.row_slots(results, width);
    let run_task = |scratch: &mut C::Scratch, t: usize| match &tasks.tasks[t] {
        RowTask::Rows(rows) => {
            let mut total = C::Total::default();
            let mut slot = lock_ignoring_poison(&slots[t]);
            let (rows, to) = (rows.clone(), &mut slot[..]);
            computation.compute_short_rows(rows, csr, scratch, stop, to, &mut total)?;
            Ok(TaskResult::Rows(total))
        }
        RowTask::PartOfRow {
            position, entries, ..
        } => {
            let part = computation.sum_part(*position, entries.clone(), scratch, stop)?;
            Ok(TaskResult::PartOfRow(*position, part))
        }
    };
    let scratch = || computation.scratch();
    let mut of_tasks = pool
        .try_map(tasks.tasks.len(), scratch, run_task)?
        .into_iter()
        .peekable();
    drop(slots);
    let mut scratch = scratch()?;
    let mut totals = Vec::new();
    while let Some(result) = of_tasks.next() {
        let (row, first) = match result {
            TaskResult::Rows(total) => {
                totals.push(total);
                continue;
            }
            TaskResult::PartOfRow(row, part) => (row, part),
        };
        // The parts of a row follow each other.
        let mut parts = vec![first];
        let is_of_row = |r: &TaskResult<C>| matches!(r, TaskResult::PartOfRow(of, _) if *of == row);
        while let Some(TaskResult::PartOfRow(_, part)) = of_tasks.next_if(is_of_row) {
            parts.push(part);
        }
        let to = &mut results[row * width..(row + 1) * width];
        let mut total = C::Total::default();
        computation.merge_parts(row, parts, &mut scratch, to, &mut total);
        totals.push(total);
    }
    Ok(totals)
}

/// The result of a task.
enum TaskResult<C: RowComputation> {
    /// The total of several rows.
    Rows(C::Total),
    /// A row, and the sums over some of its entries.
    PartOfRow(usize, C::Part),
}
