//! Rows of one mode that come after training, given everything else.

use std::borrow::Cow;

use super::cold_start::{bias_of, side_source};
use super::core_update::permuted;
use super::initialization::belief;
use super::normal_wishart::{Prior, expected};
use super::sweep::stream;
use super::work::{Pull, Rule, Source, Whole, Work, update};
use crate::error::{Error, Result};
use crate::kernel::{ModeCsr, OtherMode, Partials};

use crate::model::{FactorMatrix, ModelMode};
use crate::simd::Level;

use crate::kernel::{CoreKind, CoreShape};

use crate::parallel::ThreadPool;
use crate::random::RandomStream;
use crate::simd::padded_len;
use crate::solver::gram::row_moments;

/// Numbers of 0 and above are found in so many passes at most.
const PASSES: usize = 10_000;

/// The entries of new rows.
pub(in crate::solver) struct Fold<'a> {
    pub mode: usize,
    /// The indices of the rows, ascending.
    pub names: &'a [u32],
    /// The entries of the tensor by new row. In other modes rows never seen are the mean row.
    pub tensor: ModeCsr,
    /// The entries of each matrix of the mode by new row.
    pub matrices: Vec<ModeCsr>,
    pub level: Level,
}

/// A matrix, given its columns.
pub(in crate::solver) struct Side<'a> {
    /// Padded.
    pub columns: &'a [f32],
    /// What its squared errors count.
    pub weight: f64,
    /// If all its cells count: what a 0 is in each column.
    pub base: Option<Vec<f32>>,
}

/// Everything but the new rows, in units in which values lie as they are in the lists.
pub(in crate::solver) struct Known<'a> {
    pub shape: &'a CoreShape,
    pub core: &'a [f32],
    /// What a number of the core is divided by to be in these units.
    pub by: f64,
    /// For each mode its rows, padded, and the mean row behind.
    pub rows: Vec<&'a [f32]>,
    /// For each mode the biases of these; or none at all.
    pub biases: Vec<&'a [f32]>,
    pub sides: Vec<Side<'a>>,
    /// What squared errors of the tensor count.
    pub precision: f64,
    /// The biases of rows without tensor entries: see [`bias_of`]. With a deviation behind if rows are drawn.
    pub cold: &'a [f32],
}

/// A row of a new index, and its bias.
pub(in crate::solver) struct Found {
    /// As many numbers as the rank for each row, and one more with biases.
    pub rows: Vec<f32>,
    /// The means of the distributions that they were drawn from; empty if they were not drawn.
    pub means: Vec<f32>,
}

