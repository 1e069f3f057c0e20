//! Sums and Gram matrices of factor rows, in `f64`.
//!
//! Rows are summed in chunks of fixed size, and the chunks in order, so the result is independent of the
//! thread count.

use crate::error::Result;
use crate::kernel::add_row_moments;
use crate::model::FactorMatrix;
use crate::parallel::ThreadPool;

/// First and second moments of some rows, not divided by their number.
pub struct RowMoments {
    /// Number of rows.
    pub count: f64,
    /// Sum of the rows.
    pub sum: Vec<f64>,
    /// Sum of the outer products u u^T: the lower triangle, row-major.
    pub outer_products: Vec<f64>,
}

impl RowMoments {
    /// Returns the full Gram matrix U^T U.
    pub fn gram(&self) -> Vec<f64> {
        let size = self.sum.len();
        let element = |i: usize, j: usize| self.outer_products[i.max(j) * size + i.min(j)];
        (0..size * size)
            .map(|k| element(k / size, k % size))
            .collect()
    }
}

/// Computes the moments of the first `count` rows. If there are biases, they count as one more column.
pub fn row_moments(
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
    let (stride, all) = (rows.stride(), rows.as_slice());
    let chunks = pool.map(
        count.div_ceil(CHUNK_ROWS),
        || (),
        |(), chunk| {
            let mut m = zero();
            let part = chunk * CHUNK_ROWS..((chunk + 1) * CHUNK_ROWS).min(count);
            let biases = biases.get(part.clone()).unwrap_or_default();
            let rows_of_part = &all[part.start * stride..part.end * stride];
            let (sum, outer_products) = (&mut m.sum, &mut m.outer_products);
            add_row_moments(
                rows_of_part,
                stride,
                rows.rank(),
                biases,
                sum,
                outer_products,
            );
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
