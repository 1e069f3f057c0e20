//! What entries say about the rows of the smaller modes before anything is fitted, or beyond what is.
//!
//! Two entries that differ in one mode only agree as far as the two rows of that mode do. Their products make a matrix of
//! that mode's rows, and its leading directions are those that the rows lie along: draws which start there need not wait until chance finds
//! such a direction, as they must where every slice of the tensor averages to 0.

use std::ops::Range;

use crate::error::Result;
use crate::kernel::ModeCsr;
use crate::linalg::{Eigen, add_scaled, dot, orthonormalize, scale_to_norm, symmetric_eigen};
use crate::parallel::ThreadPool;
use crate::random::RandomStream;

/// Entries that are looked at, at most, and about how many of those that have others to agree with.
const ENTRIES: usize = 1 << 22;
const USED: usize = 1 << 20;

/// A mode with more rows than this is not small.
const ROWS: usize = 1 << 17;

/// Values are cut to so many deviations: products of four numbers have tails that hide everything else.
const CUT: f64 = 2.0;

/// How many entries the mean of a row counts less for.
const DAMPING: f64 = 5.0;

/// A mode with fewer others to agree with per row than this is not told anything.
const PARTNERS: f64 = 8.0;

/// Directions that are looked for, at most, and how often the matrix is applied to them.
const DIRECTIONS: usize = 32;
const PASSES: usize = 6;

/// How much sooner a direction counts in full the more it stands out of noise.
const SHARPNESS: i32 = 3;

/// Directions that are done together.
const BLOCK: usize = 8;

/// Entries that are done together.
const PIECE: usize = 1 << 15;

/// What some entries are above the means of their rows.
pub(super) struct Residuals {
    /// By entry, times its weight.
    values: Vec<f64>,
    /// The mean of their squares.
    square: f64,
}

/// The rows of the lists' own mode whose entries are looked at, in pieces: the first ones.
fn pieces(lists: &ModeCsr) -> Vec<Range<usize>> {
    let (mut pieces, mut begin) = (Vec::new(), 0);
    let rows = (0..lists.row_count()).take_while(|&i| lists.row_entries(i).end <= ENTRIES);
    let rows = rows.count();
    for i in 0..rows {
        if lists.row_entries(i).end - lists.row_entries(begin).start >= PIECE || i + 1 == rows {
            pieces.push(begin..i + 1);
            begin = i + 1;
        }
    }
    pieces
}

/// How many entries are looked at.
pub(super) fn looked_at(lists: &ModeCsr) -> usize {
    pieces(lists)
        .last()
        .map_or(0, |p| lists.row_entries(p.end - 1).end)
}

impl Residuals {
    /// Takes out of numbers for the first entries what the rows of each mode have in common, one mode after the other.
    pub(super) fn new(lists: &ModeCsr, mut numbers: Vec<f64>) -> Residuals {
        let entries = 0..numbers.len();
        take_means(&mut numbers, lists, 0.0, entries.clone().map(|_| 0));
        for k in 0..lists.other_modes().len() {
            let row = |e: usize| lists.other_rows(e)[k] as usize;
            take_means(&mut numbers, lists, DAMPING, entries.clone().map(row));
        }
        let own = (0..lists.row_count()).flat_map(|i| lists.row_entries(i).map(move |_| i));
        take_means(&mut numbers, lists, DAMPING, own.take(entries.len()));
        let most = CUT * mean_square(&numbers, lists).sqrt();
        let by = if most.is_normal() { 1.0 / most } else { 0.0 };
        let cut = |x: &mut f64| *x = (*x * by).clamp(-1.0, 1.0);
        numbers.iter_mut().for_each(cut);
        let weighted = numbers.iter().zip(entries);
        Residuals {
            square: mean_square(&numbers, lists),
            values: weighted
                .map(|(x, e)| x * f64::from(lists.weight(e)))
                .collect(),
        }
    }
}

/// The mean square of numbers for the first entries, by weight.
fn mean_square(numbers: &[f64], lists: &ModeCsr) -> f64 {
    let (mut squares, mut weight) = (0.0, 0.0);
    for (e, x) in numbers.iter().enumerate() {
        let w = f64::from(lists.weight(e));
        (squares, weight) = (squares + w * x * x, weight + w);
    }
    if weight > 0.0 { squares / weight } else { 0.0 }
}

