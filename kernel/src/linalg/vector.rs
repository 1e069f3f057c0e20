//! Vectors in `f64`.

/// Returns the inner product, summed from the first element to the last.
#[inline]
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Returns the Euclidean norm.
#[inline]
pub fn norm(v: &[f64]) -> f64 {
    dot(v, v).sqrt()
}

/// Computes `to += scale * v`.
#[inline]
pub fn add_scaled(to: &mut [f64], scale: f64, v: &[f64]) {
    to.iter_mut().zip(v).for_each(|(t, x)| *t += scale * x);
}

/// Scales `v` to the given norm. A zero vector stays as it is.
pub fn scale_to_norm(v: &mut [f64], target: f64) {
    let norm = norm(v);
    if norm > 0.0 {
        v.iter_mut().for_each(|x| *x *= target / norm);
    }
}
