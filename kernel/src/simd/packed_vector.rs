//! The vector operations of the packed core, and their portable versions.
#![allow(unsafe_code)]

use crate::simd::{F32x16, LANES, Portable, Scalar};

/// The vector operations that the packed core needs beyond [`F32x16`].
pub(crate) trait PackedVector: F32x16 {
    /// Number of vectors of a slice whose sums fit into registers beside the other operands.
    const PACKED_TILE: usize;

    /// Returns the vector whose lane k is lane `indices[k]` of this one.
    ///
    /// # Safety
    /// [`LANES`] indices must be readable, each below [`LANES`].
    #[inline(always)]
    unsafe fn permute(self, indices: *const u32) -> Self {
        let (mut from, mut to) = ([0.0f32; LANES], [0.0f32; LANES]);
        // SAFETY: both arrays are one vector long; the caller guarantees the indices.
        unsafe {
            self.store(from.as_mut_ptr());
            for (k, x) in to.iter_mut().enumerate() {
                *x = from[*indices.add(k) as usize];
            }
            Self::load(to.as_ptr())
        }
    }

    /// Returns the sums of the first `count` of consecutive vectors in the first lanes, and zeros in the others.
    ///
    /// # Safety
    /// `count` is at most [`LANES`]. Vectors up to the next multiple of four are readable, and those from `count`
    /// on are zero.
    #[inline(always)]
    unsafe fn row_sums(vectors: *const f32, count: usize) -> Self {
        let mut sums = [0.0f32; LANES];
        // SAFETY: the caller guarantees that `count` vectors are readable.
        unsafe {
            for (k, sum) in sums.iter_mut().enumerate().take(count) {
                *sum = Self::load(vectors.add(k * LANES)).sum();
            }
            Self::load(sums.as_ptr())
        }
    }
}

impl PackedVector for Scalar {
    const PACKED_TILE: usize = 1;
}

impl PackedVector for Portable {
    const PACKED_TILE: usize = 1;
}
