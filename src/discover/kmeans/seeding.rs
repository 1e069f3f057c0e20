//! Initial centres of k-means: greedy k-means++.
//!
//! k-means++ (Arthur and Vassilvitskii 2007) samples the first centre uniformly among the points, and each further centre
//! with a probability proportional to the squared distance of a point to its nearest centre so far. The greedy variant
//! samples a few candidates for each centre and keeps the one that leaves the smallest sum of squared distances. A
//! single candidate often falls twice into a large cluster and never into a small one.

use super::assignment::{Assignments, ChunkRunner, ChunkSums, nearest_centres};
use super::point_set::{CHUNK_POINTS, PointSet};
use crate::error::Result;
use crate::random::RandomStream;
use crate::try_alloc::try_with_capacity;

/// Returns the initial centres, row-major. There are fewer than `k` if there are fewer distinct points.
///
/// The number of candidates per centre is 2 + ln k, as in scikit-learn.
pub(super) fn initial_centres(
    points: &PointSet,
    k: usize,
    stream: &mut RandomStream,
    assignments: &Assignments,
    chunks: &ChunkRunner<'_>,
) -> Result<Vec<f32>> {
    let candidate_count = 2 + (k as f64).ln() as usize;
    let k = k.min(points.count);
    let mut centres: Vec<f32> = try_with_capacity(k * points.width, "centres")?;
    let mut candidates = vec![stream.below(points.count.max(1) as u64) as usize];
    for c in 0..k {
        let next = best_candidate(points, &candidates, assignments, chunks)?;
        centres.extend(points.values(next));
        let newest = &centres[c * points.width..];
        let update_distances = |chunk: usize| {
            let mut assignment = assignments.lock(chunk);
            let to_newest = nearest_centres(points, chunk, newest, chunks.stop)?.squared_distances;
            let mut total = 0.0;
            for (distance, new) in assignment.squared_distances.iter_mut().zip(to_newest) {
                *distance = distance.min(new);
                total += f64::from(*distance);
            }
            Ok(ChunkSums {
                squared_distances: total,
                ..ChunkSums::default()
            })
        };
        let sums = (chunks.map)(&update_distances)?;
        let total: f64 = sums.iter().map(|s| s.squared_distances).sum();
        if total == 0.0 {
            break;
        }
        candidates.clear();
        for _ in 0..candidate_count {
            candidates.push(sample_point(&sums, stream.uniform() * total, assignments));
        }
    }
    Ok(centres)
}

/// Returns the candidate that leaves the smallest sum of squared distances as a further centre, the first of equal ones.
fn best_candidate(
    points: &PointSet,
    candidates: &[usize],
    assignments: &Assignments,
    chunks: &ChunkRunner<'_>,
) -> Result<usize> {
    if let [only] = candidates {
        return Ok(*only);
    }
    let rows = candidates.iter().map(|&i| points.values(i).collect());
    let rows: Vec<Vec<f32>> = rows.collect();
    // One sum per candidate, in place of the sums of points.
    let chunk_sums = |chunk: usize| {
        let assignment = assignments.lock(chunk);
        let sum_with = |row: &Vec<f32>| {
            let to_row = nearest_centres(points, chunk, row, chunks.stop)?.squared_distances;
            let pairs = assignment.squared_distances.iter().zip(to_row);
            Ok(pairs.map(|(old, new)| f64::from(old.min(new))).sum())
        };
        Ok(ChunkSums {
            points: rows.iter().map(sum_with).collect::<Result<_>>()?,
            ..ChunkSums::default()
        })
    };
    let sums = (chunks.map)(&chunk_sums)?;
    let mut best = (f64::INFINITY, candidates[0]);
    for (at, &point) in candidates.iter().enumerate() {
        let sum: f64 = sums.iter().map(|s| s.points[at]).sum();
        if sum < best.0 {
            best = (sum, point);
        }
    }
    Ok(best.1)
}

/// Returns the point at which the cumulative sum of squared distances exceeds `target`, using the sums of the chunks.
fn sample_point(chunks: &[ChunkSums], mut target: f64, assignments: &Assignments) -> usize {
    let mut point = 0;
    // By rounding the target may exceed the total. The last point that is not a centre is then returned.
    let nonzero = chunks
        .iter()
        .enumerate()
        .filter(|(_, s)| s.squared_distances > 0.0);
    for (chunk, sums) in nonzero {
        let in_chunk = sample_in_chunk(&assignments.lock(chunk).squared_distances, target);
        point = chunk * CHUNK_POINTS + in_chunk;
        if target < sums.squared_distances {
            break;
        }
        target -= sums.squared_distances;
    }
    point
}

/// Returns the first position at which the cumulative sum exceeds `target`, or else the last position that is not 0.
fn sample_in_chunk(squared_distances: &[f32], target: f64) -> usize {
    let (mut sum, mut last) = (0.0, 0);
    for (i, &d) in squared_distances
        .iter()
        .enumerate()
        .filter(|(_, d)| **d > 0.0)
    {
        (sum, last) = (sum + f64::from(d), i);
        if sum > target {
            break;
        }
    }
    last
}
