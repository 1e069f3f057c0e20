//! The 16-float vector type that all kernels are written in, and the dispatch by instruction set.
//!
//! What enters: pointers to rows padded to whole vectors of [`LANES`] floats, and a [`Level`]. What leaves: one
//! compiled copy of each kernel per instruction set. Open this file first: trait `F32x16`, then the macros
//! `leaf!` and `dispatched!`. `level` lists the instruction sets, `x86` holds the AVX2 and AVX-512 types
//! with `lane_sums`, `aligned` the aligned buffers.
//!
//! The call chain of a kernel: a safe function checks its arguments and calls a `dispatched!` function. That one
//! matches on the [`Level`] and calls a generic function over a vector type. The generic function selects a
//! `leaf!`, which is compiled with the instruction set enabled. Everything below a leaf is inlined into it.
//!
//! To add an instruction set:
//! 1. Implement `F32x16` and `PackedVector` for a new type in this folder (`x86.rs` and `packed_vector_x86.rs` are the
//!    examples), and `HogwildVector` for the same type in `hogwild` (`hogwild/rows_x86.rs`).
//! 2. Add a variant to [`Level`] and to its `ALL`, `name` and `is_available` (`level.rs`), and an arm to `dispatched!`.
//! 3. Follow the compiler to the other matches on [`Level`] (`flops_probe.rs`, and `ffi/library.rs` of the library); add the variant to
//!    `options::KernelChoice`, and a constant to `ffi/library.rs`.
//! 4. Check the thresholds on `VECTOR_REGISTERS` in all families: they choose tile sizes and specialized kernels.
//! 5. Add the level to `cli/tests/golden.rs` and record its results there.
//!
//! # Safety
//! The methods of a vector type execute instructions of its instruction set, so they may run only on machines
//! that have it. Kernels reach them only through `dispatched!`, whose callers guarantee that the level is
//! available.
#![allow(unsafe_code)]

mod aligned;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod lane_sums;
mod level;
pub(crate) mod packed_vector;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod packed_vector_x86;
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[doc(hidden)]
pub mod x86;

use std::ops::{Add, Mul, Sub};

use wide::f32x8;

pub use aligned::AlignedVec;
pub use level::{LEVEL_VARIABLE, Level};

/// Floats per vector. Rows are padded with zeros to multiples of this many floats: 64 bytes, one cache line and
/// the widest SIMD register.
pub const LANES: usize = 16;

/// Returns `rank` rounded up to whole vectors.
#[inline]
pub fn padded_len(rank: usize) -> usize {
    rank.next_multiple_of(LANES)
}

/// A vector of [`LANES`] floats, over which kernels are generic.
pub trait F32x16: Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> {
    /// Number of vectors of this type that fit into the register file. Kernels choose their tiles by it. For [`Scalar`] it
    /// is a hint, which selects the smallest tiles: the compiler decides what it keeps in registers.
    const VECTOR_REGISTERS: usize;

    /// Loads [`LANES`] floats. No alignment beyond that of `f32` is needed.
    ///
    /// # Safety
    /// The [`LANES`] floats at `from` must be readable.
    unsafe fn load(from: *const f32) -> Self;

    /// Stores [`LANES`] floats.
    ///
    /// # Safety
    /// The [`LANES`] floats at `to` must be writable.
    unsafe fn store(self, to: *mut f32);

    /// Runs a leaf in a function that is compiled with the instruction set of this type and never inlined.
    ///
    /// # Safety
    /// The obligations of the leaf hold, and the machine has the instruction set.
    #[inline(never)]
    unsafe fn call<F: Leaf<Self, Args>, Args>(args: Args) -> F::Output {
        // SAFETY: the caller guarantees the obligations of the leaf. This default serves types that need no more
        // than the baseline.
        unsafe { F::run(args) }
    }

    /// Returns a vector of equal elements.
    fn splat(x: f32) -> Self;

    /// Returns `self * by + to`, rounded once where the instruction set has a fused multiply-add.
    fn mul_add(self, by: Self, to: Self) -> Self;

    /// Returns `x * by + to` of single numbers, rounded as in [`F32x16::mul_add`].
    #[inline(always)]
    fn mul_add_one(x: f32, by: f32, to: f32) -> f32 {
        x * by + to
    }

    /// Returns the sum of all lanes. The order of additions is fixed per type.
    fn sum(self) -> f32;

    /// Returns the sum of all lanes in every lane.
    #[inline(always)]
    fn splat_sum(self) -> Self {
        Self::splat(self.sum())
    }

