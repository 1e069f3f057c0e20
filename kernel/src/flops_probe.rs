//! Measures the peak floating-point rate of this machine, to which kernel speeds are compared.
#![allow(unsafe_code)]

use std::hint::black_box;
use std::time::Instant;

use crate::simd::LANES;
use crate::simd::Level;
use crate::simd::{F32x16, dispatched};

/// Number of rounds of multiply-adds between two readings of the clock.
const ROUNDS: usize = if cfg!(miri) { 4 } else { 1 << 14 };

// A vector is one register of AVX-512, two of AVX2 and four of the portable level. Each function keeps twelve
// registers busy: enough to hide the latency of the multiply-add, and few enough that none is spilled.
dispatched! {
    /// Twelve vectors of multiply-adds per round.
    unsafe fn fma_twelve(rounds: usize) -> f32 = fma_twelve_body;
}
dispatched! {
    /// Six vectors of multiply-adds per round.
    unsafe fn fma_six(rounds: usize) -> f32 = fma_six_body;
}
dispatched! {
    /// Three vectors of multiply-adds per round.
    unsafe fn fma_three(rounds: usize) -> f32 = fma_three_body;
}

#[inline(always)]
unsafe fn fma_twelve_body<V: F32x16>(rounds: usize) -> f32 {
    fma_chains::<V, 12>(rounds)
}

#[inline(always)]
unsafe fn fma_six_body<V: F32x16>(rounds: usize) -> f32 {
    fma_chains::<V, 6>(rounds)
}

#[inline(always)]
unsafe fn fma_three_body<V: F32x16>(rounds: usize) -> f32 {
    fma_chains::<V, 3>(rounds)
}

/// Computes `x = by * x + to` in `K` independent chains of vectors. The values tend to 1, so none becomes
/// denormal or infinite.
#[inline(always)]
fn fma_chains<V: F32x16, const K: usize>(rounds: usize) -> f32 {
    let (by, to) = (
        V::splat(black_box(0.9990234)),
        V::splat(black_box(0.0009765625)),
    );
    let mut vectors = [V::zero(); K];
    for k in 0..K {
        vectors[k] = V::splat(black_box(k as f32));
    }
    for _ in 0..rounds {
        for k in 0..K {
            vectors[k] = by.mul_add(vectors[k], to);
        }
    }
    let mut sum = V::zero();
    for k in 0..K {
        sum = sum + vectors[k];
    }
    sum.sum()
}

/// Returns the floating-point operations per second of multiply-adds (two each) on registers, on the calling
/// thread, measured for about `seconds`.
///
/// The scalar level has the peak of the portable vectors, because the compiler vectorizes its loops with the same
/// instructions where it can.
///
/// # Panics
/// If this machine does not have the level.
pub fn peak_flops(level: Level, seconds: f64) -> f64 {
    assert!(
        level.is_available(),
        "this machine does not have {}",
        level.name()
    );
    let vectors = match level {
        Level::Avx512 => 12,
        Level::Avx2 => 6,
        Level::Scalar | Level::Wide => 3,
    };
    let burst = || {
        let rounds = black_box(ROUNDS);
        // SAFETY: the level was checked; the kernels have no other obligations.
        black_box(unsafe {
            match level {
                Level::Avx512 => fma_twelve(level, rounds),
                Level::Avx2 => fma_six(level, rounds),
                Level::Scalar | Level::Wide => fma_three(Level::Wide, rounds),
            }
        });
    };
    // The first burst is not measured: wide units may be powered down.
    burst();
    let start = Instant::now();
    let mut bursts = 0.0;
    let mut elapsed = 0.0;
    while elapsed <= 0.0 || elapsed < seconds {
        burst();
        bursts += 1.0;
        elapsed = start.elapsed().as_secs_f64();
    }
    bursts * (ROUNDS * vectors * LANES * 2) as f64 / elapsed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peak_is_positive_at_every_level() {
        for level in Level::available() {
            let peak = peak_flops(level, 0.0);
            assert!(peak.is_finite() && peak > 0.0, "{level:?}: {peak}");
        }
    }
}
