//! The number of clusters, by the gap statistic (Tibshirani, Walther and Hastie 2001).
//!
//! Let W_k be the within-cluster sum of squares of k clusters. The gap is the mean of ln W_k over B reference sets, which
//! are uniform in the bounding box of the data along its principal axes, minus ln W_k of the data. With the standard
//! error s_k of the reference mean, the chosen k is the smallest one with gap(k) >= gap(k + 1) - s_(k+1).

use super::kmeans::{KMeansRunner, KMeansTask, PointSet};
use crate::error::Result;
use crate::memory::require_memory;
use crate::random::RandomStream;
use crate::try_alloc::try_with_capacity;

/// Purposes of random streams.
const REFERENCE_STREAM: u64 = 0x6761_7001;
const CURVE_STREAM: u64 = 0x6761_7002;

/// The smallest sum of squares, as a fraction of that of one cluster, so that its logarithm is finite.
const MIN_WITHIN_FRACTION: f64 = 1e-12;

/// The tolerance of k-means runs. It is far below the standard errors of gaps; on uniform points, runs to a smaller
/// tolerance take many more iterations.
const TOLERANCE: f64 = 1e-4;

/// The gap for one number of clusters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GapPoint {
    /// The number of clusters.
    pub k: usize,
    /// ln W_k, the logarithm of the within-cluster sum of squares.
    pub log_within: f64,
    /// The mean of ln W_k over the reference sets.
    pub reference: f64,
    /// The gap: `reference` - `log_within`.
    pub gap: f64,
    /// s_k, the standard error of the gap: the standard deviation over the reference sets times sqrt(1 + 1/B).
    pub error: f64,
}

/// The gaps for 1, 2, 3, ... clusters.
#[derive(Debug, Clone, PartialEq)]
pub struct GapCurve {
    /// The gaps, by ascending k.
    pub points: Vec<GapPoint>,
    /// The smallest k with gap(k) >= gap(k + 1) - s_(k+1); the last k if there is none.
    pub chosen: usize,
    /// Whether such a k exists. If not, more clusters than were tried may have a larger gap.
    pub is_conclusive: bool,
    /// The smallest k whose gap is within one standard error of the largest gap. It exceeds `chosen` if the curve falls
    /// at first and rises again, as for clusters that consist of clusters.
    pub largest: usize,
    /// The number of rows that the curve was computed on.
    pub rows: usize,
}

impl GapCurve {
    /// Whether a later gap exceeds that of `chosen` by more than its standard error.
    pub fn rises_again(&self) -> bool {
        self.largest > self.chosen
    }

    /// The recommended number of clusters.
    ///
    /// It is `chosen`, unless `chosen` is 1 and the curve rises again. Then the same rule is applied to those k whose gap
    /// exceeds that of one cluster by more than their standard error; the last k if no such k satisfies it.
    pub fn recommended(&self) -> usize {
        if self.chosen > 1 || !self.rises_again() {
            return self.chosen;
        }
        let one_cluster = self.points[0].gap;
        let pairs = self.points.windows(2);
        let mut above = pairs.filter(|w| w[0].gap - w[0].error > one_cluster);
        let stop = above.find(|w| satisfies_rule(w));
        stop.map_or(self.points.len(), |w| w[0].k)
    }
}

/// Whether the first of two consecutive points satisfies the rule of Tibshirani et al.
fn satisfies_rule(pair: &[GapPoint]) -> bool {
    pair[0].gap >= pair[1].gap - pair[1].error
}