impl Fold<'_> {
    /// The most likely rows, with the penalty that `ridges` gives each of them and `bias` their biases.
    pub(in crate::solver) fn best(
        &self,
        known: &Known<'_>,
        mode: &ModelMode,
        (ridges, bias, nonneg): (&[f32], f64, bool),
        pool: &ThreadPool,
        cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<Found> {
        let size = self.size(known);
        let mut prior = Prior::ridge(size, 0.0);
        if size > known.shape.ranks[self.mode] {
            prior.precision[(size - 1) * padded_len(size) + size - 1] = bias as f32;
        }
        let pull = Pull {
            metric: &mode.prior.metric,
            right: &mode.prior.linear,
        };
        // From the mean row, until nothing changes; there are no biases then.
        let mean = known.rows[self.mode].chunks_exact(padded_len(size)).last();
        let starts = match nonneg {
            true => mean.unwrap_or_default().repeat(self.names.len()),
            false => Vec::new(),
        };
        let rule = Rule {
            ridges: Some((ridges, pull)),
            rows: &starts,
            nonneg: nonneg.then_some(PASSES),
            ..self.rule(&prior, None)
        };
        let mut rows = self.solve(known, &rule, pool, cancelled)?;
        self.cold(known, &mut rows, None);
        Ok(Found {
            rows,
            means: Vec::new(),
        })
    }

    /// Rows drawn from their distributions, given that the rows of the mode are `rows` with `biases`.
    pub(in crate::solver) fn drawn(
        &self,
        known: &Known<'_>,
        (rows, biases, by_size): (&FactorMatrix, &[f32], &[usize]),
        [seed, sample]: [u64; 2],
        pool: &ThreadPool,
        cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<Found> {
        let moments = row_moments(rows, rows.len() - 1, biases, pool)?;
        let biased = !biases.is_empty();
        let prior = expected(&moments, &belief(by_size, self.mode), biased);
        let name = [seed, stream::FOLD, sample, self.mode as u64];
        let both = self.solve(known, &self.rule(&prior, Some(name)), pool, cancelled)?;
        let (mut rows, mut means) = (Vec::new(), Vec::new());
        for row in both.chunks_exact(2 * prior.size) {
            rows.extend_from_slice(&row[..prior.size]);
            means.extend_from_slice(&row[prior.size..]);
        }
        let features = means.clone();
        self.cold(known, &mut means, None);
        self.cold(known, &mut rows, Some((&features, name)));
        Ok(Found { rows, means })
    }

    fn size(&self, known: &Known<'_>) -> usize {
        known.shape.ranks[self.mode] + usize::from(!known.biases[self.mode].is_empty())
    }

    fn rule<'r>(&'r self, prior: &'r Prior, draw: Option<[u64; 4]>) -> Rule<'r> {
        Rule {
            prior,
            biases: &[],
            ridges: None,
            draw,
            names: Some(self.names),
            means: true,
            rows: &[],
            nonneg: None,
            graphs: Vec::new(),
            level: self.level,
        }
    }

    /// Biases of rows without tensor entries, for the rows that their matrices give; drawn if there is a
    /// name for that.
    fn cold(&self, known: &Known<'_>, rows: &mut [f32], draw: Option<(&[f32], [u64; 4])>) {
        let (size, rank) = (self.size(known), known.shape.ranks[self.mode]);
        if size == rank || known.cold.is_empty() {
            return;
        }
        for (i, row) in rows.chunks_exact_mut(size).enumerate() {
            if !self.tensor.row_entries(i).is_empty()
                || self.matrices.iter().all(|m| m.row_entries(i).is_empty())
            {
                continue;
            }
            row[rank] = match draw {
                None => bias_of(known.cold, &row[..rank]) as f32,
                Some((means, [seed, _, sample, mode])) => {
                    let mean = bias_of(known.cold, &means[i * size..][..rank]);
                    let name = [seed, stream::COLD, sample, mode, u64::from(self.names[i])];
                    let deviation = f64::from(known.cold[rank + 1]);
                    (mean + deviation * RandomStream::new(&name).standard_normal()) as f32
                }
            };
        }
    }

    fn solve(
        &self,
        known: &Known<'_>,
        rule: &Rule<'_>,
        pool: &ThreadPool,
        cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<f32>> {
        let (shape, n) = (known.shape, self.mode);
        let others = self.tensor.other_modes();
        let mut rows: Vec<Cow<'_, [f32]>> = others
            .iter()
            .map(|&m| Cow::Borrowed(known.rows[m]))
            .collect();
        let core = match shape.kind {
            CoreKind::Full => {
                let order: Vec<usize> = others.iter().copied().chain([n]).collect();
                Some(permuted(shape, known.core, &order, known.by))
            }
            CoreKind::Diagonal => {
                // Partials are products of rows: the core goes into those of one mode, the smallest.
                let by = (1.0 / known.by) as f32;
                let stride = padded_len(shape.ranks[n]);
                for row in rows[0].to_mut().chunks_exact_mut(stride) {
                    row.iter_mut()
                        .zip(known.core)
                        .for_each(|(u, g)| *u *= g * by);
                }
                None
            }
        };
        let slopes = Partials {
            others: others
                .iter()
                .zip(&rows)
                .map(|(&m, rows)| OtherMode {
                    rows,
                    rank: shape.ranks[m],
                    biases: known.biases[m],
                })
                .collect(),
            core: core.as_deref(),
            rank: shape.ranks[n],
            level: self.level,
        };
        let mut sources = vec![Source {
            lists: &self.tensor,
            slopes,
            weight: known.precision,
            biased: !known.biases[n].is_empty(),
            whole: None,
        }];
        for (lists, side) in self.matrices.iter().zip(&known.sides) {
            let how = (shape.ranks[n], self.level);
            let all = |base: &Vec<f32>| Whole::of_columns(side.columns, how.0, base);
            let whole = side.base.as_ref().map(all);
            sources.push(side_source(lists, side.columns, how, side.weight, whole));
        }
        let lists: Vec<&ModeCsr> = sources.iter().map(|s| s.lists).collect();
        let found = update(&Work::new(&lists), &sources, rule, pool, cancelled)?;
        let found = found.ok_or(Error::Cancelled)?;
        match found.iter().all(|x| x.is_finite()) {
            true => Ok(found),
            false => Err(Error::argument(
                "the rows that follow from these entries are not finite; scale down the values",
            )),
        }
    }
}
