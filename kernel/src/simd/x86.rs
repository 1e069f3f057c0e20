//! [`F32x16`] for AVX2 and AVX-512.
//!
//! # Safety
//! The machine must have the instruction set; see [`super`].
#![allow(unsafe_code)]

use std::arch::x86_64::*;
use std::ops::{Add, Mul, Sub};

use super::lane_sums::{sums_256, sums_512};
use super::{F32x16, LANES, Leaf};

/// One 512-bit register.
#[derive(Clone, Copy)]
pub struct Avx512(pub(crate) __m512);

// SAFETY of all blocks below: the caller guarantees that the machine has the instruction set, and that the
// floats of a load are readable and those of a store writable.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Add for Avx512 {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        unsafe { Avx512(_mm512_add_ps(self.0, other.0)) }
    }
}

#[allow(clippy::undocumented_unsafe_blocks)]
impl Sub for Avx512 {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        unsafe { Avx512(_mm512_sub_ps(self.0, other.0)) }
    }
}

#[allow(clippy::undocumented_unsafe_blocks)]
impl Mul for Avx512 {
    type Output = Self;

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        unsafe { Avx512(_mm512_mul_ps(self.0, other.0)) }
    }
}

#[allow(clippy::undocumented_unsafe_blocks)]
impl F32x16 for Avx512 {
    const VECTOR_REGISTERS: usize = 32;