/// Takes out of numbers for the first entries the mean of their row, by weight.
fn take_means(
    numbers: &mut [f64],
    lists: &ModeCsr,
    damping: f64,
    rows: impl Iterator<Item = usize> + Clone,
) {
    let count = rows.clone().max().map_or(0, |most| most + 1);
    let mut sums = vec![(0.0, damping); count];
    for (e, (x, i)) in numbers.iter().zip(rows.clone()).enumerate() {
        let w = f64::from(lists.weight(e));
        sums[i].0 += w * x;
        sums[i].1 += w;
    }
    for (x, i) in numbers.iter_mut().zip(rows) {
        let (sum, weight) = sums[i];
        *x -= if weight > 0.0 { sum / weight } else { 0.0 };
    }
}

/// Groups of entries that differ in one mode only.
pub(super) struct Partners {
    pub mode: usize,
    groups: Groups,
    /// Which rows have others to agree with.
    known: Vec<bool>,
    /// What rows and columns of the matrix are multiplied with, so that rows with many others to agree with do not count for everything.
    scale: Vec<f64>,
    /// About the largest eigenvalue of the matrix for values of mean square 1 without any structure, as for a symmetric matrix
    /// of independent numbers.
    noise: f64,
}

/// Columns for the rows of a mode.
pub(super) struct Columns {
    /// Row by row, with mean squares of 1.
    pub numbers: Vec<f32>,
    /// How far the first direction stands out of noise, which has about 1.
    pub strength: f64,
    /// About the share of all squares that entries agree on along it.
    pub share: f64,
}

impl Partners {
    /// Those of one of the lists' other modes, which has so many rows; `None` if there are too few to tell anything.
    pub(super) fn new(
        lists: &ModeCsr,
        (mode, rows): (usize, usize),
        pool: &ThreadPool,
    ) -> Result<Option<Partners>> {
        let at = lists.other_modes().iter().position(|&m| m == mode);
        let Some(at) = at.filter(|_| rows <= ROWS) else {
            return Ok(None);
        };
        let pieces = pieces(lists);
        let group = |keys: &mut _, p: usize| Groups::new(lists, at, pieces[p].clone(), keys);
        let found = pool.map(pieces.len(), &mut || false, Vec::new, group)?;
        let mut groups = Groups::default();
        for found in found.unwrap_or_default() {
            if groups.rows.len() < USED {
                groups.append(found);
            }
        }
        let (mut degrees, mut partners) = (vec![0.0; rows], 0);
        for members in groups.each() {
            let weights = groups.cells[members.clone()].iter();
            let weights: Vec<f64> = weights.map(|c| weight_of(lists, c)).collect();
            let all: f64 = weights.iter().sum();
            partners += members.len() * (members.len() - 1);
            for (&i, w) in groups.rows[members].iter().zip(&weights) {
                degrees[i as usize] += w * (all - w);
            }
        }
        let total: f64 = degrees.iter().sum();
        if (partners as f64) < PARTNERS * rows as f64 || total <= 0.0 {
            return Ok(None);
        }
        let mean = total / rows as f64;
        Ok(Some(Partners {
            mode,
            groups,
            known: degrees.iter().map(|&d| d > 0.0).collect(),
            scale: degrees.iter().map(|d| 1.0 / (d + mean).sqrt()).collect(),
            noise: (rows as f64 / partners as f64).sqrt(),
        }))
    }

    /// Whether anything is known of a row.
    pub(super) fn known(&self, row: usize) -> bool {
        self.known.get(row).is_some_and(|&known| known)
    }

