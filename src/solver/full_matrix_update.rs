//! Updates of SGD for full matrices.
//!
//! SGD does not visit a full matrix entry by entry. Before and after each epoch every row of its mode takes
//! half an update of size eta along its gradient. The update is implicit: the gradient is taken at the end
//! point, so it is stable for any eta. Columns, and rows without other entries, are solved for in closed form. As eta
//! goes to 0 this approaches SGD over all positions.

use std::sync::Mutex;

use super::data::Data;
use super::full_matrix::{FullMatrix, FullMatrixRow};
use super::gram::row_moments;
use crate::error::Result;
use crate::kernel::{ModeCsr, Regularizer};
use crate::linalg::{CoordinateDescent, WARM_START_PASSES, dot, inverse};
use crate::model::{FactorMatrix, Model};
use crate::parallel::ThreadPool;
use crate::progress::{Monitor, StopFlag, check_cancelled};

/// Number of rows or columns that a thread takes at a time.
const ROWS_PER_TASK: usize = 128;

/// Runs the first half update for all full matrices: solves for their columns, then updates the rows.
pub(super) fn before_epoch(
    model: &mut Model,
    data: &Data,
    eta: f64,
    regularizer: Regularizer,
    pool: &ThreadPool<'_>,
) -> Result<()> {
    solve_columns(model, data, regularizer, pool)?;
    update_rows(model, data, 0.5 * eta, regularizer, pool)
}

/// Runs the second half update for all full matrices: updates the rows, then solves for the columns.
pub(super) fn after_epoch(
    model: &mut Model,
    data: &Data,
    eta: f64,
    regularizer: Regularizer,
    pool: &ThreadPool<'_>,
) -> Result<()> {
    update_rows(model, data, 0.5 * eta, regularizer, pool)?;
    solve_columns(model, data, regularizer, pool)
}

/// Adds `weight` times the values of row `i` times the rows of `others` at its entries to `sum`.
fn add_observed(csr: &ModeCsr, i: usize, others: &FactorMatrix, weight: f64, sum: &mut [f64]) {
    for e in csr.row_entries(i) {
        let by = weight * f64::from(csr.value(e));
        let row = others.row(csr.other_rows(e)[0] as usize);
        sum.iter_mut()
            .zip(row)
            .for_each(|(s, &x)| *s += by * f64::from(x));
    }
}

/// Calls `update` for each of the first `count` rows of a factor whose rows are `stride` floats apart. Threads take
/// [`ROWS_PER_TASK`] rows at a time; each creates its own state.
fn for_rows<S>(
    rows: &mut [f32],
    count: usize,
    stride: usize,
    pool: &ThreadPool<'_>,
    state: impl Fn() -> S + Sync,
    update: impl Fn(&mut S, usize, &mut [f32]) -> Result<()> + Sync,
) -> Result<()> {
    let tasks = rows[..count * stride].chunks_mut(ROWS_PER_TASK * stride);
    let tasks: Vec<Mutex<&mut [f32]>> = tasks.map(Mutex::new).collect();
    let stop = pool.stop();
    let state = || Ok(state());
    pool.try_map(tasks.len(), state, |state, t| {
        let mut task = tasks[t].lock().unwrap_or_else(|e| e.into_inner());
        for (k, row) in task.chunks_exact_mut(stride).enumerate() {
            check_cancelled(stop)?;
            update(state, t * ROWS_PER_TASK + k, row)?;
        }
        Ok(())
    })?;
    Ok(())
}

