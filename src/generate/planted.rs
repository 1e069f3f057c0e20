//! The planted model: factor rows computed from their numbers, and a core.

use super::{GenerateOptions, Skew};
use crate::kernel::reference::contract_first;
use crate::options::ModelKind;
use crate::random::{Permutation, RandomStream, hash_words, unit_interval};

/// Names of the random streams, so that none is used twice.
pub(super) mod stream {
    pub const FACTOR: u64 = 1;
    pub const CORE: u64 = 2;
    pub const ROW: u64 = 3;
    pub const ROW_ORDER: u64 = 5;
    pub const TEST: u64 = 6;
    pub const PILOT: u64 = 7;
    pub const GROUP: u64 = 8;
    /// Matrices use these plus their number, times a stride.
    pub const MATRIX: u64 = 1 << 32;
}

/// Factors up to this many bytes are kept in memory; larger ones are computed row by row as needed.
const TABLE: u64 = 256 << 20;

/// How uneven groups are: the largest of ten has about three times the rows of the smallest.
const GROUPS: Skew = Skew {
    exponent: 1.0,
    shift: 3.0,
};

/// Groups that the rows of a factor belong to.
pub(super) struct Groups {
    seed: u64,
    name: u64,
    count: u64,
    /// What the centres of groups are multiplied with: the rows of the matrix's columns, without their mean.
    weight: f64,
    centres: Vec<f64>,
}

impl Groups {
    /// Those of matrix number `m`, if it is a table of groups.
    pub(super) fn of(options: &GenerateOptions, m: usize, rank: usize) -> Option<Groups> {
        let spec = &options.matrices[m];
        let name = stream::MATRIX * (m as u64 + 1);
        let columns = || {
            let factor = Factor::new(options, name, spec.columns, rank);
            let mut row = vec![0.0; rank];
            let mut all = Vec::new();
            for g in 0..spec.columns {
                factor.row(g as u32, &mut row);
                all.extend(row.iter().map(|&x| f64::from(x) - options.factor_mean));
            }
            all
        };
        spec.groups.map(|share| Groups {
            seed: options.seed,
            name,
            count: spec.columns,
            weight: share.sqrt(),
            centres: columns(),
        })
    }

    /// The group of a row.
    pub(super) fn group(&self, row: u64) -> u64 {
        let place = unit_interval(hash_words(&[self.seed, stream::GROUP, self.name, row, 1]));
        GROUPS.rank(place, self.count)
    }
}

/// A factor matrix whose rows are functions of their numbers.
pub(super) struct Factor {
    pub rows: u64,
    pub rank: usize,
    seed: u64,
    name: u64,
    mean: f64,
    scale: f32,
    nonneg: bool,
    groups: Vec<Groups>,
    table: Option<Vec<f32>>,
}

impl Factor {
    pub(super) fn new(options: &GenerateOptions, name: u64, rows: u64, rank: usize) -> Factor {
        Factor::grouped(options, name, rows, rank, Vec::new())
    }

    /// The same, with rows that belong to groups.
    fn grouped(
        options: &GenerateOptions,
        name: u64,
        rows: u64,
        rank: usize,
        groups: Vec<Groups>,
    ) -> Factor {
        let mut factor = Factor {
            rows,
            rank,
            seed: options.seed,
            name,
            mean: options.factor_mean,
            scale: 1.0,
            nonneg: options.nonneg,
            groups,
            table: None,
        };
        if rows * rank as u64 * 4 <= TABLE {
            let mut table = vec![0.0; rows as usize * rank];
            // Not worth a thread below a few thousand rows.
            let per_thread = (rows as usize).div_ceil(options.threads).max(4096);
            std::thread::scope(|scope| {
                for (part, piece) in table.chunks_mut(per_thread * rank).enumerate() {
                    let factor = &factor;
                    scope.spawn(move || {
                        for (k, row) in piece.chunks_exact_mut(rank).enumerate() {
                            factor.compute((part * per_thread + k) as u64, row);
                        }
                    });
                }
            });
            factor.table = Some(table);
        }
        factor
    }

