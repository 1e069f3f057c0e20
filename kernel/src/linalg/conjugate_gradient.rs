//! Preconditioned conjugate gradients for symmetric positive definite systems A x = b.

use super::vector::dot;
use crate::error::Result;
use crate::try_alloc::try_collect;

/// A function that returns A v for a symmetric positive definite A.
pub type Operator<'a> = dyn FnMut(&[f64]) -> Result<Vec<f64>> + 'a;

/// When the iteration stops.
#[derive(Debug, Clone, Copy)]
pub struct ConjugateGradient {
    /// Maximum number of iterations, each of which applies A once.
    pub iterations: usize,
    /// Relative tolerance: of the residual compared with the initial one, and of the residual compared with
    /// b, squared.
    pub tolerance: f64,
}

impl ConjugateGradient {
    /// Improves `x` towards the solution of A x = b, with a diagonal preconditioner: `inverse_diagonal`
    /// approximates the inverse of A's diagonal. After an error of `times_a`, `x` is unfinished.
    pub fn solve(
        &self,
        x: &mut [f64],
        b: &[f64],
        inverse_diagonal: &[f64],
        times_a: &mut Operator<'_>,
    ) -> Result<()> {
        let product = times_a(x)?;
        let mut residual = product;
        residual.iter_mut().zip(b).for_each(|(r, b)| *r = b - *r);
        let precondition = |v: &[f64]| {
            let each = v.iter().zip(inverse_diagonal).map(|(v, s)| v * s);
            try_collect(v.len(), each, "unknowns")
        };
        let mut direction = precondition(&residual)?;
        let mut squared = dot(&residual, &direction);
        let tolerance = self.tolerance * self.tolerance;
        let enough = tolerance * squared.max(tolerance * dot(b, &precondition(b)?));
        for _ in 0..self.iterations {
            if squared.is_nan() || squared <= enough {
                break;
            }
            let product = times_a(&direction)?;
            let curvature = dot(&direction, &product);
            if curvature.is_nan() || curvature <= 0.0 {
                break;
            }
            let step = squared / curvature;
            x.iter_mut()
                .zip(&direction)
                .for_each(|(x, d)| *x += step * d);
            residual
                .iter_mut()
                .zip(&product)
                .for_each(|(r, p)| *r -= step * p);
            let preconditioned = precondition(&residual)?;
            let next = dot(&residual, &preconditioned);
            let ratio = next / squared;
            direction
                .iter_mut()
                .zip(preconditioned)
                .for_each(|(d, z)| *d = z + ratio * *d);
            squared = next;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solves_a_small_system() {
        let a = [4.0, 1.0, 0.5, 1.0, 3.0, 0.2, 0.5, 0.2, 2.0];
        let b = [1.0, 2.0, 3.0];
        let mut times_a = |x: &[f64]| {
            let row = |i: usize| (0..3).map(|j| a[i * 3 + j] * x[j]).sum();
            Ok((0..3).map(row).collect())
        };
        let cg = ConjugateGradient {
            iterations: 20,
            tolerance: 1e-2,
        };
        let mut x = [0.0; 3];
        cg.solve(&mut x, &b, &[0.25, 1.0 / 3.0, 0.5], &mut times_a)
            .unwrap();
        let product: Vec<f64> = times_a(&x).unwrap();
        assert!(
            product.iter().zip(b).all(|(p, b)| (p - b).abs() < 1e-2),
            "{product:?}"
        );
    }
}
