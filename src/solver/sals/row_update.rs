//! The update of the rows of a mode, restricted to a block of columns: least squares given everything else.

use std::ops::Range;

use super::column_block::ColumnBlock;
use super::mode_entries::SalsMode;
use crate::error::Result;
use crate::kernel::{NormalEquations, Partials, PartialsScratch};
use crate::linalg::{cholesky_into, regularized_cholesky, solve_lower, solve_lower_transposed};
use crate::parallel::{ThreadPool, lock_ignoring_poison};
use crate::progress::StopFlag;
use crate::simd::{AlignedVec, Level};
use crate::solver::rowwise::RowTask;
use crate::trace::{self, SpanKind};

/// Number of entries that are summed in `f32` before they are added to sums in `f64`.
const CHUNK: usize = 256;

/// Replaces the block's rows of mode `n` by the solutions of their normal equations.
pub(super) fn update_rows(
    mode: &SalsMode,
    n: usize,
    block: &mut ColumnBlock,
    level: Level,
    pool: &ThreadPool<'_>,
) -> Result<()> {
    let _span = trace::span(SpanKind::Rows);
    let (size, width) = (block.columns.len(), block.width());
    // Partial derivatives do not depend on the rows that are replaced.
    let mut rows: AlignedVec = std::mem::take(&mut block.rows[n]);
    let equations = RowEquations {
        mode,
        target: &mode.target[block.columns.clone()],
        partials: block.partials(&mode.csr, level),
        stop: pool.stop(),
    };
    let tasks = &mode.tasks.tasks;
    let scratch = || RowScratch::new(size);
    let slots = mode.tasks.row_slots(&mut rows, width);
    let run_task = |scratch: &mut RowScratch, t: usize| {
        Ok(match &tasks[t] {
            RowTask::Rows(rows) => {
                let mut slot = lock_ignoring_poison(&slots[t]);
                for (row, to) in rows.clone().zip(slot.chunks_exact_mut(width)) {
                    if equations.stop.requested() {
                        break;
                    }
                    scratch.sums.clear();
                    equations.accumulate(mode.csr.row_entries(row), scratch)?;
                    equations.solve(row, scratch, to);
                }
                None
            }
            RowTask::PartOfRow { entries, .. } => {
                scratch.sums.clear();
                equations.accumulate(entries.clone(), scratch)?;
                Some(scratch.sums.clone())
            }
        })
    };
    let parts = pool.try_map(tasks.len(), scratch, run_task)?;
    drop(slots);
    // The parts of a long row follow each other.
    let mut scratch = scratch()?;
    let mut parts = tasks.iter().zip(parts).peekable();
    scratch.sums.clear();
    while let Some((task, part)) = parts.next() {
        let (RowTask::PartOfRow { position, .. }, Some(part)) = (task, part) else {
            continue;
        };
        scratch.sums.add(&part);
        let is_last = !matches!(
            parts.peek(),
            Some((RowTask::PartOfRow { position: next, .. }, _)) if next == position
        );
        if is_last {
            let to = &mut rows[position * width..(position + 1) * width];
            equations.solve(*position, &mut scratch, to);
            scratch.sums.clear();
        }
    }
    drop(equations);
    block.rows[n] = rows;
    Ok(())
}

/// The normal equations of the rows of a mode for one block of columns.
struct RowEquations<'a> {
    mode: &'a SalsMode,
    /// The row that the penalty shrinks to.
    target: &'a [f32],
    partials: Partials<'a>,
    stop: &'a StopFlag,
}

/// Buffers of one thread.
struct RowScratch {
    partials: PartialsScratch,
    chunk: NormalEquations,
    sums: RowSums,
    /// The Cholesky factor.
    lower: Vec<f64>,
}

/// The sums of w d d^T and w d r over entries of a row.
#[derive(Clone)]
struct RowSums {
    size: usize,
    /// The lower triangle.
    gram: Vec<f64>,
    rhs: Vec<f64>,
}

impl RowScratch {
    fn new(size: usize) -> Result<RowScratch> {
        Ok(RowScratch {
            partials: PartialsScratch::default(),
            chunk: NormalEquations::new(size)?,
            sums: RowSums {
                size,
                gram: vec![0.0; size * size],
                rhs: vec![0.0; size],
            },
            lower: vec![0.0; size * size],
        })
    }
}

impl RowSums {
    fn clear(&mut self) {
        self.gram.fill(0.0);
        self.rhs.fill(0.0);
    }

    fn add_chunk(&mut self, chunk: &NormalEquations) {
        for j in 0..self.size {
            for (k, &x) in chunk.gram_row(j).iter().enumerate() {
                self.gram[(j + k) * self.size + j] += f64::from(x);
            }
        }
        let rhs = self.rhs.iter_mut().zip(chunk.rhs());
        rhs.for_each(|(sum, &x)| *sum += f64::from(x));
    }

    fn add(&mut self, other: &RowSums) {
        let pairs = [(&mut self.gram, &other.gram), (&mut self.rhs, &other.rhs)];
        for (to, from) in pairs {
            to.iter_mut().zip(from).for_each(|(t, f)| *t += f);
        }
    }
}

impl RowEquations<'_> {
    /// Adds the sums over `entries`, all of one row. They are incomplete if a stop is requested.
    fn accumulate(&self, entries: Range<usize>, scratch: &mut RowScratch) -> Result<()> {
        let RowScratch {
            partials,
            chunk,
            sums,
            ..
        } = scratch;
        let (csr, residuals, end) = (&self.mode.csr, &self.mode.residuals, entries.end);
        for start in entries.step_by(CHUNK) {
            let entries = start..(start + CHUNK).min(end);
            let residuals = &residuals[entries.clone()];
            chunk.clear();
            self.partials
                .accumulate_residuals(csr, entries, residuals, partials, chunk, self.stop)?;
            sums.add_chunk(chunk);
        }
        Ok(())
    }

    /// Adds the penalty of a row to its sums, solves and writes the row. Singular equations are regularized.
    fn solve(&self, row: usize, scratch: &mut RowScratch, to: &mut [f32]) {
        let RowScratch { sums, lower, .. } = scratch;
        let RowSums { size, gram, rhs } = sums;
        let (size, strength) = (*size, f64::from(self.mode.penalties[row]));
        for j in 0..size {
            gram[j * size + j] += strength;
            rhs[j] += strength * f64::from(self.target[j]);
        }
        if !cholesky_into(size, gram, lower) {
            lower.copy_from_slice(&regularized_cholesky(size, gram));
        }
        solve_lower(size, lower, rhs);
        solve_lower_transposed(size, lower, rhs);
        for (to, &x) in to.iter_mut().zip(&*rhs) {
            let x = x as f32;
            *to = if x.is_finite() { x } else { 0.0 };
        }
    }
}
