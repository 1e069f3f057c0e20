use super::super::clusters::ClusterOptions;
use super::super::gap_statistic::{GapCurve, gap_curve};
use super::*;
use crate::random::RandomStream;

/// The rows as points. `PointSet` rotates, centres and scales them, which keeps ratios of distances.
pub(super) fn point_set(rows: &[Vec<f32>]) -> PointSet {
    let width = rows[0].len();
    let mut identity = vec![0.0; width * width];
    (0..width).for_each(|j| identity[j * width + j] = 1.0);
    PointSet::new(
        rows.len(),
        &identity,
        width,
        |i, to| to.copy_from_slice(&rows[i]),
        &(),
    )
    .unwrap()
}

/// Points with Gaussian noise around centres; point `i` belongs to centre `i` modulo their number.
pub(super) fn blobs(
    centres: &[[f32; 2]],
    per_centre: usize,
    noise: f64,
    seed: u64,
) -> Vec<Vec<f32>> {
    let mut s = RandomStream::new(&[seed]);
    let mut rows = Vec::new();
    for i in 0..per_centre * centres.len() {
        let c = centres[i % centres.len()];
        let x = |j: usize, s: &mut RandomStream| c[j] + (noise * s.standard_normal()) as f32;
        rows.push(vec![x(0, &mut s), x(1, &mut s)]);
    }
    rows
}

fn best_clustering(points: &PointSet, k: usize, restarts: usize, threads: usize) -> Clustering {
    let pool = ThreadPool::new(threads, false, 0);
    let runner = KMeansRunner {
        pool: &pool,
        restarts,
        phase: "",
    };
    let task = KMeansTask {
        points,
        k,
        stream_key: [1, 2, 3],
        tolerance: 0.0,
    };
    runner.best_of_restarts(&[task], |f| f).unwrap().remove(0)
}

fn gaps(points: &PointSet, max_k: usize, threads: usize) -> GapCurve {
    let pool = ThreadPool::new(threads, false, 0);
    let runner = KMeansRunner {
        pool: &pool,
        restarts: 3,
        phase: "",
    };
    gap_curve(points, max_k, 8, 5, &runner).unwrap()
}

/// Sum of squares of value `j` of some points around their mean.
fn sum_of_squares(rows: &[Vec<f32>], members: &[usize], j: usize) -> f64 {
    let x = |i: &usize| f64::from(rows[*i][j]);
    let mean = members.iter().map(x).sum::<f64>() / members.len().max(1) as f64;
    members.iter().map(|i| (x(i) - mean).powi(2)).sum()
}

/// The smallest within-cluster sum of squares over all partitions into `k` clusters.
fn smallest_within(rows: &[Vec<f32>], k: usize) -> f64 {
    let (n, width) = (rows.len(), rows[0].len());
    let mut smallest = f64::INFINITY;
    for code in 0..k.pow(n as u32) {
        let cluster = |i: usize| code / k.pow(i as u32) % k;
        let mut sum = 0.0;
        for c in 0..k {
            let members: Vec<usize> = (0..n).filter(|&i| cluster(i) == c).collect();
            sum += (0..width)
                .map(|j| sum_of_squares(rows, &members, j))
                .sum::<f64>();
        }
        smallest = smallest.min(sum);
    }
    smallest
}

#[test]
fn the_best_of_all_partitions_of_a_few_points_is_found() {
    for seed in 0..6 {
        let mut s = RandomStream::new(&[seed, 77]);
        let rows: Vec<Vec<f32>> = (0..8)
            .map(|_| vec![s.standard_normal() as f32, s.standard_normal() as f32])
            .collect();
        let points = point_set(&rows);
        // One cluster gives the scale of the point set.
        let unit = smallest_within(&rows, 1) / best_clustering(&points, 1, 1, 1).within;
        for k in 2..4 {
            let found = best_clustering(&points, k, 40, 2);
            let expected = smallest_within(&rows, k);
            assert!(
                (found.within * unit / expected - 1.0).abs() < 1e-5,
                "{k}: {} {expected}",
                found.within * unit
            );
        }
    }
}

