//! Matrices all of whose cells count although few are listed.
//!
//! With b_k what a cell of column k is if it is not listed (0, or less than that by the column's offset)
//! and l what a listed one is above it, sums over all cells come from the listed ones and from the Gram
//! matrices of rows and columns:
//!
//! ```text
//! sum (b_k + l - u_i . v_k)^2 = I |b|^2 - 2 (sum u) . (sum b_k v_k) + <U^T U, V^T V>
//!                             + sum over listed cells of l^2 + 2 l (b_k - u_i . v_k)
//! row i:     (V^T V) u = sum b_k v_k + sum over listed cells of l v_k
//! column k:  (U^T U) v = b_k sum u   + sum over listed cells of l u_i
//! ```
//!
//! Nothing of the size of the matrix is ever made. `als` and `gibbs` add these to the equations of their
//! rows. SGD does not visit such a matrix entry by entry: before and after an epoch every row takes half a
//! step along its gradient, implicitly (the gradient is that at the end of the step, so that no step is
//! too large). Columns are solved for, and so are rows that have no other entries. As steps get small this
//! goes where SGD over all cells goes.

use std::sync::{Arc, Mutex};

use super::data::{Data, MatrixData};
use super::entries::Shuffled;
use super::gram::row_moments;
use crate::error::Result;
use crate::kernel::{CooSlices, ModeCsr, Rule};
use crate::linalg::{CoordinateDescent, WARM_START_PASSES, dot, inverse};
use crate::model::{FactorMatrix, Model};
use crate::parallel::ThreadPool;

/// Rows or columns at a time.
const PIECE: usize = 128;

/// A matrix all of whose cells count.
pub(super) struct Full {
    /// What its listed cells are above those that are not.
    pub by_row: Arc<ModeCsr>,
    pub by_column: Arc<ModeCsr>,
    /// What a cell that is not listed is, by column.
    pub base: Vec<f32>,
}

impl Full {
    pub(super) fn new(rows: usize, entries: &Shuffled, base: Vec<f32>) -> Result<Full> {
        let limits = [rows, base.len()];
        let entries = CooSlices {
            row_counts: &limits,
            rows: &entries.rows,
            values: &entries.values,
            weights: &[],
        };
        let lists = |mode| ModeCsr::new(mode, entries);
        Ok(Full {
            by_row: Arc::new(lists(0)?),
            by_column: Arc::new(lists(1)?),
            base,
        })
    }

    /// The number of cells.
    pub(super) fn cells(&self) -> f64 {
        self.by_row.row_count() as f64 * self.base.len() as f64
    }

    /// The largest absolute value of a cell.
    pub(super) fn largest(&self) -> f32 {
        let listed = (0..self.by_row.len()).map(|e| {
            let column = self.by_row.other_rows(e)[0];
            self.base[column as usize] + self.by_row.value(e)
        });
        let all = self.base.iter().copied().chain(listed);
        all.fold(0.0, |most: f32, x| most.max(x.abs()))
    }

    /// The sum of the squares of all cells.
    pub(super) fn size(&self) -> f64 {
        let square = |x: f32| f64::from(x) * f64::from(x);
        let rows = self.by_row.row_count() as f64;
        let base = rows * self.base.iter().map(|&b| square(b)).sum::<f64>();
        let listed = (0..self.by_row.len()).map(|e| {
            let base = self.base[self.by_row.other_rows(e)[0] as usize];
            let value = self.by_row.value(e);
            square(value) + 2.0 * f64::from(base) * f64::from(value)
        });
        base + listed.sum::<f64>()
    }

    /// The sum of columns, each times what its cells are that are not listed.
    pub(super) fn pull(&self, columns: &FactorMatrix) -> Vec<f64> {
        let mut sum = vec![0.0; columns.rank()];
        for (k, &base) in self.base.iter().enumerate().filter(|(_, b)| **b != 0.0) {
            let row = columns.row(k).iter();
            sum.iter_mut()
                .zip(row)
                .for_each(|(s, &v)| *s += f64::from(base) * f64::from(v));
        }
        sum
    }

