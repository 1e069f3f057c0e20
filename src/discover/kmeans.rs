//! k-means: seeds that are far from each other (greedy k-means++), then Lloyd's steps until nothing moves.
//!
//! Distances are found in single precision, which decides where a point belongs; sums of points and of distances are
//! in double precision, chunk by chunk and then in the order of chunks, so that threads do not matter.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::points::{CHUNK, Points};
use super::seeds::seeds;
use crate::error::{Error, Result};
use crate::kernel::nearest;
use crate::parallel::ThreadPool;
use crate::progress::Monitor;
use crate::random::RandomStream;
use crate::simd::LANES;

/// More steps than any data takes that has clusters.
const STEPS: usize = 300;

/// From so many chunks on, threads share the chunks of one run; below, whole runs.
const MANY: usize = 16;

/// What one run comes to.
pub(super) struct Found {
    /// The means of the clusters, one after the other.
    pub centres: Vec<f64>,
    /// The cluster of each point.
    pub which: Vec<u32>,
    /// How many points each has.
    pub sizes: Vec<u64>,
    /// The sum of squared distances to the own mean.
    pub within: f64,
}

/// A run: points, how many clusters, and the name of its random numbers.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub points: &'a Points,
    pub k: usize,
    pub name: [u64; 3],
    /// It ends when a step gains less than this share of the sum of squares.
    pub enough: f64,
}

/// Who does the work.
pub(super) struct Work<'a> {
    pub pool: &'a ThreadPool,
    pub restarts: usize,
    pub phase: &'a str,
    pub monitor: &'a dyn Monitor,
}

impl Work<'_> {
    /// Runs everything as often as there are restarts, and keeps of each run what `keep` makes of the best, the one with
    /// the least sum of squares, the first of equal ones.
    pub(super) fn best<T: Send>(
        &self,
        runs: &[Run<'_>],
        keep: impl Fn(Found) -> T + Sync,
    ) -> Result<Vec<T>> {
        let restarts = self.restarts.max(1);
        let total = runs.len() * restarts;
        let one = |at: usize, each: &Each<'_>| -> Result<(f64, T)> {
            let run = runs[at / restarts];
            let found = cluster(&run, (at % restarts) as u64, each)?;
            Ok((found.within, keep(found)))
        };
        let done = AtomicU64::new(0);
        let mut cancelled = || {
            let done = done.load(Ordering::Relaxed);
            self.monitor.progress(self.phase, done, total as u64);
            self.monitor.cancelled()
        };
        if cancelled() {
            return Err(Error::Cancelled);
        }
        let many = runs.iter().any(|run| run.points.chunks() >= MANY);
        let made: Vec<Result<(f64, T)>> = if many {
            let mut made = Vec::new();
            for at in 0..total {
                if cancelled() {
                    return Err(Error::Cancelled);
                }
                let each = |count: usize, work: &(dyn Fn(usize) -> Sums + Sync)| {
                    let stop = &mut || self.monitor.cancelled();
                    let made = self.pool.map(count, stop, || (), |(), i| work(i))?;
                    made.ok_or(Error::Cancelled)
                };
                made.push(one(at, &each));
                done.fetch_add(1, Ordering::Relaxed);
            }
            made
        } else {
            let alone = |count: usize, work: &(dyn Fn(usize) -> Sums + Sync)| {
                Ok((0..count).map(work).collect())
            };
            let work = |(): &mut (), at: usize| {
                let made = one(at, &alone);
                done.fetch_add(1, Ordering::Relaxed);
                made
            };
            let made = self.pool.map(total, &mut cancelled, || (), work)?;
            made.ok_or(Error::Cancelled)?
        };
        let mut best: Vec<Option<(f64, T)>> = Vec::new();
        best.resize_with(runs.len(), || None);
        for (at, made) in made.into_iter().enumerate() {
            let made = made?;
            let slot = &mut best[at / restarts];
            if slot.as_ref().is_none_or(|(within, _)| made.0 < *within) {
                *slot = Some(made);
            }
        }
        Ok(best.into_iter().flatten().map(|(_, kept)| kept).collect())
    }
}

/// Works on all of so many chunks and returns what they sum up to, in order.
pub(super) type Each<'a> = dyn Fn(usize, &(dyn Fn(usize) -> Sums + Sync)) -> Result<Vec<Sums>> + 'a;

/// What a chunk sums up to.
#[derive(Default)]
pub(super) struct Sums {
    /// Of the points of each cluster.
    pub points: Vec<f64>,
    pub sizes: Vec<u64>,
    /// Of the distances.
    pub total: f64,
    /// How many points have another cluster than before.
    pub moved: u64,
}

/// Where the points of a chunk belong.
pub(super) struct Places {
    which: Vec<u32>,
    pub distances: Vec<f32>,
}

