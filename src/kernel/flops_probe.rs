//! What the arithmetic units of this machine can do at most: the yardstick for everything else here.
#![allow(unsafe_code)]

use std::hint::black_box;
use std::time::Instant;

use crate::simd::LANES;
use crate::simd::Level;
use crate::simd::{F32x16, dispatched};

/// Rounds of multiply-adds between two looks at the clock.
const ROUNDS: usize = 1 << 14;

// A line is one register of AVX-512, two of AVX2 and four of the portable vectors: as fma_chains vectors as fill
// twelve registers, which is enough to hide how long a multiply-add takes, and few enough that none is
// spilled.
dispatched! {
    /// Multiply-adds of twelve vectors in each round.
    unsafe fn fma_twelve(rounds: usize) -> f32 = fma_twelve_body;
}
dispatched! {
    /// Multiply-adds of six vectors in each round.
    unsafe fn fma_six(rounds: usize) -> f32 = fma_six_body;
}
dispatched! {
    /// Multiply-adds of three vectors in each round.
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

/// `x = by * x + to`, over and over, for `K` vectors that have nothing to do with each other. It tends
/// to 1, so that no number gets tiny or huge.
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
    let mut all = V::zero();
    for k in 0..K {
        all = all + vectors[k];
    }
    all.sum()
}

/// Floating-point operations per second of multiply-adds (two each) on registers alone, on this
/// thread, measured for about `seconds`.
///
/// The scalar level has the peak of the portable vectors: the compiler makes the same instructions of
/// its loops where it can.
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
        // SAFETY: the kernels ask for nothing but the level, which was checked.
        black_box(unsafe {
            match level {
                Level::Avx512 => fma_twelve(level, rounds),
                Level::Avx2 => fma_six(level, rounds),
                Level::Scalar | Level::Wide => fma_three(Level::Wide, rounds),
            }
        });
    };
    // The units may need a moment to wake up.
    burst();
    let began = Instant::now();
    let mut bursts = 0.0;
    let mut elapsed = 0.0;
    while elapsed <= 0.0 || elapsed < seconds {
        burst();
        bursts += 1.0;
        elapsed = began.elapsed().as_secs_f64();
    }
    bursts * (ROUNDS * vectors * LANES * 2) as f64 / elapsed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_has_a_peak() {
        for level in Level::available() {
            let peak = peak_flops(level, 0.0);
            assert!(peak.is_finite() && peak > 0.0, "{level:?}: {peak}");
        }
    }
}
