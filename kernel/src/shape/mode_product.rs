//! Mode products G x_1 A(1) x_2 A(2) ... x_N A(N) of a full core with one square matrix per mode.
#![allow(unsafe_code)]

use super::core_shape::CoreShape;
use crate::per_entry::gradient::contract_body as contract;
use crate::simd::Level;
use crate::simd::{F32x16, dispatched};
use crate::simd::{LANES, padded_len};

/// Multiplies padded rows by a square matrix.
#[derive(Debug, Clone)]
pub struct RowProducts {
    level: Level,
    rank: usize,
    /// The transposed matrix, its rows padded.
    transposed: Vec<f32>,
}

impl RowProducts {
    /// Takes a square matrix, row-major.
    ///
    /// # Panics
    /// If the machine does not have the level.
    pub fn new(level: Level, rank: usize, matrix: &[f32]) -> RowProducts {
        assert!(level.is_available());
        let mut transposed = vec![0.0; rank * padded_len(rank)];
        for (a, row) in matrix.chunks_exact(rank).enumerate() {
            for (b, &x) in row.iter().enumerate() {
                transposed[b * padded_len(rank) + a] = x;
            }
        }
        RowProducts {
            level,
            rank,
            transposed,
        }
    }

    /// Writes the product of the matrix with each of `rows` to `products`.
    ///
    /// # Panics
    /// If the two have different lengths, or not whole rows.
    pub fn apply(&self, rows: &[f32], products: &mut [f32]) {
        let stride = padded_len(self.rank);
        assert!(rows.len() == products.len() && rows.len().is_multiple_of(stride));
        let (from, to) = (rows.as_ptr(), products.as_mut_ptr());
        let (matrix, count) = (self.transposed.as_ptr(), rows.len() / stride);
        // SAFETY: both have `count` padded rows, and `new` has created `rank` padded rows of the matrix.
        unsafe { multiply_rows(self.level, from, to, matrix, count, self.rank) }
    }
}

/// Multiplies every mode of a full core by a square matrix of its own.
pub struct ModeProducts {
    level: Level,
    shape: CoreShape,
    /// For each mode but the last, its matrix, row-major.
    matrices: Vec<Vec<f32>>,
    last: RowProducts,
}

impl ModeProducts {
    /// Takes one square matrix per mode, row-major.
    ///
    /// # Panics
    /// If a matrix has another size than its mode, or the machine does not have the level.
    pub fn new(level: Level, shape: &CoreShape, matrices: &[&[f32]]) -> ModeProducts {
        assert!(level.is_available() && matrices.len() == shape.order());
        for (m, j) in matrices.iter().zip(shape.ranks()) {
            assert_eq!(m.len(), j * j);
        }
        let last = shape.order() - 1;
        ModeProducts {
            level,
            shape: shape.clone(),
            matrices: matrices[..last].iter().map(|m| m.to_vec()).collect(),
            last: RowProducts::new(level, shape.ranks()[last], matrices[last]),
        }
    }

    /// Replaces `core` by its products with the matrices. `work` is scratch memory; the two may be swapped.
    ///
    /// # Panics
    /// If a length is not that of the core.
    pub fn apply(&self, core: &mut Vec<f32>, work: &mut Vec<f32>) {
        assert_eq!(core.len(), self.shape.core_len());
        work.resize(core.len(), 0.0);
        let last = self.shape.order() - 1;
        let lines = padded_len(self.shape.ranks()[last]) / LANES;
        let mut outer = 1;
        for (n, matrix) in self.matrices.iter().enumerate() {
            let j = self.shape.ranks()[n];
            let inner = self.shape.ranks()[n + 1..last].iter().product::<usize>() * lines;
            let (from, to) = (core.as_ptr(), work.as_mut_ptr());
            // SAFETY: both have `outer * j * inner` vectors, and `new` has checked the size of the matrix.
            unsafe { multiply(self.level, from, to, matrix.as_ptr(), outer, j, inner) };
            std::mem::swap(core, work);
            outer *= j;
        }
        self.last.apply(core, work);
        std::mem::swap(core, work);
    }
}

dispatched! {
    /// `to[o, a] = sum_b matrix[a, b] from[o, b]`, slices of `inner` vectors.
    unsafe fn multiply(from: *const f32, to: *mut f32, matrix: *const f32, outer: usize, j: usize, inner: usize)
        = any_multiply;
}
dispatched! {
    /// `to[r] = sum_b from[r, b] matrix[b]`, with padded rows.
    unsafe fn multiply_rows(from: *const f32, to: *mut f32, matrix: *const f32, rows: usize, j: usize)
        = any_multiply_rows;
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
unsafe fn any_multiply_rows<V: F32x16>(
    from: *const f32,
    to: *mut f32,
    matrix: *const f32,
    rows: usize,
    j: usize,
) {
    let lines = padded_len(j) / LANES;
    for r in 0..rows {
        // SAFETY: the caller's obligations.
        unsafe {
            let at = r * lines * LANES;
            contract::<V>(matrix, from.add(at), j, lines, to.add(at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::core_shape::CoreKind;

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
