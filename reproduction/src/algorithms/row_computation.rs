//! Computations with one result per row of a mode, from sums over the entries of the row.
//!
//! A thread computes several short rows. The entries of a long row are summed in parts, by several threads. Parts are merged in
//! order, so results are independent of the thread count.

use std::ops::Range;

use s3cmtf::error::Result;
use s3cmtf::internals::{RowTask, RowTasks};
use s3cmtf_kernel::kernel::ModeCsr;
use s3cmtf_kernel::parallel::{ThreadPool, lock_ignoring_poison};
use s3cmtf_kernel::progress::StopFlag;
use s3cmtf_kernel::trace::{self, SpanKind};
use s3cmtf_kernel::try_alloc::try_zeroed;

/// A computation. Results are incomplete if a stop is requested.
pub(super) trait RowComputation: Sync {
    /// An element of a result.
    type Element: Send;
    /// Buffers of one thread.
    type Scratch;
    /// What is added up over rows.
    type Total: Default + Send;

    fn scratch(&self) -> Result<Self::Scratch>;

    /// Returns the number of sums over the entries of a row.
    fn sum_count(&self) -> usize;

    /// Adds entries of a row to its sums.
    fn add_entries(
        &self,
        row: usize,
        entries: Range<usize>,
        sums: &mut [f64],
        scratch: &mut Self::Scratch,
        stop: &StopFlag,
    ) -> Result<()>;

    /// Writes the result of a row from the sums over all its entries. It may overwrite the sums.
    fn finish_row(
        &self,
        row: usize,
        sums: &mut [f64],
        scratch: &mut Self::Scratch,
        to: &mut [Self::Element],
        total: &mut Self::Total,
    );

    /// Writes the result of a row that one thread computes.
    fn compute_row(
        &self,
        row: usize,
        entries: Range<usize>,
        buffers: &mut Buffers<Self::Scratch>,
        stop: &StopFlag,
        to: &mut [Self::Element],
        total: &mut Self::Total,
    ) -> Result<()> {
        sum_and_finish(self, row, entries, buffers, stop, to, total)
    }

    /// Writes the results of several rows.
    fn compute_rows(
        &self,
        rows: Range<usize>,
        csr: &ModeCsr,
        buffers: &mut Buffers<Self::Scratch>,
        stop: &StopFlag,
        to: &mut [Self::Element],
        total: &mut Self::Total,
    ) -> Result<()> {
        let width = to.len() / rows.len();
        for (row, to) in rows.zip(to.chunks_exact_mut(width)) {
            if stop.requested() {
                break;
            }
            self.compute_row(row, csr.row_entries(row), buffers, stop, to, total)?;
        }
        Ok(())
    }
}

/// Buffers of one thread.
pub(super) struct Buffers<S> {
    /// The sums of a row.
    pub sums: Vec<f64>,
    pub scratch: S,
}

impl<S> Buffers<S> {
    fn of<C: RowComputation<Scratch = S>>(computation: &C) -> Result<Buffers<S>> {
        Ok(Buffers {
            sums: try_zeroed(computation.sum_count(), "row elements")?,
            scratch: computation.scratch()?,
        })
    }
}

/// Computes the sums of a row and writes its result.
pub(super) fn sum_and_finish<C: RowComputation + ?Sized>(
    computation: &C,
    row: usize,
    entries: Range<usize>,
    buffers: &mut Buffers<C::Scratch>,
    stop: &StopFlag,
    to: &mut [C::Element],
    total: &mut C::Total,
) -> Result<()> {
    let Buffers { sums, scratch } = buffers;
    sums.fill(0.0);
    computation.add_entries(row, entries, sums, scratch, stop)?;
    computation.finish_row(row, sums, scratch, to, total);
    Ok(())
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
    let run_task = |buffers: &mut Buffers<C::Scratch>, t: usize| match &tasks.tasks[t] {
        RowTask::Rows(rows) => {
            let mut total = C::Total::default();
            let mut slot = lock_ignoring_poison(&slots[t]);
            let (rows, to) = (rows.clone(), &mut slot[..]);
            computation.compute_rows(rows, csr, buffers, stop, to, &mut total)?;
            Ok(TaskResult::Rows(total))
        }
        RowTask::PartOfRow {
            position, entries, ..
        } => {
            let mut sums = try_zeroed(computation.sum_count(), "row elements")?;
            let (row, entries) = (*position, entries.clone());
            computation.add_entries(row, entries, &mut sums, &mut buffers.scratch, stop)?;
            Ok(TaskResult::PartOfRow(row, sums))
        }
    };
    let mut of_tasks = pool
        .try_map(tasks.tasks.len(), || Buffers::of(computation), run_task)?
        .into_iter()
        .peekable();
    drop(slots);
    let mut scratch = computation.scratch()?;
    let mut totals = Vec::new();
    while let Some(result) = of_tasks.next() {
        let (row, mut sums) = match result {
            TaskResult::Rows(total) => {
                totals.push(total);
                continue;
            }
            TaskResult::PartOfRow(row, sums) => (row, sums),
        };
        // The parts of a row follow each other.
        let is_of_row = |r: &TaskResult<C>| matches!(r, TaskResult::PartOfRow(of, _) if *of == row);
        while let Some(TaskResult::PartOfRow(_, part)) = of_tasks.next_if(is_of_row) {
            sums.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
        }
        let to = &mut results[row * width..(row + 1) * width];
        let mut total = C::Total::default();
        computation.finish_row(row, &mut sums, &mut scratch, to, &mut total);
        totals.push(total);
    }
    Ok(totals)
}

/// The result of a task.
enum TaskResult<C: RowComputation> {
    /// The total of several rows.
    Rows(C::Total),
    /// A row, and the sums over some of its entries.
    PartOfRow(usize, Vec<f64>),
}
