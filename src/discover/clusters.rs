//! Rows of a mode in clusters.
//!
//! What distances mean: as for likeness, rows are what they predict. The squared distance of two rows is the mean
//! squared difference of what they predict for the cells of the tensor, without biases, over the variance of that among
//! the rows, and the same is added for each coupled matrix of the mode. So however a model is written, distances are
//! the same, and a matrix counts as much as the tensor. With u M u^T the mean square of what a row u predicts for a
//! part, and S the covariance of the rows, the metric is the sum over parts of M / tr(M S).

use super::check_mode;
use super::compatibility::{check_rows, check_same_data};
use super::enrichment::{Label, enrich};
use super::gap::{GapCurve, curve};
use super::kmeans::{Run, Work};
use super::layer::Layer;
use super::metric::metric;
use super::points::Points;
use crate::error::{Error, Result};
use crate::format::CooView;

use crate::linalg::{Eigen, symmetric_eigen};
use crate::model::Model;
use crate::parallel::{ThreadPool, available_threads};
use crate::progress::Monitor;
use crate::random::RandomStream;
use crate::try_alloc::try_with_capacity;

/// How many clusters are looked at if nothing is said.
const MOST: usize = 20;

/// Steps end when they gain less than this: rows without clusters would move for hundreds of them.
const ENOUGH: f64 = 1e-5;

/// What random numbers are for.
const SOME: u64 = 0x636c_7501;
const FINAL: u64 = 0x636c_7502;

/// What distances between rows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Space {
    /// Those of what rows predict, for the tensor and for the matrices of their mode.
    #[default]
    Predictions,
    /// Those of the numbers of the factor, its columns brought to the same norm, as in the paper.
    Columns,
}

/// How to cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterOptions {
    /// The mode whose rows are clustered, counted from 0.
    pub mode: usize,
    /// How many clusters; without it the gap statistic chooses, see [`GapCurve::taken`].
    pub k: Option<usize>,
    /// The most clusters of the gap curve, which there is if this or no `k` is given; by default 20.
    pub max_k: Option<usize>,
    /// How often k-means starts anew; the best result counts.
    pub restarts: usize,
    /// How many reference sets the gap curve has.
    pub references: usize,
    /// The gap curve is measured on so many rows, drawn by the seed, if there are more.
    pub curve_rows: usize,
    /// The least number of tensor entries of a row that counts.
    pub least: u64,
    /// What distances are.
    pub space: Space,
    /// How many members of each cluster to give, the nearest to its centre first.
    pub members: usize,
    /// How many labels of each cluster to give for each matrix.
    pub labels: usize,
    /// For all random choices.
    pub seed: u64,
    /// 0 means all this process may use; results do not depend on the number.
    pub threads: usize,
}

impl ClusterOptions {
    /// What is usual.
    pub fn new(mode: usize) -> ClusterOptions {
        ClusterOptions {
            mode,
            k: None,
            max_k: None,
            restarts: 10,
            references: 10,
            curve_rows: 20_000,
            least: 1,
            space: Space::Predictions,
            members: 10,
            labels: 5,
            seed: 0,
            threads: 0,
        }
    }

    fn check(&self) -> Result<()> {
        let numbers = [
            (self.k.unwrap_or(1), "k"),
            (self.max_k.unwrap_or(1), "max_k"),
            (self.restarts, "restarts"),
            (self.references, "references"),
            (self.curve_rows, "curve_rows"),
        ];
        match numbers.iter().find(|(n, _)| *n == 0) {
            Some((_, what)) => Err(Error::argument(format!(
                "{what} is 0; it must be at least 1"
            ))),
            None => Ok(()),
        }
    }
}

/// A row of a cluster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Member {
    /// The row, counted from 0.
    pub index: u32,
    /// Its distance to the centre; 1 is the root mean square distance of all rows to their mean.
    pub distance: f64,
}

/// A cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// How many rows it has.
    pub size: u64,
    /// The root mean square distance of its rows to the centre, in the unit of [`Member::distance`].
    pub radius: f64,
    /// The mean of its rows in the factor.
    pub centre: Vec<f64>,
    /// The rows nearest to the centre, the nearest first.
    pub members: Vec<Member>,
    /// What it has more of than all rows, by matrix and then by p-value.
    pub labels: Vec<Label>,
}

/// The rows of a mode in clusters.
#[derive(Debug, Clone, PartialEq)]
pub struct Clusters {
    /// The mode, counted from 0.
    pub mode: usize,
    /// The rows that were clustered, ascending.
    pub rows: Vec<u32>,
    /// The cluster of each.
    pub which: Vec<u32>,
    /// The clusters, the largest first; fewer than were asked for if there are fewer different rows.
    pub clusters: Vec<Cluster>,
    /// The share of the variance of rows that is between clusters.
    pub explained: f64,
    /// For each matrix of labels how much of it the cluster of a row tells: mutual information over entropy, added up
    /// over columns.
    pub information: Vec<f64>,
    /// The gaps, if they were measured.
    pub gap: Option<GapCurve>,
}

