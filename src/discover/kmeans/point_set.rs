//! Points to be clustered, in structure-of-arrays blocks of one SIMD vector of points.

use crate::error::{Error, Result};
use crate::kernel::Lanes;
use crate::linalg::symmetric_eigen;
use crate::progress::{Monitor, StepPolls};
use crate::random::RandomStream;
use crate::simd::LANES;
use crate::simd::Level;
use crate::try_alloc::try_with_capacity;

/// Points per chunk, the unit of parallel work. Sums are made per chunk and added in order, so that they do not depend on
/// the number of threads.
pub(super) const CHUNK_POINTS: usize = 4096;

/// Centred points along their principal axes, scaled so that the mean squared distance to the mean is 1.
pub(in crate::discover) struct PointSet {
    pub count: usize,
    /// The number of values of a point.
    pub width: usize,
    /// Value `j` of the points of block `b` is at `b * width + j`. Zeros pad the last block.
    blocks: Vec<Lanes<f32>>,
    /// The instruction set of the distance kernel; all levels give the same results.
    pub level: Level,
}

impl PointSet {
    /// Builds `count` points. `write` writes a row, and the point is the centred row times `transform`, a row-major
    /// matrix of `width` columns.
    pub(in crate::discover) fn new(
        count: usize,
        transform: &[f64],
        width: usize,
        write: impl Fn(usize, &mut [f32]),
        monitor: &dyn Monitor,
    ) -> Result<PointSet> {
        let rank = transform.len() / width.max(1);
        let mut row = vec![0.0f32; rank];
        let mut mean = vec![0.0f64; rank];
        let fraction = 1.0 / count.max(1) as f64;
        for i in 0..count {
            write(i, &mut row);
            let add = |(m, &x): (&mut f64, &f32)| *m += f64::from(x);
            mean.iter_mut().zip(&row).for_each(add);
        }
        mean.iter_mut().for_each(|m| *m *= fraction);
        let mut point = vec![0.0f64; width];
        let transform_row = |i: usize, row: &mut [f32], point: &mut [f64]| {
            write(i, row);
            point.fill(0.0);
            for (line, (&x, m)) in transform.chunks_exact(width).zip(row.iter().zip(&mean)) {
                let x = f64::from(x) - m;
                let add = |(t, f): (&mut f64, &f64)| *t += x * f;
                point.iter_mut().zip(line).for_each(add);
            }
        };
        let mut scatter = vec![0.0f64; width * width];
        let mut polls = StepPolls::new(monitor, 2 * width * width.max(rank));
        for i in 0..count {
            polls.step()?;
            transform_row(i, &mut row, &mut point);
            for (line, &x) in scatter.chunks_exact_mut(width).zip(&point) {
                let add = |(s, y): (&mut f64, &f64)| *s += x * y;
                line.iter_mut().zip(&point).for_each(add);
            }
        }
        let trace: f64 = (0..width).map(|j| scatter[j * width + j]).sum();
        if !trace.is_finite() {
            return Err(Error::argument(
                "the factors of the model are too large: distances between its rows overflow",
            ));
        }
        let scale = match (trace * fraction).sqrt() {
            size if size > f64::MIN_POSITIVE => size,
            _ => 1.0,
        };
        let axes = symmetric_eigen(width, &scatter, monitor)?.vectors;
        // Before threads start: choosing a level reads the environment.
        let level = Level::choose(None)?;
        let mut points = PointSet::zeros(count, width, level)?;
        for i in 0..count {
            polls.step()?;
            transform_row(i, &mut row, &mut point);
            for (j, axis) in axes.chunks_exact(width).enumerate() {
                let coordinate: f64 = axis.iter().zip(&point).map(|(a, t)| a * t).sum();
                points.set(i, j, (coordinate / scale) as f32);
            }
        }
        Ok(points)
    }

    fn zeros(count: usize, width: usize, level: Level) -> Result<PointSet> {
        let len = count.div_ceil(LANES) * width;
        let mut blocks = try_with_capacity(len, "values of points")?;
        blocks.resize(len, [0.0; LANES]);
        Ok(PointSet {
            count,
            width,
            blocks,
            level,
        })
    }

    /// Returns the memory of the points.
    pub(in crate::discover) fn bytes(&self) -> usize {
        size_of_val(self.blocks.as_slice())
    }

    fn set(&mut self, point: usize, j: usize, x: f32) {
        self.blocks[point / LANES * self.width + j][point % LANES] = x;
    }

    fn value(&self, point: usize, j: usize) -> f32 {
        self.blocks[point / LANES * self.width + j][point % LANES]
    }

    /// Returns the values of a point.
    pub(super) fn values(&self, point: usize) -> impl Iterator<Item = f32> + '_ {
        (0..self.width).map(move |j| self.value(point, j))
    }

    /// Returns the blocks of a chunk.
    pub(super) fn blocks(&self, chunk: usize) -> &[Lanes<f32>] {
        let per_chunk = CHUNK_POINTS / LANES * self.width;
        &self.blocks[chunk * per_chunk..((chunk + 1) * per_chunk).min(self.blocks.len())]
    }

    /// The number of chunks.
    pub(super) fn chunks(&self) -> usize {
        self.count.div_ceil(CHUNK_POINTS)
    }

    /// Returns the range of points of a chunk.
    pub(super) fn chunk(&self, chunk: usize) -> std::ops::Range<usize> {
        chunk * CHUNK_POINTS..((chunk + 1) * CHUNK_POINTS).min(self.count)
    }

    /// Returns the squared distance of a point to a centre.
    pub(in crate::discover) fn squared_distance(&self, point: usize, centre: &[f64]) -> f64 {
        let pairs = self.values(point).zip(centre);
        pairs
            .map(|(x, c)| (f64::from(x) - c) * (f64::from(x) - c))
            .sum()
    }

    /// Returns `count` of these points, sampled without replacement and in order; all if there are no more.
    pub(in crate::discover) fn subsample(
        &self,
        count: usize,
        stream: &mut RandomStream,
    ) -> Result<PointSet> {
        let mut sample = PointSet::zeros(count.min(self.count), self.width, self.level)?;
        let mut to = 0;
        for i in 0..self.count {
            let (missing, left) = (sample.count - to, self.count - i);
            if missing == left || stream.below(left as u64) < missing as u64 {
                (0..self.width).for_each(|j| sample.set(to, j, self.value(i, j)));
                to += 1;
            }
        }
        Ok(sample)
    }

    /// Samples as many points uniformly from the bounding box of these points along their principal axes.
    pub(in crate::discover) fn uniform_reference(
        &self,
        stream: &mut RandomStream,
    ) -> Result<PointSet> {
        let mut bounds = vec![(f32::INFINITY, f32::NEG_INFINITY); self.width];
        for i in 0..self.count {
            for (b, x) in bounds.iter_mut().zip(self.values(i)) {
                *b = (b.0.min(x), b.1.max(x));
            }
        }
        let mut reference = PointSet::zeros(self.count, self.width, self.level)?;
        for i in 0..self.count {
            for (j, &(low, high)) in bounds.iter().enumerate() {
                let x = f64::from(low) + stream.uniform() * (f64::from(high) - f64::from(low));
                reference.set(i, j, x as f32);
            }
        }
        Ok(reference)
    }
}
