//! Assignment of points to their nearest centres, chunk by chunk.

use std::iter::repeat;
use std::sync::{Mutex, MutexGuard};

use super::point_set::{CHUNK_POINTS, PointSet};
use crate::error::Result;
use crate::kernel::nearest;
use crate::progress::{StopFlag, check_cancelled, steps_per_poll};
use crate::simd::LANES;
use crate::try_alloc::{try_collect, try_zeroed};

/// The work on one chunk.
pub(super) type ChunkWork<'a> = dyn Fn(usize) -> Result<ChunkSums> + Sync + 'a;

/// How the chunks of a run are computed: one after the other, or in parallel.
pub(super) struct ChunkRunner<'a> {
    /// Does the work on every chunk and returns the sums in the order of the chunks.
    pub map: &'a dyn Fn(&ChunkWork<'_>) -> Result<Vec<ChunkSums>>,
    /// Polled within a chunk.
    pub stop: &'a StopFlag,
}

/// Sums over the points of a chunk.
#[derive(Default)]
pub(super) struct ChunkSums {
    /// The sum of the points of each cluster.
    pub points: Vec<f64>,
    /// The number of points of each cluster.
    pub sizes: Vec<u64>,
    /// The sum of squared distances to the nearest centre.
    pub squared_distances: f64,
    /// The number of points whose cluster changed.
    pub reassigned: u64,
}

impl ChunkSums {
    /// Returns the sums of no points.
    pub(super) fn zeros(clusters: usize, width: usize) -> Result<ChunkSums> {
        Ok(ChunkSums {
            points: try_zeroed(clusters * width, "sums of clusters")?,
            sizes: try_zeroed(clusters, "sums of clusters")?,
            ..ChunkSums::default()
        })
    }
}

/// The clusters of the points of a chunk.
pub(super) struct ChunkAssignment {
    /// The cluster of each point.
    pub clusters: Vec<u32>,
    /// The squared distance of each point to the nearest centre.
    pub squared_distances: Vec<f32>,
}

/// The assignments of all points, by chunk. A lock is only ever taken by the thread that works on the chunk.
pub(super) struct Assignments(Vec<Mutex<ChunkAssignment>>);

impl Assignments {
    /// No point has a cluster yet.
    pub(super) fn unassigned(points: &PointSet) -> Result<Assignments> {
        let chunk = |c| {
            let count = points.chunk(c).len();
            Ok(Mutex::new(ChunkAssignment {
                clusters: try_collect(count, repeat(u32::MAX), "rows")?,
                squared_distances: try_collect(count, repeat(f32::INFINITY), "rows")?,
            }))
        };
        let chunks = (0..points.chunks()).map(chunk);
        Ok(Assignments(chunks.collect::<Result<_>>()?))
    }

    pub(super) fn chunks(&self) -> usize {
        self.0.len()
    }

    pub(super) fn lock(&self, chunk: usize) -> MutexGuard<'_, ChunkAssignment> {
        self.0[chunk].lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Returns the cluster of each point.
    pub(super) fn into_clusters(self) -> Vec<u32> {
        let clusters = self.0.into_iter().flat_map(|chunk| {
            let chunk = chunk.into_inner().unwrap_or_else(|e| e.into_inner());
            chunk.clusters
        });
        clusters.collect()
    }
}

/// Finds the nearest centre of each point of a chunk, the first of equally near ones.
pub(super) fn nearest_centres(
    points: &PointSet,
    chunk: usize,
    centres: &[f32],
    stop: &StopFlag,
) -> Result<ChunkAssignment> {
    let blocks = points.blocks(chunk);
    let count = blocks.len() / points.width;
    let mut squares = vec![[0.0; LANES]; count];
    let mut clusters = vec![[0; LANES]; count];
    let blocks_per_poll = steps_per_poll(LANES * centres.len());
    for first in (0..count).step_by(blocks_per_poll) {
        check_cancelled(stop)?;
        let part = first..(first + blocks_per_poll).min(count);
        nearest(
            points.level,
            &blocks[part.start * points.width..part.end * points.width],
            points.width,
            centres,
            &mut squares[part.clone()],
            &mut clusters[part],
        );
    }
    let mut found = ChunkAssignment {
        clusters: clusters.into_flattened(),
        squared_distances: squares.into_flattened(),
    };
    // The last block of the last chunk is padded.
    let count = points.chunk(chunk).len();
    found.clusters.truncate(count);
    found.squared_distances.truncate(count);
    Ok(found)
}

