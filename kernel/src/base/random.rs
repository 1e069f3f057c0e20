//! Reproducible pseudo-random numbers: hashing, named streams, and permutations that need no memory.
//!
//! A stream is identified by words such as `(seed, purpose, index)`. It does not depend on the thread count or on the
//! order of calls, so any thread can produce any row or chunk.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// One step of the SplitMix64 generator: a bijection of `u64` that maps neighbouring inputs far apart.
#[inline]
pub fn splitmix64(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Hashes several words into one. The order of the words matters.
#[inline]
pub fn hash_words(words: &[u64]) -> u64 {
    words
        .iter()
        .fold(0, |acc, &w| splitmix64(acc ^ splitmix64(w)))
}

/// Maps the upper 53 bits of a hash to a uniform number in [0, 1).
#[inline]
pub fn unit_interval(hash: u64) -> f64 {
    (hash >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// A pseudo-random stream of xoshiro256++.
pub struct RandomStream {
    rng: Xoshiro256PlusPlus,
    /// Second normal number of the last Box-Muller pair.
    spare_normal: Option<f64>,
}

impl RandomStream {
    /// Makes the stream that `name` identifies.
    pub fn new(name: &[u64]) -> Self {
        RandomStream {
            rng: Xoshiro256PlusPlus::seed_from_u64(hash_words(name)),
            spare_normal: None,
        }
    }

    /// Returns a uniform number in [0, 1).
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        unit_interval(self.rng.next_u64())
    }

    /// Returns a uniform integer in `0..n`. The bias is below 2^-20 for `n` below 2^44, far above any `n` used here.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.rng.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Returns a standard normal number, by the Box-Muller transform of pairs.
    #[inline]
    pub fn standard_normal(&mut self) -> f64 {
        if let Some(z) = self.spare_normal.take() {
            return z;
        }
        // 1 - u is in (0, 1], so the logarithm is finite.
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * self.uniform()).sin_cos();
        self.spare_normal = Some(radius * sin);
        radius * cos
    }
}

/// A pseudo-random permutation of `0..n` that is computed element by element: a Feistel network on the next power of
/// four, iterated until the result is below `n` (cycle walking). It needs no memory.
pub struct Permutation {
    n: u64,
    half_bits: u32,
    keys: [u64; 6],
}

impl Permutation {
    /// Makes the permutation of `0..n` that `seed` identifies.
    pub fn new(n: u64, seed: &[u64]) -> Self {
        let bits = 64 - n.saturating_sub(1).leading_zeros();
        let base = hash_words(seed);
        Permutation {
            n,
            half_bits: bits.div_ceil(2).max(1),
            keys: std::array::from_fn(|round| splitmix64(base ^ splitmix64(round as u64 + 1))),
        }
    }

    /// Returns the position of `x` (below `n`) in the permutation.
    #[inline]
    pub fn apply(&self, x: u64) -> u64 {
        debug_assert!(x < self.n);
        let mask = (1u64 << self.half_bits) - 1;
        let mut x = x;
        loop {
            let (mut left, mut right) = (x >> self.half_bits, x & mask);
            for k in self.keys {
                (left, right) = (right, left ^ (splitmix64(right ^ k) & mask));
            }
            x = (left << self.half_bits) | right;
            // The network is a bijection of a domain at most four times as large, so the cycle returns to `0..n` after
            // fewer than four iterations on average.
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
    fn permutation_of_a_huge_domain_stays_below_n() {
        for n in [u64::from(u32::MAX) + 5, u64::MAX / 3, u64::MAX] {
            let p = Permutation::new(n, &[3]);
            for x in [0, 1, n / 2, n - 1] {
                assert!(p.apply(x) < n);
            }
        }
    }

    #[test]
    fn normal_numbers_have_mean_zero_and_variance_one() {
        let mut s = RandomStream::new(&[1, 2]);
        let sample: Vec<f64> = (0..200_000).map(|_| s.standard_normal()).collect();
        let mean = sample.iter().sum::<f64>() / sample.len() as f64;
        let var = sample.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / sample.len() as f64;
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