/// Computes the gaps for up to `max_k` clusters against `reference_sets` uniform reference sets. There are no more
/// clusters than distinct points.
pub(super) fn gap_curve(
    points: &PointSet,
    max_k: usize,
    reference_sets: usize,
    seed: u64,
    runner: &KMeansRunner<'_>,
) -> Result<GapCurve> {
    let max_k = max_k.min(points.count).max(1);
    require_memory(
        reference_sets as f64 * points.bytes() as f64,
        "the reference sets of the gap statistic need",
        "ask for fewer of them, or for a curve on fewer rows",
    )?;
    let mut references = try_with_capacity(reference_sets, "reference sets")?;
    for b in 0..reference_sets as u64 {
        let mut stream = RandomStream::new(&[seed, REFERENCE_STREAM, b]);
        references.push(points.uniform_reference(&mut stream)?);
    }
    let mut tasks = Vec::new();
    for set in 0..=reference_sets {
        for k in 1..=max_k {
            tasks.push(KMeansTask {
                points: if set == 0 {
                    points
                } else {
                    &references[set - 1]
                },
                k,
                stream_key: [seed, CURVE_STREAM, set as u64],
                tolerance: TOLERANCE,
            });
        }
    }
    let results = runner.best_of_restarts(&tasks, |clustering| RunSummary {
        within: clustering.within,
        clusters: clustering.sizes.len(),
    })?;
    let logs: Vec<Vec<f64>> = results.chunks_exact(max_k).map(log_within).collect();
    let nonempty = results[..max_k].iter().filter(|r| r.clusters > 0);
    let max_k = nonempty.map(|r| r.clusters).max().unwrap_or(1);
    let point = |k: usize| {
        let reference_logs = || logs[1..].iter().map(|set| set[k]);
        let count = reference_sets as f64;
        let mean = reference_logs().sum::<f64>() / count;
        let variance = reference_logs()
            .map(|x| (x - mean) * (x - mean))
            .sum::<f64>()
            / count;
        GapPoint {
            k: k + 1,
            log_within: logs[0][k],
            reference: mean,
            gap: mean - logs[0][k],
            error: (variance * (1.0 + 1.0 / count)).sqrt(),
        }
    };
    let curve: Vec<GapPoint> = (0..max_k).map(point).collect();
    let chosen = curve.windows(2).find(|w| satisfies_rule(w));
    let largest_gap = curve.iter().max_by(|a, b| a.gap.total_cmp(&b.gap));
    let bound = largest_gap.map_or(0.0, |p| p.gap - p.error);
    let largest = curve.iter().find(|p| p.gap >= bound).map_or(1, |p| p.k);
    Ok(GapCurve {
        largest,
        chosen: chosen.map_or(curve.len(), |w| w[0].k),
        // If all points are equal, one cluster is the only choice.
        is_conclusive: chosen.is_some() || max_k < 2,
        points: curve,
        rows: points.count,
    })
}

/// The part of a clustering that the curve needs.
struct RunSummary {
    within: f64,
    clusters: usize,
}

/// Returns ln W_k of the runs of one set of points.
fn log_within(runs: &[RunSummary]) -> Vec<f64> {
    let smallest = (MIN_WITHIN_FRACTION * runs[0].within).max(f64::MIN_POSITIVE);
    runs.iter().map(|r| r.within.max(smallest).ln()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(gaps: &[f64], chosen: usize, largest: usize) -> GapCurve {
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
            is_conclusive: true,
            largest,
            rows: 100,
        }
    }

    #[test]
    fn one_cluster_is_recommended_only_if_the_curve_does_not_rise_again() {
        // Clusters of clusters: the gap falls at two and three.
        let dip = curve(&[0.60, 0.55, 0.545, 0.7, 0.9, 1.2, 1.195, 1.23], 1, 8);
        assert!(dip.rises_again());
        assert_eq!(dip.recommended(), 6);
        assert_eq!(curve(&[0.60, 0.55, 0.7, 0.9], 1, 4).recommended(), 4);
        let flat = curve(&[0.60, 0.55, 0.605], 1, 1);
        assert!(!flat.rises_again());
        assert_eq!(flat.recommended(), 1);
        // A choice above 1 stands, even if the curve rises again.
        assert_eq!(curve(&[0.1, 0.5, 0.5, 0.9], 2, 4).recommended(), 2);
        assert_eq!(curve(&[0.1], 1, 1).recommended(), 1);
    }
}
