//! Rows without tensor entries whose matrices say something of them.
//!
//! Their factor rows follow from the matrices; their biases do not, since no matrix has biases in it. But
//! rows with entries show what bias goes with what matrices say, so biases are regressed on that. Every
//! entry counts, not every row: rows with few entries differ from those that are asked for. On ml1m_half
//! with a tenth of the films held out the error on these is 1.028 so, 1.041 with every row counting as the
//! root of its entries, 1.069 with all rows alike, and 1.067 with biases of 0.

use std::sync::Arc;

use super::normal_wishart::Prior;
use super::sweep::{Exact, State, Way, stream};
use super::work::{Pull, Rule, Source, Whole, Work, update};
use crate::error::Result;
use crate::kernel::{CooSlices, ModeCsr, OtherMode, Partials};

use crate::model::Model;
use crate::simd::Level;

use crate::linalg::{regularized_cholesky, solve_lower, solve_lower_transposed};
use crate::parallel::ThreadPool;
use crate::problem::MatrixKind;
use crate::random::RandomStream;
use crate::simd::padded_len;
use crate::solver::data::{Data, MatrixData};

/// Rows that a regression is made of at most: more would not tell more.
const MOST: usize = 20_000;

/// A regression is pulled to a constant as strongly as so many rows pull.
const RIDGE: f64 = 30.0;

/// The biases of rows without tensor entries.
#[derive(Clone)]
pub(super) struct ColdBiases {
    /// What the row that its matrices give is multiplied with.
    slopes: Vec<f64>,
    base: f64,
    /// How far biases are from that.
    deviation: f64,
    /// Rows without tensor entries, with a draw of their bias and its mean.
    rows: Vec<(u32, f32, f32)>,
}

impl ColdBiases {
    /// Biases regressed on rows, each with its weight.
    fn regress<'a>(
        rank: usize,
        rows: impl Iterator<Item = (&'a [f32], f32, f64)> + Clone,
    ) -> ColdBiases {
        let (mut total, mut count, mut mean_bias) = (0.0, 0.0, 0.0);
        let mut mean = vec![0.0f64; rank];
        for (row, bias, weight) in rows.clone() {
            total += weight;
            count += 1.0;
            mean_bias += weight * f64::from(bias);
            mean.iter_mut()
                .zip(row)
                .for_each(|(m, &z)| *m += weight * f64::from(z));
        }
        let share = if total > 0.0 { 1.0 / total } else { 0.0 };
        mean_bias *= share;
        mean.iter_mut().for_each(|m| *m *= share);
        let mut square = vec![0.0f64; rank * rank];
        let mut slopes = vec![0.0f64; rank];
        let mut off = vec![0.0f64; rank];
        for (row, bias, weight) in rows.clone() {
            off.iter_mut()
                .zip(row)
                .zip(&mean)
                .for_each(|((o, &z), m)| *o = f64::from(z) - m);
            for i in 0..rank {
                let x = weight * off[i];
                slopes[i] += x * (f64::from(bias) - mean_bias);
                let line = &mut square[i * rank..=i * rank + i];
                line.iter_mut().zip(&off).for_each(|(s, o)| *s += x * o);
            }
        }
        let trace: f64 = (0..rank).map(|i| square[i * rank + i]).sum();
        let ridge = RIDGE / f64::max(count, 1.0) * trace / rank as f64;
        if ridge > 0.0 {
            (0..rank).for_each(|i| square[i * rank + i] += ridge);
            let l = regularized_cholesky(rank, &square);
            solve_lower(rank, &l, &mut slopes);
            solve_lower_transposed(rank, &l, &mut slopes);
        } else {
            slopes.fill(0.0);
        }
        let lower: f64 = slopes.iter().zip(&mean).map(|(a, m)| a * m).sum();
        let mut found = ColdBiases {
            slopes,
            base: mean_bias - lower,
            deviation: 0.0,
            rows: Vec::new(),
        };
        let squares =
            rows.map(|(row, bias, weight)| weight * (f64::from(bias) - found.of(row)).powi(2));
        found.deviation = (squares.sum::<f64>() * share).sqrt();
        found
    }

    /// The bias of a row that its matrices give.
    fn of(&self, row: &[f32]) -> f64 {
        let each = self.slopes.iter().zip(row);
        self.base + each.map(|(a, &z)| a * f64::from(z)).sum::<f64>()
    }

    /// As a sample has them.
    pub(super) fn numbers(&self) -> Vec<f32> {
        let all = self.slopes.iter().chain([&self.base, &self.deviation]);
        all.map(|&x| x as f32).collect()
    }
}

/// The bias that such numbers, with or without a deviation, give to a row.
pub(super) fn bias_of(numbers: &[f32], row: &[f32]) -> f64 {
    let each = numbers.iter().zip(row);
    f64::from(numbers[row.len()])
        + each
            .map(|(&a, &z)| f64::from(a) * f64::from(z))
            .sum::<f64>()
}

