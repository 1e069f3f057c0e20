//! Factor rows that several threads read and write without synchronization (HOGWILD!).
//!
//! The paper's schedule lets threads overwrite each other's updates: rows are rarely shared, and a lost or torn
//! update costs a little accuracy and nothing else. In Rust, as in C, ordinary loads and stores that race are
//! undefined behaviour, through references and raw pointers alike. So no reference into such memory exists while
//! threads race. [`HogwildRows`] is the only access to it, and moves whole rows between the shared memory and
//! buffers of the calling thread:
//!
//! - with vector moves in `asm!` of the width of the level (AVX-512, AVX2, else SSE or NEON). To the compiler these
//!   are opaque memory accesses: it can neither assume that no other thread writes nor split or repeat them;
//! - with relaxed atomics, one float at a time, at the scalar level, under Miri, and on machines with neither SSE nor
//!   NEON. A fit at the scalar level therefore has no data race that Miri or ThreadSanitizer would report.
//!
//! A [`HogwildRows`] has one level, which all accesses use.
//!
//! The hardware guarantees that another thread never sees a torn aligned 4-byte float, but it may see a vector
//! move in parts. A row read during an update can therefore mix old and new floats, each of which some thread
//! wrote. The language allows inline assembly to do what the hardware does to memory the compiler treats as
//! shared. Rust does not yet define races between assembly and assembly, and no compiler has given them another
//! meaning.
#![allow(unsafe_code)]

use std::marker::PhantomData;

use crate::simd::LANES;
use crate::simd::Level;
use crate::simd::{F32x16, Portable, Scalar, dispatched, prefetch};

/// Vectors that can be moved from and to memory that other threads access at the same time.
pub(crate) trait HogwildVector: F32x16 {
    /// Loads a vector from shared memory.
    ///
    /// # Safety
    /// `from` must point to [`LANES`] floats, aligned to 4 bytes, that stay allocated.
    unsafe fn load_shared(from: *const f32) -> Self;

    /// Stores a vector to shared memory.
    ///
    /// # Safety
    /// As for `load_shared`, and no reference into them may exist.
    unsafe fn store_shared(self, to: *mut f32);

    /// Prefetches the vector at `at` for writing. Any address is allowed.
    #[inline(always)]
    fn prefetch_for_write(at: *const f32) {
        prefetch(at);
    }
}

/// Rows of floats, padded to whole vectors, that threads access without synchronization.
pub struct HogwildRows<'a> {
    start: *mut f32,
    rows: usize,
    stride: usize,
    level: Level,
    memory: PhantomData<&'a mut [f32]>,
}

// SAFETY: all accesses through a shared `HogwildRows` go through `HogwildVector`, which uses assembly or atomics
// and never a reference into the memory. The lifetime excludes every other access while it exists.
unsafe impl Sync for HogwildRows<'_> {}
// SAFETY: the pointer refers to memory borrowed for `'a` and is not tied to a thread.
unsafe impl Send for HogwildRows<'_> {}

impl<'a> HogwildRows<'a> {
    /// Borrows `memory`, rows of `stride` floats. All threads access it by the moves of `level`, so that atomic accesses
    /// never race with assembly.
    ///
    /// # Panics
    /// If `stride` is not a multiple of [`LANES`], `memory` is not a whole number of rows, or the machine does not support
    /// the level.
    pub fn new(memory: &'a mut [f32], stride: usize, level: Level) -> Self {
        assert!(level.is_available());
        assert!(stride > 0 && stride.is_multiple_of(LANES) && memory.len().is_multiple_of(stride));
        HogwildRows {
            start: memory.as_mut_ptr(),
            rows: memory.len() / stride,
            stride,
            level,
            memory: PhantomData,
        }
    }

    /// Returns the level of all accesses.
    #[inline]
    pub fn level(&self) -> Level {
        self.level
    }

    /// Number of rows.
    #[inline]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Number of floats per row.
    #[inline]
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Returns the address of row 0. Only [`HogwildVector`] may access it.
    pub(crate) fn start(&self) -> *mut f32 {
        self.start
    }