/// Solves for the columns of all full matrices, given the rows of their modes.
fn solve_columns(
    model: &mut Model,
    data: &Data,
    regularizer: Regularizer,
    pool: &ThreadPool<'_>,
) -> Result<()> {
    for (m, matrix) in data.matrices.iter().enumerate() {
        let weight = f64::from(matrix.weight);
        let Some(full) = matrix.full.as_deref().filter(|_| weight > 0.0) else {
            continue;
        };
        let rows = &model.modes[matrix.mode].factor;
        let (rank, stride) = (rows.rank(), rows.stride());
        let u = row_moments(rows, full.by_row.row_count(), &[], pool)?;
        // Every column has as many positions as the mode has rows.
        let penalty = matrix.penalty.of_row(full.by_row.row_count() as f64);
        let mut a: Vec<f64> = u.gram().iter().map(|g| weight * g).collect();
        if !regularizer.l1 {
            (0..rank).for_each(|j| a[j * rank + j] += penalty);
        }
        let is_linear = !regularizer.l1 && !regularizer.nonneg;
        let inverse = is_linear.then(|| inverse(rank, &a, pool.monitor()));
        let inverse = inverse.transpose()?;
        let problem = CoordinateDescent {
            nonneg: regularizer.nonneg,
            l1: if regularizer.l1 { penalty } else { 0.0 },
            prior: &matrix.prior_mean,
            passes: WARM_START_PASSES,
        };
        let columns = model.matrices[m].factor.as_mut_slice()?;
        let count = full.unobserved_values.len();
        let state = || (vec![0.0; rank], vec![0.0; rank]);
        for_rows(
            columns,
            count,
            stride,
            pool,
            state,
            |(right, x), k, column| {
                let base = weight * f64::from(full.unobserved_values[k]);
                right
                    .iter_mut()
                    .zip(&u.sum)
                    .for_each(|(r, s)| *r = base * s);
                add_observed(&full.by_column, k, rows, weight, right);
                match &inverse {
                    Some(inverse) => {
                        let rows = inverse.chunks_exact(rank);
                        x.iter_mut().zip(rows).for_each(|(x, p)| *x = dot(p, right));
                    }
                    None => {
                        x.iter_mut()
                            .zip(&*column)
                            .for_each(|(x, &v)| *x = f64::from(v));
                        problem.minimize(&a, right, x);
                    }
                }
                column.iter_mut().zip(&*x).for_each(|(v, &x)| *v = x as f32);
                Ok(())
            },
        )?;
    }
    Ok(())
}

/// A full matrix with the factors of its columns.
struct FullMatrixTerm<'a> {
    /// Weight of the loss of the matrix.
    weight: f64,
    full: &'a FullMatrix,
    columns: &'a FactorMatrix,
}

/// Gradient terms of all full matrices of one mode, and the update of its rows.
struct RowUpdate<'a> {
    matrices: Vec<FullMatrixTerm<'a>>,
    /// Sum over the matrices of weight times V^T V.
    gram: Vec<f64>,
    /// Sum over the matrices of weight times sum_k b_k v_k.
    right: Vec<f64>,
    rows: &'a [FullMatrixRow],
    prior_mean: &'a [f32],
    eta: f64,
    regularizer: Regularizer,
}

/// The implicit update of all rows with the same [`FullMatrixRow`]: row u moves to
/// `by` (`keep` u + `eta` s + `constant`), where s is the sum over its observed entries. It is kept in `f64` because large
/// terms cancel where one direction of the columns is far weaker than another.
struct LinearUpdate {
    keep: f64,
    eta: f64,
    constant: Vec<f64>,
    /// Symmetric.
    by: Vec<f64>,
}

/// Updates the rows of all modes with full matrices by `eta` along their negative gradient.
fn update_rows(
    model: &mut Model,
    data: &Data,
    eta: f64,
    regularizer: Regularizer,
    pool: &ThreadPool<'_>,
) -> Result<()> {
    for (n, mode) in model.modes.iter_mut().enumerate() {
        let all = data.matrices.iter().zip(&model.matrices);
        let matrices: Vec<FullMatrixTerm<'_>> = all
            .filter(|(m, _)| m.mode == n)
            .filter_map(|(m, columns)| {
                Some(FullMatrixTerm {
                    weight: f64::from(m.weight),
                    full: m.full.as_deref()?,
                    columns: &columns.factor,
                })
            })
            .collect();
        if matrices.is_empty() {
            continue;
        }
        let (rank, stride) = (mode.factor.rank(), mode.factor.stride());
        let (mut gram, mut right) = (vec![0.0; rank * rank], vec![0.0; rank]);
        for term in &matrices {
            let columns = term.columns;
            let v = row_moments(columns, columns.len(), &[], pool)?;
            let add = |to: &mut [f64], from: Vec<f64>| {
                to.iter_mut()
                    .zip(from)
                    .for_each(|(t, x)| *t += term.weight * x);
            };
            add(&mut gram, v.gram());
            add(&mut right, term.full.unobserved_column_sum(columns));
        }
        let update = RowUpdate {
            matrices,
            gram,
            right,
            rows: &data.full_matrix_rows[n],
            prior_mean: &data.prior_means[n],
            eta,
            regularizer,
        };
        let count = mode.rows.len();
        let state = || (Vec::new(), vec![0.0; rank], vec![0.0; rank]);
        let (rows, stop) = (mode.factor.as_mut_slice()?, pool.stop());
        for_rows(
            rows,
            count,
            stride,
            pool,
            state,
            |(cache, s, end), i, row| {
                s.fill(0.0);
                for term in &update.matrices {
                    add_observed(&term.full.by_row, i, term.columns, term.weight, s);
                }
                update.apply(i, cache, s, end, &mut row[..rank], stop)
            },
        )?;
    }
    Ok(())
}

