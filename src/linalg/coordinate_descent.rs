//! Small quadratic problems with bounds or corners, by coordinate descent.

/// Passes that do where the next epoch goes on from there.
pub(crate) const PASSES: usize = 40;

/// What is minimised besides 1/2 x^T A x - b^T x, and where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Corners<'a> {
    /// Whether no number may be negative.
    pub nonneg: bool,
    /// This times the distance of each number from the prior, 0 where there is none, counts too.
    pub l1: f64,
    pub prior: &'a [f32],
    /// Passes over all numbers at most.
    pub passes: usize,
}

/// Minimises from `x` on; `a` is symmetric and row-major.
pub(crate) fn descend(a: &[f64], b: &[f64], corners: Corners<'_>, x: &mut [f64]) {
    let size = b.len();
    if corners.nonneg {
        x.iter_mut().for_each(|x| *x = x.max(0.0));
    }
    for _ in 0..corners.passes {
        let (mut change, mut largest) = (0.0f64, 0.0f64);
        for i in 0..size {
            let row = &a[i * size..][..size];
            let pivot = row[i];
            if pivot.is_nan() || pivot <= 0.0 {
                continue;
            }
            let sum: f64 = row.iter().zip(&*x).map(|(a, x)| a * x).sum();
            let mut next = x[i] + (b[i] - sum) / pivot;
            if corners.l1 > 0.0 {
                let prior = corners.prior.get(i).map_or(0.0, |&p| f64::from(p));
                let off = next - prior;
                next = prior + off.signum() * (off.abs() - corners.l1 / pivot).max(0.0);
            }
            if corners.nonneg {
                next = next.max(0.0);
            }
            if next.is_finite() {
                change = change.max((next - x[i]).abs());
                x[i] = next;
            }
            largest = largest.max(x[i].abs());
        }
        if change <= 1e-7 * largest {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At the minimum no small step along any number makes it less.
    #[test]
    fn the_minimum_is_one() {
        let a = [4.0, 1.0, -0.5, 1.0, 3.0, 0.2, -0.5, 0.2, 2.0];
        let prior = [1.0f32, 0.0, 0.5];
        for b in [[1.0, -2.0, 3.0], [4.2, 0.3, -1.0], [-3.0, 5.0, 0.0]] {
            for nonneg in [false, true] {
                for l1 in [0.0, 0.7] {
                    let corners = Corners {
                        nonneg,
                        l1,
                        prior: &prior,
                        passes: PASSES,
                    };
                    let value = |x: &[f64]| -> f64 {
                        (0..3)
                            .map(|i| {
                                let ax: f64 = (0..3).map(|j| a[i * 3 + j] * x[j]).sum();
                                let off = (x[i] - f64::from(prior[i])).abs();
                                0.5 * x[i] * ax - b[i] * x[i] + l1 * off
                            })
                            .sum()
                    };
                    let mut x = [0.3, -0.1, 0.0];
                    descend(&a, &b, corners, &mut x);
                    let best = value(&x);
                    assert!(!nonneg || x.iter().all(|&x| x >= 0.0));
                    for i in 0..3 {
                        for by in [-1e-3, 1e-3] {
                            let mut y = x;
                            y[i] += by;
                            if nonneg && y[i] < 0.0 {
                                continue;
                            }
                            assert!(value(&y) > best - 1e-9, "{b:?} {corners:?} {x:?}");
                        }
                    }
                }
            }
        }
    }
}
