//! Rows found for a model, or for each of its samples.

use std::sync::Arc;

use super::extended_mode::Grown;
use super::{FoldIn, Units};
use crate::error::{Error, Result};
use crate::model::{FactorMatrix, Model, ModelMatrix, QuantizedRows};
use crate::parallel::ThreadPool;
use crate::problem::MatrixKind;
use crate::progress::{Monitor, report_progress};
use crate::solver::row_penalty::RowPenalty;
use crate::solver::rowwise::{Fold, Found, Known, Side, unround, uses};
use crate::sort::stable_sort_by_key;

/// What is folded into what.
pub(super) struct FoldWork<'a> {
    pub model: &'a Model,
    pub input: &'a FoldIn<'a>,
    pub fold: &'a Fold<'a>,
    pub units: &'a Units,
    pub pool: &'a ThreadPool,
    pub monitor: &'a dyn Monitor,
}

impl FoldWork<'_> {
    /// The model with all rows.
    pub(super) fn folded(&self) -> Result<Model> {
        let (model, n) = (self.model, self.input.mode);
        let grown = Grown::new(&model.modes[n].rows, self.fold.names)?;
        let mut folded = model.try_clone()?;
        let found = match model.samples() {
            None => self.best()?,
            Some(_) => self.draw_samples(&mut folded, &grown)?,
        };
        let mode = &mut folded.modes[n];
        let old = &model.modes[n];
        let (rank, size) = (old.factor.rank(), found.rows.len() / self.fold.names.len());
        let biased = !old.biases.is_empty();
        mode.factor = grown.rows(
            &old.factor,
            found.rows.chunks_exact(size).map(|r| &r[..rank]),
        )?;
        if biased {
            let new = found.rows.chunks_exact(size);
            mode.biases = grown.list(
                &old.biases,
                new.map(|r| (f64::from(r[rank]) * self.units.by) as f32),
            );
        }
        let counts =
            (0..self.fold.names.len()).map(|i| self.fold.tensor.row_entries(i).len() as u64);
        mode.counts = grown.list(&old.counts, counts);
        let weights: Vec<f64> = (0..self.fold.names.len())
            .map(|i| self.fold.tensor.row_weight(i))
            .collect();
        let counted = |i: usize| weights[i] == self.fold.tensor.row_entries(i).len() as f64;
        if !old.weights.is_empty() || !(0..weights.len()).all(counted) {
            let before: Vec<f64> = (0..old.counts.len()).map(|i| old.row_weight(i)).collect();
            mode.weights = grown.list(&before, weights.into_iter());
        }
        mode.rows = grown.map.clone();
        Ok(folded)
    }

    /// What is known besides rows and what goes with them.
    fn sides<'s>(&self, columns: &'s [Vec<f32>], weights: impl Fn(usize) -> f64) -> Vec<Side<'s>> {
        let given = self.input.matrices.iter().zip(columns);
        given
            .map(|(given, columns)| Side {
                columns,
                weight: weights(given.number),
                base: self.base(given.number),
            })
            .collect()
    }

    /// What the entries of a new row weigh in each matrix.
    fn weights_in_matrices(&self, row: usize) -> impl Iterator<Item = f64> {
        let each = self.input.matrices.iter().zip(&self.fold.matrices);
        each.map(move |(given, lists)| {
            let matrix = &self.model.matrices[given.number];
            match matrix.kind {
                MatrixKind::Full => matrix.columns.len() as f64,
                _ => lists.row_weight(row),
            }
        })
    }

    /// What a 0 is in each column of a matrix all of whose cells count, inside.
    fn base(&self, number: usize) -> Option<Vec<f32>> {
        let matrix = &self.model.matrices[number];
        let by = self.units.matrices[number];
        let offset = |k: usize| f64::from(matrix.offsets.get(k).copied().unwrap_or(0.0));
        let base = |k: usize| (-offset(k) / by) as f32;
        let columns = 0..matrix.columns.len();
        (matrix.kind == MatrixKind::Full).then(|| columns.map(base).collect())
    }

    /// The columns of the matrices that are given, inside.
    fn columns(&self, of: impl Fn(usize) -> Vec<f32>) -> Vec<Vec<f32>> {
        let given = self.input.matrices.iter();
        given
            .map(|given| {
                let by = (1.0 / self.units.matrices[given.number]) as f32;
                let mut columns = of(given.number);
                columns.iter_mut().for_each(|v| *v *= by);
                columns
            })
            .collect()
    }

    /// The weight that a matrix is given here, as a share of that of the fit.
    fn weight(&self, number: usize) -> f64 {
        let given = self.input.matrices.iter().find(|m| m.number == number);
        let own = self.model.matrices[number].weight;
        given.and_then(|m| m.weight).unwrap_or(own)
    }

    /// The rows of a model without samples.
    fn best(&self) -> Result<Found> {
        let (model, n) = (self.model, self.input.mode);
        let by = self.units.by;
        let inside = |biases: &[f32]| biases.iter().map(|b| (f64::from(*b) / by) as f32).collect();
        let biases: Vec<Vec<f32>> = model.modes.iter().map(|m| inside(&m.biases)).collect();
        let columns = self.columns(|m| model.matrices[m].factor.as_slice().to_vec());
        let cold: Vec<f32> = inside(&model.modes[n].prior.cold_bias);
        let known = Known {
            shape: &model.shape,
            core: &model.core,
            by,
            rows: model.modes.iter().map(|m| m.factor.as_slice()).collect(),
            biases: biases.iter().map(Vec::as_slice).collect(),
            sides: self.sides(&columns, |m| self.weight(m)),
            precision: 1.0,
            cold: &cold,
        };
        let penalty = RowPenalty {
            lambda: model.options.lambda_reg.unwrap_or(0.0),
            per: model.options.penalty_per,
        };
        // A row that only matrices know spreads its penalty over their entries.
        let ridges: Vec<f32> = (0..self.fold.names.len())
            .map(|i| {
                let uses = match self.fold.tensor.row_weight(i) {
                    0.0 => uses(self.weights_in_matrices(i)),
                    weight => weight,
                };
                penalty.of_row(uses) as f32
            })
            .collect();
        let how = (
            &ridges[..],
            model.options.bias_penalty(n),
            model.options.nonneg,
        );
        let cancelled = &mut || self.monitor.cancelled();
        self.fold
            .best(&known, &model.modes[n], how, self.pool, cancelled)
    }

    /// Draws rows for every sample, and returns those for the draw that the rows of the model are.
    fn draw_samples(&self, folded: &mut Model, grown: &Grown) -> Result<Found> {
        let (model, n) = (self.model, self.input.mode);
        let Some(samples) = &mut folded.samples else {
            return Err(Error::argument("the model has no samples"));
        };
        let mut by_size: Vec<usize> = (0..model.order()).collect();
        stable_sort_by_key(&mut by_size, &|&m| model.modes[m].rows.len());
        let count = samples.samples.len();
        let mut rows: Vec<FactorMatrix> = model
            .modes
            .iter()
            .map(|m| m.factor.try_clone())
            .collect::<Result<_>>()?;
        let mut biases = samples.biases.clone();
        // The last, which has no number of its own, is the draw that the rows of the model are.
        let mut last = None;
        for k in 0..=count {
            report_progress(self.monitor, "folding in", k as u64, count as u64 + 1)?;
            let sample = samples.samples[k.min(count - 1)].clone();
            let present = k == count;
            for m in 0..model.order() {
                match present {
                    true => {
                        rows[m].copy_from(&model.modes[m].factor)?;
                        biases[m].clone_from(&samples.biases[m]);
                    }
                    false => unround(&sample.modes[m], &mut rows[m], &mut biases[m])?,
                }
            }
            let columns = self.columns(|m| match present {
                true => model.matrices[m].factor.as_slice().to_vec(),
                false => padded_columns(&sample.columns[m], &model.matrices[m]),
            });
            let share = |m: usize| self.weight(m) / model.matrices[m].weight;
            let weights = |m: usize| match model.matrices[m].weight > 0.0 {
                true => sample.weights[m] * share(m),
                // What had no weight has no precision either.
                false => 0.0,
            };
            let noise = sample.noise_deviation / samples.scale;
            let known = Known {
                shape: &model.shape,
                core: match present || sample.core.is_empty() {
                    true => &model.core,
                    false => &sample.core,
                },
                by: samples.scale,
                rows: rows.iter().map(FactorMatrix::as_slice).collect(),
                biases: biases.iter().map(Vec::as_slice).collect(),
                sides: self.sides(&columns, weights),
                // Entries that are explained without error still leave a row its distribution.
                precision: 1.0 / (noise * noise).max(1e-12),
                cold: sample.cold_bias.get(n).map_or(&[], Vec::as_slice),
            };
            let own = (&rows[n], &biases[n][..], &by_size[..]);
            let name = [model.options.seed, k.min(count - 1) as u64];
            let cancelled = &mut || self.monitor.cancelled();
            let found = self.fold.drawn(&known, own, name, self.pool, cancelled)?;
            if present {
                last = Some(found);
                break;
            }
            let size = found.rows.len() / self.fold.names.len();
            let mut new = (*sample).clone();
            new.modes[n] = grown.sample(&sample.modes[n], size, &found.rows);
            if samples.conditional_mode == n {
                new.conditional_means = grown.sample(&sample.conditional_means, size, &found.means);
            }
            samples.samples[k] = Arc::new(new);
        }
        let found = last.ok_or_else(|| Error::argument("the model has no samples"))?;
        let rank = model.shape.ranks[n];
        let size = found.rows.len() / self.fold.names.len();
        if samples.has_biases {
            let new = found.rows.chunks_exact(size).map(|r| r[rank]);
            samples.biases[n] = grown.list(&samples.biases[n], new);
        }
        Ok(found)
    }
}

/// The columns of a matrix in a sample, padded.
fn padded_columns(columns: &QuantizedRows, matrix: &ModelMatrix) -> Vec<f32> {
    let (rank, stride) = (matrix.factor.rank(), matrix.factor.stride());
    let mut all = vec![0.0; matrix.factor.len() * stride];
    for (i, row) in all.chunks_exact_mut(stride).enumerate() {
        columns.read_row(i, &mut row[..rank]);
    }
    all
}