    fn compute(&self, i: u64, out: &mut [f32]) {
        let mut s = RandomStream::new(&[self.seed, stream::FACTOR, self.name, i]);
        let common: f64 = self.groups.iter().map(|g| g.weight * g.weight).sum();
        let own = (1.0 - common).max(0.0).sqrt();
        let centres = |j: usize| -> f64 {
            let part = |g: &Groups| {
                let at = g.group(i) as usize * self.rank;
                g.weight * g.centres[at + j]
            };
            self.groups.iter().map(part).sum()
        };
        for (j, x) in out.iter_mut().enumerate() {
            let z = self.mean + own * s.standard_normal() + centres(j);
            *x = self.scale * (if self.nonneg { z.abs() } else { z }) as f32;
        }
    }

    /// Row `i`.
    #[inline]
    pub(super) fn row(&self, i: u32, out: &mut [f32]) {
        match &self.table {
            Some(table) => {
                let at = i as usize * self.rank;
                out.copy_from_slice(&table[at..at + self.rank]);
            }
            None => self.compute(u64::from(i), out),
        }
    }

    pub(super) fn rescale(&mut self, by: f32) {
        self.scale *= by;
        self.table.iter_mut().flatten().for_each(|x| *x *= by);
    }
}

/// The model the values come from: offset + core contracted with one row per mode, plus noise.
pub(super) struct Planted {
    pub factors: Vec<Factor>,
    pub ranks: Vec<usize>,
    /// Row-major over the modes in their natural order; for CP its diagonal alone.
    pub core: Vec<f32>,
    pub model: ModelKind,
    pub offset: f64,
    pub noise_sd: f64,
    /// The mode whose rows entries are drawn by: the longest.
    pub lead: usize,
    /// All modes, the leading one first; and the core in that order.
    pub mode_order: Vec<usize>,
    lead_core: Vec<f32>,
}

impl Planted {
    pub(super) fn new(options: &GenerateOptions) -> Planted {
        let order = options.order();
        let ranks: Vec<usize> = (0..order).map(|n| options.rank(n)).collect();
        let factors = (0..order)
            .map(|n| {
                let matrices = options.matrices.iter().enumerate();
                let of_mode = matrices.filter(|(_, spec)| spec.mode == n);
                let groups = of_mode.filter_map(|(m, _)| Groups::of(options, m, ranks[n]));
                let groups = groups.collect();
                Factor::grouped(options, n as u64, options.dims[n], ranks[n], groups)
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
        // The first of the longest modes.
        let lead = (0..order)
            .rev()
            .max_by_key(|&n| options.dims[n])
            .expect("two modes at least");
        let mut mode_order = vec![lead];
        mode_order.extend((0..order).filter(|&n| n != lead));
        let mut planted = Planted {
            factors,
            core,
            offset: 0.0,
            noise_sd: options.noise * options.deviation,
            lead,
            mode_order,
            lead_core: Vec::new(),
            model: options.model,
            ranks,
        };
        planted.lead_core = match options.model {
            ModelKind::Auto | ModelKind::Tucker => planted.permuted_core(),
            ModelKind::Cp => planted.core.clone(),
        };
        let (mean, deviation) = planted.pilot(options);
        // A model that is constant (rank 1 on modes of size 1) has no deviation to scale.
        let scale = if deviation > 0.0 {
            options.deviation / deviation
        } else {
            1.0
        };
        planted.core.iter_mut().for_each(|g| *g *= scale as f32);
        planted
            .lead_core
            .iter_mut()
            .for_each(|g| *g *= scale as f32);
        planted.offset = options.mean.map_or(0.0, |m| m - mean * scale);
        planted
    }

    /// Mean and standard deviation over random cells, drawn as entries are.
    fn pilot(&self, options: &GenerateOptions) -> (f64, f64) {
        let mut s = RandomStream::new(&[options.seed, stream::PILOT]);
        let mut eval = self.evaluator();
        let draws = 20_000;
        let (mut sum, mut squares) = (0.0, 0.0);
        let orders: Vec<Permutation> = (0..options.order())
            .map(|n| row_order(options, n))
            .collect();
        let draw = |n: usize, s: &mut RandomStream| {
            orders[n].apply(options.skew(n).rank(s.uniform(), options.dims[n])) as u32
        };
        for _ in 0..draws {
            let lead = draw(self.lead, &mut s);
            eval.start_row(lead);
            let cell: Vec<u32> = self.mode_order[1..]
                .iter()
                .map(|&n| draw(n, &mut s))
                .collect();
            let x = eval.value(&cell);
            sum += x;
            squares += x * x;
        }
        let mean = sum / f64::from(draws);
        (
            mean,
            (squares / f64::from(draws) - mean * mean).max(0.0).sqrt(),
        )
    }

    /// The core with the leading mode first.
    fn permuted_core(&self) -> Vec<f32> {
        let order = self.ranks.len();
        let mut strides = vec![1; order];
        for n in (0..order - 1).rev() {
            strides[n] = strides[n + 1] * self.ranks[n + 1];
        }
        let mut out = Vec::with_capacity(self.core.len());
        let mut at = vec![0; order];
        for _ in 0..self.core.len() {
            let from: usize = self
                .mode_order
                .iter()
                .zip(&at)
                .map(|(&n, &j)| strides[n] * j)
                .sum();
            out.push(self.core[from]);
            for k in (0..order).rev() {
                at[k] += 1;
                if at[k] < self.ranks[self.mode_order[k]] {
                    break;
                }
                at[k] = 0;
            }
        }
        out
    }

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
            row: vec![0.0; *self.ranks.iter().max().expect("two modes at least")],
            partial: sizes[1..].iter().map(|&s| vec![0.0; s]).collect(),
        }
    }
}