#[test]
fn planted_clusters_are_found_for_any_number_of_threads() {
    let centres = [[0.0, 0.0], [9.0, 1.0], [1.0, 8.0], [9.0, 9.0]];
    // Few points, where threads take whole runs, and enough chunks that threads share a run.
    for per_centre in [50, 20_000] {
        let rows = blobs(&centres, per_centre, 0.7, 4);
        let points = point_set(&rows);
        let one = best_clustering(&points, 4, 4, 1);
        for i in 0..rows.len() {
            assert_eq!(one.assignments[i], one.assignments[i % 4], "{i}");
        }
        assert_eq!(one.sizes, vec![per_centre as u64; 4]);
        for threads in [2, 3, 7] {
            let more = best_clustering(&points, 4, 4, threads);
            assert_eq!(more.assignments, one.assignments);
            assert_eq!(more.within.to_bits(), one.within.to_bits());
            let bits = |f: &Clustering| f.centres.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&more), bits(&one));
        }
    }
    for count in 1..=4 {
        let rows = blobs(&centres[..count], 60, 0.6, 9);
        let points = point_set(&rows);
        let curve = gaps(&points, 7, 1);
        assert_eq!(
            (curve.chosen, curve.is_conclusive),
            (count, true),
            "{curve:?}"
        );
        assert_eq!(gaps(&points, 7, 3), curve);
    }
}

#[test]
fn many_clusters_are_found_with_the_default_restarts_and_mostly_with_one() {
    let centres: Vec<[f32; 2]> = (0..24)
        .map(|g| [(g % 6) as f32 * 8.0, (g / 6) as f32 * 8.0])
        .collect();
    let mut found_by_one_run = 0;
    for seed in 0..12 {
        let points = point_set(&blobs(&centres, 40, 1.0, seed));
        // Whether each group is a cluster, up to two of its points.
        let is_found = |restarts: usize| {
            let assignments = best_clustering(&points, 24, restarts, 2).assignments;
            let mut clusters: Vec<Option<u32>> = (0..24)
                .map(|g| {
                    let group = assignments.iter().skip(g).step_by(24).copied();
                    let group: Vec<u32> = group.collect();
                    let has_most = |c: &u32| group.iter().filter(|x| *x == c).count() > 37;
                    group.iter().copied().find(has_most)
                })
                .collect();
            clusters.sort_unstable();
            clusters.dedup();
            clusters.len() == 24 && clusters.iter().all(Option::is_some)
        };
        assert!(is_found(ClusterOptions::new(0).restarts), "{seed}");
        found_by_one_run += usize::from(is_found(1));
    }
    // With a single candidate per centre it would be one of twelve.
    assert!(found_by_one_run >= 7, "{found_by_one_run}");
}

#[test]
fn there_are_no_more_clusters_than_distinct_points() {
    let same = point_set(&vec![vec![3.0f32, -1.0]; 20]);
    let found = best_clustering(&same, 5, 3, 2);
    assert_eq!((found.sizes, found.within), (vec![20], 0.0));
    let curve = gaps(&same, 5, 1);
    assert_eq!(
        (curve.points.len(), curve.chosen, curve.is_conclusive),
        (1, 1, true)
    );
    assert!(curve.points[0].gap.abs() < 1e-9);
    let one = point_set(&[vec![1.0f32]]);
    assert_eq!(best_clustering(&one, 4, 2, 1).sizes, vec![1]);
    assert_eq!(gaps(&one, 4, 1).chosen, 1);
    // Three distinct points, ten times each.
    let three: Vec<Vec<f32>> = (0..30).map(|i| vec![(i % 3) as f32, 0.5]).collect();
    let three = point_set(&three);
    let found = best_clustering(&three, 10, 3, 2);
    assert_eq!((found.sizes.len(), found.within), (3, 0.0));
    let curve = gaps(&three, 10, 1);
    assert_eq!(curve.points.len(), 3);
    // The sum of squares is 0 for three clusters, and its logarithm must still be finite.
    assert!(curve.points[2].gap > curve.points[1].gap + 5.0);
    assert!(curve.points.iter().all(|p| p.gap.is_finite()));
}
