//! Moves from and to shared rows with the registers of AVX2 and AVX-512.
//!
//! # Safety
//! [`super::rows`] states what these moves guarantee. As in [`crate::simd`], the caller must make sure that
//! the machine has the instruction set.
#![allow(unsafe_code)]

use std::arch::asm;
use std::arch::x86_64::{__m256, __m512};

use super::rows::HogwildVector;
use crate::simd::x86::{Avx2, Avx512};

#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load_512(from: *const f32) -> __m512 {
    let x: __m512;
    // SAFETY: the 64 bytes at `from` are readable as the caller guarantees; the assembly only reads.
    unsafe {
        asm!("vmovups {x}, [{p}]", p = in(reg) from, x = out(zmm_reg) x,
            options(nostack, preserves_flags, readonly));
    }
    x
}

#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn store_512(x: __m512, to: *mut f32) {
    // SAFETY: the 64 bytes at `to` are writable as the caller guarantees.
    unsafe {
        asm!("vmovups [{p}], {x}", p = in(reg) to, x = in(zmm_reg) x,
            options(nostack, preserves_flags));
    }
}

#[inline]
#[target_feature(enable = "avx")]
unsafe fn load_256(from: *const f32) -> __m256 {
    let x: __m256;
    // SAFETY: the 32 bytes at `from` are readable as the caller guarantees; the assembly only reads.
    unsafe {
        asm!("vmovups {x}, [{p}]", p = in(reg) from, x = out(ymm_reg) x,
            options(nostack, preserves_flags, readonly));
    }
    x
}

#[inline]
#[target_feature(enable = "avx")]
unsafe fn store_256(x: __m256, to: *mut f32) {
    // SAFETY: the 32 bytes at `to` are writable as the caller guarantees.
    unsafe {
        asm!("vmovups [{p}], {x}", p = in(reg) to, x = in(ymm_reg) x,
            options(nostack, preserves_flags));
    }
}

/// Prefetches a cache line for writing. Every CPU with AVX2 decodes the instruction; some ignore it.
#[inline(always)]
fn prefetchw(at: *const f32) {
    // SAFETY: a prefetch of any address is harmless.
    unsafe {
        asm!("prefetchw [{p}]", p = in(reg) at, options(nostack, preserves_flags, readonly));
    }
}

impl HogwildVector for Avx512 {
    #[inline(always)]
    unsafe fn load_shared(from: *const f32) -> Self {
        // SAFETY: the caller guarantees the memory and the instruction set.
        unsafe { Avx512(load_512(from)) }
    }

    #[inline(always)]
    unsafe fn store_shared(self, to: *mut f32) {
        // SAFETY: as above.
        unsafe { store_512(self.0, to) }
    }

    #[inline(always)]
    fn prefetch_for_write(at: *const f32) {
        prefetchw(at);
    }
}

impl HogwildVector for Avx2 {
    #[inline(always)]
    unsafe fn load_shared(from: *const f32) -> Self {
        // SAFETY: the caller guarantees the memory and the instruction set.
        unsafe { Avx2(load_256(from), load_256(from.add(8))) }
    }

    #[inline(always)]
    unsafe fn store_shared(self, to: *mut f32) {
        // SAFETY: as above.
        unsafe {
            store_256(self.0, to);
            store_256(self.1, to.add(8));
        }
    }

    #[inline(always)]
    fn prefetch_for_write(at: *const f32) {
        prefetchw(at);
    }
}
