//! What clusters have more of than all rows have: columns of a matrix, by counts.

use crate::error::Result;
use crate::format::{CooView, RowMap};

use crate::try_alloc::try_with_capacity;

/// A column of a matrix that a cluster has more of than there is overall.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Label {
    /// Which matrix, counted from 0.
    pub matrix: usize,
    /// The column, counted from 0.
    pub column: u32,
    /// How many rows of the cluster have it.
    pub count: u64,
    /// How many of all clustered rows have it.
    pub overall: u64,
    /// The share of the cluster that has it over the share of all.
    pub lift: f64,
    /// The logarithm of the odds in the cluster over the odds outside, half a row added to each of the four counts.
    pub log_odds: f64,
    /// How likely at least so many are if as many rows as the cluster has are drawn from all (hypergeometric).
    pub p_value: f64,
    /// The decimal logarithm of that, which says something where the p-value itself is too small for a number and 0.
    pub log10_p: f64,
    /// The p-value times the number of tests of the matrix, one for each cluster and column that some row has, and at
    /// most 1 (Bonferroni).
    pub corrected_p: f64,
}

impl Label {
    /// Whether the cluster has more of it than chance gives: the corrected p-value is at most 0.05.
    pub fn is_clear(&self) -> bool {
        self.corrected_p <= CLEAR
    }
}

/// A label with a corrected p-value above is no news.
const CLEAR: f64 = 0.05;

/// What a matrix says of clusters.
pub(super) struct Enriched {
    /// The best labels of each cluster.
    pub labels: Vec<Vec<Label>>,
    /// How much of what columns say of rows the cluster of a row tells: their mutual information over their entropy,
    /// both added up over columns.
    pub information: f64,
}

/// Counts the columns of a matrix in clusters. A row has a column if it has an entry above 0 there. `place` is the place
/// of each compact row among those clustered.
pub(super) fn enrich(
    view: &CooView<'_>,
    (matrix, most): (usize, usize),
    (map, place): (&RowMap, &[Option<u32>]),
    (which, sizes): (&[u32], &[u64]),
) -> Result<Enriched> {
    let mut pairs: Vec<u64> = try_with_capacity(view.len(), "entries")?;
    for (i, (&row, &column)) in view.column(0).iter().zip(view.column(1)).enumerate() {
        let row = map.compact(row).and_then(|r| place[r as usize]);
        if let Some(row) = row
            && view.values().get(i) > 0.0
        {
            pairs.push(u64::from(column) << 32 | u64::from(row));
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    let all = which.len() as u64;
    let mut found: Vec<Vec<Label>> = vec![Vec::new(); sizes.len()];
    let mut counts = vec![0u64; sizes.len()];
    let (mut told, mut entropy) = (0.0, 0.0);
    let columns = || pairs.chunk_by(|a, b| a >> 32 == b >> 32);
    let tests = (columns().count() * sizes.len()) as f64;
    for group in columns() {
        counts.fill(0);
        let each = group.iter().map(|&pair| which[pair as u32 as usize]);
        each.for_each(|cluster| counts[cluster as usize] += 1);
        let (column, overall) = ((group[0] >> 32) as u32, group.len() as u64);
        let bits = entropy_of(overall, all);
        entropy += bits;
        told += bits;
        for ((&count, &size), found) in counts.iter().zip(sizes).zip(&mut found) {
            told -= entropy_of(count, size) * size as f64 / all as f64;
            if count as f64 * all as f64 <= overall as f64 * size as f64 {
                continue;
            }
            let log_p = log_tail(count, size, overall, all).min(0.0);
            let half = |x: u64| x as f64 + 0.5;
            let (rest, others) = (overall - count, all - size);
            let label = Label {
                matrix,
                column,
                count,
                overall,
                lift: count as f64 / size as f64 * all as f64 / overall as f64,
                log_odds: (half(count) * half(others - rest) / (half(size - count) * half(rest)))
                    .ln(),
                p_value: log_p.exp(),
                log10_p: log_p / std::f64::consts::LN_10,
                corrected_p: (log_p + tests.ln()).min(0.0).exp(),
            };
            found.push(label);
        }
    }
    let labels = found.into_iter().map(|mut list| {
        list.sort_by(|a, b| {
            let by_p = a.log10_p.total_cmp(&b.log10_p);
            by_p.then(a.column.cmp(&b.column))
        });
        list.truncate(most);
        list
    });
    Ok(Enriched {
        labels: labels.collect(),
        information: if entropy > 0.0 {
            (told / entropy).max(0.0)
        } else {
            0.0
        },
    })
}

/// The bits that `count` of `all` leave open.
fn entropy_of(count: u64, all: u64) -> f64 {
    let part = |x: u64| match x {
        0 => 0.0,
        x => -(x as f64 / all as f64) * (x as f64 / all as f64).log2(),
    };
    part(count) + part(all - count)
}

/// The logarithm of how likely at least `count` of `having` rows out of `all` are among `size` that are drawn.
fn log_tail(count: u64, size: u64, having: u64, all: u64) -> f64 {
    let choose = |n: u64, k: u64| log_factorial(n) - log_factorial(k) - log_factorial(n - k);
    let first = choose(having, count) + choose(all - having, size - count) - choose(all, size);
    // Each term of the sum is the one before times a ratio below 1: more than expected are counted here.
    let (mut sum, mut term) = (1.0, 1.0);
    for x in count..size.min(having) {
        let up = (having - x) as f64 * (size - x) as f64;
        let down = (x + 1) as f64 * (all + x + 1 - having - size) as f64;
        term *= up / down;
        sum += term;
        if term < 1e-17 * sum {
            break;
        }
    }
    first + f64::ln(sum)
}

/// The logarithm of n!, by Stirling's series from 16 on.
fn log_factorial(n: u64) -> f64 {
    if n < 16 {
        return (2..=n).map(|i| i as f64).product::<f64>().ln();
    }
    let x = n as f64;
    let half = 0.5 * (std::f64::consts::TAU * x).ln();
    let series = 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3)) + 1.0 / (1260.0 * x.powi(5));
    x * x.ln() - x + half + series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_sums_of_shares_of_all_draws() {
        let choose =
            |n: u64, k: u64| -> f64 { (0..k).map(|i| (n - i) as f64 / (i + 1) as f64).product() };
        for (count, size, having, all) in [
            (3u64, 5u64, 6u64, 20u64),
            (5, 5, 6, 20),
            (1, 1, 1, 2),
            (30, 60, 70, 200),
            (7, 7, 7, 7),
            (12, 40, 13, 60),
        ] {
            let each = (count..=size.min(having)).filter(|x| size - x <= all - having);
            let sum: f64 = each
                .map(|x| choose(having, x) * choose(all - having, size - x))
                .sum();
            let expected = sum / choose(all, size);
            let p = log_tail(count, size, having, all).exp();
            assert!((p / expected - 1.0).abs() < 1e-9, "{p} {expected}");
        }
        let mut sum = 0.0;
        for n in 1..200u64 {
            sum += (n as f64).ln();
            assert!((log_factorial(n) - sum).abs() < 1e-10 * sum.max(1.0), "{n}");
        }
    }
}
