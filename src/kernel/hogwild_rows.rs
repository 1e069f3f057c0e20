//! Rows that several threads read and write without synchronization (HOGWILD!).
//!
//! The paper's schedule lets threads overwrite each other's updates: rows are rarely shared, and a
//! lost or torn update costs a little accuracy and nothing else. In Rust, as in C, ordinary loads
//! and stores that race are undefined behaviour, through references and raw pointers alike. So no
//! reference into such memory exists while threads race; a [`RacingRows`] is the only way in, and it
//! moves whole rows between the shared memory and buffers of the calling thread:
//!
//! - with vector moves in `asm!` of the width of the level (AVX-512, AVX2, else SSE or NEON), which
//!   the compiler treats as opaque memory accesses: it can neither assume that nobody else writes nor
//!   split or repeat them;
//! - at the scalar level, under Miri, and where there is neither SSE nor NEON, with relaxed atomics,
//!   one float at a time. So a run at that level is one without data races, for tools that look for
//!   them.
//!
//! All threads of a fit use one level.
//!
//! What the hardware promises: a vector move may be seen in parts by another thread, but an aligned
//! 4-byte float in it is never torn. So a row read during an update can mix old and new
//! floats, and each float is one that somebody wrote. What the language promises: inline assembly
//! may do what the hardware does to memory the compiler believes shared; Rust has no words yet for
//! assembly that races with assembly, and no compiler has given it another meaning.
#![allow(unsafe_code)]

use std::marker::PhantomData;

use crate::simd::LANES;
use crate::simd::Level;
use crate::simd::{F32x16, Portable, Scalar, dispatched, prefetch};

/// Lines that can be moved from and to racing memory.
pub(super) trait Racer: F32x16 {
    /// Reads a line of racing memory.
    ///
    /// # Safety
    /// `from` must point to [`LANES`] floats, aligned to 4 bytes, that stay allocated.
    unsafe fn take(from: *const f32) -> Self;

    /// Writes a line of racing memory.
    ///
    /// # Safety
    /// As for `take`, and no reference into them may exist.
    unsafe fn put(self, to: *mut f32);

    /// Asks for the line at `at`, soon to be written; nothing happens if there is none.
    #[inline(always)]
    fn expect(at: *const f32) {
        prefetch(at);
    }
}

/// Rows of floats, padded to whole lines, shared between racing threads.
pub struct RacingRows<'a> {
    start: *mut f32,
    rows: usize,
    stride: usize,
    memory: PhantomData<&'a mut [f32]>,
}

// SAFETY: all access through a shared `RacingRows` goes through `Racer`, which uses
// assembly or atomics and never a reference into the memory; the lifetime keeps every other access
// out as long as it exists.
unsafe impl Sync for RacingRows<'_> {}
// SAFETY: it is only a pointer to memory borrowed for `'a`, with no tie to a thread.
unsafe impl Send for RacingRows<'_> {}

