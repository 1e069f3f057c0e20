//! Sixteen floats at a time: the one vector type every kernel is written in.
//!
//! A line is a cache line, the padding unit of rows, and the widest register there is. Each level has
//! its own type for it; kernels are generic over [`F32x16`] and dispatched once per level by `dispatched!`,
//! with the instruction set enabled in the outermost function and everything below it inlined.
//!
//! # Safety
//! The methods of a line type of some instruction set may run only on machines that have it. Kernels
//! get there only through `dispatched!`, whose callers promise that the level is available.
#![allow(unsafe_code)]

mod aligned;
mod level;
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) mod x86;

use std::ops::{Add, Mul, Sub};

use wide::f32x8;

pub(crate) use aligned::AlignedVec;
pub use level::{LEVEL_VARIABLE, Level};

/// Floats per vector. Rows are padded with zeros to multiples of this many floats: 64 bytes, one cache line and
/// the widest SIMD register.
pub const LANES: usize = 16;

/// Returns `rank` rounded up to whole vectors.
pub fn padded_len(rank: usize) -> usize {
    rank.next_multiple_of(LANES)
}

pub(crate) trait F32x16:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self>
{
    /// Lines that fit into registers.
    const VECTOR_REGISTERS: usize;

    /// Reads [`LANES`] floats.
    ///
    /// # Safety
    /// They must be readable.
    unsafe fn load(from: *const f32) -> Self;

    /// Writes [`LANES`] floats.
    ///
    /// # Safety
    /// They must be writable.
    unsafe fn store(self, to: *mut f32);

    /// Runs a leaf in a function that is compiled with the instruction set of this type and never inlined.
    ///
    /// # Safety
    /// As the leaf; and this machine must have the instruction set.
    #[inline(never)]
    unsafe fn call<F: Leaf<Self, Args>, Args>(args: Args) -> F::Output {
        // SAFETY: the caller's promises; the default is for types that need the baseline only.
        unsafe { F::run(args) }
    }

    fn splat(x: f32) -> Self;

    /// `self * by + to`; rounded once where the machine can.
    fn mul_add(self, by: Self, to: Self) -> Self;

    /// The sum of all floats.
    fn sum(self) -> f32;

    /// The sum of all floats, in every place.
    #[inline(always)]
    fn splat_sum(self) -> Self {
        Self::splat(self.sum())
    }

    /// The first float.
    fn first_lane(self) -> f32;

    /// The larger of each float and 0.
    fn max_zero(self) -> Self;

    /// -1, 0 or 1 for each float.
    fn sign(self) -> Self;

    #[inline(always)]
    fn zero() -> Self {
        Self::splat(0.0)
    }

    /// Sixteen lines as the rows of a square become its columns.
    #[inline(always)]
    fn transpose(rows: [Self; LANES]) -> [Self; LANES] {
        let mut from = [[0.0; LANES]; LANES];
        let mut to = from;
        let mut out = rows;
        // SAFETY: every row of the squares is one line.
        unsafe {
            for i in 0..LANES {
                rows[i].store(from[i].as_mut_ptr());
            }
            for i in 0..LANES {
                for j in 0..LANES {
                    to[j][i] = from[i][j];
                }
            }
            for i in 0..LANES {
                out[i] = Self::load(to[i].as_ptr());
            }
        }
        out
    }

    /// Reads half a line from each.
    ///
    /// # Safety
    /// Both must be readable.
    #[inline(always)]
    unsafe fn load_halves(low: *const f32, high: *const f32) -> Self {
        let mut both = [0.0; LANES];
        // SAFETY: the caller's promise; a line is as long as the array.
        unsafe {
            let (to_low, to_high) = both.split_at_mut(LANES / 2);
            to_low.copy_from_slice(std::slice::from_raw_parts(low, LANES / 2));
            to_high.copy_from_slice(std::slice::from_raw_parts(high, LANES / 2));
            Self::load(both.as_ptr())
        }
    }

    /// Writes half a line to each.
    ///
    /// # Safety
    /// Both must be writable.
    #[inline(always)]
    unsafe fn store_halves(self, low: *mut f32, high: *mut f32) {
        let mut both = [0.0f32; LANES];
        // SAFETY: as above.
        unsafe {
            self.store(both.as_mut_ptr());
            low.copy_from_nonoverlapping(both.as_ptr(), LANES / 2);
            high.copy_from_nonoverlapping(both.as_ptr().add(LANES / 2), LANES / 2);
        }
    }

    /// Half a line of `low`, half a line of `high`.
    #[inline(always)]
    fn splat_halves(low: f32, high: f32) -> Self {
        let (low, high) = ([low; LANES / 2], [high; LANES / 2]);
        // SAFETY: both are half a line.
        unsafe { Self::load_halves(low.as_ptr(), high.as_ptr()) }
    }

    /// The sum of both halves, and then zeros.
    #[inline(always)]
    fn fold_halves(self) -> Self {
        let (mut low, mut high) = ([0.0; LANES / 2], [0.0; LANES / 2]);
        // SAFETY: all are half a line.
        unsafe {
            self.store_halves(low.as_mut_ptr(), high.as_mut_ptr());
            for k in 0..LANES / 2 {
                (low[k], high[k]) = (low[k] + high[k], 0.0);
            }
            Self::load_halves(low.as_ptr(), high.as_ptr())
        }
    }