impl RowUpdate<'_> {
    /// Updates row `i`, whose observed entries sum to `s`. `cache` holds updates computed for earlier rows,
    /// `end` is scratch memory for the result.
    fn apply(
        &self,
        i: usize,
        cache: &mut Vec<(FullMatrixRow, LinearUpdate)>,
        s: &[f64],
        end: &mut [f64],
        row: &mut [f32],
        stop: &StopFlag,
    ) -> Result<()> {
        let (kind, rank) = (self.rows[i], row.len());
        if self.regularizer.nonneg || (self.regularizer.l1 && kind.penalty > 0.0) {
            self.apply_constrained(kind, s, row);
            return Ok(());
        }
        let cached = cache.iter().position(|(k, _)| *k == kind);
        let cached = match cached {
            Some(cached) => cached,
            None => {
                // There are hardly ever more than two kinds of rows.
                cache.truncate(8);
                cache.push((kind, self.linear_update(rank, kind, stop)?));
                cache.len() - 1
            }
        };
        let update = &cache[cached].1;
        end.fill(0.0);
        for (j, by) in update.by.chunks_exact(rank).enumerate() {
            let right = update.keep * f64::from(row[j]) + update.eta * s[j] + update.constant[j];
            end.iter_mut().zip(by).for_each(|(x, b)| *x += right * b);
        }
        row.iter_mut().zip(&*end).for_each(|(u, &x)| *u = x as f32);
        Ok(())
    }

    /// Returns k and eta of the update. The new row u minimizes k / 2 |u - before|^2 + eta (its part of the loss):
    /// (k I + eta (gram + penalty)) u = k before + eta (right + s + penalty prior_mean). k is 1, or 0 for a row that is
    /// solved for.
    fn keep_and_eta(&self, row: FullMatrixRow) -> (f64, f64) {
        if row.is_exclusive {
            (0.0, 1.0)
        } else {
            (1.0, self.eta)
        }
    }

    fn linear_update(
        &self,
        rank: usize,
        kind: FullMatrixRow,
        monitor: &dyn Monitor,
    ) -> Result<LinearUpdate> {
        let (keep, eta) = self.keep_and_eta(kind);
        let penalty = f64::from(kind.penalty);
        let mut a: Vec<f64> = self.gram.iter().map(|g| eta * g).collect();
        (0..rank).for_each(|j| a[j * rank + j] += keep + eta * penalty);
        let constant = self.right.iter().zip(self.prior_mean);
        Ok(LinearUpdate {
            keep,
            eta,
            constant: constant
                .map(|(r, &p)| eta * (r + penalty * f64::from(p)))
                .collect(),
            by: inverse(rank, &a, monitor)?,
        })
    }

    /// Updates a row under non-negativity or an L1 penalty, by coordinate descent.
    fn apply_constrained(&self, kind: FullMatrixRow, s: &[f64], row: &mut [f32]) {
        let rank = row.len();
        let (keep, eta) = self.keep_and_eta(kind);
        let penalty = eta * f64::from(kind.penalty);
        let (l2, l1) = if self.regularizer.l1 {
            (0.0, penalty)
        } else {
            (penalty, 0.0)
        };
        let mut a: Vec<f64> = self.gram.iter().map(|g| eta * g).collect();
        (0..rank).for_each(|j| a[j * rank + j] += keep + l2);
        let mut x: Vec<f64> = row.iter().map(|&u| f64::from(u)).collect();
        let right: Vec<f64> = (0..rank)
            .map(|j| {
                let gradient = self.right[j] + s[j];
                keep * x[j] + eta * gradient + l2 * f64::from(self.prior_mean[j])
            })
            .collect();
        let problem = CoordinateDescent {
            nonneg: self.regularizer.nonneg,
            l1,
            prior: self.prior_mean,
            passes: WARM_START_PASSES,
        };
        problem.minimize(&a, &right, &mut x);
        row.iter_mut().zip(x).for_each(|(u, x)| *u = x as f32);
    }
}
