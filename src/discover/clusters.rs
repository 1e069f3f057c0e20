//! k-means clusters of the rows of a mode, with their members and labels.

use super::cluster_points::{ClusterSpace, cluster_points};
use super::compatibility::{check_label_matrix, check_same_data};
use super::enrichment::{ClusteredRows, Label, enrichment};
use super::gap_statistic::{GapCurve, gap_curve};
use super::kmeans::{Clustering, KMeansRunner, KMeansTask, PointSet};
use super::model_rows::check_mode;
use crate::error::{Error, Result};
use crate::format::{CooView, for_each_valid_batch};
use crate::model::Model;
use crate::parallel::{ThreadPool, thread_count};
use crate::progress::Monitor;
use crate::random::RandomStream;
use crate::sort::stable_sort_by_key;
use crate::try_alloc::try_with_capacity;

/// The largest k of the gap curve, unless [`ClusterOptions::max_k`] is given.
const DEFAULT_MAX_K: usize = 20;

/// The largest number of clusters, and the largest k of the gap curve, whose cost grows with the square of it.
const MAX_CLUSTERS: usize = 10_000;
const MAX_CURVE_CLUSTERS: usize = 1_000;

/// The largest number of k-means runs and of reference sets.
const MAX_RUNS: usize = 1_000;

/// The largest number of rows for the gap curve. Each reference set has as many.
const MAX_CURVE_ROWS: usize = 1_000_000;

/// The tolerance of the final k-means runs. Rows without cluster structure would otherwise move for hundreds of iterations.
const TOLERANCE: f64 = 1e-5;

/// Purposes of random streams.
const SUBSAMPLE_STREAM: u64 = 0x636c_7501;
const CLUSTERING_STREAM: u64 = 0x636c_7502;

/// Options of [`cluster_rows`].
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterOptions {
    /// The mode whose rows are clustered, counted from 0.
    pub mode: usize,
    /// The number of clusters, up to 10,000; without it, the gap statistic chooses ([`GapCurve::recommended`]).
    pub k: Option<usize>,
    /// The largest k of the gap curve, up to 1,000; 20 by default. With `k` and without `max_k` there is no gap curve.
    pub max_k: Option<usize>,
    /// The number of k-means runs, of which the best is taken, up to 1,000.
    pub restarts: usize,
    /// The number of reference sets of the gap statistic, up to 1,000.
    pub reference_sets: usize,
    /// The largest number of rows for the gap curve, up to 1,000,000. More rows are subsampled.
    pub curve_rows: usize,
    /// The smallest number of tensor entries of a clustered row.
    pub min_entries: u64,
    /// The distances between rows.
    pub space: ClusterSpace,
    /// The largest number of members listed per cluster.
    pub max_members: usize,
    /// The largest number of labels listed per cluster and matrix.
    pub max_labels: usize,
    /// The seed of all random choices.
    pub seed: u64,
    /// The number of threads; 0 means all that this process may use. Results do not depend on it.
    pub threads: usize,
}

impl ClusterOptions {
    /// Returns the default options.
    pub fn new(mode: usize) -> ClusterOptions {
        ClusterOptions {
            mode,
            k: None,
            max_k: None,
            restarts: 10,
            reference_sets: 10,
            curve_rows: 20_000,
            min_entries: 1,
            space: ClusterSpace::Predictions,
            max_members: 10,
            max_labels: 5,
            seed: 0,
            threads: 0,
        }
    }

    /// Checks the numbers, which decide how much is computed and allocated.
    fn check(&self) -> Result<()> {
        let numbers = [
            ("k", self.k.unwrap_or(1), MAX_CLUSTERS),
            ("max_k", self.max_k.unwrap_or(1), MAX_CURVE_CLUSTERS),
            ("restarts", self.restarts, MAX_RUNS),
            ("references", self.reference_sets, MAX_RUNS),
            ("curve_rows", self.curve_rows, MAX_CURVE_ROWS),
        ];
        for (name, number, max) in numbers {
            Error::check_range(name, number, 1..=max)?;
        }
        thread_count(self.threads).map(|_| ())
    }
}

/// A row of a cluster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Member {
    /// The row, counted from 0.
    pub index: u32,
    /// Its distance to the centre, in units of the root mean square distance of all rows to their mean.
    pub distance: f64,
}

/// A cluster of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// The number of its rows.
    pub size: u64,
    /// The root mean square distance of its rows to the centre, in the unit of [`Member::distance`].
    pub radius: f64,
    /// The mean of its factor rows.
    pub centre: Vec<f64>,
    /// The rows nearest to the centre, the nearest first.
    pub members: Vec<Member>,
    /// The over-represented labels, by matrix and then by ascending p-value.
    pub labels: Vec<Label>,
}