    /// Returns the sums of [`LANES`] consecutive vectors, each the same as that of [`F32x16::sum`].
    ///
    /// # Safety
    /// The vectors at `from` must be readable.
    #[inline(always)]
    unsafe fn sums16(from: *const f32) -> Self {
        let mut sums = [0.0; LANES];
        // SAFETY: the caller guarantees that the vectors are readable; `sums` is one vector long.
        unsafe {
            for k in 0..LANES {
                sums[k] = Self::load(from.add(k * LANES)).sum();
            }
            Self::load(sums.as_ptr())
        }
    }

    /// Returns the first lane.
    fn first_lane(self) -> f32;

    /// Returns the maximum of each lane and 0.
    fn max_zero(self) -> Self;

    /// Returns the sign of each lane: -1, 0 or 1.
    fn sign(self) -> Self;

    #[inline(always)]
    /// Returns a vector of zeros.
    fn zero() -> Self {
        Self::splat(0.0)
    }

    /// Transposes a 16 by 16 matrix given as its rows.
    #[inline(always)]
    fn transpose(rows: [Self; LANES]) -> [Self; LANES] {
        let mut from = [[0.0; LANES]; LANES];
        let mut columns = [Self::zero(); LANES];
        // SAFETY: every row of both arrays is one vector long.
        unsafe {
            for i in 0..LANES {
                rows[i].store(from[i].as_mut_ptr());
            }
            for j in 0..LANES {
                let mut column = [0.0; LANES];
                for i in 0..LANES {
                    column[i] = from[i][j];
                }
                columns[j] = Self::load(column.as_ptr());
            }
        }
        columns
    }

    /// Loads the lower half of the lanes from `low` and the upper half from `high`.
    ///
    /// # Safety
    /// `LANES / 2` floats must be readable at both addresses.
    #[inline(always)]
    unsafe fn load_halves(low: *const f32, high: *const f32) -> Self {
        let mut both = [0.0f32; LANES];
        // SAFETY: the caller guarantees that both halves are readable; `both` is one vector long.
        unsafe {
            let to = both.as_mut_ptr();
            to.copy_from_nonoverlapping(low, LANES / 2);
            to.add(LANES / 2).copy_from_nonoverlapping(high, LANES / 2);
            Self::load(both.as_ptr())
        }
    }

    /// Stores the lower half of the lanes to `low` and the upper half to `high`.
    ///
    /// # Safety
    /// `LANES / 2` floats must be writable at both addresses.
    #[inline(always)]
    unsafe fn store_halves(self, low: *mut f32, high: *mut f32) {
        let mut both = [0.0f32; LANES];
        // SAFETY: the caller guarantees that both halves are writable; `both` is one vector long.
        unsafe {
            self.store(both.as_mut_ptr());
            low.copy_from_nonoverlapping(both.as_ptr(), LANES / 2);
            high.copy_from_nonoverlapping(both.as_ptr().add(LANES / 2), LANES / 2);
        }
    }

    /// Returns `low` in the lower half of the lanes and `high` in the upper half.
    #[inline(always)]
    fn splat_halves(low: f32, high: f32) -> Self {
        let (low, high) = ([low; LANES / 2], [high; LANES / 2]);
        // SAFETY: both arrays are half a vector long.
        unsafe { Self::load_halves(low.as_ptr(), high.as_ptr()) }
    }

    /// Returns the sum of the two halves in the lower half, and zeros in the upper half.
    #[inline(always)]
    fn fold_halves(self) -> Self {
        let (mut low, mut high) = ([0.0; LANES / 2], [0.0; LANES / 2]);
        // SAFETY: both arrays are half a vector long.
        unsafe {
            self.store_halves(low.as_mut_ptr(), high.as_mut_ptr());
            for k in 0..LANES / 2 {
                (low[k], high[k]) = (low[k] + high[k], 0.0);
            }
            Self::load_halves(low.as_ptr(), high.as_ptr())
        }
    }

    /// Returns the sums of the eight halves of four vectors in the lower half, and zeros in the upper half.
    #[inline(always)]
    fn half_sums(vectors: [Self; 4]) -> Self {
        let mut sums = [0.0; LANES];
        let (mut low, mut high) = ([0.0f32; LANES / 2], [0.0f32; LANES / 2]);
        // SAFETY: `low` and `high` are half a vector long, `sums` is one vector long.
        unsafe {
            for k in 0..4 {
                vectors[k].store_halves(low.as_mut_ptr(), high.as_mut_ptr());
                sums[2 * k] = low.iter().sum();
                sums[2 * k + 1] = high.iter().sum();
            }
            Self::load(sums.as_ptr())
        }
    }

    /// Returns the sums of four vectors.
    #[inline(always)]
    fn sums4(vectors: [Self; 4]) -> [f32; 4] {
        [
            vectors[0].sum(),
            vectors[1].sum(),
            vectors[2].sum(),
            vectors[3].sum(),
        ]
    }
}

/// Prefetches the cache line at `at` for reading. Any address is allowed.
#[inline(always)]
pub fn prefetch(at: *const f32) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch of any address is harmless; SSE is part of the baseline.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = at;
}

