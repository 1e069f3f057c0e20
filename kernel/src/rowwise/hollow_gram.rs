//! Products with the Gram matrix of sparse fibers without its diagonal, compiled for every instruction set.
#![allow(unsafe_code)]

use crate::simd::{F32x16, Level, dispatched};

/// Number of columns that one product handles.
pub const GRAM_COLUMNS: usize = 8;

/// Elements of one row in all columns.
type Row = [f64; GRAM_COLUMNS];

/// Adds X X^T v, without the diagonal of X X^T, to `out`. Column k of X has the values of fiber k: `rows` and `values` have one
/// element per position, fiber after fiber, and `ends` the end of each fiber. Within a fiber every position receives the sum
/// over the others. Terms are added in the order of the positions, so all instruction sets give the same bits.
///
/// # Panics
/// If lengths do not match or a row does not exist.
pub fn add_hollow_gram_product(
    rows: &[u32],
    values: &[f64],
    ends: &[usize],
    v: &[Row],
    out: &mut [Row],
) {
    assert_eq!((rows.len(), v.len()), (values.len(), out.len()));
    // SAFETY: the level is available; the kernel checks all indices.
    unsafe { add_product(Level::best(), rows, values, ends, v, out) }
}

dispatched! {
    unsafe fn add_product(rows: &[u32], values: &[f64], ends: &[usize], v: &[Row], out: &mut [Row]) = any_add_product;
}

// Plain loops, which the compiler vectorizes for the instruction set that is enabled where this function is inlined.
#[inline(always)]
unsafe fn any_add_product<V: F32x16>(
    rows: &[u32],
    values: &[f64],
    ends: &[usize],
    v: &[Row],
    out: &mut [Row],
) {
    let mut start = 0;
    for &end in ends {
        let (rows, values) = (&rows[start..end], &values[start..end]);
        start = end;
        let mut sum = [0.0; GRAM_COLUMNS];
        for p in 0..rows.len() {
            let (x, own) = (values[p], &v[rows[p] as usize]);
            for k in 0..GRAM_COLUMNS {
                sum[k] += x * own[k];
            }
        }
        for p in 0..rows.len() {
            let (x, i) = (values[p], rows[p] as usize);
            // Copies, which the compiler knows not to overlap.
            let (own, mut to) = (v[i], out[i]);
            for k in 0..GRAM_COLUMNS {
                to[k] += x * (sum[k] - x * own[k]);
            }
            out[i] = to;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_agree_with_the_dense_matrix() {
        let fibers: [&[(u32, f64)]; 3] = [
            &[(0, 1.0), (2, -2.0)],
            &[(1, 3.0), (2, 0.5), (3, 1.5)],
            &[(0, 2.0), (3, -1.0)],
        ];
        let positions = || fibers.iter().copied().flatten();
        let rows: Vec<u32> = positions().map(|p| p.0).collect();
        let values: Vec<f64> = positions().map(|p| p.1).collect();
        let v: Vec<Row> = (0..4)
            .map(|i| std::array::from_fn(|k| (i * 3 + k) as f64 * 0.25))
            .collect();
        let mut expected = vec![[0.0; GRAM_COLUMNS]; 4];
        for fiber in fibers {
            for &(i, x) in fiber {
                for &(j, y) in fiber.iter().filter(|(j, _)| *j != i) {
                    for k in 0..GRAM_COLUMNS {
                        expected[i as usize][k] += x * y * v[j as usize][k];
                    }
                }
            }
        }
        let mut out = vec![[0.0; GRAM_COLUMNS]; 4];
        add_hollow_gram_product(&rows, &values, &[2, 5, 7], &v, &mut out);
        assert_eq!(out, expected);
    }
}