/// Clusters the rows of a mode by k-means, seeded by greedy k-means++. Rows are those that the model knows with at least
/// `least` tensor entries. For a model of samples they are those of its last draw.
///
/// `labels` are matrices whose first mode is that of the rows, such as those the model was fitted with; a row has a
/// column if it has an entry above 0 there. They have as many rows as the mode; where their sizes are but the largest
/// indices they may have fewer. Results depend on the seed alone.
pub fn clusters(
    model: &Model,
    options: &ClusterOptions,
    labels: &[CooView<'_>],
    monitor: &dyn Monitor,
) -> Result<Clusters> {
    check_mode(model, options.mode)?;
    for view in labels {
        check_rows(model, options.mode, view)?;
    }
    find(model, options, labels, monitor)
}

/// Clusters the rows of a mode of two models alike, to compare them. Both are of the same data, one of them fitted
/// without matrices perhaps: their modes have the same sizes, or else the same rows have tensor entries in both (a
/// matrix may know rows that the tensor does not have). `labels` have the rows of `model`.
pub fn compare(
    model: &Model,
    other: &Model,
    options: &ClusterOptions,
    labels: &[CooView<'_>],
    monitor: &dyn Monitor,
) -> Result<(Clusters, Clusters)> {
    check_same_data(model, other)?;
    let found = clusters(model, options, labels, monitor)?;
    Ok((found, find(other, options, labels, monitor)?))
}

fn find(
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
        .filter(|&(r, _)| own.counts[r as usize] >= options.least);
    let (compact, rows): (Vec<u32>, Vec<u32>) = chosen.unzip();
    if rows.is_empty() {
        return Err(Error::argument(format!(
            "no row of mode {} has {} tensor entries; the model has {} rows of it",
            mode + 1,
            options.least,
            own.rows.len()
        )));
    }
    let points = points(model, mode, options.space, &compact)?;
    let threads = match options.threads {
        0 => available_threads(),
        t => t,
    };
    let pool = ThreadPool::new(threads, false, 0);
    let work = |phase| Work {
        pool: &pool,
        restarts: options.restarts,
        phase,
        monitor,
    };
    let seed = options.seed;
    let gap = match (options.k, options.max_k) {
        (Some(_), None) => None,
        (_, most) => {
            let some = points.some(options.curve_rows, &mut RandomStream::new(&[seed, SOME]))?;
            let counts = (most.unwrap_or(MOST), options.references);
            Some(curve(&some, counts, seed, &work("gap curve"))?)
        }
    };
    let wanted = options.k.or(gap.as_ref().map(GapCurve::taken)).unwrap_or(1);
    let run = Run {
        points: &points,
        k: wanted.min(points.count),
        name: [seed, FINAL, 0],
        enough: ENOUGH,
    };
    let found = work("clustering").best(&[run], |found| found)?;
    let Some(found) = found.into_iter().next() else {
        return Err(Error::Cancelled);
    };
    // The largest first, and of equal ones that with the first row.
    let mut first = vec![usize::MAX; found.sizes.len()];
    for (i, &w) in found.which.iter().enumerate().rev() {
        first[w as usize] = i;
    }
    let mut order: Vec<usize> = (0..found.sizes.len()).collect();
    order.sort_by_key(|&c| (std::cmp::Reverse(found.sizes[c]), first[c]));
    let mut number = vec![0u32; order.len()];
    (0u32..)
        .zip(&order)
        .for_each(|(new, &old)| number[old] = new);
    let which: Vec<u32> = found.which.iter().map(|&w| number[w as usize]).collect();
    let mut list = describe(model, mode, &compact, &which, order.len());
    let mut near: Vec<Vec<Member>> = vec![Vec::new(); order.len()];
    let (mut total, mean) = (0.0, vec![0.0; points.width]);
    for (i, (&w, &index)) in which.iter().zip(&rows).enumerate() {
        let centre = &found.centres[order[w as usize] * points.width..];
        let square = points.distance(i, centre);
        total += points.distance(i, &mean);
        list[w as usize].radius += square;
        near[w as usize].push(Member {
            index,
            distance: square.sqrt(),
        });
    }
    for (cluster, mut near) in list.iter_mut().zip(near) {
        cluster.radius = (cluster.radius / cluster.size as f64).sqrt();
        near.sort_by(|a, b| {
            let by_distance = a.distance.total_cmp(&b.distance);
            by_distance.then(a.index.cmp(&b.index))
        });
        near.truncate(options.members);
        cluster.members = near;
    }
    let mut place: Vec<Option<u32>> = try_with_capacity(own.rows.len(), "rows")?;
    place.resize(own.rows.len(), None);
    (0u32..)
        .zip(&compact)
        .for_each(|(i, &r)| place[r as usize] = Some(i));
    let sizes: Vec<u64> = list.iter().map(|c| c.size).collect();
    let mut information = Vec::new();
    for (m, view) in labels.iter().enumerate() {
        let by = (m, options.labels);
        let found = enrich(view, by, (&own.rows, &place), (&which, &sizes))?;
        for (cluster, labels) in list.iter_mut().zip(found.labels) {
            cluster.labels.extend(labels);
        }
        information.push(found.information);
    }
    Ok(Clusters {
        mode,
        rows,
        which,
        clusters: list,
        explained: if total > 0.0 {
            (1.0 - found.within / total).max(0.0)
        } else {
            0.0
        },
        information,
        gap,
    })
}

/// Sizes and mean rows of clusters.
fn describe(model: &Model, mode: usize, rows: &[u32], which: &[u32], count: usize) -> Vec<Cluster> {
    let rank = model.shape().ranks[mode];
    let mut list: Vec<Cluster> = (0..count)
        .map(|_| Cluster {
            size: 0,
            radius: 0.0,
            centre: vec![0.0; rank],
            members: Vec::new(),
            labels: Vec::new(),
        })
        .collect();
    for (&row, &w) in rows.iter().zip(which) {
        let cluster = &mut list[w as usize];
        cluster.size += 1;
        let numbers = model.modes()[mode].factor.row(row as usize);
        let add = |(c, &x): (&mut f64, &f32)| *c += f64::from(x);
        cluster.centre.iter_mut().zip(numbers).for_each(add);
    }
    for cluster in &mut list {
        let size = cluster.size.max(1) as f64;
        cluster.centre.iter_mut().for_each(|c| *c /= size);
    }
    list
}

/// The rows as points whose distances are those wanted.
fn points(model: &Model, mode: usize, space: Space, rows: &[u32]) -> Result<Points> {
    let factor = &model.modes()[mode].factor;
    let rank = model.shape().ranks[mode];
    let frame = match space {
        Space::Predictions => by_predictions(model, mode, rows)?,
        Space::Columns => {
            let mut squares = vec![0.0f64; rank];
            for &row in rows {
                let add = |(s, &x): (&mut f64, &f32)| *s += f64::from(x) * f64::from(x);
                squares
                    .iter_mut()
                    .zip(factor.row(row as usize))
                    .for_each(add);
            }
            let mut frame = vec![0.0; rank * rank];
            for (j, &s) in squares.iter().enumerate().filter(|(_, s)| **s > 0.0) {
                frame[j * rank + j] = 1.0 / s.sqrt();
            }
            frame
        }
    };
    Points::new(rows.len(), &frame, rank, |i, to| {
        to.copy_from_slice(factor.row(rows[i] as usize))
    })
}

/// What rows are multiplied with so that their distances are those of their predictions.
fn by_predictions(model: &Model, mode: usize, rows: &[u32]) -> Result<Vec<f64>> {
    let rank = model.shape().ranks[mode];
    let factor = &model.modes()[mode].factor;
    let mut mean = vec![0.0f64; rank];
    for &row in rows {
        let add = |(m, &x): (&mut f64, &f32)| *m += f64::from(x) / rows.len() as f64;
        mean.iter_mut().zip(factor.row(row as usize)).for_each(add);
    }
    let mut spread = vec![0.0f64; rank * rank];
    let mut row = vec![0.0f64; rank];
    for &r in rows {
        let numbers = factor.row(r as usize).iter().zip(&mean);
        let take = |(x, (&u, m)): (&mut f64, (&f32, &f64))| *x = f64::from(u) - m;
        row.iter_mut().zip(numbers).for_each(take);
        for (line, &x) in spread.chunks_exact_mut(rank).zip(&row) {
            let add = |(s, y): (&mut f64, &f64)| *s += x * y / rows.len() as f64;
            line.iter_mut().zip(&row).for_each(add);
        }
    }
    let mut parts = vec![metric(model, &Layer::own(model), mode, &[])?];
    for matrix in model.matrices().iter().filter(|m| m.mode == mode) {
        let mut square = vec![0.0f64; rank * rank];
        for c in 0..matrix.factor.len() {
            let v = matrix.factor.row(c);
            for (line, &x) in square.chunks_exact_mut(rank).zip(v) {
                let add = |(s, &y): (&mut f64, &f32)| *s += f64::from(x) * f64::from(y);
                line.iter_mut().zip(v).for_each(add);
            }
        }
        parts.push(square);
    }
    let mut whole = vec![0.0f64; rank * rank];
    for part in &parts {
        let variance: f64 = part.iter().zip(&spread).map(|(m, s)| m * s).sum();
        // A part that says the same of all rows tells none from another.
        if variance > f64::MIN_POSITIVE && variance.is_finite() {
            let add = |(w, m): (&mut f64, &f64)| *w += m / variance;
            whole.iter_mut().zip(part).for_each(add);
        }
    }
    let Eigen { values, vectors } = symmetric_eigen(rank, &whole);
    let root = |k: usize| vectors[k % rank * rank + k / rank] * values[k % rank].max(0.0).sqrt();
    Ok((0..rank * rank).map(root).collect())
}
