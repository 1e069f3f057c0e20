//! Products of dense matrices in `f64`, compiled for every instruction set.
#![allow(unsafe_code)]

use s3cmtf_kernel::progress::count_operations;
use s3cmtf_kernel::simd::{F32x16, Level, dispatched};

/// Elements in one array, which becomes one or several vectors. Rows are padded to whole arrays.
pub const DENSE_LANES: usize = 8;

type Array = [f64; DENSE_LANES];

/// Number of rows, or of columns, that share the elements that were loaded.
const UNROLLED: usize = 4;

/// The part of a product that is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All elements.
    All,
    /// The upper triangle, and elements of the same array below the diagonal.
    UpperTriangle,
}

/// Adds L^T R to `sums`: the sum over i of the outer products of row i of `left`, with `width` of `stride` elements, and row i
/// of `right`, padded. Terms are added in the order of the rows, so all instruction sets give the same bits.
///
/// # Panics
/// If lengths do not match, or the machine does not have the level.
pub fn add_cross_products(
    level: Level,
    left: &[f64],
    [stride, width]: [usize; 2],
    right: &[Array],
    part: Part,
    sums: &mut [Array],
) {
    assert!(level.is_available());
    let count = left.len() / stride;
    assert!(width <= stride && left.len() == count * stride && sums.len().is_multiple_of(width));
    assert_eq!(right.len(), count * (sums.len() / width));
    count_operations(count * sums.len() * DENSE_LANES);
    // SAFETY: the level is available; the kernel checks all indices.
    unsafe { cross(level, left, stride, width, right, part, sums) }
}

dispatched! {
    unsafe fn cross(left: &[f64], stride: usize, width: usize, right: &[Array], part: Part, sums: &mut [Array]) = any_cross;
}

#[inline(always)]
unsafe fn any_cross<V: F32x16>(
    left: &[f64],
    stride: usize,
    width: usize,
    right: &[Array],
    part: Part,
    sums: &mut [Array],
) {
    let arrays = sums.len() / width;
    let lefts = left.chunks(UNROLLED * stride);
    let rights = right.chunks(UNROLLED * arrays.max(1));
    for (left, right) in lefts.zip(rights) {
        let is_whole = right.len() == UNROLLED * arrays;
        for (k, sums) in sums.chunks_exact_mut(arrays).enumerate() {
            let first = match part {
                Part::All => 0,
                Part::UpperTriangle => k / DENSE_LANES,
            };
            let to = &mut sums[first..];
            if is_whole {
                // No closures, which are not compiled for the instruction set.
                let (mut x, mut rows) = ([0.0; UNROLLED], [&right[..0]; UNROLLED]);
                for i in 0..UNROLLED {
                    x[i] = left[i * stride + k];
                    rows[i] = &right[i * arrays + first..][..to.len()];
                }
                for v in 0..to.len() {
                    let mut sum = to[v];
                    for i in 0..UNROLLED {
                        for l in 0..DENSE_LANES {
                            sum[l] += x[i] * rows[i][v][l];
                        }
                    }
                    to[v] = sum;
                }
            } else {
                for (i, row) in right.chunks_exact(arrays).enumerate() {
                    let x = left[i * stride + k];
                    for (to, from) in to.iter_mut().zip(&row[first..]) {
                        let mut sum = *to;
                        for l in 0..DENSE_LANES {
                            sum[l] += x * from[l];
                        }
                        *to = sum;
                    }
                }
            }
        }
    }
}

/// Adds L M to `out`: for every row of `left`, of `width` elements, the sum of the rows of `matrix`, padded, times its elements.
/// Terms are added in the order of the rows of `matrix`, so all instruction sets give the same bits.
///
/// # Panics
/// If lengths do not match, or the machine does not have the level.
pub fn add_row_products(
    level: Level,
    left: &[f64],
    width: usize,
    matrix: &[Array],
    out: &mut [Array],
) {
    assert!(level.is_available());
    let arrays = matrix.len() / width;
    assert!(matrix.len() == width * arrays && left.len().is_multiple_of(width));
    assert_eq!(out.len(), left.len() / width * arrays);
    count_operations(left.len() * arrays * DENSE_LANES);
    // SAFETY: the level is available; the kernel checks all indices.
    unsafe { row_products(level, left, width, matrix, out) }
}