    #[inline(always)]
    unsafe fn call<F: Leaf<Self, Args>, Args>(args: Args) -> F::Output {
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,fma")]
        #[inline(never)]
        unsafe fn enabled<F: Leaf<Avx512, Args>, Args>(args: Args) -> F::Output {
            unsafe { F::run(args) }
        }
        unsafe { enabled::<F, Args>(args) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        unsafe { Avx512(_mm512_loadu_ps(from)) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe { _mm512_storeu_ps(to, self.0) }
    }

    #[inline(always)]
    fn splat(x: f32) -> Self {
        unsafe { Avx512(_mm512_set1_ps(x)) }
    }

    #[inline(always)]
    fn mul_add(self, by: Self, to: Self) -> Self {
        unsafe { Avx512(_mm512_fmadd_ps(self.0, by.0, to.0)) }
    }

    #[inline(always)]
    fn mul_add_one(x: f32, by: f32, to: f32) -> f32 {
        x.mul_add(by, to)
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        unsafe { add_halves(self.0).sum() }
    }

    // Each step adds the vector to itself permuted by half the distance of the step before. So every lane adds
    // the same values in the same order.
    #[inline(always)]
    fn splat_sum(self) -> Self {
        unsafe {
            let x = self.0;
            let x = _mm512_add_ps(x, _mm512_shuffle_f32x4::<0b01_00_11_10>(x, x));
            let x = _mm512_add_ps(x, _mm512_shuffle_f32x4::<0b10_11_00_01>(x, x));
            let x = _mm512_add_ps(x, _mm512_permute_ps::<0b01_00_11_10>(x));
            Avx512(_mm512_add_ps(x, _mm512_permute_ps::<0b10_11_00_01>(x)))
        }
    }

    #[inline(always)]
    unsafe fn sums16(from: *const f32) -> Self {
        unsafe { Avx512(sums_512(from)) }
    }

    #[inline(always)]
    fn first_lane(self) -> f32 {
        unsafe { _mm512_cvtss_f32(self.0) }
    }

    #[inline(always)]
    fn transpose(rows: [Self; LANES]) -> [Self; LANES] {
        unsafe {
            let mut x = [rows[0].0; LANES];
            for i in 1..LANES {
                x[i] = rows[i].0;
            }
            let mut y = x;
            // Transposes pairs of lanes, then groups of four lanes, then 128-bit quarters.
            for i in (0..LANES).step_by(2) {
                y[i] = _mm512_unpacklo_ps(x[i], x[i + 1]);
                y[i + 1] = _mm512_unpackhi_ps(x[i], x[i + 1]);
            }
            for i in (0..LANES).step_by(4) {
                for k in 0..2 {
                    let (a, b) = (_mm512_castps_pd(y[i + k]), _mm512_castps_pd(y[i + 2 + k]));
                    x[i + 2 * k] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
                    x[i + 2 * k + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
                }
            }
            for i in 0..4 {
                for k in [0, 8] {
                    y[k + i] = _mm512_shuffle_f32x4::<0b10_00_10_00>(x[k + i], x[k + 4 + i]);
                    y[k + 4 + i] = _mm512_shuffle_f32x4::<0b11_01_11_01>(x[k + i], x[k + 4 + i]);
                }
            }
            for i in 0..8 {
                x[i] = _mm512_shuffle_f32x4::<0b10_00_10_00>(y[i], y[8 + i]);
                x[8 + i] = _mm512_shuffle_f32x4::<0b11_01_11_01>(y[i], y[8 + i]);
            }
            let mut out = rows;
            for i in 0..LANES {
                out[i] = Avx512(x[i]);
            }
            out
        }
    }

    #[inline(always)]
    unsafe fn load_halves(low: *const f32, high: *const f32) -> Self {
        unsafe {
            let low = _mm512_castps256_ps512(_mm256_loadu_ps(low));
            Avx512(_mm512_insertf32x8::<1>(low, _mm256_loadu_ps(high)))
        }
    }

    #[inline(always)]
    unsafe fn store_halves(self, low: *mut f32, high: *mut f32) {
        unsafe {
            _mm256_storeu_ps(low, _mm512_castps512_ps256(self.0));
            _mm256_storeu_ps(high, _mm512_extractf32x8_ps::<1>(self.0));
        }
    }

    #[inline(always)]
    fn splat_halves(low: f32, high: f32) -> Self {
        unsafe {
            let high = _mm512_set1_ps(high);
            Avx512(_mm512_mask_mov_ps(high, 0x00ff, _mm512_set1_ps(low)))
        }
    }

    #[inline(always)]
    fn fold_halves(self) -> Self {
        unsafe { Avx512(_mm512_zextps256_ps512(add_halves(self.0).0)) }
    }

    #[inline(always)]
    fn half_sums(vectors: [Self; 4]) -> Self {
        #[inline(always)]
        unsafe fn pair(a: __m512, b: __m512) -> __m512 {
            unsafe {
                _mm512_add_ps(
                    _mm512_shuffle_ps::<0b10_00_10_00>(a, b),
                    _mm512_shuffle_ps::<0b11_01_11_01>(a, b),
                )
            }
        }
        unsafe {
            // `pair` leaves one sum per vector in each 128-bit quarter; then the two quarters of each half are
            // added.
            let x = pair(
                pair(vectors[0].0, vectors[1].0),
                pair(vectors[2].0, vectors[3].0),
            );
            let x = _mm512_add_ps(x, _mm512_shuffle_f32x4::<0b10_11_00_01>(x, x));
            let order = _mm512_setr_epi32(0, 8, 1, 9, 2, 10, 3, 11, 0, 0, 0, 0, 0, 0, 0, 0);
            Avx512(_mm512_maskz_permutexvar_ps(0x00ff, order, x))
        }
    }

    #[inline(always)]
    fn sums4(vectors: [Self; 4]) -> [f32; 4] {
        unsafe {
            half_vector_sums4([
                add_halves(vectors[0].0).0,
                add_halves(vectors[1].0).0,
                add_halves(vectors[2].0).0,
                add_halves(vectors[3].0).0,
            ])
        }
    }

    #[inline(always)]
    fn max_zero(self) -> Self {
        unsafe { Avx512(_mm512_max_ps(self.0, _mm512_setzero_ps())) }
    }

    #[inline(always)]
    fn sign(self) -> Self {
        unsafe {
            let (zero, one) = (_mm512_setzero_ps(), _mm512_set1_ps(1.0));
            let above = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(self.0, zero);
            let below = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(self.0, zero);
            let up = _mm512_maskz_mov_ps(above, one);
            Avx512(_mm512_mask_sub_ps(up, below, zero, one))
        }
    }
}

/// Half a vector.
struct Half(__m256);

/// Adds the two halves of a vector.
#[allow(clippy::undocumented_unsafe_blocks)]
#[inline(always)]
unsafe fn add_halves(x: __m512) -> Half {
    unsafe {
        Half(_mm256_add_ps(
            _mm512_castps512_ps256(x),
            _mm512_extractf32x8_ps::<1>(x),
        ))
    }
}

#[allow(clippy::undocumented_unsafe_blocks)]
impl Half {
    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        unsafe {
            let x = _mm_add_ps(
                _mm256_castps256_ps128(self.0),
                _mm256_extractf128_ps::<1>(self.0),
            );
            let x = _mm_add_ps(x, _mm_movehl_ps(x, x));
            _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)))
        }
    }
}

