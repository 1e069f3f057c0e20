//! The residuals of all entries without the part of a block of columns, grouped by the rows of each mode.

use std::ops::Range;
use std::sync::Mutex;

use super::mode_entries::SalsMode;
use super::packed_factors::ColumnBlock;
use crate::kernels::{BlockValue, PackedColumns, exchange_values, subtract_values};
use s3cmtf::error::Result;
use s3cmtf::internals::Model;
use s3cmtf::internals::RowTask;
use s3cmtf_kernel::kernel::ModeCsr;
use s3cmtf_kernel::parallel::{ThreadPool, lock_ignoring_poison};
use s3cmtf_kernel::progress::count_operations;
use s3cmtf_kernel::simd::Level;
use s3cmtf_kernel::trace::{self, SpanKind};

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
    let rows = |m: usize| model.modes[m].factor.as_slice();
    let rank = model.shape.ranks()[n];
    let value = BlockValue {
        columns: PackedColumns {
            others: mode.csr.other_modes().iter().map(|&m| rows(m)).collect(),
            count: rank,
            width: model.modes[n].factor.stride(),
        },
        own: rows(n),
    };
    let biases: Vec<&[f32]> = match biases {
        [] => Vec::new(),
        _ => {
            let modes = mode.csr.other_modes().iter().chain([&n]);
            modes.map(|&m| &biases[m][..]).collect()
        }
    };
    let stop = pool.stop();
    update_residuals(mode, pool, |csr, entries, residuals| {
        subtract_biases(csr, entries.clone(), &biases, residuals);
        if columns.len() < rank {
            let columns = columns.clone();
            subtract_values(csr, entries, &value, columns, level, residuals, stop);
        }
    })
}

/// Sets residuals to values less their biases: those of the other modes, then those of the rows that `csr` groups by.
fn subtract_biases(csr: &ModeCsr, entries: Range<usize>, biases: &[&[f32]], residuals: &mut [f32]) {
    count_operations(entries.len() * (biases.len() + 1));
    let Some((of_rows, of_others)) = biases.split_last() else {
        for (entry, residual) in entries.zip(residuals) {
            *residual = csr.value(entry);
        }
        return;
    };
    let mut row = if entries.is_empty() {
        0
    } else {
        csr.row_of(entries.start)
    };
    for (entry, residual) in entries.zip(residuals) {
        while csr.row_entries(row).end <= entry {
            row += 1;
        }
        let rows = csr.other_rows(entry).iter().zip(of_others);
        let value = rows.fold(csr.value(entry), |x, (&m, biases)| x - biases[m as usize]);
        *residual = value - of_rows[row];
    }
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
    let (included, excluded) = (from.value(&mode.csr, n), to.value(&mode.csr, n));
    let stop = pool.stop();
    update_residuals(mode, pool, |csr, entries, residuals| {
        exchange_values(csr, entries, &included, &excluded, level, residuals, stop);
    })
}

/// Calls `update` with the entries of several rows, or some entries of a long row, and with their residuals.
fn update_residuals(
    mode: &mut SalsMode,
    pool: &ThreadPool<'_>,
    update: impl Fn(&ModeCsr, Range<usize>, &mut [f32]) + Sync,
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
    let run_task = |t: usize| {
        if !stop.requested() {
            let entries = entries_of(&tasks.tasks[t], csr);
            update(csr, entries, &mut lock_ignoring_poison(&slots[t]));
        }
    };
    pool.map(tasks.tasks.len(), || (), |(), t| run_task(t))?;
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
