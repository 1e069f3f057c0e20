//! Where rows of the smaller modes start.
//!
//! Two entries that differ in one mode only agree as far as the two rows of that mode do. Their products make a matrix of
//! that mode's rows, and its leading directions are those that the rows lie along: draws which start there need not wait until chance finds
//! such a direction, as they must where every slice of the tensor averages to 0.

use std::ops::Range;
use std::sync::OnceLock;

use crate::error::Result;
use crate::kernel::Lists;
use crate::random::Stream;
use crate::schedule::Crew;
use crate::solver::dense::eigen;

/// Entries that are looked at, at most, and of those the ones that others agree with.
const ENTRIES: usize = 1 << 22;
const USED: usize = 1 << 20;

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

/// Entries, or as many of them as are looked at.
pub(super) struct Residuals<'a> {
    lists: &'a Lists,
    /// Rows of the lists' own mode.
    pieces: Vec<Range<usize>>,
    /// Found when the first two entries meet that differ in one mode only; most ratings have no such pair.
    values: OnceLock<Values>,
}

/// What entries are above the means of their rows.
struct Values {
    each: Vec<f32>,
    /// The mean of their squares.
    square: f64,
}

impl<'a> Residuals<'a> {
    pub(super) fn new(lists: &'a Lists) -> Residuals<'a> {
        let (mut pieces, mut begin) = (Vec::new(), 0);
        for i in 0..lists.rows() {
            let first = lists.of(begin).start;
            let enough = lists.of(i).end - first >= PIECE || i + 1 == lists.rows();
            if enough && first < ENTRIES {
                pieces.push(begin..i + 1);
                begin = i + 1;
            }
        }
        Residuals {
            lists,
            pieces,
            values: OnceLock::new(),
        }
    }

    /// Takes out what the rows of each mode have in common, one mode after the other.
    fn values(&self) -> &Values {
        self.values.get_or_init(|| {
            let lists = self.lists;
            let rows = self.pieces.last().map_or(0, |p| p.end);
            let entries = 0..if rows > 0 { lists.of(rows - 1).end } else { 0 };
            let mut values: Vec<f64> = entries.clone().map(|e| f64::from(lists.value(e))).collect();
            take_means(&mut values, lists, 0.0, entries.clone().map(|_| 0));
            for k in 0..lists.others().len() {
                let row = |e: usize| lists.entry(e)[k] as usize;
                take_means(&mut values, lists, DAMPING, entries.clone().map(row));
            }
            let own = (0..rows).flat_map(|i| lists.of(i).map(move |_| i));
            take_means(&mut values, lists, DAMPING, own);
            let most = CUT * mean_square(&values, lists).sqrt();
            let by = if most.is_normal() { 1.0 / most } else { 0.0 };
            let cut = |x: &mut f64| *x = (*x * by).clamp(-1.0, 1.0);
            values.iter_mut().for_each(cut);
            Values {
                square: mean_square(&values, lists),
                each: values.iter().map(|&x| x as f32).collect(),
            }
        })
    }

    /// Columns for the rows of one of the other modes, of mean square 1, row by row: random ones, of what entries
    /// agree along. `None` if too few entries differ in that mode only.
    pub(super) fn columns(
        &self,
        (mode, rows): (usize, usize),
        count: usize,
        name: &[u64],
        crew: &Crew,
    ) -> Result<Option<Vec<f32>>> {
        let Some(agreement) = self.agreement(mode, rows, crew)? else {
            return Ok(None);
        };
        let mut s = Stream::new(name);
        let found = agreement.directions(count.min(rows).min(DIRECTIONS), &mut s, crew)?;
        let share = |strength: f64| {
            let above = (strength.max(0.0) / agreement.noise).powi(SHARPNESS);
            above / (1.0 + above)
        };
        let mut out = vec![0.0; rows * count];
        for c in 0..count {
            let mut column = vec![0.0; rows];
            for (direction, strength) in &found {
                let by = share(*strength) * s.gauss();
                add(&mut column, by, direction);
            }
            let scaled = column.iter_mut().zip(&agreement.scale);
            scaled.for_each(|(x, s)| *x *= s);
            scale_to(&mut column, (rows as f64).sqrt());
            let place = out.iter_mut().skip(c).step_by(count);
            place.zip(&column).for_each(|(to, &x)| *to = x as f32);
        }
        Ok(Some(out))
    }

    fn agreement(&self, mode: usize, rows: usize, crew: &Crew) -> Result<Option<Agreement>> {
        let Some(at) = self.lists.others().iter().position(|&m| m == mode) else {
            return Ok(None);
        };
        let group = |keys: &mut _, p: usize| self.groups(at, self.pieces[p].clone(), keys);
        let found = crew.map(self.pieces.len(), &mut || false, Vec::new, group)?;
        let mut all = Groups::default();
        for groups in found.unwrap_or_default() {
            if all.rows.len() < USED {
                all.append(groups);
            }
        }
        let (mut degrees, mut partners) = (vec![0.0; rows], 0);
        for members in all.each() {
            let weight: f64 = members.clone().map(|m| all.weights[m]).sum();
            partners += members.len() * (members.len() - 1);
            for m in members {
                degrees[all.rows[m] as usize] += all.weights[m] * (weight - all.weights[m]);
            }
        }
        let total: f64 = degrees.iter().sum();
        let told = partners as f64 >= PARTNERS * rows as f64 && total > 0.0;
        if !told || self.values().square <= 0.0 {
            return Ok(None);
        }
        let mean = total / rows as f64;
        Ok(Some(Agreement {
            groups: all,
            scale: degrees.iter().map(|d| 1.0 / (d + mean).sqrt()).collect(),
            // As for a symmetric matrix of independent numbers.
            noise: (rows as f64 / partners as f64).sqrt() * self.values().square,
        }))
    }

    /// The groups of entries of some rows of the lists' own mode whose rows are the same but for the one that entries list
    /// at `at`.
    fn groups(&self, at: usize, rows: Range<usize>, keys: &mut Vec<(u64, u32, usize)>) -> Groups {
        let mut out = Groups::default();
        for i in rows {
            keys.clear();
            for e in self.lists.of(i).filter(|&e| self.lists.weight(e) > 0.0) {
                let entry = self.lists.entry(e);
                let others = entry.iter().enumerate().filter(|(k, _)| *k != at);
                let key = others.fold(0u64, |key, (_, &row)| {
                    let mixed = (key ^ u64::from(row)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    mixed ^ (mixed >> 32)
                });
                keys.push((key, entry[at], e));
            }
            keys.sort_unstable();
            let same = keys.chunk_by(|a, b| a.0 == b.0);
            for group in same.filter(|g| g[0].1 != g[g.len() - 1].1) {
                out.push(group, &self.values().each, self.lists);
            }
        }
        out
    }
}

/// The mean square of the values of the first entries, by weight.
fn mean_square(values: &[f64], lists: &Lists) -> f64 {
    let (mut squares, mut weight) = (0.0, 0.0);
    for (e, x) in values.iter().enumerate() {
        let w = f64::from(lists.weight(e));
        (squares, weight) = (squares + w * x * x, weight + w);
    }
    if weight > 0.0 { squares / weight } else { 0.0 }
}

/// Takes out of the values of the first entries the mean of their row, by weight.
fn take_means(
    values: &mut [f64],
    lists: &Lists,
    damping: f64,
    rows: impl Iterator<Item = usize> + Clone,
) {
    let count = rows.clone().max().map_or(0, |most| most + 1);
    let mut sums = vec![(0.0, damping); count];
    for (e, (x, i)) in values.iter().zip(rows.clone()).enumerate() {
        let w = f64::from(lists.weight(e));
        sums[i].0 += w * x;
        sums[i].1 += w;
    }
    for (x, i) in values.iter_mut().zip(rows) {
        let (sum, weight) = sums[i];
        *x -= if weight > 0.0 { sum / weight } else { 0.0 };
    }
}

/// Groups of entries that differ in one mode only: their rows there, their weights, and their values times those.
#[derive(Default)]
struct Groups {
    rows: Vec<u32>,
    weights: Vec<f64>,
    values: Vec<f32>,
    ends: Vec<usize>,
}

impl Groups {
    /// Adds a group, whose entries are sorted by row. Entries of the same cell are one.
    fn push(&mut self, group: &[(u64, u32, usize)], values: &[f32], lists: &Lists) {
        let first = self.rows.len();
        for &(_, row, e) in group {
            let weight = lists.weight(e);
            let value = weight * values[e];
            if self.rows.len() > first && self.rows.last() == Some(&row) {
                let last = self.rows.len() - 1;
                self.weights[last] += f64::from(weight);
                self.values[last] += value;
            } else {
                self.rows.push(row);
                self.weights.push(f64::from(weight));
                self.values.push(value);
            }
        }
        self.ends.push(self.rows.len());
    }

    fn append(&mut self, mut other: Groups) {
        let first = self.rows.len();
        self.rows.append(&mut other.rows);
        self.weights.append(&mut other.weights);
        self.values.append(&mut other.values);
        self.ends.extend(other.ends.iter().map(|end| first + end));
    }

    /// Where the entries of each group are.
    fn each(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let begins = [0].into_iter().chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(from, &to)| from..to)
    }

    /// The matrix of all products of two entries of a group, times some columns.
    fn times(&self, v: &[[f32; BLOCK]]) -> Vec<[f32; BLOCK]> {
        let mut out = vec![[0.0; BLOCK]; v.len()];
        for group in self.each() {
            let members = || {
                self.rows[group.clone()]
                    .iter()
                    .zip(&self.values[group.clone()])
            };
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
struct Agreement {
    groups: Groups,
    /// What rows and columns are multiplied with, so that rows with many others to agree with do not count for everything.
    scale: Vec<f64>,
    /// About the largest eigenvalue that values without any structure would have.
    noise: f64,
}

impl Agreement {
    /// The leading directions and how far entries agree along them, by subspace iteration.
    fn directions(
        &self,
        count: usize,
        s: &mut Stream,
        crew: &Crew,
    ) -> Result<Vec<(Vec<f64>, f64)>> {
        let rows = self.scale.len();
        let mut v: Vec<Vec<f64>> = (0..count)
            .map(|_| (0..rows).map(|_| s.gauss()).collect())
            .collect();
        orthonormal(&mut v);
        for _ in 0..PASSES {
            let mut next = self.times(&v, crew)?;
            // Noise goes as far below 0 as above; what is below shall not be found.
            for (to, from) in next.iter_mut().zip(&v) {
                add(to, self.noise, from);
            }
            v = next;
            orthonormal(&mut v);
        }
        let next = self.times(&v, crew)?;
        let within = |k: usize| {
            let (i, j) = (k / count, k % count);
            0.5 * (dot(&v[i], &next[j]) + dot(&v[j], &next[i]))
        };
        let within: Vec<f64> = (0..count * count).map(within).collect();
        let (strengths, turns) = eigen(count, &within);
        let turned = turns.chunks_exact(count).map(|turn| {
            let mut out = vec![0.0; rows];
            let each = turn.iter().zip(&v);
            each.for_each(|(&by, v)| add(&mut out, by, v));
            out
        });
        Ok(turned.zip(strengths).collect())
    }

    fn times(&self, v: &[Vec<f64>], crew: &Crew) -> Result<Vec<Vec<f64>>> {
        let block = |b: usize| {
            let columns = &v[b * BLOCK..v.len().min((b + 1) * BLOCK)];
            let mut from = vec![[0.0; BLOCK]; self.scale.len()];
            for (k, column) in columns.iter().enumerate() {
                let each = from.iter_mut().zip(column).zip(&self.scale);
                each.for_each(|((row, x), s)| row[k] = (x * s) as f32);
            }
            let to = self.groups.times(&from);
            let column = |k: usize| -> Vec<f64> {
                let rows = to.iter().zip(&self.scale);
                rows.map(|(row, s)| f64::from(row[k]) * s).collect()
            };
            (0..columns.len()).map(column).collect::<Vec<_>>()
        };
        let blocks = v.len().div_ceil(BLOCK);
        let done = crew.map(blocks, &mut || false, || (), |(), b| block(b))?;
        Ok(done.unwrap_or_default().into_iter().flatten().collect())
    }
}

/// Makes columns orthogonal, and 1 long.
fn orthonormal(v: &mut [Vec<f64>]) {
    for k in 0..v.len() {
        let (before, rest) = v.split_at_mut(k);
        let own = &mut rest[0];
        // What rounding leaves after the first time is gone after the second.
        for _ in 0..2 {
            for other in &*before {
                let along = dot(own, other);
                add(own, -along, other);
            }
            scale_to(own, 1.0);
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(to: &mut [f64], by: f64, what: &[f64]) {
    to.iter_mut().zip(what).for_each(|(t, w)| *t += by * w);
}

fn scale_to(v: &mut [f64], length: f64) {
    let size = dot(v, v).sqrt();
    if size > 0.0 {
        v.iter_mut().for_each(|x| *x *= length / size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [usize; 3] = [60, 50, 12];

    fn factor(n: usize) -> Vec<f64> {
        let mut s = Stream::new(&[7, n as u64]);
        (0..SIZES[n]).map(|_| s.gauss()).collect()
    }

    /// Entries of a product of three columns with as much noise, of a part of the cells that `has` chooses from.
    fn planted(has: impl Fn(usize, usize, usize) -> bool) -> (Vec<u32>, Vec<f32>) {
        let [a, b, c] = [0, 1, 2].map(factor);
        let mut s = Stream::new(&[8]);
        let (mut rows, mut values) = (Vec::new(), Vec::new());
        for (i, x) in a.iter().enumerate() {
            for (j, y) in b.iter().enumerate() {
                for (k, z) in c.iter().enumerate() {
                    let (chance, noise) = (s.unit(), s.gauss());
                    if has(i, j, k) && chance < 0.3 {
                        rows.extend([i as u32, j as u32, k as u32]);
                        values.push((x * y * z + noise) as f32);
                    }
                }
            }
        }
        (rows, values)
    }

    fn columns(rows: &[u32], numbers: (&[f32], &[f32]), threads: usize) -> Option<Vec<f32>> {
        let lists = Lists::new(0, &SIZES, rows, numbers).unwrap();
        let crew = Crew::new(threads, false, 0);
        let found = Residuals::new(&lists).columns((2, SIZES[2]), 5, &[1, 2], &crew);
        found.unwrap()
    }

    #[test]
    fn columns_lie_along_rows_that_no_slice_shows() {
        let (rows, values) = planted(|_, _, _| true);
        let found = columns(&rows, (&values, &[]), 1).unwrap();
        let c = factor(2);
        for column in 0..5 {
            let own: Vec<f64> = (0..SIZES[2])
                .map(|k| f64::from(found[5 * k + column]))
                .collect();
            let along = dot(&own, &c) / (dot(&own, &own) * dot(&c, &c)).sqrt();
            assert!(along.abs() > 0.95, "{column}: {along}");
            assert!((dot(&own, &own) / SIZES[2] as f64 - 1.0).abs() < 1e-3);
        }
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