/// Returns the sums of four half vectors.
#[allow(clippy::undocumented_unsafe_blocks)]
#[inline(always)]
unsafe fn half_vector_sums4(x: [__m256; 4]) -> [f32; 4] {
    unsafe {
        let pairs = _mm256_hadd_ps(_mm256_hadd_ps(x[0], x[1]), _mm256_hadd_ps(x[2], x[3]));
        let sums = _mm_add_ps(
            _mm256_castps256_ps128(pairs),
            _mm256_extractf128_ps::<1>(pairs),
        );
        let mut out = [0.0; 4];
        _mm_storeu_ps(out.as_mut_ptr(), sums);
        out
    }
}

/// Transposes an 8 by 8 matrix.
#[allow(clippy::undocumented_unsafe_blocks)]
#[inline(always)]
unsafe fn transpose8(mut x: [__m256; 8]) -> [__m256; 8] {
    unsafe {
        let mut y = x;
        for i in (0..8).step_by(2) {
            y[i] = _mm256_unpacklo_ps(x[i], x[i + 1]);
            y[i + 1] = _mm256_unpackhi_ps(x[i], x[i + 1]);
        }
        for i in [0, 4] {
            for k in 0..2 {
                let (a, b) = (y[i + k], y[i + 2 + k]);
                x[i + 2 * k] = _mm256_shuffle_ps::<0b01_00_01_00>(a, b);
                x[i + 2 * k + 1] = _mm256_shuffle_ps::<0b11_10_11_10>(a, b);
            }
        }
        for i in 0..4 {
            y[i] = _mm256_permute2f128_ps::<0x20>(x[i], x[4 + i]);
            y[4 + i] = _mm256_permute2f128_ps::<0x31>(x[i], x[4 + i]);
        }
        y
    }
}

/// Two 256-bit registers.
#[derive(Clone, Copy)]
pub struct Avx2(pub(crate) __m256, pub(crate) __m256);

// SAFETY of all blocks below: as for `Avx512`.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Add for Avx2 {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        unsafe {
            Avx2(
                _mm256_add_ps(self.0, other.0),
                _mm256_add_ps(self.1, other.1),
            )
        }
    }
}

#[allow(clippy::undocumented_unsafe_blocks)]
impl Sub for Avx2 {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        unsafe {
            Avx2(
                _mm256_sub_ps(self.0, other.0),
                _mm256_sub_ps(self.1, other.1),
            )
        }
    }
}

#[allow(clippy::undocumented_unsafe_blocks)]
impl Mul for Avx2 {
    type Output = Self;

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        unsafe {
            Avx2(
                _mm256_mul_ps(self.0, other.0),
                _mm256_mul_ps(self.1, other.1),
            )
        }
    }
}

#[allow(clippy::undocumented_unsafe_blocks)]
impl F32x16 for Avx2 {
    const VECTOR_REGISTERS: usize = 8;

    #[inline(always)]
    unsafe fn call<F: Leaf<Self, Args>, Args>(args: Args) -> F::Output {
        #[target_feature(enable = "avx2,fma")]
        #[inline(never)]
        unsafe fn enabled<F: Leaf<Avx2, Args>, Args>(args: Args) -> F::Output {
            unsafe { F::run(args) }
        }
        unsafe { enabled::<F, Args>(args) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        unsafe { Avx2(_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8))) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe {
            _mm256_storeu_ps(to, self.0);
            _mm256_storeu_ps(to.add(8), self.1);
        }
    }

    #[inline(always)]
    fn splat(x: f32) -> Self {
        unsafe {
            let x = _mm256_set1_ps(x);
            Avx2(x, x)
        }
    }

    #[inline(always)]
    fn mul_add(self, by: Self, to: Self) -> Self {
        unsafe {
            Avx2(
                _mm256_fmadd_ps(self.0, by.0, to.0),
                _mm256_fmadd_ps(self.1, by.1, to.1),
            )
        }
    }

    #[inline(always)]
    fn mul_add_one(x: f32, by: f32, to: f32) -> f32 {
        x.mul_add(by, to)
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        unsafe { Half(_mm256_add_ps(self.0, self.1)).sum() }
    }