/// Vector of the scalar level: an array, which the compiler may vectorize for the baseline.
#[derive(Clone, Copy)]
pub struct Scalar([f32; LANES]);

impl Scalar {
    #[inline(always)]
    fn map2(self, other: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        let mut out = self.0;
        for k in 0..LANES {
            out[k] = f(self.0[k], other.0[k]);
        }
        Scalar(out)
    }
}

impl Add for Scalar {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.map2(other, |a, b| a + b)
    }
}

impl Sub for Scalar {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.map2(other, |a, b| a - b)
    }
}

impl Mul for Scalar {
    type Output = Self;

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.map2(other, |a, b| a * b)
    }
}

impl F32x16 for Scalar {
    const VECTOR_REGISTERS: usize = 1;

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller guarantees that the floats are readable; an array of floats has the alignment of a
        // float.
        Scalar(unsafe { from.cast::<[f32; LANES]>().read() })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller guarantees that the floats are writable.
        unsafe { to.cast::<[f32; LANES]>().write(self.0) }
    }

    #[inline(always)]
    fn splat(x: f32) -> Self {
        Scalar([x; LANES])
    }

    #[inline(always)]
    fn mul_add(self, by: Self, to: Self) -> Self {
        self * by + to
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        self.0.iter().sum()
    }

    #[inline(always)]
    fn first_lane(self) -> f32 {
        self.0[0]
    }

    #[inline(always)]
    fn max_zero(self) -> Self {
        self.map2(self, |a, _| a.max(0.0))
    }

    #[inline(always)]
    fn sign(self) -> Self {
        self.map2(self, |a, _| {
            f32::from(i8::from(a > 0.0) - i8::from(a < 0.0))
        })
    }
}

/// Vector of the portable level: two 8-float vectors of the crate `wide`. Its methods contain no `copy_from_slice` and no
/// `map` of arrays, whose generic parts may be compiled in another codegen unit and then are not inlined.
#[derive(Clone, Copy)]
pub struct Portable([f32x8; 2]);

impl Add for Portable {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Portable([self.0[0] + other.0[0], self.0[1] + other.0[1]])
    }
}

impl Sub for Portable {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Portable([self.0[0] - other.0[0], self.0[1] - other.0[1]])
    }
}

impl Mul for Portable {
    type Output = Self;

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Portable([self.0[0] * other.0[0], self.0[1] * other.0[1]])
    }
}

impl F32x16 for Portable {
    const VECTOR_REGISTERS: usize = 4;

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller guarantees that the floats are readable.
        let halves = unsafe { from.cast::<[[f32; 8]; 2]>().read() };
        Portable([f32x8::new(halves[0]), f32x8::new(halves[1])])
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller guarantees that the floats are writable.
        unsafe {
            to.cast::<[[f32; 8]; 2]>()
                .write([self.0[0].to_array(), self.0[1].to_array()])
        }
    }

    #[inline(always)]
    fn splat(x: f32) -> Self {
        Portable([f32x8::splat(x); 2])
    }

    #[inline(always)]
    fn mul_add(self, by: Self, to: Self) -> Self {
        Portable([
            self.0[0].mul_add(by.0[0], to.0[0]),
            self.0[1].mul_add(by.0[1], to.0[1]),
        ])
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        (self.0[0] + self.0[1]).reduce_add()
    }

    #[inline(always)]
    fn first_lane(self) -> f32 {
        self.0[0].to_array()[0]
    }

    // NaN becomes 0, as with `f32::max`. (`f32x8::max` contains a function that is not inlined.)
    #[inline(always)]
    fn max_zero(self) -> Self {
        let [low, high] = self.0;
        Portable([
            low.simd_gt(f32x8::ZERO) & low,
            high.simd_gt(f32x8::ZERO) & high,
        ])
    }

    #[inline(always)]
    fn sign(self) -> Self {
        #[inline(always)]
        fn sign(x: f32x8) -> f32x8 {
            let one = f32x8::splat(1.0);
            (x.simd_gt(f32x8::ZERO) & one) - (x.simd_lt(f32x8::ZERO) & one)
        }
        Portable([sign(self.0[0]), sign(self.0[1])])
    }

    #[inline(always)]
    unsafe fn load_halves(low: *const f32, high: *const f32) -> Self {
        // SAFETY: the caller guarantees that both halves are readable.
        unsafe {
            Portable([
                f32x8::new(low.cast::<[f32; 8]>().read()),
                f32x8::new(high.cast::<[f32; 8]>().read()),
            ])
        }
    }

    #[inline(always)]
    unsafe fn store_halves(self, low: *mut f32, high: *mut f32) {
        // SAFETY: the caller guarantees that both halves are writable.
        unsafe {
            low.cast::<[f32; 8]>().write(self.0[0].to_array());
            high.cast::<[f32; 8]>().write(self.0[1].to_array());
        }
    }

    #[inline(always)]
    fn splat_halves(low: f32, high: f32) -> Self {
        Portable([f32x8::splat(low), f32x8::splat(high)])
    }

    #[inline(always)]
    fn fold_halves(self) -> Self {
        Portable([self.0[0] + self.0[1], f32x8::ZERO])
    }
}

