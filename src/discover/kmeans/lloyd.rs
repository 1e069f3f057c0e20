//! One k-means run: seeding, then Lloyd's algorithm.

use super::assignment::{Assignments, ChunkRunner, ChunkSums, assign, fill_empty_clusters};
use super::point_set::PointSet;
use super::seeding::initial_centres;
use crate::error::Result;
use crate::random::RandomStream;
use crate::try_alloc::try_zeroed;

/// The largest number of Lloyd iterations. Data with clusters converges in far fewer.
const MAX_ITERATIONS: usize = 300;

/// One clustering task.
#[derive(Clone, Copy)]
pub(in crate::discover) struct KMeansTask<'a> {
    pub points: &'a PointSet,
    /// The number of clusters.
    pub k: usize,
    /// The key of its random streams: the seed, a constant of the purpose, and a number.
    pub stream_key: [u64; 3],
    /// A run ends when an iteration lowers the within-cluster sum of squares by less than this fraction.
    pub tolerance: f64,
}

/// The clusters of a set of points.
pub(in crate::discover) struct Clustering {
    /// The means of the clusters, row-major. There are fewer than `k` if there are fewer distinct points.
    pub centres: Vec<f64>,
    /// The cluster of each point.
    pub assignments: Vec<u32>,
    /// The number of points of each cluster.
    pub sizes: Vec<u64>,
    /// The within-cluster sum of squares: of the distances of the points to the mean of their cluster.
    pub within: f64,
}

/// Runs k-means once.
///
/// Each iteration assigns the points to their nearest centres and moves the centres to the means of their points. It ends
/// when no point changes its cluster, or when the sum of squares decreases by less than the tolerance.
pub(super) fn run(
    task: &KMeansTask<'_>,
    restart: u64,
    chunks: &ChunkRunner<'_>,
) -> Result<Clustering> {
    let (points, width) = (task.points, task.points.width);
    let [seed, purpose, number] = task.stream_key;
    let mut stream = RandomStream::new(&[seed, purpose, number, task.k as u64, restart]);
    let assignments = Assignments::unassigned(points)?;
    let mut centres = initial_centres(points, task.k, &mut stream, &assignments, chunks)?;
    let k = centres.len() / width.max(1);
    let mut last = f64::INFINITY;
    let mut means: Vec<f64> = try_zeroed(k * width, "centres")?;
    let mut sizes = Vec::new();
    for _ in 0..MAX_ITERATIONS {
        let of_chunks = (chunks.map)(&|c| assign(points, c, &centres, &assignments, chunks.stop))?;
        let mut sums = total(&of_chunks, k, width)?;
        fill_empty_clusters(points, &mut sums, &assignments);
        for (c, &size) in sums.sizes.iter().enumerate() {
            for j in c * width..(c + 1) * width {
                means[j] = sums.points[j] / size.max(1) as f64;
                centres[j] = means[j] as f32;
            }
        }
        sizes = sums.sizes;
        // With a tolerance of 0 this also ends cycles caused by rounding.
        if sums.reassigned == 0 || sums.squared_distances >= last * (1.0 - task.tolerance) {
            break;
        }
        last = sums.squared_distances;
    }
    let chunk_within = |c: usize| {
        let assignment = assignments.lock(c);
        let pairs = points.chunk(c).zip(&assignment.clusters);
        let square = |(i, &cluster): (usize, &u32)| {
            points.squared_distance(i, &means[cluster as usize * width..])
        };
        Ok(ChunkSums {
            squared_distances: pairs.map(square).sum(),
            ..ChunkSums::default()
        })
    };
    let within = (chunks.map)(&chunk_within)?;
    let within = within.iter().map(|s| s.squared_distances).sum();
    Ok(Clustering {
        centres: means,
        assignments: assignments.into_clusters(),
        sizes,
        within,
    })
}

/// Adds up the sums of all chunks, in their order.
fn total(chunks: &[ChunkSums], k: usize, width: usize) -> Result<ChunkSums> {
    let mut sums = ChunkSums::zeros(k, width)?;
    for chunk in chunks {
        let add = |(s, x): (&mut f64, &f64)| *s += x;
        sums.points.iter_mut().zip(&chunk.points).for_each(add);
        let add = |(s, x): (&mut u64, &u64)| *s += x;
        sums.sizes.iter_mut().zip(&chunk.sizes).for_each(add);
        sums.squared_distances += chunk.squared_distances;
        sums.reassigned += chunk.reassigned;
    }
    Ok(sums)
}
