//! The projection of the tensor onto the factors: the optimal core of orthonormal factors.

use super::unfolding::Unfolding;
use crate::kernels::DENSE_LANES;
use s3cmtf::error::Result;
use s3cmtf::internals::Model;
use s3cmtf_kernel::try_alloc::{CORE_ENTRIES, try_zeroed};

impl Unfolding<'_> {
    /// Returns X x_1 A(1)^T ... x_N A(N)^T, row-major and without padding, for rows `factor` of the factor of mode `n`, which
    /// is the mode of the unfolding.
    pub(super) fn core(&self, model: &Model, n: usize, factor: &[f64]) -> Result<Vec<f64>> {
        let ranks = model.shape.ranks();
        let unfolded = self.w_transposed_times(factor, ranks[n])?;
        let stride = unfolded.len() / ranks[n] * DENSE_LANES;
        let unfolded = unfolded.as_flattened();
        // The distance between two columns of each mode in the core.
        let mut strides = vec![1; ranks.len()];
        for k in (0..ranks.len() - 1).rev() {
            strides[k] = strides[k + 1] * ranks[k + 1];
        }
        let mut core: Vec<f64> = try_zeroed(ranks.iter().product(), CORE_ENTRIES)?;
        let others = self.other_modes();
        let mut indices = vec![0; others.len()];
        let width = core.len() / ranks[n];
        for column in 0..width {
            let to = indices.iter().zip(others).map(|(j, &k)| j * strides[k]);
            let to: usize = to.sum();
            for j in 0..ranks[n] {
                core[to + j * strides[n]] = unfolded[j * stride + column];
            }
            for (index, &k) in indices.iter_mut().zip(others).rev() {
                *index += 1;
                if *index < ranks[k] {
                    break;
                }
                *index = 0;
            }
        }
        Ok(core)
    }
}
