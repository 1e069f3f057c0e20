//! Sums and Gram matrices of factor rows, in `f64`.
//!
//! Rows are summed in chunks of fixed size, and the chunks in order, so the result is independent of the
//! thread count.

use crate::error::Result;
use crate::model::FactorMatrix;
use crate::parallel::ThreadPool;

/// First and second moments of some rows, not divided by their number.
pub(super) struct RowMoments {
    /// Number of rows.
    pub count: f64,
    /// Sum of the rows.
    pub sum: Vec<f64>,
    /// Sum of the outer products u u^T: the lower triangle, row-major.
    pub outer_products: Vec<f64>,
}

impl RowMoments {
    /// Returns the full Gram matrix U^T U.
    pub(super) fn gram(&self) -> Vec<f64> {
        let size = self.sum.len();
        let element = |i: usize, j: usize| self.outer_products[i.max(j) * size + i.min(j)];
        (0..size * size)
            .map(|k| element(k / size, k % size))
            .collect()
    }
}

/// Computes the moments of the first `count` rows. If there are biases, they count as one more column.
pub(super) fn row_moments(
    rows: &FactorMatrix,
    count: usize,
    biases: &[f32],
    pool: &ThreadPool<'_>,
) -> Result<RowMoments> {
    /// Number of rows that one task sums.
    const CHUNK_ROWS: usize = 512;
    let size = rows.rank() + usize::from(!biases.is_empty());
    let zero = || RowMoments {
        count: count as f64,
        sum: vec![0.0; size],
        outer_products: vec![0.0; size * size],
    };
    let chunks = pool.map(
        count.div_ceil(CHUNK_ROWS),
        || vec![0.0f64; size],
        |x, chunk| {
            let mut m = zero();
            for i in chunk * CHUNK_ROWS..((chunk + 1) * CHUNK_ROWS).min(count) {
                let elements = rows.row(i).iter().chain(biases.get(i));
                x.iter_mut()
                    .zip(elements)
                    .for_each(|(x, &u)| *x = f64::from(u));
                for a in 0..size {
                    m.sum[a] += x[a];
                    let (y, row) = (x[a], &mut m.outer_products[a * size..=a * size + a]);
                    row.iter_mut().zip(&*x).for_each(|(s, x)| *s += x * y);
                }
            }
            m
        },
    )?;
    let mut total = zero();
    for m in chunks {
        total.sum.iter_mut().zip(m.sum).for_each(|(t, x)| *t += x);
        total
            .outer_products
            .iter_mut()
            .zip(m.outer_products)
            .for_each(|(t, x)| *t += x);
    }
    Ok(total)
}
