//! Small dense matrices in `f64`, row-major: for hyper-priors, for rows that all solve the same equations,
//! and where `f32` does not do.

/// The lower triangular L with L L^T = A, of which the lower triangle counts; `None` if A is not
/// positive definite.
pub(crate) fn cholesky(size: usize, a: &[f64]) -> Option<Vec<f64>> {
    let mut l = vec![0.0; size * size];
    for i in 0..size {
        for j in 0..=i {
            let (x, y) = (&l[i * size..i * size + j], &l[j * size..j * size + j]);
            let taken: f64 = x.iter().zip(y).map(|(x, y)| x * y).sum();
            let left = a[i * size + j] - taken;
            if i != j {
                l[i * size + j] = left / l[j * size + j];
            } else if left > 1e-14 * a[i * size + i] && left.is_finite() {
                l[i * size + i] = left.sqrt();
            } else {
                return None;
            }
        }
    }
    Some(l)
}

/// As [`cholesky`], of a matrix that ought to be positive definite but is known to `f32` alone: its
/// diagonal is raised by as small a share as will do. What is not finite counts as 0.
pub(crate) fn forced_cholesky(size: usize, a: &[f64]) -> Vec<f64> {
    let mut raised: Vec<f64> = a
        .iter()
        .map(|x| if x.is_finite() { *x } else { 0.0 })
        .collect();
    let largest = (0..size)
        .map(|i| raised[i * size + i].abs())
        .fold(0.0, f64::max);
    let least = if largest > 0.0 { 1e-9 * largest } else { 1.0 };
    let diagonal: Vec<f64> = (0..size)
        .map(|i| raised[i * size + i].abs().max(least))
        .collect();
    let mut share = 1e-6;
    loop {
        (0..size).for_each(|i| raised[i * size + i] = diagonal[i] * (1.0 + share));
        if let Some(l) = cholesky(size, &raised) {
            return l;
        }
        share *= 10.0;
    }
}

/// L^T x = b, in place.
pub(crate) fn back(size: usize, l: &[f64], b: &mut [f64]) {
    for i in (0..size).rev() {
        let taken: f64 = (i + 1..size).map(|k| l[k * size + i] * b[k]).sum();
        b[i] = (b[i] - taken) / l[i * size + i];
    }
}

/// L x = b, in place.
pub(crate) fn forward(size: usize, l: &[f64], b: &mut [f64]) {
    for i in 0..size {
        let row = &l[i * size..i * size + i];
        let taken: f64 = row.iter().zip(&b[..i]).map(|(l, b)| l * b).sum();
        b[i] = (b[i] - taken) / l[i * size + i];
    }
}

/// The inverse of a positive definite matrix, with as much added to the diagonal as it takes.
pub(crate) fn inverse(size: usize, a: &[f64]) -> Vec<f64> {
    let l = cholesky(size, a).unwrap_or_else(|| forced_cholesky(size, a));
    let mut all = vec![0.0; size * size];
    for (i, row) in all.chunks_exact_mut(size).enumerate() {
        row[i] = 1.0;
        forward(size, &l, row);
        back(size, &l, row);
    }
    all
}

