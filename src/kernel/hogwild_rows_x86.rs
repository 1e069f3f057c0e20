//! Moves of racing lines with the registers of AVX2 and AVX-512.
//!
//! # Safety
//! See [`super::hogwild_rows`] for what these promise, and [`crate::simd`]: none of this may run on a
//! machine without the instruction set.
#![allow(unsafe_code)]

use std::arch::asm;
use std::arch::x86_64::{__m256, __m512};

use super::hogwild_rows::Racer;
use crate::simd::x86::{Avx2, Avx512};

#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn take_512(from: *const f32) -> __m512 {
    let x: __m512;
    // SAFETY: the 64 bytes at `from` are readable by the caller's promise; the assembly only reads.
    unsafe {
        asm!("vmovups {x}, [{p}]", p = in(reg) from, x = out(zmm_reg) x,
            options(nostack, preserves_flags, readonly));
    }
    x
}

#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn put_512(x: __m512, to: *mut f32) {
    // SAFETY: the 64 bytes at `to` are writable by the caller's promise.
    unsafe {
        asm!("vmovups [{p}], {x}", p = in(reg) to, x = in(zmm_reg) x,
            options(nostack, preserves_flags));
    }
}

#[inline]
#[target_feature(enable = "avx")]
unsafe fn take_256(from: *const f32) -> __m256 {
    let x: __m256;
    // SAFETY: the 32 bytes at `from` are readable by the caller's promise; the assembly only reads.
    unsafe {
        asm!("vmovups {x}, [{p}]", p = in(reg) from, x = out(ymm_reg) x,
            options(nostack, preserves_flags, readonly));
    }
    x
}

#[inline]
#[target_feature(enable = "avx")]
unsafe fn put_256(x: __m256, to: *mut f32) {
    // SAFETY: the 32 bytes at `to` are writable by the caller's promise.
    unsafe {
        asm!("vmovups [{p}], {x}", p = in(reg) to, x = in(ymm_reg) x,
            options(nostack, preserves_flags));
    }
}

/// Machines with AVX2 know the instruction, if only as one that does nothing.
#[inline(always)]
fn expect_write(at: *const f32) {
    // SAFETY: a prefetch of any address is harmless.
    unsafe {
        asm!("prefetchw [{p}]", p = in(reg) at, options(nostack, preserves_flags, readonly));
    }
}

impl Racer for Avx512 {
    #[inline(always)]
    unsafe fn take(from: *const f32) -> Self {
        // SAFETY: the caller's promise, and that of the module.
        unsafe { Avx512(take_512(from)) }
    }

    #[inline(always)]
    unsafe fn put(self, to: *mut f32) {
        // SAFETY: as above.
        unsafe { put_512(self.0, to) }
    }

    #[inline(always)]
    fn expect(at: *const f32) {
        expect_write(at);
    }
}

impl Racer for Avx2 {
    #[inline(always)]
    unsafe fn take(from: *const f32) -> Self {
        // SAFETY: the caller's promise, and that of the module.
        unsafe { Avx2(take_256(from), take_256(from.add(8))) }
    }

    #[inline(always)]
    unsafe fn put(self, to: *mut f32) {
        // SAFETY: as above.
        unsafe {
            put_256(self.0, to);
            put_256(self.1, to.add(8));
        }
    }

    #[inline(always)]
    fn expect(at: *const f32) {
        expect_write(at);
    }
}