    /// The sum of squared errors over all cells.
    pub(super) fn squares(
        &self,
        rows: &FactorMatrix,
        columns: &FactorMatrix,
        pool: &ThreadPool,
    ) -> Result<f64> {
        let count = self.by_row.row_count();
        let u = row_moments(rows, count, &[], pool)?;
        let v = row_moments(columns, columns.len(), &[], pool)?;
        let across: f64 = u.gram().iter().zip(v.gram()).map(|(a, b)| a * b).sum();
        let along = dot(&self.pull(columns), &u.sum);
        let listed = pool.map(
            count.div_ceil(PIECE),
            &mut || false,
            || (),
            |(), p| {
                let mut sum = 0.0;
                for i in p * PIECE..((p + 1) * PIECE).min(count) {
                    for e in self.by_row.row_entries(i) {
                        let k = self.by_row.other_rows(e)[0] as usize;
                        let pairs = rows.row(i).iter().zip(columns.row(k));
                        let uv: f64 = pairs.map(|(&u, &v)| f64::from(u) * f64::from(v)).sum();
                        sum -= 2.0 * f64::from(self.by_row.value(e)) * uv;
                    }
                }
                sum
            },
        )?;
        let listed: f64 = listed.unwrap_or_default().iter().sum();
        // What rounding leaves of a perfect fit may be less than nothing.
        Ok((self.size() - 2.0 * along + across + listed).max(0.0))
    }
}

/// The sum of the rows of `others` that the entries of row `i` meet, times their values.
fn met(lists: &ModeCsr, i: usize, others: &FactorMatrix, weight: f64, sum: &mut [f64]) {
    for e in lists.row_entries(i) {
        let by = weight * f64::from(lists.value(e));
        let row = others.row(lists.other_rows(e)[0] as usize);
        sum.iter_mut()
            .zip(row)
            .for_each(|(s, &x)| *s += by * f64::from(x));
    }
}

/// Does `each` to every row of a factor that is one of the first `count`, in pieces; every thread makes
/// its own state.
fn for_rows<S>(
    rows: &mut [f32],
    (count, width): (usize, usize),
    pool: &ThreadPool,
    state: impl Fn() -> S + Sync,
    each: impl Fn(&mut S, usize, &mut [f32]) + Sync,
) -> Result<()> {
    let pieces = rows[..count * width].chunks_mut(PIECE * width);
    let pieces: Vec<Mutex<&mut [f32]>> = pieces.map(Mutex::new).collect();
    pool.map(pieces.len(), &mut || false, state, |state, p| {
        let mut piece = pieces[p].lock().unwrap_or_else(|e| e.into_inner());
        for (k, row) in piece.chunks_exact_mut(width).enumerate() {
            each(state, p * PIECE + k, row);
        }
    })?;
    Ok(())
}

/// What SGD does for such matrices before an epoch with step size `eta`, or `after` it: half a step on each
/// side, and columns that suit the rows when it begins and when it ends.
pub(super) fn epoch_side(
    model: &mut Model,
    data: &Data,
    eta: f64,
    after: bool,
    rule: Rule,
    pool: &ThreadPool,
) -> Result<()> {
    if !after {
        solve_columns(model, data, rule, pool)?;
    }
    step_rows(model, data, 0.5 * eta, rule, pool)?;
    if after {
        solve_columns(model, data, rule, pool)?;
    }
    Ok(())
}

