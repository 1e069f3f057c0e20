//! Rows that several threads read and write without synchronization (HOGWILD!).
//!
//! The paper's schedule lets threads overwrite each other's updates: rows are rarely shared, and a
//! lost or torn update costs a little accuracy and nothing else. In Rust, as in C, ordinary loads
//! and stores that race are undefined behaviour, through references and raw pointers alike. So no
//! reference into such memory exists while threads race; a [`RacingRows`] is the only way in, and it
//! moves whole rows between the shared memory and buffers of the calling thread:
//!
//! - on x86-64 and AArch64 with vector moves in `asm!`, which the compiler treats as opaque memory
//!   accesses: it can neither assume that nobody else writes nor split or repeat them;
//! - elsewhere, and under Miri, with relaxed atomics, one float at a time.
//!
//! What the hardware promises: an aligned 16-byte move may be seen in halves by another thread, but
//! an aligned 4-byte float in it is never torn. So a row read during an update can mix old and new
//! floats, and each float is one that somebody wrote. What the language promises: inline assembly
//! may do what the hardware does to memory the compiler believes shared; Rust has no words yet for
//! assembly that races with assembly, and no compiler has given it another meaning.
#![allow(unsafe_code)]

use std::marker::PhantomData;

use crate::model::STRIDE;

/// Rows of floats, padded to whole lines, shared between racing threads.
pub struct RacingRows<'a> {
    start: *mut f32,
    rows: usize,
    stride: usize,
    memory: PhantomData<&'a mut [f32]>,
}

// SAFETY: all access through a shared `RacingRows` goes through `load` and `store`, which use
// assembly or atomics and never a reference into the memory; the lifetime keeps every other access
// out as long as it exists.
unsafe impl Sync for RacingRows<'_> {}
// SAFETY: it is only a pointer to memory borrowed for `'a`, with no tie to a thread.
unsafe impl Send for RacingRows<'_> {}

impl<'a> RacingRows<'a> {
    /// Takes over `memory`, rows of `stride` floats, until the end of its borrow.
    ///
    /// # Panics
    /// If `stride` is not a multiple of [`STRIDE`] or `memory` not a whole number of rows.
    pub fn new(memory: &'a mut [f32], stride: usize) -> Self {
        assert!(stride > 0 && stride.is_multiple_of(STRIDE) && memory.len().is_multiple_of(stride));
        RacingRows {
            start: memory.as_mut_ptr(),
            rows: memory.len() / stride,
            stride,
            memory: PhantomData,
        }
    }

    #[inline(always)]
    fn at(&self, row: u32, len: usize) -> *mut f32 {
        assert!((row as usize) < self.rows && len == self.stride);
        // SAFETY: the row is inside the memory, which is `rows * stride` floats long.
        unsafe { self.start.add(row as usize * self.stride) }
    }

    /// Copies a row out.
    ///
    /// # Panics
    /// If there is no such row or `out` is not one row long.
    #[inline(always)]
    pub fn load(&self, row: u32, out: &mut [f32]) {
        let mut from = self.at(row, out.len()).cast_const();
        for line in out.as_chunks_mut::<STRIDE>().0 {
            // SAFETY: `at` gave the start of `out.len()` floats inside the memory, and `out` has
            // whole lines; each step reads the next line of them.
            unsafe {
                load_line(from, line);
                from = from.add(STRIDE);
            }
        }
    }

    /// Copies a row in.
    ///
    /// # Panics
    /// If there is no such row or `from` is not one row long.
    #[inline(always)]
    pub fn store(&self, row: u32, from: &[f32]) {
        let mut to = self.at(row, from.len());
        for line in from.as_chunks::<STRIDE>().0 {
            // SAFETY: as in `load`; nobody holds a reference into this memory.
            unsafe {
                store_line(to, line);
                to = to.add(STRIDE);
            }
        }
    }
}

/// # Safety
/// `from` must point to [`STRIDE`] floats that stay allocated.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn load_line(from: *const f32, to: &mut [f32; STRIDE]) {
    use std::arch::asm;
    use std::arch::x86_64::{__m128, _mm_storeu_ps};
    let (a, b, c, d): (__m128, __m128, __m128, __m128);
    // SAFETY: the 64 bytes at `from` are readable by the caller's promise; the assembly only reads
    // them. SSE is part of the x86-64 baseline.
    unsafe {
        asm!(
            "movups {a}, [{p}]",
            "movups {b}, [{p} + 16]",
            "movups {c}, [{p} + 32]",
            "movups {d}, [{p} + 48]",
            p = in(reg) from,
            a = out(xmm_reg) a,
            b = out(xmm_reg) b,
            c = out(xmm_reg) c,
            d = out(xmm_reg) d,
            options(nostack, preserves_flags, readonly),
        );
        let to = to.as_mut_ptr();
        _mm_storeu_ps(to, a);
        _mm_storeu_ps(to.add(4), b);
        _mm_storeu_ps(to.add(8), c);
        _mm_storeu_ps(to.add(12), d);
    }
}

