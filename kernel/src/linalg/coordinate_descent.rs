//! Small quadratic problems with non-negativity or an l1 penalty, by cyclic coordinate descent.

/// Maximum number of passes where the next epoch continues from the result.
pub const WARM_START_PASSES: usize = 40;

/// Relative change of the largest element below which the iteration has converged.
const TOLERANCE: f64 = 1e-7;

/// Minimizes 1/2 x^T A x - b^T x + l1 |x - prior|_1, optionally over x >= 0.
#[derive(Debug, Clone, Copy)]
pub struct CoordinateDescent<'a> {
    /// Whether x must be non-negative.
    pub nonneg: bool,
    /// Weight of the l1 penalty; 0 for none.
    pub l1: f64,
    /// What the l1 penalty shrinks x to; elements beyond its length are 0.
    pub prior: &'a [f32],
    /// Maximum number of passes over all elements.
    pub passes: usize,
}

impl CoordinateDescent<'_> {
    /// Improves `x` until it converges or the passes are used up. `a` is symmetric and row-major.
    pub fn minimize(&self, a: &[f64], b: &[f64], x: &mut [f64]) {
        let size = b.len();
        if self.nonneg {
            x.iter_mut().for_each(|x| *x = x.max(0.0));
        }
        for _ in 0..self.passes {
            let (mut change, mut largest) = (0.0f64, 0.0f64);
            for i in 0..size {
                let row = &a[i * size..][..size];
                let pivot = row[i];
                if pivot.is_nan() || pivot <= 0.0 {
                    continue;
                }
                let sum: f64 = row.iter().zip(&*x).map(|(a, x)| a * x).sum();
                let mut next = x[i] + (b[i] - sum) / pivot;
                if self.l1 > 0.0 {
                    let prior = self.prior.get(i).map_or(0.0, |&p| f64::from(p));
                    let offset = next - prior;
                    next = prior + offset.signum() * (offset.abs() - self.l1 / pivot).max(0.0);
                }
                if self.nonneg {
                    next = next.max(0.0);
                }
                if next.is_finite() {
                    change = change.max((next - x[i]).abs());
                    x[i] = next;
                }
                largest = largest.max(x[i].abs());
            }
            if change <= TOLERANCE * largest {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At the minimum no small move along a coordinate reduces the objective.
    #[test]
    fn converges_to_the_minimum() {
        let a = [4.0, 1.0, -0.5, 1.0, 3.0, 0.2, -0.5, 0.2, 2.0];
        let prior = [1.0f32, 0.0, 0.5];
        for b in [[1.0, -2.0, 3.0], [4.2, 0.3, -1.0], [-3.0, 5.0, 0.0]] {
            for nonneg in [false, true] {
                for l1 in [0.0, 0.7] {
                    let problem = CoordinateDescent {
                        nonneg,
                        l1,
                        prior: &prior,
                        passes: WARM_START_PASSES,
                    };
                    let value = |x: &[f64]| -> f64 {
                        (0..3)
                            .map(|i| {
                                let ax: f64 = (0..3).map(|j| a[i * 3 + j] * x[j]).sum();
                                let offset = (x[i] - f64::from(prior[i])).abs();
                                0.5 * x[i] * ax - b[i] * x[i] + l1 * offset
                            })
                            .sum()
                    };
                    let mut x = [0.3, -0.1, 0.0];
                    problem.minimize(&a, &b, &mut x);
                    let best = value(&x);
                    assert!(!nonneg || x.iter().all(|&x| x >= 0.0));
                    for i in 0..3 {
                        for by in [-1e-3, 1e-3] {
                            let mut y = x;
                            y[i] += by;
                            if nonneg && y[i] < 0.0 {
                                continue;
                            }
                            assert!(value(&y) > best - 1e-9, "{b:?} {problem:?} {x:?}");
                        }
                    }
                }
            }
        }
    }
}