/// Eigenvalues of a symmetric matrix, the largest first, and an eigenvector of length 1 for each, one after
/// the other; by rotations of two rows and columns at a time (Jacobi).
pub(crate) fn eigen(size: usize, a: &[f64]) -> (Vec<f64>, Vec<f64>) {
    /// More than any matrix takes.
    const ROUNDS: usize = 60;
    let mut a: Vec<f64> = a
        .iter()
        .map(|x| if x.is_finite() { *x } else { 0.0 })
        .collect();
    let mut vectors = vec![0.0; size * size];
    (0..size).for_each(|i| vectors[i * size + i] = 1.0);
    let all: f64 = a.iter().map(|x| x * x).sum();
    for _ in 0..ROUNDS {
        let off: f64 = (0..size * size)
            .filter(|k| k / size != k % size)
            .map(|k| a[k] * a[k])
            .sum();
        if off <= 1e-28 * all {
            break;
        }
        for p in 0..size {
            for q in p + 1..size {
                let x = a[p * size + q];
                if x == 0.0 {
                    continue;
                }
                let theta = (a[q * size + q] - a[p * size + p]) / (2.0 * x);
                let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
                let c = 1.0 / (t * t + 1.0).sqrt();
                let s = t * c;
                for k in 0..size {
                    let (x, y) = (a[k * size + p], a[k * size + q]);
                    (a[k * size + p], a[k * size + q]) = (c * x - s * y, s * x + c * y);
                }
                for k in 0..size {
                    let (x, y) = (a[p * size + k], a[q * size + k]);
                    (a[p * size + k], a[q * size + k]) = (c * x - s * y, s * x + c * y);
                    let (x, y) = (vectors[p * size + k], vectors[q * size + k]);
                    (vectors[p * size + k], vectors[q * size + k]) = (c * x - s * y, s * x + c * y);
                }
            }
        }
    }
    let mut order: Vec<usize> = (0..size).collect();
    order.sort_by(|&i, &j| a[j * size + j].total_cmp(&a[i * size + i]));
    let values = order.iter().map(|&i| a[i * size + i]).collect();
    let sorted = order.iter().flat_map(|&i| &vectors[i * size..][..size]);
    (values, sorted.copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_and_solutions() {
        let a = [4.0, 2.0, 0.6, 2.0, 5.0, 1.5, 0.6, 1.5, 3.8];
        let l = cholesky(3, &a).unwrap();
        for i in 0..3 {
            for j in 0..3 {
                let x: f64 = (0..3).map(|k| l[i * 3 + k] * l[j * 3 + k]).sum();
                assert!((x - a[i * 3 + j]).abs() < 1e-12);
            }
        }
        let inverse = inverse(3, &a);
        for i in 0..3 {
            for j in 0..3 {
                let x: f64 = (0..3).map(|k| a[i * 3 + k] * inverse[k * 3 + j]).sum();
                assert!((x - f64::from(u8::from(i == j))).abs() < 1e-12);
            }
        }
        let mut b = [1.0, -2.0, 3.0];
        forward(3, &l, &mut b);
        back(3, &l, &mut b);
        for i in 0..3 {
            let x: f64 = (0..3).map(|j| a[i * 3 + j] * b[j]).sum();
            assert!((x - [1.0, -2.0, 3.0][i]).abs() < 1e-12);
        }
    }

    #[test]
    fn eigenvectors_are_orthonormal_and_give_the_matrix_back() {
        let a = [4.0, 2.0, 0.6, 2.0, 5.0, 1.5, 0.6, 1.5, 3.8];
        for a in [a.to_vec(), vec![1.0; 9], vec![0.0; 9]] {
            let (values, vectors) = eigen(3, &a);
            assert!(values.windows(2).all(|w| w[0] >= w[1]), "{values:?}");
            for i in 0..3 {
                for j in 0..3 {
                    let at = |k: usize| vectors[k * 3 + i] * vectors[k * 3 + j];
                    let back: f64 = (0..3).map(|k| values[k] * at(k)).sum();
                    assert!((back - a[i * 3 + j]).abs() < 1e-12);
                    let one = |k: usize| vectors[i * 3 + k] * vectors[j * 3 + k];
                    let dot: f64 = (0..3).map(one).sum();
                    assert!((dot - f64::from(u8::from(i == j))).abs() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn singular_matrices_are_helped() {
        for a in [vec![0.0; 9], vec![1.0; 9], vec![f64::NAN; 9]] {
            assert!(cholesky(3, &a).is_none());
            let l = forced_cholesky(3, &a);
            assert!(l.iter().all(|x| x.is_finite()));
            assert!((0..3).all(|i| l[i * 3 + i] > 0.0));
        }
    }
}
