//! The vector operations of the packed core for AVX2 and AVX-512.
//!
//! # Safety
//! The machine must have the instruction set; see [`crate::simd`].
#![allow(unsafe_code)]
#![allow(clippy::undocumented_unsafe_blocks)]

use std::arch::x86_64::*;

use crate::simd::LANES;
use crate::simd::packed_vector::PackedVector;
use crate::simd::x86::{Avx2, Avx512};

// SAFETY of all blocks below: the caller guarantees that the machine has the instruction set and that the
// vectors and indices are readable. Sums of vectors: pairs of vectors are interleaved and added until each
// vector is one float.
impl PackedVector for Avx512 {
    const PACKED_TILE: usize = 9;

    #[inline(always)]
    unsafe fn permute(self, indices: *const u32) -> Self {
        unsafe {
            Avx512(_mm512_permutexvar_ps(
                _mm512_loadu_si512(indices.cast()),
                self.0,
            ))
        }
    }

    #[inline(always)]
    unsafe fn row_sums(vectors: *const f32, count: usize) -> Self {
        unsafe {
            let none = _mm512_setzero_ps();
            let a = four_512(vectors);
            let b = if count > 4 {
                four_512(vectors.add(4 * LANES))
            } else {
                none
            };
            let low = blocks_512(a, b);
            let high = if count > 8 {
                let c = four_512(vectors.add(8 * LANES));
                let d = if count > 12 {
                    four_512(vectors.add(12 * LANES))
                } else {
                    none
                };
                blocks_512(c, d)
            } else {
                none
            };
            Avx512(_mm512_add_ps(
                _mm512_shuffle_f32x4::<0x88>(low, high),
                _mm512_shuffle_f32x4::<0xDD>(low, high),
            ))
        }
    }
}

/// Returns, in each 128-bit quarter, the sums of that quarter of four vectors.
#[inline(always)]
unsafe fn four_512(vectors: *const f32) -> __m512 {
    unsafe {
        let a = _mm512_loadu_ps(vectors);
        let b = _mm512_loadu_ps(vectors.add(LANES));
        let c = _mm512_loadu_ps(vectors.add(2 * LANES));
        let d = _mm512_loadu_ps(vectors.add(3 * LANES));
        let ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
        let cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
        let (ab, cd) = (_mm512_castps_pd(ab), _mm512_castps_pd(cd));
        _mm512_add_ps(
            _mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd)),
            _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd)),
        )
    }
}

/// Adds pairs of quarters: returns two quarters of partial sums for each operand.
#[inline(always)]
unsafe fn blocks_512(a: __m512, b: __m512) -> __m512 {
    unsafe {
        _mm512_add_ps(
            _mm512_shuffle_f32x4::<0x44>(a, b),
            _mm512_shuffle_f32x4::<0xEE>(a, b),
        )
    }
}

impl PackedVector for Avx2 {
    const PACKED_TILE: usize = 3;

    #[inline(always)]
    unsafe fn permute(self, indices: *const u32) -> Self {
        unsafe {
            Avx2(
                permute_256(self, indices),
                permute_256(self, indices.add(8)),
            )
        }
    }

    #[inline(always)]
    unsafe fn row_sums(vectors: *const f32, count: usize) -> Self {
        unsafe {
            let none = _mm256_setzero_ps();
            let a = four_256(vectors);
            let b = if count > 4 {
                four_256(vectors.add(4 * LANES))
            } else {
                none
            };
            let high = if count > 8 {
                let c = four_256(vectors.add(8 * LANES));
                let d = if count > 12 {
                    four_256(vectors.add(12 * LANES))
                } else {
                    none
                };
                blocks_256(c, d)
            } else {
                none
            };
            Avx2(blocks_256(a, b), high)
        }
    }
}

/// Permutes half a vector: selects from both halves, then blends by bit 3 of the index.
#[inline(always)]
unsafe fn permute_256(from: Avx2, indices: *const u32) -> __m256 {
    unsafe {
        let indices = _mm256_loadu_si256(indices.cast());
        _mm256_blendv_ps(
            _mm256_permutevar8x32_ps(from.0, indices),
            _mm256_permutevar8x32_ps(from.1, indices),
            _mm256_castsi256_ps(_mm256_slli_epi32::<28>(indices)),
        )
    }
}

/// Returns, in each 128-bit half, the partial sums of four vectors.
#[inline(always)]
unsafe fn four_256(vectors: *const f32) -> __m256 {
    unsafe {
        let a = halves_256(vectors);
        let b = halves_256(vectors.add(LANES));
        let c = halves_256(vectors.add(2 * LANES));
        let d = halves_256(vectors.add(3 * LANES));
        let ab = _mm256_add_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
        let cd = _mm256_add_ps(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
        let (ab, cd) = (_mm256_castps_pd(ab), _mm256_castps_pd(cd));
        _mm256_add_ps(
            _mm256_castpd_ps(_mm256_unpacklo_pd(ab, cd)),
            _mm256_castpd_ps(_mm256_unpackhi_pd(ab, cd)),
        )
    }
}

#[inline(always)]
unsafe fn halves_256(line: *const f32) -> __m256 {
    unsafe { _mm256_add_ps(_mm256_loadu_ps(line), _mm256_loadu_ps(line.add(8))) }
}

#[inline(always)]
unsafe fn blocks_256(a: __m256, b: __m256) -> __m256 {
    unsafe {
        _mm256_add_ps(
            _mm256_permute2f128_ps::<0x20>(a, b),
            _mm256_permute2f128_ps::<0x31>(a, b),
        )
    }
}