impl<'a> RacingRows<'a> {
    /// Takes over `memory`, rows of `stride` floats, until the end of its borrow.
    ///
    /// # Panics
    /// If `stride` is not a multiple of [`LANES`] or `memory` not a whole number of rows.
    pub fn new(memory: &'a mut [f32], stride: usize) -> Self {
        assert!(stride > 0 && stride.is_multiple_of(LANES) && memory.len().is_multiple_of(stride));
        RacingRows {
            start: memory.as_mut_ptr(),
            rows: memory.len() / stride,
            stride,
            memory: PhantomData,
        }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Floats of a row.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// The memory, for [`Racer`] alone.
    pub(super) fn start(&self) -> *mut f32 {
        self.start
    }

    fn at(&self, level: Level, row: u32, len: usize) -> *mut f32 {
        assert!((row as usize) < self.rows && len == self.stride && level.is_available());
        // SAFETY: the row is inside the memory, which is `rows * stride` floats long.
        unsafe { self.start.add(row as usize * self.stride) }
    }

    /// Copies a row out.
    ///
    /// # Panics
    /// If there is no such row or `out` is not one row long, or the machine does not have the level.
    pub fn load(&self, level: Level, row: u32, out: &mut [f32]) {
        let from = self.at(level, row, out.len());
        // SAFETY: `at` gave the start of `out.len()` floats inside the memory, which are whole lines.
        unsafe { take_lines(level, from, out.as_mut_ptr(), out.len()) }
    }

    /// Copies a row in.
    ///
    /// # Panics
    /// If there is no such row or `from` is not one row long, or the machine does not have the level.
    pub fn store(&self, level: Level, row: u32, from: &[f32]) {
        let to = self.at(level, row, from.len());
        // SAFETY: as in `load`; nobody holds a reference into this memory.
        unsafe { put_lines(level, to, from.as_ptr(), from.len()) }
    }
}

dispatched! {
    /// Copies `len` floats of racing memory out.
    unsafe fn take_lines(from: *const f32, to: *mut f32, len: usize) = any_take_lines;
}

dispatched! {
    /// Copies `len` floats to racing memory.
    unsafe fn put_lines(to: *mut f32, from: *const f32, len: usize) = any_put_lines;
}

dispatched! {
    /// Adds to racing rows of `len` floats together what a thread's own copies of them have gained since
    /// they were `base`, and makes the copies what the rows then are.
    pub(super) unsafe fn fold(shared: *mut f32, own: *mut f32, base: *mut f32, len: usize, nonneg: bool)
        = any_fold;
}

#[inline(always)]
unsafe fn any_take_lines<L: Racer>(from: *const f32, to: *mut f32, len: usize) {
    for k in (0..len).step_by(LANES) {
        // SAFETY: the caller's promises.
        unsafe { L::take(from.add(k)).store(to.add(k)) };
    }
}

#[inline(always)]
unsafe fn any_put_lines<L: Racer>(to: *mut f32, from: *const f32, len: usize) {
    for k in (0..len).step_by(LANES) {
        // SAFETY: the caller's promises.
        unsafe { L::load(from.add(k)).put(to.add(k)) };
    }
}

#[inline(always)]
unsafe fn any_fold<L: Racer>(
    shared: *mut f32,
    own: *mut f32,
    base: *mut f32,
    len: usize,
    nonneg: bool,
) {
    for k in (0..len).step_by(LANES) {
        // SAFETY: the caller's promises; own and base belong to this thread.
        unsafe {
            let (shared, own, base) = (shared.add(k), own.add(k), base.add(k));
            let mut row = L::take(shared);
            // A row that was not touched is only read, so that its line stays with those who do.
            if *own.cast::<[f32; LANES]>() != *base.cast::<[f32; LANES]>() {
                let gain = L::load(base).mul_add(L::splat(-1.0), L::load(own));
                row = row + gain;
                // Two threads can both have taken it down.
                if nonneg {
                    row = row.at_least_zero();
                }
                row.put(shared);
            }
            row.store(own);
            row.store(base);
        }
    }
}

impl Racer for Scalar {
    #[inline(always)]
    unsafe fn take(from: *const f32) -> Self {
        use std::sync::atomic::{AtomicU32, Ordering};
        let mut line = [0.0f32; LANES];
        for (k, x) in line.iter_mut().enumerate() {
            // SAFETY: a float of ours, aligned, only ever accessed atomically while threads race.
            let shared = unsafe { AtomicU32::from_ptr(from.add(k).cast_mut().cast()) };
            *x = f32::from_bits(shared.load(Ordering::Relaxed));
        }
        // SAFETY: one line.
        unsafe { Scalar::load(line.as_ptr()) }
    }

