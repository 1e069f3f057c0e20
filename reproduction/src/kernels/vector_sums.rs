//! Inner products, sums and products of vectors of `f32`, in `f64`, compiled for every instruction set. Terms are added in a fixed
//! order, so all instruction sets give the same bits.
#![allow(unsafe_code)]

use s3cmtf_kernel::simd::{F32x16, Level, dispatched};

/// Number of partial sums of an inner product.
const LANES: usize = 16;

/// Returns the inner products of a vector with each of three others.
///
/// # Panics
/// If lengths differ.
pub fn inner_products(vector: &[f32], others: [&[f64]; 3]) -> [f64; 3] {
    assert!(others.iter().all(|other| other.len() == vector.len()));
    // SAFETY: the level is available; the kernel checks all indices.
    unsafe { products(Level::best(), vector, others) }
}

/// Adds a vector times a factor to `sum`.
///
/// # Panics
/// If lengths differ.
pub fn add_scaled(sum: &mut [f64], factor: f64, vector: &[f32]) {
    assert_eq!(sum.len(), vector.len());
    // SAFETY: the level is available; the kernel checks all indices.
    unsafe { add(Level::best(), sum, factor, vector) }
}

/// Adds a symmetric matrix, row-major, times a vector and a factor to `sum`.
///
/// # Panics
/// If lengths do not match.
pub fn add_symmetric_product(sum: &mut [f64], factor: f64, matrix: &[f64], vector: &[f32]) {
    assert_eq!(sum.len(), vector.len());
    assert_eq!(matrix.len(), vector.len() * vector.len());
    // SAFETY: the level is available; the kernel checks all indices.
    unsafe { add_product(Level::best(), sum, factor, matrix, vector) }
}

dispatched! {
    unsafe fn add_product(sum: &mut [f64], factor: f64, matrix: &[f64], vector: &[f32]) = any_add_product;
}

dispatched! {
    unsafe fn products(vector: &[f32], others: [&[f64]; 3]) -> [f64; 3] = any_products;
}

dispatched! {
    unsafe fn add(sum: &mut [f64], factor: f64, vector: &[f32]) = any_add;
}

#[inline(always)]
unsafe fn any_products<V: F32x16>(vector: &[f32], others: [&[f64]; 3]) -> [f64; 3] {
    let mut sums = [[0.0f64; LANES]; 3];
    let (vector, rest) = vector.as_chunks::<LANES>();
    for (sums, other) in sums.iter_mut().zip(others) {
        let other = &other[other.len() - rest.len()..];
        for i in 0..rest.len() {
            sums[i] = f64::from(rest[i]) * other[i];
        }
    }
    let [a, b, c] = others.map(|other| other.as_chunks::<LANES>().0);
    for (((x, a), b), c) in vector.iter().zip(a).zip(b).zip(c) {
        for i in 0..LANES {
            let x = f64::from(x[i]);
            sums[0][i] += x * a[i];
            sums[1][i] += x * b[i];
            sums[2][i] += x * c[i];
        }
    }
    sums.map(|sums| sums.iter().sum())
}

#[inline(always)]
unsafe fn any_add<V: F32x16>(sum: &mut [f64], factor: f64, vector: &[f32]) {
    for (sum, &x) in sum.iter_mut().zip(vector) {
        *sum += factor * f64::from(x);
    }
}

#[inline(always)]
unsafe fn any_add_product<V: F32x16>(sum: &mut [f64], factor: f64, matrix: &[f64], vector: &[f32]) {
    // Rows of the matrix are its columns.
    for (column, &x) in matrix.chunks_exact(vector.len()).zip(vector) {
        let x = factor * f64::from(x);
        for (sum, a) in sum.iter_mut().zip(column) {
            *sum += x * a;
        }
    }
}
