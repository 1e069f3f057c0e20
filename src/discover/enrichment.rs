//! Label enrichment: the columns of a matrix that are over-represented in a cluster.
//!
//! A row has a label if its entry in that column is above 0. Let N be the number of clustered rows, K the number of them
//! with the label, n the size of the cluster and k the number of rows in it with the label. If the n rows were sampled
//! without replacement from the N, k would have the hypergeometric distribution. The p-value is the upper tail
//! P(X >= k) (Fisher's one-sided exact test). The Bonferroni correction multiplies it by the number of tests.

use crate::error::Result;
use crate::format::{CooView, RowMap};
use crate::progress::{Monitor, StepPolls};
use crate::sort::{sort_polling, stable_sort_by};
use crate::try_alloc::try_with_capacity;

/// Operations of a test whether a column is over-represented in a cluster.
const OPERATIONS_PER_TEST: usize = 64;

/// A column of a matrix that is over-represented in a cluster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Label {
    /// The matrix, counted from 0.
    pub matrix: usize,
    /// The column, counted from 0.
    pub column: u32,
    /// The number of rows of the cluster with the label.
    pub count: u64,
    /// The number of all clustered rows with the label.
    pub overall: u64,
    /// The fraction of the cluster with the label, divided by the fraction of all rows with it.
    pub lift: f64,
    /// The log odds ratio of the label inside and outside the cluster, with 1/2 added to each of the four counts
    /// (Haldane-Anscombe correction).
    pub log_odds: f64,
    /// The hypergeometric probability of at least `count` rows with the label in a random cluster of the same size.
    pub p_value: f64,
    /// The decimal logarithm of the p-value. It stays finite where the p-value itself underflows to 0.
    pub log10_p: f64,
    /// The Bonferroni-corrected p-value, at most 1. The number of tests is the number of clusters times the number of
    /// columns of the matrix that occur.
    pub corrected_p: f64,
}

impl Label {
    /// Whether the over-representation is significant: the corrected p-value is at most 0.05.
    pub fn is_significant(&self) -> bool {
        self.corrected_p <= SIGNIFICANCE_LEVEL
    }
}

/// The largest corrected p-value of a significant label.
const SIGNIFICANCE_LEVEL: f64 = 0.05;

/// The clustered rows of a mode.
pub(super) struct ClusteredRows<'a> {
    /// The rows of the mode.
    pub rows: &'a RowMap,
    /// For each compact row, its position among the clustered rows.
    pub positions: &'a [Option<u32>],
    /// The cluster of each clustered row.
    pub assignments: &'a [u32],
    /// The number of rows of each cluster.
    pub sizes: &'a [u64],
}

/// The labels of all clusters in one matrix.
pub(super) struct Enrichment {
    /// The labels of each cluster, by ascending p-value.
    pub labels: Vec<Vec<Label>>,
    /// The uncertainty coefficient of the labels given the clusters (Theil's U): their mutual information divided by the
    /// entropy of the labels, both summed over columns. It is between 0 and 1.
    pub uncertainty_coefficient: f64,
}