/// Assigns each point of a chunk to its nearest centre and sums up the points of each cluster.
pub(super) fn assign(
    points: &PointSet,
    chunk: usize,
    centres: &[f32],
    assignments: &Assignments,
    stop: &StopFlag,
) -> Result<ChunkSums> {
    let width = points.width;
    let mut assignment = assignments.lock(chunk);
    let nearest = nearest_centres(points, chunk, centres, stop)?;
    let mut sums = ChunkSums::zeros(centres.len() / width.max(1), width)?;
    let squares = nearest.squared_distances.iter();
    sums.squared_distances = squares.map(|&d| f64::from(d)).sum();
    let pairs = nearest.clusters.iter().zip(&assignment.clusters);
    sums.reassigned = pairs.filter(|(a, b)| a != b).count() as u64;
    let blocks = points.blocks(chunk).chunks_exact(width);
    for (block, clusters) in blocks.zip(nearest.clusters.chunks(LANES)) {
        for (i, &cluster) in clusters.iter().enumerate() {
            let cluster = cluster as usize;
            sums.sizes[cluster] += 1;
            let to = &mut sums.points[cluster * width..(cluster + 1) * width];
            for (j, s) in to.iter_mut().enumerate() {
                *s += f64::from(block[j][i]);
            }
        }
    }
    *assignment = nearest;
    Ok(sums)
}

/// Moves a point into each cluster without points: the point farthest from its own centre, among clusters of two or more
/// points.
pub(super) fn fill_empty_clusters(
    points: &PointSet,
    sums: &mut ChunkSums,
    assignments: &Assignments,
) {
    let width = points.width;
    for empty in 0..sums.sizes.len() {
        if sums.sizes[empty] > 0 {
            continue;
        }
        let mut farthest: Option<(f32, usize)> = None;
        for chunk in 0..assignments.chunks() {
            let assignment = assignments.lock(chunk);
            let pairs = assignment
                .squared_distances
                .iter()
                .zip(&assignment.clusters);
            for (i, (&d, &cluster)) in pairs.enumerate() {
                let has_others = sums.sizes[cluster as usize] > 1;
                if has_others && farthest.is_none_or(|(largest, _)| d > largest) {
                    farthest = Some((d, chunk * CHUNK_POINTS + i));
                }
            }
        }
        let Some((squared_distance, point)) = farthest else {
            return;
        };
        let mut assignment = assignments.lock(point / CHUNK_POINTS);
        let from = assignment.clusters[point % CHUNK_POINTS] as usize;
        assignment.clusters[point % CHUNK_POINTS] = empty as u32;
        assignment.squared_distances[point % CHUNK_POINTS] = 0.0;
        for (j, x) in points.values(point).enumerate() {
            sums.points[from * width + j] -= f64::from(x);
            sums.points[empty * width + j] += f64::from(x);
        }
        sums.sizes[from] -= 1;
        sums.sizes[empty] += 1;
        sums.squared_distances -= f64::from(squared_distance);
        sums.reassigned += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{blobs, point_set};
    use super::*;

    #[test]
    fn empty_clusters_get_the_farthest_points() {
        let rows = blobs(&[[0.0, 0.0], [5.0, 5.0]], 40, 0.5, 3);
        let points = point_set(&rows);
        let assignments = Assignments(vec![Mutex::new(ChunkAssignment {
            clusters: vec![0; 80],
            squared_distances: (0..80).map(|i| i as f32).collect(),
        })]);
        let mut sums = ChunkSums {
            points: vec![0.0; 6],
            sizes: vec![80, 0, 0],
            squared_distances: (0..80).sum::<u32>().into(),
            reassigned: 0,
        };
        fill_empty_clusters(&points, &mut sums, &assignments);
        assert_eq!((sums.sizes, sums.reassigned), (vec![78, 1, 1], 2));
        let assignment = assignments.lock(0);
        assert_eq!((assignment.clusters[79], assignment.clusters[78]), (1, 2));
        let x: Vec<f64> = points.values(79).map(f64::from).collect();
        assert_eq!(sums.points[2..4], x);
    }
}
