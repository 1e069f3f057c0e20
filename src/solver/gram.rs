//! Sums over rows and over products of their numbers, in `f64` and over fixed pieces: the result does not
//! depend on the number of threads.

use crate::error::Result;
use crate::model::Rows;
use crate::parallel::ThreadPool;

/// How many rows there are, their sum, and the sum of their outer products (the lower triangle).
pub(super) struct Moments {
    pub count: f64,
    pub sum: Vec<f64>,
    pub square: Vec<f64>,
}

impl Moments {
    /// The sum of outer products, all of it.
    pub(super) fn gram(&self) -> Vec<f64> {
        let size = self.sum.len();
        let at = |i: usize, j: usize| self.square[i.max(j) * size + i.min(j)];
        (0..size * size).map(|k| at(k / size, k % size)).collect()
    }
}

/// Sums of the first rows and their biases, and of their products.
pub(super) fn moments(
    rows: &Rows,
    count: usize,
    biases: &[f32],
    pool: &ThreadPool,
) -> Result<Moments> {
    /// Rows at a time.
    const PIECE: usize = 512;
    let size = rows.rank() + usize::from(!biases.is_empty());
    let none = || Moments {
        count: count as f64,
        sum: vec![0.0; size],
        square: vec![0.0; size * size],
    };
    let pieces = pool.map(
        count.div_ceil(PIECE),
        &mut || false,
        || vec![0.0f64; size],
        |x, p| {
            let mut m = none();
            for i in p * PIECE..((p + 1) * PIECE).min(count) {
                let numbers = rows.row(i).iter().chain(biases.get(i));
                x.iter_mut()
                    .zip(numbers)
                    .for_each(|(x, &u)| *x = f64::from(u));
                for a in 0..size {
                    m.sum[a] += x[a];
                    let (y, row) = (x[a], &mut m.square[a * size..=a * size + a]);
                    row.iter_mut().zip(&*x).for_each(|(s, x)| *s += x * y);
                }
            }
            m
        },
    )?;
    let mut total = none();
    for m in pieces.unwrap_or_default() {
        total.sum.iter_mut().zip(m.sum).for_each(|(t, x)| *t += x);
        total
            .square
            .iter_mut()
            .zip(m.square)
            .for_each(|(t, x)| *t += x);
    }
    Ok(total)
}
