//! The planted model: factors, a core and an offset.

use super::options::GenerateOptions;
use super::planted_factor::{PlantedFactor, RowGroups, stream};
use crate::kernel::reference::contract_first;
use crate::options::ModelKind;
use crate::random::{Permutation, RandomStream};

/// Number of positions that the scale of the values is estimated from.
const PILOT_POSITIONS: u32 = 20_000;

/// The model of the values: offset + core contracted with one row per mode, plus noise.
pub(super) struct PlantedModel {
    pub factors: Vec<PlantedFactor>,
    pub ranks: Vec<usize>,
    /// Row-major over the modes in their natural order; for CP only its diagonal.
    pub core: Vec<f32>,
    pub model: ModelKind,
    pub offset: f64,
    pub noise_sd: f64,
    /// The mode whose rows entries are grouped by: the longest.
    pub leading: usize,
    /// All modes, the leading one first.
    pub mode_order: Vec<usize>,
    /// The core in that order of the modes.
    permuted_core: Vec<f32>,
}

impl PlantedModel {
    pub(super) fn new(options: &GenerateOptions) -> PlantedModel {
        let order = options.order();
        let ranks: Vec<usize> = (0..order).map(|n| options.rank(n)).collect();
        let factors = (0..order)
            .map(|n| {
                let matrices = options.matrices.iter().enumerate();
                let of_mode = matrices.filter(|(_, spec)| spec.mode == n);
                let groups =
                    of_mode.filter_map(|(m, _)| RowGroups::of_matrix(options, m, ranks[n]));
                let groups = groups.collect();
                PlantedFactor::with_groups(options, n as u64, options.dims[n], ranks[n], groups)
            })
            .collect();
        let mut s = RandomStream::new(&[options.seed, stream::CORE]);
        let core = match options.model {
            ModelKind::Auto | ModelKind::Tucker => (0..ranks.iter().product())
                .map(|_| {
                    let z = s.standard_normal();
                    (if options.nonneg { z.abs() } else { z }) as f32
                })
                .collect(),
            ModelKind::Cp => vec![1.0f32; ranks[0]],
        };
        // Of several longest modes, the first.
        let leading = (0..order)
            .rev()
            .max_by_key(|&n| options.dims[n])
            .expect("there are at least two modes");
        let mut mode_order = vec![leading];
        mode_order.extend((0..order).filter(|&n| n != leading));
        let mut planted = PlantedModel {
            factors,
            core,
            offset: 0.0,
            noise_sd: options.noise * options.deviation,
            leading,
            mode_order,
            permuted_core: Vec::new(),
            model: options.model,
            ranks,
        };
        planted.permuted_core = match options.model {
            ModelKind::Auto | ModelKind::Tucker => planted.permute_core(),
            ModelKind::Cp => planted.core.clone(),
        };
        let (mean, deviation) = planted.estimate_moments(options);
        // A constant model (rank 1 on modes of size 1) has no deviation to scale.
        let scale = if deviation > 0.0 {
            options.deviation / deviation
        } else {
            1.0
        };
        planted.core.iter_mut().for_each(|g| *g *= scale as f32);
        planted
            .permuted_core
            .iter_mut()
            .for_each(|g| *g *= scale as f32);
        planted.offset = options.mean.map_or(0.0, |m| m - mean * scale);
        planted
    }

    /// Estimates the mean and the standard deviation of the values, at positions sampled like those of entries.
    fn estimate_moments(&self, options: &GenerateOptions) -> (f64, f64) {
        let mut s = RandomStream::new(&[options.seed, stream::PILOT]);
        let mut eval = self.evaluator();
        let (mut sum, mut squares) = (0.0, 0.0);
        let indices: Vec<Permutation> = (0..options.order())
            .map(|n| index_of_rank(options, n))
            .collect();
        let sample = |n: usize, s: &mut RandomStream| {
            let popularity = options.popularity(n);
            let rank = popularity.rank_at_quantile(s.uniform(), options.dims[n]);
            indices[n].apply(rank) as u32
        };
        for _ in 0..PILOT_POSITIONS {
            let leading = sample(self.leading, &mut s);
            eval.start_row(leading);
            let others: Vec<u32> = self.mode_order[1..]
                .iter()
                .map(|&n| sample(n, &mut s))
                .collect();
            let x = eval.value(&others);
            sum += x;
            squares += x * x;
        }
        let count = f64::from(PILOT_POSITIONS);
        let mean = sum / count;
        (mean, (squares / count - mean * mean).max(0.0).sqrt())
    }