/// The rows with entries that a regression is made of, and those without, of rows that matrices say
/// something of.
fn chosen(counts: &[u64], sources: &[Source<'_>]) -> (Vec<u32>, Vec<u32>) {
    let said = |row: &u32| {
        let by =
            |s: &Source<'_>| s.whole.is_some() || !s.lists.row_entries(*row as usize).is_empty();
        sources.iter().any(by)
    };
    let rows = (0..counts.len() as u32).filter(said);
    let (mut known, cold): (Vec<u32>, Vec<u32>) = rows.partition(|&r| counts[r as usize] > 0);
    let step = known.len().div_ceil(MOST).max(1);
    known = known.into_iter().step_by(step).collect();
    (known, cold)
}

/// What the entries of a row in matrices weigh together, given what they weigh in each; as one if it has
/// none.
pub(in crate::solver) fn uses(weights: impl Iterator<Item = f64>) -> f64 {
    match weights.sum() {
        0.0 => 1.0,
        weight => weight,
    }
}

/// Rows as sources of entries alone give them: for each numbers one after the other.
fn rows_of(
    rows: &[u32],
    sources: &[Source<'_>],
    rule: &Rule<'_>,
    pool: &ThreadPool,
) -> Result<Vec<f32>> {
    let lists: Vec<&ModeCsr> = sources.iter().map(|s| s.lists).collect();
    let work = Work::on(&lists, rows.to_vec());
    Ok(update(&work, sources, rule, pool, &mut || false)?.unwrap_or_default())
}

impl Exact {
    /// Draws biases for the rows of mode `n` that have no tensor entries but some in matrices. Samples have
    /// them; the chain does not, since what is guessed from others must not become what others are
    /// guessed from. So sweeps that are not kept do without, which saves a quarter of their time (ml1m_half with
    /// both matrices, rank 32).
    pub(super) fn cold_biases(
        &self,
        model: &Model,
        state: &mut State,
        (n, number): (usize, u64),
        pool: &ThreadPool,
    ) -> Result<()> {
        let (Way::Draw { seed }, Some(prior)) = (self.way, &state.priors[n]) else {
            return Ok(());
        };
        let mut sources: Vec<Source<'_>> = Vec::new();
        for side in self.sides.iter().filter(|s| s.mode == n) {
            let columns = &model.matrices[side.number].factor;
            let whole = self.whole(model, side, false, pool)?;
            let weight = state.weights[side.number];
            sources.push(self.side_source(columns, &side.by_row, weight, whole));
        }
        if sources.is_empty() || !self.biased {
            return Ok(());
        }
        let mode = &model.modes[n];
        let (known, cold) = chosen(&mode.counts, &sources);
        let rule = Rule {
            prior,
            biases: &[],
            ridges: None,
            draw: None,
            names: None,
            means: false,
            rows: &[],
            nonneg: None,
            graphs: Vec::new(),
            level: self.level,
        };
        let (size, rank) = (prior.size, model.shape.ranks[n]);
        let rows = rows_of(&known, &sources, &rule, pool)?;
        let each = known.iter().zip(rows.chunks_exact(size)).map(|(&i, row)| {
            let i = i as usize;
            (&row[..rank], state.biases[n][i], mode.row_weight(i))
        });
        let mut found = ColdBiases::regress(rank, each);
        let rows = rows_of(&cold, &sources, &rule, pool)?;
        for (&i, row) in cold.iter().zip(rows.chunks_exact(size)) {
            let mean = found.of(&row[..rank]);
            let name = [seed, stream::COLD, number, n as u64, u64::from(i)];
            let drawn = mean + found.deviation * RandomStream::new(&name).standard_normal();
            found.rows.push((i, drawn as f32, mean as f32));
        }
        state.cold[n] = Some(found);
        Ok(())
    }
}

impl State {
    /// Takes the biases of rows without tensor entries for those of the chain, or the other way round.
    /// `smooth` is the mode with means.
    pub(super) fn swap_cold(&mut self, smooth: usize) {
        let modes = self.cold.iter_mut().zip(&mut self.biases).enumerate();
        for (n, (cold, biases)) in modes {
            for (i, drawn, mean) in cold.iter_mut().flat_map(|c| &mut c.rows) {
                std::mem::swap(drawn, &mut biases[*i as usize]);
                if n == smooth {
                    std::mem::swap(mean, &mut self.smooth.1[*i as usize]);
                }
            }
        }
    }
}

/// Gives rows without tensor entries what their matrices say, and the biases that go with it, inside; and notes
/// in the model how rows that come later get theirs. `unit` is what a bias inside is multiplied with.
pub(in crate::solver) fn fill_cold(
    model: &mut Model,
    data: &Data,
    biases: &mut [Vec<f32>],
    (unit, l2, level): (f64, bool, Level),
    pool: &ThreadPool,
) -> Result<()> {
    for (n, biases) in biases.iter_mut().enumerate() {
        let (rank, limit) = (model.shape.ranks[n], model.modes[n].rows.len());
        let mut entries = Vec::new();
        for (matrix, columns) in data.matrices.iter().zip(&model.matrices) {
            if matrix.mode != n || columns.columns.is_empty() {
                continue;
            }
            if let Some(full) = &matrix.full {
                let whole = Whole::of_rows(full, &columns.factor, pool)?;
                let weight = f64::from(matrix.weight);
                entries.push((full.by_row.clone(), columns, weight, Some(whole)));
                continue;
            }
            let (mut rows, mut values, mut weights) = (Vec::new(), Vec::new(), Vec::new());
            matrix.entries.for_each(|row, value, weight| {
                rows.extend_from_slice(row);
                values.push(value);
                if matrix.entries.is_weighted() {
                    weights.push(weight);
                }
            });
            let limits = [limit, columns.columns.len()];
            let entries_of_rows = CooSlices {
                row_counts: &limits,
                rows: &rows,
                values: &values,
                weights: &weights,
            };
            let lists = ModeCsr::new(0, entries_of_rows)?;
            entries.push((Arc::new(lists), columns, f64::from(matrix.weight), None));
        }
        if entries.is_empty() {
            continue;
        }
        let all_cells: Vec<Option<f64>> = entries
            .iter()
            .map(|(_, columns, _, whole)| whole.as_ref().map(|_| columns.columns.len() as f64))
            .collect();
        let sources: Vec<Source<'_>> = entries
            .iter_mut()
            .map(|(lists, columns, weight, whole)| {
                let columns = columns.factor.as_slice();
                side_source(lists, columns, (rank, level), *weight, whole.take())
            })
            .collect();
        let mode = &model.modes[n];
        let (known, cold) = chosen(&mode.counts, &sources);
        // As if none had entries in the tensor.
        let ridges: Vec<f32> = (0..limit)
            .map(|row| {
                let each = sources.iter().zip(&all_cells);
                let each = each.map(|(s, all)| all.unwrap_or_else(|| s.lists.row_weight(row)));
                data.penalty.of_row(uses(each)) as f32
            })
            .collect();
        let before = &model.modes[n].prior;
        let pull = Pull {
            metric: &before.metric,
            right: &before.linear,
        };
        let prior = Prior::ridge(rank, 0.0);
        let rule = Rule {
            prior: &prior,
            biases: &[],
            ridges: Some((&ridges, pull)),
            draw: None,
            names: None,
            means: false,
            rows: &[],
            nonneg: None,
            graphs: Vec::new(),
            level,
        };
        let rows = rows_of(&known, &sources, &rule, pool)?;
        let each = known.iter().zip(rows.chunks_exact(rank)).map(|(&i, row)| {
            let i = i as usize;
            (row, biases[i], mode.row_weight(i))
        });
        let mut found = ColdBiases::regress(rank, each);
        let rows = rows_of(&cold, &sources, &rule, pool)?;
        // OtherMode penalties have other solutions, and graphs more to say.
        let graph = |m: &MatrixData| m.mode == n && m.kind == MatrixKind::Graph;
        let all_said = l2 && !data.matrices.iter().any(graph);
        let stride = padded_len(rank);
        let factor = model.modes[n].factor.as_mut_slice()?;
        for (&i, row) in cold.iter().zip(rows.chunks_exact(rank)) {
            let i = i as usize;
            biases[i] = found.of(row) as f32;
            if all_said {
                factor[i * stride..][..rank].copy_from_slice(row);
            }
        }
        found.slopes.iter_mut().for_each(|a| *a *= unit);
        found.base *= unit;
        let mut numbers = found.numbers();
        numbers.truncate(rank + 1);
        model.modes[n].prior.cold_bias = numbers;
    }
    Ok(())
}

/// The entries of a matrix, given the rows of its columns.
pub(super) fn side_source<'a>(
    lists: &'a ModeCsr,
    columns: &'a [f32],
    (rank, level): (usize, Level),
    weight: f64,
    whole: Option<Whole<'a>>,
) -> Source<'a> {
    debug_assert!(columns.len().is_multiple_of(padded_len(rank)));
    let other = OtherMode {
        rows: columns,
        rank,
        biases: &[],
    };
    Source {
        slopes: Partials {
            others: vec![other],
            core: None,
            rank,
            level,
        },
        lists,
        weight,
        biased: false,
        whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn biases_that_follow_from_rows_are_found() {
        let mut s = RandomStream::new(&[1]);
        let rows: Vec<[f32; 3]> = (0..4000)
            .map(|_| [0; 3].map(|_| s.standard_normal() as f32))
            .collect();
        let bias = |r: &[f32; 3]| 0.5 + 2.0 * r[0] - r[2];
        // Every second row has no weight, and no say.
        let each = rows.iter().enumerate().map(|(i, r)| match i % 2 {
            0 => (&r[..], bias(r), 1.0 + (i % 7) as f64),
            _ => (&r[..], 100.0, 0.0),
        });
        let found = ColdBiases::regress(3, each);
        let numbers = found.numbers();
        for row in &rows {
            let close = |x: f64| (x - f64::from(bias(row))).abs() < 0.15;
            assert!(close(found.of(row)) && close(bias_of(&numbers, row)));
        }
        assert!(found.deviation < 0.1);
        let nothing = ColdBiases::regress(3, [].into_iter());
        assert_eq!(nothing.numbers(), [0.0; 5]);
    }
}