/// Tests each column of a matrix for over-representation in each cluster, and keeps up to `max_labels` per cluster.
///
/// `matrix` is the number of the matrix that the labels carry.
pub(super) fn enrichment(
    view: &CooView<'_>,
    matrix: usize,
    max_labels: usize,
    clustered: &ClusteredRows<'_>,
    monitor: &dyn Monitor,
) -> Result<Enrichment> {
    let sizes = clustered.sizes;
    // The column in the upper 32 bits, the position of the clustered row in the lower 32.
    let mut pairs: Vec<u64> = try_with_capacity(view.len(), "entries")?;
    for (i, (&row, &column)) in view.column(0).iter().zip(view.column(1)).enumerate() {
        let row = clustered.rows.compact(row);
        let position = row.and_then(|r| clustered.positions[r as usize]);
        if let Some(position) = position
            && view.values().get(i) > 0.0
        {
            pairs.push(u64::from(column) << 32 | u64::from(position));
        }
    }
    sort_polling(&mut pairs, monitor)?;
    pairs.dedup();
    let all = clustered.assignments.len() as u64;
    let mut found: Vec<Vec<Label>> = vec![Vec::new(); sizes.len()];
    let mut counts = vec![0u64; sizes.len()];
    let (mut mutual_information, mut entropy) = (0.0, 0.0);
    let columns = || pairs.chunk_by(|a, b| a >> 32 == b >> 32);
    let tests = (columns().count() * sizes.len()) as f64;
    let mut polls = StepPolls::new(monitor, OPERATIONS_PER_TEST * sizes.len());
    for group in columns() {
        polls.step()?;
        counts.fill(0);
        let clusters = group
            .iter()
            .map(|&pair| clustered.assignments[pair as u32 as usize]);
        clusters.for_each(|cluster| counts[cluster as usize] += 1);
        let (column, overall) = ((group[0] >> 32) as u32, group.len() as u64);
        let bits = binary_entropy(overall, all);
        entropy += bits;
        mutual_information += bits;
        for ((&count, &size), found) in counts.iter().zip(sizes).zip(&mut found) {
            mutual_information -= binary_entropy(count, size) * size as f64 / all as f64;
            if count as f64 * all as f64 <= overall as f64 * size as f64 {
                continue;
            }
            let log_p = log_upper_tail(count, size, overall, all).min(0.0);
            let half = |x: u64| x as f64 + 0.5;
            let (outside_with, outside) = (overall - count, all - size);
            let label = Label {
                matrix,
                column,
                count,
                overall,
                lift: count as f64 / size as f64 * all as f64 / overall as f64,
                log_odds: (half(count) * half(outside - outside_with)
                    / (half(size - count) * half(outside_with)))
                .ln(),
                p_value: log_p.exp(),
                log10_p: log_p / std::f64::consts::LN_10,
                corrected_p: (log_p + tests.ln()).min(0.0).exp(),
            };
            found.push(label);
        }
    }
    let labels = found.into_iter().map(|mut list| {
        stable_sort_by(&mut list, &|a, b| {
            let by_p = a.log10_p.total_cmp(&b.log10_p);
            by_p.then(a.column.cmp(&b.column))
        });
        list.truncate(max_labels);
        list
    });
    Ok(Enrichment {
        labels: labels.collect(),
        uncertainty_coefficient: if entropy > 0.0 {
            (mutual_information / entropy).max(0.0)
        } else {
            0.0
        },
    })
}

/// Returns the entropy in bits of a binary variable that is 1 in `count` of `all` cases.
fn binary_entropy(count: u64, all: u64) -> f64 {
    let term = |x: u64| match x {
        0 => 0.0,
        x => -(x as f64 / all as f64) * (x as f64 / all as f64).log2(),
    };
    term(count) + term(all - count)
}

/// Returns ln P(X >= `count`) of the hypergeometric distribution: `size` rows are sampled without replacement from `all`,
/// of which `with_label` have the label.
///
/// `count` must exceed the expected number, so that the terms of the sum decrease.
fn log_upper_tail(count: u64, size: u64, with_label: u64, all: u64) -> f64 {
    let log_choose = |n: u64, k: u64| log_factorial(n) - log_factorial(k) - log_factorial(n - k);
    let first = log_choose(with_label, count) + log_choose(all - with_label, size - count)
        - log_choose(all, size);
    // The sum relative to its first term.
    let (mut sum, mut term) = (1.0, 1.0);
    for x in count..size.min(with_label) {
        let numerator = (with_label - x) as f64 * (size - x) as f64;
        let denominator = (x + 1) as f64 * (all + x + 1 - with_label - size) as f64;
        term *= numerator / denominator;
        sum += term;
        if term < 1e-17 * sum {
            break;
        }
    }
    first + f64::ln(sum)
}

/// Returns ln n!, by Stirling's series from n = 16 on.
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
    fn upper_tails_equal_sums_of_binomial_coefficients() {
        let choose =
            |n: u64, k: u64| -> f64 { (0..k).map(|i| (n - i) as f64 / (i + 1) as f64).product() };
        for (count, size, with_label, all) in [
            (3u64, 5u64, 6u64, 20u64),
            (5, 5, 6, 20),
            (1, 1, 1, 2),
            (30, 60, 70, 200),
            (7, 7, 7, 7),
            (12, 40, 13, 60),
        ] {
            let each = (count..=size.min(with_label)).filter(|x| size - x <= all - with_label);
            let sum: f64 = each
                .map(|x| choose(with_label, x) * choose(all - with_label, size - x))
                .sum();
            let expected = sum / choose(all, size);
            let p = log_upper_tail(count, size, with_label, all).exp();
            assert!((p / expected - 1.0).abs() < 1e-9, "{p} {expected}");
        }
    }

    #[test]
    fn log_factorial_equals_the_sum_of_logarithms() {
        let mut sum = 0.0;
        for n in 1..200u64 {
            sum += (n as f64).ln();
            assert!((log_factorial(n) - sum).abs() < 1e-10 * sum.max(1.0), "{n}");
        }
    }
}