    fn row_address(&self, row: u32, len: usize) -> *mut f32 {
        assert!((row as usize) < self.rows && len == self.stride);
        // SAFETY: the row is inside the memory, which is `rows * stride` floats long.
        unsafe { self.start.add(row as usize * self.stride) }
    }

    /// Copies a row to `out`.
    ///
    /// # Panics
    /// If there is no such row or `out` is not one row long.
    #[inline]
    pub fn load(&self, row: u32, out: &mut [f32]) {
        let from = self.row_address(row, out.len());
        // SAFETY: `row_address` returned the start of `out.len()` floats inside the memory, which are whole vectors. The
        // constructor checked the level.
        unsafe { load_floats(self.level, from, out.as_mut_ptr(), out.len()) }
    }

    /// Overwrites a row with `from`.
    ///
    /// # Panics
    /// If there is no such row or `from` is not one row long.
    #[inline]
    pub fn store(&self, row: u32, from: &[f32]) {
        let to = self.row_address(row, from.len());
        // SAFETY: as in `load`; no reference into this memory exists.
        unsafe { store_floats(self.level, to, from.as_ptr(), from.len()) }
    }
}

dispatched! {
    /// Copies `len` floats from shared memory.
    unsafe fn load_floats(from: *const f32, to: *mut f32, len: usize) = any_load_floats;
}

dispatched! {
    /// Copies `len` floats to shared memory.
    unsafe fn store_floats(to: *mut f32, from: *const f32, len: usize) = any_store_floats;
}

dispatched! {
    /// Adds `own - base` to `len` floats of shared memory and copies the sums to `own` and `base`, the calling
    /// thread's replica of them and its state at the last exchange.
    pub(super) unsafe fn exchange_replica(shared: *mut f32, own: *mut f32, base: *mut f32, len: usize, nonneg: bool)
        = any_exchange_replica;
}

#[inline(always)]
unsafe fn any_load_floats<V: HogwildVector>(from: *const f32, to: *mut f32, len: usize) {
    for k in (0..len).step_by(LANES) {
        // SAFETY: the caller guarantees the memory.
        unsafe { V::load_shared(from.add(k)).store(to.add(k)) };
    }
}

#[inline(always)]
unsafe fn any_store_floats<V: HogwildVector>(to: *mut f32, from: *const f32, len: usize) {
    for k in (0..len).step_by(LANES) {
        // SAFETY: the caller guarantees the memory.
        unsafe { V::load(from.add(k)).store_shared(to.add(k)) };
    }
}

#[inline(always)]
unsafe fn any_exchange_replica<V: HogwildVector>(
    shared: *mut f32,
    own: *mut f32,
    base: *mut f32,
    len: usize,
    nonneg: bool,
) {
    for k in (0..len).step_by(LANES) {
        // SAFETY: the caller guarantees the memory; own and base belong to this thread.
        unsafe {
            let (shared, own, base) = (shared.add(k), own.add(k), base.add(k));
            let mut row = V::load_shared(shared);
            // An unchanged row is only read, so that its cache line can stay shared.
            if *own.cast::<[f32; LANES]>() != *base.cast::<[f32; LANES]>() {
                let delta = V::load(base).mul_add(V::splat(-1.0), V::load(own));
                row = row + delta;
                // Several threads may have decreased it, each to no less than 0.
                if nonneg {
                    row = row.max_zero();
                }
                row.store_shared(shared);
            }
            row.store(own);
            row.store(base);
        }
    }
}

impl HogwildVector for Scalar {
    #[inline(always)]
    unsafe fn load_shared(from: *const f32) -> Self {
        use std::sync::atomic::{AtomicU32, Ordering};
        let mut floats = [0.0f32; LANES];
        for (k, x) in floats.iter_mut().enumerate() {
            // SAFETY: an aligned float of the shared memory, only accessed atomically while threads race.
            let shared = unsafe { AtomicU32::from_ptr(from.add(k).cast_mut().cast()) };
            *x = f32::from_bits(shared.load(Ordering::Relaxed));
        }
        // SAFETY: `floats` has the length of a vector.
        unsafe { Scalar::load(floats.as_ptr()) }
    }