    /// Random columns of what entries agree along; `None` if they agree along nothing.
    pub(super) fn columns(
        &self,
        residuals: &Residuals,
        count: usize,
        name: &[u64],
        pool: &ThreadPool,
    ) -> Result<Option<Columns>> {
        if residuals.square <= 0.0 {
            return Ok(None);
        }
        let (rows, mut s) = (self.scale.len(), RandomStream::new(name));
        let agreement = Agreement {
            partners: self,
            values: self.groups.values(residuals),
            noise: self.noise * residuals.square,
        };
        // Some may be taken up by what lies far below noise.
        let directions = (2 * count + 2).min(rows).min(DIRECTIONS);
        let found = agreement.directions(directions, &mut s, pool)?;
        let strength = found.first().map_or(0.0, |f| f.1);
        let share = |strength: f64| {
            let above = strength.max(0.0).powi(SHARPNESS);
            above / (1.0 + above)
        };
        let mut numbers = vec![0.0; rows * count];
        for c in 0..count {
            let mut column = vec![0.0; rows];
            for (direction, strength) in &found {
                let by = share(*strength) * s.standard_normal();
                add_scaled(&mut column, by, direction);
            }
            let scaled = column.iter_mut().zip(&self.scale);
            scaled.for_each(|(x, s)| *x *= s);
            scale_to_norm(&mut column, (rows as f64).sqrt());
            let place = numbers.iter_mut().skip(c).step_by(count);
            place.zip(&column).for_each(|(to, &x)| *to = x as f32);
        }
        let told = strength > 0.0 && numbers.iter().all(|x| x.is_finite());
        Ok(told.then_some(Columns {
            numbers,
            strength,
            // Scaling takes half where all rows have as many partners.
            share: 2.0 * strength * self.noise,
        }))
    }
}

/// What the entries of a cell weigh.
fn weight_of(lists: &ModeCsr, cell: &Range<u32>) -> f64 {
    let entries = cell.start as usize..cell.end as usize;
    entries.map(|e| f64::from(lists.weight(e))).sum()
}

/// Groups of cells: the row of each in the mode that they differ in, and its entries.
#[derive(Default)]
struct Groups {
    rows: Vec<u32>,
    cells: Vec<Range<u32>>,
    ends: Vec<usize>,
}

impl Groups {
    /// Those of some rows of the lists' own mode, whose cells differ only in the row that entries list at `at`.
    fn new(
        lists: &ModeCsr,
        at: usize,
        rows: Range<usize>,
        keys: &mut Vec<(u64, u32, u32)>,
    ) -> Groups {
        let mut out = Groups::default();
        for i in rows {
            keys.clear();
            for e in lists.row_entries(i).filter(|&e| lists.weight(e) > 0.0) {
                let entry = lists.other_rows(e);
                let others = entry.iter().enumerate().filter(|(k, _)| *k != at);
                let key = others.fold(0u64, |key, (_, &row)| {
                    let mixed = (key ^ u64::from(row)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    mixed ^ (mixed >> 32)
                });
                keys.push((key, entry[at], e as u32));
            }
            keys.sort_unstable();
            let same = keys.chunk_by(|a, b| a.0 == b.0);
            for group in same.filter(|g| g[0].1 != g[g.len() - 1].1) {
                for cell in group.chunk_by(|a, b| a.1 == b.1) {
                    out.rows.push(cell[0].1);
                    out.cells.push(cell[0].2..cell[cell.len() - 1].2 + 1);
                }
                out.ends.push(out.rows.len());
            }
        }
        out
    }

    fn append(&mut self, mut other: Groups) {
        let first = self.rows.len();
        self.rows.append(&mut other.rows);
        self.cells.append(&mut other.cells);
        self.ends.extend(other.ends.iter().map(|end| first + end));
    }

    /// Where the cells of each group are.
    fn each(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let begins = [0].into_iter().chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(from, &to)| from..to)
    }

    /// For each cell the sum of its entries.
    fn values(&self, residuals: &Residuals) -> Vec<f64> {
        let sum = |c: &Range<u32>| {
            residuals.values[c.start as usize..c.end as usize]
                .iter()
                .sum()
        };
        self.cells.iter().map(sum).collect()
    }

