//! Sums of vectors in which each summand shrinks the sum of those before it.
#![allow(unsafe_code)]

use crate::simd::{F32x16, Level, dispatched};

/// Writes s_k to `sums`, where s_0 = 0, s_i = exp(-steps_i * rates) s_(i-1) + summand_i, element by element, and k is the
/// number of summands. `summands` has them one after the other, each as long as `sums`.
///
/// # Panics
/// If a length does not fit, or the machine does not have the level.
pub fn decayed_sum(level: Level, summands: &[f32], steps: &[f32], rates: &[f32], sums: &mut [f32]) {
    assert!(level.is_available() && rates.len() == sums.len());
    assert_eq!(summands.len(), steps.len() * sums.len());
    // SAFETY: the level is available; the lengths have been checked.
    unsafe { dispatched_sum(level, summands, steps, rates, sums) }
}

dispatched! {
    unsafe fn dispatched_sum(summands: &[f32], steps: &[f32], rates: &[f32], sums: &mut [f32]) = any_decayed_sum;
}

/// Plain loops, which the compiler vectorizes for the instruction set of `V`.
#[inline(always)]
unsafe fn any_decayed_sum<V: F32x16>(
    summands: &[f32],
    steps: &[f32],
    rates: &[f32],
    sums: &mut [f32],
) {
    let n = sums.len();
    let rates = &rates[..n];
    for j in 0..n {
        sums[j] = 0.0;
    }
    for (i, &steps) in steps.iter().enumerate() {
        let summand = &summands[i * n..][..n];
        for j in 0..n {
            sums[j] = sums[j] * exp_minus(steps * rates[j]) + summand[j];
        }
    }
}

/// Returns exp(-x) for x >= 0, and about 1e-30 beyond x = 69.
#[inline(always)]
pub fn exp_minus(x: f32) -> f32 {
    // exp(-x) = 2^-(whole + rest), with the rest in [-0.5, 0.5] by its Taylor series. Adding ROUND rounds y to a whole number
    // and leaves that number in the low bits of the float. A cast to an integer would keep the loop from being vectorized.
    const ROUND: f32 = 1.5 * (1 << 23) as f32;
    let y = (x * std::f32::consts::LOG2_E).min(100.0);
    let shifted = y + ROUND;
    let rest = (shifted - ROUND - y) * std::f32::consts::LN_2;
    let power = f32::from_bits((127u32 << 23).wrapping_sub(shifted.to_bits() << 23));
    let mut series = 1.0 / 120.0;
    for coefficient in [1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        series = coefficient + rest * series;
    }
    power * series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_accurate() {
        for k in 0..2000 {
            let x = k as f32 * 0.03;
            let error = exp_minus(x) / (-x).exp() - 1.0;
            assert!(error.abs() < 1e-5, "{x}: {error}");
        }
        assert!(exp_minus(f32::INFINITY) < 1e-29 && exp_minus(0.0) == 1.0);
    }

    #[test]
    fn every_summand_shrinks_the_sum_before_it() {
        let summands: Vec<f32> = (0..3 * 20).map(|x| (x as f32).sin()).collect();
        let steps = [7.0, 0.5, 2.0];
        let rates: Vec<f32> = (0..20).map(|x| x as f32 * 0.1).collect();
        for level in Level::available() {
            let mut sums = vec![9.0; 20];
            decayed_sum(level, &summands, &steps, &rates, &mut sums);
            for j in 0..20 {
                let decay = |steps: f32| (-steps * rates[j]).exp();
                let first = summands[j] * decay(0.5) + summands[20 + j];
                let expected = first * decay(2.0) + summands[40 + j];
                assert!((sums[j] - expected).abs() < 2e-3, "{level:?} {j}");
            }
        }
    }
}