    #[inline(always)]
    unsafe fn store_shared(self, to: *mut f32) {
        use std::sync::atomic::{AtomicU32, Ordering};
        let mut floats = [0.0f32; LANES];
        // SAFETY: `floats` has the length of a vector.
        unsafe { self.store(floats.as_mut_ptr()) };
        for (k, x) in floats.iter().enumerate() {
            // SAFETY: as above.
            let shared = unsafe { AtomicU32::from_ptr(to.add(k).cast()) };
            shared.store(x.to_bits(), Ordering::Relaxed);
        }
    }
}

impl HogwildVector for Portable {
    #[inline(always)]
    unsafe fn load_shared(from: *const f32) -> Self {
        let mut floats = [0.0f32; LANES];
        // SAFETY: the caller guarantees the memory.
        unsafe {
            load_16_floats(from, &mut floats);
            Portable::load(floats.as_ptr())
        }
    }

    #[inline(always)]
    unsafe fn store_shared(self, to: *mut f32) {
        let mut floats = [0.0f32; LANES];
        // SAFETY: the caller guarantees the memory.
        unsafe {
            self.store(floats.as_mut_ptr());
            store_16_floats(to, &floats);
        }
    }
}

/// # Safety
/// `from` must point to [`LANES`] floats that stay allocated.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn load_16_floats(from: *const f32, to: &mut [f32; LANES]) {
    use std::arch::asm;
    use std::arch::x86_64::{__m128, _mm_storeu_ps};
    let (a, b, c, d): (__m128, __m128, __m128, __m128);
    // SAFETY: the 64 bytes at `from` are readable as the caller guarantees; the assembly only reads
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
unsafe fn store_16_floats(to: *mut f32, from: &[f32; LANES]) {
    use std::arch::asm;
    use std::arch::x86_64::_mm_loadu_ps;
    let from = from.as_ptr();
    // SAFETY: the 64 bytes at `to` are writable as the caller guarantees; `from` is an array of this thread.
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
unsafe fn load_16_floats(from: *const f32, to: &mut [f32; LANES]) {
    use std::arch::aarch64::{float32x4_t, vst1q_f32};
    use std::arch::asm;
    let (a, b, c, d): (float32x4_t, float32x4_t, float32x4_t, float32x4_t);
    // SAFETY: the 64 bytes at `from` are readable as the caller guarantees; NEON is part of the
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
unsafe fn store_16_floats(to: *mut f32, from: &[f32; LANES]) {
    use std::arch::aarch64::vld1q_f32;
    use std::arch::asm;
    let from = from.as_ptr();
    // SAFETY: the 64 bytes at `to` are writable as the caller guarantees; `from` is an array of this thread.
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
unsafe fn load_16_floats(from: *const f32, to: &mut [f32; LANES]) {
    // SAFETY: the caller guarantees the memory.
    unsafe { Scalar::load_shared(from).store(to.as_mut_ptr()) }
}

/// # Safety
/// `to` must point to [`LANES`] floats that stay allocated, aligned to 4 bytes, into which no
/// reference exists.
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
unsafe fn store_16_floats(to: *mut f32, from: &[f32; LANES]) {
    // SAFETY: the caller guarantees the memory.
    unsafe { Scalar::load(from.as_ptr()).store_shared(to) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_row_is_loaded_unchanged() {
        for level in Level::available() {
            let mut memory = vec![0.0f32; 3 * 32];
            {
                let rows = HogwildRows::new(&mut memory, 32, level);
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
    }

    #[test]
    fn racing_threads_only_read_floats_that_a_thread_wrote() {
        for level in Level::available() {
            let mut memory = vec![1.0f32; 16];
            let rounds = if cfg!(miri) { 8 } else { 20_000 };
            let rows = HogwildRows::new(&mut memory, 16, level);
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
    }

    #[test]
    #[should_panic(expected = "assertion failed")]
    fn a_missing_row_is_rejected() {
        let mut memory = vec![0.0f32; 32];
        HogwildRows::new(&mut memory, 16, Level::Scalar).load(2, &mut [0.0; 16]);
    }
}