/// Evaluates the planted model, contracting the core with the leading row once for all its entries.
pub(super) struct Evaluator<'a> {
    planted: &'a Planted,
    row: Vec<f32>,
    /// The core after each contraction.
    partial: Vec<Vec<f32>>,
}

impl Evaluator<'_> {
    pub(super) fn start_row(&mut self, lead: u32) {
        let p = self.planted;
        let row = &mut self.row[..p.ranks[p.lead]];
        p.factors[p.lead].row(lead, row);
        contract(p.model, &p.lead_core, row, &mut self.partial[0]);
    }

    /// The value at the started row and `cell`, the indices of the other modes in their order.
    pub(super) fn value(&mut self, cell: &[u32]) -> f64 {
        let p = self.planted;
        for (k, (&n, &i)) in p.mode_order[1..].iter().zip(cell).enumerate() {
            let row = &mut self.row[..p.ranks[n]];
            p.factors[n].row(i, row);
            let (before, after) = self.partial.split_at_mut(k + 1);
            contract(p.model, &before[k], row, &mut after[0]);
        }
        // One number for Tucker; for CP the products of all components.
        p.offset
            + self.partial[cell.len()]
                .iter()
                .map(|&x| f64::from(x))
                .sum::<f64>()
    }
}

/// Contracts the first mode of a full core; of a diagonal one, multiplies by the row.
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

/// Which index the row of a rank has.
pub(super) fn row_order(options: &GenerateOptions, mode: usize) -> Permutation {
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
    fn evaluation_by_rows_is_the_plain_model() {
        for dims in [vec![5u64, 9, 4], vec![11, 3, 2, 6], vec![4, 7]] {
            let mut options = GenerateOptions::new(&dims, 1);
            options.ranks = (0..dims.len()).map(|n| n + 2).collect();
            let p = Planted::new(&options);
            let mut eval = p.evaluator();
            for i in 0..50u64 {
                let index: Vec<u32> = dims.iter().map(|&d| (i * 7 % d) as u32).collect();
                eval.start_row(index[p.lead]);
                let cell: Vec<u32> = p.mode_order[1..].iter().map(|&n| index[n]).collect();
                let rows: Vec<Vec<f32>> = (0..dims.len())
                    .map(|n| {
                        let mut row = vec![0.0; p.ranks[n]];
                        p.factors[n].row(index[n], &mut row);
                        row
                    })
                    .collect();
                let rows: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
                let plain = reference::value(&p.core, &rows);
                assert!(
                    (eval.value(&cell) - f64::from(plain)).abs()
                        < 1e-4 * (1.0 + plain.abs() as f64)
                );
            }
        }
    }

    #[test]
    fn tables_and_computed_rows_agree_and_threads_do_not_matter() {
        let mut options = GenerateOptions::new(&[1000, 10], 1);
        let one = Factor::new(&options, 0, 1000, 7);
        options.threads = 3;
        let mut three = Factor::new(&options, 0, 1000, 7);
        let (mut a, mut b) = (vec![0.0; 7], vec![0.0; 7]);
        for i in 0..1000 {
            one.row(i, &mut a);
            three.row(i, &mut b);
            assert_eq!(a, b);
        }
        three.table = None;
        for i in 0..1000 {
            one.row(i, &mut a);
            three.row(i, &mut b);
            assert_eq!(a, b);
        }
    }
}