/// Solves for the columns of all such matrices, given the rows of their modes.
fn solve_columns(model: &mut Model, data: &Data, rule: Rule, pool: &ThreadPool) -> Result<()> {
    for (m, matrix) in data.matrices.iter().enumerate() {
        let weight = f64::from(matrix.weight);
        let Some(full) = matrix.full.as_deref().filter(|_| weight > 0.0) else {
            continue;
        };
        let rows = &model.modes[matrix.mode].factor;
        let (rank, width) = (rows.rank(), rows.stride());
        let u = row_moments(rows, full.by_row.row_count(), &[], pool)?;
        // Every column has all rows of the mode.
        let penalty = matrix.penalties.row(full.by_row.row_count() as f64);
        let mut a: Vec<f64> = u.gram().iter().map(|g| weight * g).collect();
        if !rule.l1 {
            (0..rank).for_each(|j| a[j * rank + j] += penalty);
        }
        let inverse = (!rule.l1 && !rule.nonneg).then(|| inverse(rank, &a));
        let problem = CoordinateDescent {
            nonneg: rule.nonneg,
            l1: if rule.l1 { penalty } else { 0.0 },
            prior: &matrix.prior,
            passes: WARM_START_PASSES,
        };
        let columns = model.matrices[m].factor.as_mut_slice()?;
        let state = || (vec![0.0; rank], vec![0.0; rank]);
        let size = (full.base.len(), width);
        for_rows(columns, size, pool, state, |(right, x), k, column| {
            let base = weight * f64::from(full.base[k]);
            right
                .iter_mut()
                .zip(&u.sum)
                .for_each(|(r, s)| *r = base * s);
            met(&full.by_column, k, rows, weight, right);
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
        })?;
    }
    Ok(())
}

/// What a row of a mode with full matrices has besides them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FullRow {
    /// The share of its penalty that goes with them: 0 if it has tensor entries.
    pub penalty: f32,
    /// Whether it has nothing else. Then it is solved for, like a column.
    pub alone: bool,
}

/// What full matrices do to the rows of a mode.
struct Pull<'a> {
    matrices: Vec<(&'a MatrixData, &'a Full, &'a FactorMatrix)>,
    /// Sums over the matrices, times their weights.
    gram: Vec<f64>,
    right: Vec<f64>,
    rows: &'a [FullRow],
    prior: &'a [f32],
    eta: f64,
    rule: Rule,
}

/// The step of all rows that are alike: with u a row and s what its listed cells add up to, it ends at
/// `by` times (`keep` u + `eta` s + `always`). In f64: where one direction of columns is far weaker than
/// another, large numbers cancel in it.
struct Step {
    keep: f64,
    eta: f64,
    always: Vec<f64>,
    /// Symmetric.
    by: Vec<f64>,
}

/// Takes the rows of all modes with full matrices a step of `eta` down their gradient.
fn step_rows(
    model: &mut Model,
    data: &Data,
    eta: f64,
    rule: Rule,
    pool: &ThreadPool,
) -> Result<()> {
    for (n, mode) in model.modes.iter_mut().enumerate() {
        let eta = eta * f64::from(data.mode_steps[n]);
        let all = data.matrices.iter().zip(&model.matrices);
        let matrices: Vec<(&MatrixData, &Full, &FactorMatrix)> = all
            .filter(|(m, _)| m.mode == n)
            .filter_map(|(m, columns)| Some((m, m.full.as_deref()?, &columns.factor)))
            .collect();
        // Without steps, rows that are alone stay too.
        if matrices.is_empty() || data.mode_steps[n] == 0.0 {
            continue;
        }
        let (rank, width) = (mode.factor.rank(), mode.factor.stride());
        let (mut gram, mut right) = (vec![0.0; rank * rank], vec![0.0; rank]);
        for (m, full, columns) in &matrices {
            let weight = f64::from(m.weight);
            let v = row_moments(columns, columns.len(), &[], pool)?;
            let add = |to: &mut [f64], from: Vec<f64>| {
                to.iter_mut().zip(from).for_each(|(t, x)| *t += weight * x);
            };
            add(&mut gram, v.gram());
            add(&mut right, full.pull(columns));
        }
        let pull = Pull {
            matrices,
            gram,
            right,
            rows: &data.full_rows[n],
            prior: &data.priors[n],
            eta,
            rule,
        };
        let count = mode.rows.len();
        let state = || (Vec::new(), vec![0.0; rank], vec![0.0; rank]);
        let rows = mode.factor.as_mut_slice()?;
        for_rows(
            rows,
            (count, width),
            pool,
            state,
            |(steps, s, end), i, row| {
                s.fill(0.0);
                for (m, full, columns) in &pull.matrices {
                    met(&full.by_row, i, columns, f64::from(m.weight), s);
                }
                pull.step(i, steps, s, end, &mut row[..rank]);
            },
        )?;
    }
    Ok(())
}