    /// The matrix of all products of two cells of a group, times some columns.
    fn times(&self, values: &[f64], v: &[[f64; BLOCK]]) -> Vec<[f64; BLOCK]> {
        let mut out = vec![[0.0; BLOCK]; v.len()];
        for group in self.each() {
            let members = || self.rows[group.clone()].iter().zip(&values[group.clone()]);
            let mut sum = [0.0; BLOCK];
            for (&i, &x) in members() {
                let own = &v[i as usize];
                (0..BLOCK).for_each(|k| sum[k] += x * own[k]);
            }
            for (&i, &x) in members() {
                let (own, to) = (&v[i as usize], &mut out[i as usize]);
                (0..BLOCK).for_each(|k| to[k] += x * (sum[k] - x * own[k]));
            }
        }
        out
    }
}

/// How the rows of a mode agree.
struct Agreement<'a> {
    partners: &'a Partners,
    values: Vec<f64>,
    /// About the largest eigenvalue that values without any structure would have.
    noise: f64,
}

impl Agreement<'_> {
    /// The leading directions and how far entries agree along them, in what noise would give, by subspace iteration.
    fn directions(
        &self,
        count: usize,
        s: &mut RandomStream,
        pool: &ThreadPool,
    ) -> Result<Vec<(Vec<f64>, f64)>> {
        let rows = self.partners.scale.len();
        let mut v: Vec<Vec<f64>> = (0..count)
            .map(|_| (0..rows).map(|_| s.standard_normal()).collect())
            .collect();
        orthonormalize(&mut v);
        for _ in 0..PASSES {
            let mut next = self.times(&v, pool)?;
            // Noise goes as far below 0 as above; what is below shall not be found.
            for (to, from) in next.iter_mut().zip(&v) {
                add_scaled(to, self.noise, from);
            }
            v = next;
            orthonormalize(&mut v);
        }
        let next = self.times(&v, pool)?;
        let within = |k: usize| {
            let (i, j) = (k / count, k % count);
            0.5 * (dot(&v[i], &next[j]) + dot(&v[j], &next[i]))
        };
        let within: Vec<f64> = (0..count * count).map(within).collect();
        let Eigen {
            values: strengths,
            vectors: turns,
        } = symmetric_eigen(count, &within);
        let turned = turns.chunks_exact(count).map(|turn| {
            let mut out = vec![0.0; rows];
            let each = turn.iter().zip(&v);
            each.for_each(|(&by, v)| add_scaled(&mut out, by, v));
            out
        });
        let strengths = strengths.into_iter().map(|s| s / self.noise);
        Ok(turned.zip(strengths).collect())
    }

    fn times(&self, v: &[Vec<f64>], pool: &ThreadPool) -> Result<Vec<Vec<f64>>> {
        let scale = &self.partners.scale;
        let block = |b: usize| {
            let columns = &v[b * BLOCK..v.len().min((b + 1) * BLOCK)];
            let mut from = vec![[0.0; BLOCK]; scale.len()];
            for (k, column) in columns.iter().enumerate() {
                let each = from.iter_mut().zip(column).zip(scale);
                each.for_each(|((row, x), s)| row[k] = x * s);
            }
            let to = self.partners.groups.times(&self.values, &from);
            let column = |k: usize| -> Vec<f64> {
                let rows = to.iter().zip(scale);
                rows.map(|(row, s)| row[k] * s).collect()
            };
            (0..columns.len()).map(column).collect::<Vec<_>>()
        };
        let blocks = v.len().div_ceil(BLOCK);
        let done = pool.map(blocks, &mut || false, || (), |(), b| block(b))?;
        Ok(done.unwrap_or_default().into_iter().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::CooSlices;

    /// More than one piece and more than one block.
    const SIZES: [usize; 3] = [150, 100, 12];
    const COUNT: usize = 20;

    fn factor(n: usize) -> Vec<f64> {
        let mut s = RandomStream::new(&[7, n as u64]);
        (0..SIZES[n]).map(|_| s.standard_normal()).collect()
    }

    /// Entries of a product of three columns with as much noise, of a part of the cells that `has` chooses from.
    fn planted(has: impl Fn(usize, usize, usize) -> bool) -> (Vec<u32>, Vec<f32>) {
        let [a, b, c] = [0, 1, 2].map(factor);
        let mut s = RandomStream::new(&[8]);
        let (mut rows, mut values) = (Vec::new(), Vec::new());
        for (i, x) in a.iter().enumerate() {
            for (j, y) in b.iter().enumerate() {
                for (k, z) in c.iter().enumerate() {
                    let (chance, noise) = (s.uniform(), s.standard_normal());
                    if has(i, j, k) && chance < 0.3 {
                        rows.extend([i as u32, j as u32, k as u32]);
                        values.push((x * y * z + noise) as f32);
                    }
                }
            }
        }
        (rows, values)
    }

    fn csr(rows: &[u32], values: &[f32], weights: &[f32]) -> ModeCsr {
        let entries = CooSlices {
            row_counts: &SIZES,
            rows,
            values,
            weights,
        };
        ModeCsr::new(0, entries).unwrap()
    }

    fn columns(
        rows: &[u32],
        (values, weights): (&[f32], &[f32]),
        threads: usize,
    ) -> Option<Vec<f32>> {
        let lists = csr(rows, values, weights);
        let pool = ThreadPool::new(threads, false, 0);
        let partners = Partners::new(&lists, (2, SIZES[2]), &pool).unwrap()?;
        let values = (0..looked_at(&lists)).map(|e| f64::from(lists.value(e)));
        let residuals = Residuals::new(&lists, values.collect());
        let found = partners.columns(&residuals, COUNT, &[1, 2], &pool);
        found.unwrap().map(|c| c.numbers)
    }

    #[test]
    fn columns_lie_along_rows_that_no_slice_shows() {
        let (rows, values) = planted(|_, _, _| true);
        let found = columns(&rows, (&values, &[]), 1).unwrap();
        let c = factor(2);
        for column in 0..COUNT {
            let own: Vec<f64> = (0..SIZES[2])
                .map(|k| f64::from(found[COUNT * k + column]))
                .collect();
            let along = dot(&own, &c) / (dot(&own, &own) * dot(&c, &c)).sqrt();
            assert!(along.abs() > 0.95, "{column}: {along}");
            assert!((dot(&own, &own) / SIZES[2] as f64 - 1.0).abs() < 1e-3);
        }
        let lists = csr(&rows, &values, &[]);
        assert!(pieces(&lists).len() > 1);
        for threads in [2, 5] {
            assert!(columns(&rows, (&values, &[]), threads).unwrap() == found);
        }
    }

    #[test]
    fn without_partners_nothing_is_said() {
        let (rows, values) = planted(|i, j, k| (i + 3 * j) % SIZES[2] == k);
        assert!(values.len() > 500);
        assert!(columns(&rows, (&values, &[]), 1).is_none());
        assert!(columns(&[], (&[], &[]), 1).is_none());
        // Nor where an entry is listed many times.
        let (rows, values) = (rows.repeat(20), values.repeat(20));
        assert!(columns(&rows, (&values, &[]), 1).is_none());
        // Nor where values are all the same.
        let (rows, values) = planted(|_, _, _| true);
        assert!(columns(&rows, (&vec![0.0; values.len()], &[]), 1).is_none());
        // Weights of any size give numbers or nothing.
        for size in [1e-40f32, 1e-20, 1e20, 3e38] {
            let weights: Vec<f32> = (0..values.len())
                .map(|e| size / (1 + e % 2) as f32)
                .collect();
            let found = columns(&rows, (&values, &weights), 1);
            assert!(found.is_none_or(|c| c.iter().all(|x| x.is_finite())));
        }
    }

    #[test]
    fn weight_2_is_an_entry_listed_twice_and_0_is_none() {
        let (rows, values) = planted(|_, _, _| true);
        let weight = |e: usize| (e % 3) as f32;
        let weights: Vec<f32> = (0..values.len()).map(weight).collect();
        let weighted = columns(&rows, (&values, &weights), 1).unwrap();
        let listed = (0..values.len()).flat_map(|e| vec![e; e % 3]);
        let (mut twice, mut numbers) = (Vec::new(), Vec::new());
        for e in listed {
            twice.extend_from_slice(&rows[3 * e..3 * e + 3]);
            numbers.push(values[e]);
        }
        let listed = columns(&twice, (&numbers, &[]), 1).unwrap();
        for (x, y) in weighted.iter().zip(&listed) {
            assert!((x - y).abs() < 1e-3, "{x} {y}");
        }
    }
}