/// One run.
fn cluster(run: &Run<'_>, restart: u64, each: &Each<'_>) -> Result<Found> {
    let (points, width) = (run.points, run.points.width);
    let [seed, purpose, number] = run.name;
    let mut stream = RandomStream::new(&[seed, purpose, number, run.k as u64, restart]);
    let places: Vec<Mutex<Places>> = (0..points.chunks())
        .map(|c| {
            let count = points.chunk(c).len();
            Mutex::new(Places {
                which: vec![u32::MAX; count],
                distances: vec![f32::INFINITY; count],
            })
        })
        .collect();
    let mut centres = seeds(points, run.k, &mut stream, (&places, each))?;
    let k = centres.len() / width.max(1);
    let mut last = f64::INFINITY;
    let mut means = vec![0.0; k * width];
    let mut sizes = vec![0; k];
    for _ in 0..STEPS {
        let made = each(points.chunks(), &|c| assign(points, c, &centres, &places))?;
        let mut sums = Sums {
            points: vec![0.0; k * width],
            sizes: vec![0; k],
            ..Sums::default()
        };
        for chunk in &made {
            let add = |(s, x): (&mut f64, &f64)| *s += x;
            sums.points.iter_mut().zip(&chunk.points).for_each(add);
            let add = |(s, x): (&mut u64, &u64)| *s += x;
            sums.sizes.iter_mut().zip(&chunk.sizes).for_each(add);
            sums.total += chunk.total;
            sums.moved += chunk.moved;
        }
        fill_empty(points, &mut sums, &places);
        for (c, &size) in sums.sizes.iter().enumerate() {
            for j in c * width..(c + 1) * width {
                means[j] = sums.points[j] / size.max(1) as f64;
                centres[j] = means[j] as f32;
            }
        }
        sizes = sums.sizes;
        // By rounding alone points might move for ever.
        if sums.moved == 0 || sums.total >= last * (1.0 - run.enough) {
            break;
        }
        last = sums.total;
    }
    let exact = |c: usize| {
        let places = locked(&places[c]);
        let each = points.chunk(c).zip(&places.which);
        let square = |(i, &w): (usize, &u32)| points.distance(i, &means[w as usize * width..]);
        Sums {
            total: each.map(square).sum(),
            ..Sums::default()
        }
    };
    let within = each(points.chunks(), &exact)?.iter().map(|s| s.total).sum();
    let which = places.into_iter().flat_map(|p| {
        let p = p.into_inner().unwrap_or_else(|e| e.into_inner());
        p.which
    });
    Ok(Found {
        centres: means,
        which: which.collect(),
        sizes,
        within,
    })
}

pub(super) fn locked(places: &Mutex<Places>) -> std::sync::MutexGuard<'_, Places> {
    places.lock().unwrap_or_else(|e| e.into_inner())
}

/// The squared distance of each point of a chunk to the nearest of some centres, and which that is.
pub(super) fn nearest_of(points: &Points, chunk: usize, centres: &[f32]) -> (Vec<f32>, Vec<u32>) {
    let blocks = points.blocks(chunk);
    let count = blocks.len() / points.width;
    let (mut squares, mut which) = (vec![[0.0; LANES]; count], vec![[0; LANES]; count]);
    nearest(
        points.level,
        blocks,
        points.width,
        centres,
        &mut squares,
        &mut which,
    );
    // Behind the last point there are none.
    let count = points.chunk(chunk).len();
    let mut both = (squares.into_flattened(), which.into_flattened());
    both.0.truncate(count);
    both.1.truncate(count);
    both
}

/// Puts each point of a chunk to the nearest centre, the first of equally near ones.
fn assign(points: &Points, chunk: usize, centres: &[f32], places: &[Mutex<Places>]) -> Sums {
    let width = points.width;
    let mut places = locked(&places[chunk]);
    let mut sums = Sums {
        points: vec![0.0; centres.len()],
        sizes: vec![0; centres.len() / width.max(1)],
        ..Sums::default()
    };
    let (distances, which) = nearest_of(points, chunk, centres);
    sums.total = distances.iter().map(|&d| f64::from(d)).sum();
    let moved = which.iter().zip(&places.which).filter(|(a, b)| a != b);
    sums.moved = moved.count() as u64;
    let blocks = points.blocks(chunk).chunks_exact(width);
    for (block, which) in blocks.zip(which.chunks(LANES)) {
        for (i, &cluster) in which.iter().enumerate() {
            let cluster = cluster as usize;
            sums.sizes[cluster] += 1;
            let to = &mut sums.points[cluster * width..(cluster + 1) * width];
            for (j, s) in to.iter_mut().enumerate() {
                *s += f64::from(block[j][i]);
            }
        }
    }
    (places.which, places.distances) = (which, distances);
    sums
}