/// The clusters of the rows of a mode.
#[derive(Debug, Clone, PartialEq)]
pub struct Clusters {
    /// The mode, counted from 0.
    pub mode: usize,
    /// The clustered rows, ascending.
    pub rows: Vec<u32>,
    /// The cluster of each row.
    pub assignments: Vec<u32>,
    /// The clusters, the largest first. There are fewer than requested if there are fewer distinct rows.
    pub clusters: Vec<Cluster>,
    /// The between-cluster fraction of the total variance of the rows.
    pub explained_variance: f64,
    /// For each label matrix, the uncertainty coefficient of its labels given the clusters (Theil's U): mutual information
    /// divided by entropy, both summed over columns.
    pub uncertainty_coefficients: Vec<f64>,
    /// The gap curve, if it was computed.
    pub gap: Option<GapCurve>,
}

/// Clusters the rows of a mode by k-means with greedy k-means++ seeding.
///
/// The rows are those of the model with at least `min_entries` tensor entries. In a model with posterior samples they are
/// the rows of the last sample.
///
/// `labels` are matrices whose first mode has the rows of the clustered mode, such as the matrices of the fit. A row has
/// the label of a column if its entry there is above 0. Entries are validated. A matrix with inferred sizes may have fewer rows than the mode.
/// The result depends on the seed and not on the number of threads.
pub fn cluster_rows(
    model: &Model,
    options: &ClusterOptions,
    labels: &[CooView<'_>],
    monitor: &dyn Monitor,
) -> Result<Clusters> {
    check_mode(model, options.mode)?;
    for view in labels {
        check_label_matrix(model, options.mode, view)?;
        for_each_valid_batch(view, monitor, "checking labels", &mut |_, _| Ok(()))?;
    }
    cluster_checked(model, options, labels, monitor)
}

/// Clusters the rows of a mode of two models with the same options, to compare them.
///
/// Both models are of the same data; one may have been fitted without matrices. Each mode has the same size in both, or
/// the same rows have tensor entries in both (a matrix may add rows that the tensor does not have). `labels` have the rows
/// of `model`.
pub fn compare_clusterings(
    model: &Model,
    other: &Model,
    options: &ClusterOptions,
    labels: &[CooView<'_>],
    monitor: &dyn Monitor,
) -> Result<(Clusters, Clusters)> {
    check_same_data(model, other)?;
    let found = cluster_rows(model, options, labels, monitor)?;
    Ok((found, cluster_checked(other, options, labels, monitor)?))
}

fn cluster_checked(
    model: &Model,
    options: &ClusterOptions,
    labels: &[CooView<'_>],
    monitor: &dyn Monitor,
) -> Result<Clusters> {
    let mode = options.mode;
    options.check()?;
    let own = &model.modes()[mode];
    let chosen = (0u32..)
        .zip(own.rows.indices())
        .filter(|&(r, _)| own.counts[r as usize] >= options.min_entries);
    let (compact, rows): (Vec<u32>, Vec<u32>) = chosen.unzip();
    if rows.is_empty() {
        return Err(Error::argument(format!(
            "no row of mode {} has {} tensor entries; the model has {} rows of it",
            mode + 1,
            options.min_entries,
            own.rows.len()
        )));
    }
    let points = cluster_points(model, mode, options.space, &compact, monitor)?;
    let (mut clustering, gap) = run_kmeans(&points, options, monitor)?;
    sort_by_size(&mut clustering, points.width);
    let assignments = &clustering.assignments;
    let mut clusters = clusters_with_means(model, mode, &compact, &clustering);
    let total = describe_members(&mut clusters, &points, &rows, &clustering, options);
    let mut positions: Vec<Option<u32>> = try_with_capacity(own.rows.len(), "rows")?;
    positions.resize(own.rows.len(), None);
    (0u32..)
        .zip(&compact)
        .for_each(|(i, &r)| positions[r as usize] = Some(i));
    let clustered = ClusteredRows {
        rows: &own.rows,
        positions: &positions,
        assignments,
        sizes: &clustering.sizes,
    };
    let mut uncertainty_coefficients = Vec::new();
    for (m, view) in labels.iter().enumerate() {
        let found = enrichment(view, m, options.max_labels, &clustered, monitor)?;
        for (cluster, labels) in clusters.iter_mut().zip(found.labels) {
            cluster.labels.extend(labels);
        }
        uncertainty_coefficients.push(found.uncertainty_coefficient);
    }
    Ok(Clusters {
        mode,
        rows,
        assignments: clustering.assignments,
        clusters,
        explained_variance: if total > 0.0 {
            (1.0 - clustering.within / total).max(0.0)
        } else {
            0.0
        },
        uncertainty_coefficients,
        gap,
    })
}

/// Computes the gap curve, unless only `k` is given, and the best clustering.
fn run_kmeans(
    points: &PointSet,
    options: &ClusterOptions,
    monitor: &dyn Monitor,
) -> Result<(Clustering, Option<GapCurve>)> {
    let pool = ThreadPool::new(thread_count(options.threads)?, false, 0).with_monitor(monitor);
    let runner = |phase| KMeansRunner {
        pool: &pool,
        restarts: options.restarts,
        phase,
    };
    let seed = options.seed;
    let gap = match (options.k, options.max_k) {
        (Some(_), None) => None,
        (_, max_k) => {
            let mut stream = RandomStream::new(&[seed, SUBSAMPLE_STREAM]);
            let subsample = points.subsample(options.curve_rows, &mut stream)?;
            Some(gap_curve(
                &subsample,
                max_k.unwrap_or(DEFAULT_MAX_K),
                options.reference_sets,
                seed,
                &runner("gap curve"),
            )?)
        }
    };
    let recommended = gap.as_ref().map(GapCurve::recommended);
    let k = options.k.or(recommended).unwrap_or(1);
    let task = KMeansTask {
        points,
        k: k.min(points.count),
        stream_key: [seed, CLUSTERING_STREAM, 0],
        tolerance: TOLERANCE,
    };
    let best = runner("clustering").best_of_restarts(&[task], |clustering| clustering)?;
    match best.into_iter().next() {
        Some(clustering) => Ok((clustering, gap)),
        None => Err(Error::Cancelled),
    }
}

/// Renumbers the clusters by descending size; of equal ones, that with the first row comes first.
fn sort_by_size(clustering: &mut Clustering, width: usize) {
    let sizes = &clustering.sizes;
    let mut first_row = vec![usize::MAX; sizes.len()];
    for (i, &cluster) in clustering.assignments.iter().enumerate().rev() {
        first_row[cluster as usize] = i;
    }
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    stable_sort_by_key(&mut order, &|&c| {
        (std::cmp::Reverse(sizes[c]), first_row[c])
    });
    let mut new_number = vec![0u32; order.len()];
    (0u32..)
        .zip(&order)
        .for_each(|(new, &old)| new_number[old] = new);
    for cluster in &mut clustering.assignments {
        *cluster = new_number[*cluster as usize];
    }
    let centres = order
        .iter()
        .flat_map(|&c| &clustering.centres[c * width..(c + 1) * width]);
    let (centres, sizes) = (centres.copied().collect(), order.iter().map(|&c| sizes[c]));
    clustering.sizes = sizes.collect();
    clustering.centres = centres;
}

/// Returns the clusters with their sizes and the means of their factor rows.
fn clusters_with_means(
    model: &Model,
    mode: usize,
    rows: &[u32],
    clustering: &Clustering,
) -> Vec<Cluster> {
    let rank = model.shape().ranks()[mode];
    let mut clusters: Vec<Cluster> = clustering
        .sizes
        .iter()
        .map(|&size| Cluster {
            size,
            radius: 0.0,
            centre: vec![0.0; rank],
            members: Vec::new(),
            labels: Vec::new(),
        })
        .collect();
    for (&row, &cluster) in rows.iter().zip(&clustering.assignments) {
        let cluster = &mut clusters[cluster as usize];
        let values = model.modes()[mode].factor.row(row as usize);
        let add = |(c, &x): (&mut f64, &f32)| *c += f64::from(x);
        cluster.centre.iter_mut().zip(values).for_each(add);
    }
    for cluster in &mut clusters {
        let size = cluster.size.max(1) as f64;
        cluster.centre.iter_mut().for_each(|c| *c /= size);
    }
    clusters
}

/// Sets the radius and the nearest members of each cluster. Returns the total sum of squares: of the distances of all rows
/// to their mean, which is the origin.
fn describe_members(
    clusters: &mut [Cluster],
    points: &PointSet,
    rows: &[u32],
    clustering: &Clustering,
    options: &ClusterOptions,
) -> f64 {
    let mut members: Vec<Vec<Member>> = vec![Vec::new(); clusters.len()];
    let (mut total, origin) = (0.0, vec![0.0; points.width]);
    for (i, (&c, &index)) in clustering.assignments.iter().zip(rows).enumerate() {
        let centre = &clustering.centres[c as usize * points.width..];
        let square = points.squared_distance(i, centre);
        total += points.squared_distance(i, &origin);
        clusters[c as usize].radius += square;
        members[c as usize].push(Member {
            index,
            distance: square.sqrt(),
        });
    }
    for (cluster, mut members) in clusters.iter_mut().zip(members) {
        cluster.radius = (cluster.radius / cluster.size as f64).sqrt();
        members.sort_unstable_by(|a, b| {
            let by_distance = a.distance.total_cmp(&b.distance);
            by_distance.then(a.index.cmp(&b.index))
        });
        members.truncate(options.max_members);
        cluster.members = members;
    }
    total
}
