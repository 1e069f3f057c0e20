//! The residuals of all entries without the part of a block of columns, grouped by the rows of each mode.

use std::ops::Range;
use std::sync::Mutex;

use super::column_block::ColumnBlock;
use super::mode_entries::SalsMode;
use crate::error::Result;
use crate::kernel::{
    BiasedRow, BlockValue, ModeCsr, OtherMode, Partials, PartialsScratch, exchange_values,
};
use crate::model::Model;
use crate::parallel::{ThreadPool, lock_ignoring_poison};
use crate::simd::Level;
use crate::solver::rowwise::RowTask;
use crate::trace::{self, SpanKind};

/// Computes the residuals of mode `n` of a model without `columns`.
pub(super) fn compute_residuals(
    mode: &mut SalsMode,
    n: usize,
    model: &Model,
    biases: &[Vec<f32>],
    columns: Range<usize>,
    level: Level,
    pool: &ThreadPool<'_>,
) -> Result<()> {
    let biases = |m: usize| biases.get(m).map_or(&[][..], Vec::as_slice);
    let others = mode.csr.other_modes().iter().map(|&m| OtherMode {
        rows: model.modes[m].factor.as_slice(),
        rank: model.shape.ranks()[m],
        biases: biases(m),
    });
    let partials = Partials {
        others: others.collect(),
        core: None,
        rank: model.shape.ranks()[n],
        level,
    };
    let (factor, own_biases, stop) = (&model.modes[n].factor, biases(n), pool.stop());
    update_residuals(mode, pool, |csr, entries, i, scratch, residuals| {
        scratch.row.clear();
        scratch.row.extend_from_slice(factor.padded_row(i));
        scratch.row[columns.clone()].fill(0.0);
        let row = BiasedRow {
            row: &scratch.row,
            bias: own_biases.get(i).copied().unwrap_or(0.0),
        };
        partials.residuals(csr, entries, row, &mut scratch.partials, residuals, stop)
    })
}

/// Changes the residuals of mode `n` from those without the columns of `from`, which have been updated, to those without the
/// columns of `to`.
pub(super) fn exchange_blocks(
    mode: &mut SalsMode,
    n: usize,
    from: &ColumnBlock,
    to: &ColumnBlock,
    level: Level,
    pool: &ThreadPool<'_>,
) -> Result<()> {
    let included = from.partials(&mode.csr, level);
    let excluded = to.partials(&mode.csr, level);
    let stop = pool.stop();
    update_residuals(mode, pool, |csr, entries, i, _, residuals| {
        let from = BlockValue {
            partials: &included,
            row: from.row(n, i),
        };
        let to = BlockValue {
            partials: &excluded,
            row: to.row(n, i),
        };
        exchange_values(csr, entries, from, to, residuals, stop);
        Ok(())
    })
}

/// Buffers of one thread.
#[derive(Default)]
struct RowScratch {
    partials: PartialsScratch,
    row: Vec<f32>,
}

/// Calls `update` with the entries of every row, or some entries of a long row, and with their residuals.
fn update_residuals(
    mode: &mut SalsMode,
    pool: &ThreadPool<'_>,
    update: impl Fn(&ModeCsr, Range<usize>, usize, &mut RowScratch, &mut [f32]) -> Result<()> + Sync,
) -> Result<()> {
    let _span = trace::span(SpanKind::Rows);
    let SalsMode {
        csr,
        tasks,
        residuals,
        ..
    } = mode;
    let mut rest = &mut residuals[..];
    let split = |task: &RowTask| {
        let slot;
        (slot, rest) = std::mem::take(&mut rest).split_at_mut(entries_of(task, csr).len());
        Mutex::new(slot)
    };
    let slots: Vec<Mutex<&mut [f32]>> = tasks.tasks.iter().map(split).collect();
    let stop = pool.stop();
    let run_task = |scratch: &mut RowScratch, t: usize| {
        let (task, csr) = (&tasks.tasks[t], &*csr);
        let all = entries_of(task, csr);
        let mut residuals = lock_ignoring_poison(&slots[t]);
        let rows = match task {
            RowTask::Rows(rows) => rows.clone(),
            RowTask::PartOfRow { position, .. } => *position..position + 1,
        };
        for row in rows {
            if stop.requested() {
                break;
            }
            let of_row = csr.row_entries(row);
            let entries = of_row.start.max(all.start)..of_row.end.min(all.end);
            let of_row = entries.start - all.start..entries.end - all.start;
            update(csr, entries, row, scratch, &mut residuals[of_row])?;
        }
        Ok(())
    };
    pool.try_map(tasks.tasks.len(), || Ok(RowScratch::default()), run_task)?;
    Ok(())
}

/// The entries of a task. Tasks cover all rows in their order, so their entries follow each other.
fn entries_of(task: &RowTask, csr: &ModeCsr) -> Range<usize> {
    match task {
        RowTask::Rows(rows) if rows.is_empty() => 0..0,
        RowTask::Rows(rows) => csr.row_entries(rows.start).start..csr.row_entries(rows.end - 1).end,
        RowTask::PartOfRow { entries, .. } => entries.clone(),
    }
}