/// A cluster without points gets the point that is farthest from its centre, of those that are not alone.
fn fill_empty(points: &Points, sums: &mut Sums, places: &[Mutex<Places>]) {
    let width = points.width;
    for empty in 0..sums.sizes.len() {
        if sums.sizes[empty] > 0 {
            continue;
        }
        let mut farthest: Option<(f32, usize)> = None;
        for (chunk, places) in places.iter().enumerate() {
            let places = locked(places);
            for (i, (&d, &w)) in places.distances.iter().zip(&places.which).enumerate() {
                let other = sums.sizes[w as usize] > 1;
                if other && farthest.is_none_or(|(most, _)| d > most) {
                    farthest = Some((d, chunk * CHUNK + i));
                }
            }
        }
        let Some((distance, point)) = farthest else {
            return;
        };
        let mut places = locked(&places[point / CHUNK]);
        let from = places.which[point % CHUNK] as usize;
        places.which[point % CHUNK] = empty as u32;
        places.distances[point % CHUNK] = 0.0;
        for (j, x) in points.get(point).enumerate() {
            sums.points[from * width + j] -= f64::from(x);
            sums.points[empty * width + j] += f64::from(x);
        }
        sums.sizes[from] -= 1;
        sums.sizes[empty] += 1;
        sums.total -= f64::from(distance);
        sums.moved += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::gap::curve;
    use super::*;

    /// Points as they are, but for what `Points` does to them: a turn, a shift and a common scale.
    fn points(rows: &[Vec<f32>]) -> Points {
        let width = rows[0].len();
        let mut frame = vec![0.0; width * width];
        (0..width).for_each(|j| frame[j * width + j] = 1.0);
        Points::new(rows.len(), &frame, width, |i, to| {
            to.copy_from_slice(&rows[i])
        })
        .unwrap()
    }

    fn blobs(centres: &[[f32; 2]], each: usize, noise: f64, seed: u64) -> Vec<Vec<f32>> {
        let mut s = RandomStream::new(&[seed]);
        let mut rows = Vec::new();
        for i in 0..each * centres.len() {
            let c = centres[i % centres.len()];
            let x = |j: usize, s: &mut RandomStream| c[j] + (noise * s.standard_normal()) as f32;
            rows.push(vec![x(0, &mut s), x(1, &mut s)]);
        }
        rows
    }

    fn best(points: &Points, k: usize, restarts: usize, threads: usize) -> Found {
        let pool = ThreadPool::new(threads, false, 0);
        let work = Work {
            pool: &pool,
            restarts,
            phase: "",
            monitor: &(),
        };
        let name = [1, 2, 3];
        let enough = 0.0;
        let run = Run {
            points,
            k,
            name,
            enough,
        };
        work.best(&[run], |f| f).unwrap().remove(0)
    }

    fn gaps(points: &Points, most: usize, threads: usize) -> super::super::gap::GapCurve {
        let pool = ThreadPool::new(threads, false, 0);
        let work = Work {
            pool: &pool,
            restarts: 3,
            phase: "",
            monitor: &(),
        };
        curve(points, (most, 8), 5, &work).unwrap()
    }

    /// The squares of number `j` of some points around their mean.
    fn squares(rows: &[Vec<f32>], own: &[usize], j: usize) -> f64 {
        let x = |i: &usize| f64::from(rows[*i][j]);
        let mean = own.iter().map(x).sum::<f64>() / own.len().max(1) as f64;
        own.iter().map(|i| (x(i) - mean).powi(2)).sum()
    }

    /// The least sum of squares of all ways to put points into `k` clusters.
    fn least(rows: &[Vec<f32>], k: usize) -> f64 {
        let (n, width) = (rows.len(), rows[0].len());
        let mut least = f64::INFINITY;
        for code in 0..k.pow(n as u32) {
            let which = |i: usize| code / k.pow(i as u32) % k;
            let mut sum = 0.0;
            for c in 0..k {
                let own: Vec<usize> = (0..n).filter(|&i| which(i) == c).collect();
                sum += (0..width).map(|j| squares(rows, &own, j)).sum::<f64>();
            }
            least = least.min(sum);
        }
        least
    }

    #[test]
    fn the_best_of_all_partitions_of_a_few_points_is_found() {
        for seed in 0..6 {
            let mut s = RandomStream::new(&[seed, 77]);
            let rows: Vec<Vec<f32>> = (0..8)
                .map(|_| vec![s.standard_normal() as f32, s.standard_normal() as f32])
                .collect();
            let points = points(&rows);
            // One cluster tells what the common scale is.
            let unit = least(&rows, 1) / best(&points, 1, 1, 1).within;
            for k in 2..4 {
                let found = best(&points, k, 40, 2);
                let expected = least(&rows, k);
                assert!(
                    (found.within * unit / expected - 1.0).abs() < 1e-5,
                    "{k}: {} {expected}",
                    found.within * unit
                );
            }
        }
    }

    #[test]
    fn planted_clusters_are_found_and_counted_whatever_the_threads() {
        let centres = [[0.0, 0.0], [9.0, 1.0], [1.0, 8.0], [9.0, 9.0]];
        // Some that runs are shared out of, and more chunks than there are runs.
        for each in [50, 20_000] {
            let rows = blobs(&centres, each, 0.7, 4);
            let points = points(&rows);
            let one = best(&points, 4, 4, 1);
            for i in 0..rows.len() {
                assert_eq!(one.which[i], one.which[i % 4], "{i}");
            }
            assert_eq!(one.sizes, vec![each as u64; 4]);
            for threads in [2, 3, 7] {
                let more = best(&points, 4, 4, threads);
                assert_eq!(more.which, one.which);
                assert_eq!(more.within.to_bits(), one.within.to_bits());
                let bits = |f: &Found| f.centres.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&more), bits(&one));
            }
        }
        for count in 1..=4 {
            let rows = blobs(&centres[..count], 60, 0.6, 9);
            let points = points(&rows);
            let curve = gaps(&points, 7, 1);
            assert_eq!((curve.chosen, curve.settled), (count, true), "{curve:?}");
            assert_eq!(gaps(&points, 7, 3), curve);
        }
    }

    #[test]
    fn many_groups_are_found_with_the_usual_restarts_and_mostly_with_one() {
        let centres: Vec<[f32; 2]> = (0..24)
            .map(|g| [(g % 6) as f32 * 8.0, (g / 6) as f32 * 8.0])
            .collect();
        let mut at_once = 0;
        for seed in 0..12 {
            let points = points(&blobs(&centres, 40, 1.0, seed));
            // Whether each group is a cluster, but for a few points.
            let found = |restarts: usize| {
                let which = best(&points, 24, restarts, 2).which;
                let mut own: Vec<Option<u32>> = (0..24)
                    .map(|g| {
                        let group: Vec<u32> = which.iter().skip(g).step_by(24).copied().collect();
                        let most = |w: &u32| group.iter().filter(|x| *x == w).count() > 37;
                        group.iter().copied().find(most)
                    })
                    .collect();
                own.sort_unstable();
                own.dedup();
                own.len() == 24 && own.iter().all(Option::is_some)
            };
            assert!(
                found(super::super::ClusterOptions::new(0).restarts),
                "{seed}"
            );
            at_once += usize::from(found(1));
        }
        // With one draw for each centre it would be one of twelve.
        assert!(at_once >= 7, "{at_once}");
    }

    #[test]
    fn few_or_equal_points_are_clusters_of_their_own() {
        let same = points(&vec![vec![3.0f32, -1.0]; 20]);
        let found = best(&same, 5, 3, 2);
        assert_eq!((found.sizes, found.within), (vec![20], 0.0));
        let curve = gaps(&same, 5, 1);
        assert_eq!(
            (curve.points.len(), curve.chosen, curve.settled),
            (1, 1, true)
        );
        assert!(curve.points[0].gap.abs() < 1e-9);
        let one = points(&[vec![1.0f32]]);
        assert_eq!(best(&one, 4, 2, 1).sizes, vec![1]);
        assert_eq!(gaps(&one, 4, 1).chosen, 1);
        // Three different points, each some times.
        let three: Vec<Vec<f32>> = (0..30).map(|i| vec![(i % 3) as f32, 0.5]).collect();
        let three = points(&three);
        let found = best(&three, 10, 3, 2);
        assert_eq!((found.sizes.len(), found.within), (3, 0.0));
        let curve = gaps(&three, 10, 1);
        assert_eq!(curve.points.len(), 3);
        // Nothing is left within three clusters, and still there is a logarithm.
        assert!(curve.points[2].gap > curve.points[1].gap + 5.0);
        assert!(curve.points.iter().all(|p| p.gap.is_finite()));
    }

    #[test]
    fn clusters_without_points_get_some() {
        let rows = blobs(&[[0.0, 0.0], [5.0, 5.0]], 40, 0.5, 3);
        let points = points(&rows);
        let places = vec![Mutex::new(Places {
            which: vec![0; 80],
            distances: (0..80).map(|i| i as f32).collect(),
        })];
        let mut sums = Sums {
            points: vec![0.0; 6],
            sizes: vec![80, 0, 0],
            total: (0..80).sum::<u32>().into(),
            moved: 0,
        };
        fill_empty(&points, &mut sums, &places);
        assert_eq!((sums.sizes, sums.moved), (vec![78, 1, 1], 2));
        let places = locked(&places[0]);
        assert_eq!((places.which[79], places.which[78]), (1, 2));
        let x: Vec<f64> = points.get(79).map(f64::from).collect();
        assert_eq!(sums.points[2..4], x);
    }
}
