//! The sums of the lanes of 16 vectors at once. Each sum has the additions of [`super::F32x16::sum`] in the same order: halves,
//! then quarters, then pairs, then single lanes. Each step adds two vectors that hold the operands of several sums.
//!
//! # Safety
//! The machine must have the instruction set; see [`super`].
#![allow(unsafe_code)]
#![allow(clippy::undocumented_unsafe_blocks)]

use std::arch::x86_64::*;

use super::LANES;

// SAFETY of all blocks below: the caller guarantees that the machine has the instruction set and that 16 vectors are readable.

#[inline(always)]
pub(super) unsafe fn sums_512(from: *const f32) -> __m512 {
    // Adds halves, then quarters: returns one quarter for each of four vectors.
    #[inline(always)]
    unsafe fn four(from: *const f32) -> __m512 {
        unsafe {
            let mut pairs = [_mm512_setzero_ps(); 2];
            for (k, sums) in pairs.iter_mut().enumerate() {
                let a = _mm512_loadu_ps(from.add(2 * k * LANES));
                let b = _mm512_loadu_ps(from.add((2 * k + 1) * LANES));
                *sums = _mm512_add_ps(
                    _mm512_shuffle_f32x4::<0b01_00_01_00>(a, b),
                    _mm512_shuffle_f32x4::<0b11_10_11_10>(a, b),
                );
            }
            _mm512_add_ps(
                _mm512_shuffle_f32x4::<0b10_00_10_00>(pairs[0], pairs[1]),
                _mm512_shuffle_f32x4::<0b11_01_11_01>(pairs[0], pairs[1]),
            )
        }
    }
    // Adds the two pairs of each quarter.
    #[inline(always)]
    unsafe fn eight(from: *const f32) -> __m512 {
        unsafe {
            let (a, b) = (four(from), four(from.add(4 * LANES)));
            _mm512_add_ps(
                _mm512_shuffle_ps::<0b01_00_01_00>(a, b),
                _mm512_shuffle_ps::<0b11_10_11_10>(a, b),
            )
        }
    }
    unsafe {
        let (a, b) = (eight(from), eight(from.add(8 * LANES)));
        let sums = _mm512_add_ps(
            _mm512_shuffle_ps::<0b10_00_10_00>(a, b),
            _mm512_shuffle_ps::<0b11_01_11_01>(a, b),
        );
        // Quarter q holds the sums of vectors q, 4 + q, 8 + q and 12 + q.
        let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        _mm512_permutexvar_ps(order, sums)
    }
}

/// Returns the sums of 8 vectors.
#[inline(always)]
pub(super) unsafe fn sums_256(from: *const f32) -> __m256 {
    // Adds the halves of two vectors, then their quarters.
    #[inline(always)]
    unsafe fn two(from: *const f32) -> __m256 {
        unsafe {
            let a = _mm256_add_ps(_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8)));
            let from = from.add(LANES);
            let b = _mm256_add_ps(_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8)));
            _mm256_add_ps(
                _mm256_permute2f128_ps::<0x20>(a, b),
                _mm256_permute2f128_ps::<0x31>(a, b),
            )
        }
    }
    #[inline(always)]
    unsafe fn four(from: *const f32) -> __m256 {
        unsafe {
            let (a, b) = (two(from), two(from.add(2 * LANES)));
            _mm256_add_ps(
                _mm256_shuffle_ps::<0b01_00_01_00>(a, b),
                _mm256_shuffle_ps::<0b11_10_11_10>(a, b),
            )
        }
    }
    unsafe {
        let (a, b) = (four(from), four(from.add(4 * LANES)));
        let sums = _mm256_add_ps(
            _mm256_shuffle_ps::<0b10_00_10_00>(a, b),
            _mm256_shuffle_ps::<0b11_01_11_01>(a, b),
        );
        // The lower half holds the sums of vectors 0, 2, 4 and 6.
        _mm256_permutevar8x32_ps(sums, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;
    use crate::simd::{F32x16, Level, dispatched};

    dispatched! {
        /// Writes the sums of 16 vectors, computed together and one by one.
        unsafe fn both_sums(from: *const f32, together: *mut f32, single: *mut f32) = both_sums_body;
    }

    #[inline(always)]
    unsafe fn both_sums_body<V: F32x16>(from: *const f32, together: *mut f32, single: *mut f32) {
        unsafe {
            V::sums16(from).store(together);
            for k in 0..LANES {
                *single.add(k) = V::load(from.add(k * LANES)).sum();
            }
        }
    }

    #[test]
    fn sums_of_sixteen_vectors_are_those_of_single_vectors() {
        let mut s = RandomStream::new(&[7]);
        let vectors: Vec<f32> = (0..LANES * LANES).map(|_| s.uniform() as f32).collect();
        for level in Level::available() {
            let (mut together, mut single) = ([0.0f32; LANES], [0.0f32; LANES]);
            // SAFETY: the level is available, and all lengths are those of 16 vectors.
            unsafe {
                both_sums(
                    level,
                    vectors.as_ptr(),
                    together.as_mut_ptr(),
                    single.as_mut_ptr(),
                );
            }
            assert_eq!(together, single, "{}", level.name());
        }
    }
}
