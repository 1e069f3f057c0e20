//! Where k-means begins: centres that are far from each other.

use std::sync::Mutex;

use super::kmeans::{Each, Places, Sums, locked, nearest_of};
use super::points::{CHUNK, Points};
use crate::error::Result;
use crate::random::RandomStream;

/// The first centres: a point, then again and again one of some that are drawn by their squared distance to the nearest
/// so far, the one that leaves the least sum (greedy k-means++): one draw alone often falls twice into a large group and
/// never into a small one. There are fewer than `k` if there are fewer different points.
pub(super) fn seeds(
    points: &Points,
    k: usize,
    stream: &mut RandomStream,
    (places, each): (&[Mutex<Places>], &Each<'_>),
) -> Result<Vec<f32>> {
    let tries = 2 + (k as f64).ln() as usize;
    let mut centres: Vec<f32> = Vec::new();
    let mut drawn = vec![stream.below(points.count.max(1) as u64) as usize];
    for c in 0..k.min(points.count) {
        let next = least_left(points, &drawn, (places, each))?;
        centres.extend(points.get(next));
        let newest = &centres[c * points.width..];
        let nearer = |chunk: usize| {
            let mut places = locked(&places[chunk]);
            let (found, _) = nearest_of(points, chunk, newest);
            let mut total = 0.0;
            for (near, found) in places.distances.iter_mut().zip(found) {
                *near = near.min(found);
                total += f64::from(*near);
            }
            Sums {
                total,
                ..Sums::default()
            }
        };
        let made = each(points.chunks(), &nearer)?;
        let total: f64 = made.iter().map(|s| s.total).sum();
        if total == 0.0 {
            break;
        }
        drawn.clear();
        for _ in 0..tries {
            drawn.push(draw(&made, stream.uniform() * total, places));
        }
    }
    Ok(centres)
}

/// Of some points the one that leaves the least sum of distances as a further centre, the first of equal ones.
fn least_left(
    points: &Points,
    drawn: &[usize],
    (places, each): (&[Mutex<Places>], &Each<'_>),
) -> Result<usize> {
    if let [only] = drawn {
        return Ok(*only);
    }
    let rows: Vec<Vec<f32>> = drawn.iter().map(|&i| points.get(i).collect()).collect();
    let left = |chunk: usize| {
        let places = locked(&places[chunk]);
        let with = |row: &Vec<f32>| {
            let (found, _) = nearest_of(points, chunk, row);
            let both = places.distances.iter().zip(found);
            both.map(|(near, found)| f64::from(near.min(found))).sum()
        };
        Sums {
            points: rows.iter().map(with).collect(),
            ..Sums::default()
        }
    };
    let made = each(points.chunks(), &left)?;
    let mut best = (f64::INFINITY, drawn[0]);
    for (at, &point) in drawn.iter().enumerate() {
        let sum: f64 = made.iter().map(|s| s.points[at]).sum();
        if sum < best.0 {
            best = (sum, point);
        }
    }
    Ok(best.1)
}

/// The point at which the sum of distances comes above `target`, by the sums of chunks.
fn draw(made: &[Sums], mut target: f64, places: &[Mutex<Places>]) -> usize {
    let mut point = 0;
    // Rounding may leave a rest behind the last chunk: then it is the last point that is anywhere else.
    for (chunk, sums) in made.iter().enumerate().filter(|(_, s)| s.total > 0.0) {
        point = chunk * CHUNK + drawn_in(&locked(&places[chunk]).distances, target);
        if target < sums.total {
            break;
        }
        target -= sums.total;
    }
    point
}

/// The first place at which the sum of distances is above `target`, else the last that is not 0.
fn drawn_in(distances: &[f32], target: f64) -> usize {
    let (mut sum, mut last) = (0.0, 0);
    for (i, &d) in distances.iter().enumerate().filter(|(_, d)| **d > 0.0) {
        (sum, last) = (sum + f64::from(d), i);
        if sum > target {
            break;
        }
    }
    last
}
