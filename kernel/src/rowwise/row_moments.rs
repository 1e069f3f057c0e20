//! Sums and outer products of rows in `f64`, compiled for every instruction set.
#![allow(unsafe_code)]

use crate::simd::F32x16;
use crate::simd::{LANES as ROW_LANES, Level, dispatched};

/// Adds the elements of rows to `sum`, and the lower triangle of their outer products, row-major, to `outer_products`. A row
/// is the first `rank` of `stride` floats, followed by its bias if there are biases. Terms are added in the order of the
/// rows, so all instruction sets give the same bits.
///
/// # Panics
/// If there are fewer biases than rows, or the lengths of the sums are not those of a row.
pub fn add_row_moments(
    rows: &[f32],
    stride: usize,
    rank: usize,
    biases: &[f32],
    sum: &mut [f64],
    outer_products: &mut [f64],
) {
    let size = rank + usize::from(!biases.is_empty());
    assert!(rank <= stride && (biases.is_empty() || biases.len() >= rows.len() / stride));
    assert_eq!((sum.len(), outer_products.len()), (size, size * size));
    let vectors = size.div_ceil(LANES);
    let mut scratch = MomentScratch {
        row: vec![[0.0; LANES]; vectors],
        sum: vec![[0.0; LANES]; vectors],
        outer_products: vec![[0.0; LANES]; size * vectors],
    };
    // SAFETY: the level is available; the kernel checks all indices.
    unsafe { add(Level::best(), rows, stride, rank, biases, &mut scratch) }
    let add = |to: &mut [f64], from: &[[f64; LANES]]| {
        let from = from.as_flattened();
        to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
    };
    add(sum, &scratch.sum);
    let sums = scratch.outer_products.chunks_exact(vectors);
    for (i, (to, from)) in outer_products.chunks_exact_mut(size).zip(sums).enumerate() {
        add(&mut to[..=i], from);
    }
}

/// Adds rows, each times its weight, to `sum`. The length of the sum is that of a row. Terms are added in the order of the
/// rows, so all instruction sets give the same bits.
///
/// # Panics
/// If lengths do not match.
pub fn add_weighted_rows(rows: &[f32], weights: &[f64], sum: &mut [[f64; ROW_LANES]]) {
    assert_eq!(rows.len(), weights.len() * sum.as_flattened().len());
    // SAFETY: the level is available; the kernel checks all indices.
    unsafe { add_weighted(Level::best(), rows, weights, sum) }
}

dispatched! {
    unsafe fn add_weighted(rows: &[f32], weights: &[f64], sum: &mut [[f64; ROW_LANES]]) = any_add_weighted;
}

#[inline(always)]
unsafe fn any_add_weighted<V: F32x16>(rows: &[f32], weights: &[f64], sum: &mut [[f64; ROW_LANES]]) {
    let vectors = sum.len();
    let rows = rows.as_chunks::<ROW_LANES>().0;
    for (k, sum) in sum.iter_mut().enumerate() {
        // A copy, which stays in registers.
        let mut total = *sum;
        for (i, &weight) in weights.iter().enumerate() {
            let row = &rows[i * vectors + k];
            for l in 0..ROW_LANES {
                total[l] += weight * f64::from(row[l]);
            }
        }
        *sum = total;
    }
}

/// Elements of a row or sum in one array, which becomes one or several vectors.
const LANES: usize = 8;

/// One row, and sums whose rows are padded with zeros.
struct MomentScratch {
    row: Vec<[f64; LANES]>,
    sum: Vec<[f64; LANES]>,
    /// Of each row, the arrays up to the one with the diagonal are valid.
    outer_products: Vec<[f64; LANES]>,
}

dispatched! {
    unsafe fn add(rows: &[f32], stride: usize, rank: usize, biases: &[f32], scratch: &mut MomentScratch) = any_add;
}

#[inline(always)]
unsafe fn any_add<V: F32x16>(
    rows: &[f32],
    stride: usize,
    rank: usize,
    biases: &[f32],
    scratch: &mut MomentScratch,
) {
    let MomentScratch {
        row: x,
        sum,
        outer_products,
    } = scratch;
    let vectors = x.len();
    let size = outer_products.len() / vectors;
    for (i, row) in rows.chunks_exact(stride).enumerate() {
        for j in 0..rank {
            x[j / LANES][j % LANES] = f64::from(row[j]);
        }
        if let Some(&bias) = biases.get(i) {
            x[rank / LANES][rank % LANES] = f64::from(bias);
        }
        for v in 0..vectors {
            for l in 0..LANES {
                sum[v][l] += x[v][l];
            }
        }
        for a in 0..size {
            let y = x[a / LANES][a % LANES];
            let used = a / LANES + 1;
            let to = &mut outer_products[a * vectors..][..used];
            let x = &x[..used];
            for v in 0..used {
                // Copies, which the compiler knows not to overlap.
                let (x, mut products) = (x[v], to[v]);
                for l in 0..LANES {
                    products[l] += x[l] * y;
                }
                to[v] = products;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weighted_rows_of_two_vectors() {
        let rows: Vec<f32> = (0..96).map(|i| i as f32).collect();
        let mut sum = [[1.0; 16]; 2];
        add_weighted_rows(&rows, &[1.0, 0.0, -0.5], &mut sum);
        let expected = |i: usize| 1.0 + i as f64 - 0.5 * (64 + i) as f64;
        let sums = sum.as_flattened().iter().enumerate();
        assert!(sums.map(|(i, &x)| x - expected(i)).all(|x| x == 0.0));
    }

    #[test]
    fn moments_of_rows_with_biases() {
        let rows = [1.0, 2.0, 9.0, 3.0, -1.0, 9.0];
        let (mut sum, mut outer) = ([0.0; 3], [0.0; 9]);
        add_row_moments(&rows, 3, 2, &[0.5, 2.0], &mut sum, &mut outer);
        assert_eq!(sum, [4.0, 1.0, 2.5]);
        assert_eq!(outer, [10.0, 0.0, 0.0, -1.0, 5.0, 0.0, 6.5, -1.0, 4.25]);
    }
}