/// # Safety
/// `to` must point to [`STRIDE`] floats that stay allocated and into which no reference exists.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn store_line(to: *mut f32, from: &[f32; STRIDE]) {
    use std::arch::asm;
    use std::arch::x86_64::_mm_loadu_ps;
    let from = from.as_ptr();
    // SAFETY: the 64 bytes at `to` are writable by the caller's promise; `from` is a line of ours.
    unsafe {
        asm!(
            "movups [{p}], {a}",
            "movups [{p} + 16], {b}",
            "movups [{p} + 32], {c}",
            "movups [{p} + 48], {d}",
            p = in(reg) to,
            a = in(xmm_reg) _mm_loadu_ps(from),
            b = in(xmm_reg) _mm_loadu_ps(from.add(4)),
            c = in(xmm_reg) _mm_loadu_ps(from.add(8)),
            d = in(xmm_reg) _mm_loadu_ps(from.add(12)),
            options(nostack, preserves_flags),
        );
    }
}

/// # Safety
/// `from` must point to [`STRIDE`] floats that stay allocated.
#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline(always)]
unsafe fn load_line(from: *const f32, to: &mut [f32; STRIDE]) {
    use std::arch::aarch64::{float32x4_t, vst1q_f32};
    use std::arch::asm;
    let (a, b, c, d): (float32x4_t, float32x4_t, float32x4_t, float32x4_t);
    // SAFETY: the 64 bytes at `from` are readable by the caller's promise; NEON is part of the
    // AArch64 baseline.
    unsafe {
        asm!(
            "ldp {a:q}, {b:q}, [{p}]",
            "ldp {c:q}, {d:q}, [{p}, #32]",
            p = in(reg) from,
            a = out(vreg) a,
            b = out(vreg) b,
            c = out(vreg) c,
            d = out(vreg) d,
            options(nostack, preserves_flags, readonly),
        );
        let to = to.as_mut_ptr();
        vst1q_f32(to, a);
        vst1q_f32(to.add(4), b);
        vst1q_f32(to.add(8), c);
        vst1q_f32(to.add(12), d);
    }
}

/// # Safety
/// `to` must point to [`STRIDE`] floats that stay allocated and into which no reference exists.
#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline(always)]
unsafe fn store_line(to: *mut f32, from: &[f32; STRIDE]) {
    use std::arch::aarch64::vld1q_f32;
    use std::arch::asm;
    let from = from.as_ptr();
    // SAFETY: the 64 bytes at `to` are writable by the caller's promise; `from` is a line of ours.
    unsafe {
        asm!(
            "stp {a:q}, {b:q}, [{p}]",
            "stp {c:q}, {d:q}, [{p}, #32]",
            p = in(reg) to,
            a = in(vreg) vld1q_f32(from),
            b = in(vreg) vld1q_f32(from.add(4)),
            c = in(vreg) vld1q_f32(from.add(8)),
            d = in(vreg) vld1q_f32(from.add(12)),
            options(nostack, preserves_flags),
        );
    }
}

/// # Safety
/// `from` must point to [`STRIDE`] floats that stay allocated, aligned to 4 bytes.
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
unsafe fn load_line(from: *const f32, to: &mut [f32; STRIDE]) {
    use std::sync::atomic::{AtomicU32, Ordering};
    for (k, x) in to.iter_mut().enumerate() {
        // SAFETY: a float of ours, aligned, only ever accessed atomically while threads race.
        let shared = unsafe { AtomicU32::from_ptr(from.add(k).cast_mut().cast()) };
        *x = f32::from_bits(shared.load(Ordering::Relaxed));
    }
}

/// # Safety
/// `to` must point to [`STRIDE`] floats that stay allocated, aligned to 4 bytes, into which no
/// reference exists.
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
unsafe fn store_line(to: *mut f32, from: &[f32; STRIDE]) {
    use std::sync::atomic::{AtomicU32, Ordering};
    for (k, x) in from.iter().enumerate() {
        // SAFETY: as above.
        let shared = unsafe { AtomicU32::from_ptr(to.add(k).cast()) };
        shared.store(x.to_bits(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_as_they_went_in() {
        let mut memory = vec![0.0f32; 3 * 32];
        {
            let rows = RacingRows::new(&mut memory, 32);
            let row: Vec<f32> = (0..32).map(|i| i as f32 + 0.5).collect();
            rows.store(1, &row);
            let mut back = vec![0.0; 32];
            rows.load(1, &mut back);
            assert_eq!(row, back);
            rows.load(2, &mut back);
            assert!(back.iter().all(|&x| x == 0.0));
        }
        assert_eq!(memory[32], 0.5);
        assert_eq!(memory[31], 0.0);
    }

    #[test]
    fn racing_threads_leave_floats_that_somebody_wrote() {
        let mut memory = vec![1.0f32; 16];
        let rounds = if cfg!(miri) { 50 } else { 20_000 };
        let rows = RacingRows::new(&mut memory, 16);
        std::thread::scope(|scope| {
            for t in 0..3 {
                let rows = &rows;
                scope.spawn(move || {
                    let mut row = [0.0; 16];
                    for _ in 0..rounds {
                        rows.load(0, &mut row);
                        assert!(row.iter().all(|&x| (1.0..=4.0).contains(&x)), "{row:?}");
                        row.fill(1.0 + t as f32);
                        rows.store(0, &row);
                    }
                });
            }
        });
    }

    #[test]
    #[should_panic(expected = "assertion failed")]
    fn a_row_that_is_not_there_is_refused() {
        let mut memory = vec![0.0f32; 32];
        RacingRows::new(&mut memory, 16).load(2, &mut [0.0; 16]);
    }
}
