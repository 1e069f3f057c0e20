//! How many clusters there are: the gap statistic of Tibshirani, Walther and Hastie.

use super::kmeans::{Run, Work};
use super::points::Points;
use crate::error::Result;
use crate::random::RandomStream;

/// What random numbers are for.
const EVEN: u64 = 0x6761_7001;
const CURVE: u64 = 0x6761_7002;

/// Sums of squares are never taken to be below this share of that of one cluster: there would be no logarithm.
const FLOOR: f64 = 1e-12;

/// Steps end when they gain less than this, far less than the errors of gaps: even points would move for long.
const ENOUGH: f64 = 1e-4;

/// The gap for a number of clusters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GapPoint {
    /// How many clusters.
    pub k: usize,
    /// The logarithm of the sum of squared distances to the own centre.
    pub log_within: f64,
    /// The mean of the same over reference sets.
    pub reference: f64,
    /// By how much the sum is smaller than that of the references: their difference.
    pub gap: f64,
    /// The standard error of the gap, s_k: the deviation over the references times sqrt(1 + 1/B).
    pub error: f64,
}

/// The gaps for 1, 2, 3 ... clusters.
#[derive(Debug, Clone, PartialEq)]
pub struct GapCurve {
    /// One after the other.
    pub points: Vec<GapPoint>,
    /// The smallest k whose gap is at least that of k + 1 less its standard error; the last if there is none.
    pub chosen: usize,
    /// Whether there is one. If not, more clusters than were looked at may be better still.
    pub settled: bool,
    /// The smallest k whose gap is at least the largest of all less its standard error. Above `chosen` where the curve
    /// falls at first and rises again, as it does for groups of groups.
    pub largest: usize,
    /// How many rows it was measured on.
    pub rows: usize,
}

impl GapCurve {
    /// Whether a later gap is larger than that of `chosen` by more than its standard error.
    pub fn rises_again(&self) -> bool {
        self.largest > self.chosen
    }

    /// How many clusters to take: `chosen`, unless that is 1 and a later gap speaks against it. Then the rule is asked
    /// again, of those numbers alone whose gap is above that of one cluster by more than its standard error; the last
    /// if it stops at none.
    pub fn taken(&self) -> usize {
        if self.chosen > 1 || !self.rises_again() {
            return self.chosen;
        }
        let one = self.points[0].gap;
        let pairs = self.points.windows(2);
        let mut above = pairs.filter(|w| w[0].gap - w[0].error > one);
        let stop = above.find(|w| stops(w));
        stop.map_or(self.points.len(), |w| w[0].k)
    }
}

/// Whether the rule stops at the first of two points that follow each other.
fn stops(pair: &[GapPoint]) -> bool {
    pair[0].gap >= pair[1].gap - pair[1].error
}

/// Measures the gaps for up to `most` clusters against `references` sets of points drawn evenly from the box along the
/// principal axes. There are no more clusters than different points.
pub(super) fn curve(
    points: &Points,
    (most, references): (usize, usize),
    seed: u64,
    work: &Work<'_>,
) -> Result<GapCurve> {
    let most = most.min(points.count).max(1);
    let even =
        (0..references as u64).map(|b| points.even(&mut RandomStream::new(&[seed, EVEN, b])));
    let even: Vec<Points> = even.collect::<Result<_>>()?;
    let sets = [points].into_iter().chain(&even);
    let run = |(s, points)| {
        (1..=most).map(move |k| Run {
            points,
            k,
            name: [seed, CURVE, s],
            enough: ENOUGH,
        })
    };
    let runs: Vec<Run<'_>> = (0..).zip(sets).flat_map(run).collect();
    let found = work.best(&runs, |found| (found.within, found.sizes.len()))?;
    let logs: Vec<Vec<f64>> = found.chunks_exact(most).map(logarithms).collect();
    let different = found[..most].iter().filter(|f| f.1 > 0);
    let most = different.map(|f| f.1).max().unwrap_or(1);
    let points_of = (0..most).map(|k| {
        let each = || logs[1..].iter().map(|set| set[k]);
        let count = references as f64;
        let mean = each().sum::<f64>() / count;
        let variance = each().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
        GapPoint {
            k: k + 1,
            log_within: logs[0][k],
            reference: mean,
            gap: mean - logs[0][k],
            error: (variance * (1.0 + 1.0 / count)).sqrt(),
        }
    });
    let list: Vec<GapPoint> = points_of.collect();
    let settled = list.windows(2).find(|w| stops(w));
    let most_gap = list.iter().max_by(|a, b| a.gap.total_cmp(&b.gap));
    let bound = most_gap.map_or(0.0, |p| p.gap - p.error);
    let largest = list.iter().find(|p| p.gap >= bound).map_or(1, |p| p.k);
    Ok(GapCurve {
        largest,
        chosen: settled.map_or(list.len(), |w| w[0].k),
        // One row, or many that are the same, are one cluster, and there is nothing more to look at.
        settled: settled.is_some() || most < 2,
        points: list,
        rows: points.count,
    })
}

fn logarithms(found: &[(f64, usize)]) -> Vec<f64> {
    let floor = (FLOOR * found[0].0).max(f64::MIN_POSITIVE);
    found.iter().map(|f| f.0.max(floor).ln()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(gaps: &[f64], chosen: usize, largest: usize) -> GapCurve {
        let point = |(k, &gap): (usize, &f64)| GapPoint {
            k: k + 1,
            log_within: 0.0,
            reference: gap,
            gap,
            error: 0.01,
        };
        GapCurve {
            points: gaps.iter().enumerate().map(point).collect(),
            chosen,
            settled: true,
            largest,
            rows: 100,
        }
    }

    #[test]
    fn one_cluster_is_taken_only_if_no_later_gap_speaks_against_it() {
        // A dip at two, and at three no more than at one: groups of groups.
        let dip = of(&[0.60, 0.55, 0.545, 0.7, 0.9, 1.2, 1.195, 1.23], 1, 8);
        assert!(dip.rises_again());
        assert_eq!(dip.taken(), 6);
        assert_eq!(of(&[0.60, 0.55, 0.7, 0.9], 1, 4).taken(), 4);
        let flat = of(&[0.60, 0.55, 0.605], 1, 1);
        assert!(!flat.rises_again());
        assert_eq!(flat.taken(), 1);
        // Where the rule says more than one, that is an answer.
        assert_eq!(of(&[0.1, 0.5, 0.5, 0.9], 2, 4).taken(), 2);
        assert_eq!(of(&[0.1], 1, 1).taken(), 1);
    }
}
