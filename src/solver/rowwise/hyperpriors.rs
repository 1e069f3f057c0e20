//! What a sweep draws before the rows: the priors of rows, and how exact the entries are.

use std::ops::Range;

use super::normal_wishart::{Prior, draw, gamma};
use super::sweep::{Exact, Side, State, Way, stream};
use super::work::{Source, Work, errors};
use crate::error::Result;
use crate::kernel::ModeCsr;
use crate::model::{FactorMatrix, Model};

use crate::parallel::ThreadPool;
use crate::random::RandomStream;
use crate::simd::padded_len;
use crate::solver::gram::row_moments;

/// The variance of a factor's numbers before anything is known, and that of biases, where values have
/// one of about 1.
pub(super) const FACTOR_VARIANCE: f64 = 0.01;
const BIAS_VARIANCE: f64 = 0.1;

/// The variance of a factor's numbers in the first sweep, when there is nothing to learn it from: large,
/// or rows next to 0 would give each other no reason to leave it.
pub(super) const FIRST_VARIANCE: f64 = 0.1;

/// The share of the mean square of a matrix that is taken for noise in any case: a matrix of few
/// different values could otherwise be explained without error, and would then count for more than
/// everything else.
const LEAST_NOISE: f64 = 0.05;

impl Exact {
    /// The prior of the rows of mode `n`.
    pub(super) fn prior(
        &self,
        rows: &FactorMatrix,
        biases: &[f32],
        (n, number): (usize, u64),
        pool: &ThreadPool,
    ) -> Result<Prior> {
        let size = rows.rank() + usize::from(self.biased);
        Ok(match self.way {
            Way::Best { .. } => Prior::ridge(size, 0.0),
            Way::Draw { .. } if number == self.first => {
                // Nothing can be learned from rows that mean nothing yet.
                let mut prior = Prior::ridge(size, 1.0 / FIRST_VARIANCE);
                let mean = self.beliefs[n].mean;
                prior.right[..rows.rank()].fill((mean / FIRST_VARIANCE) as f32);
                if self.biased {
                    prior.precision[(size - 1) * padded_len(size) + size - 1] =
                        (1.0 / BIAS_VARIANCE) as f32;
                }
                prior
            }
            Way::Draw { seed } => {
                let moments = row_moments(rows, rows.len() - 1, biases, pool)?;
                let mut s = RandomStream::new(&[seed, stream::HYPER, number, n as u64]);
                draw(&moments, &self.beliefs[n], self.biased, &mut s)
            }
        })
    }

    /// The precision of the tensor's noise: 1 where nothing is drawn.
    pub(super) fn noise_precision(
        &self,
        model: &Model,
        state: &mut State,
        number: u64,
        pool: &ThreadPool,
    ) -> Result<f64> {
        let Way::Draw { seed } = self.way else {
            return Ok(1.0);
        };
        let squares = match state.squares {
            Some(squares) => squares,
            None => self.squares(model, state, pool)?,
        };
        let entries = self.tensor[0].len() as f64;
        let mut s = RandomStream::new(&[seed, stream::NOISE, number]);
        // An entry's noise has this precision times its weight. As if one more entry had an error of a
        // thousandth.
        Ok(gamma(&mut s, 0.5 * (1.0 + entries)) / (0.5 * (1e-6 + squares)))
    }

    /// The sum of squared errors of the tensor by weight, of values as they are here.
    pub(super) fn squares(&self, model: &Model, state: &State, pool: &ThreadPool) -> Result<f64> {
        let n = self.order[0];
        let lists = &self.tensor[n];
        let pieces = self.errors_by(n, model, state, pool, |range, e| {
            square_sum(lists, range, e)
        })?;
        Ok(pieces.iter().sum())
    }

    /// Makes the errors of all entries, of values as they are here, by rows of mode `n`, as [`errors`] does.
    pub(super) fn errors_by<T: Send>(
        &self,
        n: usize,
        model: &Model,
        state: &State,
        pool: &ThreadPool,
        take: impl Fn(Range<usize>, &[f32]) -> T + Sync,
    ) -> Result<Vec<T>> {
        let core = self.core_for(model, n);
        let source = Source {
            lists: &self.tensor[n],
            slopes: self.slopes(model, &state.biases, n, core.as_deref()),
            weight: 1.0,
            biased: self.biased,
            whole: None,
        };
        let rows = model.modes[n].factor.as_slice();
        let work = Work::new(&[&self.tensor[n]]);
        errors(&work, &source, rows, &state.biases[n], pool, take)
    }

    pub(super) fn side_precision(
        &self,
        model: &Model,
        side: &Side,
        number: u64,
        pool: &ThreadPool,
    ) -> Result<f64> {
        let Way::Draw { seed } = self.way else {
            return Ok(1.0);
        };
        let rows = &model.modes[side.mode].factor;
        let columns = &model.matrices[side.number].factor;
        let (squares, entries) = match &side.full {
            Some(full) => (
                full.squared_error(rows, columns, pool)?,
                full.position_count(),
            ),
            None => {
                let source = self.side_source(rows, &side.by_column, 1.0, None);
                let columns = columns.as_slice();
                let pieces = errors(&side.work, &source, columns, &[], pool, |range, e| {
                    square_sum(source.lists, range, e)
                })?;
                (pieces.iter().sum(), side.by_column.len() as f64)
            }
        };
        let mut s = RandomStream::new(&[
            seed,
            stream::NOISE,
            number,
            stream::MATRIX + side.number as u64,
        ]);
        let squares = squares + LEAST_NOISE * side.square * entries;
        // A matrix without entries has no scale.
        let least = f64::MIN_POSITIVE.sqrt();
        Ok(gamma(&mut s, 0.5 * (1.0 + entries)) / (0.5 * squares).max(least))
    }
}

/// The sum of squared errors of some entries, by weight.
fn square_sum(lists: &ModeCsr, entries: Range<usize>, errors: &[f32]) -> f64 {
    let each = entries.zip(errors);
    each.map(|(entry, &e)| f64::from(lists.weight(entry)) * (f64::from(e) * f64::from(e)))
        .sum()
}
