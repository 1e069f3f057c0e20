//! Points to be clustered, in blocks of sixteen whose numbers lie side by side, so that loops over a block become
//! vectors.

use crate::error::{Error, Result};
use crate::kernel::Lanes;
use crate::try_alloc::try_with_capacity;

use crate::linalg::symmetric_eigen;
use crate::random::RandomStream;
use crate::simd::LANES;
use crate::simd::Level;

/// Points of a chunk, the smallest piece of work: sums are made chunk by chunk and added up in order, whatever the
/// threads.
pub(super) const CHUNK: usize = 4096;

/// Points around their mean, along their principal axes, at a size that makes the mean square of their distances to the
/// mean 1.
pub(super) struct Points {
    pub count: usize,
    pub width: usize,
    /// Number `j` of the points of block `b` is at `b * width + j`; behind the last point there are zeros.
    blocks: Vec<Lanes<f32>>,
    /// The kernels that are used; all give the same results.
    pub level: Level,
}

impl Points {
    /// `write` writes the numbers of a point; they become products with `frame`, `width` columns row-major.
    pub(super) fn new(
        count: usize,
        frame: &[f64],
        width: usize,
        write: impl Fn(usize, &mut [f32]),
    ) -> Result<Points> {
        let rank = frame.len() / width.max(1);
        let mut row = vec![0.0f32; rank];
        let mut mean = vec![0.0f64; rank];
        let share = 1.0 / count.max(1) as f64;
        for i in 0..count {
            write(i, &mut row);
            let add = |(m, &x): (&mut f64, &f32)| *m += f64::from(x);
            mean.iter_mut().zip(&row).for_each(add);
        }
        mean.iter_mut().for_each(|m| *m *= share);
        let mut turned = vec![0.0f64; width];
        let place = |i: usize, row: &mut [f32], turned: &mut [f64]| {
            write(i, row);
            turned.fill(0.0);
            for (line, (&x, m)) in frame.chunks_exact(width).zip(row.iter().zip(&mean)) {
                let x = f64::from(x) - m;
                let add = |(t, f): (&mut f64, &f64)| *t += x * f;
                turned.iter_mut().zip(line).for_each(add);
            }
        };
        let mut spread = vec![0.0f64; width * width];
        for i in 0..count {
            place(i, &mut row, &mut turned);
            for (line, &x) in spread.chunks_exact_mut(width).zip(&turned) {
                let add = |(s, y): (&mut f64, &f64)| *s += x * y;
                line.iter_mut().zip(&turned).for_each(add);
            }
        }
        let trace: f64 = (0..width).map(|j| spread[j * width + j]).sum();
        if !trace.is_finite() {
            return Err(Error::argument(
                "the numbers of the model are too large for distances between its rows",
            ));
        }
        let scale = match (trace * share).sqrt() {
            size if size > f64::MIN_POSITIVE => size,
            _ => 1.0,
        };
        let axes = symmetric_eigen(width, &spread).vectors;
        // On this thread, before there are others.
        let level = Level::choose(None)?;
        let mut points = Points::zeros(count, width, level)?;
        for i in 0..count {
            place(i, &mut row, &mut turned);
            for (j, axis) in axes.chunks_exact(width).enumerate() {
                let along: f64 = axis.iter().zip(&turned).map(|(a, t)| a * t).sum();
                points.set(i, j, (along / scale) as f32);
            }
        }
        Ok(points)
    }

    fn zeros(count: usize, width: usize, level: Level) -> Result<Points> {
        let len = count.div_ceil(LANES) * width;
        let mut blocks = try_with_capacity(len, "numbers of points")?;
        blocks.resize(len, [0.0; LANES]);
        Ok(Points {
            count,
            width,
            blocks,
            level,
        })
    }

    fn set(&mut self, point: usize, j: usize, x: f32) {
        self.blocks[point / LANES * self.width + j][point % LANES] = x;
    }

    /// Number `j` of a point.
    pub(super) fn at(&self, point: usize, j: usize) -> f32 {
        self.blocks[point / LANES * self.width + j][point % LANES]
    }

    /// The numbers of a point.
    pub(super) fn get(&self, point: usize) -> impl Iterator<Item = f32> + '_ {
        (0..self.width).map(move |j| self.at(point, j))
    }

    /// The blocks of a chunk, one after the other.
    pub(super) fn blocks(&self, chunk: usize) -> &[Lanes<f32>] {
        let each = CHUNK / LANES * self.width;
        &self.blocks[chunk * each..((chunk + 1) * each).min(self.blocks.len())]
    }

    pub(super) fn chunks(&self) -> usize {
        self.count.div_ceil(CHUNK)
    }

    /// The points of a chunk.
    pub(super) fn chunk(&self, chunk: usize) -> std::ops::Range<usize> {
        chunk * CHUNK..((chunk + 1) * CHUNK).min(self.count)
    }

    /// The squared distance of a point to a place.
    pub(super) fn distance(&self, point: usize, to: &[f64]) -> f64 {
        let each = self.get(point).zip(to);
        each.map(|(x, c)| (f64::from(x) - c) * (f64::from(x) - c))
            .sum()
    }

    /// Some of these points, `count` of them drawn from `stream` and in order; all if there are no more.
    pub(super) fn some(&self, count: usize, stream: &mut RandomStream) -> Result<Points> {
        let mut some = Points::zeros(count.min(self.count), self.width, self.level)?;
        let mut to = 0;
        for i in 0..self.count {
            let (wanted, left) = (some.count - to, self.count - i);
            if wanted == left || stream.below(left as u64) < wanted as u64 {
                (0..self.width).for_each(|j| some.set(to, j, self.at(i, j)));
                to += 1;
            }
        }
        Ok(some)
    }

    /// As many points drawn evenly from the box along the principal axes that these points fill.
    pub(super) fn even(&self, stream: &mut RandomStream) -> Result<Points> {
        let mut bounds = vec![(f32::INFINITY, f32::NEG_INFINITY); self.width];
        for i in 0..self.count {
            for (b, x) in bounds.iter_mut().zip(self.get(i)) {
                *b = (b.0.min(x), b.1.max(x));
            }
        }
        let mut even = Points::zeros(self.count, self.width, self.level)?;
        for i in 0..self.count {
            for (j, &(low, high)) in bounds.iter().enumerate() {
                let x = f64::from(low) + stream.uniform() * (f64::from(high) - f64::from(low));
                even.set(i, j, x as f32);
            }
        }
        Ok(even)
    }
}