impl Pull<'_> {
    /// Moves one row, whose listed cells add up to `s`; `end` is room for where it goes.
    fn step(
        &self,
        i: usize,
        steps: &mut Vec<(FullRow, Step)>,
        s: &[f64],
        end: &mut [f64],
        row: &mut [f32],
    ) {
        let (what, rank) = (self.rows[i], row.len());
        if self.rule.nonneg || (self.rule.l1 && what.penalty > 0.0) {
            return self.bounded(what, s, row);
        }
        let known = steps.iter().position(|(w, _)| *w == what);
        let known = known.unwrap_or_else(|| {
            // Hardly ever are there more than two.
            steps.truncate(8);
            steps.push((what, self.made(rank, what)));
            steps.len() - 1
        });
        let step = &steps[known].1;
        end.fill(0.0);
        for (j, by) in step.by.chunks_exact(rank).enumerate() {
            let right = step.keep * f64::from(row[j]) + step.eta * s[j] + step.always[j];
            end.iter_mut().zip(by).for_each(|(x, b)| *x += right * b);
        }
        row.iter_mut().zip(&*end).for_each(|(u, &x)| *u = x as f32);
    }

    /// u minimises k / 2 |u - before|^2 + eta (its part of the loss), which (k I + eta (gram + penalty)) u =
    /// k before + eta (right + s + penalty prior) does; k is 1, and 0 for a row that is alone. Returns k and eta.
    fn pace(&self, row: FullRow) -> (f64, f64) {
        match row.alone {
            true => (0.0, 1.0),
            false => (1.0, self.eta),
        }
    }

    fn made(&self, rank: usize, what: FullRow) -> Step {
        let (keep, eta) = self.pace(what);
        let penalty = f64::from(what.penalty);
        let mut a: Vec<f64> = self.gram.iter().map(|g| eta * g).collect();
        (0..rank).for_each(|j| a[j * rank + j] += keep + eta * penalty);
        let always = self.right.iter().zip(self.prior);
        Step {
            keep,
            eta,
            always: always
                .map(|(r, &p)| eta * (r + penalty * f64::from(p)))
                .collect(),
            by: inverse(rank, &a),
        }
    }

    /// The same where numbers stay at 0 or above, or the penalty has corners.
    fn bounded(&self, what: FullRow, s: &[f64], row: &mut [f32]) {
        let rank = row.len();
        let (keep, eta) = self.pace(what);
        let penalty = eta * f64::from(what.penalty);
        let (square, l1) = match self.rule.l1 {
            true => (0.0, penalty),
            false => (penalty, 0.0),
        };
        let mut a: Vec<f64> = self.gram.iter().map(|g| eta * g).collect();
        (0..rank).for_each(|j| a[j * rank + j] += keep + square);
        let mut x: Vec<f64> = row.iter().map(|&u| f64::from(u)).collect();
        let right: Vec<f64> = (0..rank)
            .map(|j| {
                let pull = self.right[j] + s[j];
                keep * x[j] + eta * pull + square * f64::from(self.prior[j])
            })
            .collect();
        let problem = CoordinateDescent {
            nonneg: self.rule.nonneg,
            l1,
            prior: self.prior,
            passes: WARM_START_PASSES,
        };
        problem.minimize(&a, &right, &mut x);
        row.iter_mut().zip(x).for_each(|(u, x)| *u = x as f32);
    }
}