dispatched! {
    unsafe fn row_products(left: &[f64], width: usize, matrix: &[Array], out: &mut [Array]) = any_row_products;
}

#[inline(always)]
unsafe fn any_row_products<V: F32x16>(
    left: &[f64],
    width: usize,
    matrix: &[Array],
    out: &mut [Array],
) {
    let arrays = matrix.len() / width;
    let groups = left.chunks(UNROLLED * width);
    for (left, out) in groups.zip(out.chunks_mut(UNROLLED * arrays)) {
        if left.len() == UNROLLED * width {
            add_products_of_rows::<UNROLLED>(left, width, matrix, out);
        } else {
            let rows = left.chunks_exact(width).zip(out.chunks_exact_mut(arrays));
            for (left, out) in rows {
                add_products_of_rows::<1>(left, width, matrix, out);
            }
        }
    }
}

/// Adds the products of `N` rows, which share the elements of the matrix that were loaded.
#[inline(always)]
fn add_products_of_rows<const N: usize>(
    left: &[f64],
    width: usize,
    matrix: &[Array],
    out: &mut [Array],
) {
    let arrays = matrix.len() / width;
    for v in 0..arrays {
        let mut sums = [[0.0; DENSE_LANES]; N];
        for i in 0..N {
            sums[i] = out[i * arrays + v];
        }
        for k in 0..width {
            let from = matrix[k * arrays + v];
            for i in 0..N {
                let x = left[i * width + k];
                for l in 0..DENSE_LANES {
                    sums[i][l] += x * from[l];
                }
            }
        }
        for i in 0..N {
            out[i * arrays + v] = sums[i];
        }
    }
}

/// Writes R T^T to `out`: for every row of `rows`, its inner products with the `count` rows of `others`. Rows are padded with
/// zeros. All instruction sets give the same bits.
///
/// # Panics
/// If lengths do not match, or the machine does not have the level.
pub fn row_inner_products(
    level: Level,
    rows: &[Array],
    others: &[Array],
    count: usize,
    out: &mut [f64],
) {
    assert!(level.is_available());
    let arrays = others.len() / count;
    assert!(others.len() == count * arrays && rows.len().is_multiple_of(arrays.max(1)));
    assert_eq!(out.len(), rows.len() / arrays.max(1) * count);
    count_operations(out.len() * arrays * DENSE_LANES);
    // SAFETY: the level is available; the kernel checks all indices.
    unsafe { inner(level, rows, others, count, out) }
}

dispatched! {
    unsafe fn inner(rows: &[Array], others: &[Array], count: usize, out: &mut [f64]) = any_inner;
}

#[inline(always)]
unsafe fn any_inner<V: F32x16>(rows: &[Array], others: &[Array], count: usize, out: &mut [f64]) {
    let arrays = others.len() / count;
    for (row, out) in rows.chunks_exact(arrays).zip(out.chunks_exact_mut(count)) {
        let groups = others.chunks(UNROLLED * arrays);
        for (others, out) in groups.zip(out.chunks_mut(UNROLLED)) {
            if let Ok(out) = <&mut [f64; UNROLLED]>::try_from(&mut *out) {
                let mut rows = [&others[..0]; UNROLLED];
                for k in 0..UNROLLED {
                    rows[k] = &others[k * arrays..][..arrays];
                }
                *out = inner_with(row, rows);
            } else {
                for (other, out) in others.chunks_exact(arrays).zip(out) {
                    [*out] = inner_with(row, [other]);
                }
            }
        }
    }
}