    #[inline(always)]
    unsafe fn put(self, to: *mut f32) {
        use std::sync::atomic::{AtomicU32, Ordering};
        let mut line = [0.0f32; LANES];
        // SAFETY: one line.
        unsafe { self.store(line.as_mut_ptr()) };
        for (k, x) in line.iter().enumerate() {
            // SAFETY: as above.
            let shared = unsafe { AtomicU32::from_ptr(to.add(k).cast()) };
            shared.store(x.to_bits(), Ordering::Relaxed);
        }
    }
}

impl Racer for Portable {
    #[inline(always)]
    unsafe fn take(from: *const f32) -> Self {
        let mut line = [0.0f32; LANES];
        // SAFETY: the caller's promise.
        unsafe {
            load_line(from, &mut line);
            Portable::load(line.as_ptr())
        }
    }

    #[inline(always)]
    unsafe fn put(self, to: *mut f32) {
        let mut line = [0.0f32; LANES];
        // SAFETY: the caller's promise.
        unsafe {
            self.store(line.as_mut_ptr());
            store_line(to, &line);
        }
    }
}

/// # Safety
/// `from` must point to [`LANES`] floats that stay allocated.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn load_line(from: *const f32, to: &mut [f32; LANES]) {
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
/// `to` must point to [`LANES`] floats that stay allocated and into which no reference exists.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn store_line(to: *mut f32, from: &[f32; LANES]) {
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
/// `from` must point to [`LANES`] floats that stay allocated.
#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline(always)]
unsafe fn load_line(from: *const f32, to: &mut [f32; LANES]) {
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
/// `to` must point to [`LANES`] floats that stay allocated and into which no reference exists.
#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline(always)]
unsafe fn store_line(to: *mut f32, from: &[f32; LANES]) {
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
/// `from` must point to [`LANES`] floats that stay allocated, aligned to 4 bytes.
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
unsafe fn load_line(from: *const f32, to: &mut [f32; LANES]) {
    // SAFETY: the caller's promise.
    unsafe { Scalar::take(from).store(to.as_mut_ptr()) }
}

/// # Safety
/// `to` must point to [`LANES`] floats that stay allocated, aligned to 4 bytes, into which no
/// reference exists.
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
unsafe fn store_line(to: *mut f32, from: &[f32; LANES]) {
    // SAFETY: the caller's promise.
    unsafe { Scalar::load(from.as_ptr()).put(to) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_as_they_went_in() {
        for level in Level::available() {
            let mut memory = vec![0.0f32; 3 * 32];
            {
                let rows = RacingRows::new(&mut memory, 32);
                let row: Vec<f32> = (0..32).map(|i| i as f32 + 0.5).collect();
                rows.store(level, 1, &row);
                let mut back = vec![0.0; 32];
                rows.load(level, 1, &mut back);
                assert_eq!(row, back);
                rows.load(level, 2, &mut back);
                assert!(back.iter().all(|&x| x == 0.0));
            }
            assert_eq!(memory[32], 0.5);
            assert_eq!(memory[31], 0.0);
        }
    }

    #[test]
    fn racing_threads_leave_floats_that_somebody_wrote() {
        for level in Level::available() {
            let mut memory = vec![1.0f32; 16];
            let rounds = if cfg!(miri) { 50 } else { 20_000 };
            let rows = RacingRows::new(&mut memory, 16);
            std::thread::scope(|scope| {
                for t in 0..3 {
                    let rows = &rows;
                    scope.spawn(move || {
                        let mut row = [0.0; 16];
                        for _ in 0..rounds {
                            rows.load(level, 0, &mut row);
                            assert!(row.iter().all(|&x| (1.0..=4.0).contains(&x)), "{row:?}");
                            row.fill(1.0 + t as f32);
                            rows.store(level, 0, &row);
                        }
                    });
                }
            });
        }
    }

    #[test]
    #[should_panic(expected = "assertion failed")]
    fn a_row_that_is_not_there_is_refused() {
        let mut memory = vec![0.0f32; 32];
        RacingRows::new(&mut memory, 16).load(Level::Scalar, 2, &mut [0.0; 16]);
    }
}
