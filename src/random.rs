//! Reproducible randomness: mixing, streams named by what they are for, and permutations that need
//! no memory.
//!
//! Nothing here depends on the thread count or on the order of calls: a stream is found from
//! `(seed, purpose, index)` alone, so any thread can produce any row or chunk.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The finaliser of SplitMix64: a bijection of `u64` that scatters neighbouring inputs.
#[inline]
pub(crate) fn splitmix64(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// One key out of several parts; the order of the parts matters.
pub(crate) fn hash_words(words: &[u64]) -> u64 {
    words
        .iter()
        .fold(0, |acc, &w| splitmix64(acc ^ splitmix64(w)))
}

/// A uniform number in [0, 1) from 53 bits of a hash.
#[inline]
pub(crate) fn unit_interval(hash: u64) -> f64 {
    (hash >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// A stream of random numbers with the draws this library needs.
pub(crate) struct RandomStream {
    rng: Xoshiro256PlusPlus,
    spare: Option<f64>,
}

impl RandomStream {
    pub(crate) fn new(parts: &[u64]) -> Self {
        RandomStream {
            rng: Xoshiro256PlusPlus::seed_from_u64(hash_words(parts)),
            spare: None,
        }
    }

    #[inline]
    pub(crate) fn uniform(&mut self) -> f64 {
        unit_interval(self.rng.next_u64())
    }

    /// Uniform in `0..n`, without bias worth measuring for the `n` used here (below 2^64 / 2^20).
    #[inline]
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.rng.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Standard normal, by Box and Muller in pairs.
    pub(crate) fn standard_normal(&mut self) -> f64 {
        if let Some(z) = self.spare.take() {
            return z;
        }
        // 1 - u is in (0, 1], so the logarithm is finite.
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * self.uniform()).sin_cos();
        self.spare = Some(radius * sin);
        radius * cos
    }
}

/// A random permutation of `0..n` computed element by element: a Feistel network on the next
/// larger power of four, walked until it lands inside. Needs no memory, so that an entry's place in
/// a random order is known without shuffling anything.
pub(crate) struct Permutation {
    n: u64,
    half_bits: u32,
    keys: [u64; 6],
}

impl Permutation {
    pub(crate) fn new(n: u64, seed: &[u64]) -> Self {
        let bits = 64 - n.saturating_sub(1).leading_zeros();
        let base = hash_words(seed);
        Permutation {
            n,
            half_bits: bits.div_ceil(2).max(1),
            keys: std::array::from_fn(|round| splitmix64(base ^ splitmix64(round as u64 + 1))),
        }
    }

    /// Where `x` (below `n`) goes.
    #[inline]
    pub(crate) fn apply(&self, x: u64) -> u64 {
        debug_assert!(x < self.n);
        let mask = (1u64 << self.half_bits) - 1;
        let mut x = x;
        loop {
            let (mut left, mut right) = (x >> self.half_bits, x & mask);
            for k in self.keys {
                (left, right) = (right, left ^ (splitmix64(right ^ k) & mask));
            }
            x = (left << self.half_bits) | right;
            // The network is a bijection of the larger domain, so the walk returns to `0..n`
            // after fewer than four steps on average.
            if x < self.n {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutation_is_a_bijection_and_depends_on_the_seed() {
        for n in [1u64, 2, 3, 4, 5, 15, 16, 17, 64, 1000, 4097] {
            let p = Permutation::new(n, &[7, n]);
            let mut seen = vec![false; n as usize];
            for x in 0..n {
                let y = p.apply(x) as usize;
                assert!(!seen[y], "{n}: {y} twice");
                seen[y] = true;
            }
        }
        let (a, b) = (Permutation::new(1000, &[1]), Permutation::new(1000, &[2]));
        assert!((0..1000).filter(|&x| a.apply(x) == b.apply(x)).count() < 20);
    }

    #[test]
    fn permutation_of_a_huge_domain_stays_inside() {
        for n in [u64::from(u32::MAX) + 5, u64::MAX / 3, u64::MAX] {
            let p = Permutation::new(n, &[3]);
            for x in [0, 1, n / 2, n - 1] {
                assert!(p.apply(x) < n);
            }
        }
    }

    #[test]
    fn normal_draws_have_mean_zero_and_variance_one() {
        let mut s = RandomStream::new(&[1, 2]);
        let draws: Vec<f64> = (0..200_000).map(|_| s.standard_normal()).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let var = draws.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        assert!(
            mean.abs() < 0.01 && (var - 1.0).abs() < 0.02,
            "{mean} {var}"
        );
    }

    #[test]
    fn below_covers_its_range_evenly() {
        let mut s = RandomStream::new(&[9]);
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[s.below(7) as usize] += 1;
        }
        assert!(
            counts.iter().all(|&c| (9_000..11_000).contains(&c)),
            "{counts:?}"
        );
    }
}