/// Returns the inner products of a row with `N` others of the same length.
#[inline(always)]
fn inner_with<const N: usize>(row: &[Array], others: [&[Array]; N]) -> [f64; N] {
    let mut sums = [[0.0; DENSE_LANES]; N];
    for v in 0..row.len() {
        for k in 0..N {
            for l in 0..DENSE_LANES {
                sums[k][l] += row[v][l] * others[k][v][l];
            }
        }
    }
    let mut totals = [0.0; N];
    for k in 0..N {
        let s = sums[k];
        totals[k] = ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(rows: usize, columns: usize, arrays: usize) -> Vec<Array> {
        let element = |i: usize, j: usize| match j < columns {
            true => ((i * 31 + j * 17) % 23) as f64 - 11.0,
            false => 0.0,
        };
        let array = |i: usize, v: usize| std::array::from_fn(|l| element(i, v * DENSE_LANES + l));
        (0..rows * arrays)
            .map(|k| array(k / arrays, k % arrays))
            .collect()
    }

    #[test]
    fn products_agree_with_plain_sums() {
        Level::available().for_each(check_products);
    }

    fn check_products(level: Level) {
        for (count, columns, width) in [(1, 3usize, 1), (9, 17, 5), (8, 8, 4), (0, 5, 2)] {
            let arrays = columns.div_ceil(DENSE_LANES);
            let right = matrix(count, columns, arrays);
            let left = matrix(count, width, 1);
            let at =
                |m: &[Array], stride: usize, i: usize, j: usize| m.as_flattened()[i * stride + j];
            let stride = arrays * DENSE_LANES;
            let mut sums = vec![[1.0; DENSE_LANES]; width * arrays];
            let lefts = left.as_flattened();
            add_cross_products(
                level,
                lefts,
                [DENSE_LANES, width],
                &right,
                Part::All,
                &mut sums,
            );
            for (k, j) in (0..width * columns).map(|n| (n / columns, n % columns)) {
                let terms =
                    (0..count).map(|i| at(&left, DENSE_LANES, i, k) * at(&right, stride, i, j));
                assert_eq!(at(&sums, stride, k, j), 1.0 + terms.sum::<f64>());
            }
            let mut gram = vec![[0.0; DENSE_LANES]; columns * arrays];
            let all = right.as_flattened();
            add_cross_products(
                level,
                all,
                [stride, columns],
                &right,
                Part::UpperTriangle,
                &mut gram,
            );
            for (k, j) in (0..columns * columns).map(|n| (n / columns, n % columns)) {
                let terms = (0..count).map(|i| at(&right, stride, i, k) * at(&right, stride, i, j));
                let expected = if j >= k { terms.sum::<f64>() } else { continue };
                assert_eq!(at(&gram, stride, k, j), expected);
            }
            let mut out = vec![[1.0; DENSE_LANES]; count * arrays];
            let rows: Vec<f64> = (0..count * width)
                .map(|n| at(&left, DENSE_LANES, n / width, n % width))
                .collect();
            let by_row = matrix(width, columns, arrays);
            add_row_products(level, &rows, width, &by_row, &mut out);
            for (i, j) in (0..count * columns).map(|n| (n / columns, n % columns)) {
                let terms = (0..width).map(|k| rows[i * width + k] * at(&by_row, stride, k, j));
                assert_eq!(at(&out, stride, i, j), 1.0 + terms.sum::<f64>());
            }
            let others = matrix(width, columns, arrays);
            let mut products = vec![0.0; count * width];
            row_inner_products(level, &right, &others, width, &mut products);
            for (i, k) in (0..count * width).map(|n| (n / width, n % width)) {
                let terms =
                    (0..columns).map(|j| at(&right, stride, i, j) * at(&others, stride, k, j));
                assert_eq!(products[i * width + k], terms.sum::<f64>());
            }
        }
    }
}