    /// The sums of eight halves one after the other, and then zeros.
    #[inline(always)]
    fn half_sums(vectors: [Self; 4]) -> Self {
        let mut sums = [0.0; LANES];
        let (mut low, mut high) = ([0.0f32; LANES / 2], [0.0f32; LANES / 2]);
        // SAFETY: all are half a line, the sums a whole one.
        unsafe {
            for k in 0..4 {
                vectors[k].store_halves(low.as_mut_ptr(), high.as_mut_ptr());
                sums[2 * k] = low.iter().sum();
                sums[2 * k + 1] = high.iter().sum();
            }
            Self::load(sums.as_ptr())
        }
    }

    /// Four sums at once.
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

/// Asks for the cache line at `at` to be brought near; nothing happens if there is none.
#[inline(always)]
pub(crate) fn prefetch(at: *const f32) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch of any address is harmless; SSE is part of the baseline.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = at;
}

/// Plain floats.
#[derive(Clone, Copy)]
pub(crate) struct Scalar([f32; LANES]);

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
        // SAFETY: the caller's promise; arrays of floats have the alignment of floats.
        Scalar(unsafe { from.cast::<[f32; LANES]>().read() })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: as above.
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

/// The portable vectors.
#[derive(Clone, Copy)]
pub(crate) struct Portable([f32x8; 2]);

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
        // SAFETY: the caller's promise.
        let halves = unsafe { from.cast::<[[f32; 8]; 2]>().read() };
        Portable([f32x8::new(halves[0]), f32x8::new(halves[1])])
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller's promise.
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

    #[inline(always)]
    fn max_zero(self) -> Self {
        Portable([self.0[0].max(f32x8::ZERO), self.0[1].max(f32x8::ZERO)])
    }

    #[inline(always)]
    fn sign(self) -> Self {
        Portable(self.0.map(|x| {
            let one = f32x8::splat(1.0);
            (x.simd_gt(f32x8::ZERO) & one) - (x.simd_lt(f32x8::ZERO) & one)
        }))
    }
}

/// A kernel body: compiled by [`F32x16::call`] as a function of its own, with the instruction set of `V` enabled.
/// Implemented by [`leaf!`] and [`dispatched!`] only.
pub(crate) trait Leaf<V, Args> {
    /// What the kernel returns.
    type Output;

    /// Runs the kernel; inlined into its caller.
    ///
    /// # Safety
    /// As the kernel; and the caller is compiled with the instruction set of `V` enabled.
    unsafe fn run(args: Args) -> Self::Output;
}

/// Declares a kernel that is compiled once per vector type (and constant parameters) as a function of its own:
/// `$body`, generic and `inline(always)`, becomes part of it with the instruction set enabled.
///
/// This is the unit of code that exists per instruction set. Everything above a leaf is compiled for the baseline
/// and calls leaves; everything below is inlined into them.
macro_rules! leaf {
    ($(#[$doc:meta])* $vis:vis unsafe fn $name:ident<$V:ident: $bound:ident $(+ $more:ident)* $(, const $c:ident: $ct:ty)*>
        ($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)? = $body:ident;) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// Those of the kernel; and this machine must have the instruction set of the vector type.
        #[inline(always)]
        #[allow(clippy::too_many_arguments)]
        $vis unsafe fn $name<$V: $bound $(+ $more)* $(, const $c: $ct)*>($($arg: $type),*) $(-> $result)? {
            struct Body<$(const $c: $ct),*>;
            impl<$V: $bound $(+ $more)* $(, const $c: $ct)*> $crate::simd::Leaf<$V, ($($type,)*)> for Body<$($c),*> {
                type Output = $crate::simd::leaf!(@result $($result)?);

                #[inline(always)]
                unsafe fn run(($($arg,)*): ($($type,)*)) -> Self::Output {
                    // SAFETY: the caller's promises.
                    unsafe { $body::<$V $(, $c)*>($($arg),*) }
                }
            }
            // SAFETY: the caller's promises.
            unsafe { $V::call::<Body<$($c),*>, _>(($($arg,)*)) }
        }
    };
    (@result) => { () };
    (@result $result:ty) => { $result };
}
pub(crate) use leaf;

/// Declares a function that runs a generic kernel at the [`Level`] given as its first argument. A kernel that is
/// `inline(always)` is compiled here as a leaf; any other one calls leaves itself.
macro_rules! dispatched {
    ($(#[$doc:meta])* $vis:vis unsafe fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)? = $generic:ident;) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// Those of the kernel; and the level must be available on this machine.
        #[allow(clippy::too_many_arguments)]
        $vis unsafe fn $name(level: $crate::simd::Level, $($arg: $type),*) $(-> $result)? {
            use $crate::simd::{Portable, Scalar};
            use $crate::simd::Level;
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,fma")]
            unsafe fn avx512($($arg: $type),*) $(-> $result)? {
                // SAFETY: the caller's promises; the instruction set is enabled here.
                unsafe { $generic::<$crate::simd::x86::Avx512>($($arg),*) }
            }
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            #[target_feature(enable = "avx2,fma")]
            unsafe fn avx2($($arg: $type),*) $(-> $result)? {
                // SAFETY: the caller's promises; the instruction set is enabled here.
                unsafe { $generic::<$crate::simd::x86::Avx2>($($arg),*) }
            }
            // SAFETY: the caller's promises, among them that the level is available.
            unsafe {
                match level {
                    #[cfg(all(target_arch = "x86_64", not(miri)))]
                    Level::Avx512 => avx512($($arg),*),
                    #[cfg(all(target_arch = "x86_64", not(miri)))]
                    Level::Avx2 => avx2($($arg),*),
                    Level::Scalar => $generic::<Scalar>($($arg),*),
                    _ => $generic::<Portable>($($arg),*),
                }
            }
        }
    };
}
pub(crate) use dispatched;