/// A kernel body. [`F32x16::call`] compiles it as a function of its own with the instruction set of `V` enabled.
/// Only [`leaf!`] implements this trait.
pub trait Leaf<V, Args> {
    /// Return type of the kernel.
    type Output;

    /// Runs the kernel, inlined into the caller.
    ///
    /// # Safety
    /// The obligations of the kernel hold, and the caller is compiled with the instruction set of `V` enabled.
    unsafe fn run(args: Args) -> Self::Output;
}

/// Declares a kernel that is compiled as a function of its own, once per vector type and constant parameters.
/// `$body` is generic and `inline(always)`; it is inlined into that function, where the instruction set is
/// enabled.
///
/// A leaf is the unit of code that exists once per instruction set. The code above it is compiled for the
/// baseline and calls leaves. The code below it is inlined. Measured reason: with the instruction set enabled at
/// the root of the call tree instead, whole trees were instantiated per instruction set, and the library took
/// five minutes to compile.
#[macro_export]
macro_rules! leaf {
    ($(#[$doc:meta])* $vis:vis unsafe fn $name:ident<$V:ident: $bound:ident $(+ $more:ident)* $(, const $c:ident: $ct:ty)*>
        ($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)? = $body:ident;) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// The obligations of the kernel hold, and the machine has the instruction set of the vector type.
        #[inline(always)]
        #[allow(clippy::too_many_arguments)]
        $vis unsafe fn $name<$V: $bound $(+ $more)* $(, const $c: $ct)*>($($arg: $type),*) $(-> $result)? {
            struct Body<$(const $c: $ct),*>;
            impl<$V: $bound $(+ $more)* $(, const $c: $ct)*> $crate::simd::Leaf<$V, ($($type,)*)> for Body<$($c),*> {
                type Output = $crate::simd::leaf!(@result $($result)?);

                #[inline(always)]
                unsafe fn run(($($arg,)*): ($($type,)*)) -> Self::Output {
                    // SAFETY: the caller guarantees the obligations of the kernel.
                    unsafe { $body::<$V $(, $c)*>($($arg),*) }
                }
            }
            // SAFETY: the caller guarantees the obligations of the kernel and the instruction set.
            unsafe { $V::call::<Body<$($c),*>, _>(($($arg,)*)) }
        }
    };
    (@result) => { () };
    (@result $result:ty) => { $result };
}
#[doc(hidden)]
pub use leaf;

/// Declares a function that runs a generic kernel at the [`Level`] given as its first argument. An
/// `inline(always)` kernel is compiled here as a leaf; any other kernel calls leaves itself.
#[macro_export]
macro_rules! dispatched {
    ($(#[$doc:meta])* $vis:vis unsafe fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)? = $generic:ident;) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// The obligations of the kernel hold, and the level is available on this machine.
        #[allow(clippy::too_many_arguments)]
        $vis unsafe fn $name(level: $crate::simd::Level, $($arg: $type),*) $(-> $result)? {
            use $crate::simd::{Portable, Scalar};
            use $crate::simd::Level;
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,fma")]
            unsafe fn avx512($($arg: $type),*) $(-> $result)? {
                // SAFETY: the caller guarantees the obligations of the kernel; the instruction set is enabled
                // here.
                unsafe { $generic::<$crate::simd::x86::Avx512>($($arg),*) }
            }
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            #[target_feature(enable = "avx2,fma")]
            unsafe fn avx2($($arg: $type),*) $(-> $result)? {
                // SAFETY: the caller guarantees the obligations of the kernel; the instruction set is enabled
                // here.
                unsafe { $generic::<$crate::simd::x86::Avx2>($($arg),*) }
            }
            // SAFETY: the caller guarantees the obligations of the kernel and that the level is available.
            unsafe {
                match level {
                    #[cfg(all(target_arch = "x86_64", not(miri)))]
                    Level::Avx512 => avx512($($arg),*),
                    #[cfg(all(target_arch = "x86_64", not(miri)))]
                    Level::Avx2 => avx2($($arg),*),
                    // Not available on this target, so no caller passes them.
                    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
                    Level::Avx2 | Level::Avx512 => $generic::<Portable>($($arg),*),
                    Level::Scalar => $generic::<Scalar>($($arg),*),
                    Level::Wide => $generic::<Portable>($($arg),*),
                }
            }
        }
    };
}
pub use dispatched;
