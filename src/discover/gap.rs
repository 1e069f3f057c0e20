//! How many clusters there are: the gap statistic of Tibshirani, Walther and Hastie.

use super::kmeans::{Run, Work};
use super::points::Points;
use crate::error::Result;
use crate::random::Stream;

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
    /// How many rows it was measured on.
    pub rows: usize,
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
    let even = (0..references as u64).map(|b| points.even(&mut Stream::new(&[seed, EVEN, b])));
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
    let settled = list.windows(2).find(|w| w[0].gap >= w[1].gap - w[1].error);
    Ok(GapCurve {
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
