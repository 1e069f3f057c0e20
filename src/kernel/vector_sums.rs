//! Inner products and sums of long vectors of `f32`, in `f64`, compiled for every instruction set. Terms are added in a fixed
//! order, so all instruction sets give the same bits.
#![allow(unsafe_code)]

use crate::simd::{F32x16, Level, dispatched};

/// Number of partial sums of an inner product.
const LANES: usize = 16;

/// Returns the inner products of a vector with each of three others.
///
/// # Panics
/// If lengths differ or are not a multiple of 16.
pub(crate) fn inner_products(vector: &[f32], others: [&[f64]; 3]) -> [f64; 3] {
    assert!(vector.len().is_multiple_of(LANES));
    assert!(others.iter().all(|other| other.len() == vector.len()));
    // SAFETY: the level is available; the kernel checks all indices.
    unsafe { products(Level::best(), vector, others) }
}

/// Adds a vector times a factor to `sum`.
///
/// # Panics
/// If lengths differ.
pub(crate) fn add_scaled(sum: &mut [f64], factor: f64, vector: &[f32]) {
    assert_eq!(sum.len(), vector.len());
    // SAFETY: the level is available; the kernel checks all indices.
    unsafe { add(Level::best(), sum, factor, vector) }
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
    let [a, b, c] = others.map(|other| other.as_chunks::<LANES>().0);
    let vector = vector.as_chunks::<LANES>().0;
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
