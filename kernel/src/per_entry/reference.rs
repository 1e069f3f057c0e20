//! Plain scalar arithmetic, generic over the float type: the oracle of all kernels. Cores are dense and row-major
//! here, rows are unpadded.

use std::iter::Sum;
use std::ops::{AddAssign, Mul};

/// Float type of the oracle.
pub trait Real: Copy + Mul<Output = Self> + AddAssign + Sum {
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
}

impl Real for f32 {
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;
}

impl Real for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
}

/// Contracts the first mode of a core, of rank `row.len()`, with a factor row: `out[k] = sum_j row[j] * core[j,
/// k]`. Contracting mode after mode evaluates a Tucker model. Entries that share their leading rows can share the
/// partial contraction.
///
/// # Panics
/// If `core` does not have `row.len() * out.len()` entries.
pub fn contract_first<T: Real>(core: &[T], row: &[T], out: &mut [T]) {
    assert_eq!(core.len(), row.len() * out.len());
    out.fill(T::ZERO);
    for (&u, slice) in row.iter().zip(core.chunks_exact(out.len())) {
        for (o, &g) in out.iter_mut().zip(slice) {
            *o += u * g;
        }
    }
}

/// Returns the value of a Tucker model at one position: the sum over all core entries of the entry times one
/// factor of each mode.
///
/// # Panics
/// If the number of core entries is not the product of the ranks.
pub fn value<T: Real>(core: &[T], rows: &[&[T]]) -> T {
    sum_of_products(core, rows, None, 0)
}

/// Returns G x_{-n} {u}: the derivative of [`value`] by the row of mode `n`.
pub fn gradient<T: Real>(core: &[T], rows: &[&[T]], n: usize) -> Vec<T> {
    (0..rows[n].len())
        .map(|j| sum_of_products(core, rows, Some(n), j))
        .collect()
}

/// Returns 1 x {u}: the derivative of [`value`] by the core.
pub fn outer<T: Real>(rows: &[&[T]]) -> Vec<T> {
    let mut product = vec![T::ONE];
    for row in rows {
        product = product
            .iter()
            .flat_map(|&a| row.iter().map(move |&u| a * u))
            .collect();
    }
    product
}

/// Sums over the core. In mode `without`, only index `fixed` contributes, with factor 1.
fn sum_of_products<T: Real>(core: &[T], rows: &[&[T]], without: Option<usize>, fixed: usize) -> T {
    assert_eq!(core.len(), rows.iter().map(|r| r.len()).product::<usize>());
    let mut at = vec![0; rows.len()];
    let mut total = T::ZERO;
    for &g in core {
        if without.is_none_or(|n| at[n] == fixed) {
            let mut product = g;
            for (m, row) in rows.iter().enumerate() {
                if without != Some(m) {
                    product = product * row[at[m]];
                }
            }
            total += product;
        }
        for n in (0..rows.len()).rev() {
            at[n] += 1;
            if at[n] < rows[n].len() {
                break;
            }
            at[n] = 0;
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contracting_all_modes_gives_the_value() {
        let (a, b, c) = ([1.0f64, -2.0], [0.5f64, 0.0, 3.0], [2.0f64, 4.0]);
        let core: Vec<f64> = (0..12).map(|i| f64::from(i) - 4.0).collect();
        let (mut ab, mut abc, mut x) = ([0.0; 6], [0.0; 2], [0.0; 1]);
        contract_first(&core, &a, &mut ab);
        contract_first(&ab, &b, &mut abc);
        contract_first(&abc, &c, &mut x);
        assert_eq!(x[0], value(&core, &[&a, &b, &c]));
        // With a single core entry (1, 2, 0) of 6, the value is 6 a[1] b[2] c[0].
        let mut one_entry_core = vec![0.0; 12];
        one_entry_core[(3 + 2) * 2] = 6.0;
        assert_eq!(
            value(&one_entry_core, &[&a, &b, &c]),
            6.0 * -2.0 * 3.0 * 2.0
        );
    }

    #[test]
    fn gradients_and_outer_products_are_derivatives() {
        let (a, b) = ([1.5f64, -2.0, 0.0], [0.5f64, 3.0]);
        let core: Vec<f64> = (0..6).map(|i| f64::from(i * i) - 4.0).collect();
        let step = 1e-6;
        for j in 0..3 {
            let mut up = a;
            up[j] += step;
            let rise = (value(&core, &[&up, &b]) - value(&core, &[&a, &b])) / step;
            assert!((rise - gradient(&core, &[&a, &b], 0)[j]).abs() < 1e-6);
        }
        for g in 0..6 {
            let mut up = core.clone();
            up[g] += step;
            let rise = (value(&up, &[&a, &b]) - value(&core, &[&a, &b])) / step;
            assert!((rise - outer(&[&a, &b])[g]).abs() < 1e-6);
        }
    }
}
