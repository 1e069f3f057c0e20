//! The terms of the objective that depend on entries: the squared errors of the tensor, or of a coupled matrix.

use std::ops::Range;

use super::row_tasks::{RowTask, RowTasks};
use crate::error::Result;
use crate::kernel::{BiasedRow, ModeCsr, NormalEquations, OtherMode, Partials, PartialsScratch};
use crate::model::FactorMatrix;
use crate::parallel::ThreadPool;
use crate::progress::StopFlag;
use crate::simd::{Level, padded_len};
use crate::solver::full_matrix::FullMatrix;
use crate::solver::gram::row_moments;

/// The squared errors of the tensor or a matrix as a function of the rows of a mode, or of the columns of a matrix.
pub(super) struct DataTerm<'a> {
    /// The entries, grouped by these rows.
    pub csr: &'a ModeCsr,
    /// The derivative of the model's value at an entry by its row.
    pub partials: Partials<'a>,
    /// Factor of the squared errors: the precision of the noise times the weight of the matrix.
    pub weight: f64,
    /// Whether the row's bias is part of the model's value.
    pub has_bias: bool,
    /// The contribution of all positions of a full matrix; the entries then add to the right-hand side only.
    pub full_matrix: Option<FullMatrixTerms<'a>>,
}

/// The contribution of all positions of a full matrix to the normal equations, the same for every row (or column).
pub(super) struct FullMatrixTerms<'a> {
    /// The Gram matrix of the other side, row-major without padding.
    pub gram: Vec<f32>,
    pub rhs: Vec<f32>,
    /// Factor of `rhs` for each row; `None` for 1.
    pub rhs_scales: Option<&'a [f32]>,
}

impl FullMatrixTerms<'_> {
    /// The contribution to rows of the matrix's mode, given its columns.
    pub(super) fn of_rows(
        full: &FullMatrix,
        columns: &FactorMatrix,
        pool: &ThreadPool<'_>,
    ) -> Result<FullMatrixTerms<'static>> {
        let v = row_moments(columns, columns.len(), &[], pool)?;
        Ok(FullMatrixTerms {
            gram: to_f32(&v.gram()),
            rhs: to_f32(&full.unobserved_column_sum(columns)),
            rhs_scales: None,
        })
    }

    /// The contribution to the matrix's columns, given the rows of its mode.
    pub(super) fn of_columns<'a>(
        full: &'a FullMatrix,
        rows: &FactorMatrix,
        pool: &ThreadPool<'_>,
    ) -> Result<FullMatrixTerms<'a>> {
        let u = row_moments(rows, full.by_row.row_count(), &[], pool)?;
        Ok(FullMatrixTerms {
            gram: to_f32(&u.gram()),
            rhs: to_f32(&u.sum),
            rhs_scales: Some(&full.unobserved_values),
        })
    }

    /// The contribution to rows of the matrix's mode, given its padded columns and the value of the unobserved
    /// positions of each column.
    pub(super) fn of_padded_columns(
        columns: &[f32],
        rank: usize,
        unobserved_values: &[f32],
    ) -> FullMatrixTerms<'static> {
        let (mut gram, mut rhs) = (vec![0.0f64; rank * rank], vec![0.0f64; rank]);
        let columns = columns.chunks_exact(padded_len(rank));
        for (column, &value) in columns.zip(unobserved_values) {
            for i in 0..rank {
                let x = f64::from(column[i]);
                rhs[i] += f64::from(value) * x;
                gram[i * rank..][..rank]
                    .iter_mut()
                    .zip(column)
                    .for_each(|(g, &y)| *g += x * f64::from(y));
            }
        }
        FullMatrixTerms {
            gram: to_f32(&gram),
            rhs: to_f32(&rhs),
            rhs_scales: None,
        }
    }
}

fn to_f32(x: &[f64]) -> Vec<f32> {
    x.iter().map(|&x| x as f32).collect()
}

impl DataTerm<'_> {
    /// Adds the sums over `entries`, all of one row, to `equations`. The sums are incomplete if `stop` is requested.
    pub(super) fn accumulate(
        &self,
        entries: Range<usize>,
        scratch: &mut PartialsScratch,
        equations: &mut NormalEquations,
        stop: &StopFlag,
    ) -> Result<()> {
        if self.full_matrix.is_some() {
            self.partials.accumulate_rhs(self.csr, entries, equations);
            return Ok(());
        }
        self.partials
            .accumulate(self.csr, entries, scratch, equations, stop)
    }
}

/// The squared errors of a coupled matrix, whose entries are grouped by one side, given the padded factor rows of the other.
pub(super) fn matrix_term<'a>(
    csr: &'a ModeCsr,
    other_rows: &'a [f32],
    rank: usize,
    weight: f64,
    full_matrix: Option<FullMatrixTerms<'a>>,
    level: Level,
) -> DataTerm<'a> {
    debug_assert!(other_rows.len().is_multiple_of(padded_len(rank)));
    let other = OtherMode {
        rows: other_rows,
        rank,
        biases: &[],
    };
    DataTerm {
        partials: Partials {
            others: vec![other],
            core: None,
            rank,
            level,
        },
        csr,
        weight,
        has_bias: false,
        full_matrix,
    }
}

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