    /// Returns the core with the leading mode first.
    fn permute_core(&self) -> Vec<f32> {
        let order = self.ranks.len();
        let mut strides = vec![1; order];
        for n in (0..order - 1).rev() {
            strides[n] = strides[n + 1] * self.ranks[n + 1];
        }
        let mut out = Vec::with_capacity(self.core.len());
        let mut index = vec![0; order];
        for _ in 0..self.core.len() {
            let from: usize = self
                .mode_order
                .iter()
                .zip(&index)
                .map(|(&n, &j)| strides[n] * j)
                .sum();
            out.push(self.core[from]);
            for k in (0..order).rev() {
                index[k] += 1;
                if index[k] < self.ranks[self.mode_order[k]] {
                    break;
                }
                index[k] = 0;
            }
        }
        out
    }

    /// Returns an evaluator with its own buffers, for one thread.
    pub(super) fn evaluator(&self) -> Evaluator<'_> {
        let mut sizes = vec![self.core.len()];
        for &n in &self.mode_order {
            let last = sizes[sizes.len() - 1];
            sizes.push(match self.model {
                ModelKind::Auto | ModelKind::Tucker => last / self.ranks[n],
                ModelKind::Cp => last,
            });
        }
        Evaluator {
            planted: self,
            row: vec![
                0.0;
                *self
                    .ranks
                    .iter()
                    .max()
                    .expect("there are at least two modes")
            ],
            partial: sizes[1..].iter().map(|&s| vec![0.0; s]).collect(),
        }
    }
}

/// Evaluates the planted model, contracting the core with the leading row once for all its entries.
pub(super) struct Evaluator<'a> {
    planted: &'a PlantedModel,
    row: Vec<f32>,
    /// The core after each contraction.
    partial: Vec<Vec<f32>>,
}

impl Evaluator<'_> {
    /// Selects a row of the leading mode.
    pub(super) fn start_row(&mut self, leading: u32) {
        let p = self.planted;
        let row = &mut self.row[..p.ranks[p.leading]];
        p.factors[p.leading].row(leading, row);
        contract(p.model, &p.permuted_core, row, &mut self.partial[0]);
    }

    /// Returns the value at the selected row and the indices of the other modes, in their order.
    pub(super) fn value(&mut self, others: &[u32]) -> f64 {
        let p = self.planted;
        for (k, (&n, &i)) in p.mode_order[1..].iter().zip(others).enumerate() {
            let row = &mut self.row[..p.ranks[n]];
            p.factors[n].row(i, row);
            let (before, after) = self.partial.split_at_mut(k + 1);
            contract(p.model, &before[k], row, &mut after[0]);
        }
        // One value for Tucker; for CP one product per component.
        p.offset
            + self.partial[others.len()]
                .iter()
                .map(|&x| f64::from(x))
                .sum::<f64>()
    }
}

/// Contracts the first mode of a full core with a row; multiplies the diagonal of a CP core by the row.
fn contract(model: ModelKind, core: &[f32], row: &[f32], out: &mut [f32]) {
    match model {
        ModelKind::Auto | ModelKind::Tucker => contract_first(core, row, out),
        ModelKind::Cp => out
            .iter_mut()
            .zip(core)
            .zip(row)
            .for_each(|((o, g), u)| *o = g * u),
    }
}

/// Returns the permutation from the popularity ranks of a mode to its indices.
pub(super) fn index_of_rank(options: &GenerateOptions, mode: usize) -> Permutation {
    Permutation::new(
        options.dims[mode],
        &[options.seed, stream::ROW_ORDER, mode as u64],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::reference;

    #[test]
    fn evaluation_by_rows_matches_the_full_contraction() {
        for dims in [vec![5u64, 9, 4], vec![11, 3, 2, 6], vec![4, 7]] {
            let mut options = GenerateOptions::new(&dims, 1);
            options.ranks = (0..dims.len()).map(|n| n + 2).collect();
            let p = PlantedModel::new(&options);
            let mut eval = p.evaluator();
            for i in 0..50u64 {
                let index: Vec<u32> = dims.iter().map(|&d| (i * 7 % d) as u32).collect();
                eval.start_row(index[p.leading]);
                let others: Vec<u32> = p.mode_order[1..].iter().map(|&n| index[n]).collect();
                let rows: Vec<Vec<f32>> = (0..dims.len())
                    .map(|n| {
                        let mut row = vec![0.0; p.ranks[n]];
                        p.factors[n].row(index[n], &mut row);
                        row
                    })
                    .collect();
                let rows: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
                let expected = reference::value(&p.core, &rows);
                assert!(
                    (eval.value(&others) - f64::from(expected)).abs()
                        < 1e-4 * (1.0 + expected.abs() as f64)
                );
            }
        }
    }
}