    #[inline(always)]
    unsafe fn sums16(from: *const f32) -> Self {
        unsafe { Avx2(sums_256(from), sums_256(from.add(8 * LANES))) }
    }

    #[inline(always)]
    fn splat_sum(self) -> Self {
        unsafe {
            let x = _mm256_add_ps(self.0, self.1);
            let x = _mm256_add_ps(x, _mm256_permute2f128_ps::<1>(x, x));
            let x = _mm256_add_ps(x, _mm256_permute_ps::<0b01_00_11_10>(x));
            let x = _mm256_add_ps(x, _mm256_permute_ps::<0b10_11_00_01>(x));
            Avx2(x, x)
        }
    }

    #[inline(always)]
    fn first_lane(self) -> f32 {
        unsafe { _mm256_cvtss_f32(self.0) }
    }

    #[inline(always)]
    fn transpose(rows: [Self; LANES]) -> [Self; LANES] {
        unsafe {
            let mut out = rows;
            // Transposes the four 8 by 8 quadrants and exchanges the two off the diagonal.
            let (mut a, mut b) = ([_mm256_setzero_ps(); 8], [_mm256_setzero_ps(); 8]);
            for half in [0, 8] {
                for i in 0..8 {
                    (a[i], b[i]) = (rows[half + i].0, rows[half + i].1);
                }
                let (a, b) = (transpose8(a), transpose8(b));
                for i in 0..8 {
                    if half == 0 {
                        (out[i].0, out[8 + i].0) = (a[i], b[i]);
                    } else {
                        (out[i].1, out[8 + i].1) = (a[i], b[i]);
                    }
                }
            }
            out
        }
    }

    #[inline(always)]
    unsafe fn load_halves(low: *const f32, high: *const f32) -> Self {
        unsafe { Avx2(_mm256_loadu_ps(low), _mm256_loadu_ps(high)) }
    }

    #[inline(always)]
    unsafe fn store_halves(self, low: *mut f32, high: *mut f32) {
        unsafe {
            _mm256_storeu_ps(low, self.0);
            _mm256_storeu_ps(high, self.1);
        }
    }

    #[inline(always)]
    fn splat_halves(low: f32, high: f32) -> Self {
        unsafe { Avx2(_mm256_set1_ps(low), _mm256_set1_ps(high)) }
    }

    #[inline(always)]
    fn fold_halves(self) -> Self {
        unsafe { Avx2(_mm256_add_ps(self.0, self.1), _mm256_setzero_ps()) }
    }

    #[inline(always)]
    fn half_sums(vectors: [Self; 4]) -> Self {
        unsafe {
            let [a, b, c, d] = vectors;
            let first = _mm256_hadd_ps(_mm256_hadd_ps(a.0, a.1), _mm256_hadd_ps(b.0, b.1));
            let second = _mm256_hadd_ps(_mm256_hadd_ps(c.0, c.1), _mm256_hadd_ps(d.0, d.1));
            let sums = _mm256_add_ps(
                _mm256_permute2f128_ps::<0x20>(first, second),
                _mm256_permute2f128_ps::<0x31>(first, second),
            );
            Avx2(sums, _mm256_setzero_ps())
        }
    }

    #[inline(always)]
    fn sums4(vectors: [Self; 4]) -> [f32; 4] {
        unsafe {
            half_vector_sums4([
                _mm256_add_ps(vectors[0].0, vectors[0].1),
                _mm256_add_ps(vectors[1].0, vectors[1].1),
                _mm256_add_ps(vectors[2].0, vectors[2].1),
                _mm256_add_ps(vectors[3].0, vectors[3].1),
            ])
        }
    }

    #[inline(always)]
    fn max_zero(self) -> Self {
        unsafe {
            let zero = _mm256_setzero_ps();
            Avx2(_mm256_max_ps(self.0, zero), _mm256_max_ps(self.1, zero))
        }
    }

    #[inline(always)]
    fn sign(self) -> Self {
        #[inline(always)]
        unsafe fn sign(x: __m256) -> __m256 {
            unsafe {
                let (zero, one) = (_mm256_setzero_ps(), _mm256_set1_ps(1.0));
                let up = _mm256_and_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(x, zero), one);
                let down = _mm256_and_ps(_mm256_cmp_ps::<_CMP_LT_OQ>(x, zero), one);
                _mm256_sub_ps(up, down)
            }
        }
        unsafe { Avx2(sign(self.0), sign(self.1)) }
    }
}
