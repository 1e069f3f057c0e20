//! Mode products G x_1 A(1) x_2 A(2) ... x_N A(N) of a full core with one square matrix per mode.
#![allow(unsafe_code)]

use super::core_shape::CoreShape;
use super::entry_gradient::contract_body as contract;
use crate::simd::Level;
use crate::simd::{F32x16, dispatched};

use crate::simd::{LANES, padded_len};

/// Multiplies every mode of a full core by a square matrix of its own.
pub(crate) struct ModeProducts {
    level: Level,
    shape: CoreShape,
    /// The matrix of each mode, row-major; that of the last mode transposed, its rows padded.
    matrices: Vec<Vec<f32>>,
}

impl ModeProducts {
    /// Takes one square matrix per mode, row-major.
    ///
    /// # Panics
    /// If a matrix has another size than its mode, or the machine does not have the level.
    pub(crate) fn new(level: Level, shape: &CoreShape, matrices: &[&[f32]]) -> ModeProducts {
        assert!(level.is_available() && matrices.len() == shape.order());
        let last = shape.order() - 1;
        let matrices = matrices
            .iter()
            .zip(shape.ranks())
            .enumerate()
            .map(|(n, (m, &j))| {
                assert_eq!(m.len(), j * j);
                if n < last {
                    return m.to_vec();
                }
                let mut transposed = vec![0.0; j * padded_len(j)];
                for a in 0..j {
                    (0..j).for_each(|b| transposed[b * padded_len(j) + a] = m[a * j + b]);
                }
                transposed
            })
            .collect();
        ModeProducts {
            level,
            shape: shape.clone(),
            matrices,
        }
    }

    /// Replaces `core` by its products with the matrices. `work` is scratch memory; the two may be swapped.
    ///
    /// # Panics
    /// If a length is not that of the core.
    pub(crate) fn apply(&self, core: &mut Vec<f32>, work: &mut Vec<f32>) {
        assert_eq!(core.len(), self.shape.core_len());
        work.resize(core.len(), 0.0);
        let last = self.shape.order() - 1;
        let lines = padded_len(self.shape.ranks()[last]) / LANES;
        let mut outer = 1;
        for (n, matrix) in self.matrices.iter().enumerate() {
            let j = self.shape.ranks()[n];
            let inner = self.shape.ranks()[(n + 1).min(last)..last]
                .iter()
                .product::<usize>()
                * lines;
            let (from, to) = (core.as_ptr(), work.as_mut_ptr());
            // SAFETY: both have `outer * j * inner` vectors (`outer` rows of `lines` vectors for the
            // last mode), and `new` has checked the size of the matrix.
            unsafe {
                if n < last {
                    multiply(self.level, from, to, matrix.as_ptr(), outer, j, inner);
                } else {
                    multiply_last(self.level, from, to, matrix.as_ptr(), outer, j, lines);
                }
            }
            std::mem::swap(core, work);
            outer *= j;
        }
    }
}

dispatched! {
    /// `to[o, a] = sum_b matrix[a, b] from[o, b]`, slices of `inner` vectors.
    unsafe fn multiply(from: *const f32, to: *mut f32, matrix: *const f32, outer: usize, j: usize, inner: usize)
        = any_multiply;
}
dispatched! {
    /// `to[o] = sum_b from[o][b] matrix[b]`, rows of `lines` vectors.
    unsafe fn multiply_last(from: *const f32, to: *mut f32, matrix: *const f32, outer: usize, j: usize, lines: usize)
        = any_multiply_last;
}

#[inline(always)]
unsafe fn any_multiply<V: F32x16>(
    from: *const f32,
    to: *mut f32,
    matrix: *const f32,
    outer: usize,
    j: usize,
    inner: usize,
) {
    for o in 0..outer {
        for a in 0..j {
            // SAFETY: the caller's obligations.
            unsafe {
                let from = from.add(o * j * inner * LANES);
                let to = to.add((o * j + a) * inner * LANES);
                contract::<V>(from, matrix.add(a * j), j, inner, to);
            }
        }
    }
}

#[inline(always)]
unsafe fn any_multiply_last<V: F32x16>(
    from: *const f32,
    to: *mut f32,
    matrix: *const f32,
    outer: usize,
    j: usize,
    lines: usize,
) {
    for o in 0..outer {
        // SAFETY: the caller's obligations.
        unsafe {
            let at = o * lines * LANES;
            contract::<V>(matrix, from.add(at), j, lines, to.add(at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::CoreKind;

    #[test]
    fn products_match_the_definition() {
        for ranks in [vec![2, 3], vec![3, 2, 4], vec![2, 5, 18], vec![2, 3, 2, 3]] {
            let shape = CoreShape::new(CoreKind::Full, &ranks);
            let dense: Vec<f32> = (0..ranks.iter().product())
                .map(|x| (x as f32).sin())
                .collect();
            let matrices: Vec<Vec<f32>> = ranks
                .iter()
                .map(|&j| (0..j * j).map(|x| (x as f32 + 0.5).cos()).collect())
                .collect();
            // Mode by mode, entry by entry.
            let mut expected = dense.clone();
            for (n, &j) in ranks.iter().enumerate() {
                let inner: usize = ranks[n + 1..].iter().product();
                let old = expected.clone();
                for (k, x) in expected.iter_mut().enumerate() {
                    let (o, a, i) = (k / (j * inner), k / inner % j, k % inner);
                    let term = |b: usize| matrices[n][a * j + b] * old[(o * j + b) * inner + i];
                    *x = (0..j).map(term).sum();
                }
            }
            let views: Vec<&[f32]> = matrices.iter().map(Vec::as_slice).collect();
            for level in Level::available() {
                let mut core = shape.padded_core(&dense).unwrap();
                ModeProducts::new(level, &shape, &views).apply(&mut core, &mut Vec::new());
                let got = shape.dense_core(&core).unwrap();
                let close = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-4;
                assert!(got.iter().zip(&expected).all(close), "{ranks:?} {level:?}");
                assert_eq!(shape.padded_core(&got).unwrap(), core, "padding");
            }
        }
    }
}
